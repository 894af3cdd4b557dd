#![doc = include_str!("../README.md")]
//!
//! # The way of a sample
//!
//! Each module knows only those before it:
//!
//! | module | in | out |
//! |---|---|---|
//! | [`blob`] | bytes in flash | a checked [`Model`] that borrows them |
//! | `project`, `kernel` | the sample y | u = Sigma^-1 y, its energy, b = W^T u |
//! | `select` | b | a score per latent, the H' best |
//! | `block` | the H' latents | their part of G, b and the prior: D and H are gone |
//! | `reference` | a loud sample | a few latents that explain most of it, and what they leave |
//! | `single` | a state | its log joint, by itself |
//! | `core_set` | the block | the latents that are on in every state of weight |
//! | `grown`, `table` | the block | all states, their log joints, their moments: two ways |
//! | `posterior` | log joints | weights and sums |
//! | `map` | the best state | its coefficients |
//! | `outside` | latents that were not selected | their singleton states |
//! | `conclude`, `found` | sums | what is reported |
//! | `kept` | scores | all of that where states are few, with factors of the sample before |
//! | `fixed` | samples | all of that in integers, for processors without floats |
//! | `slab` | scores | all of that, for spike-and-slab latents |
//! | `switched` | scores | the same for latents that are on or off: linear and maximal superposition |
//! | [`gibbs`] | the selected latents | the same by sampling, where states are too many or have no closed form |
//! | [`Inference`] | | all of it, for one sample after the other |
//! | [`mdct`] | blocks of samples | coefficients of a lapped transform, and back |
//! | [`stream`] | blocks of samples, of any length | one signal for each source |
//!
//! Beside them: [`math`] (precisions, exp, ln), `normal` (parts of the bell), [`rng`] (seeded random numbers), [`model`], [`frame`] (how data becomes points), [`groups`] (which latents are one source), `engine`, [`cost`] (bounds
//! on work), [`capacity`], and `factor` (a Cholesky factor that grows).
#![no_std]
// `!(x > y)` is meant as it stands: NaN must take the branch of what is refused.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

#[cfg(target_endian = "big")]
compile_error!("blobs are little-endian and read in place: big-endian targets are not supported");

mod bytes;
mod error;
mod exp;
pub mod math;
mod normal;
pub mod rng;
mod slices;
mod sqrt;

pub mod capacity;
pub mod frame;
pub mod groups;
pub mod model;

mod features;

pub mod blob;

#[doc(hidden)]
pub mod kernel;

mod arena;
mod engine;
mod project;
mod select;

mod block;
mod factor;
mod reference;

mod posterior;
mod states;

mod single;

mod core_set;

mod grown;
mod table;

mod map;

mod outside;

mod conclude;
mod found;

mod fixed;
mod kept;
mod slab;
mod switched;

pub mod gibbs;

pub mod cost;
mod inference;

#[cfg(feature = "stream")]
pub mod mdct;
#[cfg(feature = "stream")]
pub mod stream;

#[doc(hidden)]
pub mod doc;

pub use arena::{Detail, STATE_BASE, arena_len, gibbs_arena_len, gibbs_state_bytes, state_bytes};
pub use blob::{Aligned, Blob};
pub use engine::{Engine, Gibbs, Start};
pub use error::{BlobError, Error, ModelError};
pub use found::Found;
pub use inference::{Estimate, Inference};
pub use model::{Kind, Model, Shape};
#[cfg(feature = "stream")]
pub use stream::Stream;
