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
    let mut best = Best::new(count, T::default(), best, selected);
    for (latent, &score) in scores.iter().enumerate() {
        if best.has_room() || score > best.least {
            best.insert(latent, score);
        }
    }
}

/// The best latents so far, best first, and their scores.
pub(crate) struct Best<'x, T> {
    count: usize,
    /// What a newcomer must be above.
    least: T,
    scores: &'x mut [T],
    latents: &'x mut Vec<u16, MAX_SELECTED>,
}

impl<'x, T: Copy + PartialOrd> Best<'x, T> {
    /// None yet; at most `count`, all of them above `least`.
    pub fn new(count: usize, least: T, scores: &'x mut [T], latents: &'x mut Vec<u16, MAX_SELECTED>) -> Self {
        latents.clear();
        Self { count, least, scores, latents }
    }

    fn has_room(&self) -> bool {
        self.latents.len() < self.count
    }

    /// A latent, if it is better than the least; what is no number is not.
    #[inline(always)]
    pub fn offer(&mut self, latent: usize, score: T) {
        if score > self.least {
            self.insert(latent, score);
        }
    }

    /// The newcomer takes the last place, and goes up past those that are lower.
    #[inline(always)]
    fn insert(&mut self, latent: usize, score: T) {
        if self.has_room() {
            let _ = self.latents.push(0); // within the capacity: the model was checked
        }
        let Some(scores) = self.scores.get_mut(..self.latents.len()) else { return };
        let mut places = scores.iter_mut().zip(self.latents.iter_mut()).rev();
        let Some(mut place) = places.next() else { return };
        for higher in places {
            if !(score > *higher.0) {
                break;
            }
            Count::Moves.add(1);
            (*place.0, *place.1) = (*higher.0, *higher.1);
            place = higher;
        }
        (*place.0, *place.1) = (score, latent as u16);
        if self.latents.len() == self.count {
            self.least = scores.last().copied().unwrap_or(score);
        }
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
