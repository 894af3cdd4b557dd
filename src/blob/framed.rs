//! The beginning that blobs of a short-time Fourier transform share: spatial and spectral models.

use super::bytes::{floats, u8_at, u32_at};
use super::frame::{Form, Frame};
use super::groups::Groups;
use super::{MAGIC, Sections, whole};
use crate::error::{BlobError, ModelError};

/// A number outside of its range.
pub(crate) fn range(field: &'static str, index: usize) -> BlobError {
    BlobError::Model(ModelError::Range { field, index })
}

/// Whether bytes look like a model of this kind; nothing of it is checked.
pub(crate) fn is_of(bytes: &[u8], kind: u8) -> bool {
    bytes.starts_with(&MAGIC) && u8_at(bytes, 16) == kind
}

/// What both keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framed<'a> {
    /// L.
    pub length: usize,
    /// K.
    pub hop: usize,
    /// Samples per second, 0 when unknown.
    pub rate: u32,
    pub provenance: &'a str,
    /// Length in bytes.
    pub byte_len: usize,
}

/// What both tell about it; they have it in `framed`, and the names of sources in `groups`.
macro_rules! frame_accessors {
    ($model:ident) => {
        impl<'a> $model<'a> {
            /// L, samples of a frame.
            pub fn length(&self) -> usize {
                self.framed.length
            }

            /// K, samples from one frame to the next.
            pub fn hop(&self) -> usize {
                self.framed.hop
            }

            /// Bins of a frame, L/2 + 1.
            pub fn bins(&self) -> usize {
                self.framed.length / 2 + 1
            }

            /// Samples per second, 0 when unknown.
            pub fn rate(&self) -> u32 {
                self.framed.rate
            }

            /// Names of sources.
            pub fn groups(&self) -> Groups<'a> {
                self.groups
            }

            /// Where the model came from.
            pub fn provenance(&self) -> &'a str {
                self.framed.provenance
            }

            /// Length in bytes.
            pub fn byte_len(&self) -> usize {
                self.framed.byte_len
            }
        }
    };
}
pub(crate) use frame_accessors;

/// Numbers of a model as they lie in flash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbers<'a> {
    Float(&'a [f32]),
    /// Integers, which have a scale.
    Integer(&'a [u8]),
}

/// The checked header: what is needed to read the rest. Keeps the first error of what is read and checked, to be returned once: a return
/// after each would double the code.
pub(crate) struct Head<'a> {
    /// D.
    pub dims: usize,
    /// H.
    pub latents: usize,
    pub encoding: u8,
    pub sections: Sections<'a>,
    pub framed: Framed<'a>,
    fault: Option<BlobError>,
}

impl<'a> Head<'a> {
    /// Of a blob of this kind, of dimensions and latents within these bounds, with these sections.
    pub fn parse(
        bytes: &'a [u8],
        kind: u8,
        dims_in: core::ops::RangeInclusive<usize>,
        most_latents: usize,
        known: &[[u8; 4]],
    ) -> Result<Self, BlobError> {
        let bytes = whole(bytes)?;
        if u8_at(bytes, 16) != kind {
            return Err(BlobError::Unknown { field: "kind", value: u8_at(bytes, 16) });
        }
        if let Some(offset) = (18..24).chain(32..40).chain(44..48).find(|&offset| u8_at(bytes, offset) != 0) {
            return Err(BlobError::Unknown { field: "header", value: u8_at(bytes, offset) });
        }
        let (dims, latents) = (u32_at(bytes, 24) as usize, u32_at(bytes, 28) as usize);
        if !dims_in.contains(&dims) {
            return Err(range("dims", 0));
        }
        if !(1..=most_latents).contains(&latents) {
            return Err(range("latents", 0));
        }
        let sections = Sections::new(bytes, known)?;
        let section = sections.find(*b"fram").ok_or(BlobError::MissingSection { tag: *b"fram" })?;
        let frame = Frame::parse(section, dims)?;
        let Form::Fourier { length, hop } = frame.form else {
            return Err(BlobError::Model(ModelError::Unfit { field: "frame" }));
        };
        let text = sections.find(*b"prov").unwrap_or(&[]);
        let provenance = core::str::from_utf8(text).map_err(|_| BlobError::Section { tag: *b"prov" })?;
        let (length, hop, byte_len) = (length as usize, hop as usize, bytes.len());
        let framed = Framed { length, hop, rate: frame.rate, provenance, byte_len };
        Ok(Self { dims, latents, encoding: u8_at(bytes, 17), sections, framed, fault: None })
    }

    /// The first error so far.
    pub fn checked(&self) -> Result<(), BlobError> {
        self.fault.map_or(Ok(()), Err)
    }

    #[inline(never)]
    pub fn refuse(&mut self, error: BlobError) {
        self.fault.get_or_insert(error);
    }

    pub fn section(&mut self, tag: [u8; 4]) -> &'a [u8] {
        self.sections.find(tag).unwrap_or_else(|| {
            self.refuse(BlobError::MissingSection { tag });
            &[]
        })
    }

    #[inline(never)]
    pub fn floats(&mut self, tag: [u8; 4]) -> &'a [f32] {
        floats(self.section(tag)).unwrap_or_else(|| {
            self.refuse(BlobError::SectionLength { tag });
            &[]
        })
    }

    /// As many numbers as expected: floats in encoding 0, whose scale is 0, or in encoding `code` integers of so many bytes.
    pub fn numbers(
        &mut self,
        tag: [u8; 4],
        (code, width): (u8, usize),
        scale: f32,
        field: &'static str,
        expected: usize,
    ) -> Numbers<'a> {
        let content = self.section(tag);
        let is_float = self.encoding == 0;
        if !is_float && self.encoding != code {
            self.refuse(BlobError::Unknown { field: "encoding", value: self.encoding });
        }
        let is_scale = if is_float { scale == 0.0 } else { scale > 0.0 && scale <= 1.0 };
        if !is_scale {
            self.refuse(range("scale", 0));
        }
        let numbers = if is_float { Numbers::Float(self.floats(tag)) } else { Numbers::Integer(content) };
        let width = if is_float { 4 } else { width };
        if expected * width != content.len() {
            let found = content.len() / width;
            self.refuse(BlobError::Model(ModelError::Length { field, expected, found }));
        }
        numbers
    }

    #[cfg(feature = "spectral")]
    #[inline(never)]
    pub fn length(&mut self, field: &'static str, expected: usize, found: usize) {
        if expected != found {
            self.refuse(BlobError::Model(ModelError::Length { field, expected, found }));
        }
    }

    #[inline(never)]
    pub fn within(&mut self, field: &'static str, index: usize, value: f32, least: f32, most: f32) {
        if !(least..=most).contains(&value) {
            self.refuse(range(field, index));
        }
    }

    /// Names of groups, if there are some.
    pub fn groups(&self) -> Result<Option<Groups<'a>>, BlobError> {
        self.sections.find(*b"grps").map(|bytes| Groups::parse(bytes, self.latents)).transpose()
    }
}
