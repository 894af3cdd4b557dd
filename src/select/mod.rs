//! Preselection for the papers' sets of states: a score for each latent alone, and the best of them.
//!
//! Adaptive states choose latents given those that are on already: see [`crate::states::reference`]. Equal scores go to the
//! lower latent.

pub(crate) mod scores;

use crate::capacity::MAX_SELECTED;
use crate::counts::Count;
use heapless::Vec;

/// The `count` best latents, best first. `best` is scratch for their scores (`count` long).
pub(crate) fn top<T: Copy + Default + PartialOrd>(
    scores: &[T],
    count: usize,
    best: &mut [T],
    selected: &mut Vec<u16, MAX_SELECTED>,
) {
    Count::Ranked.add(scores.len());
    selected.clear();
    let _ = selected.resize_default(count); // within the capacity: the model was checked
    let (mut found, mut least) = (0, T::default());
    for (latent, &score) in (0u16..).zip(scores) {
        if found < count {
            found += 1;
        } else if !(score > least) {
            continue;
        }
        let (Some(best), Some(selected)) = (best.get_mut(..found), selected.get_mut(..found)) else { return };
        // The newcomer takes the last place, and goes up past those that are lower.
        let mut places = best.iter_mut().zip(selected).rev();
        let Some(mut place) = places.next() else { return };
        for higher in places {
            if !(score > *higher.0) {
                break;
            }
            Count::Moves.add(1);
            (*place.0, *place.1) = (*higher.0, *higher.1);
            place = higher;
        }
        (*place.0, *place.1) = (score, latent);
        least = best.last().copied().unwrap_or(score);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_keeps_order_and_gives_ties_to_the_lower_latent() {
        let scores = [1.0, 5.0, 5.0, -2.0, 7.0, 5.0];
        let mut selected = Vec::new();
        top(&scores, 3, &mut [0.0; 3], &mut selected);
        assert_eq!(selected, [4, 1, 2]);
        top(&scores, 6, &mut [0.0; 6], &mut selected);
        assert_eq!(selected, [4, 1, 2, 5, 0, 3]);
    }
}
