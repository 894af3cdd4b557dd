//! Non-negative parts that are on or off: the best codes by looking at all of them, and parts that fit their codes best.

/// Sweeps over the parts, which are coupled through images that have several.
const SWEEPS: usize = 50;
/// Rounds at most, and the relative gain that is none.
const ROUNDS: usize = 100;
const LEAST_GAIN: f64 = 1e-6;

/// Mean square error of the best codes of these parts (H x D), and of the best codes once parts and codes have been improved in
/// turn until nothing is gained. Each half of a round is the optimum given the other, so the error never rises.
pub fn errors(values: &[f64], dims: usize, mut parts: Vec<f64>) -> (f64, f64) {
    let latents = parts.len() / dims;
    let (mut codes, first) = best_codes(values, dims, &parts);
    let mut last = first;
    for _ in 0..ROUNDS {
        fit(values, dims, &codes, latents, &mut parts);
        let (better, error) = best_codes(values, dims, &parts);
        codes = better;
        let gain = last - error;
        last = error;
        if gain < LEAST_GAIN * error {
            break;
        }
    }
    (first, last)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of every image the state of all 2^H that leaves least, as bits, and what is left of a pixel on average.
fn best_codes(values: &[f64], dims: usize, parts: &[f64]) -> (Vec<u32>, f64) {
    let rows: Vec<&[f64]> = parts.chunks_exact(dims).collect();
    let gram: Vec<Vec<f64>> = rows.iter().map(|a| rows.iter().map(|b| dot(a, b)).collect()).collect();
    let (mut codes, mut total) = (Vec::new(), 0.0);
    for y in values.chunks_exact(dims) {
        // What a part would gain in the state that the walk is at. States differ from the one before in one part (Gray's order).
        let mut pull: Vec<f64> = rows.iter().map(|row| dot(row, y)).collect();
        let (mut state, mut error) = (0u32, dot(y, y));
        let mut best = (state, error);
        for number in 1..1u32 << rows.len() {
            let part = number.trailing_zeros() as usize;
            let sign = if state >> part & 1 == 0 { 1.0 } else { -1.0 };
            error += gram[part][part] - sign * 2.0 * pull[part];
            pull.iter_mut().zip(&gram[part]).for_each(|(pull, g)| *pull -= sign * g);
            state ^= 1 << part;
            if error < best.1 {
                best = (state, error);
            }
        }
        codes.push(best.0);
        total += best.1;
    }
    (codes, total / values.len() as f64)
}

/// Parts at or above zero that leave least with these codes.
fn fit(values: &[f64], dims: usize, codes: &[u32], latents: usize, parts: &mut [f64]) {
    let on = |code: u32, part: usize| code >> part & 1 == 1;
    let both = |a: usize, b: usize| codes.iter().filter(|&&code| on(code, a) && on(code, b)).count() as f64;
    let together: Vec<Vec<f64>> = (0..latents).map(|a| (0..latents).map(|b| both(a, b)).collect()).collect();
    let mut sums = vec![0.0; parts.len()];
    for (y, &code) in values.chunks_exact(dims).zip(codes) {
        for (_, sums) in sums.chunks_exact_mut(dims).enumerate().filter(|(part, _)| on(code, *part)) {
            sums.iter_mut().zip(y).for_each(|(sum, y)| *sum += y);
        }
    }
    for _ in 0..SWEEPS {
        for part in (0..latents).filter(|&part| together[part][part] > 0.0) {
            for d in 0..dims {
                let explained: f64 =
                    (0..latents).map(|other| together[part][other] * parts[other * dims + d]).sum();
                let at = part * dims + d;
                parts[at] = (parts[at] + (sums[at] - explained) / together[part][part]).max(0.0);
            }
        }
    }
}
