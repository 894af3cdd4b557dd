//! Images of objects that hide each other: what they are made of, and where everything is.

use spikelet::frame::Form;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Points, Sheet};
use spikelet_trainer::{Error, Result};
use std::f64::consts::TAU;
use std::path::Path;

/// Objects have SIDE x SIDE pixels, images CANVAS x CANVAS.
pub const SIDE: usize = 10;
pub const CANVAS: usize = 30;
const SIZE: usize = SIDE * SIDE;
/// How likely an object is in an image.
pub const PRESENT: f64 = 0.2;
/// Noise on the pixels of an image, whose objects are 0.3 to 1 bright.
pub const NOISE: f64 = 0.02;

/// What an object looks like: brightness where it is opaque, `None` elsewhere.
pub type Looks = Vec<Option<f64>>;

/// An object at a row and column.
#[derive(Clone, Copy)]
pub struct Spot {
    pub object: usize,
    pub row: usize,
    pub column: usize,
    /// How much of what is opaque of it can be seen, 0 to 1.
    pub visible: f64,
}

/// Images and what is in each.
pub struct Scenes {
    /// (N x CANVAS^2)
    pub images: Vec<f64>,
    pub spots: Vec<Vec<Spot>>,
}

impl Scenes {
    /// So many images of these objects, each present with the same probability, at random places and depths, on black.
    pub fn new(objects: &[Looks], count: usize, rng: &mut Rng) -> Self {
        let (mut images, mut spots) = (Vec::new(), Vec::new());
        let places = CANVAS + 1 - SIDE;
        for _ in 0..count {
            let mut here: Vec<(f64, Spot)> = Vec::new();
            for object in 0..objects.len() {
                if rng.uniform::<f64>() < PRESENT {
                    let [row, column] = [(); 2].map(|()| (rng.uniform::<f64>() * places as f64) as usize);
                    here.push((rng.uniform(), Spot { object, row, column, visible: 0.0 }));
                }
            }
            here.sort_by(|a, b| a.0.total_cmp(&b.0));
            // From the back to the front.
            let mut owners: Vec<Option<(usize, f64)>> = vec![None; CANVAS * CANVAS];
            for (at, (_, spot)) in here.iter().enumerate() {
                for (j, brightness) in objects[spot.object].iter().enumerate() {
                    if let Some(brightness) = brightness {
                        let i = (spot.row + j / SIDE) * CANVAS + spot.column + j % SIDE;
                        owners[i] = Some((at, *brightness));
                    }
                }
            }
            for (at, (_, spot)) in here.iter_mut().enumerate() {
                let seen = owners.iter().flatten().filter(|owner| owner.0 == at).count();
                spot.visible = seen as f64 / objects[spot.object].iter().flatten().count() as f64;
            }
            images.extend(owners.iter().map(|o| o.map_or(0.0, |o| o.1) + NOISE * rng.normal::<f64>()));
            spots.push(here.into_iter().map(|(_, spot)| spot).collect());
        }
        Self { images, spots }
    }
}

/// Whether a pixel belongs to a disc, a square, a diamond or a wedge.
fn is_opaque(shape: usize, j: usize) -> bool {
    let middle = (SIDE - 1) as f64 / 2.0;
    let (y, x) = ((j / SIDE) as f64 - middle, (j % SIDE) as f64 - middle);
    match shape % 4 {
        0 => x * x + y * y <= 5.1 * 5.1,
        1 => true,
        2 => x.abs() + y.abs() <= 5.5,
        _ => x.abs() <= 0.5 + 0.5 * (y + middle),
    }
}

/// Brightness between 0.3 and 1.
fn stretched(values: &[f64]) -> Vec<f64> {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    values.iter().map(|v| 0.3 + 0.7 * (v - low) / (high - low).max(1e-9)).collect()
}

/// A rectangle of a picture, averaged down to SIDE x SIDE pixels.
fn shrunk(picture: &[f64], width: usize, [left, top, wide, high]: [usize; 4]) -> Vec<f64> {
    let cell = |j: usize| {
        let span = |at: usize, extent: usize| {
            let first = at * extent / SIDE;
            first..((at + 1) * extent / SIDE).max(first + 1)
        };
        let (rows, columns) = (span(j / SIDE, high), span(j % SIDE, wide));
        let count = (rows.len() * columns.len()) as f64;
        let row = |y: usize| columns.clone().map(|x| picture[(top + y) * width + left + x]).sum::<f64>();
        rows.map(row).sum::<f64>() / count
    };
    (0..SIZE).map(cell).collect()
}

/// So many objects: of textures that are made, in four shapes.
pub fn made(count: usize, rng: &mut Rng) -> Vec<Looks> {
    let mut object = |shape: usize| {
        let waves: Vec<[f64; 4]> = (0..4)
            .map(|_| {
                let [u, v] = [(); 2].map(|()| 1.5 * rng.normal::<f64>());
                [u, v, TAU * rng.uniform::<f64>(), 0.5 + rng.uniform::<f64>()]
            })
            .collect();
        let value = |j: usize| {
            let (y, x) = ((j / SIDE) as f64 / SIDE as f64, (j % SIDE) as f64 / SIDE as f64);
            waves.iter().map(|[u, v, phase, height]| height * (TAU * (u * x + v * y) + phase).cos()).sum()
        };
        let values: Vec<f64> = (0..SIZE).map(value).collect();
        stretched(&values).into_iter().enumerate().map(|(j, v)| is_opaque(shape, j).then_some(v)).collect()
    };
    (0..count).map(&mut object).collect()
}

/// So many objects: half of them the middles of pictures, in four shapes, half of them digits cut out along their strokes. The folder holds
/// `images/*.png`, `digits/mnist28x28_x.npy` and `digits/mnist28x28_y.npy`.
pub fn read(folder: &Path, count: usize) -> Result<Vec<Looks>> {
    let mut names: Vec<_> = std::fs::read_dir(folder.join("images"))
        .map_err(|error| Error::input(error, folder.display(), "give a folder with images/ and digits/"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .collect();
    names.sort();
    let mut objects: Vec<Looks> = Vec::new();
    for (shape, name) in names.iter().take(count / 2).enumerate() {
        let sheet = Sheet::read(name, Form::Patches { width: 1, height: 1, colours: 1 })?;
        let planes = sheet.planes.len() as f64;
        let grey: Vec<f64> = (0..sheet.width * sheet.height)
            .map(|i| sheet.planes.iter().map(|plane| plane[i]).sum::<f64>() / planes)
            .collect();
        let extent = sheet.width.min(sheet.height) / 2;
        let corner = [(sheet.width - extent) / 2, (sheet.height - extent) / 2];
        let values = stretched(&shrunk(&grey, sheet.width, [corner[0], corner[1], extent, extent]));
        objects.push(values.into_iter().enumerate().map(|(j, v)| is_opaque(shape, j).then_some(v)).collect());
    }
    let digits = Points::read(folder.join("digits/mnist28x28_x.npy"))?;
    let labels = spikelet_trainer::data::read_array(folder.join("digits/mnist28x28_y.npy"))?.values;
    for class in 0..count - objects.len() {
        let Some(n) = labels.iter().position(|label| *label == (class % 10) as f64) else { continue };
        let digit = digits.point(n);
        let inked = |i: &usize| digit[*i] > 60.0;
        let bounds = |place: fn(usize) -> usize| {
            let places = (0..digit.len()).filter(inked).map(place);
            places.fold((usize::MAX, 0), |(low, high), at| (low.min(at), high.max(at + 1)))
        };
        let ((left, right), (top, bottom)) = (bounds(|i| i % 28), bounds(|i| i / 28));
        let values = shrunk(digit, 28, [left, top, right - left, bottom - top]);
        objects.push(values.iter().map(|v| (*v > 60.0).then_some(0.3 + 0.7 * v / 255.0)).collect());
    }
    Ok(objects)
}
