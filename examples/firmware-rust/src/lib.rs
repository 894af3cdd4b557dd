//! What the example and the cost measurement share: a board, recordings in flash, a digest, streams.
#![no_std]

pub mod blocks;
pub mod board;
pub mod digest;
pub mod recording;
pub mod signals;
