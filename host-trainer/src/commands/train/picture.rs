//! Pictures where no flag says how they are cut up or how much is learned: what suits their noise is chosen, and told.

mod trial;

use super::Train;
use crate::commands::framing::Patch;
use crate::commands::output::{Progress, note};
use crate::data::{Sheet, Source};
use crate::files::ending;
use crate::parameters::ModelKind;
use crate::pictures::Sizes;
use crate::{Error, Result};
use spikelet::frame::Form;
use std::path::Path;
use trial::Divided;

impl Train {
    /// Fills in sizes that flags leave open, where the data are pictures.
    pub(super) fn choose_sizes(&mut self) -> Result<()> {
        let is_picture = |path: &Path| ending(path).as_deref() == Some("png");
        let patch = self.framing.patch();
        // Where flags are missing, a file that cannot be read is told first; a picture is read below, with its colours.
        if !self.plan.is_complete() && !self.plan.is_spatial() && patch.is_none() {
            for path in self.data.iter().filter(|path| !path.is_dir() && !is_picture(path)) {
                Source::open(path)?;
            }
        }
        let all_pictures = self.data.iter().all(|path| is_picture(path));
        if patch.is_none() && (!all_pictures || self.framing.is_of_recordings()) {
            return Ok(());
        }
        // The size does not matter to whoever reads all of it.
        let form = Form::Patches { width: 8, height: 8, colours: 1 };
        let pictures = match self.mask()? {
            Some((picture, mask)) => vec![mask.punched(&picture)],
            None => self.data.iter().map(|path| Sheet::read(path, form)).collect::<Result<Vec<_>>>()?,
        };
        let planes = |picture: &Sheet| picture.planes.len();
        // Of pictures in grey and in colour each colour is one by itself.
        let first = pictures.first().map_or(1, planes);
        let planes = if pictures.iter().all(|picture| planes(picture) == first) { first } else { 1 };
        self.framing.set_planes(planes);
        let side = match patch {
            Some(Patch::Size(..)) if self.plan.is_complete() => return Ok(()),
            _ if !self.plan.suits_pictures() => {
                return match patch {
                    Some(Patch::Size(..)) => Ok(()),
                    _ => {
                        let what = "sizes of patches are chosen for gsc only";
                        let advice = "say --patch 8x8, or another size, or use --model gsc";
                        Err(Error::input(what, "--patch", advice))
                    }
                };
            }
            Some(Patch::Size(width, height)) => Some(width.max(height)),
            Some(Patch::Auto) | None => None,
        };
        let sizes = match side {
            Some(side) if self.mask.is_some() => Sizes::with_holes(&pictures, Some(side)),
            None if self.mask.is_some() => Sizes::with_holes(&pictures, None),
            Some(side) => Sizes::of(&pictures, side),
            None => self.try_sizes(&pictures)?,
        };
        let mut chosen = Vec::new();
        if side.is_none() {
            self.framing.set_patch(sizes.side);
            chosen.push(format!("--patch {0}x{0}", sizes.side));
            if self.step.is_none() && sizes.step > 1 {
                self.step = Some(sizes.step);
                chosen.push(format!("--step {}", sizes.step));
            }
        }
        if self.plan.fill_in(&sizes) {
            chosen.push(format!("--latents {}", sizes.latents));
        }
        if chosen.is_empty() {
            return Ok(());
        }
        note(format_args!(
            "{} {} chosen, because the noise has a standard deviation of about {:.3} and the picture without it one of {:.3}",
            chosen.join(" "),
            if chosen.len() == 1 { "was" } else { "were" },
            sizes.noise,
            sizes.contrast,
        ));
        Ok(())
    }

    /// The candidate that does best on these pictures.
    fn try_sizes(&mut self, pictures: &[Sheet]) -> Result<Sizes> {
        let candidates = Sizes::candidates(pictures);
        let first = candidates[0];
        // Without noise there is none to divide.
        if candidates.len() == 1 || first.noise == 0.0 {
            return Ok(first);
        }
        let threads = self.threads();
        let divided = Divided::new(pictures, first.noise, self.plan.seed);
        let mut progress = Progress::new("trying sizes of patches", candidates.len());
        let mut tried: Vec<(f64, Sizes)> = Vec::new();
        for sizes in candidates {
            self.framing.set_patch(sizes.side);
            let Some(frame) = self.framing.frame(ModelKind::Gsc, 0, || Ok(1))? else { return Ok(first) };
            let risk = divided.risk(&sizes, &frame, threads, self.plan.seed)?;
            tried.push((risk, sizes));
            progress.advance(1);
            // Larger ones are worse still.
            if tried.len() > 1 && tried.iter().all(|(other, _)| risk >= *other) {
                break;
            }
        }
        drop(progress);
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        let names = tried.iter().map(|(_, sizes)| format!("{0}x{0}", sizes.side)).collect::<Vec<_>>();
        note(format_args!(
            "patches were tried, with a part of the noise set aside; best first: {}",
            names.join(", ")
        ));
        Ok(tried.first().map_or(first, |(_, sizes)| *sizes))
    }
}
