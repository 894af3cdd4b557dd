//! Objects that may be anywhere and hide each other (InvECA; thesis 004, section 4.5.3 and figures 4.5 to 4.7): candidate
//! positions by a scan of all positions, or by regression.
//!
//! The thesis cuts 16 objects of 10 x 10 pixels out of COIL-100, which does not exist here, and puts each on a black image of 30
//! x 30 pixels with probability 0.2, at random depths; N = 2000. Here eight objects are middles of pictures in four shapes and
//! eight are digits; without a folder, textures that are made. H' = 5 objects are selected, two positions of each; H = 20,
//! because the thesis, too, has four components more than objects. It says that all selections recover all objects and locate
//! them alike, and that regression takes 22 s where the scan takes 1831 s.
//!
//! | selection | positions come from |
//! |---|---|
//! | scan | the gain of each object alone at each position, tabulated; `plain` is its time without tables |
//! | image, others | regression from the whole image, its own posterior left out (eq. 4.6 as it stands) |
//! | image | the same with its own last posterior among what is learned from |
//! | windows | regression from a window to the objects in a cell of 3 x 3 positions, the same for all cells; in images that were learned from, with their own last posterior added |
//!
//! Regression says where an object may be; the scan's own score at the 90 best of 441 positions of each object then says where (a
//! second look).
//!
//! `full` is the factor of all N images (or of 2000 windows), `Q` an incomplete one of 100 images (400 windows); T* is how many
//! iterations a kernel is kept. All runs begin with the same first objects and six iterations by a scan, in which components that
//! are hardly used or alike begin anew; from then on each has its own selection. In every second image one of the five selected
//! objects is drawn at random, except at the end. `there` is the share of objects whose best position is the true one, over all
//! that show at least a quarter of their pixels; `selected` the share that are among the candidates of their image; both with the
//! final model, on the images that were learned from and on new ones. `evidence` is ln p per image. CPU seconds are those for all
//! positions of all N images, and for a fit of the regression.
//!
//! ```text
//! cargo run --release -p spikelet-trainer --example inveca -- [--quick] [--figure small] [--skip ROWS] [--rows COUNT] [--picture FILE] [FOLDER]
//! ```
//!
//! FOLDER holds `images/*.png`, `digits/mnist28x28_x.npy` and `digits/mnist28x28_y.npy`.

mod common;

use common::scenes::{CANVAS, Looks, SIDE, Scenes, Spot, made, read};
use common::table::Table;
use common::{Arguments, cpu_seconds, svg};
use spikelet::rng::Rng;
use spikelet_trainer::gp::KernelName;
use spikelet_trainer::inveca::locate::{Learned, Scan, Told, candidates, plain_scan};
use spikelet_trainer::inveca::windows::Windows;
use spikelet_trainer::inveca::{Objects, Posterior};
use spikelet_trainer::{Error, Result};
use std::process::ExitCode;

const OBJECTS: usize = 16;
const COMPONENTS: usize = 20;
const SELECTED: usize = 5;
const POSITIONS: usize = 2;
/// Pivots of incomplete factors, of images and of windows.
const RANK: usize = 100;
const WINDOW_RANK: usize = 400;
const SIZE: usize = SIDE * SIDE;
/// A window for every CELL x CELL positions, and positions of each object that the scan then looks at again, a fifth of all.
const CELL: usize = 3;
const LOOKS: usize = 90;
/// Iterations that all runs begin with, by a scan: regression has nothing to learn from before objects have come apart.
const SCANS: usize = 6;
/// After which of these objects that are not used begin anew, and in how few images they are then.
const AGAIN: [usize; 2] = [1, 3];
const UNUSED: f64 = 0.05;
/// Smallest variance.
const FLOOR: f64 = 1e-4;
/// Squared error of a component, of the object's own square, up to which it shows the object.
const SHOWS: f64 = 0.1;
/// How far a component may be off the frame of the object, in pixels.
const SHIFT: i64 = 2;
/// Least visible part of an object that is asked for.
const VISIBLE: f64 = 0.25;

fn main() -> ExitCode {
    common::main(experiment)
}

/// Sizes of a run.
#[derive(Clone, Copy)]
struct Sizes {
    objects: usize,
    components: usize,
    images: usize,
    iterations: usize,
    windows: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Select {
    Scan,
    Image { told: Told, is_full: bool, every: usize },
    Windows { is_full: bool, every: usize },
}

const SELECTIONS: [(&str, Select); 10] = [
    ("scan", Select::Scan),
    ("windows, Q, T* = 5", Select::Windows { is_full: false, every: 5 }),
    ("windows, Q", Select::Windows { is_full: false, every: 1 }),
    ("windows, full, T* = 5", Select::Windows { is_full: true, every: 5 }),
    ("windows, full", Select::Windows { is_full: true, every: 1 }),
    ("image, full, T* = 5", Select::Image { told: Told::ByAll, is_full: true, every: 5 }),
    ("image, full", Select::Image { told: Told::ByAll, is_full: true, every: 1 }),
    ("image, Q, T* = 5", Select::Image { told: Told::ByAll, is_full: false, every: 5 }),
    ("image, Q", Select::Image { told: Told::ByAll, is_full: false, every: 1 }),
    ("image, others, full, T* = 5", Select::Image { told: Told::ByOthers, is_full: true, every: 5 }),
];

fn experiment(arguments: &Arguments) -> Result<()> {
    let sizes = match arguments.quick {
        true => Sizes { objects: 4, components: 5, images: 150, iterations: 10, windows: 300 },
        // A quarter of the images: minutes instead of an hour.
        false if arguments.figure.as_deref() == Some("small") => {
            Sizes { objects: OBJECTS, components: COMPONENTS, images: 500, iterations: 14, windows: 2000 }
        }
        false => {
            Sizes { objects: OBJECTS, components: COMPONENTS, images: 2000, iterations: 14, windows: 2000 }
        }
    };
    let mut rng = Rng::new(common::seed(70, 0));
    let objects = match arguments.given_path() {
        Some(folder) => read(folder, sizes.objects)?,
        None => made(sizes.objects, &mut rng),
    };
    if objects.len() < sizes.objects {
        return Err(Error::input(
            "too few pictures or digits",
            "FOLDER",
            "give one with images/ and digits/",
        ));
    }
    let seen = Scenes::new(&objects, sizes.images, &mut rng);
    let new = Scenes::new(&objects, sizes.images / 5, &mut rng);
    let first = Objects::first(&seen.images, CANVAS, SIDE, sizes.components, 0.0, &mut rng);
    println!(
        "{} objects, {} components, N = {}, {} iterations\n",
        objects.len(),
        sizes.components,
        sizes.images,
        sizes.iterations
    );
    let table = Table::new(&[
        "selection                  ",
        "objects",
        "there",
        "selected",
        "there, new",
        "selected, new",
        "evidence",
        "seconds",
        "fit",
    ]);
    for (name, select) in SELECTIONS.into_iter().skip(arguments.skip).take(arguments.rows) {
        let run = Run::new(select, &seen, first.clone(), sizes)?;
        let matches = matched(&objects, &run.objects);
        let recovered = matches.iter().flatten().count();
        let (old, fresh) = (run.accuracy(&seen, &matches, true), run.accuracy(&new, &matches, false));
        table.row(&[
            name.to_owned(),
            format!("{recovered} of {}", objects.len()),
            format!("{:.3}", old[0]),
            format!("{:.3}", old[1]),
            format!("{:.3}", fresh[0]),
            format!("{:.3}", fresh[1]),
            format!("{:.1}", run.evidence),
            format!("{:.2}", run.seconds),
            format!("{:.2}", run.fit_seconds),
        ]);
        if select == Select::Scan {
            let few = &seen.images[..CANVAS * CANVAS * 20];
            let begun = cpu_seconds();
            std::hint::black_box(plain_scan(&run.objects, few));
            let plain = (cpu_seconds() - begun) * sizes.images as f64 / 20.0;
            table.row(&["scan, plain (20 images)", "", "", "", "", "", "", &format!("{plain:.2}"), ""]);
        }
        if let (Some(path), Select::Windows { is_full: false, every: 5, .. }) = (&arguments.picture, select) {
            let drawing = picture(&objects, &run.objects, &matches);
            std::fs::write(path, drawing)
                .map_err(|e| Error::input(e, path.display(), "choose another place"))?;
        }
    }
    Ok(())
}

/// A model that was learned with one selection.
struct Run<'a> {
    select: Select,
    seen: &'a Scenes,
    objects: Objects,
    scan: Scan,
    image: Learned,
    windows: Windows,
    posteriors: Vec<Posterior>,
    is_scanning: bool,
    evidence: f64,
    seconds: f64,
    fit_seconds: f64,
}

impl<'a> Run<'a> {
    fn new(select: Select, seen: &'a Scenes, first: Objects, sizes: Sizes) -> Result<Self> {
        let mut run = Self {
            select,
            seen,
            scan: Scan::new(&first, &seen.images),
            objects: first,
            image: Learned::default(),
            windows: Windows::new(CELL),
            posteriors: Vec::new(),
            is_scanning: true,
            evidence: 0.0,
            seconds: 0.0,
            fit_seconds: 0.0,
        };
        let mut rng = Rng::new(common::seed(71, 0));
        for iteration in 0..sizes.iterations {
            let is_last = iteration + 1 == sizes.iterations;
            run.is_scanning = select == Select::Scan || iteration < SCANS;
            run.scan = Scan::new(&run.objects, &seen.images);
            let begun = cpu_seconds();
            let mut chosen: Vec<Vec<(usize, Vec<usize>)>> = (0..sizes.images)
                .map(|n| {
                    let scores = run.scores(seen, n, true);
                    candidates(&run.objects, &scores, SELECTED, POSITIONS)
                })
                .collect();
            run.seconds = cpu_seconds() - begun;
            // One at random, so that no object is lost for good.
            for (n, chosen) in chosen.iter_mut().enumerate().filter(|_| !run.is_scanning && !is_last) {
                let object =
                    ((rng.uniform::<f64>() * sizes.components as f64) as usize).min(sizes.components - 1);
                // A tenth of all that are selected.
                if rng.uniform::<f64>() < 0.1 * SELECTED as f64
                    && chosen.iter().all(|(other, _)| *other != object)
                {
                    let scores = run.scores(seen, n, true);
                    let all = candidates(&run.objects, &scores, sizes.components, POSITIONS);
                    chosen.pop();
                    chosen.extend(all.into_iter().find(|(other, _)| *other == object));
                }
            }
            let mut sums = run.objects.sums();
            run.posteriors = seen
                .images
                .chunks_exact(CANVAS * CANVAS)
                .zip(&chosen)
                .map(|(image, chosen)| run.objects.infer(image, chosen, Some(&mut sums)))
                .collect();
            run.evidence = sums.evidence / sizes.images as f64;
            if !is_last {
                run.objects.learn(&sums, FLOOR);
            }
            if AGAIN.contains(&iteration) {
                run.objects.replace_unused(&seen.images, UNUSED, &mut rng);
            }
            if iteration + 1 >= SCANS {
                run.learn(iteration + 1 - SCANS, sizes, &mut rng)?;
            }
        }
        Ok(run)
    }

    /// Regresses the posteriors, with a new kernel where it is due.
    fn learn(&mut self, iteration: usize, sizes: Sizes, rng: &mut Rng) -> Result<()> {
        let begun = cpu_seconds();
        let (objects, images) = (&self.objects, &self.seen.images);
        match self.select {
            Select::Scan => return Ok(()),
            Select::Image { is_full, every, .. } if iteration.is_multiple_of(every) => {
                let rank = if is_full { sizes.images } else { RANK };
                self.image.fit(objects, images, &self.posteriors, (KernelName::Sum, rank))?;
            }
            Select::Image { .. } => return Ok(()),
            Select::Windows { is_full, every, .. } if iteration.is_multiple_of(every) => {
                let rank = if is_full { sizes.windows } else { WINDOW_RANK.min(sizes.windows / 3) };
                let how = (KernelName::Sum, sizes.windows, rank);
                self.windows.fit(objects, images, &self.posteriors, how, rng)?;
            }
            Select::Windows { .. } => {
                self.windows.update(objects, &self.posteriors);
                return Ok(());
            }
        }
        self.fit_seconds = cpu_seconds() - begun;
        Ok(())
    }

    /// Scores of an image of these scenes; `is_seen` if it is one that was learned from.
    fn scores(&self, scenes: &Scenes, n: usize, is_seen: bool) -> Vec<f64> {
        let image = &scenes.images[n * CANVAS * CANVAS..][..CANVAS * CANVAS];
        let mut scores = match self.select {
            _ if self.is_scanning => return self.scan.scores(&self.objects, image),
            Select::Scan => return self.scan.scores(&self.objects, image),
            Select::Image { told, .. } if is_seen => {
                self.image.scores(&self.objects, &self.posteriors, n, told)
            }
            Select::Image { .. } => {
                self.image.predicted(&self.objects, &self.seen.images, &self.posteriors, image)
            }
            Select::Windows { .. } => {
                let mut scores = self.windows.scores(&self.objects, image);
                // What the regression does not know of this image but its own last posterior does.
                for (placed, probability) in self.posteriors[n].placed.iter().filter(|_| is_seen) {
                    scores[placed.object * self.objects.positions() + placed.position] += probability;
                }
                scores
            }
        };
        self.scan.look_again(&self.objects, image, &mut scores, LOOKS);
        scores
    }

    /// Shares of objects whose best position is right, and that are selected there.
    fn accuracy(&self, scenes: &Scenes, matches: &[Option<Match>], is_seen: bool) -> [f64; 2] {
        let (mut all, mut there, mut selected) = (0.0, 0.0, 0.0);
        for (n, spots) in scenes.spots.iter().enumerate() {
            let scores = self.scores(scenes, n, is_seen);
            let best = candidates(&self.objects, &scores, self.objects.count(), POSITIONS);
            let asked = spots.iter().filter(|spot| spot.visible >= VISIBLE);
            for (spot, found) in asked.map(|spot| (spot, matches[spot.object])) {
                all += 1.0;
                let Some(found) = found else { continue };
                let Some(position) = found.position(spot, self.objects.places()) else { continue };
                let Some(rank) = best.iter().position(|(object, _)| *object == found.component) else {
                    continue;
                };
                there += f64::from(u8::from(best[rank].1[0] == position));
                let is_selected = rank < SELECTED && best[rank].1.contains(&position);
                selected += f64::from(u8::from(is_selected));
            }
        }
        [there / all, selected / all]
    }
}

/// Which component shows an object, and where its frame lies relative to the object's.
#[derive(Clone, Copy)]
struct Match {
    component: usize,
    down: i64,
    right: i64,
}

impl Match {
    /// Where the component is if the object is at this spot; `None` if it would leave the image.
    fn position(&self, spot: &Spot, places: usize) -> Option<usize> {
        let (row, column) = (spot.row as i64 + self.down, spot.column as i64 + self.right);
        let fits = |at: i64| (0..places as i64).contains(&at);
        (fits(row) && fits(column)).then(|| row as usize * places + column as usize)
    }
}

/// The component that shows each object, if one does.
fn matched(truth: &[Looks], objects: &Objects) -> Vec<Option<Match>> {
    let error = |looks: &Looks, m: Match| {
        let (mut miss, mut power) = (0.0, 0.0);
        for (j, real) in looks.iter().enumerate() {
            let real = real.unwrap_or(0.0);
            let (row, column) = ((j / SIDE) as i64 - m.down, (j % SIDE) as i64 - m.right);
            let side = 0..SIDE as i64;
            let shown = match side.contains(&row) && side.contains(&column) {
                true => {
                    let at = m.component * SIZE + row as usize * SIDE + column as usize;
                    objects.masks[at] * objects.features[at]
                }
                false => 0.0,
            };
            miss += (shown - real).powi(2);
            power += real * real;
        }
        miss / power
    };
    let shifts = || (-SHIFT..=SHIFT).flat_map(|down| (-SHIFT..=SHIFT).map(move |right| (down, right)));
    let best = |looks: &Looks| {
        let all = (0..objects.count())
            .flat_map(|component| shifts().map(move |(down, right)| Match { component, down, right }));
        let (least, found) = all.map(|m| (error(looks, m), m)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (least < SHOWS).then_some(found)
    };
    truth.iter().map(best).collect()
}

/// Rows of objects, masks and what is seen of the components where the mask is above one half, each component below its object;
/// the others follow.
fn picture(truth: &[Looks], objects: &Objects, matches: &[Option<Match>]) -> String {
    let shown: Vec<Option<usize>> = matches.iter().map(|m| m.map(|m| m.component)).collect();
    let others: Vec<usize> = (0..objects.count()).filter(|k| !shown.contains(&Some(*k))).collect();
    let columns: Vec<Option<usize>> = shown.iter().copied().chain(others.iter().map(|k| Some(*k))).collect();
    let part = |component: &Option<usize>, value: &dyn Fn(usize) -> f64| -> Vec<f64> {
        component.map_or(vec![0.0; SIZE], |k| (0..SIZE).map(|j| value(k * SIZE + j)).collect())
    };
    let mut cells: Vec<Vec<f64>> = Vec::new();
    let real = |at: usize| truth.get(at).map(|looks| looks.iter().map(|v| v.unwrap_or(0.0)).collect());
    cells.extend((0..columns.len()).map(|at| real(at).unwrap_or_else(|| vec![0.0; SIZE])));
    // Each cell is scaled to its largest, so a mask that holds nowhere would look like one that does.
    cells.extend(columns.iter().map(|k| part(k, &|at| objects.masks[at])));
    let held = |at: usize| if objects.masks[at] > 0.5 { objects.features[at] } else { 0.0 };
    cells.extend(columns.iter().map(|k| part(k, &held)));
    svg::images(&cells, SIDE, columns.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four objects: regression from windows recovers and locates them about as well as a scan, also in new images; from whole
    /// images it does not in new ones.
    #[test]
    fn windows_locate_as_a_scan_does() {
        let sizes = Sizes { objects: 3, components: 3, images: 100, iterations: 8, windows: 200 };
        let mut rng = Rng::new(common::seed(72, 0));
        let objects = made(sizes.objects, &mut rng);
        let seen = Scenes::new(&objects, sizes.images, &mut rng);
        let new = Scenes::new(&objects, 50, &mut rng);
        let first = Objects::first(&seen.images, CANVAS, SIDE, sizes.components, 0.0, &mut rng);
        let found = |select: Select| {
            let run = Run::new(select, &seen, first.clone(), sizes).unwrap();
            let matches = matched(&objects, &run.objects);
            (matches.iter().flatten().count(), run.accuracy(&new, &matches, false)[0])
        };
        let (scanned, windows) = (found(Select::Scan), found(Select::Windows { is_full: false, every: 1 }));
        let image = found(Select::Image { told: Told::ByAll, is_full: true, every: 1 });
        assert!(scanned.0 == sizes.objects && windows.0 == sizes.objects, "{scanned:?} {windows:?}");
        assert!(windows.1 > 0.8 * scanned.1 && image.1 < windows.1, "{scanned:?} {windows:?} {image:?}");
    }
}
