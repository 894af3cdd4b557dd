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
        plus(plus(self.projection, self.selection), self.posterior)
    }
}

/// Saturating arithmetic as functions: in line it would be half of this file's code.
#[inline(never)]
const fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

#[inline(never)]
const fn plus(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

impl<T: Real> Model<'_, T> {
    /// Bounds on the work per sample, by the engine that the kind has unless another is asked for.
    pub fn operations(&self) -> Operations {
        if self.shape.kind.is_sampled() {
            return self.gibbs_operations(&Gibbs::new(self.shape.kind, Gibbs::SWEEPS));
        }
        let n = self.shape.selected as u64;
        let (selection, posterior) = match self.shape.states {
            _ if self.shape.kind.is_mixture() => (self.scores(), self.mixture()),
            States::Adaptive { expansions } => self.adaptive(u64::from(expansions)),
            States::Subsets => (self.scores(), self.subsets()),
            States::Table => (self.scores(), self.tables()),
        };
        Operations {
            projection: self.project(),
            selection,
            posterior: plus(posterior, 6 * n),
            // Up to three times, and once for every loud flip of the search.
            refinement: if self.shape.kind.is_mixture() {
                0
            } else {
                (3 + self.shape.max_active as u64) * (self.refine() + self.climb())
            },
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
        let n = self.shape.selected as u64;
        let sweep = match self.shape.kind.is_maximal() {
            true => self.maximal_sweep(settings),
            false => self.linear_sweep(settings),
        };
        let sweeps = times(u64::from(settings.chains), u64::from(settings.sweeps) + 2 * u64::from(CLIMBS));
        // Every state that a chain looks at before it begins: less than a sweep, which has a joint too.
        let listed = if settings.start == Start::Best { self.shape.states() } else { 0 };
        let sweeps = plus(sweeps, times(u64::from(settings.chains), listed));
        Operations {
            projection: self.project(),
            selection: self.scores(),
            posterior: plus(times(sweep, sweeps), self.gather() + 6 * n),
            // A loud state is refined whenever it changes.
            refinement: if self.shape.kind.is_maximal() { 0 } else { times(sweeps, n * self.refine()) },
        }
    }

    /// The dictionary, Sigma^-1 y and its energy.
    fn project(&self) -> u64 {
        self.shape.dims as u64 * self.shape.latents.next_multiple_of(PANEL) as u64 + self.weigh()
    }

    /// Sigma^-1 y and its energy.
    #[inline(never)]
    fn weigh(&self) -> u64 {
        let d = self.shape.dims as u64;
        if matches!(self.noise, Noise::Full(_)) { d * (d + 1) + d } else { 2 * d }
    }

    /// Scores that each latent gets alone, and of their singletons if these are states.
    fn scores(&self) -> u64 {
        let h = self.shape.latents as u64;
        let panels = self.shape.dims as u64 * h.next_multiple_of(PANEL as u64);
        let alone = if self.shape.kind.has_slab() { 6 * h } else { h };
        let again = if self.shape.singletons { 9 * alone } else { 0 };
        match self.selection {
            Selection::Singleton => alone + again,
            Selection::Independent { .. } => 3 * panels + h + again,
            Selection::Cosine { .. } => h + again,
            Selection::Bound => 2 * panels + h + again,
            Selection::Learned { .. } => panels + again,
        }
    }

    /// The tableau of all candidates.
    fn gather(&self) -> u64 {
        let [d, n, a] = self.sizes();
        let entry = match (self.shape.kind.family(), self.gram, self.noise) {
            (Family::Maximal, ..) => return 0,
            (_, Some(_), _) => 1,
            (_, None, Noise::Diagonal(_)) => 2 * d,
            (_, None, _) => d + 1,
        };
        n * (n - 1) / 2 * (entry + a)
    }

    #[inline(never)]
    fn sizes(&self) -> [u64; 3] {
        [self.shape.dims, self.shape.selected, self.shape.max_active].map(|n| n as u64)
    }

    /// Distances of the selected components, exponentials of all that count.
    fn mixture(&self) -> u64 {
        let [d, n, _] = self.sizes();
        let residual = if matches!(self.noise, Noise::Full(_)) { d * (d + 3) / 2 } else { 3 * d };
        n * residual + 16 * self.shape.states() + 3 * self.shape.latents as u64
    }

    /// All flips of a state.
    fn evaluate(&self) -> u64 {
        let [d, n, _] = self.sizes();
        n * if self.shape.kind.is_maximal() { 4 * d } else { 20 }
    }

    /// One flip.
    fn flip(&self) -> u64 {
        let [d, n, a] = self.sizes();
        match self.shape.kind.family() {
            Family::Slab => n * n / 2 + 8 * n,
            Family::Binary => 2 * n,
            Family::Maximal => a * 3 * d,
        }
    }

    /// A climb that turns every latent on that may be, and one off again for each.
    fn climb(&self) -> u64 {
        (2 * self.sizes()[2] + 1) * (self.evaluate() + self.flip())
    }

    /// A residual in double words, projected on the candidates.
    fn refine(&self) -> u64 {
        let [d, n, a] = self.sizes();
        25 * a * d + self.weigh() + n * d + n * a
    }

    /// Reference and search.
    fn adaptive(&self, expansions: u64) -> (u64, u64) {
        let Shape { dims, latents, selected, max_active, kind, .. } = self.shape;
        let [d, h, a] = [dims, latents, max_active].map(|n| n as u64);
        let rounds = match (latents <= selected, self.gram.is_some() || kind.is_maximal()) {
            (true, _) => 0,
            (false, true) => a * (h * (7 + a) + if kind.is_maximal() { 3 * d * h } else { 0 }),
            (false, false) => ROUNDS as u64 * (self.project() + a * d + 7 * h),
        };
        let climbs = if latents <= selected { 1 } else { a + 1 };
        let moments = selected as u64 * (12 + 8 * a);
        let expansion = self.evaluate() + 16 * selected as u64 + moments + 3 * self.flip();
        (rounds + climbs * self.climb() + self.gather(), expansions * expansion)
    }

    /// The walk over subsets.
    fn subsets(&self) -> u64 {
        let [_, n, a] = self.sizes();
        let mut inner = 1u64;
        for k in 1..a {
            inner = plus(inner, binomial(n, k));
        }
        let each = self.evaluate() + n * (28 + 8 * a) + 2 * self.flip() + n * n / 2 + 9 * n;
        plus(times(inner, each), self.gather() + self.climb())
    }

    /// All states of a table.
    fn tables(&self) -> u64 {
        let [_, n, a] = self.sizes();
        let mut sum = self.gather() + self.climb();
        for k in 1..=a {
            let slab = if self.has_full_slab() { k * k + k } else { 2 * k };
            let each = 2 * k * (k + 1) + 2 * (k * k + 3 * k + slab) + 4 * k + k * a * (a + 2) + 6 * n;
            sum = plus(sum, times(binomial(n, k), each));
        }
        sum
    }

    /// One sweep over latents that add up.
    fn linear_sweep(&self, settings: &Gibbs) -> u64 {
        let n = self.shape.selected as u64;
        let a = n.min(u64::from(settings.max_active));
        // conditional 12, exponential 12, normal variate 16, residuals; the tableau, where latents are flipped; both recomputed from time to time
        n * (40 + n) + 2 * a * self.flip() + (n * n + self.gather()) / u64::from(REFRESH)
    }

    /// One sweep over latents of which the strongest counts.
    fn maximal_sweep(&self, settings: &Gibbs) -> u64 {
        let [d, n, _] = self.sizes();
        let a = n.min(u64::from(settings.max_active));
        let digits = u64::from(u64::BITS - d.leading_zeros());
        // sorting; two walks and the log odds 30; one or two pieces between two borders, each of two tails and an exponential,
        // or six exponentials
        let pieces = if self.shape.kind.has_slab() { (d + 1) * (10 * digits + 30 + 2 * 120) } else { 4 * d };
        n * (a * d + pieces + 40) + 3 * a * d + 4 * d
    }
}
