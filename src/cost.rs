//! The most work a sample can take, in multiply-adds, before any sample is seen.

use crate::math::{Real, binomial};
use crate::model::{Model, Noise, PANEL, Selection, Shape, States};
use crate::reference::{PASSES, ROUNDS};

/// Multiply-adds per sample, stage by stage. Bounds, not averages: states that cannot change the
/// result are left unfinished, and most samples need no refinement.
///
/// ```
/// let model = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap().model();
/// let operations = model.operations();
/// assert_eq!(operations.projection, 2 * 8 + 4);
/// assert!(operations.total() < 250);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Operations {
    /// Noise weighting, energy and dictionary.
    pub projection: u64,
    /// Scores of all latents.
    pub selection: u64,
    /// Block, walk, moments, singletons.
    pub posterior: u64,
    /// On top of these for a loud sample: finding a reference state, projecting again, evaluating states
    /// against it, and all of it again when the reference was a wrong guess.
    pub refinement: u64,
}

impl Operations {
    /// All of a sample that is not loud.
    pub const fn total(&self) -> u64 {
        self.projection.saturating_add(self.selection).saturating_add(self.posterior)
    }
}

impl<T: Real> Model<'_, T> {
    /// Bounds on the work per sample.
    pub fn operations(&self) -> Operations {
        let Shape { dims, latents, selected, max_active, singletons } = self.shape;
        let [d, h, s, a] = [dims, latents, selected, max_active].map(|n| n as u64);
        let panels = d * h.next_multiple_of(PANEL as u64);
        let weigh = match self.noise {
            Noise::Full(_) => d * (d + 1) + d,
            _ => 2 * d,
        };
        let scores = match self.selection {
            Selection::Singleton => 6 * h,
            Selection::Independent { .. } => 3 * panels + if singletons { 6 * h } else { h },
        };
        let block = match (self.gram, self.noise) {
            (Some(_), _) => 2 * s,
            (None, Noise::Diagonal(_)) => s * (s - 1) * d,
            (None, _) => s * (s - 1) / 2 * (d + 1),
        };
        let mut walk = 0u64;
        let mut against_reference = 0u64;
        for k in 1..=a {
            let states = binomial(s, k);
            let each = match self.states {
                // what its parent leaves of it 3, gain 5, determinants and weight 3, sums 9
                States::Grown => 20,
                // L^-1 v twice, L^-T t, Lambda's diagonal; expansion point; slab; sums
                States::Table(table) => {
                    let slab = if table.full_slab { k * k + k } else { 2 * k };
                    2 * k * (k + 1) + 2 * (k * k + 3 * k + slab) + 4 * k
                }
            };
            walk = walk.saturating_add(states.saturating_mul(each));
            if let States::Grown = self.states {
                // Elimination and back-substitution touch the n latents after the last one, C(s, k + 1)
                // summed over the states with k on, and their pairs where children have children.
                let (after, pairs) = (binomial(s, k + 1), binomial(s, k + 2));
                let deep = if k + 1 < a {
                    after.saturating_mul(5).saturating_add(pairs.saturating_mul(3))
                } else {
                    0
                };
                walk =
                    walk.saturating_add(if k < a { after.saturating_mul(3) } else { 0 }).saturating_add(deep);
                // One walk for each subset of the reference's members, begun with an elimination.
                against_reference =
                    against_reference.saturating_add(binomial(a, k).saturating_mul(k * (s * s + 8 * s)));
            } else {
                against_reference =
                    against_reference.saturating_add(states.saturating_mul(2 * (a * a + k * a)));
            }
        }
        // Finding what is on in every state: a factor of S latents, its inverse's diagonal, losses.
        let core = if let States::Grown = self.states { s * s * s / 2 + 5 * s * s + a * a * a } else { 0 };
        let outside = if singletons { 8 * (h - s) } else { 0 };
        let search = a * (s * (a + 8) + a * a);
        let round = search + core + 25 * a * d + weigh + s * d;
        let passes = PASSES as u64;
        let again = walk.saturating_mul(passes - 1).saturating_add(against_reference.saturating_mul(passes));
        Operations {
            projection: panels + weigh,
            selection: scores,
            posterior: walk.saturating_add(block + core + outside + 6 * s),
            refinement: again.saturating_add(passes * ROUNDS as u64 * round),
        }
    }
}
