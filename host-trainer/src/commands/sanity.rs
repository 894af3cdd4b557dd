//! Data that a model cannot be learned from, or was not made for: refused where nothing can come of it, else told.

use super::output::{counted, warn};
use super::recover::recover;
use crate::parameters::{ModelKind, Parameters};
use crate::train::Points;
use crate::{Error, Result};
use spikelet::Blob;
use std::path::{Path, PathBuf};

/// Part of the power below zero from which a model without negative numbers is told of, and beyond which it is refused. Noise
/// about zero has a half.
const SOME_BELOW: f64 = 0.02;
const MUCH_BELOW: f64 = 0.25;

/// Of more numbers in a point no covariance is computed: it would have their square.
const MOST_DIMS: usize = 16_384;

/// Fewer points than numbers in a point are odd; from so many numbers on, they are most likely channels x time.
const TRANSPOSED: usize = 2048;

/// Amplitudes whose squares, or the inverse of these, are beyond numbers of 32 bits.
const LARGEST: f64 = 1e18;
const SMALLEST: f64 = 1e-18;

/// Amplitudes that differ by more than this factor (20 dB) are of another scale.
const OTHER_SCALE: f64 = 10.0;

/// Sums over all numbers of some data.
#[derive(Debug, Default)]
pub(super) struct Survey {
    count: usize,
    power: f64,
    /// Of the numbers below zero.
    below: f64,
    /// Whether all points are the same; unknown until there are two.
    constant: Option<bool>,
}

/// What is learned from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub paths: &'a [PathBuf],
    pub points: usize,
    pub dims: usize,
    /// Whether points are rows of a table, not pieces of recordings or pictures.
    pub are_rows: bool,
    /// Whether they are whitened first: then a model holds square roots of variances.
    pub are_whitened: bool,
}

impl Given<'_> {
    /// The file, or the first of several.
    fn place(&self) -> String {
        let first = self.paths.first().map_or(String::new(), |path| path.display().to_string());
        match self.paths.len() {
            0 | 1 => first,
            count => format!("{first} and {} more", count - 1),
        }
    }
}

impl Survey {
    /// Of all points.
    pub fn of(points: &mut Points) -> Result<Self> {
        let mut first = Vec::new();
        points.read(0, 1, &mut first)?;
        let sums = points.sum(3, |piece, sums| {
            let mut survey = Self { power: sums[0], below: sums[1], ..Self::default() };
            survey.add(piece);
            (sums[0], sums[1]) = (survey.power, survey.below);
            // Whether some point is not like the first.
            if sums[2] == 0.0 {
                sums[2] = f64::from(u8::from(!piece.chunks_exact(first.len()).all(|point| point == first)));
            }
        })?;
        let constant = (points.len() > 1).then_some(sums[2] == 0.0);
        Ok(Self { count: points.len() * points.dims(), power: sums[0], below: sums[1], constant })
    }

    pub fn add(&mut self, values: &[f64]) {
        self.count += values.len();
        for y in values {
            self.power += y * y;
            self.below += if *y < 0.0 { y * y } else { 0.0 };
        }
    }

    /// What is to be said before a model of this kind is learned from these points; an error where it cannot be.
    pub fn check_training(&self, kind: ModelKind, latents: usize, given: Given<'_>) -> Result<Vec<String>> {
        let Given { points, dims, .. } = given;
        if self.power == 0.0 {
            let advice = "check how it was recorded or saved: there is nothing to learn from";
            return Err(Error::input("all numbers are zero", given.place(), advice));
        }
        if !self.power.is_finite() {
            let what = "the numbers are so large that their squares overflow";
            return Err(Error::input(what, given.place(), "rescale the data"));
        }
        let level = (self.power / self.count.max(1) as f64).sqrt();
        if !given.are_whitened && !(SMALLEST..=LARGEST).contains(&level) {
            let what = format!("numbers of about {level:.0e} are beyond the variances that a model can hold");
            let advice = format!("rescale the data, for example by {:.0e}", 1.0 / level);
            return Err(Error::input(what, given.place(), advice));
        }
        let size = || format!("{} of {}", counted(points, "point"), counted(dims, "dimension"));
        if points < dims && dims >= TRANSPOSED && given.are_rows {
            let what = format!("{} are too few to learn from", size());
            let advice =
                "points are rows, so transpose the array if it is channels x time: numpy.save(NAME, x.T)";
            return Err(Error::input(what, given.place(), advice));
        }
        if dims > MOST_DIMS {
            let what = format!("{dims} numbers in a point are too many to learn from");
            return Err(Error::input(
                what,
                given.place(),
                format_args!("give points of {MOST_DIMS} at most"),
            ));
        }
        let mut said = Vec::new();
        if self.constant == Some(true) {
            let place = given.place();
            said.push(format!("{place}: all points are the same, so there is nothing to tell apart"));
        }
        if dims == 1 && latents > 1 && given.are_rows {
            said.push(
                "every point is a single number, so several latents cannot be told apart: a signal in one channel is for a \
                 .wav and --frame or --transform spectrum"
                    .into(),
            );
        }
        if points < dims && given.are_rows {
            said.push(format!(
                "{}: points are rows, so transpose the array if it is channels x time",
                size()
            ));
        }
        if points < latents {
            said.push(format!(
                "{} for {latents} latents: most of them will learn single points; give more data, or ask for {} or fewer \
                 (--latents)",
                counted(points, "point"),
                (points / 10).max(1)
            ));
        }
        let below = self.below / self.power;
        if kind.kind().is_non_negative() && below > SOME_BELOW {
            let part = format!("{:.0} % of the power of the data is below zero", 100.0 * below);
            let other = if kind == ModelKind::Ssmca { "gsc" } else { "bsc or gsc" };
            let advice = format!("give magnitudes, or use --model {other}, whose W has any sign");
            if below > MUCH_BELOW {
                let what = format!("{part}, where {} explains none of it", kind.name());
                return Err(Error::input(what, given.place(), advice));
            }
            said.push(format!("{part}: {} can explain that as noise only; {advice}", kind.name()));
        }
        Ok(said)
    }

    /// What is to be said of data for a model that was made before.
    pub fn compare(&self, blob: &Blob<'_>) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        if self.power == 0.0 {
            return Some("all numbers are zero: check how the data was recorded or saved".into());
        }
        let (what, factor) = self.other_scale(&recover(blob)?.0)?;
        Some(format!(
            "{what}: what comes out may mean little; multiply it by about {factor:.1e}, or train on data like this"
        ))
    }

    /// What to say of data to go on with from these parameters.
    pub fn compare_to_go_on(&self, parameters: &Parameters) -> Option<String> {
        let (what, factor) = self.other_scale(parameters)?;
        Some(format!(
            "{what}: training may not find its way from there; multiply it by about {factor:.1e}, or train without --from"
        ))
    }

    /// Data that is much stronger or weaker than what a model expects, and the factor that would mend it.
    fn other_scale(&self, parameters: &Parameters) -> Option<(String, f64)> {
        let expected = expected_power(parameters).sqrt();
        let found = (self.power / self.count as f64).sqrt();
        let ratio = found / expected;
        // A model of nothing but zeros expects nothing.
        if !ratio.is_finite() || (1.0 / OTHER_SCALE..=OTHER_SCALE).contains(&ratio) {
            return None;
        }
        let (times, how) = if ratio > 1.0 { (ratio, "stronger") } else { (1.0 / ratio, "weaker") };
        let what = format!(
            "the data is {times:.0} times {how} than what the model was made for ({found:.2e} against {expected:.2e} on average)"
        );
        Some((what, 1.0 / ratio))
    }

    /// The same, on stderr.
    pub fn warn(&self, blob: &Blob<'_>, data: &Path) {
        if let Some(text) = self.compare(blob) {
            warn(format_args!("{}: {text}", data.display()));
        }
    }
}

/// E y^2, averaged over dimensions. Of maximal causes it is an upper bound, which differs little as long as few are on.
fn expected_power(parameters: &Parameters) -> f64 {
    let (d, h) = (parameters.dims, parameters.latents);
    let has_slab = parameters.kind.kind().has_slab();
    let psi2 = if has_slab { parameters.slab_variances() } else { vec![0.0; h] };
    let mu = |k: usize| if has_slab { parameters.slab_mean[k] } else { 1.0 };
    let mut power: f64 = parameters.noise_variances().iter().sum();
    for row in parameters.dictionary.chunks_exact(h) {
        if parameters.kind.kind().is_mixture() {
            power += row.iter().zip(&parameters.prior).map(|(w, pi)| pi * w * w).sum::<f64>();
            continue;
        }
        let mean = |k: usize| parameters.prior[k] * row[k] * mu(k);
        let square = |k: usize| parameters.prior[k] * row[k] * row[k] * (psi2[k] + mu(k) * mu(k));
        power += (0..h).map(mean).sum::<f64>().powi(2);
        power += (0..h).map(|k| square(k) - mean(k).powi(2)).sum::<f64>();
    }
    power / d as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::NoiseCov;

    fn survey(values: &[f64]) -> Survey {
        let mut survey = Survey::default();
        survey.add(values);
        survey
    }

    #[test]
    fn what_cannot_be_learned_is_refused_and_what_is_odd_told() {
        let paths = ["here.npy".into()];
        let given = Given { paths: &paths, points: 100, dims: 3, are_rows: true, are_whitened: false };
        let check = |values: &[f64], kind| survey(values).check_training(kind, 10, given);
        assert!(
            check(&[0.0; 4], ModelKind::Gsc)
                .unwrap_err()
                .to_string()
                .starts_with("all numbers are zero: here.npy")
        );
        assert_eq!(check(&[1.0, -1.0], ModelKind::Gsc).unwrap(), [] as [&str; 0]);
        for kind in [ModelKind::Nmf, ModelKind::Mca, ModelKind::Ssmca] {
            let refused = check(&[1.0, -1.0], kind).unwrap_err().to_string();
            assert!(refused.starts_with("50 % of the power") && refused.contains("--model"), "{refused}");
            assert!(check(&[2.0, -0.5], kind).unwrap()[0].contains("6 % of the power"));
            assert_eq!(check(&[2.0, 2.0, -0.1], kind).unwrap(), [] as [&str; 0]);
        }
        for number in [1e30, 1e-30] {
            let refused = check(&[number; 3], ModelKind::Gsc).unwrap_err().to_string();
            assert!(refused.contains("beyond the variances") && refused.contains("here.npy"), "{refused}");
        }
        let wide = |points, dims| {
            survey(&[1.0])
                .check_training(ModelKind::Gsc, 2, Given { points, dims, ..given })
                .unwrap_err()
                .to_string()
        };
        assert!(wide(8, 60_000).contains("transpose the array"), "{}", wide(8, 60_000));
        assert!(wide(80_000, 60_000).contains("16384 at most"), "{}", wide(80_000, 60_000));
        assert!(check(&[1e200; 2], ModelKind::Gsc).unwrap_err().to_string().contains("squares overflow"));
        let few = survey(&[1.0]).check_training(ModelKind::Gsc, 10, Given { points: 1, ..given }).unwrap();
        assert!(few[0].starts_with("1 point of 3 dimensions: points are rows"), "{few:?}");
        assert!(few[1].starts_with("1 point for 10 latents"), "{few:?}");
        let same = Survey { constant: Some(true), ..survey(&[1.0]) };
        let told = same.check_training(ModelKind::Gsc, 1, given).unwrap();
        assert!(told[0].starts_with("here.npy: all points are the same"), "{told:?}");
    }

    /// One latent on half the time, 2 or 0 in one of two dimensions, noise of 1: (1 + 1 + 2 * 2 / 2) / 2.
    #[test]
    fn a_model_expects_its_own_power() {
        let model = Parameters::binary(ModelKind::Bsc, vec![2.0, 0.0], 2, vec![0.5], NoiseCov::Shared(1.0));
        assert!((expected_power(&model) - 2.0).abs() < 1e-12);
    }
}
