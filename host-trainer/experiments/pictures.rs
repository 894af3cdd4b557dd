//! Pictures without their noise, which nobody says how strong it is, by the commands as a user types them.
//!
//! White noise of standard deviation 15, 25 or 50 is added to the pixels (not rounded, not cut off). Then
//!
//! ```text
//! spikelet train --patch auto noisy.npy --out model.spk
//! spikelet denoise model.spk noisy.npy clean.npy
//! ```
//!
//! choose the size of patches and the number of latents by themselves and learn everything else from the noisy picture. How they choose was set on
//! the pictures cameraman and peppers; house and boat were not looked at for that. Rows are means over three draws of the noise, in
//! decibels, and seconds on all cores of both commands together. Beside house are figures of BM3D (Dabov et al. 2007), which is told the noise.
//!
//! ```text
//! cargo build --release -p spikelet-trainer
//! cargo run --release -p spikelet-trainer --example pictures -- FOLDER [--quick] [--skip ROWS]
//! ```
//!
//! FOLDER has cameraman256.png, peppers256.png, house256.png and boat512.png, or other pictures. All of it takes about half an hour on two cores; --quick, one small
//! cut of the first picture, some seconds.

mod common;

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
const DRAWS: usize = 3;
/// Columns and rows that are left of a picture by --quick.
const CUT: usize = 64;

/// The pictures, and what BM3D reaches on one of them at these levels.
const PICTURES: [&str; 4] = ["cameraman256", "peppers256", "house256", "boat512"];
const BM3D: (&str, [f64; 3]) = ("house256", [34.93, 32.89, 29.55]);

fn main() -> ExitCode {
    common::main(experiment)
}

fn experiment(arguments: &Arguments) -> Result<()> {
    let folder = arguments.path("name a folder of pictures, such as house256.png")?;
    let program = program()?;
    let mut paths = pictures(folder)?;
    if arguments.quick {
        paths.truncate(1);
    }
    println!(
        "PSNR in dB, mean of {DRAWS} draws of the noise, which is not told; seconds of training and inference\n"
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
    let rows = paths.iter().flat_map(|path| (0..SIGMAS.len()).map(move |level| (path, level)));
    for (path, level) in rows.skip(arguments.skip) {
        if arguments.quick && level != 1 {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut clean = Sheet::read(path, Form::Patches { width: 8, height: 8, colours: 1 })?;
        clean.kind = SheetKind::Array { colours: clean.planes.len() > 1 };
        if arguments.quick {
            clean = cut(&clean);
        }
        let draws = if arguments.quick { 1 } else { DRAWS };
        let (mut before, mut after, mut seconds) = (0.0, Vec::new(), 0.0);
        for draw in 0..draws {
            let mut noisy = clean.clone();
            let mut rng = Rng::new(common::seed(61, level * DRAWS + draw));
            noisy.planes.iter_mut().for_each(|plane| add_noise(&mut rng, plane, SIGMAS[level]));
            let begun = Instant::now();
            let result = denoised(&program, &noisy, arguments.threads())?;
            seconds += begun.elapsed().as_secs_f64() / draws as f64;
            before += psnr(&noisy, &clean) / draws as f64;
            after.push(psnr(&result, &clean));
        }
        let is_known = BM3D.0 == name && !arguments.quick;
        table.row(&[
            name,
            SIGMAS[level].to_string(),
            format!("{before:.2}"),
            format!("{:.2}", after.iter().sum::<f64>() / after.len() as f64),
            format!("{:.2}", after.iter().copied().fold(f64::INFINITY, f64::min)),
            format!("{:.2}", after.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            if is_known { format!("{:.2}", BM3D.1[level]) } else { "-".into() },
            format!("{seconds:.0}"),
        ]);
    }
    Ok(())
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

/// What the two commands make of a picture.
fn denoised(program: &Path, noisy: &Sheet, threads: usize) -> Result<Sheet> {
    let folder = std::env::temp_dir().join(format!("spikelet-pictures-{}", std::process::id()));
    let fail = |cause: std::io::Error| Error::run(cause, folder.display(), "make room for a few megabytes");
    std::fs::create_dir_all(&folder).map_err(fail)?;
    noisy.write(folder.join("noisy.npy"))?;
    let threads = threads.to_string();
    let train = ["train", "--patch", "auto", "noisy.npy", "--out", "model.spk", "--threads", &threads];
    let denoise = ["denoise", "model.spk", "noisy.npy", "clean.npy", "--threads", &threads];
    for arguments in [&train[..], &denoise[..]] {
        let output = Command::new(program).args(arguments).current_dir(&folder).output().map_err(fail)?;
        if !output.status.success() {
            let what = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::run(what, arguments.join(" "), "run it by hand"));
        }
    }
    let result = Sheet::read(folder.join("clean.npy"), Form::Patches { width: 8, height: 8, colours: 1 })?;
    std::fs::remove_dir_all(&folder).map_err(fail)?;
    Ok(result)
}
