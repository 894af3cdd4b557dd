//! A spatial model as source text: a stream is the only way to run it.

use super::{Symbol, c_alignment, c_comment, numbers};
use crate::commands::output::{counted, printable};
use spikelet::SpatialModel;
use spikelet::spatial::{SpatialStream, stream_bytes};

fn about(model: &SpatialModel<'_>) -> [String; 4] {
    let (sources, microphones) =
        (counted(model.sources(), "source"), counted(model.microphones(), "microphone"));
    [
        format!("Kind spatial: {sources} on {microphones}."),
        format!(
            "Frames of {} samples every {}; {} bytes of flash.",
            model.length(),
            model.hop(),
            model.byte_len()
        ),
        "The library needs the feature spatial.".into(),
        // The quotes keep a backslash from being the last character of the line.
        format!("Provenance: \"{}\"", printable(model.provenance())),
    ]
}

/// A C header, for C99 and C++11 on.
pub(in crate::commands) fn c_header(symbol: &Symbol, model: &SpatialModel<'_>, bytes: &[u8]) -> String {
    let (lower, upper) = (symbol.lower(), symbol.upper());
    let about: String = about(model).iter().map(|line| format!(" * {}\n", c_comment(line))).collect();
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
#define {upper}_DIMS {channels}        /* microphones */
#define {upper}_LATENTS {sources}     /* sources */
#define {upper}_STATES {states}UL    /* states looked at per bin */

{upper}_ALIGNED static const unsigned char {lower}_blob[{size}] = {{
{numbers}}};

#endif
",
        alignment = c_alignment(&upper),
        size = bytes.len(),
        stream = stream_bytes(model),
        channels = model.microphones(),
        sources = model.sources(),
        hop = model.hop(),
        latency = model.length() - 1,
        rate = model.rate(),
        states = 1 << model.sources(),
        numbers = numbers(bytes),
    )
}

/// A Rust module.
pub(in crate::commands) fn rust_module(symbol: &Symbol, model: &SpatialModel<'_>, bytes: &[u8]) -> String {
    let upper = symbol.upper();
    let about: String = about(model).iter().map(|line| format!("// {line}\n")).collect();
    format!(
        "\
// A Spikelet model, written by `spikelet export --format rust`; do not edit.
//
{about}//
// let model = spikelet::SpatialModel::parse({upper}.bytes())?;
// let mut memory = [0.0f32; {upper}_STREAM_LEN];
// let mut stream = spikelet::SpatialStream::new(model, &mut memory)?;
// stream.process(&samples, &mut sources)?; // stream.channels() numbers a sample in, stream.groups() out

/// Numbers of memory that `SpatialStream::new` needs.
#[allow(dead_code)]
pub const {upper}_STREAM_LEN: usize = {stream};
/// Microphones.
#[allow(dead_code)]
pub const {upper}_DIMS: usize = {channels};
/// Sources.
#[allow(dead_code)]
pub const {upper}_LATENTS: usize = {sources};

/// The blob.
#[allow(dead_code)]
#[rustfmt::skip]
pub static {upper}: spikelet::Aligned<{size}> = spikelet::Aligned::new(&[
{numbers}]);
",
        stream = SpatialStream::memory_len(model),
        channels = model.microphones(),
        sources = model.sources(),
        size = bytes.len(),
        numbers = numbers(bytes),
    )
}
