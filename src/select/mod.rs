//! Preselection for the papers' sets of states: a score for each latent alone, and the best of them.
//!
//! Adaptive states choose latents given those that are on already: see [`crate::states::reference`]. Equal scores go to the
//! lower latent.

pub(crate) mod scores;

use crate::capacity::MAX_SELECTED;
use crate::counts::Count;
use heapless::Vec;

/// The `count` best latents, best first. `best` is scratch for their scores (`count` long).
pub(crate) fn top<T: Copy + PartialOrd>(
    scores: &[T],
    count: usize,
    best: &mut [T],
    selected: &mut Vec<u16, MAX_SELECTED>,
) {
    Count::Ranked.add(scores.len());
    selected.clear();
    for (latent, &score) in scores.iter().enumerate() {
        if selected.len() < count {
            let _ = selected.push(0); // within the capacity: the model was checked
        } else if !best.get(count.wrapping_sub(1)).is_some_and(|&least| score > least) {
            continue;
        }
        let Some(best) = best.get_mut(..selected.len()) else { return };
        rise(best, selected, score, latent as u16);
    }
}

/// Inserts a score into a descending list, in place of the last: it moves up past those that are lower.
#[inline(always)]
pub(crate) fn rise<T: Copy + PartialOrd, I: Copy>(scores: &mut [T], items: &mut [I], score: T, item: I) {
    let mut places = scores.iter_mut().zip(items).rev();
    let Some(mut place) = places.next() else { return };
    for higher in places {
        if !(score > *higher.0) {
            break;
        }
        Count::Moves.add(1);
        (*place.0, *place.1) = (*higher.0, *higher.1);
        place = higher;
    }
    (*place.0, *place.1) = (score, item);
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
