//! Models for streams.

use spikelet::blob::BlobError;
use spikelet::frame::{Form, Frame};
use spikelet::rng::Rng;
use spikelet::{Blob, Engine, Error, Stream};
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::groups::Grouping;
use spikelet_trainer::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use spikelet_trainer::prepare::{GramName, Options, Prepared, SelectionName};

/// A model of windows, samples or coefficients with a random dictionary.
pub fn parameters(kind: ModelKind, dims: usize, latents: usize) -> Parameters {
    let mut rng = Rng::new(7);
    let sign = |w: f64| if kind.kind().is_non_negative() { w.abs() } else { w };
    let dictionary: Vec<f64> = (0..dims * latents).map(|_| sign(rng.normal())).collect();
    let (prior, noise) = (vec![0.2; latents], NoiseCov::Shared(0.05));
    match kind.kind().has_slab() {
        false => Parameters::binary(kind, dictionary, dims, prior, noise),
        true => {
            let (slab_mean, slab_cov) = (vec![0.1; latents], SlabCov::Diagonal(vec![0.5; latents]));
            Parameters { kind, dims, latents, dictionary, prior, slab_mean, slab_cov, noise }
        }
    }
}

/// A blob that lives as long as the test program.
pub fn blob_of(parameters: &Parameters, about: About<'_>) -> Blob<'static> {
    let options = Options {
        selected: parameters.latents.min(6),
        max_active: parameters.latents.min(3),
        singletons: true,
        selection: SelectionName::of_kind(parameters.kind),
        states: None,
        expansions: Options::EXPANSIONS,
        gram: GramName::Auto,
    };
    let prepared = Prepared::<f32>::new(parameters, &options).unwrap();
    parse(&blob::write(&prepared, &parameters.slab_cov, about).unwrap()).unwrap()
}

/// [`Blob::parse`] of bytes that may start anywhere.
pub fn parse(bytes: &[u8]) -> Result<Blob<'static>, BlobError> {
    let memory = vec![0; bytes.len() + 8].leak();
    let start = memory.as_ptr().addr().next_multiple_of(8) - memory.as_ptr().addr();
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    Blob::parse(&memory[start..start + bytes.len()])
}

pub fn frame(form: Form) -> Option<Frame> {
    Some(Frame { form, rate: 8000, centred: false })
}

/// So many groups, latents dealt out to them in turn.
pub fn dealt(latents: usize, groups: usize) -> Grouping {
    let names = (0..groups).map(|group| format!("source {group}")).collect();
    Grouping { names, numbers: (0..latents).map(|latent| (latent % groups) as u16).collect() }
}

/// One of every form and kind of output: samples of two channels; windows with hops that divide them and that do not, all in
/// one group, in three, maximal causes; the transform of two channels; samples that are drawn.
pub fn all_forms() -> Vec<(&'static str, Blob<'static>, Engine)> {
    let of = |kind, dims, latents, form, centred, groups: usize| {
        let grouping = (groups > 0).then(|| dealt(latents, groups));
        let frame = Some(Frame { form, rate: 0, centred });
        let about = About { frame, groups: grouping.as_ref(), ..About::default() };
        blob_of(&parameters(kind, dims, latents), about)
    };
    let (truncated, windows) = (Engine::Truncated, |length, hop| Form::Windows { length, hop });
    let transform = Form::Transform { bins: 16, channels: 2 };
    let sampled = Engine::of_kind(spikelet::Kind::Ssmca);
    vec![
        ("samples", of(ModelKind::Gsc, 2, 3, Form::Samples, false, 0), truncated),
        ("samples of bsc in groups", of(ModelKind::Bsc, 3, 5, Form::Samples, false, 2), truncated),
        ("windows", of(ModelKind::Gsc, 24, 10, windows(24, 8), false, 0), truncated),
        ("centred windows in groups", of(ModelKind::Gsc, 15, 10, windows(15, 4), true, 3), truncated),
        ("windows side by side", of(ModelKind::Bsc, 9, 10, windows(9, 9), false, 2), truncated),
        ("windows of one sample", of(ModelKind::Gsc, 1, 2, windows(1, 1), false, 2), truncated),
        ("windows of maximal causes", of(ModelKind::Mca, 12, 6, windows(12, 5), false, 0), truncated),
        ("windows that are drawn", of(ModelKind::Ssmca, 6, 4, windows(6, 3), false, 0), sampled),
        ("transform", of(ModelKind::Gsc, 2, 5, transform, false, 3), truncated),
        ("transform, latents as they are", of(ModelKind::Gsc, 2, 3, transform, false, 0), truncated),
    ]
}

/// Memory for a stream, and a stream over it, both for as long as the program runs.
pub fn stream(blob: Blob<'static>, engine: Engine) -> Result<Stream<'static>, Error> {
    Stream::new(blob, engine, vec![f32::NAN; Stream::memory_len_for(&blob, &engine)].leak())
}

/// So many samples of noise, some silent, some clipped, some tones.
pub fn recording(samples: usize, channels: usize) -> Vec<f32> {
    let mut rng = Rng::new(3);
    let number = |n: usize, c: usize, noise: f32| match n / 50 % 4 {
        0 => noise,
        1 => (noise * 9.0).clamp(-1.0, 1.0),
        2 => 0.0,
        _ => (0.3 * (n + c) as f32).sin() + 0.05 * noise,
    };
    (0..samples * channels).map(|i| number(i / channels, i % channels, rng.normal())).collect()
}

/// All of it in blocks of these lengths, in turn.
pub fn in_blocks(stream: &mut Stream<'_>, input: &[f32], blocks: &[usize]) -> Vec<f32> {
    let (channels, groups) = (stream.channels(), stream.groups());
    let mut output = vec![f32::NAN; input.len() / channels * groups];
    let (mut done, samples) = (0, input.len() / channels);
    for block in blocks.iter().cycle() {
        let end = (done + block).min(samples);
        let out = &mut output[done * groups..end * groups];
        stream.process(&input[done * channels..end * channels], out).unwrap();
        done = end;
        if done == samples {
            return output;
        }
    }
    output
}
