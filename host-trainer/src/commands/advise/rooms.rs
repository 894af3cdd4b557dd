//! What a spatial model would cost, before anything is trained: a stand-in of the same sizes is predicted.

use super::fit::{Cost, Limits};
use crate::Result;
use crate::commands::model_file::ModelFile;
use crate::predict::{Core, rooms};
use crate::spatial::{Room, Settings};
use spikelet::frame::{Form, Frame};
use spikelet::spatial::{Constants, record_len};

/// Shortest frames that are advised: echoes must fit in.
const SHORTEST: usize = 256;

/// One choice of sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub microphones: usize,
    pub sources: usize,
    pub rate: u32,
    /// Samples of a frame; a hop is a quarter of it.
    pub length: usize,
    /// Covariances as integers of 16 bits: half of the flash.
    pub integers: bool,
}

impl Choice {
    /// Whether `train` takes this length by itself.
    pub fn is_usual(&self) -> bool {
        self.length == Settings::usual_length(self.rate)
    }

    /// Cholesky factors near the identity, all sources as likely; a hop takes the same work whatever they are.
    fn stand_in(&self) -> Vec<u8> {
        let (d, h) = (self.microphones, self.sources);
        let factor = (0..d).flat_map(|row| std::iter::repeat_n(0.1, 2 * row).chain([1.0]));
        let mut record: Vec<f32> = factor.cycle().take(h * d * d).collect();
        record.resize(record_len(d, h), 0.3);
        let settings = Settings::new(h, self.rate);
        let room = Room {
            microphones: d,
            sources: h,
            constants: Constants {
                off_level: settings.off_level as f32,
                context: settings.context as f32,
                floor: settings.floor as f32,
                microphone: 0,
            },
            following: 0.0,
            frame: Frame {
                form: Form::Fourier { length: self.length as u32, hop: self.length as u32 / 4 },
                rate: self.rate,
                centred: false,
            },
            records: record.repeat(self.length / 2 + 1),
            provenance: String::new(),
        };
        if self.integers { room.integers() } else { room.floats() }
    }

    fn cost(&self, core: Core) -> Result<Option<Cost>> {
        let bytes = self.stand_in();
        let file = ModelFile::new("the stand-in".into(), &bytes);
        let Some(model) = file.room()? else { return Ok(None) };
        let Some(hop) = rooms::predict(core, &model)? else { return Ok(None) };
        let instructions = [hop.instructions(), hop.worst];
        let hops = f64::from(self.rate) / model.hop() as f64;
        Ok(Some(Cost {
            instructions,
            of: "a hop",
            worst: "at worst",
            hertz: Some(instructions.map(|n| n * hops * core.cycles_per_instruction)),
            ram: hop.arena_bytes as u64 + u64::from(hop.stack_bytes),
            flash: u64::from(hop.text_bytes) + bytes.len() as u64,
            latency: Some((model.length() - 1) as f64 / f64::from(self.rate)),
        }))
    }
}

/// The first that fits, long frames in floats first, else the one that comes closest; no cost where none is known for this core.
pub(super) fn best(
    [microphones, sources]: [usize; 2],
    rate: u32,
    core: Core,
    limits: &Limits,
) -> Result<(Choice, Option<Cost>)> {
    let usual = Settings::usual_length(rate);
    let first = Choice { microphones, sources, rate, length: usual, integers: false };
    let mut closest: Option<(Choice, Cost)> = None;
    let lengths = std::iter::successors(Some(usual), |length| Some(length / 2));
    for length in lengths.take_while(|&length| length >= SHORTEST.min(usual)) {
        for integers in [false, true] {
            let choice = Choice { length, integers, ..first };
            let Some(cost) = choice.cost(core)? else { return Ok((first, None)) };
            let tightest = cost.tightest(limits);
            if closest.as_ref().is_none_or(|(_, other)| tightest < other.tightest(limits)) {
                closest = Some((choice, cost));
            }
            if tightest <= 1.0 {
                return Ok((choice, Some(cost)));
            }
        }
    }
    Ok(closest.map_or((first, None), |(choice, cost)| (choice, Some(cost))))
}
