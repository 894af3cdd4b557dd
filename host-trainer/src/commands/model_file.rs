//! A blob from disk, in memory where the core can read it in place.
//!
//! In comes the path of a `.spk` file, out goes a checked [`Blob`]. Fails, naming the file, when it cannot be read or
//! is no blob that this build can run.

use super::output::{counted, warn};
use crate::data::Source;
use crate::{Error, Result};
use spikelet::blob::{ALIGN, Blob, BlobError};
use spikelet::groups::Groups;
use spikelet::model::{ModelError, States};
use spikelet::{Features, Model, Shape, SpatialModel, SpectralModel, state_bytes};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The Cargo features that a library must have to run a model, in words.
pub(super) fn needed(blob: &Blob<'_>) -> String {
    Features::of(blob.model_ref()).to_string()
}

/// Owns the bytes of a blob.
#[derive(Debug)]
pub(super) struct ModelFile {
    name: String,
    /// The bytes lie at `start..`: the allocator promises a vector of bytes no alignment, so a few more are taken.
    /// Never grown after `start` was found.
    memory: Vec<u8>,
    start: usize,
}

impl ModelFile {
    pub fn read(path: &Path) -> Result<Self> {
        let fail = |cause| Error::reading(path, &cause);
        if !fs::metadata(path).map_err(fail)?.is_file() {
            return Err(Error::input(
                "this is not a file",
                path.display(),
                "name a model, such as model.spk",
            ));
        }
        // A blob's length has 32 bits: of a longer file, which is none, the start is enough to see that.
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(u32::MAX.into()).read_to_end(&mut bytes)).map_err(fail)?;
        Ok(Self::new(path.display().to_string(), &bytes))
    }

    /// `name` is what errors call it.
    pub fn new(name: String, bytes: &[u8]) -> Self {
        let mut memory = vec![0; bytes.len() + ALIGN];
        let start = memory.as_ptr().addr().next_multiple_of(ALIGN) - memory.as_ptr().addr();
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        memory.truncate(start + bytes.len());
        Self { name, memory, start }
    }

    /// All of it, unchecked.
    pub fn raw(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// Checks everything.
    pub fn blob(&self) -> Result<Blob<'_>> {
        Blob::parse(self.raw()).map_err(|error| self.refused(error))
    }

    /// The model of a room, if it is one, checked.
    pub fn room(&self) -> Result<Option<SpatialModel<'_>>> {
        self.streamed(SpatialModel::is_one, SpatialModel::parse)
    }

    /// The model of sources in one channel, if it is one, checked.
    pub fn spectral(&self) -> Result<Option<SpectralModel<'_>>> {
        self.streamed(SpectralModel::is_one, SpectralModel::parse)
    }

    fn streamed<'a, M>(
        &'a self,
        is_one: fn(&[u8]) -> bool,
        parse: fn(&'a [u8]) -> Result<M, BlobError>,
    ) -> Result<Option<M>> {
        let model = is_one(self.raw()).then(|| parse(self.raw()));
        model.transpose().map_err(|error| self.refused(error))
    }

    /// Whatever separates recordings, checked.
    pub fn separator(&self) -> Result<Separator<'_>> {
        match self.streamer()? {
            Some(model) => Ok(model),
            None => self.blob().map(Separator::Points),
        }
    }

    /// What runs as a stream only, if it is that, checked.
    pub fn streamer(&self) -> Result<Option<Separator<'_>>> {
        match self.room()? {
            Some(room) => Ok(Some(Separator::Room(room))),
            None => Ok(self.spectral()?.map(Separator::Spectral)),
        }
    }

    fn refused(&self, error: BlobError) -> Error {
        let remake = "copy it again, or make it again with `spikelet train` or `spikelet import`";
        match error {
            BlobError::StreamOnly if SpectralModel::is_one(self.raw()) => {
                let what = "a model of spectra has no points to infer: it runs on whole recordings";
                let advice = "use `spikelet separate` (with --reference for figures), `denoise`, `infer`, `inspect`, `quantize`, `export` or `merge`";
                Error::input(what, &self.name, advice)
            }
            BlobError::StreamOnly => {
                let what = "a spatial model has no points to infer: it runs on whole recordings";
                let advice = "use `spikelet separate` (with --reference for figures), `inspect`, `quantize` or `export`";
                Error::input(what, &self.name, advice)
            }
            BlobError::Magic if self.name.ends_with(".json") => {
                let model = Path::new(&self.name).with_extension("spk");
                let advice = format!("give the model that lies beside it, such as {}", model.display());
                Error::input("a description is no model", &self.name, advice)
            }
            BlobError::Magic => {
                let advice = "name a model made by `spikelet train` or `spikelet import`";
                Error::input("this is not a Spikelet model", &self.name, advice)
            }
            BlobError::Version { .. } | BlobError::Unknown { .. } | BlobError::UnknownSection { .. } => {
                let what = format!("this version of spikelet does not know the model ({error})");
                Error::input(what, &self.name, "use the version that made it, or a newer one")
            }
            BlobError::Model(ModelError::Capacity { .. }) => {
                let advice = "import it with a smaller --selected or --max-active";
                Error::input(error, &self.name, advice)
            }
            _ => Error::input(format_args!("the model is damaged ({error})"), &self.name, remake),
        }
    }

    /// The blob without bytes that follow it in the file.
    pub fn bytes(&self, blob: &Blob<'_>) -> &[u8] {
        self.first(blob.byte_len())
    }

    /// The first bytes of the file.
    pub fn first(&self, len: usize) -> &[u8] {
        &self.raw()[..len]
    }
}

/// A model that separates recordings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Separator<'a> {
    Points(Blob<'a>),
    Room(SpatialModel<'a>),
    Spectral(SpectralModel<'a>),
}

impl<'a> Separator<'a> {
    /// The sources.
    pub fn groups(&self) -> Groups<'a> {
        match self {
            Self::Points(blob) => blob.groups(),
            Self::Room(room) => room.groups(),
            Self::Spectral(model) => model.groups(),
        }
    }

    /// Bytes in flash.
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Points(blob) => blob.byte_len(),
            Self::Room(room) => room.byte_len(),
            Self::Spectral(model) => model.byte_len(),
        }
    }
}

/// Refuses data that a model was not made for.
pub(super) fn same_dims(source: &Source, model: &Model<'_, f32>, name: &Path) -> Result<()> {
    if source.dims() == model.shape.dims {
        return Ok(());
    }
    let (found, expected) = (source.dims(), model.shape.dims);
    let (what, advice) = match source.rate() {
        Some(_) => (
            format!("the recording has {}, the model is for {expected}", counted(found, "channel")),
            "give a recording of as many channels, or train on one like this",
        ),
        None if source.points() == expected => (
            format!("the array has {expected} rows of {found} numbers, the model {expected} dimensions"),
            "transpose it, so that every point is a row: numpy.save(NAME, x.T)",
        ),
        None => (
            format!("the points have {}, the model {expected}", counted(found, "dimension")),
            "give N points as N x D, and a model made for such data",
        ),
    };
    Err(Error::input(what, format!("{} and {}", source.path().display(), name.display()), advice))
}

/// Warns of a recording at another rate than the model was trained at.
pub(super) fn warn_of_rate(source: &Source, blob: &Blob<'_>) {
    warn_unless_at(source, blob.frame().map_or(0, |frame| frame.rate));
}

/// The same of a model trained at this rate, 0 where it is not known.
pub(super) fn warn_unless_at(source: &Source, trained: u32) {
    if let Some(rate) = source.rate().filter(|&rate| trained != 0 && rate != trained) {
        warn(format_args!(
            "{} has {rate} samples per second, the model was trained at {trained}: resample the recording, or train on one \
             like it",
            source.path().display()
        ));
    }
}

/// Warns of states that single precision cannot tell apart, and that only adaptive states leave out.
pub(super) fn warn_of_digits(model: &Model<'_, f32>) {
    let Shape { kind, states, .. } = model.shape;
    if model.may_lose_digits && !kind.is_sampled() && !matches!(states, States::Adaptive { .. }) {
        warn(
            "the noise is 48 dB or more below some latents: single precision cannot tell all of the papers' states apart, and              probabilities may be wrong: use --states adaptive, or more noise",
        );
    }
}

/// Bytes of RAM per stream, as C's `spk_state_size()` says.
pub(super) fn arena_bytes(shape: Shape) -> usize {
    state_bytes(shape)
}

/// Names of what a blob can be, as commands and their output write them.
pub(super) mod names {
    use spikelet::blob::{Kind, Slab};
    use spikelet::frame::{Form, Frame};
    use spikelet::groups::Groups;
    use spikelet::model::{Dictionary, Model, Noise, Selection, States, Width};

    pub fn kind(kind: Kind) -> &'static str {
        kind.spec().name
    }

    pub fn frame(frame: &Frame) -> String {
        let mean = if frame.centred { " without their mean" } else { "" };
        match frame.form {
            Form::Samples => "samples of all channels".into(),
            Form::Windows { length, hop } => format!("windows of {length} samples every {hop}{mean}"),
            Form::Patches { width, height, colours } => {
                let colours = if colours > 1 { format!(" in {colours} colours") } else { String::new() };
                format!("patches of {width} x {height} pixels{colours}{mean}")
            }
            Form::Transform { bins, channels } => {
                format!("coefficients of a lapped transform, {bins} bins, {channels} channels")
            }
            _ => "unknown".into(),
        }
    }

    /// Names of sources; none where they have none.
    pub fn groups<'a>(groups: &Groups<'a>) -> Vec<&'a str> {
        let named = if groups.is_named() { groups.len() } else { 0 };
        (0..named).map(|group| groups.name(group)).collect()
    }

    pub fn encoding(model: &Model<'_, f32>) -> &'static str {
        match model.dictionary {
            Dictionary::Float(_) => "f32",
            Dictionary::Integer(integers) => match integers.width {
                Width::I16 => "i16",
                Width::I8 => "i8",
            },
        }
    }

    pub fn slab(slab: Slab) -> &'static str {
        match slab {
            Slab::Unit => "unit",
            Slab::Diagonal => "diagonal",
            Slab::Full => "full",
            Slab::None => "none",
        }
    }

    pub fn noise(model: &Model<'_, f32>) -> &'static str {
        match model.noise {
            Noise::Shared(_) => "shared",
            Noise::Diagonal(_) => "diagonal",
            Noise::Full(_) => "full",
        }
    }

    pub fn selection(model: &Model<'_, f32>) -> &'static str {
        match model.selection {
            Selection::Singleton => "singleton",
            Selection::Independent { .. } => "independent",
            Selection::Cosine { .. } => "cosine",
            Selection::Bound => "bound",
            Selection::Learned { .. } => "learned",
        }
    }

    pub fn states(model: &Model<'_, f32>) -> &'static str {
        match model.shape.states {
            States::Adaptive { .. } => "adaptive",
            States::Subsets => "subsets",
            States::Table => "table",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_wherever_they_came_from() {
        let bytes = [spikelet::doc::TWO_SOURCES, b"more"].concat();
        for offset in 0..8 {
            let padded = [&vec![0; offset], &bytes[..]].concat();
            let file = ModelFile::new("m".into(), &padded[offset..]);
            let blob = file.blob().unwrap();
            assert_eq!(file.bytes(&blob), spikelet::doc::TWO_SOURCES);
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let say = |bytes: &[u8]| ModelFile::new("m.spk".into(), bytes).blob().unwrap_err().to_string();
        let good = spikelet::doc::TWO_SOURCES;
        assert!(say(b"").contains("0 bytes where 48 are needed"));
        assert!(say(&[b'x'; 100]).starts_with("this is not a Spikelet model: m.spk: name a model"));
        assert!(say(&good[..good.len() - 1]).starts_with("the model is damaged ("));
        let mut newer = good.to_vec();
        newer[4] = 2;
        assert!(say(&newer).contains("format version 2"));
    }
}
