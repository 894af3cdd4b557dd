//! `--model spatial`: its flags, and which of the others it has no use for.

use super::Plan;
use crate::commands::separate::following;
use crate::parameters::ModelKind;
use crate::spatial::FOLLOWING;
use crate::{Error, Result};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use spikelet::spatial::MOST_SOURCES;

/// What `--model` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Trained {
    /// A model of points.
    Points(ModelKind),
    /// Sources on spaced microphones, which is a model of whole recordings.
    Spatial,
}

impl Trained {
    pub fn kind(self) -> Option<ModelKind> {
        match self {
            Self::Points(kind) => Some(kind),
            Self::Spatial => None,
        }
    }
}

impl ValueEnum for Trained {
    fn value_variants<'a>() -> &'a [Self] {
        use ModelKind::{Bsc, Gmm, Gsc, Mca, Nmf, Ssmca};
        const ALL: [Trained; 7] = [
            Trained::Points(Gsc),
            Trained::Points(Bsc),
            Trained::Points(Nmf),
            Trained::Points(Mca),
            Trained::Points(Ssmca),
            Trained::Points(Gmm),
            Trained::Spatial,
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Points(kind) => kind.to_possible_value(),
            Self::Spatial => {
                Some(PossibleValue::new("spatial").help("Sources on spaced microphones in a room"))
            }
        }
    }
}

/// What `--latents` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Latents {
    Count(u16),
    /// As many as the data suggest.
    Auto,
}

impl Latents {
    /// Of models of points, whose number must be given.
    pub fn count(self) -> Result<u16> {
        match self {
            Self::Count(count) => Ok(count),
            Self::Auto => {
                let what = "only spatial models find the number of their sources";
                Err(Error::input(what, "--latents auto", "give a number, or use --model spatial"))
            }
        }
    }
}

pub(super) fn latents(text: &str) -> std::result::Result<Latents, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Latents::Auto),
        Ok(count) if count > 0 => Ok(Latents::Count(count)),
        _ => Err(format!("give a number from 1 to {}, or auto", u16::MAX)),
    }
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct SpatialFlags {
    /// Distance of neighbouring microphones in centimetres, for --model spatial [default: found from the data]
    #[arg(long, value_name = "CM", allow_negative_numbers = true)]
    pub spacing: Option<f64>,
    /// Microphone at which sources are put out, counted from 1, for --model spatial [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub microphone: Option<usize>,
    /// Let the model follow sources that move slowly, for --model spatial on two microphones; how fast, 0 to 0.5 [default: 0.15]
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, value_parser = following)]
    pub follow: Option<Option<f32>>,
}

impl SpatialFlags {
    /// Refuses them for other models.
    pub fn refuse(&self) -> Result<()> {
        let flag = match (self.spacing, self.microphone, self.follow) {
            (Some(_), ..) => "--spacing",
            (_, Some(_), _) => "--microphone",
            (.., Some(_)) => "--follow",
            _ => return Ok(()),
        };
        let what = "only spatial models know where microphones are";
        Err(Error::input(what, flag, "leave it out, or use --model spatial"))
    }

    /// How fast parameters follow, 0 for never.
    pub fn following(&self) -> f32 {
        self.follow.map_or(0.0, |rate| rate.unwrap_or(FOLLOWING))
    }

    /// Centimetres, 0.2 to 200.
    pub fn checked_spacing(&self) -> Result<Option<f64>> {
        match self.spacing {
            Some(spacing) if !(0.2..=200.0).contains(&spacing) => {
                let what = format!("{spacing} cm is no distance of microphones that hear one room");
                Err(Error::input(what, "--spacing", "give centimetres from 0.2 to 200, or leave it out"))
            }
            spacing => Ok(spacing),
        }
    }
}

impl Plan {
    pub fn is_spatial(&self) -> bool {
        self.given_model == Some(Trained::Spatial)
    }

    /// H, if it is given, and iterations with all states.
    pub fn spatial(&self) -> Result<(Option<usize>, Option<usize>)> {
        if let Some(flag) = self.given_for_points() {
            let what = "spatial models have no such setting";
            return Err(Error::input(what, flag, "leave it out for --model spatial"));
        }
        let latents = match self.given_latents {
            Some(Latents::Count(count)) if usize::from(count) > MOST_SOURCES => {
                let what = format!("{count} sources are more than a spatial model can have");
                let advice = format!("ask for 1 to {MOST_SOURCES}, or auto");
                return Err(Error::input(what, "--latents", advice));
            }
            Some(Latents::Count(count)) => Some(usize::from(count)),
            _ => None,
        };
        if self.iterations == Some(0) {
            return Err(Error::input("nothing would be learned", "--iterations 0", "ask for 1 or more"));
        }
        Ok((latents, self.iterations))
    }
}
