//! How a recording is sampled, from its name: tests/cost measures many settings.

use spikelet_firmware::recording::Recording;

/// Settings of sampling, all but the usual ones.
pub struct Sampling {
    pub chains: u32,
    pub sweeps: u32,
    /// Latents chosen at random.
    pub extra: u32,
    /// Whether chains start at random.
    pub is_random: bool,
}

/// Names that end with `-gibbs` have two chains of ten sweeps; a last word such as `2x10x1x0` after `-gibbs-` says all four. Nothing
/// if it is not sampled.
pub fn sampling(recording: &Recording) -> Option<Sampling> {
    if recording.is_sampled() {
        return Some(Sampling { chains: 2, sweeps: 10, extra: 1, is_random: false });
    }
    let name = recording.name.to_bytes();
    if !name.windows(7).any(|word| word == b"-gibbs-") {
        return None;
    }
    let mut numbers = [0; 4];
    let last = name.rsplit(|&byte| byte == b'-').next().unwrap_or_default();
    for (number, digits) in numbers.iter_mut().zip(last.split(|&byte| byte == b'x')) {
        *number = digits.iter().fold(0, |number, &digit| 10 * number + u32::from(digit.wrapping_sub(b'0')));
    }
    let [chains, sweeps, extra, start] = numbers;
    Some(Sampling { chains, sweeps, extra, is_random: start > 0 })
}
