//! How strong latents are when they are on, and the noise.

use super::cell::{Cells, Layer, largest};
use super::description::{Description, Look};
use super::digits::number;
use super::page::{figure, hint, paragraph, section};
use super::plot::{Axis, Plot};
use crate::parameters::{NoiseCov, Parameters, SlabCov};

/// Latents whose strength is drawn.
const MOST_LATENTS: usize = 256;

pub(super) fn html(told: &Description) -> String {
    section("strength", "Strength and noise", &(strength(told) + &noise(told)))
}

/// Mean and standard deviation of the slab.
fn strength(told: &Description) -> String {
    let parameters = &told.parameters;
    if parameters.kind.kind().is_mixture() {
        return paragraph(
            "A component has no strength: its column is the mean of the samples that it makes.",
        );
    }
    if !parameters.kind.kind().has_slab() {
        return paragraph(
            "Latents are on or off; a latent that is on has strength one, and its column is what it adds.",
        );
    }
    let deviations: Vec<f64> = parameters.slab_variances().iter().map(|v| v.sqrt()).collect();
    if parameters.slab_cov == SlabCov::Unit
        || (parameters.slab_mean.iter().all(|&mu| mu == 0.0) && deviations.iter().all(|&d| d == 1.0))
    {
        return paragraph(
            "The strength of a latent that is on has mean 0 and standard deviation 1; the dictionary takes the scale.",
        );
    }
    let mut order = told.by_usage();
    order.truncate(MOST_LATENTS);
    let span = |(at, &latent): (usize, &usize)| {
        let (mean, deviation) = (parameters.slab_mean[latent], deviations[latent]);
        (at as f64 + 1.0, mean - deviation, mean + deviation)
    };
    let spans: Vec<_> = order.iter().enumerate().map(span).collect();
    let means: Vec<_> = order
        .iter()
        .enumerate()
        .map(|(at, &latent)| (at as f64 + 1.0, parameters.slab_mean[latent]))
        .collect();
    let mut plot = Plot::new(
        Axis::places(order.iter().copied(), "latents, the busiest first"),
        Axis::over(spans.iter().flat_map(|s| [s.1, s.2]).chain([0.0]), "strength when on"),
    );
    plot.whiskers(&spans);
    plot.dots(&means);
    let correlated = match parameters.slab_cov {
        SlabCov::Full(_) => " Strengths of different latents depend on each other; that is not drawn.",
        _ => "",
    };
    let caption = format!(
        "Strength of a latent that is on: mean (dot), one standard deviation to either side (line). A mean far from zero says \
         that the latent has a usual strength and sign.{correlated}"
    );
    let mut html = figure(&plot.html("mean and deviation of the strength of each latent", ""), &caption);
    if order.len() < parameters.latents {
        html += &hint(format_args!("Shown are the {} latents that are on most often.", order.len()));
    }
    html
}

/// What no latent explains.
fn noise(told: &Description) -> String {
    let parameters = &told.parameters;
    let variances = parameters.noise_variances();
    let against = signal_over_noise_db(parameters)
        .map_or(String::new(), |db| format!(" By the model, the signal is {db:.1} dB above it."));
    if let NoiseCov::Shared(sigma2) = parameters.noise {
        return paragraph(format_args!(
            "Noise has standard deviation {} in every dimension.{against}",
            number(sigma2.sqrt())
        ));
    }
    let deviations: Vec<f64> = variances.iter().map(|v| v.sqrt()).collect();
    let cells = Cells { look: told.look, signed: false };
    let [low, high] = [f64::min, f64::max].map(|f| deviations.iter().copied().reduce(f).unwrap_or(0.0));
    let title = format!("standard deviation of the noise by dimension, {} to {}", number(low), number(high));
    let picture = match told.look {
        Look::Picture { .. } => {
            let svg = cells.draw(&[(Layer::Front, &deviations)], largest(&deviations), &title);
            format!("<ul class=\"cells\" style=\"--least:8rem\"><li>{svg}</li></ul>\n")
        }
        _ => {
            let points: Vec<_> = deviations.iter().enumerate().map(|(d, &v)| (d as f64 + 1.0, v)).collect();
            let mut plot = Plot::new(
                Axis::places(0..deviations.len(), "dimension"),
                Axis::between(0.0, 1.08 * high, "standard deviation"),
            );
            match deviations.len() {
                0..=400 => plot.bars(&points, 0.8),
                _ => plot.curve(&points, "one"),
            }
            plot.html(&title, " low")
        }
    };
    let correlated = match parameters.noise {
        NoiseCov::Full(_) => " The noise of different dimensions may be correlated; that is not drawn.",
        _ => "",
    };
    figure(
        &picture,
        &format!(
            "Standard deviation of the noise, from {} to {}.{against}{correlated}",
            number(low),
            number(high)
        ),
    )
}

/// <|W x|^2> over the trace of Sigma, where latents add up and are independent.
pub(super) fn signal_over_noise_db(parameters: &Parameters) -> Option<f64> {
    if parameters.kind.kind().is_maximal() || matches!(parameters.slab_cov, SlabCov::Full(_)) {
        return None;
    }
    let h = parameters.latents;
    let (mean, variance): (Vec<f64>, Vec<f64>) = match parameters.kind.kind().has_slab() {
        true => (parameters.slab_mean.clone(), parameters.slab_variances()),
        false => (vec![1.0; h], vec![0.0; h]),
    };
    let pi = &parameters.prior;
    let signal: f64 = parameters
        .dictionary
        .chunks_exact(h)
        .map(|row| {
            let sum: f64 = (0..h).map(|k| row[k] * pi[k] * mean[k]).sum();
            let spread = |k: usize| pi[k] * (variance[k] + mean[k] * mean[k]) - (pi[k] * mean[k]).powi(2);
            sum * sum + (0..h).map(|k| row[k] * row[k] * spread(k)).sum::<f64>()
        })
        .sum();
    let db = 10.0 * (signal / parameters.noise_variances().iter().sum::<f64>()).log10();
    db.is_finite().then_some(db)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::ModelKind;

    #[test]
    fn the_signal_over_the_noise() {
        // <(2 s)^2> = 4 / 2 over 0.02: 20 dB
        let model = Parameters::binary(ModelKind::Bsc, vec![2.0], 1, vec![0.5], NoiseCov::Shared(0.02));
        assert!((signal_over_noise_db(&model).unwrap() - 20.0).abs() < 1e-9);
        let slab = Parameters { kind: ModelKind::Gsc, slab_mean: vec![3.0], ..model };
        // <x^2> = (1 + 9) / 2, times 4
        assert!((signal_over_noise_db(&slab).unwrap() - 30.0).abs() < 1e-9);
    }
}
