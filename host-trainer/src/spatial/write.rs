//! Writes what [`spikelet::spatial`] reads; the format is described there.

use crate::blob::{Header, assembled};
use spikelet::blob::SPATIAL;
use spikelet::frame::{Form, Frame};
use spikelet::spatial::{Constants, SpatialModel, record_len};

/// A spatial model as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// D.
    pub microphones: usize,
    /// H.
    pub sources: usize,
    /// What all bins share.
    pub constants: Constants<f32>,
    /// How fast parameters follow sources that move, 0 for never.
    pub following: f32,
    /// The transform.
    pub frame: Frame,
    /// The record of every bin, one after the other.
    pub records: Vec<f32>,
    /// Where the model came from.
    pub provenance: String,
}

impl Room {
    /// That of a blob.
    pub fn of(model: &SpatialModel<'_>) -> Self {
        let form = Form::Fourier { length: model.length() as u32, hop: model.hop() as u32 };
        let frame = Frame { form, rate: model.rate(), centred: false };
        let (microphones, sources) = (model.microphones(), model.sources());
        let len = record_len(microphones, sources);
        let mut records = vec![0.0; model.bins() * len];
        records.chunks_exact_mut(len).enumerate().for_each(|(bin, record)| model.record(bin, record));
        let (following, provenance) = (model.following().unwrap_or(0.0), model.provenance().to_owned());
        Self { microphones, sources, constants: model.constants(), following, frame, records, provenance }
    }

    /// As a blob of floats.
    pub fn floats(&self) -> Vec<u8> {
        let records = self.records.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.blob(0, 0.0, records)
    }

    /// As a blob of 16-bit integers: factors as multiples of one scale, probabilities of 2^-15.
    pub fn integers(&self) -> Vec<u8> {
        let len = record_len(self.microphones, self.sources);
        let factors = len - 1 - self.sources;
        let is_factor = |i: usize| i % len < factors;
        let all = self.records.iter().enumerate();
        let largest = all.clone().filter(|(i, _)| is_factor(*i)).fold(0f32, |most, (_, x)| most.max(x.abs()));
        let scale = (largest / 32767.0).max(f32::MIN_POSITIVE);
        let integer = |(i, &x): (usize, &f32)| match is_factor(i) {
            true => (x / scale).round().clamp(-32767.0, 32767.0) as i16,
            // The probability of silence is neither 0 nor 1.
            false => (x * 32768.0).round().clamp(if i % len == factors { 1.0 } else { 0.0 }, 32767.0) as i16,
        };
        let records = all.flat_map(|number| integer(number).to_le_bytes()).collect();
        self.blob(1, scale, records)
    }

    fn blob(&self, encoding: u8, scale: f32, records: Vec<u8>) -> Vec<u8> {
        let Constants { off_level, context, floor, microphone } = self.constants;
        let [eps, beta, delta, scale] = [off_level, context, floor, scale].map(f32::to_bits);
        let words = [microphone as u32, eps, beta, delta, scale, self.following.to_bits()];
        let sections: [(&[u8; 4], Vec<u8>); 4] = [
            (b"ROOM", words.iter().flat_map(|word| word.to_le_bytes()).collect()),
            (b"SPAT", records),
            (b"fram", self.frame.bytes().to_vec()),
            (b"prov", self.provenance.clone().into_bytes()),
        ];
        let header = Header {
            codes: [SPATIAL, encoding, 0, 0, 0, 0, 0, 0],
            dims: self.microphones,
            latents: self.sources,
            ..Header::default()
        };
        assembled(&header, &sections)
    }
}
