//! A spatial model as it lies in flash.

use super::bin::{Bin, Constants, MOST_MICROPHONES, MOST_SOURCES};
use super::follow::FASTEST;
use crate::blob::SPATIAL;
use crate::blob::bytes::u32_at;
use crate::blob::framed::{Framed, Head, Numbers, frame_accessors, is_of, range};
use crate::blob::groups::Groups;
use crate::counts::Count;
use crate::error::{BlobError, ModelError};
use crate::features::{FOLLOWING, Features};
use crate::numeric::slices::{at, copy, span, span_mut};

/// Numbers of a bin, at most.
pub(super) const LONGEST_RECORD: usize =
    MOST_SOURCES * MOST_MICROPHONES * MOST_MICROPHONES + MOST_SOURCES + 1;

/// Numbers of a bin: Cholesky factors, pi0, m.
pub const fn record_len(microphones: usize, sources: usize) -> usize {
    sources * microphones * microphones + 1 + sources
}

fn decode(numbers: &mut [f32], integers: &[[u8; 2]], scale: f32) {
    for (number, &integer) in numbers.iter_mut().zip(integers) {
        *number = f32::from(i16::from_le_bytes(integer)) * scale;
    }
}

/// A checked model of sources on spaced microphones; borrowed from the blob.
#[derive(Clone, Copy, Debug)]
pub struct SpatialModel<'a> {
    microphones: usize,
    sources: usize,
    framed: Framed<'a>,
    constants: Constants<f32>,
    /// What integers of factors are multiplied with.
    scale: f32,
    /// How fast parameters follow sources that move, if they do.
    following: Option<f32>,
    records: Numbers<'a>,
    groups: Groups<'a>,
}

impl<'a> SpatialModel<'a> {
    /// Whether bytes look like a spatial model; nothing of it is checked.
    pub fn is_one(bytes: &[u8]) -> bool {
        is_of(bytes, SPATIAL)
    }

    /// Checks all of `bytes`, once.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BlobError> {
        let mut head =
            Head::parse(bytes, SPATIAL, 2..=MOST_MICROPHONES, MOST_SOURCES, &[*b"ROOM", *b"SPAT"])?;
        let Head { dims: microphones, latents: sources, framed, .. } = head;
        if framed.hop > framed.length / 4 {
            head.refuse(BlobError::Section { tag: *b"fram" });
        }
        let room = head.section(*b"ROOM");
        if room.len() != 24 {
            head.refuse(BlobError::SectionLength { tag: *b"ROOM" });
        }
        let number = |offset| f32::from_bits(u32_at(room, offset));
        let (microphone, scale, rate) = (u32_at(room, 0) as usize, number(16), number(20));
        let constants = Constants { off_level: number(4), context: number(8), floor: number(12), microphone };
        head.within("microphone", 0, microphone as f32, 0.0, (microphones - 1) as f32);
        head.within("off level", 0, constants.off_level, 0.0, 0.5);
        head.within("context", 0, constants.context, 0.0, 4.0);
        head.within("floor", 0, constants.floor, 1e-5, 1.0);
        head.within("following", 0, rate, 0.0, if microphones == 2 { FASTEST } else { 0.0 });
        let following = (rate > 0.0).then_some(rate);
        if following.is_some() && !FOLLOWING {
            head.refuse(BlobError::Model(ModelError::LeftOut { features: Features::FOLLOWING }));
        }
        let expected = (framed.length / 2 + 1) * record_len(microphones, sources);
        let records = head.numbers(*b"SPAT", (1, 2), scale, "bins", expected);
        head.checked()?;
        let groups = head.groups()?.unwrap_or_else(|| Groups::unnamed(sources, false));
        if groups.len() != sources || (0..sources).any(|source| groups.of(source) != source) {
            return Err(BlobError::Model(ModelError::Unfit { field: "groups" }));
        }
        let model = Self { microphones, sources, framed, constants, scale, following, records, groups };
        model.check()?;
        Ok(model)
    }

    /// Factors that are finite, not negative on the diagonal and of no more than twice the energy that training gives them, so
    /// that no covariance can overflow; probabilities below 1.
    fn check(&self) -> Result<(), BlobError> {
        let wrong = |field, index| Err(range(field, index));
        let most = 2.0 * (self.sources * self.microphones) as f32;
        let mut buffer = [0.0; LONGEST_RECORD];
        for index in 0..self.bins() {
            let bin = self.bin(index, &mut buffer);
            let mut energy = 0.0;
            bin.factors.iter().for_each(|number| energy += number * number);
            let each = self.microphones * self.microphones;
            let is_diagonal =
                |i: usize| (0..self.microphones).any(|row| i.checked_rem(each) == Some(row * row + 2 * row));
            let is_negative = bin.factors.iter().enumerate().any(|(i, &f)| is_diagonal(i) && f < 0.0);
            if !(energy <= most) || is_negative {
                return wrong("factors", index);
            }
            if !(bin.silence > 0.0 && bin.silence < 1.0) {
                return wrong("silence", index);
            }
            if bin.activity.iter().any(|m| !(0.0..=1.0).contains(m)) {
                return wrong("activity", index);
            }
        }
        Ok(())
    }

    /// The parameters of a bin, decoded to `buffer`.
    pub(super) fn bin<'b>(&self, index: usize, buffer: &'b mut [f32; LONGEST_RECORD]) -> Bin<'b, f32> {
        let len = record_len(self.microphones, self.sources);
        let factors = len - 1 - self.sources;
        match self.records {
            Numbers::Float(numbers) => copy(buffer, span(numbers, index * len, len)),
            Numbers::Integer(bytes) => {
                Count::SpatialDecoded.add(len);
                let integers = span(bytes, 2 * index * len, 2 * len).as_chunks().0;
                decode(buffer, integers, self.scale);
                let rest = span(integers, factors, 1 + self.sources);
                decode(span_mut(buffer, factors, rest.len()), rest, 1.0 / 32768.0);
            }
        }
        let (factors, rest) = buffer.split_at_checked(factors).unwrap_or_default();
        Bin { factors, silence: at(rest, 0), activity: span(rest, 1, self.sources) }
    }

    /// D.
    pub fn microphones(&self) -> usize {
        self.microphones
    }

    /// H.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// What all bins share.
    pub fn constants(&self) -> Constants<f32> {
        self.constants
    }

    /// The same with the images of sources at another microphone; nothing where there is none of this number.
    pub fn with_microphone(mut self, microphone: usize) -> Option<Self> {
        self.constants.microphone = microphone;
        (microphone < self.microphones).then_some(self)
    }

    /// How fast parameters follow sources that move: 0 holds them still, and where there is nothing a stream has no memory for it.
    pub fn following(&self) -> Option<f32> {
        // Where it is left out, the compiler knows that there is nothing to follow with.
        self.following.filter(|_| FOLLOWING)
    }

    /// The same, following at another rate or not at all; nothing for more than two microphones, for rates
    /// below 0 or above 1/2, and without the feature `following`.
    pub fn with_following(mut self, following: Option<f32>) -> Option<Self> {
        self.following = following;
        let is_possible = |rate| FOLLOWING && self.microphones == 2 && (0.0..=FASTEST).contains(&rate);
        following.is_none_or(is_possible).then_some(self)
    }

    /// Whether parameters are integers of 16 bits.
    pub fn is_integer(&self) -> bool {
        matches!(self.records, Numbers::Integer(_))
    }

    /// Writes the parameters of a bin to `record`, [`record_len`] numbers.
    pub fn record(&self, index: usize, record: &mut [f32]) {
        let mut buffer = [0.0; LONGEST_RECORD];
        let bin = self.bin(index, &mut buffer);
        let numbers = bin.factors.iter().chain([&bin.silence]).chain(bin.activity);
        record.iter_mut().zip(numbers).for_each(|(to, &from)| *to = from);
    }
}

frame_accessors!(SpatialModel);
