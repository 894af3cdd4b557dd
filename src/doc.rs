//! A model for the examples in the documentation.

use crate::blob::Aligned;

static BYTES: Aligned<{ include_bytes!("../tests/blobs/two_sources-v1.spk").len() }> =
    Aligned::new(include_bytes!("../tests/blobs/two_sources-v1.spk"));

/// Two sources on two sensors, one each: D = H = 2, pi = 0.1, unit slab, sigma^2 = 0.01.
pub static TWO_SOURCES: &[u8] = BYTES.bytes();
