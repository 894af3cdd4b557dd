//! What a run says: a line per iteration, MODEL.json, a summary.

use crate::commands::output::counted;
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::train::State;
use crate::{Error, Result};
use serde_json::{Value, json};
use spikelet::frame::{Form, Frame};
use std::path::Path;

/// Warnings that are printed; all are in MODEL.json.
const WARNINGS: usize = 8;

/// Iteration, free energy per point, change: in short for a terminal, and in full.
pub(super) fn lines(state: &State) -> (String, String) {
    let (history, points) = (&state.current.history, state.data.0 as f64);
    let last = history.last().map_or(0.0, |step| step.free_energy / points);
    let change = match history.len().checked_sub(2).and_then(|i| history.get(i)) {
        Some(before) => format!(" ({:+.2e})", last - before.free_energy / points),
        None => String::new(),
    };
    let at = place(state, history.len().saturating_sub(1));
    (format!("{at}, F {last:.4}"), format!("{at}, free energy {last:.6} per point{change}"))
}

/// Start and iteration.
pub(super) fn place(state: &State, iteration: usize) -> String {
    match state.settings.restarts {
        1 => format!("iteration {iteration}"),
        starts => format!("start {}/{starts}, iteration {iteration}", state.current.number + 1),
    }
}

/// MODEL.json: names as in the contract. `odd` is what was said of the data.
pub(super) fn json(state: &State, frame: Option<&Frame>, gains: &[f32], odd: &[String]) -> Result<String> {
    let result = state.result();
    let Parameters { latents: h, dims: d, .. } = *result.kept();
    let rows = |matrix: &[f64], width: usize| -> Value {
        matrix.chunks_exact(width).map(|row| json!(row)).collect()
    };
    let model = &state.model();
    let mut parameters = json!({
        "w": rows(&model.dictionary, h),
        "pi": model.prior,
        "sigma2": match &model.noise {
            NoiseCov::Shared(sigma2) => json!(sigma2),
            NoiseCov::Diagonal(sigma2) => json!(sigma2),
            NoiseCov::Full(sigma) => rows(sigma, d),
            NoiseCov::Components(sigma2) => rows(sigma2, h),
        },
    });
    if model.kind.kind().has_slab() {
        parameters["mu"] = json!(model.slab_mean);
        parameters["psi2"] = match &model.slab_cov {
            SlabCov::Full(psi) => rows(psi, h),
            _ => json!(model.slab_variances()),
        };
    }
    let value = json!({
        "settings": state.settings,
        "points": state.data.0,
        "frame": frame.map(|frame| match frame.form {
            Form::Windows { length, hop } => {
                json!({ "form": "windows", "length": length, "hop": hop, "rate": frame.rate, "centred": frame.centred })
            }
            Form::Patches { width, height, colours } => {
                json!({ "form": "patches", "width": width, "height": height, "colours": colours, "centred": frame.centred })
            }
            Form::Transform { bins, channels } => {
                json!({ "form": "transform", "bins": bins, "channels": channels, "rate": frame.rate, "gains": gains })
            }
            _ => json!({ "form": "samples", "rate": frame.rate }),
        }),
        "parameters": parameters,
        "whitening": state.whitening.as_ref().map(|whitening| rows(&whitening.matrix, d)),
        "start": result.number,
        "history": result.history,
        "kept": { "iteration": result.kept_iteration(), "free_energy": result.free_energy() },
        "held_out": state.held_out,
        "warnings": odd.iter().chain(result.warnings()).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    let text = serde_json::to_string_pretty(&value);
    text.map(|text| text + "\n").map_err(|cause| Error::run(cause, "MODEL.json", "report this"))
}

pub(super) fn summary(state: &State, out: &Path, json: &Path) -> String {
    let (result, points) = (state.result(), state.data.0 as f64);
    let on: f64 = result.kept().prior.iter().sum();
    let noise = state.model().noise_variances();
    let mean_noise = noise.iter().sum::<f64>() / noise.len() as f64;
    let count = result.warnings().count();
    let shown = result.warnings().take(WARNINGS).map(|warning| format!("warning: {warning}\n"));
    let mut warnings: String = shown.collect();
    if count > WARNINGS {
        warnings += &format!("and {} more, in {}\n", count - WARNINGS, json.display());
    }
    let held_out = match state.held_out {
        0 => String::new(),
        points => format!(", {points} more held out"),
    };
    format!(
        "{}: {} from {} of {}{held_out}\n\
         free energy {:.6} per point after {}; {on:.2} latents on at a time; noise variance {mean_noise:.4e}\n\
         all parameters and the history are in {}\n{warnings}",
        out.display(),
        counted(state.settings.latents, "latent"),
        counted(state.data.0, "point"),
        counted(state.data.1, "dimension"),
        result.free_energy() / points,
        counted(result.kept_iteration(), "iteration"),
        json.display(),
    )
}
