//! One spike-and-slab state by itself, where there is no walk that leads to it.

use crate::block::Block;
use crate::factor::Factor;
use crate::math::Real;
use crate::posterior::Joint;
use crate::select::gain;
use crate::slices::{at, row, set};

/// The state that has these positions on, one latent eliminated after the other as in [`crate::grown`].
pub(crate) fn joint<T: Real>(
    block: &Block<'_, T>,
    path: &[u16],
    factor: &mut Factor<'_, T>,
    forward: &mut [T],
) -> Joint<T> {
    let missing = block.missing(path);
    let mut joint = Joint::new(block.energy_without(missing));
    for (k, position) in path.iter().enumerate() {
        let p = usize::from(*position);
        let [mean, precision, logit, pull, root] = row(block.slab, p);
        let gram = block.gram_row(p);
        let g = path.iter().take(k).map(|&other| at(gram, usize::from(other)));
        let left = factor.couple(k, g, at(gram, p), precision);
        let variance = at(factor.pivot_inv, k);
        let seen = block.b_without(p, missing) - factor.explained(k, forward);
        let (v, gained) = if block.members.contains(position) {
            let away = mean - at(block.reference, p);
            let v = seen + precision * away;
            (v, T::HALF * (v * (v * variance) - precision * away * away))
        } else {
            (seen + pull, gain(seen, mean, pull, left, variance))
        };
        set(forward, k, v);
        factor.settle(k);
        joint.exponent += logit + gained;
        joint.scale *= root * variance.sqrt();
        joint = joint.settled();
    }
    joint
}
