//! Overlapping pieces of a picture or recording as points, and the way back.
//!
//! A piece is a rectangle, its pixels row by row; a window of a recording has one row. Pieces begin every `step` pixels and at
//! the far edge, so that every pixel is in one at least if the step is no larger than a piece. Plane after plane, row after row
//! they are the points of the sheet; or a piece has all planes, one after the other, where colours belong together. A frame may
//! take the mean of each plane off: light and shade of a patch say nothing about what is on it, and a latent spent on them is
//! missing elsewhere.
//!
//! Back again: every pixel is the mean of what the pieces it lies in make of it, weighted by how sure each is.

use super::sheet::{Kind, Sheet};
use crate::error::{Error, Result};
use spikelet::frame::{Form, Frame};
use spikelet::{Estimate, Model};
use std::ops::Range;
use std::path::Path;

/// A sheet cut into pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    sheet: Sheet,
    width: usize,
    height: usize,
    /// Planes that a piece has.
    colours: usize,
    centred: bool,
    /// Where pieces begin, by column and by row.
    columns: Vec<usize>,
    rows: Vec<usize>,
}

impl Pieces {
    /// Opens a file as the frame says, with a piece every `step` pixels (windows have their hop). Fails when the file is
    /// smaller than a piece. A frame of samples has no pieces.
    pub fn open(path: impl AsRef<Path>, frame: &Frame, step: usize) -> Result<Self> {
        let path = path.as_ref();
        Self::new(Sheet::read(path, frame.form)?, frame, step).map_err(|what| {
            Error::input(what, path.display(), "give a larger one, or a model of smaller pieces")
        })
    }

    /// Cuts a sheet; the error says what does not fit.
    pub fn new(sheet: Sheet, frame: &Frame, step: usize) -> Result<Self, String> {
        let (width, height, step, colours) = match frame.form {
            Form::Windows { length, hop } => (length as usize, 1, hop as usize, 1),
            Form::Patches { width, height, colours } => {
                (width as usize, height as usize, step, usize::from(colours.max(1)))
            }
            _ => return Err("points of single samples are not cut from anything".into()),
        };
        if colours > 1 && sheet.planes.len() != colours {
            return Err(format!("{} colours where patches have {colours}", sheet.planes.len()));
        }
        if sheet.width < width || sheet.height < height {
            return Err(match sheet.kind {
                Kind::Recording(_) => {
                    format!("{} samples are less than a window of {width}", sheet.width)
                }
                _ => format!(
                    "{} x {} pixels are less than a patch of {width} x {height}",
                    sheet.width, sheet.height
                ),
            });
        }
        let (columns, rows) = (begins(sheet.width, width, step), begins(sheet.height, height, step));
        Ok(Self { sheet, width, height, colours, centred: frame.centred, columns, rows })
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.sheet.planes.len() / self.colours * self.rows.len() * self.columns.len()
    }

    /// Never: a sheet holds a piece at least.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of a piece.
    pub fn dims(&self) -> usize {
        self.colours * self.width * self.height
    }

    /// What is cut.
    pub fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// Appends `count` pieces from number `start` on.
    pub fn read(&self, start: usize, count: usize, out: &mut Vec<f64>) {
        for number in start..start + count {
            let (planes, corner) = self.place(number);
            for plane in &self.sheet.planes[planes] {
                let first = out.len();
                for row in 0..self.height {
                    out.extend_from_slice(&plane[corner + row * self.sheet.width..][..self.width]);
                }
                if self.centred {
                    let mean = mean(&out[first..]);
                    out[first..].iter_mut().for_each(|value| *value -= mean);
                }
            }
        }
    }

    /// The planes of a piece and where in them its first pixel is.
    fn place(&self, number: usize) -> (Range<usize>, usize) {
        let (row, column) = (number / self.columns.len(), number % self.columns.len());
        let (plane, row) = (row / self.rows.len(), row % self.rows.len());
        let planes = plane * self.colours..(plane + 1) * self.colours;
        (planes, self.rows[row] * self.sheet.width + self.columns[column])
    }

    /// The mean of a piece in a plane where it was taken off, else 0.
    fn taken_off(&self, plane: &[f64], corner: usize) -> f64 {
        if !self.centred {
            return 0.0;
        }
        let rows = (0..self.height).flat_map(|row| &plane[corner + row * self.sheet.width..][..self.width]);
        rows.sum::<f64>() / (self.width * self.height) as f64
    }
}

/// Every `step`, and at the far edge.
fn begins(extent: usize, size: usize, step: usize) -> Vec<usize> {
    let last = extent - size;
    (0..last).step_by(step.max(1)).chain([last]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Puts what became of pieces together again.
#[derive(Clone, Debug)]
pub struct Mosaic<'a> {
    pieces: &'a Pieces,
    sums: Vec<Vec<f64>>,
    weights: Vec<Vec<f64>>,
}

impl<'a> Mosaic<'a> {
    /// Nothing put in yet.
    pub fn new(pieces: &'a Pieces) -> Self {
        let size = pieces.sheet.width * pieces.sheet.height;
        let planes = pieces.sheet.planes.len();
        Self { pieces, sums: vec![vec![0.0; size]; planes], weights: vec![vec![0.0; size]; planes] }
    }

    /// How much a piece counts among those that it overlaps: one over its posterior variance, which is (1 + sum_h G_hh var_h)
    /// sigma^2 / D where columns are about orthogonal; the 1 stands for its mean. Of maximal causes all count alike.
    pub fn weight(model: &Model<'_, f32>, variance: &[f32]) -> f32 {
        if model.shape.kind.is_maximal() {
            return 1.0;
        }
        Self::over(variance.iter().zip(model.gram_diagonal).map(|(v, g)| v * g).sum::<f32>())
    }

    /// The same with what the candidates have in common, sum_hj G_hj cov_hj: latents that stand for one another are far less
    /// unsure together than each is. Needs second moments and a model with its Gram matrix; without them it is
    /// [`Mosaic::weight`].
    pub fn joint_weight(model: &Model<'_, f32>, estimate: &Estimate<'_, f32>) -> f32 {
        let (Some(gram), false) = (model.gram, estimate.second.is_empty()) else {
            return Self::weight(model, estimate.variance);
        };
        let mut spread = estimate.variance.iter().zip(model.gram_diagonal).map(|(v, g)| v * g).sum::<f32>();
        let latents = estimate.selected.iter().map(|&latent| usize::from(latent));
        for (a, i) in latents.clone().enumerate() {
            for (b, j) in latents.clone().enumerate().take(a) {
                let (high, low) = (i.max(j), i.min(j));
                let common =
                    estimate.second[a * estimate.selected.len() + b] - estimate.mean[i] * estimate.mean[j];
                spread += 2.0 * common * gram[high * (high + 1) / 2 + low];
            }
        }
        Self::over(spread.max(0.0))
    }

    fn over(spread: f32) -> f32 {
        if spread.is_finite() { 1.0 / (1.0 + spread) } else { 1.0 }
    }

    /// Puts in pieces one after the other from number `start` on, with a weight each; means that were taken off come back.
    pub fn add(&mut self, start: usize, values: &[f32], weights: &[f32]) {
        let pieces = self.pieces;
        for ((number, piece), &weight) in (start..).zip(values.chunks_exact(pieces.dims())).zip(weights) {
            let (planes, corner) = pieces.place(number);
            let weight = f64::from(weight);
            for (plane, part) in planes.zip(piece.chunks_exact(pieces.width * pieces.height)) {
                let mean = pieces.taken_off(&pieces.sheet.planes[plane], corner);
                let (sums, totals) = (&mut self.sums[plane], &mut self.weights[plane]);
                for (row, line) in part.chunks_exact(pieces.width).enumerate() {
                    let at = corner + row * pieces.sheet.width;
                    for ((sum, total), &value) in sums[at..].iter_mut().zip(&mut totals[at..]).zip(line) {
                        *sum += weight * (f64::from(value) + mean);
                        *total += weight;
                    }
                }
            }
        }
    }

    /// The whole; pixels that nothing was put on stay as they were.
    pub fn finish(self) -> Sheet {
        let mut sheet = self.pieces.sheet.clone();
        for ((plane, sums), weights) in sheet.planes.iter_mut().zip(&self.sums).zip(&self.weights) {
            for ((value, sum), &weight) in plane.iter_mut().zip(sums).zip(weights) {
                if weight > 0.0 {
                    *value = sum / weight;
                }
            }
        }
        sheet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(width: usize, height: usize) -> Sheet {
        let plane = |p: usize| (0..width * height).map(|i| ((i * 7 + p * 5) % 11) as f64).collect();
        let kind = Kind::Array { colours: true };
        Sheet { kind, width, height, planes: (0..2).map(plane).collect() }
    }

    fn frame(width: u32, height: u32, centred: bool) -> Frame {
        Frame { form: Form::Patches { width, height, colours: 1 }, rate: 0, centred }
    }

    #[test]
    fn pieces_are_rectangles_of_the_planes() {
        let pieces = Pieces::new(sheet(5, 4), &frame(3, 2, false), 2).unwrap();
        // Columns 0 and 2, rows 0 and 2.
        assert_eq!((pieces.len(), pieces.dims()), (2 * 2 * 2, 6));
        let mut out = Vec::new();
        pieces.read(3, 2, &mut out);
        let plane = &pieces.sheet().planes;
        assert_eq!(
            out[..6],
            [plane[0][12], plane[0][13], plane[0][14], plane[0][17], plane[0][18], plane[0][19]]
        );
        assert_eq!(out[6..9], plane[1][..3]);
    }

    #[test]
    fn every_pixel_comes_back_whatever_the_step() {
        for (width, height, centred, step) in
            [(3, 2, true, 1), (3, 2, false, 2), (4, 4, true, 3), (1, 1, true, 1)]
        {
            let pieces = Pieces::new(sheet(10, 9), &frame(width, height, centred), step).unwrap();
            let (mut mosaic, mut out) = (Mosaic::new(&pieces), Vec::new());
            pieces.read(0, pieces.len(), &mut out);
            let values: Vec<f32> = out.iter().map(|&value| value as f32).collect();
            // Whatever the weights: all pieces agree.
            let weights: Vec<f32> = (0..pieces.len()).map(|i| 0.5 + (i % 3) as f32).collect();
            mosaic.add(0, &values, &weights);
            assert!(mosaic.weights.iter().flatten().all(|&weight| weight > 0.0));
            let back = mosaic.finish();
            for (a, b) in back.planes.iter().flatten().zip(pieces.sheet().planes.iter().flatten()) {
                assert!((a - b).abs() < 1e-5, "{a} {b}");
            }
        }
    }

    #[test]
    fn colours_come_together_and_back() {
        let together = |colours: u16| Frame {
            form: Form::Patches { width: 3, height: 2, colours },
            rate: 0,
            centred: true,
        };
        let pieces = Pieces::new(sheet(5, 4), &together(2), 1).unwrap();
        assert_eq!((pieces.len(), pieces.dims()), (3 * 3, 12));
        let mut out = Vec::new();
        pieces.read(0, pieces.len(), &mut out);
        // Every colour of every piece has lost its own mean.
        assert!(out.chunks_exact(6).all(|part| mean(part).abs() < 1e-12));
        let values: Vec<f32> = out.iter().map(|&value| value as f32).collect();
        let mut mosaic = Mosaic::new(&pieces);
        mosaic.add(0, &values, &[1.0; 9]);
        let back = mosaic.finish();
        for (a, b) in back.planes.iter().flatten().zip(pieces.sheet().planes.iter().flatten()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        assert!(Pieces::new(sheet(5, 4), &together(3), 1).unwrap_err().contains("2 colours"));
    }

    #[test]
    fn the_mean_is_taken_off_every_piece() {
        let pieces = Pieces::new(sheet(6, 6), &frame(4, 4, true), 1).unwrap();
        let mut out = Vec::new();
        pieces.read(0, pieces.len(), &mut out);
        assert!(out.chunks_exact(16).all(|piece| mean(piece).abs() < 1e-12));
    }

    #[test]
    fn windows_of_a_recording_begin_every_hop() {
        let recording = Sheet { kind: Kind::Recording(8000), height: 1, width: 10, ..sheet(10, 1) };
        let frame = Frame { form: Form::Windows { length: 4, hop: 3 }, rate: 8000, centred: false };
        let pieces = Pieces::new(recording, &frame, 1).unwrap();
        assert_eq!((pieces.columns.clone(), pieces.len()), (vec![0, 3, 6], 6));
        let wide = Frame { form: Form::Windows { length: 11, hop: 3 }, ..frame };
        assert!(Pieces::new(sheet(10, 1), &wide, 1).unwrap_err().contains("10 x 1 pixels"));
    }
}
