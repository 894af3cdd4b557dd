//! Sums over states to what is reported about every latent.

use crate::block::Block;
use crate::math::Real;
use crate::outside::Outside;
use crate::posterior::Sums;
use crate::slices::set;

/// Where results go, and what they come from. (H each)
pub(crate) struct Results<'x, T> {
    pub projection: &'x [T],
    pub activity: &'x mut [T],
    pub mean: &'x mut [T],
    pub variance: &'x mut [T],
}

/// What is known once all states are summed.
#[derive(Clone, Copy)]
pub(crate) struct Conclusion<T> {
    /// ln of the sum over all states.
    pub log_sum: T,
    /// The latent whose singleton is the most probable state, if it was not selected.
    pub best_outside: Option<u16>,
}

/// Adds the states outside the walk, whose log joints are relative to `base`, and tells the moments of all latents.
pub(crate) fn conclude<T: Real>(
    outside: &Outside<'_, T>,
    base: T,
    block: &Block<'_, T>,
    sums: &mut Sums<'_, '_, T>,
    results: Results<'_, T>,
) -> Conclusion<T> {
    let Results { projection, activity, mean, variance } = results;
    if outside.is_empty() {
        conclude_selected(block, sums, Results { projection, activity, mean, variance });
        return Conclusion { log_sum: sums.log_sum(), best_outside: None };
    }
    let best_outside = outside.add(activity, base, sums);
    outside.moments(projection, activity, mean, variance, sums.scale());
    selected(block, sums, activity, mean, variance);
    Conclusion { log_sum: sums.log_sum(), best_outside }
}

/// The same where no states are outside: latents that were not selected are off.
pub(crate) fn conclude_selected<T: Real>(
    block: &Block<'_, T>,
    sums: &mut Sums<'_, '_, T>,
    results: Results<'_, T>,
) {
    let Results { activity, mean, variance, .. } = results;
    if block.len() < activity.len() {
        for values in [&mut *activity, &mut *mean, &mut *variance] {
            values.fill(T::ZERO);
        }
    }
    selected(block, sums, activity, mean, variance);
}

/// What sums say about the latents that were selected.
fn selected<T: Real>(
    block: &Block<'_, T>,
    sums: &mut Sums<'_, '_, T>,
    activity: &mut [T],
    mean: &mut [T],
    variance: &mut [T],
) {
    for (&latent, marginal) in block.order.iter().zip(sums.marginals()) {
        let h = usize::from(latent);
        set(activity, h, marginal.activity);
        set(mean, h, marginal.mean);
        set(variance, h, marginal.variance);
    }
    sums.finish_second();
}
