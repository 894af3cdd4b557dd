//! Fixed capacities. D and H are limited only by the memory given to inference; the lists of latents of a sample by these.

/// Largest H' of subsets, tables and sampling.
pub const MAX_SELECTED: usize = 64;
/// Most candidates of adaptive states: one bit each in a word.
pub const MAX_CANDIDATES: usize = 32;
/// Most latents on at once.
pub const MAX_ACTIVE: usize = 32;
/// Most expansions of a search.
pub const MAX_EXPANSIONS: usize = 1024;
