//! The blob: a model as bytes, read in place from flash.
//!
//! All numbers are little-endian. A blob starts on an 8-byte boundary and every section does too, so
//! its arrays are used where they lie. Version 1, byte by byte:
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | 4 bytes | magic, `SPKL` |
//! | 4 | u16 | format version, 1 |
//! | 6 | u16 | format revision, 0 |
//! | 8 | u32 | length of the blob in bytes, a multiple of 8 |
//! | 12 | u32 | CRC-32 (IEEE 802.3, as in zlib) of the bytes from 16 to the end |
//! | 16 | u8 | model kind: 1 GSC, 2 BSC, 3 NMF, 4 MCA, 5 SSMCA, 6 GMM, 7 spatial and 8 spectral, which have their own sections: see [`crate::spatial`], [`crate::spectral`] |
//! | 17 | u8 | encoding of the dictionary: 0 f32, 1 i16, 2 i8 |
//! | 18 | u8 | selection: 0 singleton, 1 independent, 2 cosine, 3 bound, 4 learned |
//! | 19 | u8 | noise: 0 shared, 1 diagonal, 2 full |
//! | 20 | u8 | slab: 0 unit or 1 diagonal for GSC and SSMCA, 2 full for GSC; 3 none for the others |
//! | 21 | u8 | states: 0 subsets, 1 table (GSC only), 2 adaptive; 0 for GMM |
//! | 22 | u8 | 1 with singletons, 0 without |
//! | 23 | u8 | 0 |
//! | 24 | u32 | D, dims |
//! | 28 | u32 | H, latents |
//! | 32 | u16 | H', selected |
//! | 34 | u16 | gamma, max active |
//! | 36 | f32 | log norm: -D/2 ln 2 pi - 1/2 ln det Sigma + sum ln(1 - pi_h); GMM: without the sum |
//! | 40 | u32 | number of sections, n |
//! | 44 | u16 | adaptive states: X, expansions; else 0 |
//! | 46 | u16 | 0 |
//! | 48 | 16 n bytes | section table: 4 bytes tag, u32 offset, u32 length in bytes, u32 0 |
//!
//! Sections (f32 arrays unless noted; see the fields of [`Model`] for what they hold):
//!
//! | tag | numbers | holds |
//! |---|---|---|
//! | `DICT` | D times H rounded up to 8 | dictionary in panels; as integers in quads, see [`Integers`] |
//! | `DSCL` | H | scales of a dictionary of integers |
//! | `NOIS` | 1, D or D (D + 1) / 2 | noise precision(s) or inverse Cholesky factor |
//! | `PRIO`, `GDIA` | H each | prior logit (GMM: ln pi), Gram diagonal |
//! | `MEAN`, `PREC`, `SOFF` | H each | slab mean, slab precision, score offset; GSC and SSMCA only |
//! | `GRAM` | H (H + 1) / 2 | Gram matrix; may be absent |
//! | `SELP`, `SELO` | as `DICT`, H | independent selection: precisions and offsets, which are those of the components of a GMM; cosine selection: `SELO` holds the scales; learned selection: `SELP` holds the weights |
//! | `STAT` | see [`StateTable`] | per-state records |
//! | `FIXD` | 6 H integers of 32 bits | the latents in fixed point, where inference is in integers: see [`crate::model::FixedLatent`] |
//! | `prov` | text | UTF-8: where the model came from |
//! | `fram` | 16 bytes | how recordings and pictures become points, see [`Frame`]; may be absent |
//! | `gain` | bins | with a transform: what every coefficient is multiplied with before inference; above 0; absent: 1 |
//! | `grps` | | which latents belong together, and names, see [`Groups`]; may be absent |
//!
//! **Compatibility.** A reader refuses another format version. Within a version, revisions only add
//! sections whose tag starts with a lower-case letter; a reader skips such sections when it does not
//! know them, and refuses unknown sections that start with a capital. Blobs of every released
//! version stay readable; one of each lies in `tests/blobs`.
//!
//! Hostile bytes end here: any byte string gives a checked [`Model`] or a [`BlobError`].

use crate::error::ModelError;
use crate::features::{FIXED, Features, INTEGERS, STREAM, SUBSETS};
use crate::model::{
    Dictionary, Integers, Model, Noise, Selection, Shape, Sign, StateTable, States, Width, numbers,
};
use bytes::{u8_at, u16_at, u32_at, words};
use frame::{Form, Frame};
use groups::Groups;

pub use crate::error::BlobError;
pub use crate::model::Kind;
pub use bytes::crc32;

#[cfg(all(test, any(feature = "spatial", feature = "spectral")))]
pub(crate) mod assemble;
pub(crate) mod bytes;
pub mod frame;
#[cfg(any(feature = "spatial", feature = "spectral"))]
pub(crate) mod framed;
pub mod groups;

/// First four bytes.
pub const MAGIC: [u8; 4] = *b"SPKL";
/// Format version written and read.
pub const VERSION: u16 = 1;
/// Bytes before the section table.
pub const HEADER_LEN: usize = 48;
/// Bytes per entry of the section table.
pub const ENTRY_LEN: usize = 16;
/// The kind of spatial sources, which are no [`Model`] but a [`crate::spatial::SpatialModel`].
pub const SPATIAL: u8 = 7;
/// The kind of sources in one channel, which are no [`Model`] but a [`crate::spectral::SpectralModel`].
pub const SPECTRAL: u8 = 8;
/// Blobs and sections start at multiples of this.
pub const ALIGN: usize = 8;

/// How the slab covariance was given; inference needs only what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Slab {
    /// The identity.
    Unit = 0,
    /// One variance per latent.
    Diagonal = 1,
    /// Any covariance.
    Full = 2,
    /// None: latents are on or off.
    None = 3,
}

/// Bytes on the boundary a blob needs, for instance from `include_bytes!`.
///
/// ```
/// use spikelet::{Aligned, Blob};
/// static MODEL: Aligned<4> = Aligned::new(b"SPKL");
/// assert!(Blob::parse(MODEL.bytes()).is_err()); // aligned, but four bytes are no model
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Aligned<const N: usize>([u8; N]);

impl<const N: usize> Aligned<N> {
    /// Copies the bytes, at compile time when in a `static`.
    pub const fn new(bytes: &[u8; N]) -> Self {
        Self(*bytes)
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A checked blob.
///
/// ```
/// use spikelet::{Blob, blob::BlobError};
/// assert_eq!(Blob::parse(b"RIFF").unwrap_err(), BlobError::Truncated { needed: 48, found: 4 });
/// let blob = Blob::parse(spikelet::doc::TWO_SOURCES).unwrap();
/// assert_eq!(blob.model().shape.latents, 2);
/// assert_eq!(blob.provenance(), "two sources, for the documentation");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    model: Model<'a, f32>,
    slab: Slab,
    revision: u16,
    len: usize,
    provenance: &'a [u8],
    frame: Option<Frame>,
    gains: &'a [f32],
    groups: Groups<'a>,
}

impl<'a> Blob<'a> {
    /// Checks all of `bytes` once; afterwards nothing in it needs checking again.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BlobError> {
        let bytes = whole(bytes)?;
        let code = u8_at(bytes, 16);
        let only_streams = match code {
            SPATIAL => Features::SPATIAL,
            SPECTRAL => Features::SPECTRAL,
            _ => Features::NONE,
        };
        if !only_streams.is_empty() {
            let features = only_streams.without(Features::BUILT);
            let left_out = BlobError::Model(ModelError::LeftOut { features });
            return Err(if features.is_empty() { BlobError::StreamOnly } else { left_out });
        }
        let kind = Kind::of_code(code).ok_or(BlobError::Unknown { field: "kind", value: code })?;
        if !Features::HAS_POINTS {
            // Nothing else of the blob is looked at, so that firmware for streams of frames does not link what reads it.
            let features = Features::of_kind(kind).without(Features::BUILT);
            return Err(BlobError::Model(ModelError::LeftOut { features }));
        }
        for (field, offset, most) in CODES {
            let value = u8_at(bytes, usize::from(offset));
            if value > most {
                return Err(BlobError::Unknown { field, value });
            }
        }
        let (slab, states) = (u8_at(bytes, 20), u8_at(bytes, 21));
        if (slab == Slab::None as u8) == kind.has_slab() || slab == Slab::Full as u8 && kind != Kind::Gsc {
            return Err(BlobError::Unknown { field: "slab", value: slab });
        }
        if slab == Slab::Full as u8 && states != 1 {
            return Err(BlobError::Unknown { field: "states", value: states });
        }
        let slab = match slab {
            0 => Slab::Unit,
            1 => Slab::Diagonal,
            2 => Slab::Full,
            _ => Slab::None,
        };
        let sections = Sections::new(bytes, &KNOWN)?;
        let mut model = Model {
            shape: Shape {
                kind,
                dims: u32_at(bytes, 24) as usize,
                latents: u32_at(bytes, 28) as usize,
                selected: usize::from(u16_at(bytes, 32)),
                max_active: usize::from(u16_at(bytes, 34)),
                singletons: u8_at(bytes, 22) == 1,
                states: match states {
                    0 => States::Subsets,
                    1 => States::Table,
                    _ => States::Adaptive { expansions: u16_at(bytes, 44) },
                },
            },
            dictionary: Dictionary::Float(&[]),
            noise: Noise::Diagonal(&[]),
            prior_logit: &[],
            slab_mean: &[],
            slab_precision: &[],
            gram_diagonal: &[],
            score_offset: &[],
            gram: None,
            selection: Selection::Singleton,
            table: None,
            fixed: None,
            is_transformed: sections.find(*b"fram").is_some_and(frame::is_transform),
            has_slab_mean: false,
            may_lose_digits: false,
            log_norm: f32::from_bits(u32_at(bytes, 36)),
        };
        arrays(bytes, &sections, &mut model)?;
        model.check().map_err(BlobError::Model)?;
        let provenance = sections.find(*b"prov").unwrap_or(&[]);
        let (revision, len) = (u16_at(bytes, 6), bytes.len());
        if !STREAM {
            let groups = Groups::unnamed(model.shape.latents, false);
            return Ok(Self { model, slab, revision, len, provenance, frame: None, gains: &[], groups });
        }
        let frame = sections.find(*b"fram").map(|bytes| Frame::parse(bytes, model.shape.dims)).transpose()?;
        let form = frame.map_or(Form::Samples, |frame| frame.form);
        let gains = match (form, sections.find(*b"gain")) {
            (_, None) => &[],
            (Form::Transform { bins, .. }, Some(_)) => {
                let gains = sections.floats(*b"gain")?;
                numbers("gain", gains, bins as usize, Sign::Positive).map_err(BlobError::Model)?;
                gains
            }
            _ => return Err(BlobError::Model(ModelError::Unfit { field: "gain" })),
        };
        let latents = model.shape.latents;
        let groups = match sections.find(*b"grps") {
            Some(bytes) => Groups::parse(bytes, latents)?,
            None => Groups::unnamed(latents, matches!(form, Form::Windows { .. } | Form::Patches { .. })),
        };
        Ok(Self { model, slab, revision, len, provenance, frame, gains, groups })
    }

    /// The model, ready for inference.
    pub fn model(&self) -> Model<'a, f32> {
        self.model
    }

    /// The model by reference.
    pub fn model_ref(&self) -> &Model<'a, f32> {
        &self.model
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.model.shape.kind
    }

    /// How its slab was given.
    pub fn slab(&self) -> Slab {
        self.slab
    }

    /// Revision of the format it was written in.
    pub fn revision(&self) -> u16 {
        self.revision
    }

    /// Where the model came from, as its author wrote it; empty if it is not UTF-8.
    pub fn provenance(&self) -> &'a str {
        core::str::from_utf8(self.provenance).unwrap_or_default()
    }

    /// How data becomes points, if the model says so.
    pub fn frame(&self) -> Option<Frame> {
        self.frame
    }

    /// What the coefficients of each bin are multiplied with before inference and divided by after it; empty for gains of 1. The
    /// spectrum of most sounds falls by many dB, and one model serves all bins.
    pub fn gains(&self) -> &'a [f32] {
        self.gains
    }

    /// Which latents belong together.
    pub fn groups(&self) -> Groups<'a> {
        self.groups
    }

    /// Length in bytes.
    pub fn byte_len(&self) -> usize {
        self.len
    }
}

/// Fills in the arrays of a model, as the header `bytes` says which there are.
#[inline(never)]
fn arrays<'a>(bytes: &'a [u8], sections: &Sections<'a>, model: &mut Model<'a, f32>) -> Result<(), BlobError> {
    let mut reader = Reader { sections, fault: None };
    model.noise = match (u8_at(bytes, 19), reader.floats(*b"NOIS")) {
        (0, &[precision]) => Noise::Shared(precision),
        (0, other) => {
            let (field, expected, found) = ("noise", 1, other.len());
            reader.fault.get_or_insert(BlobError::Model(ModelError::Length { field, expected, found }));
            Noise::Shared(0.0)
        }
        (1, precisions) => Noise::Diagonal(precisions),
        (_, factor) => Noise::Full(factor),
    };
    model.selection = match u8_at(bytes, 18) {
        0 => Selection::Singleton,
        1 => Selection::Independent { precision: reader.floats(*b"SELP"), offset: reader.floats(*b"SELO") },
        2 => Selection::Cosine { scale: reader.floats(*b"SELO") },
        3 => Selection::Bound,
        _ => Selection::Learned { weights: reader.floats(*b"SELP") },
    };
    if model.shape.states == States::Table {
        let full_slab = u8_at(bytes, 20) == Slab::Full as u8;
        let records = if SUBSETS { reader.floats(*b"STAT") } else { &[] };
        model.table = Some(StateTable { records, full_slab });
    }
    model.dictionary = match u8_at(bytes, 17) {
        0 => Dictionary::Float(reader.floats(*b"DICT")),
        code => {
            let width = if code == 1 { Width::I16 } else { Width::I8 };
            // A build without them refuses the model, whatever they are.
            let (words, scales) = match INTEGERS {
                true => (sections.words(*b"DICT")?, reader.floats(*b"DSCL")),
                false => (&[][..], &[][..]),
            };
            Dictionary::Integer(Integers { width, words, scales, peak: 0 })
        }
    };
    model.prior_logit = reader.floats(*b"PRIO");
    model.gram_diagonal = reader.floats(*b"GDIA");
    if model.shape.kind.has_slab() {
        model.slab_mean = reader.floats(*b"MEAN");
        model.slab_precision = reader.floats(*b"PREC");
        model.score_offset = reader.floats(*b"SOFF");
    }
    if sections.find(*b"GRAM").is_some() {
        model.gram = Some(reader.floats(*b"GRAM"));
    }
    // Integers have no other states: a blob of the papers' sets is inferred in floats.
    if let (Some(bytes), true) = (sections.find(*b"FIXD"), model.shape.fits_integers()) {
        model.fixed = Some(if FIXED { bytes::fixed_latents(bytes)? } else { &[] });
    }
    reader.fault.map_or(Ok(()), Err)
}

/// Looks up sections and keeps the first error, to be returned once: a return after each would double the code.
struct Reader<'s, 'a> {
    sections: &'s Sections<'a>,
    fault: Option<BlobError>,
}

impl<'a> Reader<'_, 'a> {
    #[inline(never)]
    fn floats(&mut self, tag: [u8; 4]) -> &'a [f32] {
        self.sections.floats(tag).unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            &[]
        })
    }
}

/// Magic, version, length, checksum: the blob without bytes that may follow it in flash.
pub(crate) fn whole(bytes: &[u8]) -> Result<&[u8], BlobError> {
    if bytes.len() < HEADER_LEN {
        return Err(BlobError::Truncated { needed: HEADER_LEN, found: bytes.len() });
    }
    if !bytes.as_ptr().addr().is_multiple_of(ALIGN) {
        return Err(BlobError::Misaligned);
    }
    if !bytes.starts_with(&MAGIC) {
        return Err(BlobError::Magic);
    }
    if u16_at(bytes, 4) != VERSION {
        return Err(BlobError::Version { found: u16_at(bytes, 4) });
    }
    let len = u32_at(bytes, 8) as usize;
    let Some(bytes) = bytes.get(..len) else {
        return Err(BlobError::Truncated { needed: len, found: bytes.len() });
    };
    if len < HEADER_LEN || !len.is_multiple_of(ALIGN) {
        return Err(BlobError::Length { found: len });
    }
    let (found, expected) = (crc32(bytes.get(16..).unwrap_or(&[])), u32_at(bytes, 12));
    if found != expected { Err(BlobError::Checksum { expected, found }) } else { Ok(bytes) }
}

/// Codes of the header: field, offset, the largest that is known.
const CODES: [(&str, u8, u8); 6] = [
    ("encoding", 17, 2),
    ("selection", 18, 4),
    ("noise", 19, 2),
    ("slab", 20, 3),
    ("states", 21, 2),
    ("singletons", 22, 1),
];

/// The section table, every entry of which was checked.
#[derive(Clone, Copy)]
pub(crate) struct Sections<'a> {
    bytes: &'a [u8],
    table: &'a [Entry],
}

const KNOWN: [[u8; 4]; 13] = [
    *b"DICT", *b"DSCL", *b"NOIS", *b"PRIO", *b"MEAN", *b"PREC", *b"GDIA", *b"SOFF", *b"GRAM", *b"SELP",
    *b"SELO", *b"STAT", *b"FIXD",
];

impl<'a> Sections<'a> {
    /// `known` are the tags that are understood, beside those that begin with a lower-case letter.
    pub(crate) fn new(bytes: &'a [u8], known: &[[u8; 4]]) -> Result<Self, BlobError> {
        let count = u32_at(bytes, 40) as usize;
        let end = count.checked_mul(ENTRY_LEN).and_then(|len| len.checked_add(HEADER_LEN));
        let table = end.and_then(|end| bytes.get(HEADER_LEN..end));
        let (table, []) = table.ok_or(BlobError::SectionTable { count })?.as_chunks() else {
            return Err(BlobError::SectionTable { count });
        };
        let sections = Self { bytes, table };
        for (index, entry) in table.iter().enumerate() {
            let tag = tag(entry);
            let is_inside = entry_range(entry).is_some_and(|range| {
                range.end <= bytes.len()
                    && range.start >= HEADER_LEN + size_of_val(table)
                    && range.start.is_multiple_of(ALIGN)
            });
            if !is_inside {
                return Err(BlobError::Section { tag });
            }
            if !known.contains(&tag) && !tag[0].is_ascii_lowercase() {
                return Err(BlobError::UnknownSection { tag });
            }
            if sections.position(tag) != Some(index) {
                return Err(BlobError::DuplicateSection { tag });
            }
        }
        Ok(sections)
    }

    /// Where the first section of this name is in the table.
    #[inline(never)]
    fn position(&self, name: [u8; 4]) -> Option<usize> {
        self.table.iter().position(|entry| tag(entry) == name)
    }

    pub(crate) fn find(&self, tag: [u8; 4]) -> Option<&'a [u8]> {
        self.bytes.get(entry_range(self.table.get(self.position(tag)?)?)?)
    }

    pub(crate) fn floats(&self, tag: [u8; 4]) -> Result<&'a [f32], BlobError> {
        let bytes = self.find(tag).ok_or(BlobError::MissingSection { tag })?;
        bytes::floats(bytes).ok_or(BlobError::SectionLength { tag })
    }

    fn words(&self, tag: [u8; 4]) -> Result<&'a [u32], BlobError> {
        let bytes = self.find(tag).ok_or(BlobError::MissingSection { tag })?;
        words(bytes).ok_or(BlobError::SectionLength { tag })
    }
}

type Entry = [u8; ENTRY_LEN];

fn tag(entry: &Entry) -> [u8; 4] {
    u32_at(entry, 0).to_le_bytes()
}

/// The bytes of a section, unless they end beyond all numbers.
fn entry_range(entry: &Entry) -> Option<core::ops::Range<usize>> {
    let start = u32_at(entry, 4) as usize;
    Some(start..start.checked_add(u32_at(entry, 8) as usize)?)
}
