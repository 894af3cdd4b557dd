//! The advice as text: a row for each thing, with the reason.

use super::choose::Choice;
use super::fit::{Cost, Limits};
use super::look::{Content, Look};
use super::name;
use crate::commands::output::counted;
use crate::parameters::ModelKind;
use crate::predict::Core;
use crate::prepare::{Options, StatesName};
use spikelet::frame::Form;
use std::path::Path;

pub(super) fn row(key: &str, value: &str) -> String {
    format!("{key:<10}{value}\n")
}

pub(super) fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

pub(super) fn percent(ratio: f64) -> String {
    format!("{:.0} %", 100.0 * ratio)
}

pub(super) fn data(look: &Look, path: &Path, given: Option<usize>) -> String {
    let name = name(path);
    let text = match look.content {
        Content::Channels { channels, rate, seconds, apart, top } => {
            let band = band(rate, top);
            let delays = if apart { "with" } else { "without" };
            format!(
                "{name}: {channels} channels, {rate} Hz, {seconds:.1} s{band}, {delays} delays between channels"
            )
        }
        Content::Mono { rate, seconds, top } => {
            format!("{name}: one channel, {rate} Hz, {seconds:.1} s{}", band(rate, top))
        }
        Content::Picture { width, height } => format!("{name}: a picture of {width} x {height} pixels"),
        Content::Points { points, dims, negative } => {
            let sign = if negative { "of either sign" } else { "not negative" };
            format!("{name}: {} of {}, {sign}", counted(points, "point"), counted(dims, "number"))
        }
    };
    row("data", &text) + &odd(look, given)
}

/// Where a recording ends below what its rate could hold.
fn band(rate: u32, top: f64) -> String {
    match top < 0.45 * f64::from(rate) {
        true => format!(", nothing above {top:.0} Hz"),
        false => String::new(),
    }
}

/// The lowest usual rate that holds everything up to `top`, if that is less than the recording has. Bins are not finer than a twentieth.
fn enough(rate: u32, top: f64) -> Option<u32> {
    let usual = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
    let found = usual.into_iter().find(|&usual| f64::from(usual) >= 0.95 * 2.0 * top)?;
    (found < rate && top < 0.45 * f64::from(rate)).then_some(found)
}

/// What to do about the data first.
fn odd(look: &Look, given: Option<usize>) -> String {
    match look.content {
        Content::Points { dims: 1, .. } => row(
            "",
            "WARNING: every point is a single number, so sources cannot be told apart: a signal in one channel is for a .wav file",
        ),
        Content::Points { points, dims, .. } if points < dims => row(
            "",
            &format!(
                "WARNING: fewer points than numbers in a point: points are rows, so transpose it if it is channels x time \
                 ({points} x {dims})"
            ),
        ),
        Content::Channels { channels, .. } if given.is_some_and(|sources| sources > 2 * channels) => {
            row("", "WARNING: that many sources on so few channels do not come apart; give more microphones")
        }
        Content::Channels { rate, top, .. } | Content::Mono { rate, top, .. } => match enough(rate, top) {
            Some(enough) => {
                let less = 100.0 * (1.0 - f64::from(enough) / f64::from(rate));
                let how = format!("resample it to {enough} Hz first (sox IN.wav -r {enough} OUT.wav)");
                row("", &format!("{how}: the same sound for {less:.0} % less work on the device"))
            }
            None => String::new(),
        },
        _ => String::new(),
    }
}

pub(super) fn target(core: Core, limits: &Limits) -> String {
    let mut parts = vec![match limits.clock {
        Some(clock) => format!("{} at {} MHz", core.name, clock / 1e6),
        None => core.name.to_owned(),
    }];
    parts.extend(limits.ram.map(|ram| format!("{} of RAM", kib(ram))));
    parts.extend(limits.flash.map(|flash| format!("{} of flash", kib(flash))));
    parts.extend(limits.latency.map(|latency| format!("{:.1} ms latency", 1e3 * latency)));
    row("target", &parts.join(", "))
}

fn directions(found: usize) -> String {
    if found == 1 { "1 direction stands out".into() } else { format!("{found} directions stand out") }
}

pub(super) fn choice(look: &Look, choice: &Choice, given: bool, has_float_unit: bool) -> String {
    let (model, why_model) = match (&look.content, choice.kind) {
        (Content::Channels { .. }, _) => {
            ("gsc", "sources add up with a gain for each channel, and are silent most of the time")
        }
        (Content::Picture { .. }, _) => ("gsc", "patches of a picture are sums of few elements"),
        (_, ModelKind::Gmm) if look.clusters.is_some() => {
            ("gmm", "points lie in clusters; for sources that add up say --model gsc")
        }
        (_, ModelKind::Gmm) => ("gmm", "as --model says: which of several kinds is a point"),
        (_, ModelKind::Nmf) => ("nmf", "nothing is negative, and parts add up"),
        (_, ModelKind::Mca) => ("mca", "as --model says: the strongest source makes each number"),
        (_, ModelKind::Bsc) => ("bsc", "as --model says: sources are on or off, and add up"),
        _ => ("gsc", "numbers have either sign, and sources add up"),
    };
    let front_end = match choice.form {
        Form::Transform { bins, .. } => {
            format!(
                "--transform mdct --bins {bins}: sound is sparse in frequency; blocks of {:.0} ms",
                1e3 * f64::from(bins) / f64::from(choice.rate.max(1))
            )
        }
        Form::Windows { length, hop } => format!(
            "--frame {length} --hop {hop}: windows of {:.0} ms",
            1e3 * f64::from(length) / f64::from(choice.rate.max(1))
        ),
        Form::Patches { width, height, .. } => {
            format!("--patch {width}x{height}: small enough to repeat over the picture")
        }
        _ => "none: every row is a point".into(),
    };
    let latents = match (given, look.directions, &look.content) {
        (true, ..) => "as --sources says".into(),
        _ if choice.kind == ModelKind::Gmm => match look.clusters {
            Some(_) => "as many clusters stand apart in the data".into(),
            None => {
                "no clusters stand apart in the data, so say --sources if you know how many there are".into()
            }
        },
        (_, Some(found), _) if found == choice.latents => format!("{} in the data", directions(found)),
        (_, Some(found), _) if found > 0 => {
            format!("as many as channels; {} in the data, so say --sources if you know", directions(found))
        }
        (_, Some(_), _) => {
            "as many as channels; no direction stands out, so say --sources if you know".into()
        }
        (.., Content::Picture { .. }) => "elements of the dictionary; more cost more and gain little".into(),
        _ => "as many as numbers in a point; say --sources if you know".into(),
    };
    let states = match (choice.states, choice.max_active) {
        (StatesName::Adaptive, most) => {
            let limit = match most < choice.latents.min(Options::ACTIVE) {
                true => format!(", at most {most} on at once"),
                false => String::new(),
            };
            let expansions = counted(choice.expansions, "expansion");
            format!("adaptive: those that matter are searched for, {expansions}{limit}")
        }
        _ if choice.kind == ModelKind::Gmm => "one for each component: exact".into(),
        (_, most) if most == choice.latents => format!("all {}: exact", 1u64 << most.min(63)),
        (_, most) => format!("up to {most} of {} on at once", choice.selected),
    };
    let encoding = match choice.fixed {
        true => "i16, all of inference in integers: the core has no float unit",
        false if !has_float_unit => {
            "f32 to begin with; the core has no float unit, so `spikelet quantize --encoding i16` takes less work"
        }
        false => "f32: the core has a float unit, and the dictionary is small",
    };
    let encoding = if !choice.fixed && choice.dims * choice.latents > 4096 {
        "f32 to begin with; `spikelet quantize --encoding i8` makes a quarter of it and says what that loses"
    } else {
        encoding
    };
    row("model", &format!("{model}: {why_model}"))
        + &row("front end", &front_end)
        + &row("latents", &format!("{}: {latents}", choice.latents))
        + &row("states", &states)
        + &row("encoding", encoding)
}

/// Limits that are not met, by how much.
fn exceeded(cost: &Cost, limits: &Limits) -> Vec<String> {
    let over = cost.over(limits).into_iter().filter(|(_, ratio)| *ratio > 1.0);
    over.map(|(what, ratio)| format!("{what} is {} of what there is", percent(ratio))).collect()
}

/// `notes` are rows about what the cost is of.
pub(super) fn cost(cost: &Cost, core: Core, limits: &Limits, notes: &str) -> String {
    let [mean, worst] = cost.instructions;
    let mut text = row(
        "cost",
        &format!("{mean:.0} instructions {}, {worst:.0} {} ({})", cost.of, cost.worst, core.name),
    );
    if let Some([mean, worst]) = cost.hertz {
        let share = match limits.clock {
            Some(clock) => {
                format!(
                    "{} of the processor, {} {}",
                    percent(mean / clock),
                    percent(worst / clock),
                    cost.worst
                )
            }
            None => format!("needs {:.0} MHz, {:.0} MHz {}", mean / 1e6, worst / 1e6, cost.worst),
        };
        text += &row("", &share);
    }
    let latency = cost.latency.map_or(String::new(), |seconds| format!(", latency {:.1} ms", 1e3 * seconds));
    text += &row(
        "",
        &format!("RAM {} with its stack, flash {} with the library{latency}", kib(cost.ram), kib(cost.flash)),
    );
    text += notes;
    let over = exceeded(cost, limits);
    match over.is_empty() {
        true if cost.over(limits).is_empty() => text,
        true => text + &row("fits", "yes"),
        false => {
            let advice = match over[0].starts_with("processor") {
                true => "; a lower sample rate, a faster clock or fewer sources would help",
                false => "",
            };
            text + &row("fits", &format!("NO, this comes closest: {}{advice}", over.join(", ")))
        }
    }
}

/// Figures of host-trainer/experiments/RESULTS.md.
pub(super) fn quality(look: &Look, choice: &Choice) -> String {
    let text = match look.content {
        Content::Channels { channels, .. } if choice.latents > channels => {
            "8 to 12 dB SI-SDR for voices without echoes: 8.9 dB for three on two microphones, 12.2 for four on three (experiment voices)"
        }
        Content::Channels { .. } => {
            "up to 40 dB SI-SDR for voices without echoes and noise (experiment voices); noise on the microphones stays in the sources"
        }
        // Has its own advice.
        Content::Mono { .. } => return String::new(),
        Content::Picture { .. } => {
            "31.9 to 32.3 dB PSNR for noise of 25 of 255, where the picture has 20.2 (experiment denoising)"
        }
        Content::Points { .. } if choice.kind == ModelKind::Gmm => {
            "likelihoods of scikit-learn's GaussianMixture from the same start (experiment mixtures); where clusters differ in width, \
             train with --noise components"
        }
        Content::Points { .. } if choice.kind == ModelKind::Nmf => {
            "parts are found where few are on at once (experiment bars)"
        }
        Content::Points { .. } => {
            "better than FastICA on 19 of 20 noisy mixtures (experiment noisy-mixtures)"
        }
    };
    let mut less = String::new();
    if matches!(choice.form, Form::Transform { bins, .. } if bins < super::super::train::bins(choice.rate)) {
        less += " Short blocks for low latency cost some of it.";
    }
    let is_short = choice.states == StatesName::Adaptive && choice.expansions < 4;
    if choice.max_active == 1 && choice.latents > 1 && choice.kind != ModelKind::Gmm {
        less += " One source at a time costs several dB of it.";
    } else if is_short && matches!(look.content, Content::Channels { .. }) {
        less += " A search this short costs more than 1 dB of it where sources overlap.";
    }
    row("quality", &format!("{text}.{less}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_rate_that_is_enough() {
        assert_eq!(enough(44_100, 4134.0), Some(8000));
        assert_eq!(enough(48_000, 5000.0), Some(11_025));
        assert_eq!(enough(8000, 4000.0), None);
        assert_eq!(enough(16_000, 7900.0), None);
        assert_eq!(enough(8000, 2000.0), None);
    }
}
