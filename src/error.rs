//! Errors of models, samples and blobs.

use crate::features::Features;
use core::fmt;

/// A part of a model that inference cannot run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ModelError {
    /// A size is zero, larger than its container, or larger than this target can address.
    Size {
        /// Which one.
        field: &'static str,
    },
    /// A size is above the compile-time capacity: see [`crate::capacity`] for how to raise it.
    Capacity {
        /// Which one.
        field: &'static str,
        /// The capacity of this build.
        most: usize,
    },
    /// More states per sample than [`crate::model::MAX_STATES`].
    TooManyStates,
    /// An array has another length than the sizes say.
    Length {
        /// Which array.
        field: &'static str,
        /// Numbers it should hold.
        expected: usize,
        /// Numbers it holds.
        found: usize,
    },
    /// NaN or infinity.
    NotFinite {
        /// In which array.
        field: &'static str,
        /// At which place.
        index: usize,
    },
    /// A number outside its range, such as a variance that is not positive.
    Range {
        /// In which array.
        field: &'static str,
        /// At which place.
        index: usize,
    },
    /// The model needs features that this build lacks: see `Cargo.toml`.
    LeftOut {
        /// The features that it needs and that are missing.
        features: Features,
    },
    /// A part that this kind of model cannot have, such as a table of states without a slab, or not with its other parts.
    Unfit {
        /// Which part.
        field: &'static str,
    },
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { field } => write!(f, "{field} is zero or too large"),
            Self::Capacity { field, most } => write!(f, "{field} is above this build's capacity of {most}"),
            Self::TooManyStates => write!(f, "more than 2^32 states per sample"),
            Self::Length { field, expected, found } => {
                write!(f, "{field} holds {found} numbers, not {expected}")
            }
            Self::NotFinite { field, index } => write!(f, "{field}[{index}] is not finite"),
            Self::Range { field, index } => write!(f, "{field}[{index}] is out of range"),
            Self::LeftOut { features } => {
                write!(f, "built without: {features}; the model needs these features")
            }
            Self::Unfit { field } => {
                write!(f, "the {field} does not go with this kind of model or its other parts")
            }
        }
    }
}

impl core::error::Error for ModelError {}

/// Why a sample got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The memory given to inference is too small.
    Memory {
        /// Numbers it must hold.
        needed: usize,
        /// Numbers it holds.
        found: usize,
    },
    /// The sample does not have D entries.
    SampleLength {
        /// D.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// NaN or infinity in the sample.
    SampleNotFinite {
        /// Which entry.
        index: usize,
    },
    /// A setting that the engine cannot run with, or `engine` where the model has no such engine.
    Setting {
        /// Which one.
        field: &'static str,
    },
    /// The points of the model are coefficients of a transform, not samples: it is for a stream.
    Transformed,
    /// The sample is finite, but so far from the model that its probability is not.
    OutOfRange,
    /// Input and output of a block are not the same number of samples, of all channels and of all groups.
    BlockLength {
        /// Numbers of a sample going in.
        channels: usize,
        /// Numbers of a sample coming out.
        groups: usize,
        /// Numbers given.
        input: usize,
        /// Numbers there is room for.
        output: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory { needed, found } => write!(f, "memory for {needed} numbers needed, {found} given"),
            Self::SampleLength { expected, found } => {
                write!(f, "the sample has {found} entries, the model {expected} dimensions")
            }
            Self::SampleNotFinite { index } => write!(f, "sample[{index}] is not finite"),
            Self::Setting { field } => write!(f, "{field} is not possible with this model"),
            Self::Transformed => {
                write!(f, "the model takes coefficients of a transform, not samples: make a Stream of it")
            }
            Self::OutOfRange => write!(f, "the sample is too large for the precision of the model"),
            Self::BlockLength { channels, groups, input, output } => write!(
                f,
                "{input} numbers in and {output} out are not as many samples of {channels} channels and {groups} groups"
            ),
        }
    }
}

impl core::error::Error for Error {}

/// Why bytes are not a blob this reader understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BlobError {
    /// Fewer bytes than the header, or than the header says.
    Truncated {
        /// Bytes that should be there.
        needed: usize,
        /// Bytes given.
        found: usize,
    },
    /// The bytes do not start on an 8-byte boundary.
    Misaligned,
    /// The first four bytes are not `SPKL`.
    Magic,
    /// A format version this reader does not know.
    Version {
        /// The version found.
        found: u16,
    },
    /// The length in the header is not a multiple of 8 or shorter than the header.
    Length {
        /// The length found.
        found: usize,
    },
    /// The bytes were changed after the blob was written.
    Checksum {
        /// CRC-32 in the header.
        expected: u32,
        /// CRC-32 of the bytes.
        found: u32,
    },
    /// A header field has a value this reader does not know.
    Unknown {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u8,
    },
    /// A model of streams ([`crate::spatial`], [`crate::spectral`]) where one is needed that infers single samples.
    StreamOnly,
    /// The section table reaches past the end.
    SectionTable {
        /// Number of sections it claims.
        count: usize,
    },
    /// A section lies outside the blob, overlaps its header, is misaligned or is not valid UTF-8.
    Section {
        /// Its tag.
        tag: [u8; 4],
    },
    /// Two sections with the same tag.
    DuplicateSection {
        /// The tag.
        tag: [u8; 4],
    },
    /// A required section that this reader does not know.
    UnknownSection {
        /// Its tag.
        tag: [u8; 4],
    },
    /// A section the model cannot do without.
    MissingSection {
        /// Its tag.
        tag: [u8; 4],
    },
    /// The length of a section is not a multiple of the size of its entries.
    SectionLength {
        /// Its tag.
        tag: [u8; 4],
    },
    /// The parameters do not make a model.
    Model(ModelError),
}

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { needed, found } => write!(f, "{found} bytes where {needed} are needed"),
            Self::Misaligned => write!(f, "the blob does not start on an 8-byte boundary"),
            Self::Magic => write!(f, "does not start with SPKL"),
            Self::Version { found } => write!(f, "format version {found}, this reader knows 1"),
            Self::Length { found } => write!(f, "length {found} is not a possible length"),
            Self::Checksum { expected, found } => {
                write!(f, "checksum is {found:08x}, the header says {expected:08x}")
            }
            Self::Unknown { field, value } => write!(f, "{field} {value} is not known"),
            Self::StreamOnly => write!(f, "a model that only separates streams"),
            Self::SectionTable { count } => write!(f, "a table of {count} sections does not fit"),
            Self::Section { tag } => write!(f, "section {} is damaged", Tag(tag)),
            Self::DuplicateSection { tag } => write!(f, "section {} occurs twice", Tag(tag)),
            Self::UnknownSection { tag } => write!(f, "section {} is not known", Tag(tag)),
            Self::MissingSection { tag } => write!(f, "section {} is missing", Tag(tag)),
            Self::SectionLength { tag } => write!(f, "section {} does not hold whole numbers", Tag(tag)),
            Self::Model(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BlobError {}

/// A tag as text; bytes that are not printable as question marks.
struct Tag([u8; 4]);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |byte: u8| if byte.is_ascii_graphic() { char::from(byte) } else { '?' };
        self.0.iter().try_for_each(|&byte| write!(f, "{}", printable(byte)))
    }
}
