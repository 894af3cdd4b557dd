//! The advice for models of whole recordings, in rooms and in one channel, as text.

use super::fit::{Cost, Limits};
use super::words::{exceeded, kib, percent, row};
use super::{rooms, spectra};
use crate::predict::Core;

pub(super) fn spatial(choice: &rooms::Choice, given: bool) -> String {
    let milliseconds = 1e3 * choice.length as f64 / f64::from(choice.rate.max(1));
    let why = if given { "as --sources says" } else { "check by ear, or say --sources" };
    let encoding = match choice.integers {
        true => "i16: half of the flash, at the same quality",
        false => "f32",
    };
    row(
        "model",
        "spatial: sounds reach the microphones at different times, so their phases differ between channels",
    ) + &row(
        "front end",
        &format!("frames of {} samples ({milliseconds:.0} ms), every quarter of it", choice.length),
    ) + &row("latents", &format!("{}: {why}", choice.sources))
        + &row("states", &format!("all {} in each bin", 1 << choice.sources))
        + &row("encoding", encoding)
}

pub(super) fn spatial_quality(choice: &rooms::Choice) -> String {
    let text = match choice.sources > choice.microphones {
        true => {
            "10 dB SI-SDR for three voices on two microphones where echoes last 0.15 s, 5 dB at 0.3 s (experiment rooms)"
        }
        false => {
            "16 dB SI-SDR for two voices on two microphones where echoes last 0.15 s, 9 dB at 0.3 s (experiment rooms)"
        }
    };
    let less = if choice.is_usual() {
        ""
    } else {
        " Short frames for the target cost some of it where echoes are long."
    };
    row("quality", &format!("{text}; sources and microphones must stay where they are.{less}"))
}

pub(super) fn unknown_cost(core: Core) -> String {
    row(
        "cost",
        &format!(
            "not known for {}: spatial models were measured on cores with a float unit and riscv32imac",
            core.name
        ),
    )
}

/// One source at a time.
pub(super) fn one_channel(cost: Option<&Cost>, core: Core, limits: &Limits) -> String {
    row(
        "model",
        "mca of spectra: in one channel sources are told apart by their spectra, and the louder hides the other",
    ) + &row("front end", "--transform spectrum: frames of 64 ms")
        + &row("latents", &format!("{} typical spectra of each source", spectra::LATENTS))
        + &row("encoding", "i8: a quarter of the flash, at the same quality")
        + &one_channel_cost(cost, core, limits)
        + &row(
            "quality",
            "about 6 dB SI-SDR for a voice and music, 10 dB for a voice and noise (experiment one-channel), if each source was \
             learned by itself",
        )
        + &row(
            "",
            "Learn every source from a recording of it alone, with the command below. Then put them together and run them:",
        )
        + &row("", "  spikelet merge A.spk B.spk --names a,b --encoding i8 --out both.spk")
        + &row("", "  spikelet separate both.spk MIXTURE.wav --out-dir sources")
}

/// Of two sources.
fn one_channel_cost(cost: Option<&Cost>, core: Core, limits: &Limits) -> String {
    let Some(cost) = cost else {
        return row(
            "cost",
            "not known from so short a recording; `spikelet inspect` says it of a trained model",
        );
    };
    let latency = cost.latency.map_or(String::new(), |seconds| format!(", latency {:.0} ms", 1e3 * seconds));
    let sizes = row(
        "",
        &format!(
            "RAM {} without stack, flash {} without the library{latency}",
            kib(cost.ram),
            kib(cost.flash)
        ),
    );
    let work = match (cost.hertz, limits.clock) {
        (Some([mean, _]), Some(clock)) => format!("about {} of the processor", percent(mean / clock)),
        (Some([mean, _]), None) => format!("about {:.0} MHz of a {}", mean / 1e6, core.name),
        (None, _) => format!("not known on {}, measured on a Cortex-M4F only", core.name),
    };
    let over = exceeded(cost, limits);
    let fits = match over.is_empty() {
        true => String::new(),
        false => {
            let advice = "--hop of half a frame and fewer latents take less work";
            row("fits", &format!("NO: {}; {advice}", over.join(", ")))
        }
    };
    row("cost", &format!("of two sources {work}")) + &sizes + &fits
}
