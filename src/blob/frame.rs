//! How a recording or a picture becomes points: the section `fram` of a blob.
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | u8 | form: 0 samples, 1 windows, 2 patches, 3 transform, 4 short-time Fourier transform |
//! | 1 | u8 | 1 when the mean of every point is taken off, 0 when not |
//! | 2 | u16 | patches: colours that one has together, 2 or more; else 0 |
//! | 4 | u32 | samples per second, 0 when unknown |
//! | 8 | u32 | windows: length L; patches: width; transform: bins, a power of two from 16 to 2048; Fourier: L, a power of two from 64 to 4096; samples: 0 |
//! | 12 | u32 | windows: hop K, 1 to L; patches: height; transform: channels, which is D; Fourier: hop K, L/2 (not for spatial models), L/4 or L/8; samples: 0 |
//!
//! Inference does not look at it. It is for whoever makes the points, so that data meets the model in the form the model
//! was learned from: [`crate::stream`] on a device, the trainer on a desktop. Coefficients of a transform have no mean to
//! take off.

use super::bytes::{u8_at, u16_at, u32_at};
use crate::error::BlobError;

/// Bytes of the section.
const LEN: usize = 16;

/// What one point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Form {
    /// One sample of every channel.
    Samples,
    /// So many consecutive samples of one channel, a window every `hop` samples.
    Windows {
        /// L, which is D.
        length: u32,
        /// K.
        hop: u32,
    },
    /// A rectangle of a picture, row by row, colour after colour; width times height times colours is D.
    Patches {
        /// Columns of pixels.
        width: u32,
        /// Rows of pixels.
        height: u32,
        /// Colours that one point has together; 1 where each colour is a picture of its own.
        colours: u16,
    },
    /// One coefficient of the lapped transform of every channel: blocks of `bins` samples, each with the one before it,
    /// become as many coefficients.
    Transform {
        /// N, a power of two: coefficients of a block, and samples from one to the next.
        bins: u32,
        /// D.
        channels: u32,
    },
    /// One bin of the short-time Fourier transform of every channel, of spatial sources ([`crate::spatial`]) only.
    Fourier {
        /// L, a power of two.
        length: u32,
        /// K, L/2, L/4 or L/8.
        hop: u32,
    },
}

impl Form {
    /// Fewest bins of a transform.
    pub const FEWEST_BINS: u32 = 16;
    /// Most bins of a transform.
    pub const MOST_BINS: u32 = 2048;
    /// Shortest and longest frames of the short-time Fourier transform.
    pub const FOURIER_LENGTHS: core::ops::RangeInclusive<u32> = 64..=4096;
}

/// Whether a section says that points are coefficients of a transform.
pub(super) fn is_transform(bytes: &[u8]) -> bool {
    u8_at(bytes, 0) == 3
}

/// How points are made.
///
/// ```
/// use spikelet::frame::{Form, Frame};
/// let frame = Frame { form: Form::Patches { width: 8, height: 8, colours: 1 }, rate: 0, centred: true };
/// assert_eq!(Frame::parse(&frame.bytes(), 64), Ok(frame));
/// assert!(Frame::parse(&frame.bytes(), 63).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Frame {
    /// What one point is.
    pub form: Form,
    /// Samples per second, 0 when unknown.
    pub rate: u32,
    /// Whether the mean of every point is taken off before inference, to be put back afterwards.
    pub centred: bool,
}

impl Frame {
    /// Reads the section of a model of `dims` dimensions.
    pub fn parse(bytes: &[u8], dims: usize) -> Result<Self, BlobError> {
        let damaged = Err(BlobError::Section { tag: *b"fram" });
        let (first, second) = (u32_at(bytes, 8), u32_at(bytes, 12));
        let form = match u8_at(bytes, 0) {
            0 => Form::Samples,
            1 => Form::Windows { length: first, hop: second },
            2 => Form::Patches { width: first, height: second, colours: u16_at(bytes, 2).max(1) },
            3 => Form::Transform { bins: first, channels: second },
            4 => Form::Fourier { length: first, hop: second },
            value => return Err(BlobError::Unknown { field: "frame", value }),
        };
        let fits = match form {
            Form::Samples => first == 0 && second == 0,
            Form::Windows { length, hop } => length as usize == dims && hop > 0 && hop <= length,
            Form::Patches { width, height, colours } => {
                let pixels = u64::from(width).checked_mul(u64::from(height));
                let numbers = pixels.and_then(|pixels| pixels.checked_mul(u64::from(colours)));
                numbers == Some(dims as u64) && width > 0 && u16_at(bytes, 2) != 1
            }
            Form::Transform { bins, channels } => {
                let is_possible =
                    bins.is_power_of_two() && (Form::FEWEST_BINS..=Form::MOST_BINS).contains(&bins);
                is_possible && channels as usize == dims && u8_at(bytes, 1) == 0
            }
            Form::Fourier { length, hop } => {
                let is_possible = length.is_power_of_two() && Form::FOURIER_LENGTHS.contains(&length);
                is_possible
                    && matches!(length.checked_div(hop), Some(2 | 4 | 8))
                    && hop.is_power_of_two()
                    && u8_at(bytes, 1) == 0
            }
        };
        let centred = u8_at(bytes, 1);
        let is_plain = matches!(form, Form::Patches { .. }) || u16_at(bytes, 2) == 0;
        if bytes.len() != LEN || !fits || centred > 1 || !is_plain {
            return damaged;
        }
        Ok(Self { form, rate: u32_at(bytes, 4), centred: centred == 1 })
    }

    /// The section.
    pub fn bytes(&self) -> [u8; LEN] {
        let (form, together, first, second) = match self.form {
            Form::Samples => (0, 0, 0, 0),
            Form::Windows { length, hop } => (1, 0, length, hop),
            Form::Patches { width, height, colours: 0 | 1 } => (2, 0, width, height),
            Form::Patches { width, height, colours } => (2, colours, width, height),
            Form::Transform { bins, channels } => (3, 0, bins, channels),
            Form::Fourier { length, hop } => (4, 0, length, hop),
        };
        let [c0, c1] = u16::to_le_bytes(together);
        let [r0, r1, r2, r3] = self.rate.to_le_bytes();
        let [a0, a1, a2, a3] = u32::to_le_bytes(first);
        let [b0, b1, b2, b3] = u32::to_le_bytes(second);
        [form, u8::from(self.centred), c0, c1, r0, r1, r2, r3, a0, a1, a2, a3, b0, b1, b2, b3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_come_back() {
        for (form, dims) in [
            (Form::Samples, 3),
            (Form::Windows { length: 20, hop: 20 }, 20),
            (Form::Patches { width: 4, height: 5, colours: 1 }, 20),
            (Form::Patches { width: 4, height: 5, colours: 3 }, 60),
            (Form::Transform { bins: 16, channels: 2 }, 2),
            (Form::Transform { bins: 2048, channels: 1 }, 1),
            (Form::Fourier { length: 1024, hop: 256 }, 2),
        ] {
            let frame = Frame { form, rate: 8000, centred: false };
            assert_eq!(Frame::parse(&frame.bytes(), dims), Ok(frame));
            for len in 0..LEN {
                assert!(Frame::parse(&frame.bytes()[..len], dims).is_err(), "{form:?} {len}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let windows = Frame { form: Form::Windows { length: 20, hop: 5 }, rate: 0, centred: true }.bytes();
        let damaged = Err(BlobError::Section { tag: *b"fram" });
        let with = |at: usize, value: u8, dims| {
            let mut bytes = windows;
            bytes[at] = value;
            Frame::parse(&bytes, dims)
        };
        assert!(with(0, 1, 20).is_ok());
        assert_eq!(with(0, 9, 20), Err(BlobError::Unknown { field: "frame", value: 9 }));
        for (at, value, dims) in [
            (0, 0, 20),
            (0, 2, 20),
            (1, 2, 20),
            (2, 1, 20),
            (8, 21, 20),
            (12, 0, 20),
            (12, 21, 20),
            (0, 1, 19),
        ] {
            assert_eq!(with(at, value, dims), damaged, "{at} {value}");
        }
        // 2^32 pixels in all, if the product were cut off at 32 bits.
        let vast = Frame {
            form: Form::Patches { width: 1 << 16, height: 1 << 16, colours: 1 },
            rate: 0,
            centred: false,
        };
        assert_eq!(Frame::parse(&vast.bytes(), 0), damaged);
        for (bins, channels, centred) in
            [(8, 2, false), (24, 2, false), (4096, 2, false), (0, 2, false), (64, 3, false), (64, 2, true)]
        {
            let frame = Frame { form: Form::Transform { bins, channels }, rate: 0, centred };
            assert_eq!(Frame::parse(&frame.bytes(), 2), damaged, "{bins} {channels}");
        }
    }
}
