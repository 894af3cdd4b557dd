//! What an earlier run left in a folder: listed there, so that a run with fewer sources does not leave the others among its own.
//!
//! The list has a line for every file: its length, a checksum of its bytes, and its name. Only a file that is still just that
//! is removed.

use crate::commands::output::{same_file, warn};
use crate::{Result, files};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The list. Its name hides it from players that open a folder.
const LIST: &str = ".spikelet-separate";

/// Files of an earlier run.
#[derive(Debug)]
pub(super) struct Earlier {
    folder: PathBuf,
    files: Vec<(u64, u64, String)>,
}

impl Earlier {
    /// None where there is no list, or one that nobody can read.
    pub fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
        let file = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let length = parts.next()?.parse().ok()?;
            let checksum = u64::from_str_radix(parts.next()?, 16).ok()?;
            let name = parts.next()?;
            // Names as this command gives them, and none that leads elsewhere.
            let plain = name.ends_with(".wav") && !name.contains(['/', '\\', ':']);
            plain.then(|| (length, checksum, name.to_owned()))
        };
        Self { folder: folder.to_path_buf(), files: text.lines().filter_map(file).collect() }
    }

    /// Removes those that are still as they were written, are not among `names`, and are nothing that was read.
    pub fn clear(&self, names: &[String], inputs: &[&PathBuf]) {
        for (length, checksum, name) in &self.files {
            let path = self.folder.join(name);
            let is_kept = names.iter().any(|other| other.eq_ignore_ascii_case(name))
                || inputs.iter().any(|input| same_file(&path, input));
            let is_file =
                fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() == *length);
            if is_kept || !is_file {
                continue;
            }
            let same = fs::read(&path).is_ok_and(|bytes| sum(&bytes) == *checksum);
            if !same || fs::remove_file(&path).is_err() {
                warn(format_args!("{}: left from an earlier run, and changed since", path.display()));
            }
        }
    }

    /// Lists what was written now.
    pub fn record(folder: &Path, names: &[String]) -> Result<()> {
        files::write_atomically(folder.join(LIST), |writer| {
            for name in names {
                let bytes = fs::read(folder.join(name))?;
                writeln!(writer, "{} {:016x} {name}", bytes.len(), sum(&bytes))?;
            }
            Ok(())
        })
    }
}

/// FNV-1a: tells a file that was edited from one that was not.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
