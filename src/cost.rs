//! The most work a sample can take, in multiply-adds, before any sample is seen.

use crate::capacity::MAX_REFERENCE;
use crate::engine::{Gibbs, Start};
use crate::features::{DEEP, has_slab, is_maximal, is_sampled};
use crate::gibbs::{CLIMBS, REFRESH};
use crate::kept::{MAX_ROUNDS, serves};
use crate::math::{Real, binomial};
use crate::model::{Kind, Model, Noise, PANEL, Selection, Shape, States};
use crate::reference::{PASSES, ROUNDS};

/// Multiply-adds per sample, stage by stage. Bounds, not averages: states that cannot change the
/// result are left unfinished, and most samples need no refinement.
///
/// ```
/// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
/// let operations = model.operations();
/// assert_eq!(operations.projection, 2 * 8 + 4);
/// assert!(operations.total() < 250);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Operations {
    /// Noise weighting, energy and dictionary.
    pub projection: u64,
    /// Scores of all latents.
    pub selection: u64,
    /// Block, walk, moments, singletons.
    pub posterior: u64,
    /// On top of these for a loud sample: finding a reference state, projecting again, evaluating states
    /// against it, and all of it again when the reference was a wrong guess.
    pub refinement: u64,
}

impl Operations {
    /// All of a sample that is not loud.
    pub const fn total(&self) -> u64 {
        self.projection.saturating_add(self.selection).saturating_add(self.posterior)
    }
}

impl<T: Real> Model<'_, T> {
    /// Bounds on the work per sample, by the engine that the kind has unless another is asked for.
    pub fn operations(&self) -> Operations {
        let Shape { kind, dims, latents, selected, singletons, .. } = self.shape;
        let [d, h, s] = [dims, latents, selected].map(|n| n as u64);
        if is_sampled(kind) {
            return self.gibbs_operations(&Gibbs::new(kind, Gibbs::SWEEPS));
        }
        let (walk, refinement) = match (has_slab(kind), is_maximal(kind)) {
            (true, _) => self.slab(),
            (false, false) => self.linear_walk(),
            // Singletons of a loud sample are computed like other states.
            (false, true) => (self.maximal_walk(), 3 * d * (h + s)),
        };
        let outside = if singletons { 8 * (h - s) } else { 0 };
        Operations {
            projection: self.project(),
            selection: self.scores(singletons),
            posterior: walk.saturating_add(self.block() + outside + 6 * s),
            refinement,
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
        let Shape { kind, selected, .. } = self.shape;
        let s = selected as u64;
        let sweep =
            if kind.is_maximal() { self.maximal_sweep(settings) } else { self.linear_sweep(settings) };
        let sweeps =
            u64::from(settings.chains).saturating_mul(u64::from(settings.sweeps) + 2 * u64::from(CLIMBS));
        // Every state that a chain looks at before it begins: less than a sweep, which has a joint too.
        let listed = if settings.start == Start::Best { self.shape.states() } else { 0 };
        let sweeps = sweeps.saturating_add(u64::from(settings.chains).saturating_mul(listed));
        let refinement = match kind.is_maximal() {
            true => 0,
            false => {
                let a = s.min(u64::from(settings.max_active)).min(MAX_REFERENCE as u64);
                let search = if kind.has_slab() { a * (s * (a + 8) + a * a) } else { 0 };
                let round =
                    search + 25 * a * self.shape.dims as u64 + self.weigh() + s * self.shape.dims as u64;
                PASSES as u64 * (ROUNDS as u64 * round + 2 * u64::from(CLIMBS) * sweep)
            }
        };
        Operations {
            projection: self.project(),
            selection: self.scores(false),
            posterior: sweep.saturating_mul(sweeps).saturating_add(self.block() + 6 * s),
            refinement,
        }
    }

    /// The dictionary, Sigma^-1 y and its energy.
    fn project(&self) -> u64 {
        self.shape.dims as u64 * self.shape.latents.next_multiple_of(PANEL) as u64 + self.weigh()
    }

    /// Scores of all latents, and of their singletons if these are states.
    fn scores(&self, singletons: bool) -> u64 {
        let h = self.shape.latents as u64;
        let panels = self.shape.dims as u64 * h.next_multiple_of(PANEL as u64);
        let alone = if self.shape.kind.has_slab() { 6 * h } else { h };
        let again = if singletons { alone } else { 0 };
        match self.selection {
            Selection::Singleton => alone,
            Selection::Independent { .. } => 3 * panels + h.max(again),
            Selection::Cosine { .. } => h + again,
            Selection::Bound => 2 * panels + h + again,
        }
    }

    /// G of the selected latents.
    fn block(&self) -> u64 {
        let [d, s] = [self.shape.dims, self.shape.selected].map(|n| n as u64);
        match (self.shape.kind, self.gram, self.noise) {
            (Kind::Mca | Kind::Ssmca, ..) => 0,
            (_, Some(_), _) => 2 * s,
            (_, None, Noise::Diagonal(_)) => s * (s - 1) * d,
            (_, None, _) => s * (s - 1) / 2 * (d + 1),
        }
    }

    /// One sweep over latents that add up.
    fn linear_sweep(&self, settings: &Gibbs) -> u64 {
        let s = self.shape.selected as u64;
        let a = s.min(u64::from(settings.max_active));
        // conditional 12, exponential 12, normal variate 16, residuals; residuals again now and then
        let draws = s * (40 + s) + s * s / u64::from(REFRESH);
        // the state's joint
        draws + if self.shape.kind.has_slab() { a * (a + 1) * (a + 5) / 3 } else { s }
    }

    /// One sweep over latents of which the strongest counts.
    fn maximal_sweep(&self, settings: &Gibbs) -> u64 {
        let [d, s] = [self.shape.dims, self.shape.selected].map(|n| n as u64);
        let a = s.min(u64::from(settings.max_active));
        let digits = u64::from(u64::BITS - d.leading_zeros());
        // sorting; two walks and the log odds 30; one or two pieces between two borders, each of two tails and an exponential,
        // or six exponentials
        let pieces = if self.shape.kind.has_slab() { (d + 1) * (10 * digits + 30 + 2 * 120) } else { 4 * d };
        s * (a * d + pieces + 40) + 3 * a * d + 4 * d
    }

    /// Sigma^-1 y and its energy.
    fn weigh(&self) -> u64 {
        let d = self.shape.dims as u64;
        if matches!(self.noise, Noise::Full(_)) { d * (d + 1) + d } else { 2 * d }
    }

    /// The reference subtracted from the sample, and the rest projected.
    fn leave(&self) -> u64 {
        let [d, s, a] = [self.shape.dims, self.shape.selected, self.shape.max_active].map(|n| n as u64);
        25 * a * d + self.weigh() + s * d
    }

    /// Spike-and-slab states, and what a loud sample takes on top.
    fn slab(&self) -> (u64, u64) {
        if !serves(self) {
            return self.slab_walk();
        }
        let (walk, refinement) = self.kept_walk();
        // Where no reference serves, everything is done again in the general way.
        let (general, more) = if DEEP { self.slab_walk() } else { (0, 0) };
        (walk, refinement.saturating_add(general).saturating_add(more))
    }

    /// The same for states whose factors are kept.
    fn kept_walk(&self) -> (u64, u64) {
        let [s, a] = [self.shape.selected, self.shape.max_active].map(|n| n as u64);
        let (mut walk, mut round) = (5 * s, self.leave() + 8 * s * a + 8 * a * a);
        for k in 1..=a {
            // factor 10, t, exponent and weight 5, sums
            walk += binomial(s, k) * (10 + k + 5 + 5 * k + 3);
            // t and exponent of the search; the same, coefficients and sums of the walk
            round += binomial(s, k) * ((k * (k + 1) / 2 + 2 * k + 2) + (k * (k + 5) + 8));
        }
        (walk, MAX_ROUNDS as u64 * round)
    }

    /// The same for the general walk.
    fn slab_walk(&self) -> (u64, u64) {
        let [s, a] = [self.shape.selected, self.shape.max_active].map(|n| n as u64);
        let mut walk = 0u64;
        let mut against_reference = 0u64;
        for k in 1..=a {
            let states = binomial(s, k);
            let each = match self.states {
                // what its parent leaves of it 4, gain 6, determinants and weight 3, sums 13
                States::Grown => 26,
                // L^-1 v twice, L^-T t, Lambda's diagonal; expansion point; slab; sums
                States::Table(table) => {
                    let slab = if table.full_slab { k * k + k } else { 2 * k };
                    2 * k * (k + 1) + 2 * (k * k + 3 * k + slab) + 4 * k
                }
            };
            walk = walk.saturating_add(states.saturating_mul(each));
            if let States::Grown = self.states {
                // Elimination touches the n latents after the last one, C(s, k + 1) summed over the states with k on,
                // if two more may be added, and with back-substitution their pairs if three may.
                let (after, pairs) = (binomial(s, k + 1), binomial(s, k + 2));
                let deep = if k + 2 < a {
                    after.saturating_mul(5).saturating_add(pairs.saturating_mul(3))
                } else {
                    0
                };
                let eliminated = if k + 1 < a { after.saturating_mul(3) } else { 0 };
                walk = walk.saturating_add(eliminated).saturating_add(deep);
                // One walk for each subset of the reference's members, begun with an elimination.
                against_reference =
                    against_reference.saturating_add(binomial(a, k).saturating_mul(k * (s * s + 8 * s)));
            } else {
                against_reference =
                    against_reference.saturating_add(states.saturating_mul(2 * (a * a + k * a)));
            }
        }
        // Finding what is on in every state: a factor of S latents, its inverse's diagonal, losses.
        let core = if let States::Grown = self.states { s * s * s / 2 + 5 * s * s + a * a * a } else { 0 };
        let search = a * (s * (a + 8) + a * a);
        let passes = PASSES as u64;
        let again = walk.saturating_mul(passes - 1).saturating_add(against_reference.saturating_mul(passes));
        let refinement = again.saturating_add(passes * ROUNDS as u64 * (search + core + self.leave()));
        (walk.saturating_add(core), refinement)
    }

    /// The same for binary states, added up.
    fn linear_walk(&self) -> (u64, u64) {
        let [s, a] = [self.shape.selected, self.shape.max_active].map(|n| n as u64);
        // The best state is guessed first.
        let climb = 2 * a * 2 * s;
        let (mut states, mut walk) = (1u64, climb);
        for k in 1..=a {
            // log joint, weight, two sums
            states = states.saturating_add(binomial(s, k));
            walk = walk.saturating_add(binomial(s, k).saturating_mul(6));
            if k < a {
                // Gains down and sums up, with their pairs, for the latents after the last one.
                walk = walk.saturating_add(binomial(s, k + 1).saturating_mul(3));
            }
        }
        // From a reference every state may have all latents after it.
        let from_reference = states.saturating_mul(6 + 3 * s);
        let again = (ROUNDS + PASSES - 1) as u64 * (climb + self.leave());
        (walk, from_reference.saturating_mul(PASSES as u64).saturating_add(again))
    }

    /// The same for maximal causes.
    fn maximal_walk(&self) -> u64 {
        let [d, s, a] = [self.shape.dims, self.shape.selected, self.shape.max_active].map(|n| n as u64);
        let mut walk = 3 * d;
        for k in 1..=a {
            let after = if k < a { binomial(s, k + 1).saturating_mul(2) } else { 0 };
            walk = walk.saturating_add(binomial(s, k).saturating_mul(3 * d + 6)).saturating_add(after);
        }
        walk
    }
}
