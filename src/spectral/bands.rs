//! Bands of a spectrum, compressed: what a frame looks like to the model.

use crate::counts::Count;
use crate::math::Real;

/// A triangle over bins: P_f = max(0, min((f - lo) rise, (hi - f) fall)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Where it begins, in bins.
    pub lo: f32,
    /// Its slope there.
    pub rise: f32,
    /// Where it ends.
    pub hi: f32,
    /// Its slope there, downwards.
    pub fall: f32,
}

impl Band {
    /// sum_f P_f power_f, in the order of bins.
    #[inline]
    pub fn energy(&self, power: &[f32]) -> f32 {
        let first = if self.lo > 0.0 { self.lo as usize } else { 0 };
        let (mut f, mut sum) = (first as f32, 0.0);
        for &power in power.iter().skip(first) {
            if f > self.hi {
                break;
            }
            let (up, down) = ((f - self.lo) * self.rise, (self.hi - f) * self.fall);
            let weight = if up < down { up } else { down };
            if weight > 0.0 {
                sum += weight * power;
            }
            f += 1.0;
        }
        Count::ChannelBands.add(f as usize - first);
        sum
    }
}

/// v = max(sqrt(energy), floor)^p, for a floor above 0.
#[inline]
pub fn compress(energy: f32, floor: f32, power: f32) -> f32 {
    let least = floor * floor;
    let energy = if energy > least { energy } else { least };
    Real::exp(0.5 * power * Real::ln(energy))
}

/// Takes out of the spectrum of a frame what a constant leaves there: the window makes `offset` of it in bin 0, and minus half of that in
/// bin 1.
pub(super) fn take_offset(spectrum: &mut [[f32; 2]], offset: f32) {
    if let [[zero, _], [one, _], ..] = spectrum {
        *zero -= offset;
        *one += 0.5 * offset;
    }
}

/// a_f^2 = c^2 (20 / L)^2 |X_f|^2 of all bins, where `scale` is c^2.
pub fn frame_power(spectrum: &[[f32; 2]], length: usize, scale: f32, power: &mut [f32]) {
    Count::ChannelBins.add(power.len());
    let unit = 20.0 / length as f32;
    let scale = scale * (unit * unit);
    for (power, &[re, im]) in power.iter_mut().zip(spectrum) {
        *power = (re * re + im * im) * scale;
    }
}
