//! Results are written whole or not at all.
//!
//! In come a path and a closure that writes, out comes the file, complete, under its name; a reader never sees half of
//! it, and a failure leaves what was there before. The bytes go to a temporary file in the same folder (renaming
//! across file systems would copy), reach the disk, and take the name last.
//!
//! Fails when the folder is missing, the target is a folder or marked read-only, the disk is full, or the closure fails.
//! In all these cases the temporary file is gone. Devices and pipes (`/dev/stdout`) cannot be replaced and are written
//! to directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// What the closure writes to: buffered, and able to seek where the target is a real file.
pub type Writer = BufWriter<File>;

/// Writes `path` through `write`, whole or not at all.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("answer.txt");
/// use std::io::Write;
/// spikelet_trainer::files::write_atomically(&path, |writer| writeln!(writer, "42")).unwrap();
/// assert_eq!(std::fs::read(&path).unwrap(), b"42\n");
/// ```
pub fn write_atomically(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut Writer) -> io::Result<()>,
) -> Result<()> {
    Staged::write(path, write)?.commit()
}

/// A file that is complete on disk but does not have its name yet. Dropping it removes it.
///
/// A command with several results stages all of them and then commits all of them, so that a failure in the last one
/// leaves none.
#[derive(Debug)]
#[must_use = "a staged file takes its name only when committed"]
pub struct Staged {
    target: PathBuf,
    /// `None` once renamed, and for devices, which are written to directly.
    temporary: Option<PathBuf>,
}

impl Staged {
    /// Writes everything beside `path`. Call [`commit`](Self::commit) to give it its name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.bin");
    /// use std::io::Write;
    /// let staged = spikelet_trainer::files::Staged::write(&path, |writer| writer.write_all(&[1, 2])).unwrap();
    /// assert!(!path.exists());
    /// staged.commit().unwrap();
    /// assert_eq!(std::fs::read(&path).unwrap(), [1, 2]);
    /// ```
    pub fn write(path: impl AsRef<Path>, write: impl FnOnce(&mut Writer) -> io::Result<()>) -> Result<Self> {
        let path = path.as_ref();
        let (target, existing) = check(path)?;
        let fail = |cause| Error::from_io(cause, |cause| Error::writing(path, cause));
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let device = OpenOptions::new().write(true).open(&target).map_err(fail)?;
            fill(device, write).map_err(fail)?;
            return Ok(Self { target, temporary: None });
        }
        let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let (temporary, file) =
            create_beside(&target).map_err(|cause| refused_beside(path, folder, &cause))?;
        let staged = Self { target, temporary: Some(temporary) };
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions()).map_err(fail)?;
        }
        let file = fill(file, write).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        Ok(staged)
    }

    /// Gives the file its name, replacing what had it.
    pub fn commit(mut self) -> Result<()> {
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.target).map_err(|cause| Error::writing(&self.target, &cause))?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done about a failure here, and the reason we came here is already on its way.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Refuses what [`write_atomically`] would refuse by the look of the path: hours of work should not end at a missing
/// folder. The disk may still fill up later.
pub fn check_target(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let (target, existing) = check(path)?;
    if existing.is_none() {
        let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        match fs::metadata(folder) {
            // Some folders cannot be written to although nothing about them says so.
            Ok(metadata) if metadata.is_dir() => {
                let (temporary, file) =
                    create_beside(&target).map_err(|cause| refused_beside(path, folder, &cause))?;
                drop(file);
                let _ = fs::remove_file(temporary);
            }
            Ok(_) => return Err(Error::writing(path, &io::ErrorKind::NotADirectory.into())),
            Err(cause) => return Err(Error::writing(path, &cause)),
        }
    }
    Ok(())
}

/// The file behind `path`, and what is there already.
fn check(path: &Path) -> Result<(PathBuf, Option<fs::Metadata>)> {
    // Through a symbolic link, the file it leads to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(fs::Metadata::is_dir) || target.file_name().is_none() {
        return Err(Error::input("a folder is in the way of the file", path.display(), "name a file"));
    }
    // Renaming would get past the mark, but whoever set it did not want that. Devices have their own rules.
    if existing.as_ref().is_some_and(|metadata| metadata.is_file() && metadata.permissions().readonly()) {
        return Err(Error::input(
            "the file is read-only",
            path.display(),
            "make it writable or name another file",
        ));
    }
    Ok((target, existing))
}

/// Creates a folder and those above it; one that exists is fine.
pub fn create_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    match fs::create_dir_all(path) {
        Ok(()) => Ok(()),
        Err(_) if fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir()) => {
            Err(Error::input("a file is in the way of the folder", path.display(), "name another folder"))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::input("part of the path is a file", path.display(), "name another folder"))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Err(Error::input("no folder can be made here", path.display(), "name another place"))
        }
        Err(cause) => Err(Error::writing(path, &cause)),
    }
}

fn fill(file: File, write: impl FnOnce(&mut Writer) -> io::Result<()>) -> io::Result<File> {
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    writer.flush()?;
    // Empty after the flush, so this cannot fail any more.
    writer.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A new file with a name nobody uses: process number and counter. The target's name is no part of it, because a long
/// one would become too long.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = target.with_file_name(format!(".spikelet-{}-{number}.tmp", process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Left by a process that was killed and had our number.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// No file can be made in the folder of `path`.
fn refused_beside(path: &Path, folder: &Path, cause: &io::Error) -> Error {
    // What the system says of /proc.
    if cause.kind() == io::ErrorKind::NotFound && folder.is_dir() {
        return Error::input("no files can be made in this folder", path.display(), "name another place");
    }
    Error::writing(path, cause)
}

/// What follows the last dot of a name, in small letters.
pub fn ending(path: &Path) -> Option<String> {
    path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests;
