//! Whether sounds reach the microphones of a recording at different times.
//!
//! Models of a lapped transform take a mixture as instantaneous: every source reaches all microphones at once, each with its own
//! gain. Then the ratio of two channels is a real number wherever one source is alone. A delay between microphones turns it by
//! an angle that grows with frequency instead.
//!
//! The complex spectrum comes from the core's transform: MDCT of a block, and of the same block backwards, which is the MDST with
//! signs that alternate,
//!
//! ```text
//! X_k = C_k - i S_k,   S_k(x_0 .. x_(2N-1)) = (-1)^k C_k(x_(2N-1) .. x_0)
//! ```
//!
//! Averages over tiles of 4 blocks and 3 bins give the coherence of two channels, g = S_ab / (S_aa S_bb)^(1/2). A tile is *clear*
//! where |g| > 0.95, as one source alone makes it, and louder than its bins are on average; it is *turned* where
//! (Im g / |g|)^2 > 0.1, an angle of 18 degrees or more from the real axis. In an instantaneous mixture clear tiles are turned by
//! noise and chance only.

use spikelet::mdct::Mdct;

/// Blocks and bins of a tile: with fewer, noise is coherent by chance.
const TILE: [usize; 2] = [4, 3];
/// Length of half a block in seconds: reverberation is longer, delays between microphones are not.
const SECONDS: f64 = 0.016;
/// Coherence of a clear tile, squared.
const CLEAR: f64 = 0.95 * 0.95;
/// Square of the sine of the angle of a turned one.
const TURNED: f64 = 0.1;
/// Power of a bin that is not empty, as a part of that of the loudest.
const EMPTY: f64 = 1e-6;
/// Of clear tiles that are turned, the part above which sounds come with delays. Chosen on seven simulated rooms, which have 0.14 to
/// 0.79, and on instantaneous mixtures of speech and music with noise: more than 0.08 there only where fewer than ten were turned.
const LEAST_PART: f64 = 0.09;
/// ... and their number, so that chance does not decide.
const LEAST_TURNED: usize = 10;

/// What was found, of the two channels where most was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Tiles where one source is alone.
    pub clear: usize,
    /// Those of them whose phase is turned.
    pub turned: usize,
}

impl Delays {
    /// Part of the clear tiles that is turned.
    pub fn part(&self) -> f64 {
        self.turned as f64 / self.clear.max(1) as f64
    }

    /// Whether an instantaneous mixture cannot explain it.
    pub fn found(&self) -> bool {
        self.turned >= LEAST_TURNED && self.part() > LEAST_PART
    }
}

/// Looks at interleaved samples of so many channels.
///
/// ```
/// let noise: Vec<f64> = (0..32_000u64).map(|n| (n * n % 997) as f64 / 997.0 - 0.5).collect();
/// let late = |n: usize| if n < 6 { 0.0 } else { noise[n - 6] };
/// let together: Vec<f64> = noise.iter().flat_map(|x| [*x, -0.5 * x]).collect();
/// let apart: Vec<f64> = (0..noise.len()).flat_map(|n| [noise[n], 0.5 * late(n)]).collect();
/// assert!(!spikelet_trainer::delays::delays(&together, 2, 8000).found());
/// assert!(spikelet_trainer::delays::delays(&apart, 2, 8000).found());
/// ```
pub fn delays(samples: &[f64], channels: usize, rate: u32) -> Delays {
    let bins = bins_of(f64::from(rate) * SECONDS).max(32);
    let spectra: Vec<Vec<[f32; 2]>> =
        (0..channels).map(|channel| spectrum(samples, channel, channels, bins)).collect();
    let pairs = (0..channels).flat_map(|a| (a + 1..channels).map(move |b| (a, b)));
    let all = pairs.map(|(a, b)| compare(&spectra[a], &spectra[b], bins));
    all.max_by(|a, b| {
        (a.found(), a.part()).partial_cmp(&(b.found(), b.part())).unwrap_or(std::cmp::Ordering::Equal)
    })
    .unwrap_or_default()
}

/// The power of two that is nearest in ratio, within what a transform can have.
pub fn bins_of(samples: f64) -> usize {
    2usize.pow(samples.max(1.0).log2().round() as u32).clamp(16, 2048)
}

/// Blocks x bins of one channel, as (C, -S).
fn spectrum(samples: &[f64], channel: usize, channels: usize, bins: usize) -> Vec<[f32; 2]> {
    let mut table = vec![0.0; Mdct::table_len(bins)];
    Mdct::prepare(&mut table);
    let mdct = Mdct::over(&table);
    let signal: Vec<f32> = samples.iter().skip(channel).step_by(channels).map(|&y| y as f32).collect();
    let halves: Vec<&[f32]> = signal.chunks_exact(bins).collect();
    let (mut cosine, mut sine) = (vec![0.0; bins], vec![0.0; bins]);
    let mut values = Vec::with_capacity(signal.len());
    for pair in halves.windows(2) {
        let backwards = |half: &[f32]| half.iter().rev().copied().collect::<Vec<f32>>();
        mdct.forward(pair[0], pair[1], &mut cosine);
        mdct.forward(&backwards(pair[1]), &backwards(pair[0]), &mut sine);
        let sign = |bin: usize| if bin.is_multiple_of(2) { -1.0 } else { 1.0 };
        values.extend(cosine.iter().zip(&sine).enumerate().map(|(bin, (&c, &s))| [c, sign(bin) * s]));
    }
    values
}

/// Averages over a tile: power of both channels, and their product.
#[derive(Clone, Copy, Debug, Default)]
struct Tile {
    power: [f64; 2],
    cross: [f64; 2],
}

impl Tile {
    fn add(&mut self, a: [f32; 2], b: [f32; 2]) {
        let [[a, i], [b, j]] = [a, b].map(|x| x.map(f64::from));
        self.power[0] += a * a + i * i;
        self.power[1] += b * b + j * j;
        self.cross[0] += a * b + i * j;
        self.cross[1] += i * b - a * j;
    }

    fn total(&self) -> f64 {
        self.power[0] + self.power[1]
    }
}

fn compare(a: &[[f32; 2]], b: &[[f32; 2]], bins: usize) -> Delays {
    let [blocks, width] = TILE;
    let columns = bins / width;
    let mut tiles: Vec<Tile> = Vec::new();
    for (a, b) in a.chunks_exact(blocks * bins).zip(b.chunks_exact(blocks * bins)) {
        let mut row = vec![Tile::default(); columns];
        for (number, (&a, &b)) in a.iter().zip(b).enumerate() {
            if let Some(tile) = row.get_mut(number % bins / width) {
                tile.add(a, b);
            }
        }
        tiles.extend(row);
    }
    let rows = tiles.len() / columns;
    let mean = |column: usize| {
        tiles.iter().skip(column).step_by(columns).map(Tile::total).sum::<f64>() / rows.max(1) as f64
    };
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let loudest = means.iter().copied().fold(0.0, f64::max);
    let mut found = Delays::default();
    for (number, tile) in tiles.iter().enumerate() {
        let mean = means[number % columns];
        let [re, im] = tile.cross.map(|x| x * x);
        let is_loud = mean > EMPTY * loudest && tile.total() > mean;
        if is_loud && re + im > CLEAR * tile.power[0] * tile.power[1] {
            found.clear += 1;
            found.turned += usize::from(im > TURNED * (re + im));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use spikelet::rng::Rng;

    /// Noise through a resonance, in bursts: as sparse as speech.
    fn bursts(rng: &mut Rng, pitch: f64) -> Vec<f64> {
        let (mut x1, mut x2) = (0.0, 0.0);
        let sample = |n: usize| {
            let on = (n as f64 * pitch / 900.0).sin() > 0.3;
            let x = 1.8 * pitch.cos() * x1 - 0.81 * x2 + if on { rng.normal::<f64>() } else { 0.0 };
            (x2, x1) = (x1, x);
            x
        };
        (0..40_000).map(sample).collect()
    }

    #[test]
    fn delays_are_told_from_gains_and_noise() {
        for (seed, noise) in [(1, 0.0), (2, 0.1), (3, 1.0), (4, 5.0)] {
            let mut rng = Rng::new(seed);
            let [a, b, c] = [0.3, 0.7, 1.4].map(|pitch| bursts(&mut rng, pitch));
            let mut heard = |late: usize| {
                let at = |x: &[f64], n: usize, by: usize| if n < by { 0.0 } else { x[n - by] };
                let both = |n: usize| {
                    let first = a[n] + 0.5 * b[n] - at(&c, n, late);
                    [first, 0.4 * at(&a, n, late) + at(&b, n, 2 * late) + 0.3 * c[n]]
                };
                let clean: Vec<f64> = (0..a.len()).flat_map(both).collect();
                clean.into_iter().map(|y| y + noise * rng.normal::<f64>()).collect::<Vec<f64>>()
            };
            let together = delays(&heard(0), 2, 8000);
            assert!(!together.found(), "{noise}: {together:?}");
            if noise <= 1.0 {
                let apart = delays(&heard(1), 2, 8000);
                assert!(apart.found(), "{noise}: {apart:?}");
            }
        }
    }

    #[test]
    fn silence_and_short_recordings_say_nothing() {
        assert_eq!(delays(&[0.0; 20_000], 2, 8000), Delays::default());
        assert_eq!(delays(&[1.0, -1.0], 2, 8000), Delays::default());
        assert_eq!((bins_of(256.0), bins_of(1411.2), bins_of(1.0), bins_of(1e9)), (256, 1024, 16, 2048));
    }
}
