//! How many sources there are, from the recording alone.
//!
//! The first stage of training runs with 1 to 4 sources. A source is heard in many bins at once, so that the other bins of a frame tell
//! which source is on in this one; echoes and points where two sources are on at once do not go together like that. So each number
//! of sources is scored by the mean of ln p(y) where r_ht comes from the bins elsewhere (`align::predicted`). A third or fourth
//! source is suggested if it raises the score by at least a part of what the one before it did. The second one has none before it to
//! compare with: it counts if delays alone explain enough more by it.

use super::{Settings, Spectra, Training, align, search};
use spikelet::spatial::MOST_SOURCES;

/// How many sources the data suggest.
#[derive(Clone, Debug)]
pub struct Suggestion {
    /// 1 to 4.
    pub sources: usize,
    /// Means over loud points of ln p(y) by delays alone, of 1 to 4 sources.
    pub explained: Vec<f64>,
    /// Means of ln p(y) with one source per point, which is told by the other bins of the frame, of 1 to 4 sources.
    pub predicted: Vec<f64>,
    /// Spans of delays, in samples.
    pub spans: Vec<f64>,
}

/// What the delay of a second source explains of a loud point at least, in nats for each microphone: below what a second voice does,
/// above what the echoes of one do up to 0.3 s.
const WORTH: f64 = 0.14;
/// What a third or fourth source raises the score by at least, as a part of what the one before did. Of 44 simulated rooms with two
/// to four voices the echoes and overlaps of two had 0.11 to 0.38, a third voice 0.28 to 1.03, a fourth 0.34 to 0.59.
const PART: f64 = 0.35;

impl Suggestion {
    /// From the first stage of training, for each number.
    pub fn new(settings: &Settings, spectra: &Spectra, rate: u32, threads: usize) -> Self {
        let search = search(settings, spectra, rate, threads);
        let (mut explained, mut predicted) = (Vec::new(), Vec::new());
        for latents in 1..=MOST_SOURCES {
            let (delays, score) = search.best(latents);
            explained.push(score);
            let settings = Settings { latents, ..settings.clone() };
            let mut training = Training::from(settings, spectra, rate, delays);
            (0..training.settings.alignment).for_each(|_| training.step(spectra, threads));
            let (bins, presence) = (training.alignment_bins(), &training.presence);
            predicted.push(match spectra.microphones {
                2 => align::predicted::<2>(spectra, &bins, presence, threads),
                3 => align::predicted::<3>(spectra, &bins, presence, threads),
                _ => align::predicted::<4>(spectra, &bins, presence, threads),
            });
        }
        let sources = match explained[1] - explained[0] > WORTH * spectra.microphones as f64 {
            true => 2 + predicted.windows(3).take_while(|s| s[2] - s[1] > PART * (s[1] - s[0])).count(),
            false => 1,
        };
        Self { sources, spans: search.spans.clone(), explained, predicted }
    }

    /// What speaks against this number of sources, if much does.
    pub fn objection(&self, sources: usize, microphones: usize) -> Option<String> {
        let most = microphones + 1;
        if sources > most {
            return Some(format!(
                "{sources} sources on {microphones} microphones are more than can be told apart well: add a microphone, or ask for --latents {most} or fewer"
            ));
        }
        (sources.abs_diff(self.sources) > 1).then(|| {
            let suggested = self.sources;
            format!("the recording suggests {suggested} sources, not {sources}: try --latents {suggested}")
        })
    }
}
