//! Ring buffers of every stream: the last L samples of input and the next L of output.

use crate::counts::Count;
use crate::error::Error;
use crate::numeric::slices::{at, set};
use crate::state::Held;
use crate::stream::{Pieces, Work};

/// How far a stream is: with what inference found last and the memory all the state there is. Plain data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Where in the rings the next sample goes, which is where the oldest one is.
    at: usize,
    /// Samples since the last points were made; below K.
    since: usize,
    /// Samples there were, as far as the latency.
    age: usize,
}

/// Of a stream: see the table at the top of [`crate::stream`].
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// C.
    pub channels: usize,
    /// G.
    pub groups: usize,
    /// L.
    pub length: usize,
    /// K.
    pub hop: usize,
}

impl Extent {
    /// Numbers in the rings.
    pub(crate) fn rings_len(&self) -> usize {
        self.length.saturating_mul(self.channels.saturating_add(self.groups))
    }
}

#[derive(Debug)]
pub(crate) struct Rings<'m> {
    pub extent: Extent,
    /// The last L samples of each channel, one channel after the other; a sample's place is its time modulo L.
    pub input: &'m mut [f32],
    /// What was inferred for the last L samples so far, one group after the other. A place is zero once its sample is out.
    pub output: &'m mut [f32],
    pub place: Held<Place, &'m mut Place>,
}

impl<'m> Rings<'m> {
    /// Takes their memory; nothing where it is too short.
    pub fn cut(extent: Extent, memory: &mut Pieces<'m>, place: Held<Place, &'m mut Place>) -> Option<Self> {
        let Extent { channels, groups, length, .. } = extent;
        let (input, output) = (memory.take(length * channels)?, memory.take(length * groups)?);
        Some(Self { extent, input, output, place })
    }

    pub fn reset(&mut self) {
        *self.place.get_mut() = Place::default();
        self.input.fill(0.0);
        self.output.fill(0.0);
    }

    pub fn process<W: Work + ?Sized>(
        &mut self,
        input: &[f32],
        output: &mut [f32],
        work: &mut W,
    ) -> Result<(), Error> {
        let samples = self.samples(input.len(), output.len())?;
        if let Some(index) = input.iter().position(|y| !y.is_finite()) {
            return Err(Error::SampleNotFinite { index });
        }
        self.run(samples, &|i| at(input, i), &mut |i, value| set(output, i, value), work)
    }

    pub fn process_i16<W: Work + ?Sized>(
        &mut self,
        input: &[i16],
        output: &mut [i16],
        work: &mut W,
    ) -> Result<(), Error> {
        let samples = self.samples(input.len(), output.len())?;
        let read = |i: usize| f32::from(input.get(i).copied().unwrap_or_default()) / 32768.0;
        // Halves away from zero; `as` saturates.
        let rounded = |value: f32| (value * 32768.0 + if value < 0.0 { -0.5 } else { 0.5 }) as i16;
        self.run(samples, &read, &mut |i, value| set(output, i, rounded(value)), work)
    }

    /// n, if the lengths fit.
    fn samples(&self, input: usize, output: usize) -> Result<usize, Error> {
        let Extent { channels, groups, .. } = self.extent;
        let samples = input.checked_div(channels).unwrap_or_default();
        if samples.checked_mul(channels) == Some(input) && samples.checked_mul(groups) == Some(output) {
            return Ok(samples);
        }
        Err(Error::BlockLength { channels, groups, input, output })
    }

    /// Numbers of a block by their index; what is read is finite. One piece of code for both kinds of numbers, and in C for all streams.
    fn run<W: Work + ?Sized>(
        &mut self,
        samples: usize,
        read: &dyn Fn(usize) -> f32,
        write: &mut dyn FnMut(usize, f32),
        work: &mut W,
    ) -> Result<(), Error> {
        let Extent { channels, groups, length, .. } = self.extent;
        Count::Streamed.add(samples * (channels + groups));
        let mut is_whole = true;
        for n in 0..samples {
            let now = self.place.view().at;
            for c in 0..channels {
                set(self.input, c * length + now, read(n * channels + c));
            }
            if self.advance() {
                is_whole &= work.infer(self.input, self.output, self.place.view().at);
            }
            let Place { at: oldest, age, .. } = *self.place.view();
            for g in 0..groups {
                let value = at(self.output, g * length + oldest);
                set(self.output, g * length + oldest, 0.0);
                is_whole &= value.is_finite();
                let is_heard = age >= length && value.is_finite();
                write(n * groups + g, if is_heard { value } else { 0.0 });
            }
        }
        if is_whole { Ok(()) } else { Err(Error::OutOfRange) }
    }

    /// One sample on; true when it is time for work.
    fn advance(&mut self) -> bool {
        let Extent { length, hop, .. } = self.extent;
        let place = self.place.get_mut();
        let Place { at, since, age } = *place;
        let next = |value: usize, end: usize| if value + 1 < end { value + 1 } else { 0 };
        *place = Place { at: next(at, length), since: next(since, hop), age: (age + 1).min(length) };
        place.since == 0
    }
}
