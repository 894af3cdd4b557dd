//! The advice for models of whole recordings, in rooms and in one channel, as text.

use super::fit::Limits;
use super::words::row;
use super::{rooms, spectra};
use crate::Result;
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
pub(super) fn one_channel(advice: &Result<spectra::Advice>, core: Core, limits: &Limits) -> String {
    let choice = advice.as_ref().ok().map(|advice| advice.choice);
    let latents = choice.map_or(spectra::LATENTS, |choice| choice.latents);
    let half = choice.filter(|choice| choice.is_half).map_or(String::new(), |choice| {
        format!(", --hop {}: half of a frame from one to the next, for less work", choice.hop)
    });
    let cost = match advice {
        Ok(spectra::Advice { cost: Some(cost), guess, .. }) => {
            let guess = guess.as_ref().map_or(String::new(), |why| row("", &format!("a guess: {why}")));
            let notes = row("", "of two sources like this one") + &guess;
            super::words::cost(cost, core, limits, &notes)
        }
        Ok(_) => row(
            "cost",
            &format!("not known for {}: models of one channel were not measured there", core.name),
        ),
        Err(_) => row(
            "cost",
            "not known from so short or silent a recording; `spikelet inspect` says it of a trained model",
        ),
    };
    row(
        "model",
        "mca of spectra: in one channel sources are told apart by their spectra, and the louder hides the other",
    ) + &row("front end", &format!("--transform spectrum: frames of 64 ms{half}"))
        + &row("latents", &format!("{latents} typical spectra of each source"))
        + &row("encoding", "i8: a quarter of the flash, at the same quality")
        + &cost
        + &row(
            "quality",
            "gains of about 6 dB in SI-SDR for a voice and music as loud, 10 dB for a voice and noise (experiment one-channel), where each \
             source was learned by itself",
        )
        + &row(
            "",
            "Learn every source from a recording of it alone, with the command below. Then put them together and run them:",
        )
        + &row("", "  spikelet merge A.spk B.spk --names a,b --encoding i8 --out both.spk")
        + &row("", "  spikelet separate both.spk MIXTURE.wav --out-dir sources")
}
