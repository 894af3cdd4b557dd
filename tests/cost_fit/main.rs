//! Fits what `spikelet inspect` predicts to firmware under an emulator, and holds it against shapes that were not
//! fitted. `tests/cost --fit` and `tests/cost --predict` call it:
//!
//! ```text
//! cost-fit models FOLDER fit|check NAME...   writes blobs and samples, prints the path of each blob
//! cost-fit fit FOLDER NAME...                reads FOLDER/CORE.{costs,footprints} and NAME.CORE.text, prints table.rs of predict
//! cost-fit check FOLDER NAME...              reads FOLDER/CORE.costs, prints errors, fails if one is too large
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | `family` | what a NAME stands for: `gsc`, `gsc-i16-fixed`, `gsc-table`, `ssmca-i8-gibbs` |
//! | `shapes` | which shapes are fitted, and which predicted |
//! | `models` | random models of these shapes, and their samples |
//! | `measured` | what was counted in firmware |
//! | `fit` | the table of weights |
//! | `least_squares` | weights from counts and instructions |
//! | `check` | predictions against what was counted |

mod check;
mod family;
mod fit;
mod least_squares;
mod measured;
mod models;
mod shapes;

use family::Family;
use shapes::Purpose;
use std::path::Path;
use std::{env, process};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let families = |names: &[&str]| names.iter().map(|name| Family::parse(name)).collect::<Vec<_>>();
    match words[..] {
        ["models", folder, purpose, ref names @ ..] => {
            let purpose = if purpose == "fit" { Purpose::Fit } else { Purpose::Check };
            families(names).iter().for_each(|family| models::write(Path::new(folder), family, purpose));
        }
        ["fit", folder, ref names @ ..] => print!("{}", fit::table(Path::new(folder), &families(names))),
        ["check", folder, ref names @ ..] => {
            if !check::check(Path::new(folder), &families(names)) {
                process::exit(1);
            }
        }
        _ => panic!("see the top of tests/cost_fit/main.rs"),
    }
}
