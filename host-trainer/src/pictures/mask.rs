//! Pixels that are missing from a picture.
//!
//! A mask is a picture of the same size, in grey for all colours or with as many colours, in which the missing pixels are not 0,
//! as OpenCV and scikit-image have it.

use crate::data::{Pieces, Sheet};
use crate::prepare::Holes;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};
use std::path::Path;

/// Rounds in which a first guess of missing pixels is smoothed.
const ROUNDS: usize = 60;

/// Which pixels are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Mask {
    /// 1 where a pixel is missing, else 0.
    sheet: Sheet,
}

impl Mask {
    /// Reads the mask of a picture that was read from `name`. Fails where it has another size, or nothing is known of the picture.
    pub fn read(path: &Path, picture: &Sheet, name: &Path) -> Result<Self> {
        let mut sheet = Sheet::read(path, Form::Patches { width: 1, height: 1, colours: 1 })?;
        let planes = picture.planes.len();
        let size = |sheet: &Sheet| (sheet.width, sheet.height);
        if size(&sheet) != size(picture) || ![1, planes].contains(&sheet.planes.len()) {
            let text = |sheet: &Sheet| {
                let colours = if sheet.planes.len() == 1 { "grey" } else { "colours" };
                format!("{} x {} pixels in {colours}", sheet.width, sheet.height)
            };
            let what = format!("the mask has {}, the picture {}", text(&sheet), text(picture));
            let place = format!("{} and {}", path.display(), name.display());
            return Err(Error::input(what, place, "give a mask of the same size"));
        }
        while sheet.planes.len() < planes {
            sheet.planes.push(sheet.planes[0].clone());
        }
        for value in sheet.planes.iter_mut().flatten() {
            *value = if *value == 0.0 { 0.0 } else { 1.0 };
        }
        let mask = Self { sheet };
        if let Some(plane) = mask.sheet.planes.iter().position(|plane| plane.iter().all(|&m| m == 1.0)) {
            let what = match planes {
                1 => "all pixels are missing".to_string(),
                _ => format!("all pixels of colour {plane} (counted from 0) are missing"),
            };
            let advice = "missing pixels are those that are not 0 in the mask: is it the wrong way round?";
            return Err(Error::input(what, path.display(), advice));
        }
        Ok(mask)
    }

    /// How many pixels are missing, of how many; colours are counted each.
    pub fn count(&self) -> (usize, usize) {
        let all = || self.sheet.planes.iter().flatten();
        (all().filter(|&&missing| missing == 1.0).count(), all().count())
    }

    /// Whether a pixel is missing.
    pub fn is_missing(&self, plane: usize, pixel: usize) -> bool {
        self.sheet.planes[plane][pixel] == 1.0
    }

    /// The picture with NaN where it is missing.
    pub fn punched(&self, picture: &Sheet) -> Sheet {
        self.changed(picture, |_, _| f64::NAN)
    }

    /// The picture with the known pixels of another.
    pub fn kept(&self, picture: &Sheet, known: &Sheet) -> Sheet {
        let mut picture = picture.clone();
        for (plane, values) in picture.planes.iter_mut().enumerate() {
            for (pixel, value) in values.iter_mut().enumerate().filter(|(i, _)| !self.is_missing(plane, *i)) {
                *value = known.planes[plane][pixel];
            }
        }
        picture
    }

    fn changed(&self, picture: &Sheet, to: impl Fn(usize, usize) -> f64) -> Sheet {
        let mut picture = picture.clone();
        for (plane, values) in picture.planes.iter_mut().enumerate() {
            for (pixel, value) in values.iter_mut().enumerate().filter(|(i, _)| self.is_missing(plane, *i)) {
                *value = to(plane, pixel);
            }
        }
        picture
    }

    /// The picture with a smooth guess of what is missing: from the known pixels outwards, then each the mean of its neighbours.
    /// Training begins with patches of it; what is learned and what is written does not depend on it otherwise.
    pub fn filled(&self, picture: &Sheet) -> Sheet {
        let (width, height) = (picture.width, picture.height);
        let mut filled = self.punched(picture);
        let mean_around = |plane: &[f64], i: usize| {
            let (x, y) = (i % width, i / width);
            let beside = [
                (x > 0).then(|| i - 1),
                (x + 1 < width).then_some(i + 1),
                (y > 0).then(|| i - width),
                (y + 1 < height).then_some(i + width),
            ];
            let known = beside.into_iter().flatten().map(|j| plane[j]).filter(|value| !value.is_nan());
            let (sum, count) = known.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        for (number, plane) in filled.planes.iter_mut().enumerate() {
            let missing: Vec<usize> = (0..plane.len()).filter(|&i| self.is_missing(number, i)).collect();
            let mut left = missing.clone();
            // There is a known pixel, so every round fills some.
            while !left.is_empty() {
                let found: Vec<_> = left.iter().filter_map(|&i| Some((i, mean_around(plane, i)?))).collect();
                found.iter().for_each(|&(i, value)| plane[i] = value);
                left.retain(|&i| plane[i].is_nan());
            }
            for _ in 0..ROUNDS {
                for &i in &missing {
                    plane[i] = mean_around(plane, i).unwrap_or(plane[i]);
                }
            }
        }
        filled
    }

    /// Which numbers of its patches are missing, cut as the frame says.
    pub fn holes(&self, frame: &Frame, step: usize) -> Result<Holes, String> {
        let pieces = Pieces::new(self.sheet.clone(), &Frame { centred: false, ..*frame }, step)?;
        let mut values = Vec::new();
        pieces.read(0, pieces.len(), &mut values);
        let planes = match frame.form {
            Form::Patches { colours, .. } if frame.centred => usize::from(colours.max(1)),
            _ => 0,
        };
        Ok(Holes { missing: values.iter().map(|&value| value == 1.0).collect(), planes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SheetKind;

    fn sheet(plane: Vec<f64>, width: usize) -> Sheet {
        let kind = SheetKind::Array { colours: false };
        Sheet { kind, width, height: plane.len() / width, planes: vec![plane] }
    }

    #[test]
    fn a_ramp_with_holes_is_filled_again() {
        let ramp = sheet((0..400).map(|i| (i % 20) as f64 + 2.0 * (i / 20) as f64).collect(), 20);
        // Inside, one pixel in three is missing.
        let inside = |i: usize| (1..19).contains(&(i % 20)) && (1..19).contains(&(i / 20));
        let holes = (0..400).map(|i| f64::from(u8::from(inside(i) && i % 3 == 0))).collect();
        let mask = Mask { sheet: sheet(holes, 20) };
        let filled = mask.filled(&mask.punched(&ramp));
        for (a, b) in filled.planes[0].iter().zip(&ramp.planes[0]) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        // Nothing that was known has changed, and what was not is replaced.
        let other = sheet(vec![7.0; 400], 20);
        let kept = mask.kept(&other, &ramp);
        let (missing, all) = mask.count();
        assert_eq!((all, kept.planes[0].iter().filter(|&&v| v == 7.0).count() >= missing), (400, true));
        assert!((0..400).all(|i| mask.is_missing(0, i) || kept.planes[0][i] == ramp.planes[0][i]));
    }

    #[test]
    fn holes_are_cut_as_patches_are() {
        let mask = Mask { sheet: sheet(vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 3) };
        let form = Form::Patches { width: 2, height: 2, colours: 1 };
        let holes = mask.holes(&Frame { form, rate: 0, centred: true }, 1).unwrap();
        let [no, yes] = [false, true];
        assert_eq!(holes, Holes { missing: vec![no, yes, no, no, yes, no, no, yes], planes: 1 });
    }
}
