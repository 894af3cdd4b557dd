//! Invariant occluding objects, InvECA [004 sec. 4.5.3, after Dai and Lücke 2012]: objects that may be anywhere in an image and
//! hide each other.
//!
//! The thesis names the parts of the model and refers elsewhere for its equations; this is the form that is implemented. Object h
//! of s x s pixels has a mask m_h(j) in \[0, 1\] and features W_h(j). In an image it is present with probability pi_h, at a
//! position x_h that is uniform over all where it fits. A pixel i belongs to the front-most of the present objects whose masks
//! hold there, each with its probability m = m_h(i - x_h) and at a depth that is uniform and independent for each pixel, or to
//! the background:
//!
//! ```text
//! p(y_i | present, x) = sum_h w_h N(y_i; W_h(i - x_h), sigma^2) + w_0 N(y_i; b, sigma_0^2)
//! w_h = m_h int_0^1 prod_{k != h} (1 - u m_k) du          w_0 = prod_h (1 - m_h)
//! ```
//!
//! The posterior of an image is taken over kept states: every selected object absent, or at one of its candidate positions ([`locate`]).
//! M-step, with r_h the probability that object h owns a pixel and a_h that its mask holds there, sums over images, states and pixels:
//!
//! ```text
//! pi_h = mean present     W_h(j) = sum r_h y / sum r_h     m_h(j) = sum a_h / sum present
//! sigma^2 = sum r_h (y - W_h)^2 / sum r_h                  sigma_0^2 = sum r_0 (y - b)^2 / sum r_0
//! p(owner k, mask of h holds) = m_k m_h int_0^1 (1 - u) prod_{l != k, h} (1 - u m_l) du        h is behind k
//! ```
//!
//! Over all states the likelihood never falls (`tests/inveca.rs`, which also has the shares by enumeration). Work per image: S
//! positions x H x s^2 for a scan, and the product over selected objects of (1 + positions) states of at most H' s^2 pixels each.

//!
//! | module | has |
//! |---|---|
//! | [`posterior`] | the posterior of an image over kept states, and what it adds to an M-step |
//! | [`learn`] | sums, the M-step, first objects |
//! | [`locate`] | candidate positions by a scan, or by regression from the whole image |
//! | [`windows`] | candidate positions by regression from windows, shared by all positions |

pub mod learn;
pub mod locate;
pub mod posterior;
pub mod windows;

pub use learn::Sums;

/// Most objects in one state.
pub const MOST: usize = 8;

/// The parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// s: an object has s x s pixels.
    pub side: usize,
    /// An image has canvas x canvas pixels.
    pub canvas: usize,
    /// m. (H x s^2)
    pub masks: Vec<f64>,
    /// W. (H x s^2)
    pub features: Vec<f64>,
    /// pi. (H)
    pub prior: Vec<f64>,
    /// sigma^2.
    pub noise: f64,
    /// b.
    pub background: f64,
    /// sigma_0^2.
    pub background_noise: f64,
}

/// An object at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which.
    pub object: usize,
    /// The place of its first pixel: row times positions per row plus column.
    pub position: usize,
}

/// What one image says.
#[derive(Clone, Debug, Default)]
pub struct Posterior {
    /// ln of the sum over kept states.
    pub evidence: f64,
    /// Probability of every candidate.
    pub placed: Vec<(Placed, f64)>,
}

/// int_0^1 prod (1 - u f) du.
fn integral(factors: impl Iterator<Item = f64>) -> f64 {
    let mut powers = [0.0; MOST + 2];
    powers[0] = 1.0;
    let mut degree = 0;
    for factor in factors {
        for i in (0..=degree).rev() {
            powers[i + 1] -= factor * powers[i];
        }
        degree += 1;
    }
    (0..=degree).map(|i| powers[i] / (i + 1) as f64).sum()
}

/// w_h of the objects whose masks at a pixel are given, at most [`MOST`], and w_0. Places beyond the objects are 0.
pub fn shares(masks: &[f64]) -> ([f64; MOST], f64) {
    let mut own = [0.0; MOST];
    if let [m, k] = *masks {
        (own[0], own[1]) = (m * (1.0 - 0.5 * k), k * (1.0 - 0.5 * m));
    } else {
        for (h, (own, m)) in own.iter_mut().zip(masks).enumerate() {
            let others = masks.iter().enumerate().filter(|(k, _)| *k != h).map(|(_, m)| *m);
            *own = m * integral(others);
        }
    }
    (own, masks.iter().map(|m| 1.0 - m).product())
}

impl Objects {
    /// H.
    pub fn count(&self) -> usize {
        self.prior.len()
    }

    /// Positions per row.
    pub fn places(&self) -> usize {
        self.canvas + 1 - self.side
    }

    /// Positions of an object.
    pub fn positions(&self) -> usize {
        self.places() * self.places()
    }

    /// The place of an object at a position among the H x positions outputs of a regression.
    fn output(&self, placed: Placed) -> usize {
        placed.object * self.positions() + placed.position
    }

    /// Where pixel j of an object lies on the canvas.
    fn pixel(&self, position: usize, j: usize) -> usize {
        let (row, column) = (position / self.places(), position % self.places());
        (row + j / self.side) * self.canvas + column + j % self.side
    }

    /// ln N(y; W_h(j), sigma^2) - ln N(y; b, sigma_0^2).
    fn log_ratio(&self, object: usize, j: usize, y: f64) -> f64 {
        let off = y - self.features[object * self.side * self.side + j];
        let back = y - self.background;
        0.5 * (back * back / self.background_noise - off * off / self.noise
            + (self.background_noise / self.noise).ln())
    }

    /// ln(m e^l + 1 - m): what a pixel gains under one object alone.
    fn alone(&self, object: usize, j: usize, y: f64) -> f64 {
        let m = self.masks[object * self.side * self.side + j];
        let l = self.log_ratio(object, j, y);
        let most = l.max(0.0);
        most + (m * (l - most).exp() + (1.0 - m) * (-most).exp()).ln()
    }
}
