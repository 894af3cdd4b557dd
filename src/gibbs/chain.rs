//! Markov chains: sweeps, and the sums over them. The same for all kinds of models.

use super::start::{climb, list, scatter};
use super::tally::Tally;
use crate::counts::Count;
use crate::engine::{Gibbs, Start};
use crate::memory::{Candidate, Link};
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::numeric::slices::set;
use crate::states::tableau::Path;

/// Running sums are recomputed after this many sweeps, so that rounding errors do not accumulate.
pub(crate) const REFRESH: u32 = 32;

/// One latent given all others: on with these log odds, and then with these moments. Like all values of a chain relative to the
/// reference ([`Candidate::reference`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<T> {
    pub log_odds: T,
    pub mean: T,
    pub variance: T,
}

/// A draw that counts.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'d, T> {
    /// The selected latents.
    pub order: &'d [u16],
    /// Their values s.z in this draw, zero where they are off.
    pub values: &'d [T],
}

/// The state of a chain, and conditionals in it, by position.
pub(super) trait Sampler<T> {
    /// Position -> latent.
    fn order(&self) -> &[u16];
    /// Where sums over draws are kept, by position.
    fn tally(&mut self) -> &mut [Candidate<T>];
    /// Latents before the sample, and in the present state.
    fn latents(&self) -> (&[Candidate<T>], &[Link<T>]);
    fn has_slab(&self) -> bool;
    /// Back to the first state.
    fn reset(&mut self);
    /// Recomputes running sums.
    fn refresh(&mut self);
    /// Latents that are on.
    fn count(&self) -> usize;
    /// One latent given the present state of all others.
    fn given(&mut self, p: usize) -> Given<T>;
    /// A draw of its value if it is on. Right after [`Sampler::given`].
    fn draw(&mut self, p: usize, given: Given<T>, rng: &mut Rng) -> T;
    /// Its most probable value if it is on. Right after [`Sampler::given`].
    fn mode(&mut self, p: usize, given: Given<T>) -> T;
    /// Switches it off (`None`) or on with a value.
    fn set(&mut self, p: usize, away: Option<T>);
    /// Moves the values of latents that are on to where they are best together. What has no slab has no choice.
    fn settle(&mut self) {}
    /// ln p(y, s) of the state, relative to what all states share; slabs integrated out.
    fn joint(&mut self) -> T;
    /// The present state counts.
    fn keep(&mut self) {}
}

impl<T: Real> dyn Sampler<T> + '_ {
    fn link(&self, p: usize) -> Link<T> {
        self.latents().1.get(p).copied().unwrap_or(Link::ZERO)
    }

    fn candidate(&self, p: usize) -> Candidate<T> {
        self.latents().0.get(p).copied().unwrap_or(Candidate::ZERO)
    }

    pub fn is_on(&self, p: usize) -> bool {
        self.link(p).on > T::ZERO
    }

    /// The value itself.
    fn value(&self, p: usize) -> T {
        if self.is_on(p) { self.candidate(p).reference + self.link(p).away } else { T::ZERO }
    }

    /// Draws latent and value from the prior: `None` is off.
    pub fn prior(&self, p: usize, rng: &mut Rng) -> Option<T> {
        let Candidate { logit, mean, precision, reference, .. } = self.candidate(p);
        let [on, _] = odds(logit);
        if !(rng.unit::<T>() < on) {
            return None;
        }
        if !self.has_slab() {
            return Some(T::ONE - reference);
        }
        Some(mean - reference + rng.standard::<T>() / precision.sqrt())
    }
}

/// The best state so far: positions and values.
pub(super) struct Best<'x, T> {
    joint: Option<T>,
    path: &'x mut Path,
    values: &'x mut [T],
}

impl<'x, T: Real> Best<'x, T> {
    pub fn new(path: &'x mut Path, values: &'x mut [T]) -> Self {
        Self { joint: None, path, values }
    }

    fn note(&mut self, sampler: &mut dyn Sampler<T>) {
        let joint = sampler.joint();
        if self.joint.is_none_or(|best| joint > best) {
            self.joint = Some(joint);
            on(sampler, self.path, self.values);
        }
    }
}

/// The latents that are on, and their values.
pub(super) fn on<T: Real>(sampler: &dyn Sampler<T>, path: &mut Path, values: &mut [T]) {
    path.clear();
    for p in (0..sampler.order().len()).filter(|&p| sampler.is_on(p)) {
        set(values, path.len(), sampler.value(p));
        let _ = path.push(p as u16); // no more than may be on
    }
}

/// All chains of one sample.
pub(super) struct Chains<'x, 's, T> {
    pub settings: &'x Gibbs,
    /// gamma: most latents on in a state that [`Start::Best`] looks at.
    pub listed: usize,
    pub rng: &'x mut Rng,
    /// Scratch: the values of a draw. (S)
    pub values: &'x mut [T],
    pub sums: &'x mut Tally<'s, T>,
    pub best: Best<'x, T>,
    pub visit: &'x mut dyn FnMut(Draw<'_, T>),
}

impl<T: Real> Chains<'_, '_, T> {
    /// Returns the joint of the best state.
    #[inline(never)]
    pub fn run(mut self, sampler: &mut dyn Sampler<T>) -> T {
        let Gibbs { sweeps, burn_in, thinning, chains, .. } = *self.settings;
        for _ in 0..chains {
            self.start(sampler);
            let mut until_kept = burn_in;
            for sweep in 0..sweeps {
                if sweep % REFRESH == REFRESH - 1 {
                    sampler.refresh();
                }
                let is_kept = until_kept == 0;
                until_kept = (if is_kept { thinning } else { until_kept }).saturating_sub(1);
                Count::ChainSweeps.add(1);
                self.sweep(sampler, is_kept);
                self.best.note(sampler);
                if is_kept {
                    self.keep(sampler);
                }
            }
        }
        self.best.joint.unwrap_or(T::ZERO)
    }

    fn max_active(&self) -> usize {
        usize::from(self.settings.max_active)
    }

    fn start(&mut self, sampler: &mut dyn Sampler<T>) {
        sampler.reset();
        let most = self.max_active();
        match self.settings.start {
            Start::Greedy => climb(sampler, most),
            Start::Best => list(sampler, most.min(self.listed)),
            Start::Random => scatter(sampler, most, self.rng),
        }
        self.best.note(sampler);
    }

    fn sweep(&mut self, sampler: &mut dyn Sampler<T>, is_kept: bool) {
        let is_averaged = is_kept && !self.sums.has_second();
        for p in 0..sampler.order().len() {
            Count::Drawn.add(1);
            let given = sampler.given(p);
            let others = sampler.count().saturating_sub(usize::from(sampler.is_on(p)));
            let [on, off] = if others < self.max_active() { odds(given.log_odds) } else { [T::ZERO, T::ONE] };
            // The smaller of the two has all its digits, and so has the random number near zero.
            let unit: T = self.rng.unit();
            let is_on = if on > off { !(unit < off) } else { unit < on };
            let away = is_on.then(|| sampler.draw(p, given, self.rng));
            sampler.set(p, away);
            if is_averaged {
                let Given { mean, variance, .. } = given;
                Tally::add_latent(
                    sampler.tally().get_mut(p),
                    [on, off],
                    on * mean,
                    on * (variance + mean * mean),
                );
            }
        }
    }

    fn keep(&mut self, sampler: &mut dyn Sampler<T>) {
        Count::Kept.add(sampler.order().len());
        sampler.keep();
        self.sums.count_draw();
        for p in 0..sampler.order().len() {
            set(self.values, p, sampler.value(p));
        }
        if self.sums.has_second() {
            for p in 0..sampler.order().len() {
                if sampler.is_on(p) {
                    let away = sampler.link(p).away;
                    Tally::add_latent(sampler.tally().get_mut(p), [T::ONE, T::ZERO], away, away * away);
                } else {
                    Tally::add_latent(sampler.tally().get_mut(p), [T::ZERO, T::ONE], T::ZERO, T::ZERO);
                }
            }
            self.sums.add_products(self.values);
        }
        (self.visit)(Draw { order: sampler.order(), values: self.values });
    }
}

/// Log odds to the probabilities of on and off, both with all their digits.
pub(super) fn odds<T: Real>(log_odds: T) -> [T; 2] {
    let flipped = if log_odds > T::ZERO { -log_odds } else { log_odds };
    let small = flipped.exp();
    let (small, large) = (small / (T::ONE + small), T::ONE / (T::ONE + small));
    if log_odds > T::ZERO { [large, small] } else { [small, large] }
}
