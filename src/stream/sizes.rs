//! The memory of a stream, and how it is divided.

use super::Mix;
use super::transform::Transform;
use super::windows::Windows;
use crate::blob::Blob;
use crate::blob::frame::{Form, Frame};
use crate::error::Error;
use crate::stream::mdct::Mdct;

/// Of a stream: see the table at the top of [`crate::stream`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// C.
    pub channels: usize,
    /// G.
    pub groups: usize,
    /// L.
    pub length: usize,
    /// K.
    pub hop: usize,
    /// Numbers that [`Mix`] needs.
    mix: usize,
    /// Tables and scratch memory beside it.
    rest: usize,
}

/// What the three forms need beside the rings.
#[derive(Debug)]
pub(super) enum Work<'m> {
    Samples(Mix<'m>),
    Windows(Windows<'m>),
    Transform(Transform<'m>),
}

impl Sizes {
    /// Fails where there can be no stream.
    pub fn new(blob: &Blob<'_>) -> Result<Self, Error> {
        let (shape, groups) = (blob.model().shape, blob.groups().len());
        let Frame { form, centred, .. } = frame(blob);
        if shape.kind.is_maximal() && groups != 1 {
            return Err(Error::Setting { field: "more than one group of maximal causes" });
        }
        let mix = if shape.kind.is_maximal() { 2 * shape.dims } else { shape.latents };
        match form {
            Form::Samples if centred => Err(Error::Setting { field: "taking the mean off single samples" }),
            Form::Samples => Ok(Self { channels: shape.dims, groups, length: 1, hop: 1, mix, rest: 0 }),
            Form::Windows { length, hop } => {
                let (length, hop) = (length as usize, hop as usize);
                Ok(Self { channels: 1, groups, length, hop, mix: 0, rest: 3 * length })
            }
            Form::Transform { bins, channels } => {
                let (hop, channels) = (bins as usize, channels as usize);
                let rows = hop.saturating_mul(groups.saturating_add(channels));
                let rest = rows.saturating_add(channels).saturating_add(Mdct::table_len(hop));
                Ok(Self { channels, groups, length: 2 * hop, hop, mix, rest })
            }
            Form::Patches { .. } => Err(Error::Setting { field: "a stream of patches" }),
            Form::Fourier { .. } => Err(Error::Setting { field: "the short-time Fourier transform" }),
        }
    }

    /// Numbers, beside those of inference.
    pub fn total(&self) -> usize {
        let rings = self.length.saturating_mul(self.channels.saturating_add(self.groups));
        rings.saturating_add(self.mix).saturating_add(self.rest)
    }

    /// Cuts memory for all of it: the rings, and the rest; `None` when it is too little.
    pub fn cut<'m>(
        &self,
        blob: &Blob<'m>,
        memory: &'m mut [f32],
    ) -> Option<(&'m mut [f32], &'m mut [f32], Work<'m>)> {
        if memory.len() < self.total() {
            return None;
        }
        let Self { channels, groups, length, hop, mix, .. } = *self;
        let mut rest = memory;
        let mut take = |len: usize| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut_checked(len)?;
            rest = tail;
            Some(head)
        };
        let (input, output) = (take(length * channels)?, take(length * groups)?);
        let clean = if blob.kind().is_maximal() { mix / 2 } else { 0 };
        let Frame { form, centred, .. } = frame(blob);
        let work = match form {
            Form::Windows { .. } => Work::Windows(Windows {
                weights: take(length)?,
                frame: take(length)?,
                part: take(length)?,
                centred,
            }),
            Form::Transform { .. } => Work::Transform(Transform {
                mix: Mix { weights: take(mix - clean)?, clean: take(clean)? },
                table: take(Mdct::table_len(hop))?,
                spectra: take(channels * hop)?,
                parts: take(groups * hop)?,
                point: take(channels)?,
                gains: blob.gains(),
            }),
            _ => Work::Samples(Mix { weights: take(mix - clean)?, clean: take(clean)? }),
        };
        Some((input, output, work))
    }
}

/// Where the blob says nothing, every sample is a point.
fn frame(blob: &Blob<'_>) -> Frame {
    blob.frame().unwrap_or(Frame { form: Form::Samples, rate: 0, centred: false })
}
