//! Points of the data as the model sees them, and what integers would change: everything that needs the blob and data.
//!
//! Inference is the core's in `f32`, as on a device. Points are spread evenly over the file; their number is bounded by the
//! work that a point takes. Of them, examples are those at given ranks by energy, from loud to quiet, so that the same file gives
//! the same page.

use super::cell::{Cells, Layer, largest};
use super::digits::{count, fixed, number, percent};
use super::page::{escaped, hint, paragraph, section};
use crate::commands::engine::{self, Extra, Posteriors};
use crate::commands::model_file::{same_dims, warn_of_rate};
use crate::commands::output::Progress;
use crate::compare::Comparison;
use crate::data::Source;
use crate::{Error, Result};
use spikelet::blob::Blob;
use spikelet::{Engine, Model};
use std::fmt::Write;
use std::path::Path;

/// Points that models are compared on, at most, and states of all of them together.
const MOST_POINTS: u64 = 2000;
const MOST_STATES: u64 = 20_000_000;

/// Examples are those of the points that are louder than this part of them.
const RANKS: [f64; 6] = [0.98, 0.9, 0.75, 0.5, 0.25, 0.1];

/// Latents that an example lists.
const MOST_LATENTS: usize = 6;

/// What the two colours are.
const KEY: &str = " Grey: the data. Colour: what the model explains of it.";

/// Latents that are less probable are left out of an example.
const LEAST: f32 = 0.005;

/// Points of a file, with their numbers in it.
#[derive(Debug)]
pub(super) struct Sample {
    name: String,
    /// How many the file has.
    all: usize,
    dims: usize,
    numbers: Vec<usize>,
    values: Vec<f64>,
}

impl Sample {
    /// Points spread over a file, cut as the blob says.
    pub fn read(path: &Path, blob: &Blob<'_>, model_name: &Path) -> Result<Self> {
        let mut source = Source::for_model(path, blob, 1)?;
        same_dims(&source, &blob.model(), model_name)?;
        warn_of_rate(&source, blob);
        let all = source.points();
        if all == 0 {
            return Err(Error::input("there are no points", path.display(), "give at least one"));
        }
        let most = (MOST_STATES / blob.model().shape.states().max(1)).clamp(24, MOST_POINTS) as usize;
        let taken = all.min(most);
        let numbers: Vec<usize> =
            (0..taken).map(|at| (at as u128 * all as u128 / taken as u128) as usize).collect();
        let (mut values, mut point) = (Vec::new(), Vec::new());
        for &number in &numbers {
            source.read_chunk(number, 1, &mut point)?;
            values.extend_from_slice(&point);
        }
        Ok(Self { name: path.display().to_string(), all, dims: source.dims(), numbers, values })
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// "2000 of 62001 points of FILE", as HTML.
    pub fn words(&self) -> String {
        let part = match self.len() == self.all {
            true => count(self.all as u64),
            false => format!("{} of {}", count(self.len() as u64), count(self.all as u64)),
        };
        format!("{part} points of {}", escaped(&self.name))
    }

    /// What the second model says beside the first.
    pub fn compare(&self, models: [Model<'_, f32>; 2], progress: &mut Progress) -> Result<Comparison> {
        let mut comparison = Comparison::default();
        for (&number, point) in self.numbers.iter().zip(self.values.chunks_exact(self.dims)) {
            comparison.add(models, point, None, &self.name, number)?;
            progress.advance(1);
        }
        Ok(comparison)
    }

    /// Where examples are, the loudest first.
    fn examples(&self) -> Vec<usize> {
        let energy =
            |at: usize| self.values[at * self.dims..][..self.dims].iter().map(|y| y * y).sum::<f64>();
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&a, &b| energy(a).total_cmp(&energy(b)).then(a.cmp(&b)));
        let mut ranks = RANKS.map(|rank| (rank * (self.len() - 1) as f64).round() as usize).to_vec();
        ranks.dedup();
        ranks.into_iter().map(|rank| order[rank]).collect()
    }
}

/// The section with examples.
pub(super) fn html(sample: &Sample, model: Model<'_, f32>, cells: Cells) -> Result<String> {
    let engine = Engine::of_kind(model.shape.kind);
    let drawn = if matches!(engine, Engine::Gibbs(_)) { " Its posterior is drawn by sampling." } else { "" };
    let mut body = paragraph(format_args!(
        "What the model makes of single points, by the code that runs on the device.{drawn} They were chosen from {} by their \
         energy alone, from loud to quiet.{}",
        sample.words(),
        if cells.overlay() { KEY } else { "" }
    ));
    let cells = Cells { signed: sample.values.iter().any(|&y| y < 0.0) || cells.signed, ..cells };
    for at in sample.examples() {
        let point = &sample.values[at * sample.dims..][..sample.dims];
        let number = sample.numbers[at];
        let posterior =
            engine::infer_part(model, engine, point, number, &sample.name, Extra::Reconstruction)?;
        body += &example(number, point, &posterior, cells, model.shape.kind.has_slab());
    }
    let strength = match model.shape.kind.has_slab() {
        true => " Strength: its posterior mean and standard deviation, zero where it is off included.",
        false => "",
    };
    body += &hint(format_args!(
        "On: the probability that the latent is on, given the point; close to 0 or 100 % the model is sure.{strength}"
    ));
    Ok(section("examples", "Examples", &body))
}

fn example(number: usize, point: &[f64], posterior: &Posteriors, cells: Cells, slab: bool) -> String {
    let explained: Vec<f64> = posterior.reconstruction.iter().map(|&x| f64::from(x)).collect();
    let scale = largest(point).max(largest(&explained));
    let words = |what: &str| format!("{what} of point {number}");
    let picture = match cells.overlay() {
        true => {
            let layers = [(Layer::Behind, point), (Layer::Front, &explained[..])];
            format!(
                "<div class=\"pair wide\"><div>{}</div></div>",
                cells.draw(&layers, scale, &words("data and explanation"))
            )
        }
        false => {
            let one = |values: &[f64], what: &str| {
                let svg = cells.draw(&[(Layer::Front, values)], scale, &words(what));
                format!("<div>{svg}<small>{what}</small></div>")
            };
            format!("<div class=\"pair\">{}{}</div>", one(point, "data"), one(&explained, "explained"))
        }
    };
    format!(
        "<div class=\"example\"><h3>Point {} <small>· {}</small></h3>\n{picture}\n{}</div>\n",
        count(number as u64),
        left(point, &explained),
        latents(posterior, slab)
    )
}

/// How much of a point is explained.
fn left(point: &[f64], explained: &[f64]) -> String {
    let energy: f64 = point.iter().map(|y| y * y).sum();
    let rest: f64 = point.iter().zip(explained).map(|(y, x)| (y - x).powi(2)).sum();
    let part = 1.0 - rest / energy;
    match part.is_finite() {
        true => format!("{} of its energy explained", percent(part.max(0.0))),
        false => "all zero".into(),
    }
}

/// The latents most likely on, with strength and certainty.
fn latents(posterior: &Posteriors, slab: bool) -> String {
    let activity = &posterior.activity;
    let mut order: Vec<usize> = (0..activity.len()).collect();
    order.sort_by(|&a, &b| activity[b].total_cmp(&activity[a]).then(a.cmp(&b)));
    let certain = order.iter().filter(|&&latent| activity[latent] >= LEAST).count();
    if certain == 0 {
        return hint("No latent is on: all of it is noise to the model.");
    }
    let mut rows = String::new();
    for &latent in order.iter().take(certain.min(MOST_LATENTS)) {
        let [on, mean, variance] =
            [activity, &posterior.mean, &posterior.variance].map(|values| f64::from(values[latent]));
        let width = (1000.0 * on).clamp(0.0, 1000.0);
        let strength = match slab {
            true => format!("<td class=\"n\">{}</td>", with_error(mean, variance.max(0.0).sqrt())),
            false => String::new(),
        };
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{latent}</th><td class=\"meter\"><svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><path class=\"bar\" d=\"M0 0h{width:.0}v10h-{width:.0}z\"/></svg></td>\
             <td class=\"n\">{} %</td>{strength}</tr>",
            fixed(100.0 * on, 1),
        );
    }
    let more = match certain.saturating_sub(MOST_LATENTS) {
        0 => String::new(),
        more => hint(format_args!("and {more} more")),
    };
    let strength = if slab { "<th scope=\"col\" class=\"n\">strength</th>" } else { "" };
    format!(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">latent</th><th scope=\"col\">on</th><td></td>\
         {strength}</tr></thead>\n<tbody>\n{rows}</tbody></table>{more}</div>"
    )
}

/// A mean and its standard deviation, both to two digits of the latter.
fn with_error(mean: f64, deviation: f64) -> String {
    let decimals = (1.0 - deviation.log10().floor()).clamp(0.0, 12.0) as usize;
    match (1e-4..1e6).contains(&deviation) && mean.abs() < 1e6 {
        true => format!("{} ± {}", fixed(mean, decimals), fixed(deviation, decimals)),
        false => format!("{} ± {}", number(mean), number(deviation)),
    }
}

#[cfg(test)]
mod tests {
    use super::with_error;

    #[test]
    fn digits_follow_the_deviation() {
        assert_eq!(with_error(-1.84234, 0.0742), "−1.842 ± 0.074");
        assert_eq!(with_error(123.456, 12.3), "123 ± 12");
        assert_eq!(with_error(1.0, 0.0), "1.000 ± 0");
    }
}
