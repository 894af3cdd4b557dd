//! Pictures with missing pixels, of which a mask tells.

use super::Train;
use crate::data::{Pieces, Sheet};
use crate::pictures::Mask;
use crate::train::Points;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use std::path::Path;

impl Train {
    /// The picture and its mask, where there is one.
    pub(super) fn mask(&self) -> Result<Option<(Sheet, Mask)>> {
        let Some(mask) = &self.mask else { return Ok(None) };
        let [path] = self.data.as_slice() else {
            let advice = "train on one picture, or leave the mask out";
            return Err(Error::input("a mask is that of one picture", "--mask", advice));
        };
        if self.framing.is_of_recordings() {
            let advice = "leave it out, or train on patches of a picture";
            return Err(Error::input("recordings have no mask", "--mask", advice));
        }
        let picture = Sheet::read(path, Form::Patches { width: 1, height: 1, colours: 1 })?;
        let mask = Mask::read(mask, &picture, path)?;
        Ok(Some((picture, mask)))
    }

    /// Patches with what is missing of them.
    pub(super) fn masked_points(&self, frame: Option<&Frame>, step: usize) -> Result<Option<Points>> {
        let Some((picture, mask)) = self.mask()? else { return Ok(None) };
        let Some(frame) = frame.filter(|frame| matches!(frame.form, Form::Patches { .. })) else {
            let advice = "add --patch auto, or leave it out";
            return Err(Error::input("there are no patches", "--mask", advice));
        };
        let path = self.data.first().map_or(Path::new("the picture"), |path| path.as_path());
        let too_small =
            |what: String| Error::input(what, path.display(), "give a larger one, or smaller patches");
        let pieces = Pieces::new(mask.filled(&picture), frame, step).map_err(too_small)?;
        let mut values = Vec::new();
        pieces.read(0, pieces.len(), &mut values);
        let holes = mask.holes(frame, step).map_err(too_small)?;
        Ok(Some(Points::with_holes(values, pieces.dims(), holes)))
    }
}
