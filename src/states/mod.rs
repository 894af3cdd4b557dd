//! States: which latents are on, and which of them are looked at.
//!
//! | module | |
//! |---|---|
//! | [`tableau`] | one state of the candidates; all states that differ in one latent; flips |
//! | [`reference`] | the greedy reference of a sample, and the candidates around it |
//! | [`search`] | adaptive states: best first from a reference that no flip improves |
//! | [`subsets`] | the papers' sets: all subsets of at most gamma, one after the other on the same tableau |
//! | [`table`] | the same with matrices computed beforehand, for any slab |
//!
//! **Why adaptive.** The papers' sets are centred on "all off", and their H' latents come from scores that each latent gets
//! alone; latents that others hide are never looked at. Any set of states gives a lower bound of the likelihood, so a
//! larger evidence *is* a better set. `host-trainer/experiments/RESULTS.md` has figures for both.

pub(crate) mod reference;
pub(crate) mod search;
pub(crate) mod subsets;
pub(crate) mod table;
pub(crate) mod tableau;
