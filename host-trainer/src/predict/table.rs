//! Weights of counts, written by `tests/cost --fit`.

use super::Weights;
#[allow(unused_imports)]
use spikelet::Kind;

pub(super) const WEIGHTS: [Weights; 0] = [];
