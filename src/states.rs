//! States: which latents are on.

use crate::capacity::MAX_ACTIVE;
use heapless::Vec;

/// A set of active latents, by position (see [`crate::block`]), ascending.
pub(crate) type Path = Vec<u16, MAX_ACTIVE>;
