//! Free energy by iteration: whether training came to rest.

use super::description::Run;
use super::digits::{count, fixed, number};
use super::page::{figure, hint, section};
use super::plot::{Axis, Plot};

/// The last of so many parts is shown once more, on its own scale.
const PARTS: usize = 3;

/// The free energy of the model, for one point if it is known how many there were.
pub(super) fn last(run: &Run) -> Option<f64> {
    let last = run.history.last().map(|step| step.free_energy);
    run.kept.map(|kept| kept.free_energy).or(last).map(|sum| sum / divisor(run))
}

fn divisor(run: &Run) -> f64 {
    run.points.map_or(1.0, |points| points as f64)
}

pub(super) fn unit(run: &Run) -> &'static str {
    if run.points.is_some() { "nats per point" } else { "nats, all points" }
}

pub(super) fn html(run: &Run) -> String {
    if run.history.is_empty() {
        let body = hint("The description of the model has no history: nothing is known about its training.");
        return section("training", "Training", &body);
    }
    let per_point: Vec<(f64, f64)> =
        run.history.iter().map(|step| (step.iteration as f64, step.free_energy / divisor(run))).collect();
    let annealed = run.history.iter().rposition(|step| step.temperature != 1.0).map_or(0, |at| at + 1);
    let cold = annealed.max(run.alignment);
    let x = Axis::between(0.0, per_point.last().map_or(1.0, |step| step.0), "iteration").in_whole();
    let y = Axis::over(per_point.iter().map(|step| step.1), &format!("free energy ({})", unit(run)));
    let mut plot = Plot::new(x, y);
    if cold > 0 {
        plot.curve(&per_point[..cold.min(per_point.len())], "faint");
    }
    plot.curve(&per_point[cold.min(per_point.len() - 1)..], "one");
    plot.dots(&per_point[per_point.len() - 1..]);
    let (first, last) = (per_point[0].1, per_point[per_point.len() - 1].1);
    // Of sources that are aligned first there is no iteration 0.
    let steps = run.history.last().map_or(0, |step| step.iteration);
    let title =
        format!("free energy by iteration, {steps} in all, from {} to {}", number(first), number(last));
    let mut caption = format!(
        "The free energy is a lower bound on ln p(data), the higher the better. It ends at {} {} after {} iteration{}",
        fixed(last, 4),
        unit(run),
        count(steps as u64),
        if steps == 1 { "" } else { "s" }
    );
    if let [.., before, end] = per_point[..]
        && cold < per_point.len() - 1
    {
        caption += &format!("; the last one changed it by {}", number(end.1 - before.1));
    }
    if let Some(kept) = run.kept.filter(|kept| kept.iteration < steps) {
        let each = fixed(kept.free_energy / divisor(run), 4);
        caption += &format!("; the model is that of iteration {}, with {each}", count(kept.iteration as u64));
    }
    caption +=
        ". A curve that is flat at its end has come to rest; one that still climbs wants more iterations.";
    if annealed > 0 {
        caption +=
            " Dotted: annealed, the values are those of a flatter model and not comparable with the rest.";
    } else if cold > 0 {
        caption += " Dotted: each point is given to a single source to begin with, and values are not comparable with the rest.";
    }
    if run.count("batch").is_some_and(|batch| batch > 0) {
        caption += " Training was stepwise: all values but the last are sums over batches, each under the parameters it met.";
    }
    if let (Some(start), Some(starts)) = (run.start, run.count("restarts").filter(|&starts| starts > 1)) {
        caption += &format!(
            " Of {starts} starts this is number {}, the one that was kept.",
            start.saturating_add(1)
        );
    }
    // Far from the start, the first steps leave no room for the last.
    let mut plots = plot.html(&title, "");
    let comparable = per_point.len() - cold;
    if comparable > 2 {
        let tail = per_point.len() - (comparable / PARTS).max(2);
        let (x, y) = (|step: &(f64, f64)| step.0, |step: &(f64, f64)| step.1);
        let end = &per_point[tail..];
        let mut near = Plot::new(
            Axis::between(end.first().map_or(0.0, x), end.last().map_or(1.0, x), "iteration").in_whole(),
            Axis::over(end.iter().map(y), "the last part of it"),
        );
        near.curve(end, "one");
        near.dots(&end[end.len() - 1..]);
        plots = format!(
            "<div class=\"beside\">{plots}{}</div>\n",
            near.html("the last iterations on their own scale", "")
        );
    }
    section("training", "Training", &figure(&plots, &caption))
}
