//! `spikelet demo`: the whole way on sounds it makes itself, more sources than sensors.

mod measure;
mod sounds;

use super::engine::{self, Posteriors};
use super::import::build;
use super::model_file::ModelFile;
use super::output::{Folder, print};
use super::results::RESULTS;
use super::source_text::{Symbol, c_header};
use crate::data::{npy_f64, write_wav};
use crate::metrics::{MAX_DB, si_sdr_db};
use crate::parameters::{ModelKind, NoiseCov, Parameters, SlabCov};
use crate::prepare::{GramName, Options, SelectionName};
use crate::{Error, Result, files};
use measure::Wiener;
use sounds::{NAMES, RATE, SECONDS, Scene};
use spikelet::Engine;
use spikelet::Shape;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// Gains of sounds (columns) at microphones (rows): three sounds near one microphone each, the last in the middle.
const MIXING: [[f64; NAMES.len()]; 3] = [[1.0, 0.3, 0.2, 0.6], [0.2, 1.0, 0.3, 0.6], [0.3, 0.2, 1.0, 0.6]];

/// Separate four sounds recorded by three microphones, and write every file of the way
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes four sounds, mixes them on three microphones, adds noise, imports a model that knows the mixing gains, and
infers the sounds sample by sample, as a microcontroller would. Nothing needs to be prepared.

Example:
  spikelet demo --out-dir spikelet-demo")]
pub(super) struct Demo {
    /// Folder for the files; created when it does not exist
    #[arg(long, value_name = "DIR", default_value = "spikelet-demo")]
    out_dir: PathBuf,
    /// Other sounds and noise for every seed, the same for the same seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Demo {
    pub fn run(self) -> Result<()> {
        let scene = Scene::new(&MIXING, self.seed);
        let parameters = parameters(&scene);
        let options = Options {
            selected: parameters.latents,
            max_active: parameters.latents,
            singletons: true,
            selection: SelectionName::Singleton,
            states: None,
            gram: GramName::Auto,
        };
        let provenance = format!("spikelet {} demo, seed {}", env!("CARGO_PKG_VERSION"), self.seed);
        let bytes = build(&parameters, &options, &provenance)?;
        let file = ModelFile::new("the demo's model".into(), &bytes);
        let blob = file.blob()?;
        let header = c_header(&Symbol::of_file("model.h".as_ref()), &blob, &bytes);
        let mixture: Vec<f64> = scene.mixture.iter().map(|&y| f64::from(y)).collect();
        let posteriors =
            engine::infer(blob.model(), Engine::Truncated, &mixture, 1, 0, "the demo's mixture", false)?
                .remove(0);

        let report = report(&scene, &parameters, &posteriors)?;
        let written = self.write(&scene, &parameters, &bytes, &header, &posteriors, blob.model().shape)?;
        print(&(report + &self.next_steps(&written, &parameters)))
    }

    /// Writes all files and returns their names.
    fn write(
        &self,
        scene: &Scene,
        parameters: &Parameters,
        model: &[u8],
        header: &str,
        posteriors: &Posteriors,
        shape: Shape,
    ) -> Result<Vec<String>> {
        let folder = Folder::create(&self.out_dir)?;
        let SlabCov::Diagonal(psi2) = &parameters.slab_cov else { unreachable!("the demo's slab") };
        let (d, h) = (parameters.dims, parameters.latents);
        let mut recordings = vec![("mixture.wav".to_string(), d, scene.mixture.clone())];
        for (k, source) in scene.sources.iter().enumerate() {
            let estimate = posteriors.mean.iter().skip(k).step_by(h).copied().collect();
            recordings.push((format!("source_{k}.wav"), 1, source.iter().map(|&x| x as f32).collect()));
            recordings.push((format!("estimate_{k}.wav"), 1, estimate));
        }
        recordings.iter().try_for_each(|(name, ..)| files::check_target(folder.file(name)))?;
        let plain = ["model.spk", "model.h", "W.npy", "pi.npy", "psi2.npy"];
        let mut names: Vec<&str> = plain.into_iter().chain(RESULTS.map(|result| result.name)).collect();
        folder.write_together(&names, |writers| {
            let fail = |cause| Error::writing(&self.out_dir, &cause);
            let (inputs, results) = writers.split_at_mut(plain.len());
            if let [spk, text, w, pi, psi] = inputs {
                spk.write_all(model).map_err(fail)?;
                text.write_all(header.as_bytes()).map_err(fail)?;
                npy_f64(w, &[d, h], &parameters.dictionary).map_err(fail)?;
                npy_f64(pi, &[h], &parameters.prior).map_err(fail)?;
                npy_f64(psi, &[h], psi2).map_err(fail)?;
            }
            for (writer, result) in results.iter_mut().zip(&RESULTS) {
                result.start(writer, scene.samples(), shape).map_err(fail)?;
                writer.write_all(&(result.rows)(posteriors)).map_err(fail)?;
            }
            Ok(())
        })?;
        for (name, channels, samples) in &recordings {
            write_wav(folder.file(name), RATE, *channels, samples)?;
            names.push(name);
        }
        Ok(names.into_iter().map(String::from).collect())
    }

    fn next_steps(&self, written: &[String], parameters: &Parameters) -> String {
        let NoiseCov::Shared(sigma2) = parameters.noise else { unreachable!("the demo's noise") };
        // As this command was called, so that the lines can be called as they stand.
        let spikelet = std::env::args_os().next().unwrap_or_else(|| "spikelet".into());
        let spikelet = quoted(&spikelet.to_string_lossy());
        let file = |name: &str| quoted(&self.out_dir.join(name).display().to_string());
        let (model, header, mixture) = (file("model.spk"), file("model.h"), file("mixture.wav"));
        let mut text = format!("\nFiles in {}:\n", self.out_dir.display());
        for names in written.chunks(6) {
            let _ = writeln!(text, "  {}", names.join(" "));
        }
        text + &format!(
            "
Listen to mixture.wav, then to estimate_0.wav beside source_0.wav. What was done, step by step:
  {spikelet} import --model gsc --w {w} --pi {pi} --psi2 {psi2} --sigma2 {sigma2:e} --out {model}
  {spikelet} inspect {model}
  {spikelet} infer {model} {mixture} --out-dir {folder}
  {spikelet} export {model} --format c --out {header}
In firmware: include model.h and spikelet.h, link the libspikelet.a of your core, and call spk_init and spk_process.
",
            w = file("W.npy"),
            pi = file("pi.npy"),
            psi2 = file("psi2.npy"),
            folder = file(""),
        )
    }
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-:".contains(c);
    if text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What the model knows: gains, noise, and how often and how loud each sound is, but not when.
fn parameters(scene: &Scene) -> Parameters {
    let (prior, psi2) = scene.sources.iter().map(|source| sounds::statistics(source)).unzip();
    Parameters {
        kind: ModelKind::Gsc,
        dims: MIXING.len(),
        latents: NAMES.len(),
        dictionary: MIXING.concat(),
        prior,
        slab_mean: vec![0.0; NAMES.len()],
        slab_cov: SlabCov::Diagonal(psi2),
        noise: NoiseCov::Shared(scene.sigma2),
    }
}

fn report(scene: &Scene, parameters: &Parameters, posteriors: &Posteriors) -> Result<String> {
    let (d, h) = (parameters.dims, parameters.latents);
    let wiener = Wiener::new(parameters)?;
    let linear = wiener.apply(&scene.mixture);
    let mut text = format!(
        "{h} sounds, {d} microphones, {SECONDS} s at {RATE} Hz, noise {} dB below the sounds.\n\
         The model knows the mixing gains, the noise, and how often and how loud each sound is, but not when.\n\n\
         Separation in dB (SI-SDR, higher is better):\n\
         {:<12}{:>14}{:>14}{:>12}{:>10}\n",
        sounds::SNR_DB,
        "sound",
        "best single",
        "best linear",
        "spikelet",
        "gain"
    );
    let mut sums = [0.0; 3];
    for (k, (name, source)) in NAMES.iter().zip(&scene.sources).enumerate() {
        let column = |values: &[f32], width: usize, at: usize| -> Vec<f64> {
            values.iter().skip(at).step_by(width).map(|&value| f64::from(value)).collect()
        };
        let si_sdr = |estimate: &[f64], truth: &[f64]| si_sdr_db(estimate, truth).unwrap_or(-MAX_DB);
        let sensors = (0..d).map(|sensor| si_sdr(&column(&scene.mixture, d, sensor), source));
        let values = [
            sensors.fold(f64::MIN, f64::max),
            si_sdr(&column(&linear, h, k), source),
            si_sdr(&column(&posteriors.mean, h, k), source),
        ];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / h as f64);
        text += &row(&format!("{k} {name}"), values);
    }
    text += &row("mean", sums);
    Ok(
        text + "Best single: the microphone that comes closest. Best linear: the Wiener filter that knows the same numbers.\n"
    )
}

fn row(name: &str, [sensor, linear, ours]: [f64; 3]) -> String {
    format!("{name:<12}{sensor:>14.1}{linear:>14.1}{ours:>12.1}{:>+10.1}\n", ours - sensor)
}
