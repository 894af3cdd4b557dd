//! Candidate positions by regression from windows: the input is what is seen through a window of the size of an object, the
//! outputs are the posterior probabilities that each object is there, and the same regression serves every position.
//!
//! The thesis regresses from the whole image to all objects at all positions ([`super::locate::Learned`]). Two images of 900
//! pixels with objects at other places have nothing in common that a kernel of distances would see, so that regression hardly
//! tells of an image more than what is known of that very image. Windows do have something in common: an object looks the same
//! wherever it is. This puts into the selection that objects move, which the thesis leaves out on purpose, and nothing else:
//! which object it is, and exactly where, is learned.
//!
//! Windows are compared in four quarters ([`Kernel::parts`]), so that an object is still known by those of its quarters that nothing hides.
//!
//! A window stands for a cell of c x c positions, the one in the middle being its own: its targets are the probabilities that
//! each object is at any of these, and only one window in c^2 is looked at. The second look of a scan
//! ([`Scan::look_again`](super::locate::Scan::look_again)) then tells the positions of a cell apart.
//!
//! Pairs of windows and posteriors are drawn from the images: half of them where an object is in the cell, three tenths next to
//! one, the rest anywhere. The kernel is factored with Q pivots; new windows are predicted from these alone
//! ([`Factor::pivot_weights`]), Q (s^2 + H) operations and 4 Q exponentials a window.

use super::{Objects, Placed, Posterior};
use crate::gp::{Factor, Kernel, KernelName, fit};
use crate::{Error, Result};
use faer::{Mat, MatRef};
use spikelet::rng::Rng;

/// Of ten windows so many are where an object is, and so many next to one.
const AT_OBJECTS: usize = 5;
const BESIDE: usize = 3;
/// Windows with less to see than this part of what pivots have on average are not looked at.
const EMPTY: f32 = 0.05;
/// Quarters of a window.
const QUARTERS: usize = 4;
/// How far beside, in pixels.
const FAR: i64 = 2;

/// Regression of posteriors on windows.
#[derive(Clone, Debug)]
pub struct Windows {
    /// c.
    cell: usize,
    kernels: Option<(Kernel, Kernel)>,
    /// Image and position of each window that is learned from. (M)
    chosen: Vec<(usize, usize)>,
    factor: Option<Factor>,
    /// Windows of the pivots (Q x s^2) and their squared lengths. Only an order of scores is wanted of them: 32 bits are enough.
    pivots: Vec<f32>,
    squares: Vec<f32>,
    /// What each of them adds. (Q x H)
    weights: Option<Mat<f32>>,
}

impl Windows {
    /// Nothing learned yet; a window for every c x c positions.
    pub fn new(cell: usize) -> Self {
        let [pivots, squares] = [(); 2].map(|()| Vec::new());
        let (cell, chosen) = (cell.max(1), Vec::new());
        Self { cell, kernels: None, chosen, factor: None, pivots, squares, weights: None }
    }

    /// Chooses `count` windows, fits the kernel to the posteriors there and factors it with at most `rank` pivots.
    pub fn fit(
        &mut self,
        objects: &Objects,
        images: &[f64],
        posteriors: &[Posterior],
        (name, count, rank): (KernelName, usize, usize),
        rng: &mut Rng,
    ) -> Result<()> {
        self.choose(objects, posteriors, count, rng);
        let size = size(objects);
        let windows: Vec<f64> = self.chosen.iter().flat_map(|&at| window(objects, images, at)).collect();
        let targets = self.targets(objects, posteriors);
        let power = targets.iter().map(|t| t * t).sum::<f64>() / targets.len() as f64;
        let begin = quartered(Kernel::new(name, &windows, size, power));
        let (first, now) = self.kernels.unwrap_or((begin, begin));
        let now = fit(now, &first, &windows, size, &targets, objects.count());
        self.kernels = Some((first, now));
        let Some(factor) = Factor::new(now, &windows, size, rank) else {
            let what = "the kernel matrix of the windows is not positive definite";
            return Err(Error::run(what, "the selection", "rescale the images"));
        };
        let pivot = |m: &usize| windows[m * size..][..size].iter().map(|y| *y as f32);
        self.pivots = factor.pivots().iter().flat_map(pivot).collect();
        self.squares = self.pivots.chunks_exact(size).map(square).collect();
        self.factor = Some(factor);
        self.update(objects, posteriors);
        Ok(())
    }

    /// The kernel as fitted last.
    pub fn kernel(&self) -> Option<Kernel> {
        self.kernels.map(|(_, now)| now)
    }

    /// Takes newer posteriors, with the windows and the kernel as they are.
    pub fn update(&mut self, objects: &Objects, posteriors: &[Posterior]) {
        let targets = self.targets(objects, posteriors);
        if let Some(factor) = &self.factor {
            let weights = factor.pivot_weights(&targets, objects.count());
            self.weights =
                Some(Mat::from_fn(weights.nrows(), weights.ncols(), |q, h| weights[(q, h)] as f32));
        }
    }

    /// Scores of all objects at all positions of an image. (H x positions)
    pub fn scores(&self, objects: &Objects, image: &[f64]) -> Vec<f64> {
        let (h, positions, size) = (objects.count(), objects.positions(), size(objects));
        let (Some((_, kernel)), Some(weights)) = (self.kernels, &self.weights) else {
            return vec![0.0; h * positions];
        };
        let empty = EMPTY * self.squares.iter().sum::<f32>() / self.squares.len() as f32;
        let (mut windows, mut looked_at): (Vec<f32>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
        let places = objects.places();
        let along = || (0..places).step_by(self.cell);
        for (row, column) in along().flat_map(|row| along().map(move |column| (row, column))) {
            let start = windows.len();
            let middle = |at: usize| (at + (self.cell - 1) / 2).min(places - 1);
            let position = middle(row) * places + middle(column);
            windows.extend(window(objects, image, (0, position)).map(|y| y as f32));
            match square(&windows[start..]) > empty {
                true => looked_at.push((row, column)),
                false => windows.truncate(start),
            }
        }
        let mut found = vec![0.0; h * positions];
        if looked_at.is_empty() {
            return found;
        }
        let rank = self.pivots.len() / size;
        let narrow = (0.5 / (kernel.length * kernel.length)) as f32;
        let [linear, bias] = [kernel.linear, kernel.bias].map(|part| part as f32);
        let radial = kernel.radial as f32 / QUARTERS as f32;
        let quarter = size / QUARTERS;
        // Columns are windows.
        let mut near = Mat::<f32>::full(rank, looked_at.len(), bias);
        for part in 0..QUARTERS {
            let piece = |all: &[f32]| -> Vec<f32> {
                all.chunks_exact(size).flat_map(|one| one[part * quarter..][..quarter].to_vec()).collect()
            };
            let (pivots, windows) = (piece(&self.pivots), piece(&windows));
            let squares: Vec<f32> = pivots.chunks_exact(quarter).map(square).collect();
            let products = MatRef::from_row_major_slice(&pivots, rank, quarter)
                * MatRef::from_row_major_slice(&windows, looked_at.len(), quarter).transpose();
            for ((window, near), products) in
                windows.chunks_exact(quarter).zip(near.col_iter_mut()).zip(products.col_iter())
            {
                let own = square(window);
                for ((k, product), square) in near.iter_mut().zip(products.iter()).zip(&squares) {
                    let apart = narrow * (own + square - 2.0 * product).max(0.0);
                    *k += linear * product;
                    // Beyond this there is nothing to see in 32 bits.
                    if apart < 16.0 {
                        *k += radial * (-apart).exp();
                    }
                }
            }
        }
        let scores = weights.transpose() * &near;
        for (at, &(row, column)) in looked_at.iter().enumerate() {
            for row in row..(row + self.cell).min(places) {
                for column in column..(column + self.cell).min(places) {
                    let position = row * places + column;
                    (0..h).for_each(|h| found[h * positions + position] = f64::from(scores[(h, at)]));
                }
            }
        }
        found
    }

    fn choose(&mut self, objects: &Objects, posteriors: &[Posterior], count: usize, rng: &mut Rng) {
        let likely = |posterior: &Posterior| -> Vec<Placed> {
            posterior.placed.iter().filter(|(_, p)| *p > 0.5).map(|(placed, _)| *placed).collect()
        };
        let present: Vec<(usize, Placed)> = posteriors
            .iter()
            .enumerate()
            .flat_map(|(n, p)| likely(p).into_iter().map(move |at| (n, at)))
            .collect();
        // As many of a rare object as of a frequent one.
        let mut of_object = vec![Vec::new(); objects.count()];
        present.iter().for_each(|&(n, placed)| of_object[placed.object].push((n, placed.position)));
        of_object.retain(|places| !places.is_empty());
        let places = objects.places() as i64;
        self.chosen.clear();
        for k in 0..count {
            let any = |rng: &mut Rng, n: usize| ((rng.uniform::<f64>() * n as f64) as usize).min(n - 1);
            let anywhere = (any(rng, posteriors.len()), any(rng, objects.positions()));
            if of_object.is_empty() || k % 10 >= AT_OBJECTS + BESIDE {
                self.chosen.push(anywhere);
                continue;
            }
            let of_one = &of_object[k / 10 % of_object.len()];
            let (n, position) = of_one[any(rng, of_one.len())];
            // Anywhere in its cell, or beside it.
            let (back, width) = match k % 10 < AT_OBJECTS {
                true => ((self.cell / 2) as i64, self.cell),
                false => (FAR + (self.cell / 2) as i64, 2 * FAR as usize + self.cell),
            };
            let mut moved =
                |at: usize| (at as i64 + any(rng, width) as i64 - back).clamp(0, places - 1) as usize;
            let (row, column) = (moved(position / objects.places()), moved(position % objects.places()));
            self.chosen.push((n, row * objects.places() + column));
        }
    }

    /// Posteriors at the chosen windows. (M x H)
    fn targets(&self, objects: &Objects, posteriors: &[Posterior]) -> Vec<f64> {
        let mut targets = vec![0.0; self.chosen.len() * objects.count()];
        for (targets, &(n, position)) in targets.chunks_exact_mut(objects.count()).zip(&self.chosen) {
            let first = (self.cell - 1) / 2;
            let is_in_cell = |own: usize, other: usize| (own..own + self.cell).contains(&(other + first));
            for (placed, probability) in &posteriors[n].placed {
                let [own, other] =
                    [position, placed.position].map(|p| (p / objects.places(), p % objects.places()));
                if is_in_cell(own.0, other.0) && is_in_cell(own.1, other.1) {
                    targets[placed.object] += *probability;
                }
            }
        }
        targets
    }
}

/// Pixels of a window that are looked at.
fn size(objects: &Objects) -> usize {
    QUARTERS * (objects.side / 2) * (objects.side / 2)
}

fn square(window: &[f32]) -> f32 {
    window.iter().map(|y| y * y).sum()
}

/// With quarters compared each by itself, and so wide that two of them are about as far apart as whole windows would be.
fn quartered(kernel: Kernel) -> Kernel {
    Kernel { parts: QUARTERS, length: kernel.length / (QUARTERS as f64).sqrt(), ..kernel }
}

/// What is seen through the window at a position of image n, quarter after quarter. An odd side leaves its last row and column out.
fn window<'a>(
    objects: &'a Objects,
    images: &'a [f64],
    (n, position): (usize, usize),
) -> impl Iterator<Item = f64> + 'a {
    let pixels = objects.canvas * objects.canvas;
    let half = objects.side / 2;
    let corners =
        [0, half].into_iter().flat_map(move |top| [0, half].into_iter().map(move |left| (top, left)));
    corners.flat_map(move |(top, left)| {
        (0..half * half).map(move |j| {
            let (row, column) = (top + j / half, left + j % half);
            images[n * pixels + objects.pixel(position, row * objects.side + column)]
        })
    })
}
