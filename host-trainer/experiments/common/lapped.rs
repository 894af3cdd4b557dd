//! Signals in a lapped transform (MDCT) and back, for methods to compare with.

use spikelet::mdct::Mdct;

/// The coefficients of every block, `bins` each. The first block is half the silence before the signal.
pub fn spectra(samples: &[f64], bins: usize) -> Vec<Vec<f32>> {
    let table = table(bins);
    let (mdct, mut older) = (Mdct::over(&table), vec![0.0f32; bins]);
    let block = |number: usize| {
        let begin = number * bins;
        let newer = (begin..begin + bins).map(|n| samples.get(n).map_or(0.0, |&x| x as f32));
        let (newer, mut spectrum) = (newer.collect::<Vec<f32>>(), vec![0.0; bins]);
        mdct.forward(&older, &newer, &mut spectrum);
        older = newer;
        spectrum
    };
    // One more than the samples fill: the end of the last one overlaps with silence.
    (0..samples.len().div_ceil(bins) + 1).map(block).collect()
}

/// The signal of so many samples that has these coefficients.
pub fn signal(spectra: &[Vec<f32>], bins: usize, samples: usize) -> Vec<f64> {
    let table = table(bins);
    let mdct = Mdct::over(&table);
    let mut out = vec![0.0f32; (spectra.len() + 1) * bins];
    for (number, spectrum) in spectra.iter().enumerate() {
        let (first, second) = out[number * bins..][..2 * bins].split_at_mut(bins);
        mdct.inverse(&mut spectrum.clone(), first, second);
    }
    out[bins..][..samples].iter().map(|&x| f64::from(x)).collect()
}

/// Mean power of every bin.
pub fn power(samples: &[f64], bins: usize) -> Vec<f64> {
    let spectra = spectra(samples, bins);
    let mean = |k: usize| {
        spectra.iter().map(|block| f64::from(block[k]).powi(2)).sum::<f64>() / spectra.len() as f64
    };
    (0..bins).map(mean).collect()
}

/// Every bin times its gain: with a = S / (S + N), the Wiener filter of signals that never change.
pub fn filtered(samples: &[f64], gains: &[f64]) -> Vec<f64> {
    let mut spectra = spectra(samples, gains.len());
    for block in &mut spectra {
        block.iter_mut().zip(gains).for_each(|(x, gain)| *x *= *gain as f32);
    }
    signal(&spectra, gains.len(), samples.len())
}

fn table(bins: usize) -> Vec<f32> {
    let mut table = vec![0.0; Mdct::table_len(bins)];
    Mdct::prepare(&mut table);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_come_back() {
        let samples: Vec<f64> = (0..100).map(|n| f64::from(n * n % 17) - 8.0).collect();
        let again = filtered(&samples, &[1.0; 16]);
        assert!(samples.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-4), "{again:?}");
    }
}
