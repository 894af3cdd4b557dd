//! Where chains start, and how that shows where noise is so small that they cannot leave.

mod common;

use common::sampling::{ENUMERABLE, model, options, sample};
use spikelet::{Detail, Engine, Gibbs, Inference, Model, Start, gibbs_arena_len};
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters};
use spikelet_trainer::prepare::{Options, Prepared};

/// What the best state is, and ln p(y, s) of it.
type Best = (Vec<u16>, f64);

/// By enumeration, with at most gamma on.
fn enumerated(model: Model<'_, f64>, y: &[f64]) -> Best {
    let mut memory = vec![0.0; model.arena_len()];
    let mut inference = Inference::new(model, &mut memory).unwrap();
    let found = inference.infer(y).unwrap();
    let (evidence, map) = (found.evidence, found.map_latents.to_vec());
    let mut best = 0.0f64;
    inference.for_each_state(|_, probability| best = best.max(probability));
    (map, evidence + best.ln())
}

/// The best state of a chain of one sweep, and what that sweep drew.
fn one_sweep(model: Model<'_, f64>, start: Start, max_active: u16, y: &[f64]) -> (Best, Vec<u16>) {
    let mut memory = vec![0.0; gibbs_arena_len(model.shape, Detail::Marginals)];
    let settings = Gibbs { start, max_active, ..Gibbs::new(model.shape.kind, 1) };
    let engine = Engine::Gibbs(settings);
    let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
    inference.project(y).unwrap();
    inference.select();
    let mut drawn = Vec::new();
    let found = inference.draw(|draw| {
        let on = draw.order.iter().zip(draw.values).filter(|(_, x)| **x != 0.0);
        drawn = on.map(|(&latent, _)| latent).collect();
    });
    let found = found.unwrap();
    let best = (found.map_latents.to_vec(), found.evidence);
    drawn.sort_unstable();
    (best, drawn)
}

/// With little noise one sweep does not leave the state it begins at: that of enumeration, of all states and of those with at most
/// two on. Greedy starts miss it now and then, which shows that it makes a difference.
#[test]
fn chains_start_at_the_best_state_if_asked() {
    let mut missed = 0;
    for (seed, kind) in (0..30).flat_map(|seed| ENUMERABLE.map(|kind| (seed, kind))) {
        let (mut parameters, y) = (model(kind, 5, 6, seed), sample(5, seed));
        parameters.noise = NoiseCov::Shared(1e-4);
        for max_active in [6, 2] {
            let chosen = Options { max_active, ..options(kind, 6) };
            let prepared = Prepared::<f64>::new(&parameters, &chosen).unwrap();
            let model = prepared.model().unwrap();
            let (map, joint) = enumerated(model, &y);
            let (best, drawn) = one_sweep(model, Start::Best, max_active as u16, &y);
            let what = format!("{kind:?} {seed} {max_active}");
            // To rounding, with energies of 1e5.
            assert!(
                best.0 == map && (best.1 - joint).abs() < 1e-9 * joint.abs(),
                "{what}: {best:?} {map:?} {joint}"
            );
            assert_eq!(drawn, map, "{what}");
            let (greedy, _) = one_sweep(model, Start::Greedy, max_active as u16, &y);
            assert!(greedy.1 < joint + 1e-9 * joint.abs(), "{what}: {} {joint}", greedy.1);
            missed += usize::from(greedy.0 != map);
        }
    }
    assert!(missed > 0, "greedy starts would do");
}

const LOUD: [ModelKind; 4] = [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Mca, ModelKind::Ssmca];

/// A model without noise to speak of, a sample that two of its eight latents make (one with slabs of which the strongest
/// counts: others may be on below zero, which nothing tells from off), and their strengths. (H)
fn loud(kind: ModelKind, seed: u64) -> (Parameters, Vec<f32>, Vec<f64>) {
    let mut parameters = model(kind, 12, 8, 2 * seed);
    parameters.noise = NoiseCov::Shared(1e-8);
    parameters.dictionary.iter_mut().for_each(|w| *w = f64::from(*w as f32));
    let mut x = vec![0.0; 8];
    let strengths = match kind {
        ModelKind::Gsc => [1.25, 2.5],
        ModelKind::Ssmca => [1.25, 0.0],
        _ => [1.0; 2],
    };
    (x[seed as usize % 8], x[(seed as usize + 3) % 8]) = (strengths[0], strengths[1]);
    let combined = |row: &[f64]| {
        let parts = row.iter().zip(&x).map(|(w, x)| w * x);
        if kind.kind().is_maximal() { parts.fold(0.0, f64::max) } else { parts.sum() }
    };
    let y = parameters.dictionary.chunks_exact(8).map(|row| combined(row) as f32).collect();
    (parameters, y, x)
}

/// Means, the best state (H, zero where it is off) and the evidence of one sample.
fn chain(model: Model<'_, f32>, settings: Gibbs, y: &[f32]) -> (Vec<f32>, Vec<f32>, f32) {
    let mut memory = vec![0.0; gibbs_arena_len(model.shape, Detail::Marginals)];
    let engine = Engine::Gibbs(settings);
    let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
    let found = inference.infer(y).unwrap();
    let mut state = vec![0.0; model.shape.latents];
    found.map_latents.iter().zip(found.map_values).for_each(|(&h, &x)| state[usize::from(h)] = x);
    (found.mean.to_vec(), state, found.evidence)
}

/// By enumeration, in 64 bits.
fn exact_means(parameters: &Parameters, y: &[f32]) -> Vec<f64> {
    let prepared = Prepared::<f64>::new(parameters, &options(parameters.kind, 8)).unwrap();
    let mut memory = vec![0.0; prepared.model().unwrap().arena_len()];
    let mut inference = Inference::new(prepared.model().unwrap(), &mut memory).unwrap();
    let y: Vec<f64> = y.iter().map(|&y| f64::from(y)).collect();
    inference.infer(&y).unwrap().mean.to_vec()
}

/// Of a loud sample the sources are certain, and sampling must find them to the last digits that f32 has, from the best of all
/// states or, where they cannot be listed, from the greedy one. What the true sources hide stays as probable as it was, so
/// the means to be found are those of enumeration.
#[test]
fn loud_samples_keep_their_digits() {
    for (seed, kind) in (0..20).flat_map(|seed| LOUD.map(|kind| (seed, kind))) {
        let (parameters, y, truth) = loud(kind, seed);
        let prepared = Prepared::<f32>::new(&parameters, &options(kind, 8)).unwrap();
        let is_sampled = kind == ModelKind::Ssmca;
        let start = if is_sampled { Start::Greedy } else { Start::Best };
        let (mean, ..) =
            chain(prepared.model().unwrap(), Gibbs { start, seed, ..Gibbs::new(kind.kind(), 60) }, &y);
        let expected = if is_sampled { truth.clone() } else { exact_means(&parameters, &y) };
        for h in 0..8 {
            // A slab below zero is hidden by all that is off.
            let is_told = !is_sampled || truth[h] > 0.0;
            let miss = (f64::from(mean[h]) - expected[h]).abs();
            assert!(!is_told || miss < 1e-3, "{kind:?} {seed}: latent {h}: {} {}", mean[h], expected[h]);
        }
    }
}

/// Without noise a chain cannot leave a greedy start that is wrong. Then it is one that no latent alone improves, and the evidence
/// says less than that of the truth.
#[test]
fn greedy_starts_that_are_wrong_cannot_be_improved_by_one_latent() {
    let mut wrong = 0;
    for (seed, kind) in
        (0..60).flat_map(|seed| [ModelKind::Gsc, ModelKind::Bsc, ModelKind::Mca].map(|kind| (seed, kind)))
    {
        let (parameters, y, _) = loud(kind, seed);
        let prepared = Prepared::<f32>::new(&parameters, &options(kind, 8)).unwrap();
        let model = prepared.model().unwrap();
        let run = |start| chain(model, Gibbs { start, seed, ..Gibbs::new(kind.kind(), 60) }, &y);
        let ((_, state, evidence), (_, best, most)) = (run(Start::Greedy), run(Start::Best));
        if state == best {
            continue;
        }
        wrong += 1;
        assert!(evidence < most, "{kind:?} {seed}: {evidence} {most}");
        let mut memory = vec![0.0; gibbs_arena_len(model.shape, Detail::Marginals)];
        let engine = Engine::Gibbs(Gibbs::new(kind.kind(), 1));
        let mut inference = Inference::with_engine(model, &mut memory, Detail::Marginals, engine).unwrap();
        for (latent, &x) in state.iter().enumerate() {
            let found = inference.conditional(&y, &state, latent as u16, &[], &mut []).unwrap();
            assert!((found.log_odds > 0.0) == (x != 0.0), "{kind:?} {seed}: latent {latent}: {found:?}");
        }
    }
    assert!(wrong > 0, "nothing was tried");
}
