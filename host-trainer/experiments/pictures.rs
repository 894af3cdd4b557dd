//! Pictures without their noise, and without their holes, by the commands as a user types them.
//!
//! White noise of standard deviation 15, 25 or 50 is added to the pixels (not rounded, not cut off), and how strong it is nobody says. Then
//!
//! ```text
//! spikelet train --patch auto noisy.npy --out model.spk
//! spikelet denoise model.spk noisy.npy clean.npy
//! ```
//!
//! choose the size of patches and the number of latents by themselves and learn everything else from the noisy picture. How they
//! choose was set on the pictures cameraman and peppers; boat was not looked at for that, house was with a prototype: its rows
//! are not held out. Rows are means over three draws of the noise, in decibels, and seconds on all cores of both commands
//! together.
//!
//! Then half of the pixels, or four of five, are missing:
//!
//! ```text
//! spikelet train --patch auto picture.npy --mask mask.npy --out model.spk
//! spikelet denoise model.spk picture.npy clean.npy --mask mask.npy --fill-only
//! ```
//!
//! `--peers` runs other methods on the same files, by `python/pictures_peers.py`: BM3D, which is told the noise; biharmonic
//! inpainting and matching pursuit.
//!
//! ```text
//! cargo build --release -p spikelet-trainer
//! cargo run --release -p spikelet-trainer --example pictures -- FOLDER [--quick] [--draws 1] [--peers] [--skip ROWS]
//! ```
//!
//! FOLDER has cameraman256.png, peppers256.png, house256.png and boat512.png, or PATH is one picture. All of it takes about half
//! an hour on two idle cores (by the seconds of single rows); --quick, one small cut of the first picture, some seconds.

pub(crate) mod common;

use common::Arguments;
use common::mixtures::add_noise;
use common::table::Table;
use spikelet::frame::Form;
use spikelet::rng::Rng;
use spikelet_trainer::data::{Sheet, SheetKind};
use spikelet_trainer::metrics::psnr_db;
use spikelet_trainer::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const SIGMAS: [f64; 3] = [15.0, 25.0, 50.0];
const MISSING: [f64; 2] = [0.5, 0.8];
const DRAWS: usize = 3;
/// Columns and rows that are left of a picture by --quick.
const CUT: usize = 64;
const PICTURES: [&str; 4] = ["cameraman256", "peppers256", "house256", "boat512"];

#[allow(dead_code)] // a test runs the experiment without it
fn main() -> ExitCode {
    common::main(experiment)
}

/// Both tables.
pub(crate) fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder of pictures, such as house256.png")?;
    let mut paths = pictures(folder)?;
    if arguments.quick {
        paths.truncate(1);
    }
    let bench = Bench { arguments, program: program()?, folder: Folder::new()? };
    let levels = if arguments.quick { 1..2 } else { 0..SIGMAS.len() };
    let rows: Vec<_> = paths.iter().flat_map(|path| levels.clone().map(move |level| (path, level))).collect();
    let draws = bench.draws();
    println!(
        "PSNR in dB, mean over {draws} draws of the noise, which is not told; seconds of training and inference\n"
    );
    let table = Table::new(&[
        "picture     ",
        "sigma",
        "noisy",
        "PSNR",
        "least",
        "most",
        "BM3D, told sigma",
        "seconds",
    ]);
    for &(path, level) in rows.iter().skip(arguments.skip) {
        table.row(&bench.noise(path, level)?);
    }
    println!("\nThe same with missing pixels, and without noise\n");
    let table = Table::new(&["picture     ", "missing", "PSNR", "biharmonic", "matching pursuit", "seconds"]);
    let levels = if arguments.quick { 0..1 } else { 0..MISSING.len() };
    let holes: Vec<_> =
        paths.iter().flat_map(|path| levels.clone().map(move |level| (path, level))).collect();
    for &(path, level) in holes.iter().skip(arguments.skip.saturating_sub(rows.len())) {
        table.row(&bench.holes(path, level)?);
    }
    Ok(())
}

/// What rows are made with.
struct Bench<'a> {
    arguments: &'a Arguments,
    program: PathBuf,
    folder: Folder,
}

impl Bench<'_> {
    fn draws(&self) -> usize {
        let by_default = if self.arguments.quick { 1 } else { DRAWS };
        self.arguments.draws.map_or(by_default, usize::from)
    }

    fn noise(&self, path: &Path, level: usize) -> Result<Vec<String>> {
        let (name, clean) = self.clean(path)?;
        let draws = self.draws();
        let (mut before, mut after, mut peer, mut seconds) = (0.0, Vec::new(), Vec::new(), 0.0);
        for draw in 0..draws {
            let mut noisy = clean.clone();
            let mut rng = Rng::new(common::seed(61, level * 100 + draw));
            noisy.planes.iter_mut().for_each(|plane| add_noise(&mut rng, plane, SIGMAS[level]));
            noisy.write(self.folder.file("picture.npy"))?;
            let begun = Instant::now();
            let result = self.result(&[], &[])?;
            seconds += begun.elapsed().as_secs_f64() / draws as f64;
            before += psnr(&noisy, &clean) / draws as f64;
            after.push(psnr(&result, &clean));
            peer.extend(self.peers(&["noise"], &SIGMAS[level].to_string(), &["bm3d"])?);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Ok(vec![
            name,
            SIGMAS[level].to_string(),
            format!("{before:.2}"),
            format!("{:.2}", mean(&after)),
            format!("{:.2}", after.iter().copied().fold(f64::INFINITY, f64::min)),
            format!("{:.2}", after.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            if peer.is_empty() { "-".into() } else { format!("{:.2}", mean(&peer)) },
            format!("{seconds:.0}"),
        ])
    }

    fn holes(&self, path: &Path, level: usize) -> Result<Vec<String>> {
        let (name, clean) = self.clean(path)?;
        let mut mask = Sheet { planes: clean.planes[..1].to_vec(), ..clean.clone() };
        mask.kind = SheetKind::Array { colours: false };
        let mut rng = Rng::new(common::seed(62, level));
        mask.planes[0]
            .iter_mut()
            .for_each(|m| *m = f64::from(u8::from(rng.uniform::<f64>() < MISSING[level])));
        let mut punched = clean.clone();
        for plane in &mut punched.planes {
            plane.iter_mut().zip(&mask.planes[0]).for_each(|(value, missing)| *value *= 1.0 - missing);
        }
        punched.write(self.folder.file("picture.npy"))?;
        mask.write(self.folder.file("mask.npy"))?;
        let begun = Instant::now();
        let result = self.result(&["--mask", "mask.npy"], &["--mask", "mask.npy", "--fill-only"])?;
        let seconds = begun.elapsed().as_secs_f64();
        let others = self.peers(&["holes"], "mask.npy", &["biharmonic", "pursuit"])?;
        let other = |at: usize| others.get(at).map_or("-".into(), |value| format!("{value:.2}"));
        let figures = [format!("{:.0} %", 100.0 * MISSING[level]), format!("{:.2}", psnr(&result, &clean))];
        Ok([name].into_iter().chain(figures).chain([other(0), other(1), format!("{seconds:.0}")]).collect())
    }

    /// The name of a picture, and the picture, which is left in the folder.
    fn clean(&self, path: &Path) -> Result<(String, Sheet)> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut clean = Sheet::read(path, Form::Patches { width: 8, height: 8, colours: 1 })?;
        clean.kind = SheetKind::Array { colours: clean.planes.len() > 1 };
        let clean = if self.arguments.quick { cut(&clean) } else { clean };
        clean.write(self.folder.file("clean.npy"))?;
        Ok((name, clean))
    }

    /// What the two commands make of the picture, with these flags more.
    fn result(&self, train: &[&str], denoise: &[&str]) -> Result<Sheet> {
        let threads = self.arguments.threads().to_string();
        let threads = ["--threads", threads.as_str()];
        let first = ["train", "--patch", "auto", "picture.npy", "--out", "model.spk"];
        let second = ["denoise", "model.spk", "picture.npy", "result.npy"];
        for words in [[&first, train, &threads].concat(), [&second, denoise, &threads].concat()] {
            self.folder.run(Command::new(&self.program).args(&words), &words.join(" "))?;
        }
        Sheet::read(self.folder.file("result.npy"), Form::Patches { width: 8, height: 8, colours: 1 })
    }

    /// These figures of other methods; none without --peers.
    fn peers(&self, words: &[&str], last: &str, names: &[&str]) -> Result<Vec<f64>> {
        if !self.arguments.peers {
            return Ok(Vec::new());
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/python/pictures_peers.py");
        let mut command = Command::new("python3");
        command.arg(script).args(words).args(["picture.npy", "clean.npy", last]);
        let text = self.folder.run(&mut command, "pictures_peers.py")?;
        let broken = |what: &str| Error::run(what, "pictures_peers.py", "run it by hand");
        let json: serde_json::Value = serde_json::from_str(&text).map_err(|_| broken("no JSON"))?;
        names.iter().map(|name| json[name].as_f64().ok_or_else(|| broken("a figure lacks"))).collect()
    }
}

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("spikelet-pictures-{}", std::process::id()));
        let fail = |cause| Error::run(cause, path.display(), "make room for a few megabytes");
        std::fs::create_dir_all(&path).map_err(fail)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What a command prints.
    fn run(&self, command: &mut Command, name: &str) -> Result<String> {
        let fail = |cause: std::io::Error| Error::run(cause, name, "run it by hand");
        let output = command.current_dir(&self.0).output().map_err(fail)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(Error::run(String::from_utf8_lossy(&output.stderr), name, "run it by hand")),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it lies among other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command, beside this experiment's folder.
fn program() -> Result<PathBuf> {
    let own =
        std::env::current_exe().map_err(|cause| Error::run(cause, "this program", "start it by its path"))?;
    let program = own.ancestors().skip(2).map(|folder| folder.join("spikelet")).find(|path| path.exists());
    program.ok_or_else(|| {
        let advice =
            "build it as this experiment was, for instance by cargo build --release -p spikelet-trainer";
        Error::input("there is no command", own.display(), advice)
    })
}

/// The pictures of a folder, by name; or the one that was named.
fn pictures(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.is_file() {
        return Ok(vec![folder.to_path_buf()]);
    }
    let known = PICTURES.iter().map(|name| folder.join(format!("{name}.png")));
    let found: Vec<PathBuf> = known.filter(|path| path.exists()).collect();
    if found.is_empty() {
        let advice = "name a picture, or a folder with house256.png";
        return Err(Error::input("there is no picture that is known", folder.display(), advice));
    }
    Ok(found)
}

/// The middle of a picture.
fn cut(picture: &Sheet) -> Sheet {
    let (width, height) = (picture.width.min(CUT), picture.height.min(CUT));
    let (left, top) = ((picture.width - width) / 2, (picture.height - height) / 2);
    let row = |plane: &[f64], y: usize| plane[(top + y) * picture.width + left..][..width].to_vec();
    let plane = |plane: &Vec<f64>| (0..height).flat_map(|y| row(plane, y)).collect();
    Sheet { width, height, planes: picture.planes.iter().map(plane).collect(), ..picture.clone() }
}

fn psnr(picture: &Sheet, clean: &Sheet) -> f64 {
    psnr_db(255.0, picture.mean_square_error(clean)).unwrap_or(f64::INFINITY)
}
