#![doc = include_str!("../README.md")]
//!
//! # The way of a sample
//!
//! Folders are stages, in the order data meets them; a stage builds on those above it:
//!
//! | stage | in | out |
//! |---|---|---|
//! | `numeric` | | the two precisions, exp, ln, random numbers, slices without panics |
//! | `kinds` | | what latents are and how they make a sample: one file for each kind of model |
//! | [`model`] | parameters | a checked [`Model`] |
//! | [`blob`] | bytes in flash | the same, borrowed from them |
//! | `memory` | the caller's memory | the arrays that all stages work in |
//! | `project` | the sample y | u = Sigma^-1 y, its energy, b = W^T u |
//! | `select` | b | scores, the best latents |
//! | `states` | b, candidates | the states that are looked at, by flips of a tableau |
//! | `posterior` | states | activities, means, variances, the best state, evidence |
//! | [`gibbs`] | the selected latents | the same by sampling |
//! | `fixed` | the sample | the same in integers from end to end |
//! | [`Inference`] | | one sample through all of it |
//! | [`stream`] | blocks of samples, of any length | one signal for each source |
//! | [`spatial`] | blocks of samples of spaced microphones | one signal for each source in a room |
//! | [`spectral`] | blocks of samples of one channel | one signal for each of its known sources |
//! | [`cost`] | a model | bounds on work |
#![no_std]
// `!(x > y)` is meant as it stands: NaN must take the branch of what is refused.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

#[cfg(target_endian = "big")]
compile_error!("blobs are little-endian and read in place: big-endian targets are not supported");

pub mod capacity;

#[doc(hidden)]
pub mod counts;
mod error;
mod features;

mod numeric;

mod kinds;

pub mod model;

pub mod blob;

mod engine;
mod memory;

#[doc(hidden)]
pub mod project;

mod select;

mod states;

mod posterior;
mod state;

pub mod gibbs;

mod fixed;

mod inference;

#[cfg(feature = "stream")]
pub mod stream;

#[cfg(feature = "spatial")]
pub mod spatial;

#[cfg(feature = "spectral")]
pub mod spectral;

pub mod cost;

pub mod guide;

#[doc(hidden)]
pub mod doc;

pub use blob::{Aligned, Blob};
pub use blob::{frame, groups};
pub use engine::{Engine, Gibbs, Start};
pub use error::{BlobError, Error, ModelError};
pub use features::Features;
pub use inference::{Estimate, Inference};
pub use kinds::{Combination, Kind, Spec};
pub use memory::{Detail, STATE_BASE, arena_len, gibbs_arena_len, gibbs_state_bytes, state_bytes};
pub use model::{Model, Shape};
pub use numeric::{math, rng};
pub use state::State;
#[cfg(any(feature = "spatial", feature = "spectral"))]
pub use stream::stft;
#[cfg(feature = "stream")]
pub use stream::{Stream, mdct};
#[cfg(feature = "spatial")]
pub use {spatial::SpatialModel, spatial::SpatialStream};
#[cfg(feature = "spectral")]
pub use {spectral::SpectralModel, spectral::SpectralStream};
