//! Desktop half of Spikelet: everything the `spikelet` command does that a microcontroller does not.
//!
//! Files come in through [`data`], results leave through [`files`], and whatever goes wrong is an [`Error`], which
//! knows its message and the exit status of the command. In between the inference is that of the core crate.
#![forbid(unsafe_code)]

pub mod blob;
pub mod cluster;
pub mod commands;
pub mod compare;
pub mod data;
pub mod delays;
pub mod error;
pub mod files;
pub mod gmm;
pub mod gp;
pub mod groups;
pub mod inveca;
mod linalg;
pub mod merge;
pub mod metrics;
pub mod parameters;
pub mod pictures;
pub mod predict;
pub mod prepare;
pub mod quantize;
pub mod spatial;
pub mod spectral;
pub mod streaming;
pub mod train;

pub use error::{Error, Result};
