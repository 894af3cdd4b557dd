//! A lock beside a checkpoint, held while a run lasts.
//!
//! The checkpoint itself cannot be locked: every new one replaces the file. The system lets go of the lock when the process
//! ends in any way, so a lock file that was left behind does no harm.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The lock of a checkpoint, let go and removed when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// `None` where the file system has no locks or lets no file be created there, which is told when a checkpoint is written.
    pub fn new(checkpoint: &Path) -> Result<Option<Self>> {
        let mut name = checkpoint.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
            let Ok(file) = opened else { return Ok(None) };
            match file.try_lock() {
                // Whoever had it before may have removed the file since it was opened.
                Ok(()) if is_at(&file, &path) => return Ok(Some(Self { path, _file: file })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let what = "another training is using this checkpoint";
                    let advice = "wait until it ends, or give this one a file of its own with --checkpoint";
                    return Err(Error::input(what, checkpoint.display(), advice));
                }
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock goes with the file, so that nobody can hold a lock on a file without a name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Elsewhere a file that is open keeps its name.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let first = Lock::new(&path).unwrap();
        assert!(first.is_some());
        let refused = Lock::new(&path).unwrap_err();
        assert!(refused.exit_code() == 2 && refused.to_string().starts_with("another training"), "{refused}");
        drop(first);
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
        assert!(Lock::new(&path).unwrap().is_some());
        // Where no file can be created, none is needed either.
        assert!(Lock::new(&folder.path().join("missing/c")).unwrap().is_none());
    }
}
