//! Streams of either sort that have no samples of their own: sources in a room, and in one channel.

use core::ffi::CStr;
use spikelet::{SpatialModel, SpatialStream, SpectralModel, SpectralStream};

/// Sound in, one signal for each source out.
#[allow(clippy::large_enum_variant)] // there is no heap
pub enum Signals<'m> {
    Room(SpatialStream<'m>),
    Channel(SpectralStream<'m>),
}

/// The same for both.
macro_rules! each {
    ($signals:expr, $stream:ident => $what:expr) => {
        match $signals {
            Signals::Room($stream) => $what,
            Signals::Channel($stream) => $what,
        }
    };
}

impl<'m> Signals<'m> {
    pub fn is_one(blob: &[u8]) -> bool {
        SpatialModel::is_one(blob) || SpectralModel::is_one(blob)
    }

    /// Numbers of memory that a model needs.
    pub fn memory_len(blob: &[u8]) -> Result<usize, &'static CStr> {
        if SpectralModel::is_one(blob) {
            return SpectralModel::parse(blob)
                .map(|model| SpectralStream::memory_len(&model))
                .map_err(|_| c"blob refused");
        }
        SpatialModel::parse(blob).map(|model| SpatialStream::memory_len(&model)).map_err(|_| c"blob refused")
    }

    pub fn new(blob: &'m [u8], memory: &'m mut [f32]) -> Result<Self, &'static CStr> {
        let (refused, short) = (c"blob refused", c"the memory is too small");
        if SpectralModel::is_one(blob) {
            let model = SpectralModel::parse(blob).map_err(|_| refused)?;
            return SpectralStream::new(model, memory).map(Self::Channel).map_err(|_| short);
        }
        let model = SpatialModel::parse(blob).map_err(|_| refused)?;
        SpatialStream::new(model, memory).map(Self::Room).map_err(|_| short)
    }

    pub fn channels(&self) -> usize {
        each!(self, stream => stream.channels())
    }

    pub fn groups(&self) -> usize {
        each!(self, stream => stream.groups())
    }

    pub fn hop(&self) -> usize {
        each!(self, stream => stream.hop())
    }

    pub fn rate(&self) -> u32 {
        each!(self, stream => stream.rate())
    }

    pub fn latency(&self) -> usize {
        each!(self, stream => stream.latency())
    }

    pub fn reset(&mut self) {
        each!(self, stream => stream.reset());
    }

    pub fn process(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), spikelet::Error> {
        each!(self, stream => stream.process(input, output))
    }
}
