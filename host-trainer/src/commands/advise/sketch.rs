//! A model learned from a part of a recording in less than a second: what a device has to do depends on how often sources are on,
//! how loud they are and how much noise there is, which no model of the same shape alone can tell.

use super::choose::Choice;
use super::look::Band;
use crate::Result;
use crate::data::Source;
use crate::parameters::Parameters;
use crate::train::settings::{Engine, InitForm, NoiseForm, SlabForm};
use crate::train::weak::Weak;
use crate::train::{Next, Points, Settings, State};
use spikelet::frame::Form;
use std::path::{Path, PathBuf};

/// Points that are learned from, spread over the recording, and of how many latents that takes no time.
const POINTS: usize = 4000;
const MOST_LATENTS: usize = 16;
const ITERATIONS: usize = 40;
const STARTS: usize = 2;

/// Parameters that stand for those of the trained model, and the recording that they are of.
#[derive(Debug)]
pub(super) struct Sketch {
    pub parameters: Parameters,
    pub gains: Vec<f32>,
    pub path: PathBuf,
}

impl Sketch {
    /// For a choice of a transform of this recording; nothing for other data, and where training takes long.
    pub fn of(path: &Path, choice: &Choice) -> Result<Option<Self>> {
        let Form::Transform { bins, channels } = choice.form else { return Ok(None) };
        if choice.latents > MOST_LATENTS {
            return Ok(None);
        }
        let Band { mut framed, gains, .. } = Band::of(path, &Source::open(path)?, choice.rate, bins)?;
        let all = framed.points();
        let (mut values, mut point) = (Vec::new(), Vec::new());
        let taken = all.min(POINTS);
        for n in 0..taken {
            framed.read_chunk(n * all / taken, 1, &mut point)?;
            values.extend_from_slice(&point);
        }
        if values.iter().all(|&y| y == 0.0) {
            return Ok(None);
        }
        let mut points = Points::new(values, choice.dims);
        let mut state = State::new(settings(choice, channels as usize), &mut points)?;
        state.run(&mut points, 1, |_| Ok(Next::Continue))?;
        Ok(Some(Self { parameters: state.model(), gains, path: path.to_path_buf() }))
    }
}

/// As `train` has them for a recording.
fn settings(choice: &Choice, channels: usize) -> Settings {
    let is_determined = (2..=channels).contains(&choice.latents);
    let by_default = Settings::new(choice.kind, choice.latents);
    let is_exact = choice.selected == choice.latents && choice.max_active == choice.latents;
    Settings {
        engine: if is_exact { Engine::Exact } else { Engine::Truncated },
        selected: choice.selected,
        max_active: choice.max_active,
        slab: SlabForm::Unit,
        noise: if is_determined { NoiseForm::Full } else { NoiseForm::Shared },
        weak: if is_determined { Weak::Sources } else { Weak::Noise },
        init: InitForm::Lines,
        iterations: ITERATIONS,
        restarts: STARTS,
        tolerance: 1e-5,
        ..by_default
    }
}
