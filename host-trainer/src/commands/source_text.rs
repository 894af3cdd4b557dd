//! A blob as source text, for firmware that is built without the file.
//!
//! The text holds bytes rather than words: they mean the same on every compiler and need no cast, and `sizeof` is the
//! length of the blob. Beside them stand the sizes that memory is reserved with at compile time.

pub(super) mod signals;

use super::model_file::{arena_bytes, names, needed};
use super::output::{counted, printable};
use crate::{Error, Result};
use spikelet::blob::Blob;
use spikelet::frame::Form;
use spikelet::stream::stream_bytes;
use spikelet::{Engine, Shape, Stream};
use std::fmt::Write;
use std::path::Path;

/// A name that is an identifier in C and Rust.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symbol(String);

impl Symbol {
    /// A name the user chose; it is taken as it is or not at all.
    pub fn new(name: &str) -> Result<Self> {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if letters && name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(Self(name.into()));
        }
        let what = format!("'{name}' is not a name that C and Rust accept");
        Err(Error::input(what, "--name", "use letters, digits and _, a letter first"))
    }

    /// The name of a file without its ending; what identifiers cannot have becomes `_`.
    pub fn of_file(path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = name.trim_matches('_');
        let first = if name.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "model_" };
        Self(format!("{first}{name}").trim_matches('_').into())
    }

    fn lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    fn upper(&self) -> String {
        self.0.to_ascii_uppercase()
    }
}

/// A C header, for C99 and C++11 on.
pub(super) fn c_header(symbol: &Symbol, blob: &Blob<'_>, bytes: &[u8]) -> String {
    let (lower, upper) = (symbol.lower(), symbol.upper());
    let Shape { dims, latents, selected, max_active, .. } = blob.model().shape;
    let states = blob.model().shape.states();
    let long = if states > u32::MAX.into() { "ULL" } else { "UL" };
    let about: String = about(blob).iter().map(|line| format!(" * {}\n", c_comment(line))).collect();
    format!(
        "\
/*
 * A Spikelet model, written by `spikelet export --format c`; do not edit.
 *
{about} *
 * Include it in one source file: every file that includes it has its own copy of the model.
 *
{usage} */
#ifndef SPIKELET_MODEL_{upper}_H
#define SPIKELET_MODEL_{upper}_H

{alignment}#define {upper}_BLOB_SIZE {blob_size}UL  /* bytes of flash */
{sizes}#define {upper}_DIMS {dims}        /* entries of a sample */
#define {upper}_LATENTS {latents}     /* sources */
#define {upper}_SELECTED {selected}    /* latents kept per sample */
#define {upper}_MAX_ACTIVE {max_active}  /* most of them on at once */
#define {upper}_STATES {states}{long}    /* states looked at per sample */

{upper}_ALIGNED static const unsigned char {lower}_blob[{blob_size}] = {{
{numbers}}};

#endif
",
        alignment = c_alignment(&upper),
        blob_size = bytes.len(),
        usage = c_usage(symbol, blob),
        sizes = c_sizes(symbol, blob),
        numbers = numbers(bytes),
    )
}

/// The macros that align a variable.
fn c_alignment(upper: &str) -> String {
    format!(
        "\
/* Alignment of the blob and of the memory for a state or a stream, in bytes. */
#define {upper}_STATE_ALIGN 8
#if defined(__GNUC__) || defined(__clang__) || defined(__ARMCC_VERSION)
#define {upper}_ALIGNED __attribute__((aligned(8)))
#elif defined(_MSC_VER)
#define {upper}_ALIGNED __declspec(align(8))
#elif defined(__cplusplus) && __cplusplus >= 201103L
#define {upper}_ALIGNED alignas(8)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define {upper}_ALIGNED _Alignas(8)
#else
#error \"define {upper}_ALIGNED for this compiler: it aligns a variable to 8 bytes\"
#endif

"
    )
}

/// How to call it: most models of streams are for nothing else.
fn c_usage(symbol: &Symbol, blob: &Blob<'_>) -> String {
    let (lower, upper) = (symbol.lower(), symbol.upper());
    if !is_streamed(blob) {
        return format!(
            " *     static {upper}_ALIGNED unsigned char memory[{upper}_STATE_SIZE];
 *     static spk_state *state;
 *     spk_init(memory, sizeof memory, {lower}_blob, sizeof {lower}_blob, &state); // once; check every status
 *     spk_process(state, sample, {upper}_DIMS, &estimate);                        // every sample
"
        );
    }
    format!(
        " *     static {upper}_ALIGNED unsigned char memory[{upper}_STREAM_SIZE];
 *     static spk_stream *stream;
 *     spk_stream_init(memory, sizeof memory, {lower}_blob, sizeof {lower}_blob, &stream); // once; check every status
 *     spk_stream_process_i16(stream, in, out, n);                                         // every block
 *
 * In: n samples of {upper}_CHANNELS channels, interleaved; out: as many of {upper}_SOURCES sources. spk_stream_process() is the same with
 * floats. Blocks of {upper}_HOP samples take the same time each.
"
    )
}

/// Memory, and what streams take and give.
fn c_sizes(symbol: &Symbol, blob: &Blob<'_>) -> String {
    let upper = symbol.upper();
    let mut text = String::new();
    let mut define = |name: &str, value: String, what: &str| {
        let _ = writeln!(text, "#define {upper}_{name} {value} /* {what} */");
    };
    if !blob.model().is_transformed {
        define(
            "STATE_SIZE",
            format!("{}UL", arena_bytes(blob.model().shape)),
            "bytes of memory that spk_init() needs",
        );
    }
    if stream_bytes(blob) > 0 {
        define(
            "STREAM_SIZE",
            format!("{}UL", stream_bytes(blob)),
            "bytes of memory that spk_stream_init() needs",
        );
    }
    if let Some(stream) = is_streamed(blob).then(|| Streamed::of(blob)).flatten() {
        define("CHANNELS", stream.channels.to_string(), "numbers of a sample that goes in");
        define("SOURCES", stream.sources.to_string(), "numbers of a sample that comes out");
        define("HOP", stream.hop.to_string(), "samples from one burst of work to the next");
        define("LATENCY", stream.latency.to_string(), "samples by which sources come later");
        define("RATE", stream.rate.to_string(), "samples a second, 0 when unknown");
    }
    text
}

/// A Rust module.
pub(super) fn rust_module(symbol: &Symbol, blob: &Blob<'_>, bytes: &[u8]) -> String {
    let upper = symbol.upper();
    let Shape { dims, latents, selected, max_active, .. } = blob.model().shape;
    let about: String = about(blob).iter().map(|line| format!("// {line}\n")).collect();
    format!(
        "\
// A Spikelet model, written by `spikelet export --format rust`; do not edit.
//
{about}//
{usage}
{sizes}/// Entries of a sample.
#[allow(dead_code)]
pub const {upper}_DIMS: usize = {dims};
/// Sources.
#[allow(dead_code)]
pub const {upper}_LATENTS: usize = {latents};
/// Latents kept per sample.
#[allow(dead_code)]
pub const {upper}_SELECTED: usize = {selected};
/// Most of them on at once.
#[allow(dead_code)]
pub const {upper}_MAX_ACTIVE: usize = {max_active};
/// States looked at per sample.
#[allow(dead_code)]
pub const {upper}_STATES: u64 = {states};

/// The blob.
#[allow(dead_code)]
#[rustfmt::skip]
pub static {upper}: spikelet::Aligned<{blob_size}> = spikelet::Aligned::new(&[
{numbers}]);
",
        usage = rust_usage(&upper, blob),
        sizes = rust_sizes(&upper, blob),
        states = blob.model().shape.states(),
        blob_size = bytes.len(),
        numbers = numbers(bytes),
    )
}

fn rust_usage(upper: &str, blob: &Blob<'_>) -> String {
    if !is_streamed(blob) {
        return format!(
            "\
// let model = spikelet::Blob::parse({upper}.bytes())?.model();
// let mut memory = [0.0f32; {upper}_ARENA_LEN];
// let mut inference = spikelet::Inference::new(model, &mut memory)?;
// let estimate = inference.infer(&sample)?;
"
        );
    }
    format!(
        "\
// let blob = spikelet::Blob::parse({upper}.bytes())?;
// let mut memory = [0.0f32; {upper}_STREAM_LEN];
// let mut stream = spikelet::Stream::new(blob, spikelet::Engine::of_kind(blob.kind()), &mut memory)?;
// stream.process(&samples, &mut sources)?; // stream.channels() numbers a sample in, stream.groups() out
"
    )
}

fn rust_sizes(upper: &str, blob: &Blob<'_>) -> String {
    let mut text = String::new();
    let mut define = |name: &str, value: usize, what: &str| {
        let _ =
            writeln!(text, "/// {what}.\n#[allow(dead_code)]\npub const {upper}_{name}: usize = {value};");
    };
    if !blob.model().is_transformed {
        define("ARENA_LEN", blob.model().arena_len(), "Numbers of memory that `Inference::new` needs");
    }
    if Stream::memory_len(blob) > 0 {
        define("STREAM_LEN", Stream::memory_len(blob), "Numbers of memory that `Stream::new` needs");
    }
    text
}

/// Whether a model is meant for a stream: its points are made of many samples.
fn is_streamed(blob: &Blob<'_>) -> bool {
    let form = blob.frame().map(|frame| frame.form);
    matches!(form, Some(Form::Transform { .. } | Form::Windows { .. })) && stream_bytes(blob) > 0
}

/// What a stream takes and gives.
struct Streamed {
    channels: usize,
    sources: usize,
    hop: usize,
    latency: usize,
    rate: u32,
}

impl Streamed {
    fn of(blob: &Blob<'_>) -> Option<Self> {
        let mut memory = vec![0.0; Stream::memory_len(blob)];
        let stream = Stream::new(*blob, Engine::of_kind(blob.kind()), &mut memory).ok()?;
        let (channels, sources) = (stream.channels(), stream.groups());
        Some(Self { channels, sources, hop: stream.hop(), latency: stream.latency(), rate: stream.rate() })
    }
}

/// What the model is, for the comment on top.
fn about(blob: &Blob<'_>) -> Vec<String> {
    let model = blob.model();
    let operations = model.operations();
    let Shape { dims, latents, selected, max_active, .. } = model.shape;
    vec![
        format!(
            "Kind {}: {}, {}.",
            names::kind(blob.kind()),
            counted(dims, "dimension"),
            counted(latents, "latent")
        ),
        format!(
            "Per sample {selected} latents kept, up to {max_active} on: {} states.",
            model.shape.states()
        ),
        format!(
            "{} multiply-adds per sample, {} more for a loud one; {} bytes of flash.",
            operations.total(),
            operations.refinement,
            blob.byte_len()
        ),
        format!("The library needs the features {}.", needed(blob)),
        // The quotes keep a backslash from being the last character of the line.
        format!("Provenance: \"{}\"", printable(blob.provenance())),
    ]
}

/// Text that neither ends a C comment nor opens one in it.
fn c_comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *")
}

/// Decimal bytes, a few to the line: shorter than hexadecimal ones.
fn numbers(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4);
    for line in bytes.chunks(24) {
        for byte in line {
            let _ = write!(text, "{byte},"); // a String takes everything
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_are_identifiers() {
        for (file, name) in [
            ("model.h", "model"),
            ("out/My Model-2.h", "My_Model_2"),
            ("3mics.h", "model_3mics"),
            ("__x.h", "x"),
            ("é.h", "model"),
            (".h", "h"),
            ("/", "model"),
        ] {
            assert_eq!(Symbol::of_file(Path::new(file)).0, name, "{file}");
        }
        for name in ["", "3x", "_x", "a-b", "é", "a b", "a;int main(){"] {
            assert!(Symbol::new(name).is_err(), "{name}");
        }
        assert_eq!(Symbol::new("Mics2_a").unwrap().upper(), "MICS2_A");
    }

    #[test]
    fn comments_stay_comments() {
        for text in ["*/ int x;", "a*/*b", "/**/", "*//", "**/", "/*/"] {
            let text = c_comment(text);
            assert!(!text.contains("*/") && !text.contains("/*"), "{text}");
        }
    }
}
