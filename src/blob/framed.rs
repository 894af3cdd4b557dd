//! The beginning that blobs of a short-time Fourier transform share: spatial and spectral models.

use super::bytes::{u8_at, u32_at};
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

/// The checked header: what is needed to read the rest.
pub(crate) struct Head<'a> {
    /// D.
    pub dims: usize,
    /// H.
    pub latents: usize,
    pub encoding: u8,
    pub sections: Sections<'a>,
    pub framed: Framed<'a>,
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
        Ok(Self { dims, latents, encoding: u8_at(bytes, 17), sections, framed })
    }

    pub fn section(&self, tag: [u8; 4]) -> Result<&'a [u8], BlobError> {
        self.sections.find(tag).ok_or(BlobError::MissingSection { tag })
    }

    /// Names of groups, if there are some.
    pub fn groups(&self) -> Result<Option<Groups<'a>>, BlobError> {
        self.sections.find(*b"grps").map(|bytes| Groups::parse(bytes, self.latents)).transpose()
    }
}
