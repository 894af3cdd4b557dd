//! `spikelet train`: data to a model, by expectation maximisation.

mod checkpoint;
mod from;
mod front_end;
mod inside;
mod interrupt;
mod limits;
mod masked;
mod outputs;
mod picture;
mod plan;
mod ranks;
mod report;
mod room;
mod spectrum;

use super::framing::Framing;
use super::import::build;
use super::output::{Progress, counted, note, print, silence, warn};
use super::sanity::{Given, Survey};
use crate::blob::{self, About};
use crate::cluster::{Cluster, Session};
use crate::files::Staged;
use crate::prepare::{GramName, Options, Prepared};
use crate::train::{Next, Points, Settings, State};
use crate::{Error, Result};
use checkpoint::Checkpoint;
use from::Model;
pub(super) use front_end::{bins, long_enough, refuse_copies};
use inside::Inside;
use outputs::Outputs;
use plan::{Plan, SpatialFlags};
use spikelet::frame::{Form, Frame};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Learn a model from data
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Learns the dictionary, how often and how strongly each latent is on, and the noise. Writes MODEL.spk for
`spikelet infer` and `export`, and MODEL.json with all parameters, settings and the free energy of every iteration.
The same data, settings and seed give the same bits, whatever the number of threads.

Interrupted? Ctrl-C or SIGTERM finish the iteration and write a checkpoint (status 130); the same command with --resume goes
on, and ends in the same bits. With --checkpoint FILE one is also written every few iterations. --resume with more --iterations goes on
from where a finished run ended; --from MODEL.json needs no checkpoint and goes on from the parameters of any trained model.

Files larger than memory are read in pieces. Built with the feature `mpi`, `mpirun -n R spikelet train ...` trains one model with R processes, each on its own
part of the points, to the same bits; a checkpoint is then written every few iterations, for --resume after one of them was killed.

Plain EM sees all points before every step and never lowers the likelihood. For large dictionaries stepwise EM is the
default: it takes a step after every batch of points, finds its dictionary in a fraction of the passes, and gives
latents that do nothing a new direction. Its free energies are sums over batches as they were met; only the
last is that of the final model. --batch 0 asks for plain EM.

Where latents are more than dimensions, the states of a point are found by search (--states adaptive), and the model that is written searches
too. Unless most of the data's variance is in few directions, as in pictures, the first passes take five times the noise for
granted and turn at most two latents on. --states subsets trains as the papers do.

Latents that are on or off (bsc, nmf, mca) cool down first: posteriors are flat at a high temperature and sharpen as it falls,
and only the dictionary is learned; noise and prior follow at the end. Points that need more than --max-active latents
are left out in the last third. Their free energies are those of p(y, s)^(1/T); only the last is that of the model.

--engine factored takes latents as independent given the data: fast, and biased towards orthogonal columns. It is there to compare with.
--selection gp learns which latents to look at from the data and the posteriors of the last iteration, instead of from the
dictionary: the kernel is fitted every --kernel-every iterations, a tenth of the selected latents is drawn at random. With --kernel linear the learned
scores are a matrix that the model keeps, and a device selects by it too. With --states adaptive as well, scores are learned at the end, and searches begin with
the latents that they name: a little better where many latents of one sign overlap, for D x H multiply-adds a sample.

--model gmm is a Gaussian mixture: exactly one latent, a component, makes a point, and `infer` gives the probability of each. --noise is shared by all
components, or --noise components: a variance of each dimension in each. All components are looked at, or --selected of them, found near those that a point kept last.

Voices in a room, on two to four microphones some centimetres apart, need --model spatial: it learns delays and echoes, of up to four sources, also
more than microphones (three on two; four on two is too many). Sources and microphones must stay where they are. Frames are 128 ms
(--frame, a power of two), every quarter of it (--hop). The free energies of MODEL.json are sums of ln p(y); `spikelet separate` runs the model.

With --transform spectrum a model is one source in one channel, learned from recordings of it by itself: frames of 64 ms, of which exactly
one of --latents typical spectra is on. `spikelet merge` puts two or more of them together, `spikelet separate` takes mixtures apart.

Examples: four sources from a recording with four channels; three voices from two microphones; voices in a room; 20 parts of spectra; patches of a picture; many latents on
at once, by sampling; a baseline; learned selection; a mixture of Gaussians; a voice to be told from noise; more iterations:
  spikelet train --model gsc --latents 4 recording.wav --out model.spk
  spikelet train --model gsc --latents 3 --transform mdct mixture.wav --out voices.spk
  spikelet train --model spatial --latents 2 mixture.wav --out room.spk
  spikelet train --model nmf --latents 20 --max-active 5 spectra.npy --out parts.spk
  spikelet train noisy.png --out patches.spk
  spikelet train scratched.png --mask scratches.png --out patches.spk
  spikelet train --model gsc --latents 1000 --engine gibbs --selected 20 patches.npy --out patches.spk
  spikelet train --model gsc --latents 10 --engine factored mixtures.npy --out baseline.spk
  spikelet train --model bsc --latents 20 --selected 8 --selection gp --kernel rbf points.npy --out parts.spk
  spikelet train --model gmm --latents 64 --noise components points.npy --out clusters.spk
  spikelet train --model mca --latents 64 --transform spectrum voice.wav --out voice.spk
  spikelet train --from model.json --iterations 50 more.wav --out better.spk")]
pub(super) struct Train {
    #[command(flatten)]
    plan: Plan,
    #[command(flatten)]
    framing: Framing,
    #[command(flatten)]
    spatial: SpatialFlags,
    /// Pixels from one patch to the next, for pictures [default: 1; where the size of patches is chosen, so many that about
    /// 100000 are learned from]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..))]
    step: Option<u32>,
    /// Which pixels of the picture are missing, those that are not 0 in this .png or .npy: they are learned from as little as
    /// they are known
    #[arg(long, value_name = "MASK")]
    mask: Option<PathBuf>,
    /// Points: .npy (N x D), .npz (or FILE.npz:NAME), .csv (a row each), .wav (a sample of all channels each, or --frame or
    /// --transform) or .png (--patch); several are joined; with --transform spectrum also folders of recordings
    #[arg(value_name = "DATA", required = true)]
    data: Vec<PathBuf>,
    /// Model to write
    #[arg(long, value_name = "MODEL.spk")]
    out: PathBuf,
    /// Threads to compute on; the results do not depend on it [default: all cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// File for checkpoints [default: MODEL.spk.checkpoint, written when interrupted only]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Iterations between checkpoints
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint_every: u32,
    /// Go on from the checkpoint if there is one
    #[arg(long)]
    resume: bool,
    /// Train on a recording although sounds reach its microphones at different times, which the model cannot explain
    #[arg(long)]
    ignore_delays: bool,
}

/// What a run begins with.
struct Opened {
    from: Option<Model>,
    outputs: Outputs,
    checkpoint: Checkpoint,
    frame: Option<Frame>,
    points: Points,
    /// What is to be said of the data.
    odd: Vec<String>,
}

impl Train {
    pub fn run(self) -> Result<()> {
        Session::join()?.run(|cluster| {
            if !cluster.is_first() {
                silence();
            }
            self.run_on(cluster)
        })
    }

    fn run_on(mut self, cluster: &Cluster) -> Result<()> {
        if self.plan.is_spatial() {
            cluster.agree(ranks::refuse(cluster, "--model spatial"))?;
            return self.room();
        }
        cluster.agree(self.spatial.refuse())?;
        if self.mask.is_some() {
            cluster.agree(self.plan.for_mask())?;
        }
        if self.plan.from.is_none() {
            cluster.agree(self.choose_sizes())?;
        }
        if self.framing.is_spectrum() {
            cluster.agree(ranks::refuse(cluster, "--transform spectrum"))?;
            self.plan.resolve()?;
            return self.spectrum();
        }
        let Opened { from, outputs, checkpoint, frame, mut points, mut odd } =
            cluster.agree(self.open(cluster))?;
        let like_model = from.as_ref().filter(|_| !self.framing.is_given());
        let frame = points.frame(frame);
        self.plan.means_off = frame.filter(|frame| frame.centred).map_or(0, |frame| match frame.form {
            Form::Patches { colours, .. } => usize::from(colours),
            _ => 1,
        });
        let survey = Survey::of(&mut points)?;
        let given = Given {
            paths: &self.data,
            points: points.len(),
            dims: points.dims(),
            are_rows: frame.is_none_or(|frame| frame.form == Form::Samples),
            are_whitened: self.plan.is_whitened(),
        };
        let said = survey.check_training(self.plan.model, self.plan.latents(), given);
        odd.extend(cluster.agree(said)?);
        if self.plan.iterations() == 0 && from.is_none() {
            odd.push("no iterations: nothing is learned, and the dictionary is where it starts".into());
        }
        odd.extend(like_model.and_then(|model| model.other_rate(points.rate())));
        odd.extend(from.as_ref().and_then(|model| survey.compare_to_go_on(&model.parameters)));
        self.say_band(&points, frame.as_ref());
        let settings = cluster.agree(self.settle(&mut points))?;
        let earlier = if self.resume { ranks::earlier(&checkpoint, cluster)? } else { None };
        // Before the work: the first dictionary may take long by itself.
        odd.iter().for_each(warn);
        let mut state = match earlier {
            Some(state) => checkpoint.accept(state, &settings, &points)?,
            None => {
                if self.resume {
                    let place = checkpoint.path.display();
                    warn(format_args!("there is no checkpoint {place}: the run starts over"));
                }
                let first = from.map(|model| model.first(&settings, points.dims())).transpose()?;
                State::from(settings, &mut points, first)?
            }
        };
        // Better now than after hours: data may be beyond the numbers that a model can hold.
        self.blob(&state, About { frame, gains: points.gains(), ..About::default() })?;
        let is_finished = self.train(&mut state, &mut points, &checkpoint)?;
        let mut end = || {
            if !is_finished {
                let place = report::place(&state, state.current.history.len().saturating_sub(1));
                let advice =
                    format!("the same command with --resume goes on from {}", checkpoint.path.display());
                return Err(Error::interrupted("stopped before the end", place, advice));
            }
            if !cluster.is_first() {
                return Ok(());
            }
            // Of points with holes nothing is told: limits are looked at with guesses in them.
            let is_whole = self.mask.is_none();
            let cut_off = if is_whole { limits::check(&state, &mut points)? } else { Vec::new() };
            cut_off.iter().for_each(warn);
            odd.extend(cut_off);
            let about = About { frame, gains: points.gains(), ..About::default() };
            self.write(&state, about, &outputs.json, &odd)
        };
        cluster.agree(end())
    }

    /// Holds points out, and says what a run on the others shall do.
    fn settle(&self, points: &mut Points) -> Result<Settings> {
        points.hold_out(self.plan.settings(0, 0, None)?.holdout, self.plan.seed)?;
        let channels = (!points.gains().is_empty()).then_some(points.dims());
        let settings = self.plan.settings(points.len(), points.dims(), channels)?;
        self.plan.check_angles(points.dims())?;
        self.plan.check_weak(points.dims())?;
        Ok(settings)
    }

    /// What every process does by itself, before any work: flags, names of results, data.
    fn open(&mut self, cluster: &Cluster) -> Result<Opened> {
        let from = self.plan.from.as_deref().map(Model::read).transpose()?;
        match &from {
            Some(model) => self.plan.adopt(model)?,
            None => self.plan.resolve()?,
        }
        // What is wrong with the flags shows before the data is read; only then it is known how many points there are.
        ranks::check(&self.plan.settings(0, 0, None)?, cluster)?;
        let inputs: Vec<PathBuf> =
            self.data.iter().chain(&self.plan.from).chain(&self.mask).cloned().collect();
        let asked = self.checkpoint.as_deref();
        let (outputs, checkpoint) = match cluster.is_first() {
            true => {
                let outputs = Outputs::new(&self.out, asked, &inputs)?;
                let checkpoint = Checkpoint::open(outputs.checkpoint.clone())?;
                (outputs, checkpoint)
            }
            false => {
                let outputs = Outputs::named(&self.out, asked);
                let checkpoint = Checkpoint::elsewhere(outputs.checkpoint.clone());
                (outputs, checkpoint)
            }
        };
        let like_model = from.as_ref().filter(|_| !self.framing.is_given());
        let (frame, gains) = match like_model {
            Some(model) => (model.frame, model.gains.as_slice()),
            None => (front_end::frame(&self.framing, &self.plan, &self.data)?, &[][..]),
        };
        let odd = front_end::check(&self.data, frame.as_ref(), self.ignore_delays)?;
        let is_patched = matches!(frame, Some(Frame { form: Form::Patches { .. }, .. }));
        if self.step.is_some() && !is_patched {
            let advice = "add --patch, or leave it out";
            return Err(Error::input("there are no patches", "--step", advice));
        }
        let step = self.step.unwrap_or(1) as usize;
        let mut points = match self.masked_points(frame.as_ref(), step)? {
            Some(points) => points,
            None => Points::open_evened(&self.data, frame.as_ref(), step, gains)?,
        };
        points.share(cluster);
        Ok(Opened { from, outputs, checkpoint, frame, points, odd })
    }

    /// Says which bins of a transform are learned from, where the others are empty.
    fn say_band(&self, points: &Points, frame: Option<&Frame>) {
        let Some(Frame { form: Form::Transform { bins, .. }, rate, .. }) = frame else { return };
        let used = points.used_bins();
        // Of recordings of different rates none is known, and they have been warned of.
        if used >= *bins as usize || *rate == 0 {
            return;
        }
        let hertz = used as f64 / f64::from(*bins) * f64::from(*rate) / 2.0;
        note(format_args!(
            "nothing is recorded above {hertz:.0} Hz: {used} of {bins} bins are learned from; resampled to {} Hz, the same \
             sound would take a device {:.0} % less work",
            (2.0 * hertz / 1000.0).ceil() * 1000.0,
            100.0 * (1.0 - used as f64 / f64::from(*bins)),
        ));
    }

    /// Threads to compute on.
    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        self.threads.map_or_else(cores, usize::from)
    }

    /// True when finished, false when it was interrupted.
    fn train(&self, state: &mut State, points: &mut Points, checkpoint: &Checkpoint) -> Result<bool> {
        let threads = self.threads();
        let starts = state.settings.restarts;
        let mut progress = Progress::new("training", starts * (state.settings.iterations + 1));
        progress
            .advance(state.current.number * (state.settings.iterations + 1) + state.current.history.len());
        let inside = Inside::new(state, points);
        progress.watch(inside.watcher());
        let cluster = points.cluster().clone();
        let stop = interrupt::flag(progress.announcer(), &checkpoint.path, &cluster);
        let every = self.checkpoint_every as usize;
        // Of several processes one may be killed at any time.
        let writes = self.checkpoint.is_some() || cluster.size() > 1;
        let mut traffic = ranks::Traffic::new(&cluster, threads);
        let finished = state.run(points, threads, |state| {
            cluster.check_same(ranks::numbers(&state.current.parameters))?;
            let done = state.current.history.len();
            let ends = state.current.finished;
            let skipped = if ends { (state.settings.iterations + 1).saturating_sub(done) } else { 0 };
            let (short, line) = report::lines(state);
            progress.note(short, line + &traffic.of_iteration());
            progress.advance(1 + skipped);
            inside.next(state);
            // A run that is at its end has a result to write.
            let asked =
                cluster.any(stop.load(Ordering::SeqCst)) && !(ends && state.current.number + 1 >= starts);
            if asked || (writes && (done.is_multiple_of(every) || ends)) {
                let write = || if cluster.is_first() { checkpoint.write(state) } else { Ok(()) };
                cluster.agree(write())?;
            }
            Ok(if asked { Next::Stop } else { Next::Continue })
        });
        drop(progress);
        traffic.say();
        finished
    }

    fn blob(&self, state: &State, about: About<'_>) -> Result<Vec<u8>> {
        let options = Options { gram: GramName::Auto, ..state.settings.options() };
        let (model, prepared) = (state.model(), |model| Prepared::<f32>::new(model, &options));
        match state.learned_scores() {
            Some(scores) => blob::write(&prepared(&model)?.with_scores(scores)?, &model.slab_cov, about),
            None => build(&model, &options, about),
        }
    }

    fn write(&self, state: &State, about: About<'_>, json: &std::path::Path, odd: &[String]) -> Result<()> {
        let (settings, result) = (&state.settings, state.result());
        let (points, dims) = state.data;
        let provenance = format!(
            "spikelet {} train on {} of {}, seed {}, free energy {:.6} per point",
            env!("CARGO_PKG_VERSION"),
            counted(points, "point"),
            counted(dims, "dimension"),
            settings.seed,
            result.free_energy() / points as f64,
        );
        let blob = self.blob(state, About { provenance: &provenance, ..about })?;
        let text = report::json(state, about.frame.as_ref(), about.gains, odd)?;
        let blob = Staged::write(&self.out, |writer| writer.write_all(&blob))?;
        let text = Staged::write(json, |writer| writer.write_all(text.as_bytes()))?;
        blob.commit()?;
        text.commit()?;
        print(&report::summary(state, &self.out, json))
    }
}
