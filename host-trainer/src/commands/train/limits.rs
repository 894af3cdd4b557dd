//! Whether the states that were looked at are enough for the data.
//!
//! Every limit is raised by itself, and some points are inferred again: where their evidence, the log of the sum over states, rises,
//! the states beyond the limit matter.

use crate::Result;
use crate::commands::engine::{Extra, infer_part};
use crate::parameters::Parameters;
use crate::prepare::{Options, Prepared, StatesName};
use crate::train::settings::Engine;
use crate::train::{Points, State};

/// Points that are looked at, spread over all.
const LOOKED_AT: usize = 150;

/// Nats per point from which a limit is told of.
const WORTHWHILE: f64 = 0.05;

/// A line for each limit that the data hits, with the flag to raise.
pub(super) fn check(state: &State, points: &mut Points) -> Result<Vec<String>> {
    let settings = &state.settings;
    // All states, draws, and points that are whitened, unlike the model.
    if settings.engine != Engine::Truncated || settings.whiten || settings.model.kind().is_sampled() {
        return Ok(Vec::new());
    }
    let (mut sample, mut point) = (Vec::new(), Vec::new());
    let taken = points.len().min(LOOKED_AT);
    for number in 0..taken {
        points.read(number * points.len() / taken, 1, &mut point)?;
        sample.extend_from_slice(&point);
    }
    Ok(hit(&state.model(), &settings.options(), &sample))
}

/// The limits that these points hit.
fn hit(parameters: &Parameters, options: &Options, points: &[f64]) -> Vec<String> {
    let Some(before) = evidence(parameters, options, points) else { return Vec::new() };
    let Options { selected, max_active, expansions, .. } = *options;
    let is_adaptive = options.states == Some(StatesName::Adaptive);
    let raised = [
        ("--max-active", max_active, Options { max_active: (max_active + 1).min(selected), ..*options }),
        (
            "--selected",
            selected,
            Options { selected: (selected + selected.div_ceil(2)).min(parameters.latents), ..*options },
        ),
        (
            "--expansions",
            expansions,
            Options { expansions: if is_adaptive { 2 * expansions } else { expansions }, ..*options },
        ),
    ];
    let mut said = Vec::new();
    for (flag, limit, more) in raised.into_iter().filter(|(.., more)| more != options) {
        // What the core cannot have is no advice.
        let Some(after) = evidence(parameters, &more, points) else { continue };
        let gain = after - before;
        if gain > WORTHWHILE {
            said.push(format!(
                "states are cut off by {flag} {limit}: with a little more, points would be explained better by {gain:.2} nats on \
                 average; raise it"
            ));
        }
    }
    said
}

/// Mean evidence of points, if a model can be made with these options.
fn evidence(parameters: &Parameters, options: &Options, points: &[f64]) -> Option<f64> {
    let prepared = Prepared::<f32>::new(parameters, options).ok()?;
    let model = prepared.model().ok()?;
    let found = infer_part(model, spikelet::Engine::Truncated, points, 0, "DATA", Extra::Nothing).ok()?;
    Some(found.evidence.iter().map(|&e| f64::from(e)).sum::<f64>() / found.evidence.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ModelKind, NoiseCov, SlabCov};
    use crate::prepare::{GramName, SelectionName};

    /// Four latents, one dimension each: points with three on need states with three on, of three candidates.
    #[test]
    fn limits_that_are_hit_are_named() {
        let parameters = Parameters {
            kind: ModelKind::Gsc,
            dims: 4,
            latents: 4,
            dictionary: (0..16).map(|e| f64::from(u8::from(e / 4 == e % 4))).collect(),
            prior: vec![0.3; 4],
            slab_mean: vec![0.0; 4],
            slab_cov: SlabCov::Unit,
            noise: NoiseCov::Shared(0.01),
        };
        let options = |selected, max_active| Options {
            selected,
            max_active,
            singletons: true,
            selection: SelectionName::Singleton,
            states: None,
            expansions: Options::EXPANSIONS,
            gram: GramName::Stored,
        };
        let three = [1.0, -1.0, 2.0, 0.0];
        let said = hit(&parameters, &options(3, 2), &three);
        assert!(said.len() == 1 && said[0].starts_with("states are cut off by --max-active 2:"), "{said:?}");
        let said = hit(&parameters, &options(2, 2), &three);
        assert!(said.len() == 1 && said[0].contains("--selected 2"), "{said:?}");
        assert_eq!(hit(&parameters, &options(4, 4), &three), [] as [&str; 0]);
        assert_eq!(hit(&parameters, &options(3, 2), &[1.0, 0.0, 0.0, 0.0]), [] as [&str; 0]);
    }
}
