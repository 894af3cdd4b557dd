//! Models and samples in flash, placed there by `build.rs`.

use core::ffi::CStr;
use spikelet::{Engine, Gibbs, Kind};

/// A model and the samples to run it on.
pub struct Recording {
    /// File name of the blob, without extension.
    pub name: &'static CStr,
    /// The blob, 8-byte aligned.
    pub blob: &'static [u8],
    samples: &'static [u8],
}

/// Forces the alignment that the library asks of a blob; `include_bytes!` alone gives none.
#[repr(C, align(8))]
struct Aligned<T>(T);

macro_rules! aligned {
    ($path:literal) => {{
        static FILE: &Aligned<[u8; include_bytes!($path).len()]> = &Aligned(*include_bytes!($path));
        &FILE.0
    }};
}

/// All of them.
pub static RECORDINGS: &[Recording] = include!(concat!(env!("OUT_DIR"), "/recordings.rs"));

impl Recording {
    /// Whether its posteriors are to be drawn, which the name tells.
    pub fn is_sampled(&self) -> bool {
        self.name.to_bytes().ends_with(b"-gibbs")
    }

    /// How it is inferred.
    pub fn engine(&self, kind: Kind) -> Engine {
        if self.is_sampled() {
            Engine::Gibbs(Gibbs { chains: 2, extra: 1, seed: 1, ..Gibbs::new(kind, 10) })
        } else {
            Engine::Truncated
        }
    }

    /// Samples of `dims` values each.
    pub fn count(&self, dims: usize) -> usize {
        self.samples.len() / 4 / dims.max(1)
    }

    /// Copies sample `n` to `row`, as a driver would copy from the ADC's buffer.
    pub fn read(&self, n: usize, row: &mut [f32]) {
        let bytes = self.samples.get(n * 4 * row.len()..).unwrap_or_default();
        let (words, _) = bytes.as_chunks();
        for (value, word) in row.iter_mut().zip(words) {
            *value = f32::from_le_bytes(*word);
        }
    }
}
