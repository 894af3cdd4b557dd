//! Pictures where no flag says how they are cut up or how much is learned: what suits their noise is chosen, and told.

use super::Train;
use crate::commands::framing::Patch;
use crate::commands::output::note;
use crate::data::{Sheet, Source};
use crate::files::ending;
use crate::pictures::Sizes;
use crate::{Error, Result};
use spikelet::frame::Form;
use std::path::Path;

impl Train {
    /// Fills in sizes that flags leave open, where the data are pictures.
    pub(super) fn choose_sizes(&mut self) -> Result<()> {
        let is_picture = |path: &Path| ending(path).as_deref() == Some("png");
        // Where flags are missing, a file that cannot be read is told first.
        if !self.plan.is_complete() && !self.plan.is_spatial() {
            for path in self.data.iter().filter(|path| !path.is_dir() && !is_picture(path)) {
                Source::open(path)?;
            }
        }
        let patch = self.framing.patch();
        let all_pictures = self.data.iter().all(|path| is_picture(path));
        if patch.is_none() && (!all_pictures || self.framing.is_of_recordings()) {
            return Ok(());
        }
        // The size does not matter to whoever reads all of it.
        let form = Form::Patches { width: 8, height: 8, colours: 1 };
        let pictures = self.data.iter().map(|path| Sheet::read(path, form)).collect::<Result<Vec<_>>>()?;
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
        let sizes = Sizes::of(&pictures, side);
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
}
