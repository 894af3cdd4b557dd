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
use crate::files::ending;
use crate::{Error, Result};
use spikelet::blob::Blob;
use spikelet::frame::{Form, Frame};
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
    /// Of the dimensions; empty where they are pixels or samples of a window.
    labels: Vec<String>,
    /// How points lie in time and frequency.
    frame: Option<Frame>,
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
        let frame = blob.frame();
        let labels = match frame.map(|frame| frame.form) {
            Some(Form::Windows { .. } | Form::Patches { .. }) => Vec::new(),
            _ => labels(path, source.dims(), source.rate().is_some()),
        };
        Ok(Self {
            name: path.display().to_string(),
            all,
            dims: source.dims(),
            numbers,
            values,
            labels,
            frame,
        })
    }

    /// Where a point is in the recording, in words; empty where that is not known.
    fn place(&self, number: usize) -> String {
        let Some(Frame { form, rate, .. }) = self.frame.filter(|frame| frame.rate > 0) else {
            return String::new();
        };
        let (number, rate) = (number as f64, f64::from(rate));
        match form {
            Form::Transform { bins, .. } => {
                let bins = f64::from(bins);
                let (hertz, seconds) =
                    ((number % bins + 0.5) * rate / (2.0 * bins), (number / bins).floor() * bins / rate);
                format!(" at {} Hz, {} s", fixed(hertz, 0), fixed(seconds, 2))
            }
            Form::Samples => format!(" at {} s", fixed(number / rate, 3)),
            _ => String::new(),
        }
    }

    /// What stands below an example: names of the dimensions, or how long it is.
    fn below(&self) -> String {
        if !self.labels.is_empty() {
            let names: String =
                self.labels.iter().map(|name| format!("<span>{}</span>", escaped(name))).collect();
            return format!("<div class=\"names\">{names}</div>");
        }
        match self.frame {
            Some(Frame { form: Form::Windows { length, .. }, rate, .. }) if rate > 0 => {
                let length = 1000.0 * f64::from(length) / f64::from(rate);
                format!("<div class=\"names ends\"><span>0</span><span>{} ms</span></div>", fixed(length, 1))
            }
            _ => String::new(),
        }
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

/// Dimensions that are named; more would not fit below a drawing.
const MOST_NAMES: usize = 8;

/// Names of columns or channels; none where there are many.
fn labels(path: &Path, dims: usize, is_recording: bool) -> Vec<String> {
    if dims > MOST_NAMES {
        return Vec::new();
    }
    if is_recording {
        return (1..=dims).map(|channel| format!("channel {channel}")).collect();
    }
    // As NumPy counts.
    let numbered = || (0..dims).map(|number| format!("dim {number}")).collect();
    if !matches!(ending(path).as_deref(), Some("csv" | "tsv")) {
        return numbered();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    let cells: Vec<String> =
        first.split([',', ';', '\t']).map(|cell| cell.trim().trim_matches('"').to_owned()).collect();
    match cells.len() == dims && cells.iter().any(|cell| cell.parse::<f64>().is_err()) {
        true => cells,
        false => numbered(),
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
    body += "<div class=\"examples\">\n";
    for at in sample.examples() {
        let point = &sample.values[at * sample.dims..][..sample.dims];
        let number = sample.numbers[at];
        let posterior =
            engine::infer_part(model, engine, point, number, &sample.name, Extra::Reconstruction)?;
        body += &example(sample, number, point, &posterior, cells, model.shape.kind.has_slab());
    }
    body += "</div>\n";
    let strength = match model.shape.kind.has_slab() {
        true => " Strength: its posterior mean and standard deviation, zero where it is off included.",
        false => "",
    };
    body += &hint(format_args!(
        "On: the probability that the latent is on, given the point; close to 0 or 100 % the model is sure.{strength}"
    ));
    Ok(section("examples", "Examples", &body))
}

fn example(
    sample: &Sample,
    number: usize,
    point: &[f64],
    posterior: &Posteriors,
    cells: Cells,
    slab: bool,
) -> String {
    let explained: Vec<f64> = posterior.reconstruction.iter().map(|&x| f64::from(x)).collect();
    let scale = largest(point).max(largest(&explained));
    let words = |what: &str| format!("{what} of point {number}");
    let picture = match cells.overlay() {
        true => {
            let layers = [(Layer::Behind, point), (Layer::Front, &explained[..])];
            format!(
                "<div class=\"pair wide\"><div class=\"scaled\">{}{}{}</div></div>",
                scale_of(scale, cells.signed),
                cells.draw(&layers, scale, &words("data and explanation")),
                sample.below()
            )
        }
        false => {
            let one = |values: &[f64], what: &str| {
                let svg = cells.draw(&[(Layer::Front, values)], scale, &words(what));
                format!("<div>{svg}<small>{what}</small></div>")
            };
            let shades = format!(
                "<small class=\"shades\">strongest colour: {}{}</small>",
                if cells.signed { "±" } else { "" },
                self::number(scale)
            );
            format!(
                "<div class=\"pair\">{}{}</div>{shades}",
                one(point, "data"),
                one(&explained, "explained")
            )
        }
    };
    format!(
        "<div class=\"example\"><h3>Point {}{} <small>· {}</small></h3>\n<div>{picture}</div>\n{}</div>\n",
        count(number as u64),
        sample.place(number),
        left(point, &explained),
        latents(posterior, slab)
    )
}

/// The range of a drawing, at its upper and lower edge.
fn scale_of(largest: f64, signed: bool) -> String {
    let lower = if signed { number(-largest) } else { "0".into() };
    format!("<small class=\"top\">{}</small><small class=\"bottom\">{lower}</small>", number(largest))
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
