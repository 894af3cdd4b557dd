//! Dictionaries that stay at or above zero, by either of two rules.
//!
//! ```text
//! clamp:     W = max(0, (sum y <s>^T) (sum <s s^T>)^-1)                                          002 eq. 26
//! multiply:  W_dh <- W_dh max(0, sum y_d <s_h>) / (W sum <s s^T>)_dh, 20 times                   002 eq. 27
//! ```
//!
//! Multiplying never raises the squared error but goes only part of the way to the optimum, and zeros stay zeros; clamping
//! reaches the optimum at once where no entry is clamped.

use super::super::m_step::{Update, Warning};
use super::super::settings::Rule;
use super::super::statistics::Statistics;
use super::linear;
use crate::parameters::Parameters;
use faer::{Mat, MatRef};

/// Multiplications per M-step.
const STEPS: usize = 20;

/// W from statistics, by the rule of the update.
pub fn dictionary(
    parameters: &Parameters,
    sums: &Statistics,
    dead: &[bool],
    update: &Update,
    warnings: &mut Vec<Warning>,
) -> Vec<f64> {
    match update.rule {
        Rule::Clamp => {
            let mut dictionary = linear::dictionary(parameters, sums, dead, update, warnings);
            dictionary.iter_mut().for_each(|w| *w = w.max(0.0));
            dictionary
        }
        Rule::Multiply => (0..STEPS).fold(parameters.dictionary.clone(), |w, _| multiplied(&w, sums, dead)),
    }
}

/// One multiplication.
pub fn multiplied(dictionary: &[f64], sums: &Statistics, dead: &[bool]) -> Vec<f64> {
    let h = dead.len();
    let moments = Mat::from_fn(h, h, |i, j| sums.second_moment(i, j));
    let explained = MatRef::from_row_major_slice(dictionary, dictionary.len() / h, h) * moments;
    let entry = |(e, w): (usize, &f64)| {
        let (is, ought) = (explained[(e / h, e % h)], sums.cross[e].max(0.0));
        if is > 0.0 && !dead[e % h] { w * ought / is } else { *w }
    };
    dictionary.iter().enumerate().map(entry).collect()
}
