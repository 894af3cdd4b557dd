//! The selected latents as a small problem of their own: from here on, D and H are gone.

use crate::arena::BlockMemory;
use crate::capacity::{MAX_REFERENCE, MAX_SELECTED};
use crate::math::Real;
use crate::model::{Dictionary, Model, Noise, float_columns};
use crate::slices::{at, exchange, row, set, span, triangle};
use heapless::Vec;

/// Everything the states of one sample need, by *position* (0..H') instead of by latent.
pub(crate) struct Block<'m, T> {
    /// Position -> latent.
    pub order: &'m mut Vec<u16, MAX_SELECTED>,
    /// G of the selected latents. (S x S)
    pub gram: &'m mut [T],
    /// W^T Sigma^-1 r with r what the reference leaves of the sample. (S)
    pub b: &'m mut [T],
    /// mu_h, K_h = 1 / psi_h^2, l_h, K mu, sqrt(K): together, since every state needs them together. (S)
    pub slab: &'m mut [[T; 5]],
    /// mu K / (G + K): the coefficient of a latent that is on in a sample that is silent about it. (S)
    pub resting: &'m mut [T],
    /// Coefficients x0 of the reference state; zero at positions that are not in it. (S)
    pub reference: &'m mut [T],
    /// Positions in the reference state. Empty: log joints are relative to the empty state.
    pub members: Vec<u16, MAX_REFERENCE>,
}

impl<'m, T: Real> Block<'m, T> {
    /// Gathers the latents of `order`; (H')^2 loads, or (H')^2/2 D multiply-adds without a stored G. Without a slab
    /// a coefficient is 1, in the reference as well.
    pub fn gather(
        model: &Model<'_, T>,
        order: &'m mut Vec<u16, MAX_SELECTED>,
        projection: &[T],
        memory: BlockMemory<'m, T>,
    ) -> Self {
        let BlockMemory { gram, b, slab, resting, reference } = memory;
        let has_slab = model.shape.kind.has_slab();
        for (p, &latent) in order.iter().enumerate() {
            let h = usize::from(latent);
            set(b, p, at(projection, h));
            if has_slab {
                let (mean, precision) = (at(model.slab_mean, h), at(model.slab_precision, h));
                let logit = at(model.prior_logit, h);
                set(slab, p, [mean, precision, logit, precision * mean, precision.sqrt()]);
                set(resting, p, mean * (precision / (at(model.gram_diagonal, h) + precision)));
            }
        }
        // Maximal causes have no products of latents.
        if !gram.is_empty() {
            gather_gram(model, order, gram);
        }
        reference.fill(if has_slab { T::ZERO } else { T::ONE });
        Self { order, gram, b, slab, resting, reference, members: Vec::new() }
    }

    /// What an earlier one left in memory, without its members.
    pub fn restore(order: &'m mut Vec<u16, MAX_SELECTED>, memory: BlockMemory<'m, T>) -> Self {
        let BlockMemory { gram, b, slab, resting, reference } = memory;
        Self { order, gram, b, slab, resting, reference, members: Vec::new() }
    }

    /// Takes the b of another sample, of which there is no reference.
    pub fn see(&mut self, projection: &[T]) {
        self.reference.fill(T::ZERO);
        for (b, &latent) in self.b.iter_mut().zip(&*self.order) {
            *b = at(projection, usize::from(latent));
        }
    }

    /// H'.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// mu at position `p`.
    pub fn mean(&self, p: usize) -> T {
        row(self.slab, p)[0]
    }

    /// 1 / psi^2 at position `p`.
    pub fn precision(&self, p: usize) -> T {
        row(self.slab, p)[1]
    }

    /// G between position `p` and all positions.
    #[inline(always)]
    pub fn gram_row(&self, p: usize) -> &[T] {
        span(self.gram, p * self.order.len(), self.order.len())
    }

    /// Which members of the reference a state leaves out, one bit each.
    pub fn missing(&self, path: &[u16]) -> u32 {
        let mut mask = 0;
        for (bit, member) in self.members.iter().enumerate() {
            if !path.contains(member) {
                mask |= 1 << bit;
            }
        }
        mask
    }

    /// The members of the reference in `mask`.
    pub fn members_in(&self, mask: u32) -> impl Iterator<Item = usize> + '_ {
        let chosen = self.members.iter().enumerate().filter(move |(bit, _)| mask >> bit & 1 != 0);
        chosen.map(|(_, &member)| usize::from(member))
    }

    /// W_p^T Sigma^-1 of the residual once the `missing` members are taken out of the reference.
    pub fn b_without(&self, p: usize, missing: u32) -> T {
        let gram = self.gram_row(p);
        let mut b = at(self.b, p);
        for m in self.members_in(missing) {
            b += at(gram, m) * at(self.reference, m);
        }
        b
    }

    /// The change of -1/2 r^T Sigma^-1 r when the `missing` members are taken out of the reference.
    pub fn energy_without(&self, missing: u32) -> T {
        let mut change = T::ZERO;
        if self.members.is_empty() {
            return change;
        }
        for m in self.members_in(missing) {
            let mut pull = at(self.b, m);
            for other in self.members_in(missing) {
                pull += T::HALF * at(self.gram_row(m), other) * at(self.reference, other);
            }
            change -= at(self.reference, m) * pull;
        }
        change
    }

    /// Whether the reference serves the best state (`path`, with these coefficients): all of its members
    /// are on there, and no other latent is loud. The first fails when the greedy search went wrong, the
    /// second when latents that are nearly parallel share what one of them could explain.
    pub fn is_well_referred(&self, path: &[u16], values: &[T]) -> bool {
        let is_quiet = |(position, &value): (&u16, &T)| {
            self.members.contains(position) || !self.is_loud(usize::from(*position), value)
        };
        self.members.iter().all(|member| path.contains(member)) && path.iter().zip(values).all(is_quiet)
    }

    /// Whether a coefficient at position `p` is worth too many nats.
    pub fn is_loud(&self, p: usize, value: T) -> bool {
        T::HALF * value * value * (at(self.gram_row(p), p) + self.precision(p)) > T::REFINE_ABOVE
    }

    /// Whether the reference serves a state, `path` with these coefficients: its members are all on there, and no coefficient is
    /// loud about it.
    pub fn is_settled(&self, path: &[u16], values: &[T]) -> bool {
        let is_near = |(&position, &value): (&u16, &T)| {
            let p = usize::from(position);
            !self.is_loud(p, value - at(self.reference, p))
        };
        self.members.iter().all(|member| path.contains(member)) && path.iter().zip(values).all(is_near)
    }

    /// Makes the loud latents of a state the reference, with their coefficients there.
    pub fn refer_to_loud(&mut self, path: &[u16], values: &[T]) {
        self.members.clear();
        self.reference.fill(T::ZERO);
        for (&position, &value) in path.iter().zip(values) {
            let p = usize::from(position);
            if self.is_loud(p, value) && self.members.push(position).is_ok() {
                set(self.reference, p, value);
            }
        }
    }

    /// Makes the state that has `path` on, with these coefficients, the reference.
    pub fn refer_to(&mut self, path: &[u16], values: &[T]) {
        self.members.clear();
        self.reference.fill(T::ZERO);
        for (&position, &value) in path.iter().zip(values) {
            if self.members.push(position).is_ok() {
                set(self.reference, usize::from(position), value);
            }
        }
    }

    /// Makes these positions the reference's members, whatever it was.
    pub fn make_members(&mut self, positions: &[u16]) {
        self.members.clear();
        self.add_members(positions);
    }

    /// Makes these positions members of the reference, with the coefficient they have in it (zero if they were
    /// not); returns which members they are, one bit each.
    pub fn add_members(&mut self, positions: &[u16]) -> u32 {
        let mut mask = 0;
        for position in positions {
            let known = self.members.iter().position(|member| member == position);
            let bit = known.unwrap_or(self.members.len());
            if known.is_some() || self.members.push(*position).is_ok() {
                mask |= 1 << bit;
            }
        }
        mask
    }

    /// Renumbers positions so that the reference's members come first, in order.
    pub fn put_members_first(&mut self) {
        for place in 0..self.members.len() {
            let from = usize::from(self.members.get(place).copied().unwrap_or_default());
            self.exchange_positions(place, from);
            // Whoever stood at `place` now stands at `from`, members still to come included.
            for member in self.members.iter_mut() {
                if usize::from(*member) == place {
                    *member = from as u16;
                } else if usize::from(*member) == from {
                    *member = place as u16;
                }
            }
        }
    }

    fn exchange_positions(&mut self, i: usize, j: usize) {
        if i == j {
            return;
        }
        let s = self.order.len();
        exchange(self.order, i, j);
        exchange(self.slab, i, j);
        for values in [&mut *self.b, self.resting, self.reference] {
            exchange(values, i, j);
        }
        for p in 0..s {
            exchange(self.gram, i * s + p, j * s + p);
        }
        for p in 0..s {
            exchange(self.gram, p * s + i, p * s + j);
        }
    }
}

/// G of the latents of `order`, read or computed. (S x S)
fn gather_gram<T: Real>(model: &Model<'_, T>, order: &[u16], gram: &mut [T]) {
    match model.gram {
        Some(stored) => fill_gram(model, order, gram, |h, j| at(stored, triangle(h) + j)),
        None => fill_gram(model, order, gram, |h, j| gram_dot(model, h, j)),
    }
}

/// G_hj with h above j, read or computed.
pub(crate) fn gram_entry<T: Real>(model: &Model<'_, T>, h: usize, j: usize) -> T {
    match model.gram {
        Some(stored) => at(stored, triangle(h) + j),
        None => gram_dot(model, h, j),
    }
}

/// The same from G_hj with h above j.
#[inline(always)]
fn fill_gram<T: Real>(
    model: &Model<'_, T>,
    order: &[u16],
    gram: &mut [T],
    entry: impl Fn(usize, usize) -> T,
) {
    let s = order.len();
    for (p, &latent) in order.iter().enumerate() {
        let h = usize::from(latent);
        // Along row p, and down column p.
        let (mut along, mut down) = (p * s, p);
        for &other in span(order, 0, p) {
            let j = usize::from(other);
            let g = entry(h.max(j), h.min(j));
            set(gram, along, g);
            set(gram, down, g);
            (along, down) = (along + 1, down + s);
        }
        set(gram, along, at(model.gram_diagonal, h));
    }
}

/// W_h^T Sigma^-1 W_j.
fn gram_dot<T: Real>(model: &Model<'_, T>, h: usize, j: usize) -> T {
    let dims = model.shape.dims;
    match model.dictionary.known() {
        Dictionary::Float(packed) => product(&model.noise, float_columns(packed, dims, h, j)),
        Dictionary::Integer(integers) => match model.noise {
            Noise::Shared(precision) => integers.product(dims, h, j) * precision,
            _ => product(&model.noise, integers.column(dims, h).zip(integers.column(dims, j))),
        },
    }
}

/// Summed over dimensions in order.
#[inline(always)]
fn product<T: Real>(noise: &Noise<'_, T>, pairs: impl Iterator<Item = (T, T)>) -> T {
    let mut sum = T::ZERO;
    match *noise {
        Noise::Diagonal(precisions) => {
            for ((w, other), &precision) in pairs.zip(precisions) {
                sum += w * other * precision;
            }
            sum
        }
        Noise::Shared(precision) => {
            for (w, other) in pairs {
                sum += w * other;
            }
            sum * precision
        }
        // D^2 multiply-adds per entry: the model must store G instead, which its checks ensure.
        Noise::Full(_) => T::ZERO,
    }
}
