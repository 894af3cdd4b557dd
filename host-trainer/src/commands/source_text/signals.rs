//! A model of a room or of one channel as source text: a stream is the only way to run it.

use super::{Symbol, c_alignment, c_comment, numbers};
use crate::commands::output::{counted, printable};
use spikelet::{SpatialModel, SpatialStream, SpectralModel, SpectralStream, spatial, spectral};

/// What the text says of a model.
pub(in crate::commands) struct Signals {
    /// What it is, in a sentence.
    kind: String,
    /// Its types in Rust.
    types: [&'static str; 2],
    /// The feature of the library.
    pub feature: &'static str,
    channels: usize,
    sources: usize,
    length: usize,
    hop: usize,
    rate: u32,
    /// Dimensions and latents, by the words for them.
    dims: (usize, &'static str),
    latents: (usize, &'static str),
    stream_bytes: usize,
    stream_len: usize,
    pub byte_len: usize,
    provenance: String,
}

impl From<&SpatialModel<'_>> for Signals {
    fn from(model: &SpatialModel<'_>) -> Self {
        let (sources, microphones) = (model.sources(), model.microphones());
        Self {
            kind: format!(
                "spatial: {} on {}",
                counted(sources, "source"),
                counted(microphones, "microphone")
            ),
            types: ["SpatialModel", "SpatialStream"],
            feature: if model.following().is_some() { "following" } else { "spatial" },
            channels: microphones,
            sources,
            length: model.length(),
            hop: model.hop(),
            rate: model.rate(),
            dims: (microphones, "microphones"),
            latents: (sources, "sources"),
            stream_bytes: spatial::stream_bytes(model),
            stream_len: SpatialStream::memory_len(model),
            byte_len: model.byte_len(),
            provenance: printable(model.provenance()),
        }
    }
}

impl From<&SpectralModel<'_>> for Signals {
    fn from(model: &SpectralModel<'_>) -> Self {
        let sources = counted(model.count(), "source");
        Self {
            kind: format!(
                "spectral: {sources} in one channel, {} of {} bands",
                counted(model.latents(), "spectrum").replace("spectrums", "spectra"),
                model.dims()
            ),
            types: ["SpectralModel", "SpectralStream"],
            feature: "spectral",
            channels: 1,
            sources: model.count(),
            length: model.length(),
            hop: model.hop(),
            rate: model.rate(),
            dims: (model.dims(), "bands"),
            latents: (model.latents(), "spectra of all sources"),
            stream_bytes: spectral::stream_bytes(model),
            stream_len: SpectralStream::memory_len(model),
            byte_len: model.byte_len(),
            provenance: printable(model.provenance()),
        }
    }
}

impl Signals {
    fn about(&self) -> [String; 4] {
        [
            format!("Kind {}.", self.kind),
            format!(
                "Frames of {} samples every {}; {} bytes of flash.",
                self.length, self.hop, self.byte_len
            ),
            format!("The library needs the feature {}.", self.feature),
            // The quotes keep a backslash from being the last character of the line.
            format!("Provenance: \"{}\"", self.provenance),
        ]
    }
}

/// A C header, for C99 and C++11 on.
pub(in crate::commands) fn c_header(symbol: &Symbol, model: &Signals, bytes: &[u8]) -> String {
    let (lower, upper) = (symbol.lower(), symbol.upper());
    let about: String = model.about().iter().map(|line| format!(" * {}\n", c_comment(line))).collect();
    format!(
        "\
/*
 * A Spikelet model, written by `spikelet export --format c`; do not edit.
 *
{about} *
 * Include it in one source file: every file that includes it has its own copy of the model.
 *
 *     static {upper}_ALIGNED unsigned char memory[{upper}_STREAM_SIZE];
 *     static spk_stream *stream;
 *     spk_stream_init(memory, sizeof memory, {lower}_blob, sizeof {lower}_blob, &stream); // once; check every status
 *     spk_stream_process_i16(stream, in, out, n);                                         // every block
 *
 * In: n samples of {upper}_CHANNELS channels, interleaved; out: as many of {upper}_SOURCES sources. spk_stream_process() is the same with
 * floats. Blocks of {upper}_HOP samples take the same time each.
 */
#ifndef SPIKELET_MODEL_{upper}_H
#define SPIKELET_MODEL_{upper}_H

{alignment}#define {upper}_BLOB_SIZE {size}UL  /* bytes of flash */
#define {upper}_STREAM_SIZE {stream}UL /* bytes of memory that spk_stream_init() needs */
#define {upper}_CHANNELS {channels} /* numbers of a sample that goes in */
#define {upper}_SOURCES {sources} /* numbers of a sample that comes out */
#define {upper}_HOP {hop} /* samples from one burst of work to the next */
#define {upper}_LATENCY {latency} /* samples by which sources come later */
#define {upper}_RATE {rate} /* samples a second, 0 when unknown */
#define {upper}_DIMS {dims} /* {dims_are} */
#define {upper}_LATENTS {latents} /* {latents_are} */

{upper}_ALIGNED static const unsigned char {lower}_blob[{size}] = {{
{numbers}}};

#endif
",
        alignment = c_alignment(&upper),
        size = bytes.len(),
        stream = model.stream_bytes,
        channels = model.channels,
        sources = model.sources,
        hop = model.hop,
        latency = model.length - 1,
        rate = model.rate,
        dims = model.dims.0,
        dims_are = model.dims.1,
        latents = model.latents.0,
        latents_are = model.latents.1,
        numbers = numbers(bytes),
    )
}

/// A Rust module.
pub(in crate::commands) fn rust_module(symbol: &Symbol, model: &Signals, bytes: &[u8]) -> String {
    let upper = symbol.upper();
    let about: String = model.about().iter().map(|line| format!("// {line}\n")).collect();
    format!(
        "\
// A Spikelet model, written by `spikelet export --format rust`; do not edit.
//
{about}//
// let model = spikelet::{parser}::parse({upper}.bytes())?;
// let mut memory = [0.0f32; {upper}_STREAM_LEN];
// let mut stream = spikelet::{runner}::new(model, &mut memory)?;
// stream.process(&samples, &mut sources)?; // stream.channels() numbers a sample in, stream.groups() out

/// Numbers of memory that `{runner}::new` needs.
#[allow(dead_code)]
pub const {upper}_STREAM_LEN: usize = {stream};
/// Of {dims_are}.
#[allow(dead_code)]
pub const {upper}_DIMS: usize = {dims};
/// Of {latents_are}.
#[allow(dead_code)]
pub const {upper}_LATENTS: usize = {latents};

/// The blob.
#[allow(dead_code)]
#[rustfmt::skip]
pub static {upper}: spikelet::Aligned<{size}> = spikelet::Aligned::new(&[
{numbers}]);
",
        parser = model.types[0],
        runner = model.types[1],
        stream = model.stream_len,
        dims = model.dims.0,
        dims_are = model.dims.1,
        latents = model.latents.0,
        latents_are = model.latents.1,
        size = bytes.len(),
        numbers = numbers(bytes),
    )
}
