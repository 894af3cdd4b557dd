//! x
#![no_std]

#[cfg(target_endian = "big")]
compile_error!("blobs are little-endian and read in place: big-endian targets are not supported");

pub mod math;
mod slices;
pub mod capacity;
mod error;
mod bytes;
pub mod model;
mod arena;
mod project;
mod select;
mod factor;
mod block;
mod reference;
mod states;
mod grown;
mod table;
mod posterior;
mod inference;
pub mod blob;

pub use arena::{Detail, arena_len};
pub use blob::Blob;
pub use error::{Error, ModelError};
pub use inference::{Estimate, Found, Inference};
pub use model::{Model, Shape};
