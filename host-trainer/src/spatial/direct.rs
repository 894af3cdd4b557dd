//! Rooms without echoes: all bins share one delay and one strength for each source and microphone.
//!
//! Covariances are D^2 numbers for each source and bin, learned from the few points that a bin has. Where no echo reaches the
//! microphones, R_hf = r_hf a_hf a_hf^H with
//!
//! ```text
//! a_hf = (1, g_1 e^{-i omega tau_1}, ..., g_{D-1} e^{-i omega tau_{D-1}})
//! ```
//!
//! says the same, and g and tau are learned from all bins. A bin votes for the form with the larger evidence, by Schwarz's criterion: the
//! shared one unless its own covariances raise the sum of ln p(y) by more than (D^2 - 1) H / 2 ln T. With echoes they do in nearly every
//! bin, without them in few, at the lowest frequencies, where sources differ least. Whether there are echoes is a matter of the room and
//! not of a bin, so that the majority decides for all.

use super::delays::Delays;
use super::hermitian::{Matrix, ZERO, conj, product, times, trace};
use super::spectra::Spectra;
use super::states::{context, infer};
use super::threads::each;
use super::{Bin, Frames};
use serde::{Deserialize, Serialize};
use spikelet::spatial::{Complex, Constants, MOST_MICROPHONES};
use std::f64::consts::PI;

/// Radians within which phases of bins agree.
const AGREED: f64 = 0.01;
/// Samples around the first delay that are searched, and steps of each finer search.
const AROUND: f64 = 0.5;
const STEPS: i32 = 32;
/// Of a covariance, until its largest eigenvalue is left.
const SQUARINGS: usize = 6;

/// How a source arrives at microphones 1 to D-1, compared with microphone 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Path {
    /// tau, in samples.
    delays: Delays,
    /// g.
    strengths: [f64; MOST_MICROPHONES - 1],
}

/// What all bins share in a room without echoes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Direct {
    paths: Vec<Path>,
}

impl Direct {
    /// From bins after their last iteration; nothing in a room with echoes.
    pub fn new<const D: usize>(
        spectra: &Spectra,
        bins: &[Bin],
        activities: &[Frames],
        delays: &[Delays],
        constants: &Constants<f64>,
        threads: usize,
    ) -> Option<Self> {
        let paths = delays.iter().enumerate().map(|(h, delays)| Path::fitted(bins, h, delays, D)).collect();
        let direct = Self { paths };
        let parameters = ((D * D - 1) * delays.len()) as f64;
        let votes = each(bins.iter().collect(), threads, |index, own| {
            let (mut expected, mut unused) =
                (activities[index].values.clone(), activities[index].values.clone());
            context(activities, index, &mut expected);
            let shared = Bin { covariances: direct.covariances(own, index, bins.len(), D), ..own.clone() };
            let mut sums = |bin: &Bin| infer::<D>(spectra, index, bin, constants, &expected, &mut unused);
            let (own, shared) = (sums(own), sums(&shared));
            own.objective - shared.objective <= 0.5 * parameters * own.points.max(1.0).ln()
        });
        let for_it = votes.iter().filter(|vote| **vote).count();
        (2 * for_it > bins.len()).then_some(direct)
    }

    /// Sources that it is of.
    pub fn sources(&self) -> usize {
        self.paths.len()
    }

    /// r a a^H of each source, as large as its own covariance is.
    pub fn covariances(&self, bin: &Bin, index: usize, bins: usize, d: usize) -> Vec<Matrix> {
        let omega = PI * index as f64 / (bins - 1) as f64;
        let of = |(path, own): (&Path, &Matrix)| {
            let a = path.steering(omega);
            let size: f64 = a[..d].iter().map(|[re, im]| re * re + im * im).sum();
            let mut r = ZERO;
            for i in 0..d {
                for j in 0..d {
                    r[i][j] = times(a[i], conj(a[j])).map(|x| x * trace(own, d) / size);
                }
            }
            r
        };
        self.paths.iter().zip(&bin.covariances).map(of).collect()
    }
}

impl Path {
    /// Of source h: the delay that most bins agree on, and the median of strengths.
    fn fitted(bins: &[Bin], h: usize, first: &Delays, d: usize) -> Self {
        let (mut delays, mut strengths) = (*first, [1.0; MOST_MICROPHONES - 1]);
        for k in 1..d {
            let omega = |f: usize| PI * f as f64 / (bins.len() - 1) as f64;
            let ratio = |(f, bin): (usize, &Bin)| Some((omega(f), arrival(&bin.covariances[h], k, d)?));
            let ratios: Vec<(f64, Complex<f64>)> = bins.iter().enumerate().filter_map(ratio).collect();
            delays[k - 1] = agreed(&ratios, first[k - 1]);
            let mut sizes: Vec<f64> = ratios.iter().map(|(_, [re, im])| re.hypot(*im)).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            strengths[k - 1] = sizes.get(sizes.len() / 2).map_or(1.0, |&size| size.max(1e-3));
        }
        Self { delays, strengths }
    }

    fn steering(&self, omega: f64) -> [Complex<f64>; MOST_MICROPHONES] {
        let mut a = [[1.0, 0.0]; MOST_MICROPHONES];
        for ((a, tau), g) in a[1..].iter_mut().zip(&self.delays).zip(&self.strengths) {
            let (sin, cos) = (-omega * tau).sin_cos();
            *a = [g * cos, g * sin];
        }
        a
    }
}

/// v_k / v_0 of the largest eigenvector v, which stays the direction of the source where much else is in its covariance. High powers of a
/// matrix are those of its largest eigenvalue: v v^H.
fn arrival(r: &Matrix, k: usize, d: usize) -> Option<Complex<f64>> {
    let mut power = *r;
    for _ in 0..SQUARINGS {
        let size = trace(&power, d);
        if size <= 0.0 {
            return None;
        }
        power.as_flattened_mut().iter_mut().for_each(|x| *x = x.map(|x| x / size));
        power = product(&power, &power, d);
    }
    let size = power[0][0][0];
    let ratio = power[k][0].map(|x| x / size);
    (size > 0.0 && ratio.iter().all(|x| x.is_finite())).then_some(ratio)
}

/// The delay near `first` with the largest sum of -ln(c^2 + phase^2), which bins that disagree change little.
fn agreed(ratios: &[(f64, Complex<f64>)], first: f64) -> f64 {
    let score = |tau: f64| -> f64 {
        let term = |&(omega, ratio): &(f64, Complex<f64>)| {
            let (sin, cos) = (omega * tau).sin_cos();
            let [re, im] = times(ratio, [cos, sin]);
            -(AGREED * AGREED + im.atan2(re).powi(2)).ln()
        };
        ratios.iter().map(term).sum()
    };
    let (mut best, mut around) = (first, AROUND);
    while around > 1e-4 {
        let candidates = (-STEPS..=STEPS).map(|i| best + around * f64::from(i) / f64::from(STEPS));
        let scored = candidates.map(|tau| (tau, score(tau)));
        best = scored.fold((best, f64::MIN), |best, now| if now.1 > best.1 { now } else { best }).0;
        around *= 2.0 / f64::from(STEPS);
    }
    best
}
