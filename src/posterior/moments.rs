//! Sums over states: adding to them, and what they say in the end.

use super::{Moments, Sums};
use crate::arena::SumMemory;
use crate::features::DETAIL;
use crate::grown::{Pair, Total};
use crate::math::Real;
use crate::slices::{at, lower_row, set, span_mut};

/// What the states say about one selected latent.
pub(crate) struct Marginal<T> {
    pub activity: T,
    pub mean: T,
    pub variance: T,
}

impl<T: Real> Sums<'_, '_, T> {
    /// Takes the sums over all states with exactly `members` of the reference on: by position, with the
    /// members' coefficients about x0; see [`crate::grown`] for the sums of `latents` and of
    /// their `pairs`.
    pub fn collect(&mut self, members: &[u16], mass: T, latents: &[Total<T>], pairs: &[Pair<T>]) {
        let s = self.block.len();
        self.total += mass;
        self.add_off(self.block.missing(members), mass);
        let memory = &mut self.memory;
        let totals = memory.on.iter_mut().zip(memory.first.iter_mut()).zip(memory.square.iter_mut());
        for (((on, first), square), latent) in totals.zip(latents) {
            *on += latent[0];
            *first += latent[1];
            *square += latent[2];
        }
        if !self.has_second() {
            return;
        }
        // About zero again: <x x'> = <d d'> + x0 <d'> + x0' <d> + x0 x0' with d = x - x0.
        let x0 = |p: usize| if members.contains(&(p as u16)) { at(self.block.reference, p) } else { T::ZERO };
        let mut pairs = pairs.iter();
        for (p, latent_p) in latents.iter().enumerate() {
            let x0_p = x0(p);
            for (q, latent_q) in latents.iter().enumerate().skip(p) {
                let x0_q = x0(q);
                let both_on = if x0_p != T::ZERO && x0_q != T::ZERO { mass } else { T::ZERO };
                let about = if p == q { latent_p[2] } else { pairs.next().map_or(T::ZERO, |pair| pair[1]) };
                let value = about + x0_p * latent_q[1] + x0_q * latent_p[1] + x0_p * x0_q * both_on;
                for place in [p * s + q, q * s + p].into_iter().take(if p == q { 1 } else { 2 }) {
                    set(self.memory.second, place, at(self.memory.second, place) + value);
                }
            }
        }
    }

    /// Adds the states in which position `p` is switched and one of those after it too, whose weights are `later`: see
    /// [`crate::switched`].
    pub fn add_pairs(&mut self, p: usize, later: &[T]) {
        if !self.has_second() {
            return;
        }
        let row = p * self.block.len() + p + 1;
        for (sum, &weight) in span_mut(self.memory.second, row, later.len()).iter_mut().zip(later) {
            *sum += weight;
        }
    }

    /// Takes the sums over all states of weights in which each position is `switched`, and in which none has to be. With
    /// d for switched, a member of the reference is on where it is not: s = 1 - d.
    pub fn collect_switched(&mut self, switched: &[T], mass: T) {
        let (s, members) = (self.block.len(), self.block.members.len());
        self.total += mass;
        for (p, &switched) in switched.iter().enumerate() {
            let is_member = p < members;
            set(self.memory.on, p, if is_member { mass - switched } else { switched });
            set(self.memory.off, p, if is_member { switched } else { T::ZERO });
        }
        if !self.has_second() {
            return;
        }
        for (p, &switched_p) in switched.iter().enumerate() {
            set(self.memory.second, p * s + p, at(self.memory.on, p));
            for (q, &switched_q) in switched.iter().enumerate().skip(p + 1) {
                let both = at(self.memory.second, p * s + q);
                let value = match (p < members, q < members) {
                    (false, _) => both,
                    (true, false) => switched_q - both,
                    (true, true) => mass - switched_p - switched_q + both,
                };
                set(self.memory.second, p * s + q, value);
                set(self.memory.second, q * s + p, value);
            }
        }
    }

    /// Whether products of latents are asked for.
    pub fn has_second(&self) -> bool {
        DETAIL && !self.memory.second.is_empty()
    }

    /// A draw counts.
    pub fn count_draw(&mut self) {
        self.total += T::ONE;
    }

    /// Adds one latent of a draw, or its conditional: the probabilities that it is on and off, its value about the
    /// reference where it is on, and the square of that.
    pub fn add_latent(&mut self, p: usize, [on, off]: [T; 2], first: T, square: T) {
        let SumMemory { on: on_sum, off: off_sum, first: first_sum, square: square_sum, .. } =
            &mut self.memory;
        for (sums, value) in [(on_sum, on), (off_sum, off), (first_sum, first), (square_sum, square)] {
            if let Some(sum) = sums.get_mut(p) {
                *sum += value;
            }
        }
    }

    /// Adds the products of a draw's values, most of which are zero.
    pub fn add_products(&mut self, values: &[T]) {
        let rows = self.memory.second.chunks_exact_mut(values.len().max(1));
        for (row, &x) in rows.zip(values) {
            if x != T::ZERO {
                row.iter_mut().zip(values).for_each(|(sum, &other)| *sum += x * other);
            }
        }
    }

    /// Adds one state with its moments.
    pub fn add_state(&mut self, path: &[u16], weight: T, moments: Moments<'_, T>) {
        self.total += weight;
        for ((&p, &kappa), &lambda) in path.iter().zip(moments.mean).zip(moments.variance) {
            let p = usize::from(p);
            let away = kappa - at(self.block.reference, p);
            let add = |sums: &mut [T], value: T| set(sums, p, at(sums, p) + weight * value);
            add(self.memory.on, T::ONE);
            add(self.memory.first, away);
            add(self.memory.square, lambda + away * away);
        }
        self.add_off(self.block.missing(path), weight);
        if self.has_second() {
            self.add_second(path, weight, moments.mean, moments.covariance);
        }
        if DETAIL && !self.memory.pull.is_empty() {
            self.add_pull(path, weight, moments);
        }
    }

    /// Moments of the latents by position, from sums over the states in which they are on, taken
    /// about the reference coefficient c so that nothing large cancels: with a = `<s>`, m and q the
    /// mean of x - c and of its square given on, var = a (q - m^2) + a (1 - a) (c + m)^2.
    pub fn marginals(&self) -> impl Iterator<Item = Marginal<T>> + '_ {
        let scale = self.scale();
        let SumMemory { on, off, first, square, .. } = &self.memory;
        on.iter().zip(&*self.block.reference).enumerate().map(move |(p, (&on, &reference))| {
            let activity = on * scale;
            let (first, square) = (at(first, p) * scale, at(square, p) * scale);
            let mean = activity * reference + first;
            if !(activity > T::ZERO) {
                return Marginal { activity, mean, variance: T::ZERO };
            }
            // With a loud latent 1 - a must be summed, not subtracted: c^2 may be 1e8 times the variance.
            let is_member = self.block.members.iter().any(|&m| usize::from(m) == p);
            let off = if is_member { at(off, p) * scale } else { T::ONE - activity };
            let within = (square - first * (first / activity)).max(T::ZERO);
            Marginal { activity, mean, variance: within + mean * (mean / activity) * off.max(T::ZERO) }
        })
    }

    /// Turns the sums of second moments into `<(s.z)(s.z)^T>`, by position.
    pub fn finish_second(&mut self) {
        if !self.has_second() {
            return;
        }
        let scale = self.scale();
        let SumMemory { second, pull, pull_second, .. } = &mut self.memory;
        for sums in [second, pull, pull_second] {
            sums.iter_mut().for_each(|sum| *sum *= scale);
        }
    }

    /// The reference's members in `mask` are off in a state of this weight.
    pub(super) fn add_off(&mut self, mask: u32, weight: T) {
        if self.block.members.is_empty() {
            return;
        }
        for m in self.block.members_in(mask) {
            set(self.memory.off, m, at(self.memory.off, m) + weight);
        }
    }

    /// q (Lambda + kappa kappa^T), both triangles.
    fn add_second(&mut self, path: &[u16], weight: T, mean: &[T], covariance: &[T]) {
        let s = self.block.len();
        for (i, (&p, &kappa)) in path.iter().zip(mean).enumerate() {
            for ((&q, &other), &lambda) in path.iter().zip(mean).zip(lower_row(covariance, i)) {
                let (p, q) = (usize::from(p), usize::from(q));
                let value = weight * (lambda + kappa * other);
                for place in [p * s + q, q * s + p].into_iter().take(if p == q { 1 } else { 2 }) {
                    set(self.memory.second, place, at(self.memory.second, place) + value);
                }
            }
        }
    }

    /// q g and q (g g^T - G + G Lambda G), which is g g^T - W_A^T C^-1 W_A; g = b_A - G_AA kappa, where b sees the residual
    /// of the reference's members that are on.
    fn add_pull(&mut self, path: &[u16], weight: T, moments: Moments<'_, T>) {
        let (s, k) = (self.block.len(), path.len());
        let missing = self.block.missing(path);
        let SumMemory { pull, pull_second, pull_of_state, solved, .. } = &mut self.memory;
        let states = path.iter().zip(pull_of_state.iter_mut()).zip(solved.chunks_exact_mut(k.max(1)));
        for ((&p, g), solved) in states {
            let p = usize::from(p);
            let gram = self.block.gram_row(p);
            *g = self.block.b_without(p, missing);
            for ((&q, &kappa), entry) in path.iter().zip(moments.mean).zip(solved) {
                let q = usize::from(q);
                *g -= at(gram, q) * (kappa - at(self.block.reference, q));
                // (G Lambda)_pq
                *entry = T::ZERO;
                let column = path.iter().position(|&other| usize::from(other) == q).unwrap_or_default();
                for (i, &other) in path.iter().enumerate() {
                    let (high, low) = if i >= column { (i, column) } else { (column, i) };
                    *entry += at(gram, usize::from(other)) * at(lower_row(moments.covariance, high), low);
                }
            }
            set(pull, p, at(pull, p) + weight * *g);
        }
        for ((&p, &g), row) in path.iter().zip(pull_of_state.iter()).zip(solved.chunks_exact(k.max(1))) {
            for (&q, &other) in path.iter().zip(pull_of_state.iter()) {
                let (p, q) = (usize::from(p), usize::from(q));
                let gram = self.block.gram_row(q);
                let mut product = g * other - at(gram, p);
                for (&entry, &l) in row.iter().zip(path) {
                    product += entry * at(gram, usize::from(l));
                }
                set(pull_second, p * s + q, at(pull_second, p * s + q) + weight * product);
            }
        }
    }
}
