//! The part of the results that is not in the caller's memory.

use crate::capacity::{MAX_ACTIVE, MAX_SELECTED};
use crate::conclude::Conclusion;
use crate::features::has_slab;
use crate::map::to_latents;
use crate::math::Real;
use crate::model::Model;
use crate::select::singleton_of;
use crate::slices::set;
use heapless::Vec;

/// Some of the latents.
pub(crate) type Latents = Vec<u16, MAX_SELECTED>;

/// The part of the results that is not in the memory. Plain data: with the model and the memory it is
/// all the state there is, and it can be copied.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub(crate) selected: Latents,
    /// Empty unless there are results.
    pub(crate) order: Latents,
    /// The latents whose block and factors are in the memory, ascending; empty if there are none: see [`crate::kept`].
    pub(crate) kept: Latents,
    /// Whether these factors are those of [`crate::fixed`].
    pub(crate) are_fixed: bool,
    /// Whether the sample is in fixed point.
    pub(crate) is_fixed: bool,
    pub(crate) map: Vec<u16, MAX_ACTIVE>,
    /// Of the sample.
    pub(crate) energy: T,
    pub(crate) evidence: T,
    /// ln of the sum over states, relative to what the log joints are relative to.
    pub(crate) log_sum: T,
    /// Of the next sample: what its random numbers depend on, beside the seed.
    pub(crate) number: u64,
    /// Without a slab: how many of `order`, its first, the reference had on.
    pub(crate) members: u16,
    /// With kept factors: how often the best state was searched, and a reference found.
    pub(crate) rounds: [u8; 2],
}

impl<T: Real> Default for Found<T> {
    fn default() -> Self {
        let zero = T::ZERO;
        Self {
            selected: Vec::new(),
            order: Vec::new(),
            kept: Vec::new(),
            are_fixed: false,
            is_fixed: false,
            map: Vec::new(),
            energy: zero,
            evidence: zero,
            log_sum: zero,
            number: 0,
            members: 0,
            rounds: [0; 2],
        }
    }
}

impl<T: Real> Found<T> {
    /// Puts the selected latents in order, the worst first.
    pub(crate) fn order_worst_first(&mut self) {
        self.order.clear();
        for &latent in self.selected.iter().rev() {
            let _ = self.order.push(latent); // same capacity
        }
    }

    /// Puts the selected latents in order, ascending (H' is small), of `latents` in all.
    pub(crate) fn order_ascending(&mut self, latents: usize) {
        self.order.clear();
        if self.selected.len() == latents {
            for latent in 0..latents as u16 {
                let _ = self.order.push(latent); // same capacity
            }
            return;
        }
        for &latent in &self.selected {
            let mut carried = latent;
            for slot in self.order.iter_mut() {
                if carried < *slot {
                    core::mem::swap(slot, &mut carried);
                }
            }
            let _ = self.order.push(carried); // same capacity
        }
    }

    /// Takes the results of all states; `map` holds positions of the best one, `map_values` its coefficients.
    pub(crate) fn settle(
        &mut self,
        model: &Model<'_, T>,
        projection: &[T],
        map_values: &mut [T],
        energy: T,
        conclusion: Conclusion<T>,
    ) {
        self.log_sum = conclusion.log_sum;
        self.evidence = model.log_norm - T::HALF * energy + conclusion.log_sum;
        match conclusion.best_outside {
            Some(latent) => {
                self.map.clear();
                let _ = self.map.push(latent); // room for one: max_active is at least 1
                if has_slab(model.shape.kind) {
                    set(map_values, 0, singleton_of(model, projection, usize::from(latent)).mean);
                }
            }
            None => to_latents(&mut self.map, map_values, &self.order),
        }
    }
}
