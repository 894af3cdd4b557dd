//! The equations in double precision, written out slowly.

use super::*;

/// The equations of the module in double precision: all states, sums in whatever order. No group has more latents than are kept, so that
/// nothing is left out by selection.
pub(super) fn definition(random: &Random, input: &[f32]) -> Vec<Vec<f64>> {
    use core::f64::consts::TAU;
    let Random { length: l, hop, dims, single, .. } = *random;
    let (g, bins, h) = (random.latents.len(), l / 2 + 1, random.prior.len());
    let firsts: Vec<usize> = (0..g).map(|group| random.latents[..group].iter().sum::<usize>()).collect();
    let (floor, p) = (f64::from(FLOOR), f64::from(POWER));
    let w = |latent: usize, d: usize| match random.scale {
        0.0 => f64::from(random.rows[latent * dims + d]),
        scale => f64::from(scale) * f64::from(libm::roundf(random.rows[latent * dims + d] / scale)),
    };
    let states: Vec<Vec<usize>> = (0..random.latents.iter().product::<usize>())
        .map(|mut number| {
            let digit = |&k: &usize| {
                let digit = number % k;
                number /= k;
                digit
            };
            random.latents.iter().map(digit).collect()
        })
        .collect();
    let filters = random.gains.len() / g;
    let mut posteriors: Vec<Vec<f64>> = vec![random.prior.iter().map(|&p| f64::from(p)).collect(); filters];
    let mut evidences = vec![0.0; filters];
    let (mut level, mut frames) = (0.5 * g as f64, 4.0 * l as f64 / hop as f64);
    let (mut heard, mut offset) = (0.0, 0.0);
    let window = |n: usize| 0.5 - 0.5 * libm::cos(TAU * n as f64 / l as f64);
    let mut out = vec![vec![0.0; input.len() + l]; g];
    let sample = |t: isize| usize::try_from(t).map_or(0.0, |t| f64::from(input[t]));
    for end in (hop..=input.len()).step_by(hop) {
        let start = end as isize - l as isize;
        let mut spectrum = vec![[0.0; 2]; bins];
        for (f, x) in spectrum.iter_mut().enumerate() {
            for n in 0..l {
                let angle = TAU * ((f * n) % l) as f64 / l as f64;
                let value = window(n) * sample(start + n as isize);
                x[0] += value * libm::cos(angle);
                x[1] -= value * libm::sin(angle);
            }
        }
        // What is constant.
        heard = (heard + 1.0f64).min(125.0);
        offset += (spectrum[0][0] - offset) / (heard - l as f64 / hop as f64).max(1.0);
        spectrum[0][0] -= offset;
        spectrum[1][0] += offset / 2.0;
        let power = (end - hop..end)
            .map(|t| sample(t as isize) - 2.0 * offset / l as f64)
            .map(|x| x * x)
            .sum::<f64>()
            / hop as f64;
        frames = (frames + 1.0).min(125.0 * l as f64 / hop as f64);
        if frames > 5.0 * l as f64 / hop as f64 {
            level += (power - level) / (frames * if power < 1e-3 * level { 16.0 } else { 1.0 });
        }
        let a2: Vec<f64> = spectrum
            .iter()
            .map(|[re, im]| (re * re + im * im) * (20.0 / l as f64) * (20.0 / l as f64) * g as f64 / level)
            .collect();
        let v: Vec<f64> = random
            .bands()
            .iter()
            .map(|band| {
                let [lo, rise, hi, fall] = band.map(f64::from);
                let weight = |f: usize| ((f as f64 - lo) * rise).min((hi - f as f64) * fall).max(0.0);
                let energy: f64 = (0..bins).map(|f| weight(f) * a2[f]).sum();
                libm::pow(libm::sqrt(energy).max(floor), p)
            })
            .collect();
        let mut tops = Vec::new();
        for filter in 0..filters {
            let gain = |group: usize| f64::from(random.gains[filter * g + group]);
            let q = &mut posteriors[filter];
            let mut expected: Vec<f64> = random.prior.iter().map(|&p| 0.5 * f64::from(p)).collect();
            for group in 0..g {
                for i in firsts[group]..firsts[group] + random.latents[group] {
                    let row = &random.next[2 * i * random.successors..][..2 * random.successors];
                    let mut left = 1.0;
                    for pair in row.chunks(2).filter(|_| q[i] > f64::from(IMPROBABLE)) {
                        let probability = f64::from(pair[1]) / 255.0;
                        expected[firsts[group] + usize::from(pair[0])] += 0.5 * q[i] * probability;
                        left -= probability;
                    }
                    for k in firsts[group]..firsts[group] + random.latents[group] {
                        expected[k] += 0.5 * q[i] * left * f64::from(random.prior[k]);
                    }
                }
            }
            let scores: Vec<f64> = states
                .iter()
                .map(|state| {
                    let mut score = 0.0;
                    // In bytes all is rounded, in the unit of the last group.
                    let unit = libm::pow(gain(g - 1), p) * f64::from(random.scale);
                    let round = |x: f64| match random.scale > 0.0 {
                        true => unit * libm::floor(x / unit + 0.5).min(255.0),
                        false => x,
                    };
                    for d in 0..dims {
                        let level =
                            |group: usize| libm::pow(gain(group), p) * w(firsts[group] + state[group], d);
                        let others = (0..g - 1).map(level).fold(libm::pow(floor, p), f64::max);
                        let loudest = match random.scale > 0.0 {
                            true => (0..g - 1)
                                .map(|group| {
                                    let ratio =
                                        libm::floor(4096.0 * libm::pow(gain(group) / gain(g - 1), p) + 0.5);
                                    let code = w(firsts[group] + state[group], d) / f64::from(random.scale);
                                    unit * libm::floor((libm::round(code) * ratio + 2048.0) / 4096.0)
                                        .min(255.0)
                                })
                                .fold(round(libm::pow(floor, p)), f64::max),
                            false => others,
                        };
                        let off = round(v[d]) - loudest.max(level(g - 1));
                        // In bytes with a sign.
                        let off =
                            if random.scale > 0.0 { off.clamp(-128.0 * unit, 127.0 * unit) } else { off };
                        score -= off * off / (2.0 * f64::from(SIGMA) * f64::from(SIGMA));
                    }
                    score + (0..g).map(|group| libm::log(expected[firsts[group] + state[group]])).sum::<f64>()
                })
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| libm::exp(score - most)).sum();
            let share = if frames > 5.0 * l as f64 / hop as f64 { 0.3 } else { 0.0 };
            evidences[filter] = 0.98 * evidences[filter] + share * (most + libm::log(total));
            let weights: Vec<f64> = scores.iter().map(|score| libm::exp(score - most) / total).collect();
            *q = vec![0.0; h];
            for (state, weight) in states.iter().zip(&weights) {
                (0..g).for_each(|group| q[firsts[group] + state[group]] += weight);
            }
            // The most probable states.
            let mut order: Vec<usize> = (0..states.len()).collect();
            order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
            tops.push(order.iter().take(PICKS).map(|&s| (s, weights[s])).collect::<Vec<_>>());
        }
        let most = evidences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = evidences.iter().map(|e| libm::exp(e - most)).collect();
        weights.iter_mut().for_each(|w| *w = if *w > 1e-3 { *w } else { 0.0 });
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let masks: Vec<Vec<Vec<f64>>> = tops
            .iter()
            .zip(&weights)
            .enumerate()
            .map(|(filter, (top, &weight))| {
                let few = if weight > f64::from(OFTEN) { PICKS } else { FEW_PICKS };
                let top = &top[..few.min(top.len())];
                let sum: f64 = top.iter().map(|(_, weight)| weight).sum();
                let gain = |group: usize| f64::from(random.gains[filter * g + group]);
                let mut mask = vec![vec![0.0; bins]; g];
                for &(s, weight) in top {
                    for f in 0..bins {
                        let m = if f < single { f } else { single + (f - single) / 2 };
                        let u = |group: usize| {
                            let row = (firsts[group] + states[s][group]) * mask_len(bins, single);
                            let code = f64::from(random.masks[row + m]);
                            gain(group) * gain(group) * MASK_BASE * libm::pow(10.0, MASK_STEP * code)
                        };
                        let all: f64 = (0..g).map(u).sum();
                        (0..g).for_each(|group| mask[group][f] += weight / sum * u(group) / all);
                    }
                }
                mask
            })
            .collect();
        for group in 0..g {
            for n in 0..l {
                let mut x = 0.0;
                for f in 0..bins {
                    let mask: f64 =
                        masks.iter().zip(&weights).map(|(mask, weight)| weight * mask[group][f]).sum();
                    let angle = TAU * ((f * n) % l) as f64 / l as f64;
                    let twice = if f == 0 || f == l / 2 { 1.0 } else { 2.0 };
                    let constant = [offset, -offset / 2.0].get(f).copied().unwrap_or(0.0) / g as f64;
                    let (re, im) = (mask * spectrum[f][0] + constant, mask * spectrum[f][1]);
                    x += twice * (re * libm::cos(angle) - im * libm::sin(angle)) / l as f64;
                }
                // Output t is the sample of L - 1 before it.
                let weight = window(n) * 8.0 * hop as f64 / (3.0 * l as f64);
                out[group][end - 1 + n] += weight * x;
            }
        }
    }
    out
}
