//! The page of a model that runs as a stream only: of sources in a room, or in one channel.
//!
//! In comes MODEL.spk, with MODEL.json where `train` wrote one (`merge` and `quantize` write none), and a recording if there is one.

use super::cell::{Cells, Layer, largest};
use super::description::{Look, Run, Streamed};
use super::digits::{bytes, count, fixed, percent};
use super::page::{escaped, facts, figure, hint, paragraph, section, table};
use super::plot::{Axis, Plot};
use super::sounds::{self, Heard};
use super::{Report, device, origin, training};
use crate::Result;
use crate::commands::infer::of_recording;
use crate::commands::model_file::Separator;
use crate::commands::processor::Processor;
use crate::commands::separate::truths;
use crate::streaming::Event;
use spikelet::blob::VERSION;
use spikelet::spatial::record_len;
use spikelet::{SpatialModel, SpectralModel};
use std::fmt::Write as _;
use std::path::Path;

/// Spectra that are shown of a source.
const MOST_SPECTRA: usize = 24;
/// Seconds that a level is a mean of, and dB below the loudest that are drawn.
const WINDOW: f64 = 0.1;
const DEPTH: f64 = 60.0;
/// Metres that sound travels in a second.
const SPEED_OF_SOUND: f64 = 343.0;

/// What both kinds have.
struct Known {
    kind: &'static str,
    lead: String,
    figures: Vec<(&'static str, String, String)>,
    length: usize,
    hop: usize,
    rate: u32,
    ram: usize,
    flash: usize,
    provenance: String,
}

impl Report {
    /// The whole page.
    pub(super) fn streamed(
        &self,
        model: Separator<'_>,
        told: Option<&Streamed>,
        model_path: &Path,
    ) -> Result<String> {
        let run = told.map(|told| &told.run);
        let names = sounds::names(&model.groups());
        let (known, cores, body) = match model {
            Separator::Room(room) => {
                let body = places(&room, told, &names) + &presence(&room, &names);
                (of_room(&room), Processor::default().predict_room(&room)?, body)
            }
            Separator::Spectral(spectral) => (
                of_channel(&spectral),
                Processor::default().predict_channel(&spectral)?,
                spectra(&spectral, &names),
            ),
            Separator::Points(_) => return Ok(String::new()),
        };
        let stem = model_path.file_stem().unwrap_or_default().to_string_lossy();
        let mut html = known.head(&stem, run) + "<main>\n";
        html += &run.map(training::html).unwrap_or_default();
        html += &body;
        html += &self.heard(model, &names, model_path)?;
        let a_hop = paragraph(format_args!(
            "Work comes in bursts, one for every hop of {} samples{}. A stream takes {} of RAM, and sources come {} samples late.",
            count(known.hop as u64),
            seconds(known.hop, known.rate),
            bytes(known.ram as u64),
            count(known.length as u64 - 1)
        ));
        html += &section("cost", "Cost on a device", &(a_hop + &device::cores(&cores.on_core, "hop")));
        let rows = [
            ("model", model_path.display().to_string()),
            ("provenance", known.provenance),
            ("points are", format!("Fourier frames of {} samples every {}", known.length, known.hop)),
            ("blob format", format!("version {VERSION}")),
        ];
        html += &origin::made(&rows, run);
        Ok(super::page::whole(&stem, &html))
    }

    /// Players, levels and, in one channel, activities.
    fn heard(&self, model: Separator<'_>, names: &[String], name: &Path) -> Result<String> {
        let Some(data) = &self.data else {
            let how = hint(format_args!(
                "To hear what the model makes of a recording, name one: <code>spikelet report {} --data MIXTURE.wav --out {}</code>",
                escaped(&self.description.display().to_string()),
                escaped(&self.out.display().to_string())
            ));
            return Ok(section("sounds", "Sounds", &how));
        };
        let is_single = matches!(model, Separator::Spectral(spectral) if spectral.count() < 2);
        let mut html = String::new();
        if !is_single {
            let truths = truths(&self.reference)?;
            let heard = Heard::new(model, name, data, &truths)?;
            html += &heard.html(data, &truths);
            html += &levels(&heard, names);
        }
        if let Separator::Spectral(spectral) = model
            && (is_single || Heard::is_mono(data))
        {
            html += &activities(&spectral, &of_recording(spectral, data)?, names);
        }
        Ok(html)
    }
}

impl Known {
    fn head(&self, name: &str, run: Option<&Run>) -> String {
        let mut figures: Vec<(&str, String, String)> = self.figures.clone();
        if let Some((run, last)) = run.and_then(|run| Some((run, training::last(run)?))) {
            figures.push(("free energy", fixed(last, 3), training::unit(run).into()));
        }
        let late = match self.rate {
            0 => (count(self.length as u64 - 1), "samples".into()),
            rate => (
                format!("{:.0} ms", 1e3 * (self.length - 1) as f64 / f64::from(rate)),
                format!("at {rate} Hz"),
            ),
        };
        figures.push(("latency", late.0, late.1));
        figures.push(("flash", bytes(self.flash as u64), "the model itself".into()));
        figures.push(("RAM", bytes(self.ram as u64), "per stream".into()));
        format!(
            "<header>\n<p class=\"over\">Spikelet model report · {}</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}</header>\n",
            self.kind,
            escaped(name),
            self.lead,
            facts(&figures)
        )
    }
}

fn seconds(samples: usize, rate: u32) -> String {
    if rate == 0 { String::new() } else { format!(" ({:.1} ms)", 1e3 * samples as f64 / f64::from(rate)) }
}

fn of_room(room: &SpatialModel<'_>) -> Known {
    Known {
        kind: "sources on spaced microphones (spatial)",
        lead: format!(
            "This model takes apart {} sources that stay where they are, by the times and levels at which {} microphones hear them, echoes included. \
             In every bin of a spectrum any of the sources may be on; the model says which are, and what of the sound is theirs.",
            room.sources(),
            room.microphones()
        ),
        figures: vec![
            ("sources", count(room.sources() as u64), String::new()),
            (
                "microphones",
                count(room.microphones() as u64),
                format!("heard at number {}", room.constants().microphone + 1),
            ),
            ("states", count(1 << room.sources()), "in each bin".into()),
        ],
        length: room.length(),
        hop: room.hop(),
        rate: room.rate(),
        ram: spikelet::spatial::stream_bytes(room),
        flash: room.byte_len(),
        provenance: room.provenance().into(),
    }
}

fn of_channel(model: &SpectralModel<'_>) -> Known {
    let lead = match model.count() {
        1 => "This model knows one source by its typical spectra. Put together with others by <code>spikelet merge</code>, it takes a recording of \
              one microphone apart; by itself it says how usual a sound is."
            .into(),
        sources => format!(
            "This model takes the sound of one microphone apart into {sources} sources. Each has a set of typical spectra, one of which is on at a \
             time; in a mixture the louder source hides the other, band by band."
        ),
    };
    Known {
        kind: "sources in one channel (spectral)",
        lead,
        figures: vec![
            ("sources", count(model.count() as u64), String::new()),
            ("typical spectra", count(model.latents() as u64), format!("of {} bands", model.dims())),
            ("levels", count(model.filters() as u64), "followed side by side".into()),
        ],
        length: model.length(),
        hop: model.hop(),
        rate: model.rate(),
        ram: spikelet::spectral::stream_bytes(model),
        flash: model.byte_len(),
        provenance: model.provenance().into(),
    }
}

/// Delays between microphones, which say where sources are.
fn places(room: &SpatialModel<'_>, told: Option<&Streamed>, names: &[String]) -> String {
    let delays = told.map_or(&[][..], |told| &told.delays);
    let is_whole =
        |delays: &Vec<f64>| delays.len() + 1 == room.microphones() && delays.iter().all(|d| d.is_finite());
    if delays.len() != room.sources() || !delays.iter().all(is_whole) {
        let body = hint(
            "Where sources are is in the MODEL.json that `train` wrote; it does not lie beside this model.",
        );
        return section("places", "Where sources are", &body);
    }
    let delay = |delay: &f64| match room.rate() {
        0 => format!("{} samples", fixed(*delay, 2)),
        rate => {
            let seconds = delay / f64::from(rate);
            format!("{} ms ({} cm)", fixed(1e3 * seconds, 3), fixed(100.0 * SPEED_OF_SOUND * seconds, 1))
        }
    };
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(delays)
        .map(|(name, delays)| std::iter::once(escaped(name)).chain(delays.iter().map(delay)).collect())
        .collect();
    let later = (2..=room.microphones()).map(|m| format!("#microphone {m}"));
    let head: Vec<String> = std::iter::once(String::new()).chain(later).collect();
    let caption = "How much later the direct sound of each source reaches a microphone than microphone 1, and how much longer its way is; \
                   negative where it comes earlier. Sources of about the same delays everywhere come from one direction, and are hard to tell apart.";
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    section("places", "Where sources are", &figure(&table(&head, &rows), caption))
}

/// How often sources are on, by frequency.
fn presence(room: &SpatialModel<'_>, names: &[String]) -> String {
    let (bins, sources) = (room.bins(), room.sources());
    let first = record_len(room.microphones(), sources) - sources;
    let mut record = vec![0.0; first + sources];
    let unit = if room.rate() == 0 { 1.0 } else { f64::from(room.rate()) / room.length() as f64 };
    let mut curves = vec![Vec::with_capacity(bins); sources];
    for bin in 0..bins {
        room.record(bin, &mut record);
        for (curve, &on) in curves.iter_mut().zip(&record[first..]) {
            curve.push((bin as f64 * unit, f64::from(on)));
        }
    }
    let mut plots = String::new();
    for (curve, name) in curves.iter().zip(names) {
        let x = Axis::between(0.0, bins as f64 * unit, if room.rate() == 0 { "bin" } else { "Hz" });
        let mut plot = Plot::new(x, Axis::between(0.0, 1.0, &format!("{name}: on")).in_percent());
        plot.curve(curve, "thin");
        plots += &plot.html(&format!("how often {name} is on, by frequency"), " low");
    }
    let caption = "How often each source is on in a bin of the training recording that was not silent.";
    section(
        "presence",
        "How often sources are on",
        &figure(&format!("<div class=\"halves\">{plots}</div>\n"), caption),
    )
}

/// Typical spectra, the most frequent first.
fn spectra(model: &SpectralModel<'_>, names: &[String]) -> String {
    let (mut first, mut html) = (0, String::new());
    let cells = Cells { look: Look::Waveform, signed: false };
    for (source, name) in (0..model.count()).zip(names) {
        let Some((latents, sigma, _)) = model.source(source) else { continue };
        let prior = &model.priors()[first..first + latents];
        let mut order: Vec<usize> = (0..latents).collect();
        order.sort_by(|&a, &b| prior[b].total_cmp(&prior[a]).then(a.cmp(&b)));
        order.truncate(MOST_SPECTRA);
        let rows: Vec<Vec<f64>> = order
            .iter()
            .map(|latent| {
                let mut row = vec![0.0f32; model.dims()];
                model.spectrum(first + latent, &mut row);
                row.into_iter().map(f64::from).collect()
            })
            .collect();
        let most = rows.iter().map(|row| largest(row)).fold(0.0, f64::max);
        let width = cells.least_width(rows.len(), model.dims());
        let _ =
            write!(html, "<h3>{}</h3>\n<ul class=\"cells\" style=\"--least:{width}rem\">\n", escaped(name));
        for (latent, row) in order.iter().zip(&rows) {
            let on = percent(f64::from(prior[*latent]));
            let title = format!("spectrum {latent} of {name}, on {on} of the time");
            let svg = cells.draw(&[(Layer::Front, row)], most, &title);
            let _ = writeln!(html, "<li>{svg}<span><b>{latent}</b><i>{on}</i></span></li>");
        }
        html += "</ul>\n";
        let more = match latents - rows.len() {
            0 => String::new(),
            more => format!(" {} more are on less often.", count(more as u64)),
        };
        html += &hint(format_args!(
            "{} spectra; frames differ from them by {} in a band.{more}",
            count(latents as u64),
            fixed(f64::from(sigma), 2)
        ));
        first += latents;
    }
    let top = if model.rate() == 0 { String::new() } else { format!(" from 0 to {} Hz", model.rate() / 2) };
    let caption = paragraph(format_args!(
        "Compressed levels in {} bands{top}, low frequencies at the left, and how often each is on. A flat line at the bottom is silence.",
        model.dims()
    ));
    section("spectra", "Typical spectra", &(caption + &html))
}

/// dB of windows of the first of so many channels.
fn level(signal: &[f32], channels: usize, rate: u32) -> Vec<(f64, f64)> {
    let first: Vec<f32> = signal.iter().step_by(channels.max(1)).copied().collect();
    let window = ((WINDOW * f64::from(rate)) as usize).max(1);
    let mean =
        |part: &[f32]| part.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / part.len() as f64;
    let middle = |number: usize| (number as f64 + 0.5) * window as f64 / f64::from(rate.max(1));
    first
        .chunks(window)
        .enumerate()
        .map(|(number, part)| (middle(number), 10.0 * mean(part).max(1e-20).log10()))
        .collect()
}

/// How loud sources are over time, before the recording.
fn levels(heard: &Heard, names: &[String]) -> String {
    let whole = level(&heard.recording(), 1, heard.separated.rate);
    let end = whole.last().map_or(1.0, |last| last.0);
    let loudest = whole.iter().map(|point| point.1).fold(-200.0, f64::max);
    let mut plots = String::new();
    for (name, signal) in names.iter().zip(&heard.separated.signals) {
        let y = Axis::between(loudest - DEPTH, loudest + 3.0, &format!("{name} (dB)"));
        let mut plot = Plot::new(Axis::between(0.0, end, "s"), y);
        plot.curve(&whole, "data");
        plot.curve(&level(signal, heard.separated.channels, heard.separated.rate), "thin");
        plots += &plot.html(&format!("level of {name} over time, and of the recording"), " low");
    }
    let caption = "Level of each source (blue) and of the recording (grey), in windows of 0.1 s. A source that is not there should be far below.";
    section("levels", "Levels", &figure(&format!("<div class=\"halves\">{plots}</div>\n"), caption))
}

/// The probability of each source to be heard, and how usual the sound is.
fn activities(model: &SpectralModel<'_>, events: &[Event], names: &[String]) -> String {
    let end = events.last().map_or(1.0, |event| event.seconds);
    let mut plots = String::new();
    for (source, name) in names.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            events.iter().map(|event| (event.seconds, f64::from(event.activities[source]))).collect();
        let on = points.iter().filter(|point| point.1 > 0.5).count() as f64 / points.len().max(1) as f64;
        let y = Axis::between(0.0, 1.0, &format!("{name}: heard {} of the time", percent(on))).in_percent();
        let mut plot = Plot::new(Axis::between(0.0, end, "s"), y);
        plot.curve(&points, "thin");
        plots += &plot.html(&format!("probability that {name} is heard, over time"), " low");
    }
    let mut caption = "The probability that a source is to be heard, frame by frame, as <code>spikelet infer</code> writes it.".to_owned();
    let scores: Vec<(f64, f64)> =
        events.iter().map(|event| (event.seconds, f64::from(event.score))).collect();
    let threshold = model.normal().as_chunks::<2>().0.iter().find(|pair| pair[0] <= 0.01);
    let limit = threshold.map(|pair| f64::from(pair[1]));
    let y = Axis::over(scores.iter().map(|score| score.1).chain(limit), "how unusual (nats)");
    let mut plot = Plot::new(Axis::between(0.0, end, "s"), y);
    plot.curve(&scores, "thin");
    if let Some(limit) = limit {
        plot.curve(&[(0.0, limit), (end, limit)], "limit");
        caption += " How unusual the sound is, and the score that usual sound exceeds in at most 1 % of its frames (dashed).";
    } else {
        caption += " How unusual the sound is; what is usual is not known before <code>spikelet eval --calibrate</code>.";
    }
    plots += &plot.html("how unusual the sound is, over time", " low");
    section(
        "activities",
        "What is heard when",
        &figure(&format!("<div class=\"halves\">{plots}</div>\n"), &caption),
    )
}
