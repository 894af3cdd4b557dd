//! Patches of natural pictures, prepared as the papers do.
//!
//! | name | what is done to each picture, or to the patches |
//! |---|---|
//! | pseudo | pseudo-whitening of 003 and 004 (after Olshausen and Field): filtered by f exp(-(f / f0)^4), f0 = 0.4 cycles a pixel (200 of 512) |
//! | dog | a difference of Gaussians (thesis 004, section 2.4), 1 and 3 pixels wide |
//! | whiten | the covariance of patches is taken to 1 |
//! | none | nothing |
//!
//! Then patches are cut at random places, lose their mean and are scaled to variance 1, flat ones are left out. For maximal
//! causes, [`split`] makes channels of what is above and below zero (thesis, section 3.4.3).

use spikelet::frame::Form;
use spikelet::rng::Rng;
use spikelet_trainer::data::Sheet;
use spikelet_trainer::train::whiten::Whitening;
use spikelet_trainer::{Error, Result};
use std::f64::consts::TAU;
use std::path::Path;

/// What can be done to pictures.
pub const PREPROCESSINGS: [&str; 4] = ["pseudo", "dog", "whiten", "none"];
/// Reach of a filter, in pixels.
const REACH: usize = 7;
/// Largest value of a patch in two channels.
const LARGEST: f64 = 10.0;

/// `count` patches of `side` x `side` pixels, drawn at random from all pictures of a folder. (N x side^2)
pub fn patches(
    folder: &Path,
    preprocessing: &str,
    (side, count): (usize, usize),
    rng: &mut Rng,
) -> Result<Vec<f64>> {
    let dims = side * side;
    let pictures = pictures(folder, preprocessing, side)?;
    let mut values = Vec::with_capacity(count * dims);
    let mut any = |n: usize| ((rng.uniform::<f64>() * n as f64) as usize).min(n - 1);
    let mut tried = 0;
    while values.len() < count * dims && tried < 20 * count {
        tried += 1;
        let (picture, width) = &pictures[any(pictures.len())];
        let (left, top) = (any(width + 1 - side), any(picture.len() / width + 1 - side));
        let pixel = |i: usize| picture[(top + i / side) * width + left + i % side];
        let mean = (0..dims).map(pixel).sum::<f64>() / dims as f64;
        let deviation = ((0..dims).map(|i| (pixel(i) - mean).powi(2)).sum::<f64>() / dims as f64).sqrt();
        // Flat ones are noise of the camera.
        if deviation > 2.0 {
            values.extend((0..dims).map(|i| (pixel(i) - mean) / deviation));
        }
    }
    if preprocessing == "whiten" {
        whiten(&mut values, dims);
    }
    Ok(values)
}

/// Twice as many dimensions: max(y, 0), then max(-y, 0); each point is scaled so that its largest is 10.
pub fn split(values: &[f64], dims: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(2 * values.len());
    for y in values.chunks_exact(dims) {
        let scale = LARGEST / y.iter().fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()));
        out.extend(y.iter().map(|v| scale * v.max(0.0)));
        out.extend(y.iter().map(|v| scale * (-v).max(0.0)));
    }
    out
}

/// All pictures of a folder (or of its subfolder `images`) that have room for a patch, filtered, and their widths.
fn pictures(folder: &Path, preprocessing: &str, side: usize) -> Result<Vec<(Vec<f64>, usize)>> {
    let inner = folder.join("images");
    let folder = if inner.is_dir() { inner.as_path() } else { folder };
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .map_err(|error| Error::input(error, folder.display(), "name a folder of pictures"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .collect();
    names.sort();
    let filter = match preprocessing {
        "pseudo" => Some(pseudo_whitening()),
        "dog" => Some(difference_of_gaussians()),
        _ => None,
    };
    let mut pictures = Vec::new();
    for name in names {
        let sheet = Sheet::read(&name, Form::Patches { width: 1, height: 1, colours: 1 })?;
        let planes = sheet.planes.len() as f64;
        let grey: Vec<f64> = (0..sheet.width * sheet.height)
            .map(|i| sheet.planes.iter().map(|plane| plane[i]).sum::<f64>() / planes)
            .collect();
        let picture = match &filter {
            Some(filter) => filtered(&grey, sheet.width, filter),
            None => (grey, sheet.width),
        };
        if picture.1 >= side && picture.0.len() / picture.1 >= side {
            pictures.push(picture);
        }
    }
    if pictures.is_empty() {
        return Err(Error::input("there is no picture", folder.display(), "name a folder with .png files"));
    }
    Ok(pictures)
}

fn whiten(values: &mut [f64], dims: usize) {
    let n = (values.len() / dims) as f64;
    let mut covariance = vec![0.0; dims * dims];
    for y in values.chunks_exact(dims) {
        for (row, a) in covariance.chunks_exact_mut(dims).zip(y) {
            row.iter_mut().zip(y).for_each(|(sum, b)| *sum += a * b / n);
        }
    }
    // Directions with a thousandth of the mean variance are noise: they shall not be blown up.
    (0..dims).for_each(|i| covariance[i * dims + i] += 1e-3);
    Whitening::new(&covariance, dims).apply(values);
}

/// f exp(-(f / 0.4)^4) at pixels around the middle, f in cycles a pixel.
fn pseudo_whitening() -> Vec<f64> {
    const STEPS: i32 = 32;
    let reach = REACH as i32;
    let at = |x: i32, y: i32| {
        let mut sum = 0.0;
        for (u, v) in (-STEPS..STEPS).flat_map(|u| (-STEPS..STEPS).map(move |v| (u, v))) {
            let (u, v) = ((f64::from(u) + 0.5) / 64.0, (f64::from(v) + 0.5) / 64.0);
            let f = u.hypot(v);
            sum += f * (-(f / 0.4).powi(4)).exp() * (TAU * (u * f64::from(x) + v * f64::from(y))).cos();
        }
        sum / f64::from(4 * STEPS * STEPS)
    };
    (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y))).map(|(x, y)| at(x, y)).collect()
}

/// A narrow Gaussian less one three times as wide, both of sum 1.
fn difference_of_gaussians() -> Vec<f64> {
    let reach = REACH as i32;
    let around = |width: f64| -> Vec<f64> {
        let value = |x: i32, y: i32| (-0.5 * f64::from(x * x + y * y) / (width * width)).exp();
        let all: Vec<f64> = (-reach..=reach)
            .flat_map(|y| (-reach..=reach).map(move |x| (x, y)))
            .map(|(x, y)| value(x, y))
            .collect();
        let sum: f64 = all.iter().sum();
        all.iter().map(|v| v / sum).collect()
    };
    around(1.0).iter().zip(around(3.0)).map(|(narrow, wide)| narrow - wide).collect()
}

/// A picture through a filter, without its margin, and its new width.
fn filtered(picture: &[f64], width: usize, filter: &[f64]) -> (Vec<f64>, usize) {
    let (height, size) = (picture.len() / width, 2 * REACH + 1);
    if width < size || height < size {
        return (Vec::new(), 1);
    }
    let (across, down) = (width - 2 * REACH, height - 2 * REACH);
    let mut out = vec![0.0; across * down];
    for (y, row) in out.chunks_exact_mut(across).enumerate() {
        for (k, weight) in filter.iter().enumerate() {
            let seen = &picture[(y + k / size) * width + k % size..][..across];
            row.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += weight * seen);
        }
    }
    (out, across)
}
