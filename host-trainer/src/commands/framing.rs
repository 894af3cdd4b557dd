//! How data becomes points, as flags; the model remembers it, so that other commands need none.

use crate::parameters::ModelKind;
use crate::{Error, Result};
use spikelet::frame::{Form, Frame};

/// Longest side of a patch, in pixels.
const LONGEST: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Colours {
    /// One patch has all of them
    Together,
    /// Every colour is a picture of its own
    Apart,
}

/// What `--patch` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    Size(u32, u32),
    /// Whatever suits the pictures.
    Auto,
}

/// Whether to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TransformName {
    /// Modified discrete cosine transform
    Mdct,
    /// No transform: every sample of all channels is a point
    None,
    /// Compressed bands of a short-time Fourier transform: one source in one channel, with --model mca
    Spectrum,
}

#[derive(Debug, clap::Args)]
pub(super) struct Framing {
    /// Points are patches of pictures (.png, or .npy as rows x columns [x colours]): width x height in pixels, such as 8x8; or
    /// auto, which is what `train` does with .png where no flag says otherwise: a size that suits the noise
    #[arg(long, value_name = "WxH", value_parser = patch, conflicts_with = "frame")]
    patch: Option<Patch>,
    /// Whether a patch has all colours of a picture, which show the same edges, or is of one colour [default: together for gsc and bsc]
    #[arg(long, value_enum)]
    colours: Option<Colours>,
    /// Colours that pictures have.
    #[arg(skip)]
    planes: u16,
    /// Points are windows of recordings, each channel by itself: so many samples
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    frame: Option<u32>,
    /// Samples from one window to the next [default: half a window; with --transform spectrum a quarter of a frame, or half of one]
    #[arg(long, value_name = "SAMPLES")]
    hop: Option<u32>,
    /// Whether copies resampled by up to 1/8 are learned from too, with --transform spectrum: they help where pitch varies, as in
    /// voices and music [default: whatever brings held-back frames closer]
    #[arg(long, value_enum)]
    copies: Option<Switch>,
    /// Points are the coefficients of recordings in a lapped transform, one bin of all channels each: for sound, which is
    /// sparse in frequency, so that there may be more sources than microphones [default for recordings of several channels: mdct]
    #[arg(long, value_enum, conflicts_with_all = ["patch", "frame", "remove_mean"])]
    transform: Option<TransformName>,
    /// Bins of the transform, a power of two from 16 to 2048; longer ones tell steady tones apart better, shorter ones what
    /// is short. A stream is late by twice as many samples [default: 32 ms of the recording, 256 at 8 kHz]
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["patch", "frame", "remove_mean"])]
    bins: Option<u32>,
    /// Take the mean off every patch or window, and put it back after inference [default: on for patches with gsc and
    /// bsc, else off]
    #[arg(long, value_enum)]
    remove_mean: Option<Switch>,
}

impl Framing {
    /// Whether any flag says how points are made.
    pub fn is_given(&self) -> bool {
        self.patch.is_some()
            || self.frame.is_some()
            || self.transform.is_some()
            || self.bins.is_some()
            || self.remove_mean.is_some()
            || self.hop.is_some()
            || self.copies.is_some()
            || self.colours.is_some()
    }

    /// The size of patches, where a flag says something of them.
    pub fn patch(&self) -> Option<Patch> {
        self.patch
    }

    /// Patches of this size, where it was left open.
    pub fn set_patch(&mut self, side: u32) {
        self.patch = Some(Patch::Size(side, side));
    }

    /// Says how many colours pictures have.
    pub fn set_planes(&mut self, planes: usize) {
        self.planes = u16::try_from(planes).unwrap_or(u16::MAX);
    }

    /// The same where a point of so many numbers is known, and the size of a patch.
    pub fn set_dims(&mut self, dims: usize) {
        if let Some(Patch::Size(width, height)) = self.patch {
            let pixels = width as usize * height as usize;
            self.set_planes(if dims.is_multiple_of(pixels) { dims / pixels } else { 1 });
        }
    }

    /// Whether points are said to be something else than patches.
    pub fn is_of_recordings(&self) -> bool {
        self.frame.is_some() || self.transform.is_some() || self.bins.is_some()
    }

    /// Length and hop of frames, which are all that a short-time Fourier transform has; refuses what it does not.
    pub fn fourier(&self) -> Result<(Option<u32>, Option<u32>)> {
        let others = [
            (self.patch.is_some(), "--patch"),
            (self.transform.is_some(), "--transform"),
            (self.bins.is_some(), "--bins"),
            (self.copies.is_some(), "--copies"),
            (self.remove_mean.is_some(), "--remove-mean"),
            (self.colours.is_some(), "--colours"),
        ];
        match others.iter().find(|(given, _)| *given) {
            Some((_, flag)) => {
                let what = "spatial models have a Fourier transform of their own";
                Err(Error::input(what, flag, "leave it out; --frame and --hop set lengths"))
            }
            None => Ok((self.frame, self.hop)),
        }
    }

    /// Whether a model is one source in one channel.
    pub fn is_spectrum(&self) -> bool {
        self.transform == Some(TransformName::Spectrum)
    }

    /// Hop of frames, and whether resampled copies are learned from, which are all that spectra leave open.
    pub fn spectrum(&self) -> Result<(Option<u32>, Option<bool>)> {
        if self.bins.is_some() {
            let what = "the length of frames follows from the rate";
            return Err(Error::input(what, "--bins", "leave it out with --transform spectrum"));
        }
        Ok((self.hop, self.copies.map(|switch| switch == Switch::On)))
    }

    /// The frame for this kind of model; `None` when every sample, or every row of a file, is a point. A transform needs to
    /// know how many channels there are, and how many bins unless a flag says so.
    pub fn frame(
        &self,
        kind: ModelKind,
        bins: u32,
        channels: impl FnOnce() -> Result<usize>,
    ) -> Result<Option<Frame>> {
        if self.hop.is_some() && self.frame.is_none() {
            let advice = "add --frame or --transform spectrum, or leave it out";
            return Err(Error::input("there are no windows", "--hop", advice));
        }
        if self.copies.is_some() {
            let advice = "add --transform spectrum, or leave it out";
            return Err(Error::input("there are no sources of spectra", "--copies", advice));
        }
        if self.colours.is_some() && self.patch.is_none() {
            let advice = "add --patch, or leave it out";
            return Err(Error::input("there are no patches", "--colours", advice));
        }
        match (self.transform, self.bins) {
            (Some(TransformName::Spectrum), _) => {
                let advice = "use `spikelet train --model mca --transform spectrum`";
                return Err(Error::input("spectra are learned, not given", "--transform spectrum", advice));
            }
            (Some(TransformName::None), Some(_)) => {
                let advice = "say --transform mdct, or leave it out";
                return Err(Error::input("there is no transform", "--bins", advice));
            }
            (Some(TransformName::Mdct), _) | (None, Some(_)) => {
                return self.transform(kind, self.bins.unwrap_or(bins), channels).map(Some);
            }
            _ => {}
        }
        let signed = matches!(kind, ModelKind::Gsc | ModelKind::Bsc);
        let colours = match self.colours {
            Some(Colours::Together) => self.planes.max(1),
            None if signed => self.planes.max(1),
            _ => 1,
        };
        let form = match (self.patch, self.frame) {
            (Some(Patch::Auto), _) => {
                let what = "patches of a size that suits a picture are found by train";
                return Err(Error::input(what, "--patch auto", "give a size, such as 8x8"));
            }
            (Some(Patch::Size(width, height)), _) => Form::Patches { width, height, colours },
            (None, Some(length)) => {
                let hop = self.hop.unwrap_or(length.div_ceil(2));
                if hop == 0 || hop > length {
                    let what = format!("windows of {length} samples cannot follow each other every {hop}");
                    return Err(Error::input(what, "--hop", format_args!("choose 1 to {length}")));
                }
                Form::Windows { length, hop }
            }
            (None, None) if self.remove_mean.is_some() => {
                let advice = "add --patch or --frame, or leave it out";
                return Err(Error::input("there are no patches or windows", "--remove-mean", advice));
            }
            (None, None) => return Ok(None),
        };
        let by_default = signed && self.patch.is_some();
        let centred = self.remove_mean.map_or(by_default, |switch| switch == Switch::On);
        if centred && !signed {
            let what = format!("{} is for numbers that are not negative", kind.name());
            return Err(Error::input(what, "--remove-mean on", "leave it out, or use --model gsc"));
        }
        Ok(Some(Frame { form, rate: 0, centred }))
    }

    fn transform(
        &self,
        kind: ModelKind,
        bins: u32,
        channels: impl FnOnce() -> Result<usize>,
    ) -> Result<Frame> {
        if !bins.is_power_of_two() || !(Form::FEWEST_BINS..=Form::MOST_BINS).contains(&bins) {
            let what = format!("a transform cannot have {bins} bins");
            return Err(Error::input(what, "--bins", "choose 16, 32, 64, 128, 256, 512, 1024 or 2048"));
        }
        if !matches!(kind, ModelKind::Gsc | ModelKind::Bsc) {
            let what = format!("{} is for numbers that are not negative, coefficients are", kind.name());
            return Err(Error::input(what, "--transform", "use --model gsc"));
        }
        let channels = channels()? as u32;
        Ok(Frame { form: Form::Transform { bins, channels }, rate: 0, centred: false })
    }
}

fn patch(text: &str) -> Result<Patch, String> {
    match text {
        "auto" => Ok(Patch::Auto),
        text => size(text)
            .map(|(width, height)| Patch::Size(width, height))
            .map_err(|advice| format!("{advice}, or auto")),
    }
}

pub(super) fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X']);
    let side = |text: &str| text.parse().ok().filter(|side| (1..=LONGEST).contains(side));
    sides
        .and_then(|(width, height)| Some((side(width)?, side(height)?)))
        .ok_or_else(|| format!("give width x height, such as 8x8, each from 1 to {LONGEST}"))
}
