//! The most work a sample can take, in multiply-adds, before any sample is seen.

use crate::engine::{Gibbs, Start};
use crate::gibbs::{CLIMBS, REFRESH};
use crate::kinds::Family;
use crate::model::{Model, Noise, PANEL, Selection, Shape, States};
use crate::numeric::math::{Real, binomial};
use crate::states::reference::ROUNDS;

/// Multiply-adds per sample, stage by stage. Bounds, not averages: searches end early, states that cannot show are passed by,
/// and most samples need no refinement.
///
/// ```
/// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
/// let operations = model.operations();
/// assert_eq!(operations.projection, 2 * 8 + 4);
/// assert!(operations.total() < 2000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Operations {
    /// Noise weighting, energy and dictionary.
    pub projection: u64,
    /// Scores of all latents; with adaptive states the reference and the candidates.
    pub selection: u64,
    /// States and moments.
    pub posterior: u64,
    /// On top of these for a loud sample: the residual in double words, projected again, and what changes with it.
    pub refinement: u64,
}

impl Operations {
    /// All of a sample that is not loud.
    pub const fn total(&self) -> u64 {
        self.projection.saturating_add(self.selection).saturating_add(self.posterior)
    }
}

/// Saturates. Out of line, since in line it would be half of this file's code; sizes and what a flip takes fit a word, since the
/// parameters that they count are in memory.
#[inline(never)]
const fn times(count: u64, each: u64) -> u64 {
    count.saturating_mul(each)
}

/// Both fit a word.
const fn product(a: usize, b: usize) -> u64 {
    a as u64 * b as u64
}

/// D, H, H' and gamma of a model, and what steps of an inference take.
struct Steps {
    d: usize,
    h: usize,
    n: usize,
    a: usize,
    /// The dictionary.
    panels: usize,
    /// Sigma^-1 y and its energy.
    weigh: usize,
    /// The tableau of all candidates.
    gather: u64,
    /// One flip.
    flip: usize,
    /// All flips of a state.
    evaluate: usize,
    /// A climb that turns every latent on that may be, and one off again for each.
    climb: u64,
    /// A residual in double words, projected on the candidates.
    refine: u64,
}

impl Steps {
    #[inline(never)]
    fn of<T: Real>(model: &Model<'_, T>) -> Self {
        let Shape { kind, dims: d, latents: h, selected: n, max_active: a, .. } = model.shape;
        let is_full = matches!(model.noise, Noise::Full(_));
        let weigh = if is_full { d * (d + 2) } else { 2 * d };
        let entry = match (model.gram, model.noise) {
            (Some(_), _) => 1,
            (None, Noise::Diagonal(_)) => 2 * d,
            (None, _) => d + 1,
        };
        let gather = product(n * (n - 1) / 2, entry + a);
        let (gather, evaluate, flip) = match kind.family() {
            Family::Slab => (gather, 20 * n, n * n / 2 + 8 * n),
            Family::Binary => (gather, 20 * n, 2 * n),
            Family::Maximal => (0, 4 * d * n, 3 * d * a),
        };
        let climb = product(2 * a + 1, evaluate + flip);
        let refine = product(25 * a + n, d) + (weigh + n * a) as u64;
        Self {
            d,
            h,
            n,
            a,
            panels: d * h.next_multiple_of(PANEL),
            weigh,
            gather,
            flip,
            evaluate,
            climb,
            refine,
        }
    }
}

impl<T: Real> Model<'_, T> {
    /// Bounds on the work per sample, by the engine that the kind has unless another is asked for.
    pub fn operations(&self) -> Operations {
        let kind = self.shape.kind;
        if kind.is_sampled() {
            return self.gibbs_operations(&Gibbs::new(kind, Gibbs::SWEEPS));
        }
        let steps = Steps::of(self);
        let &Steps { d, h, n, a, weigh, gather, flip, evaluate, climb, .. } = &steps;
        let (mut selection, mut posterior) = (self.scores(&steps), gather + 6 * n as u64);
        let states = match self.shape.states {
            _ if kind.is_mixture() => {
                // Distances of the selected components, exponentials of all that count.
                let residual = if matches!(self.noise, Noise::Full(_)) { d * (d + 3) / 2 } else { 3 * d };
                posterior = product(n, residual + 6) + 3 * h as u64;
                times(self.shape.states(), 16)
            }
            States::Adaptive { expansions } => {
                posterior = 6 * n as u64;
                selection = self.reference(&steps);
                product(expansions.into(), evaluate + n * (28 + 8 * a) + 3 * flip)
            }
            States::Subsets => {
                posterior += climb;
                let inner = (0..a).fold(0u64, |sum, k| sum.saturating_add(binomial(n as u64, k as u64)));
                times(inner, (evaluate + n * (37 + 8 * a) + 2 * flip + n * n / 2) as u64)
            }
            States::Table => {
                posterior += climb;
                (1..=a).fold(0u64, |sum, k| {
                    let slab = if self.has_full_slab() { k * k + k } else { 2 * k };
                    let each = 2 * k * (k + 1) + 2 * (k * k + 3 * k + slab) + 4 * k + k * a * (a + 2) + 6 * n;
                    sum.saturating_add(times(binomial(n as u64, k as u64), each as u64))
                })
            }
        };
        // Refined up to three times, and once for every loud flip of the search.
        let loud = if kind.is_mixture() { 0 } else { 3 + a as u64 };
        Operations {
            projection: (steps.panels + weigh) as u64,
            selection,
            posterior: states.saturating_add(posterior),
            refinement: times(loud, steps.refine + climb),
        }
    }

    /// Bounds on the work per sample by Gibbs sampling with these settings.
    ///
    /// ```
    /// # let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
    /// use spikelet::{Gibbs, Kind};
    /// let [short, long] = [50, 100].map(|sweeps| model.gibbs_operations(&Gibbs::new(Kind::Gsc, sweeps)));
    /// assert!(long.posterior < 2 * short.posterior && long.selection == short.selection);
    /// ```
    pub fn gibbs_operations(&self, settings: &Gibbs) -> Operations {
        let steps = Steps::of(self);
        let &Steps { d, n, gather, flip, .. } = &steps;
        let is_maximal = self.shape.kind.is_maximal();
        let a = n.min(settings.max_active.into());
        let sweep = if is_maximal {
            let digits = (usize::BITS - d.leading_zeros()) as usize;
            // sorting; two walks and the log odds 30; one or two pieces between two borders, each of two tails and an exponential,
            // or six exponentials
            let pieces =
                if self.shape.kind.has_slab() { (d + 1) * (10 * digits + 30 + 2 * 120) } else { 4 * d };
            product(n, a * d + pieces + 40) + product(3 * a + 4, d)
        } else {
            // conditional 12, exponential 12, normal variate 16, residuals; the tableau, where latents are flipped; both
            // recomputed from time to time
            (n * (40 + n) + 2 * a * flip) as u64 + ((n * n) as u64 + gather) / u64::from(REFRESH)
        };
        // Every state that a chain looks at before it begins takes less than a sweep, which has a joint too.
        let listed = if settings.start == Start::Best { self.shape.states() } else { 0 };
        let sweeps = listed.saturating_add(u64::from(settings.sweeps) + 2 * u64::from(CLIMBS));
        let sweeps = times(sweeps, settings.chains.into());
        Operations {
            projection: (steps.panels + steps.weigh) as u64,
            selection: self.scores(&steps),
            posterior: times(sweeps, sweep).saturating_add(gather + 6 * n as u64),
            // A loud state is refined whenever it changes.
            refinement: if is_maximal { 0 } else { times(sweeps, n as u64 * steps.refine) },
        }
    }

    /// Scores that each latent gets alone, and of their singletons if these are states.
    fn scores(&self, &Steps { h, panels, .. }: &Steps) -> u64 {
        let alone = if self.shape.kind.has_slab() { 6 } else { 1 };
        let (passes, each) = match self.selection {
            Selection::Singleton => (0, alone),
            Selection::Independent { .. } => (3, 1),
            Selection::Cosine { .. } => (0, 1),
            Selection::Bound => (2, 1),
            Selection::Learned { .. } => (1, 0),
        };
        let again = if self.shape.singletons { 9 * alone } else { 0 };
        product(passes, panels) + product(each + again, h)
    }

    /// The reference of a search, and the candidates around it.
    fn reference(&self, steps: &Steps) -> u64 {
        let &Steps { d, h, n, a, panels, weigh, gather, climb, .. } = steps;
        if h <= n {
            return gather + climb;
        }
        let is_maximal = self.shape.kind.is_maximal();
        let (rounds, each) = match self.gram.is_some() || is_maximal {
            true => (a, h * (7 + a) + if is_maximal { 3 * d * h } else { 0 }),
            false => (ROUNDS, panels + weigh + a * d + 7 * h),
        };
        product(rounds, each) + (a as u64 + 1) * climb + gather
    }
}
