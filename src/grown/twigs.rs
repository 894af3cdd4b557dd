//! The ends of the tree, where most states are: those with up to three latents on that the walk had not reached. They
//! are summed where they are met, without branches of their own.
//!
//! Below a state, i is added, then j, then k. What i leaves of the later latents is worked out in a list; what it leaves of a
//! pair only where that is needed, cross_jk - ratio_ij cross_ik. On the way up no sums are substituted back: in a state
//! with j and k, the coefficient of i depends on u = ratio_ij x_j + ratio_ik x_k alone, and x_j = tau_j - rho x_k + e with
//! rho = ratio_jk and e of variance 1 / pivot_j, so
//!
//! ```text
//! u = ratio_ij tau_j + d x_k + ratio_ij e      d = ratio_ik - ratio_ij rho
//! ```
//!
//! and the sums of u and u^2 over all j and k, W, E and F of [`super::branch`] with one latent below, need no more than those
//! of d x_k and of their squares.

use super::Grown;
use super::branch::{Added, Branch, Given, Pair, Step, Total};
use crate::math::Real;
use crate::posterior::Joint;
use crate::slices::span;

/// The latent i above the branch.
#[derive(Clone, Copy)]
struct Above<T> {
    /// Its coefficient, as long as nothing else is added, and the variance of that; zero if there is no such latent.
    tau: T,
    variance: T,
}

/// Sums over the states of a subtree: of weights, and of u and u^2 for the latent above.
#[derive(Clone, Copy)]
struct Sum<T> {
    mass: T,
    first: T,
    second: T,
}

/// What the kernel reads and writes of a branch.
struct Twigs<'a, T> {
    /// Given what is on; the last number is the cross with the latent above.
    given: &'a [Given<T>],
    totals: &'a mut [Total<T>],
    pairs: &'a mut [Pair<T>],
    /// Pairs with the latent above.
    own: &'a mut [Pair<T>],
    /// Whether somebody asks for the sums of pairs.
    has_pairs: bool,
}

impl<T: Real> Twigs<'_, T> {
    #[cold]
    #[inline(never)]
    fn rescale(&mut self, factor: T) {
        self.totals.as_flattened_mut().iter_mut().for_each(|sum| *sum *= factor);
        for pairs in [&mut *self.pairs, self.own] {
            pairs.iter_mut().for_each(|[_, second]| *second *= factor);
        }
    }
}

impl<T: Real> Grown<'_, '_, '_, T> {
    /// Whether sums of pairs are needed: for latents that are on already, or because they are asked for.
    fn has_pairs(&self) -> bool {
        !self.path.is_empty() || self.sums.has_second()
    }

    /// Adds the states with one more latent on, or with one or two (`is_deep`), to `branch`, whose state has this joint and
    /// weight. Returns the sum of all their weights.
    pub(super) fn twigs(
        &mut self,
        branch: &mut Branch<'_, T>,
        joint: Joint<T>,
        weight: T,
        is_deep: bool,
    ) -> T {
        let (anchor, has_pairs) = (self.sums.anchor(), self.has_pairs());
        let Branch { given, totals, pairs } = branch;
        let mut twigs = Twigs { given, totals, pairs, own: &mut [], has_pairs };
        let nothing = Above { tau: T::ZERO, variance: T::ZERO };
        let mass = self.seconds(&mut twigs, joint, nothing, is_deep).mass;
        self.kept_up(weight, anchor) + mass
    }

    /// The same with one, two or three more on. `below` is room for all but one of the latents.
    pub(super) fn thirds(
        &mut self,
        branch: &mut Branch<'_, T>,
        below: &mut [Given<T>],
        joint: Joint<T>,
        weight: T,
    ) -> T {
        let (end, has_pairs, mut mass) = (self.block.len(), self.has_pairs(), weight);
        // The most promising latents stand last.
        for after in 0..branch.len() {
            let i = end.wrapping_sub(after + 1);
            let (Some((own, rest)), Some(slab)) = (branch.split(after), self.block.slab.get(i)) else {
                break;
            };
            let Some(below) = below.get_mut(..after) else { break };
            let step = Step::new(own.given, slab, joint);
            step.leave(rest.given, own.pairs, below);
            let _ = self.path.push(i as u16); // max_active is within the capacity
            let before = self.sums.anchor();
            let alone = self.weigh(step.joint);
            let anchor = self.sums.anchor();
            let Branch { totals, pairs, .. } = rest;
            let mut twigs = Twigs { given: below, totals, pairs, own: own.pairs, has_pairs };
            if anchor != before {
                twigs.rescale(self.sums.since(before));
            }
            let above = Above { tau: step.tau, variance: step.variance };
            let sum = self.seconds(&mut twigs, step.joint, above, true);
            self.path.pop();
            let subtree = self.kept_up(alone, anchor) + sum.mass;
            if !(subtree <= T::ZERO) {
                step.add_moments(own.total, subtree, sum.first, sum.second);
            }
            mass = self.kept_up(mass, before) + subtree;
        }
        mass
    }

    /// A sum relative to an earlier anchor, relative to the present one.
    #[inline(always)]
    fn kept_up(&self, sum: T, anchor: T) -> T {
        if self.sums.anchor() != anchor { sum * self.sums.since(anchor) } else { sum }
    }

    /// Adds the states with a latent j of the branch on, and where `is_deep` those with a later one k as well.
    #[inline(never)]
    fn seconds(
        &mut self,
        twigs: &mut Twigs<'_, T>,
        joint: Joint<T>,
        above: Above<T>,
        is_deep: bool,
    ) -> Sum<T> {
        let (zero, n) = (T::ZERO, twigs.given.len());
        let start = self.block.len().wrapping_sub(n);
        let slabs = span(self.block.slab, start, n);
        let mut sum = Sum { mass: zero, first: zero, second: zero };
        let mut row = twigs.pairs.len();
        for after in 0..n {
            let j = n - after - 1;
            let (Some(latent), Some(slab)) = (twigs.given.get(j), slabs.get(j)) else { break };
            row = row.wrapping_sub(after);
            let step = Step::new(latent, slab, joint);
            let ratio = latent[3] * above.variance;
            if self.sums.is_too_high(step.joint.exponent) {
                sum = self.lift(step.joint, twigs, sum).1;
            }
            let mut mass = self.sums.weight(step.joint);
            if self.sums.is_best(mass) {
                self.sums.note_best(mass, step.joint, &self.path, &[start + j]);
            }
            // Sums over the later latents: rho x, rho^2 x^2, d x, d^2 x^2 and d rho x^2.
            let [mut ratio_first, mut ratio_second, mut first, mut second, mut mixed] = [zero; 5];
            let mut k = if is_deep { j + 1 } else { n };
            while let (Some(given), Some(slabs)) = (twigs.given.get(k..), slabs.get(k..))
                && let (Some(totals), Some(pairs)) =
                    (twigs.totals.get_mut(k..), twigs.pairs.get_mut(row + k - j - 1..))
                && !given.is_empty()
            {
                let mut too_high = None;
                let latents = given.iter().zip(totals).zip(pairs).zip(slabs);
                for (((&[left, seen, _, cross_i], total), pair), slab) in latents {
                    let cross = pair[0] - ratio * cross_i;
                    let (left, seen, rho) = step.leaves_of(left, seen, cross);
                    let leaf = Added::new(left, seen, slab);
                    let exponent = step.joint.exponent + leaf.gain;
                    if self.sums.is_negligible(exponent) {
                        k += 1;
                        continue;
                    }
                    let joint = Joint { exponent, scale: step.joint.scale * leaf.shrink(slab) };
                    if self.sums.is_too_high(exponent) {
                        too_high = Some(joint);
                        break;
                    }
                    let weight = self.sums.weight_in_range(joint);
                    if self.sums.is_best(weight) {
                        self.sums.note_best(weight, joint, &self.path, &[start + j, start + k]);
                    }
                    let value = leaf.coefficient(seen, slab);
                    let x = weight * value;
                    let square = weight * leaf.variance + x * value;
                    total[0] += weight;
                    total[1] += x;
                    total[2] += square;
                    let (pulled, d) = (rho * square, cross_i * above.variance - ratio * rho);
                    mass += weight;
                    ratio_first += rho * x;
                    ratio_second += rho * pulled;
                    first += d * x;
                    second += d * (d * square);
                    if twigs.has_pairs {
                        mixed += d * pulled;
                        pair[1] += step.tau * x - pulled;
                        if let Some([_, pair]) = twigs.own.get_mut(k) {
                            *pair += (above.tau - ratio * step.tau) * x - d * square;
                        }
                    }
                    k += 1;
                }
                let Some(joint) = too_high else { break };
                let factor;
                (factor, sum) = self.lift(joint, twigs, sum);
                mass *= factor;
                ratio_first *= factor;
                ratio_second *= factor;
                first *= factor;
                second *= factor;
                mixed *= factor;
            }
            if mass <= zero {
                continue;
            }
            // Of i: u = centre + d x_k + ratio e.
            let centre = ratio * step.tau;
            let spread = centre * centre + ratio * ratio * step.variance;
            sum.mass += mass;
            sum.first += mass * centre + first;
            sum.second += mass * spread + (centre + centre) * first + second;
            if let Some(total) = twigs.totals.get_mut(j) {
                step.add_moments(total, mass, ratio_first, ratio_second);
            }
            if twigs.has_pairs
                && let Some([_, pair]) = twigs.own.get_mut(j)
            {
                let value = mass * step.tau - ratio_first;
                *pair +=
                    (above.tau - centre) * value - step.tau * first + mixed - ratio * step.variance * mass;
            }
        }
        sum
    }

    /// Raises the anchor, and with it the sums that are under way. Returns the factor for those that are not here.
    #[cold]
    #[inline(never)]
    fn lift(&mut self, joint: Joint<T>, twigs: &mut Twigs<'_, T>, sum: Sum<T>) -> (T, Sum<T>) {
        let factor = self.sums.lift(joint);
        twigs.rescale(factor);
        let Sum { mass, first, second } = sum;
        (factor, Sum { mass: mass * factor, first: first * factor, second: second * factor })
    }
}
