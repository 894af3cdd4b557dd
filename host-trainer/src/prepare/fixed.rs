//! Latents as inference in integers needs them: see [`spikelet::model::FixedLatent`].

use super::Prepared;
use crate::{Error, Result};
use spikelet::math::Real;
use spikelet::model::{FixedLatent, Kind};

/// Nats that a slab's mean may be worth, 1/2 K mu^2: exponents have room for it.
const MOST_WORTH: f64 = 4096.0;
/// Least K / (G + K) with 30 digits: of latents more than 78 dB above the noise, others may not explain more than all but this.
const LEAST_PIVOT: i32 = 16;

const PLACE: &str = "--fixed-point";

impl<T: Real> Prepared<T> {
    /// The same model, inferred in integers, as processors without a float unit should. Fails where that is not possible.
    pub fn in_fixed_point(mut self) -> Result<Self> {
        if self.shape.kind != Kind::Gsc {
            let what = "only models of kind gsc are inferred in integers";
            return Err(Error::input(what, PLACE, "leave the flag out"));
        }
        if !self.shape.fits_integers() {
            let what = "the states are the papers' sets, which are not inferred in integers";
            return Err(Error::input(
                what,
                PLACE,
                "take adaptive states (--states adaptive), or leave the flag out",
            ));
        }
        let latents = self.shape.latents;
        let fixed = (0..latents).map(|h| self.fixed_latent(h)).collect::<Result<_>>()?;
        self.fixed = Some(fixed);
        self.model()?;
        Ok(self)
    }

    fn fixed_latent(&self, h: usize) -> Result<FixedLatent> {
        let [g, k, mu, offset, logit] = [
            &self.gram_diagonal,
            &self.slab_precision,
            &self.slab_mean,
            &self.score_offset,
            &self.prior_logit,
        ]
        .map(|values| values[h].to_f64());
        let log2_e = std::f64::consts::LOG2_E;
        let worth = 0.5 * k * mu * mu;
        if worth > MOST_WORTH {
            let what = format!("the slab of latent {h} is too narrow for its mean ({mu})");
            return Err(Error::input(what, PLACE, "leave the flag out"));
        }
        let s = 1.0 / (g + k).sqrt();
        let exponent = s.log2().floor();
        let fixed = |value: f64, digits: i32| (value * f64::from(digits).exp2()).round() as i32;
        // Exponents that say "never" are as good as any.
        let bits = |nats: f64| fixed((nats * log2_e).max(-16_000.0), 13);
        let mantissa = fixed(s / exponent.exp2(), 30).max(1 << 30);
        Ok(FixedLatent {
            scale: mantissa,
            exponent: exponent as i32,
            offset: bits(offset - worth),
            logit: bits(logit),
            pull: fixed(log2_e.sqrt() * k * mu * s, 22),
            least: fixed(k / (g + k), 30).max(LEAST_PIVOT),
        })
    }
}
