//! The figures, as JSON and as a table.

use super::reference::Reference;
use super::tally::Tally;
use crate::commands::model_file::names;
use crate::commands::output::counted;
use crate::metrics::{assign, psnr_db, snr_db};
use serde::Serialize;
use spikelet::model::States;
use spikelet::{Model, Shape};
use std::fmt::Write as _;

/// The latents listed in the table, at most, and the widest bar.
const MOST_BARS: usize = 20;
const BAR_WIDTH: usize = 40;

/// A latent that is on more rarely than this does nothing.
const UNUSED: f64 = 1e-3;

/// The JSON object; names are part of the interface. What does not apply is absent.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    points: usize,
    /// Per point.
    free_energy: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amari: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snr_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_snr_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noisy_snr_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psnr_db: Option<f64>,
    /// One per source.
    #[serde(skip_serializing_if = "Option::is_none")]
    si_sdr_db: Option<Vec<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    si_sdr_latents: Option<Vec<Option<usize>>>,
    sparsity: f64,
    pub noise: Noises,
    /// One per latent.
    usage: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Variances of the noise.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Noises {
    Shared(f64),
    Each(Vec<f64>),
}

impl Facts {
    /// What needs no truth.
    pub fn new(tally: &Tally, points: usize, shape: Shape) -> Self {
        let mean = |sum: &f64| sum / points as f64;
        let usage: Vec<f64> = tally.activity.iter().map(mean).collect();
        debug_assert_eq!(usage.len(), shape.latents);
        Self {
            points,
            free_energy: mean(&tally.evidence),
            quality: None,
            amari: None,
            snr_db: snr_db(tally.data, tally.residual),
            reference_snr_db: None,
            noisy_snr_db: None,
            psnr_db: None,
            si_sdr_db: None,
            si_sdr_latents: None,
            sparsity: usage.iter().sum(),
            noise: Noises::Each(Vec::new()),
            usage,
            notes: Vec::new(),
        }
    }

    /// What needs a reference. `peak`: whether the peak ratio is wanted, and with which peak.
    pub fn compare(
        &mut self,
        tally: &Tally,
        reference: &Reference,
        peak: Option<Option<f64>>,
        notes: &mut Vec<String>,
    ) {
        if let Some(clean) = &tally.clean {
            self.reference_snr_db = snr_db(clean.energy, clean.error);
            self.noisy_snr_db = snr_db(clean.energy, clean.noise);
            if self.reference_snr_db.is_none() {
                notes.push("no reference_snr_db: the reference is zero".into());
            }
            let numbers = (self.points * reference.source.dims()) as f64;
            let peak = peak.map(|peak| peak.unwrap_or(clean.largest - clean.smallest));
            self.psnr_db = peak.and_then(|peak| psnr_db(peak, clean.error / numbers));
        }
        if let Some(sums) = &tally.sources {
            let h = sums.estimates.len();
            let scores = sums.si_sdr_db();
            let latents = assign(&scores, h);
            let pairs = scores.chunks_exact(h).zip(&latents);
            self.si_sdr_db = Some(pairs.map(|(row, latent)| latent.map(|latent| row[latent])).collect());
            self.si_sdr_latents = Some(latents);
        }
    }

    pub fn table(&self, name: &str, model: &Model<'_, f32>) -> String {
        let Shape { dims, latents, selected, max_active, .. } = model.shape;
        let mut text = String::new();
        let mut row = |key: &str, value: String| {
            let _ = writeln!(text, "{key:<18} {value}");
        };
        let db = |value: f64| format!("{value:.2} dB");
        row("model", format!("{name}: {}, {}", counted(dims, "dimension"), counted(latents, "latent")));
        row("inference", format!("{selected} latents selected, at most {max_active} on at once"));
        row("points", self.points.to_string());
        row("free energy", format!("{:.6} per point", self.free_energy));
        if let Some(quality) = self.quality {
            let is_exact = max_active == latents && !matches!(model.shape.states, States::Adaptive { .. });
            let exact = if is_exact { " (exact)" } else { "" };
            row("quality", format!("{quality:.6}{exact}"));
        }
        if let Some(amari) = self.amari {
            row("Amari index", format!("{amari:.6}"));
        }
        if let Some(snr) = self.snr_db {
            row("data explained", db(snr));
        }
        if let Some(snr) = self.reference_snr_db {
            let before = self.noisy_snr_db.map_or_else(String::new, |snr| format!(", before: {}", db(snr)));
            row("against reference", db(snr) + &before);
        }
        if let Some(psnr) = self.psnr_db {
            row("peak SNR", db(psnr));
        }
        row("latents on", format!("{:.4} on average", self.sparsity));
        row(
            "noise variance",
            match &self.noise {
                Noises::Shared(variance) => format!("{variance:.4e}"),
                Noises::Each(each) => {
                    let ends = each.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
                    format!("{:.4e} to {:.4e} ({})", ends.0, ends.1, names::noise(model))
                }
            },
        );
        for (k, (score, latent)) in
            self.si_sdr_db.iter().flatten().zip(self.si_sdr_latents.iter().flatten()).enumerate()
        {
            let value = match (score, latent) {
                (Some(score), Some(latent)) => format!("SI-SDR {} (latent {latent})", db(*score)),
                _ => "silent".into(),
            };
            row(&format!("source {k}"), value);
        }
        self.bars(model, &mut text);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// How much of the time each latent is on, the busiest first.
    fn bars(&self, model: &Model<'_, f32>, text: &mut String) {
        let mut order: Vec<usize> = (0..self.usage.len()).collect();
        order.sort_by(|&a, &b| self.usage[b].total_cmp(&self.usage[a]));
        let largest = order.first().map_or(0.0, |&busiest| self.usage[busiest]);
        let _ = writeln!(text, "\n{:<8} {:>8} {:>8}", "latent", "on", "expected");
        for &latent in order.iter().take(MOST_BARS) {
            let (usage, logit) = (self.usage[latent], f64::from(model.prior_logit[latent]));
            let prior = match model.shape.kind.is_mixture() {
                true => logit.exp(),
                false => 1.0 / (1.0 + (-logit).exp()),
            };
            let width = if largest > 0.0 { (BAR_WIDTH as f64 * usage / largest).round() as usize } else { 0 };
            let line = format!("{latent:<8} {usage:>8.4} {prior:>8.4} {}", "#".repeat(width));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if order.len() > MOST_BARS {
            let _ = writeln!(text, "... and {} latents more", order.len() - MOST_BARS);
        }
        let unused = self.usage.iter().filter(|&&usage| usage < UNUSED).count();
        if unused > 0 {
            let _ =
                writeln!(text, "{unused} of {} latents are on at less than 1 of 1000 points", order.len());
        }
    }
}
