//! Numbers: the two precisions, the functions inference needs of them, random numbers, and slices that cannot panic.

mod exp;
pub mod math;
pub(crate) mod normal;
pub mod rng;
pub(crate) mod slices;
mod sqrt;
pub(crate) mod words;
