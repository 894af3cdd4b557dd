//! Models of sources on spaced microphones, without training: delays alone, and echoes as a share that comes from everywhere.

use spikelet::blob::{ALIGN, ENTRY_LEN, HEADER_LEN, MAGIC, SPATIAL, VERSION, crc32};
use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet::spatial::record_len;

type Complex = [f64; 2];

/// A room: microphones on a line, the sound of source h reaching each of them `delays[h]` samples after the one before.
pub struct Room<'a> {
    pub microphones: usize,
    pub delays: &'a [f64],
    pub length: u32,
    pub hop: u32,
    pub rate: u32,
    /// Whether parameters are integers of 16 bits.
    pub is_integer: bool,
    /// The one that is put out.
    pub microphone: u32,
    /// How fast parameters follow, 0 for never.
    pub following: f32,
}

/// Share of a source's energy that comes from everywhere.
const ECHO: f64 = 0.05;

impl Room<'_> {
    /// The blob.
    pub fn bytes(&self) -> Vec<u8> {
        let (d, h) = (self.microphones, self.delays.len());
        // No factor is larger than the root of the largest diagonal entry, D (1 - ECHO) / D + ECHO = 1.
        let scale = if self.is_integer { 1.0 / 32767.0 } else { 0.0 };
        let mut records = Vec::new();
        for bin in 0..self.length / 2 + 1 {
            let turn = std::f64::consts::TAU * f64::from(bin) / f64::from(self.length);
            let mut record: Vec<f64> = self.delays.iter().flat_map(|delay| factor(d, turn * delay)).collect();
            let rest = record.len();
            record.push(0.1 + 0.2 * f64::from(bin) / f64::from(self.length));
            record.extend((0..h).map(|h| 0.3 + 0.1 * h as f64));
            assert_eq!(record.len(), record_len(d, h));
            match self.is_integer {
                false => records.extend(record.iter().flat_map(|&x| (x as f32).to_le_bytes())),
                true => records.extend(record.iter().enumerate().flat_map(|(i, x)| {
                    let steps = if i < rest { 32767.0 } else { 32768.0 };
                    ((x * steps).round() as i16).to_le_bytes()
                })),
            }
        }
        let room = [
            self.microphone,
            0.03f32.to_bits(),
            2f32.to_bits(),
            1e-4f32.to_bits(),
            (scale as f32).to_bits(),
            self.following.to_bits(),
        ];
        let form = Form::Fourier { length: self.length, hop: self.hop };
        let sections = [
            (b"ROOM", room.iter().flat_map(|word| word.to_le_bytes()).collect()),
            (b"SPAT", records),
            (b"fram", Frame { form, rate: self.rate, centred: false }.bytes().to_vec()),
            (b"prov", b"conformance room".to_vec()),
        ];
        assemble([SPATIAL, u8::from(self.is_integer)], [d as u32, h as u32], &sections)
    }

    /// What the microphones hear: noise of the sources in turn, two at a time, faint and loud, and a silence. Where parameters
    /// follow, all have moved by a third of a sample.
    pub fn recording(&self, samples: usize, seed: u64) -> Vec<f32> {
        let mut rng = Rng::new(seed);
        let h = self.delays.len();
        let moved = if self.following > 0.0 { 1.0 / 3.0 } else { 0.0 };
        let mut recording = vec![0.0f64; samples * self.microphones];
        for (source, delay) in self.delays.iter().enumerate() {
            for t in 0..samples {
                let (stage, noise) = (t * 12 / samples, rng.normal::<f64>());
                let is_on = stage % h == source || stage % 4 == 3 && (stage + 1) % h == source;
                let loud = [0.1, 0.3, 0.01, 0.8, 0.0][stage % 5];
                for m in 0..self.microphones {
                    let late = t as f64 + 4.0 + m as f64 * (delay + moved);
                    let (at, part) = (late.floor() as usize, late.fract());
                    for (at, part) in [(at, 1.0 - part), (at + 1, part)] {
                        if let Some(y) = recording.get_mut(at * self.microphones + m).filter(|_| is_on) {
                            *y += loud * part * noise;
                        }
                    }
                }
            }
        }
        recording.iter().map(|y| y.clamp(-1.0, 1.0) as f32).collect()
    }
}

/// The Cholesky factor of (1 - ECHO) a a^H + ECHO I, a_m = e^{-i m angle}, as blobs have it.
fn factor(d: usize, angle: f64) -> Vec<f64> {
    let mut f: Vec<Vec<Complex>> = vec![vec![[0.0; 2]; d]; d];
    for i in 0..d {
        for j in 0..=i {
            let turn = (i - j) as f64 * angle;
            let mut sum: Complex = [(1.0 - ECHO) * turn.cos(), -(1.0 - ECHO) * turn.sin()];
            sum[0] += if i == j { ECHO } else { 0.0 };
            for (&[a, b], &[c, e]) in f[i].iter().zip(&f[j]).take(j) {
                sum = [sum[0] - a * c - b * e, sum[1] - b * c + a * e];
            }
            f[i][j] = match i == j {
                true => [sum[0].sqrt(), 0.0],
                false => sum.map(|x| x / f[j][j][0]),
            };
        }
    }
    let row = |i: usize| (0..i).flat_map(move |j| [(i, j, 0), (i, j, 1)]).chain([(i, i, 0)]);
    (0..d).flat_map(row).map(|(i, j, part)| f[i][j][part]).collect()
}

/// A blob of sections.
fn assemble(kind: [u8; 2], shape: [u32; 2], sections: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0u8; HEADER_LEN];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..18].copy_from_slice(&kind);
    bytes[24..28].copy_from_slice(&shape[0].to_le_bytes());
    bytes[28..32].copy_from_slice(&shape[1].to_le_bytes());
    bytes[40..44].copy_from_slice(&(sections.len() as u32).to_le_bytes());
    let mut offset = HEADER_LEN + ENTRY_LEN * sections.len();
    for (tag, content) in sections {
        bytes.extend(*tag);
        bytes.extend((offset as u32).to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        offset += content.len().next_multiple_of(ALIGN);
    }
    for (_, content) in sections {
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    }
    let len = (bytes.len() as u32).to_le_bytes();
    bytes[8..12].copy_from_slice(&len);
    let crc = crc32(&bytes[16..]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    bytes
}
