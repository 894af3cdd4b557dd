//! Conditionals where in every dimension the strongest latent counts: y_d ~ N(max_h x_h W_dh, sigma_d^2).
//!
//! The maxima over all other latents are recomputed for every conditional, from those that are on: D multiply-adds each. A latent
//! that is off counts as zero, so the maximum is at least zero unless all are on.
//!
//! ```text
//! log odds = l_h + sum_d a_d (m_d - M_d) (y_d - (m_d + M_d) / 2),   m_d = max(M_d, W_dh)      without a slab
//! ```
//!
//! and `pieces` with one.

use super::chain::{Given, Sampler};
use super::pieces::{Dim, Dims, Facts, Pieces, Slab};
use crate::counts::Count;
use crate::memory::{Border, Candidate, Link};
use crate::model::{Model, with_column};
use crate::numeric::math::Real;
use crate::numeric::rng::Rng;
use crate::numeric::slices::set;
use crate::states::tableau::Latents;

pub(super) struct Maximal<'x, T> {
    model: &'x Model<'x, T>,
    latents: &'x Latents,
    /// (n)
    candidates: &'x mut [Candidate<T>],
    sample: &'x [T],
    /// (n)
    links: &'x mut [Link<T>],
    /// M. (D)
    maxima: &'x mut [T],
    /// See [`Pieces`]. (D + 1)
    borders: &'x mut [Border<T>],
    /// Sum of the maxima of all states that count. (D)
    clean: &'x mut [T],
    count: usize,
    /// Of the last conditional, whose borders are still there.
    facts: Option<Facts<T>>,
}

/// The dimensions as a latent sees them that is not in the maxima. Full noise does not go with these kinds, which the model's
/// checks ensure.
struct Seen<'x, T> {
    model: &'x Model<'x, T>,
    latent: usize,
    sample: &'x [T],
    maxima: &'x [T],
}

impl<T: Real> Dims<T> for Seen<'_, T> {
    #[inline(never)]
    fn each(&self, visit: &mut dyn FnMut(Dim<T>)) {
        let data = self.sample.iter().zip(self.maxima);
        for (d, ((&y, &others), w)) in data.zip(self.model.column(self.latent)).enumerate() {
            visit(Dim { precision: self.model.precision(d), w, y, others });
        }
    }
}

impl<'x, T: Real> Maximal<'x, T> {
    /// With all latents off.
    #[allow(clippy::too_many_arguments)] // the parts of memory that it works in
    pub fn new(
        model: &'x Model<'x, T>,
        latents: &'x Latents,
        candidates: &'x mut [Candidate<T>],
        sample: &'x [T],
        links: &'x mut [Link<T>],
        maxima: &'x mut [T],
        borders: &'x mut [Border<T>],
        clean: &'x mut [T],
    ) -> Self {
        let mut maximal =
            Self { model, latents, candidates, sample, links, maxima, borders, clean, count: 0, facts: None };
        maximal.reset();
        maximal
    }

    fn index(&self, p: usize) -> usize {
        usize::from(self.latents.get(p).copied().unwrap_or_default())
    }

    fn candidate(&self, p: usize) -> Candidate<T> {
        self.candidates.get(p).copied().unwrap_or(Candidate::ZERO)
    }

    fn link(&self, p: usize) -> Link<T> {
        self.links.get(p).copied().unwrap_or(Link::ZERO)
    }

    fn is_on(&self, p: usize) -> bool {
        self.link(p).on > T::ZERO
    }

    /// What the latents that are on make of every dimension, all but `left_out`.
    fn maximise(&mut self, left_out: Option<usize>) {
        let is_in = |p: usize| Some(p) != left_out;
        let on = (0..self.latents.len()).filter(|&p| is_in(p) && self.is_on(p)).count();
        let all = self.model.shape.latents - usize::from(left_out.is_some());
        Count::Filled.add(self.maxima.len() + self.latents.len());
        self.maxima.fill(if on < all { T::ZERO } else { T::IMPOSSIBLE });
        for p in (0..self.latents.len()).filter(|&p| is_in(p)) {
            let Link { away: x, on: is_on, .. } = self.link(p);
            if is_on > T::ZERO {
                Count::ChainMaxima.add(self.maxima.len());
                with_column!(self.model, self.index(p), |column| {
                    for (maximum, w) in self.maxima.iter_mut().zip(column) {
                        *maximum = maximum.max(x * w);
                    }
                });
            }
        }
    }

    fn slab(&self, p: usize) -> Slab<T> {
        let Candidate { logit, mean, precision, .. } = self.candidate(p);
        Slab { logit, mean, precision }
    }

    /// The conditional of latent `p`, which has a slab.
    pub fn pieces(&mut self, p: usize) -> Pieces<'_, T> {
        self.maximise(Some(p));
        let slab = self.slab(p);
        let &mut Self { model, sample, .. } = self;
        let dims = Seen { model, latent: self.index(p), sample, maxima: self.maxima };
        Pieces::new(&dims, slab, self.borders)
    }
}

impl<T: Real> Sampler<T> for Maximal<'_, T> {
    fn order(&self) -> &[u16] {
        self.latents
    }

    fn tally(&mut self) -> &mut [Candidate<T>] {
        self.candidates
    }

    fn latents(&self) -> (&[Candidate<T>], &[Link<T>]) {
        (self.candidates, self.links)
    }

    fn has_slab(&self) -> bool {
        self.model.shape.kind.has_slab()
    }

    #[inline(never)]
    fn reset(&mut self) {
        self.links.fill(Link::ZERO);
        self.count = 0;
    }

    fn refresh(&mut self) {}

    fn count(&self) -> usize {
        self.count
    }

    fn given(&mut self, p: usize) -> Given<T> {
        if self.has_slab() {
            let facts = self.pieces(p).facts;
            self.facts = Some(facts);
            let (log_odds, mean, variance) = (facts.log_odds, facts.peak + facts.mean, facts.variance);
            return Given { log_odds, mean, variance };
        }
        Count::MaximalGivens.add(1);
        Count::GivenDims.add(self.sample.len());
        self.maximise(Some(p));
        let mut log_odds = self.candidate(p).logit;
        let (model, latent) = (self.model, self.index(p));
        let dims = Seen { model, latent, sample: self.sample, maxima: self.maxima };
        dims.each(&mut |dim| log_odds += dim.gain(T::ONE));
        Given { log_odds, mean: T::ONE, variance: T::ZERO }
    }

    fn draw(&mut self, _: usize, given: Given<T>, rng: &mut Rng) -> T {
        match self.facts {
            Some(facts) => Pieces::again(facts, self.borders).draw(rng),
            None => given.mean,
        }
    }

    fn mode(&mut self, _: usize, given: Given<T>) -> T {
        self.facts.map_or(given.mean, |facts| facts.peak)
    }

    fn set(&mut self, p: usize, away: Option<T>) {
        self.count = (self.count + usize::from(away.is_some())).saturating_sub(usize::from(self.is_on(p)));
        let on = if away.is_some() { T::ONE } else { T::ZERO };
        set(self.links, p, Link { away: away.unwrap_or(T::ZERO), on, ..Link::ZERO });
    }

    fn joint(&mut self) -> T {
        Count::JointDims.add(self.sample.len());
        self.maximise(None);
        let mut joint = T::ZERO;
        for (d, (&y, &m)) in self.sample.iter().zip(&*self.maxima).enumerate() {
            joint -= T::HALF * self.model.precision(d) * (y - m) * (y - m);
        }
        for p in 0..self.latents.len() {
            let Link { away: x, on: is_on, .. } = self.link(p);
            if !(is_on > T::ZERO) {
                continue;
            }
            joint += self.candidate(p).logit;
            if self.has_slab() {
                // Its bell where it makes the maximum: the slab integrated out as if nothing else could.
                let Slab { mean, precision, .. } = self.slab(p);
                Count::JointDims.add(self.sample.len());
                let mut bell = precision;
                let (model, latent) = (self.model, self.index(p));
                let dims = Seen { model, latent, sample: self.sample, maxima: self.maxima };
                dims.each(&mut |Dim { precision, w, others: maximum, .. }| {
                    if w > T::ZERO && !(maximum > x * w) {
                        bell += precision * w * w;
                    }
                });
                let away = x - mean;
                joint += T::HALF * ((precision / bell).ln() - precision * away * away);
            }
        }
        joint
    }

    fn keep(&mut self) {
        // Left there by the joint of this state.
        for (sum, &maximum) in self.clean.iter_mut().zip(self.maxima.iter()) {
            *sum += maximum;
        }
    }
}
