//! The dictionary: what each latent looks like when it is on.

use super::cell::{Cells, Layer, largest};
use super::description::{Description, Look};
use super::digits::{count, number, percent};
use super::page::{figure, hint, section};
use std::fmt::Write;

/// Columns that are shown.
const MOST_COLUMNS: usize = 256;

/// Numbers that are drawn, for a page of a size that a browser opens at once.
const MOST_NUMBERS: usize = 100_000;

/// Directions in a plane that get their number beside them.
const MOST_LABELS: usize = 32;

/// Half a side of the plane, and how far the longest direction reaches.
const SIDE: f64 = 180.0;
const REACH: f64 = 145.0;

pub(super) fn cells(told: &Description) -> Cells {
    Cells { look: told.look, signed: told.parameters.dictionary.iter().any(|&w| w < 0.0) }
}

pub(super) fn html(told: &Description) -> String {
    let (dims, latents) = (told.parameters.dims, told.parameters.latents);
    let cells = cells(told);
    let order = told.by_usage();
    let room = MOST_NUMBERS / cells.numbers(dims).max(1);
    let shown = &order[..latents.min(MOST_COLUMNS.min(room).max(4))];
    let mut body = match (told.look, dims) {
        (Look::Direction, 2) => plane(told, shown),
        _ => grid(told, &cells, shown),
    };
    if shown.len() < latents {
        body += &hint(format_args!(
            "Shown are the {} latents that are on most often; {} more are in the model.",
            shown.len(),
            count((latents - shown.len()) as u64)
        ));
    }
    section("dictionary", "Dictionary", &body)
}

/// One small picture for each latent.
fn grid(told: &Description, cells: &Cells, shown: &[usize]) -> String {
    let dims = told.parameters.dims;
    let mut html =
        format!("<ul class=\"cells\" style=\"--least:{}rem\">\n", cells.least_width(shown.len(), dims));
    for &latent in shown {
        let column = told.column(latent);
        let on = percent(told.parameters.prior[latent]);
        let title = format!("{} of latent {latent}, on {on} of the time", word(told.look));
        let svg = cells.draw(&[(Layer::Front, &column)], largest(&column), &title);
        let _ = writeln!(html, "<li>{svg}<span><b>{latent}</b><i>{on}</i></span></li>");
    }
    html += "</ul>\n";
    let colours = match (told.look, cells.signed) {
        (Look::Waveform, _) => String::new(),
        (Look::Picture { .. }, true) => " Blue is above zero, orange below, the ground is zero.".into(),
        (Look::Picture { .. }, false) => {
            " The stronger the colour, the larger the number; the ground is zero.".into()
        }
        (_, true) => " Blue is above zero, orange below.".into(),
        (_, false) => String::new(),
    };
    let what = match told.look {
        Look::Direction => {
            format!(
                "Every latent is a direction in {dims} dimensions: a bar (or a point of the curve) is how strongly it shows in one of them."
            )
        }
        Look::Waveform => {
            let length = told.rate.map_or(String::new(), |rate| {
                format!(", {} ms at {} samples a second", number(1000.0 * dims as f64 / rate), number(rate))
            });
            format!("Every latent is a waveform of {dims} samples{length}.")
        }
        Look::Picture { width, height } => {
            format!("Every latent is a picture of {width} × {height} pixels.")
        }
    };
    let caption = format!(
        "{what}{colours} Each is scaled by itself. Below it: its number, and how often it is on; the busiest come first."
    );
    figure(&html, &caption)
}

fn word(look: Look) -> &'static str {
    match look {
        Look::Direction => "direction",
        Look::Waveform => "waveform",
        Look::Picture { .. } => "picture",
    }
}

/// Directions in two dimensions, all on one scale.
fn plane(told: &Description, shown: &[usize]) -> String {
    // As long as the latent is strong: W and the slab can share its scale in any way.
    let parameters = &told.parameters;
    let strengths: Vec<f64> = match parameters.kind.kind().has_slab() {
        true => {
            let pairs = parameters.slab_mean.iter().zip(parameters.slab_variances());
            pairs.map(|(mu, psi2)| mu.hypot(psi2.sqrt())).collect()
        }
        false => vec![1.0; parameters.latents],
    };
    let scaled = |latent: usize| told.column(latent).into_iter().map(|w| w * strengths[latent]).collect();
    let columns: Vec<(usize, Vec<f64>)> = shown.iter().map(|&latent| (latent, scaled(latent))).collect();
    // The largest entry first, so that squares stay finite.
    let entry = columns.iter().map(|(_, w)| largest(w)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let length = |w: &[f64]| (w[0] / entry).hypot(w[1] / entry);
    let longest = columns.iter().map(|(_, w)| length(w)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (mut front, mut back, mut labels) = (String::new(), String::new(), String::new());
    for (at, (latent, w)) in columns.iter().enumerate() {
        let [x, y] = [w[0], -w[1]].map(|w| REACH * (w / entry / longest));
        let _ = write!(front, "M0 0L{x:.1} {y:.1}");
        let _ = write!(back, "M0 0L{:.1} {:.1}", -x, -y);
        let size = x.hypot(y);
        if at < MOST_LABELS && size > 1.0 {
            let out = (size + 14.0) / size;
            let _ = writeln!(labels, "<text x=\"{:.1}\" y=\"{:.1}\">{latent}</text>", x * out, y * out);
        }
    }
    let title = format!("the {} mixing directions in the plane of both dimensions", shown.len());
    let has_slab = parameters.kind.kind().has_slab();
    let faint = if has_slab { format!("<path class=\"faint\" d=\"{back}\"/>") } else { String::new() };
    let html = format!(
        "<div class=\"plane\"><svg role=\"img\" aria-label=\"{title}\" viewBox=\"-{SIDE} -{SIDE} {0} {0}\"><title>{title}</title>\n\
         <path class=\"rule\" d=\"M-{SIDE} 0H{SIDE}M0 -{SIDE}V{SIDE}\"/>{faint}<path class=\"one\" d=\"{front}\"/>\n{labels}</svg></div>\n",
        2.0 * SIDE
    );
    let dotted =
        if has_slab { " Strengths have both signs, so data lie along the dotted part as well." } else { "" };
    let caption = format!(
        "Every latent is a direction: how strongly it shows in the first dimension (across) and in the second (up), \
         as long as it is strong when on.{dotted} Directions that lie close together are hard to tell apart."
    );
    figure(&html, &caption)
}
