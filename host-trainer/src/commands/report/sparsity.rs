//! How often latents are on, and how many at once.
//!
//! With latents that are on independently, each with its pi_h, the number that is on has a Poisson binomial distribution:
//! adding latent h to those before it, p'(k) = (1 - pi_h) p(k) + pi_h p(k - 1). Counts beyond what is drawn are not needed for those
//! below, so the cost is H times the bars.

use super::description::Description;
use super::digits::{count, fixed, percent};
use super::page::{figure, paragraph, section};
use super::plot::{Axis, Plot};

/// Latents that are on at once, at most, in the drawing.
const MOST_AT_ONCE: usize = 120;

/// Mean number of latents that are on.
pub(super) fn mean_on(told: &Description) -> f64 {
    told.parameters.prior.iter().sum()
}

pub(super) fn html(told: &Description) -> String {
    let prior = &told.parameters.prior;
    let on = mean_on(told);
    if told.parameters.kind.kind().is_mixture() {
        let lead = paragraph(format_args!(
            "Exactly one of {} components is on in every sample.",
            count(prior.len() as u64)
        ));
        return section("sparsity", "Sparsity", &(lead + &usage(told)));
    }
    let lead = paragraph(format_args!(
        "Of {} latents, {} are on at a time on average ({} of them).",
        count(prior.len() as u64),
        fixed(on, 2),
        percent(on / prior.len() as f64)
    ));
    let plots =
        format!("<div class=\"halves\"><div>{}</div><div>{}</div></div>\n", at_once(told), usage(told));
    section("sparsity", "Sparsity", &(lead + &plots))
}

/// How many latents are on at once.
fn at_once(told: &Description) -> String {
    let chances = chances(&told.parameters.prior);
    // As far as there is anything to see.
    let end = chances.iter().rposition(|&p| p > 1e-3).unwrap_or(0).max(3).min(chances.len() - 1);
    // Places are counted from 1, numbers of latents from 0.
    let bars: Vec<_> = chances[..=end].iter().enumerate().map(|(k, &p)| (k as f64 + 1.0, p)).collect();
    let most = chances.iter().fold(0.0, |most: f64, &p| most.max(p));
    let mut plot = Plot::new(
        Axis::places(0..end + 1, "latents on at once"),
        Axis::between(0.0, 1.08 * most, "part of the samples").in_percent(),
    );
    plot.bars(&bars, 0.8);
    let limit =
        told.run.count("max_active").filter(|_| told.run.settings.get("engine") == Some(&"truncated".into()));
    let mut caption = String::from("How many latents are on at once, by the model's own prior.");
    if let Some(limit) = limit.filter(|&limit| limit < told.parameters.latents as u64) {
        if limit <= end as u64 {
            plot.limit(limit as f64 + 1.5, "inference stops here");
        }
        let kept: f64 = chances.iter().take(limit as usize + 1).sum();
        caption += &format!(
            " Inference looks at up to {limit} at once, which covers {} of the samples that the model itself would make.",
            percent(kept)
        );
    }
    figure(&plot.html("bars: the probability of every number of latents on at once", " low"), &caption)
}

/// p(k), for k up to what is drawn at most.
fn chances(prior: &[f64]) -> Vec<f64> {
    let most = prior.len().min(MOST_AT_ONCE);
    let mut chances = vec![0.0; most + 1];
    chances[0] = 1.0;
    for &pi in prior {
        for k in (1..=most).rev() {
            chances[k] = (1.0 - pi) * chances[k] + pi * chances[k - 1];
        }
        chances[0] *= 1.0 - pi;
    }
    chances
}

/// How often each latent is on.
fn usage(told: &Description) -> String {
    let prior = &told.parameters.prior;
    let order = told.by_usage();
    let sorted: Vec<f64> = order.iter().map(|&latent| prior[latent]).collect();
    let (most, least) = (sorted[0], sorted[sorted.len() - 1]);
    let caption = match most == least {
        true => format!("All latents share one prior: each is on {} of the time.", percent(most)),
        false => format!(
            "How often each latent is on, from the busiest ({}) to the one used least ({}). Latents at the far right that are \
             hardly ever on could be left out of a smaller model.",
            percent(most),
            percent(least)
        ),
    };
    if most == least {
        return paragraph(caption);
    }
    let mut plot = Plot::new(
        Axis::places(order.iter().copied(), "latents, the busiest first"),
        Axis::between(0.0, 1.08 * most, "on").in_percent(),
    );
    let points: Vec<_> = sorted.iter().enumerate().map(|(at, &pi)| (at as f64 + 1.0, pi)).collect();
    match sorted.len() {
        0..=400 => plot.bars(&points, if sorted.len() > 100 { 1.0 } else { 0.8 }),
        _ => plot.curve(&points, "one"),
    }
    figure(&plot.html("how often each latent is on, sorted", " low"), &caption)
}

#[cfg(test)]
mod tests {
    use super::chances;

    #[test]
    fn the_number_of_latents_on() {
        // Two fair coins and a certain third.
        assert_eq!(chances(&[0.5, 0.5, 1.0]), [0.0, 0.25, 0.5, 0.25]);
        let many = chances(&[0.001; 10_000]);
        assert!((many[10] - 0.1252).abs() < 1e-3 && (many.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
