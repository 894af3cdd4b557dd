//! A run as a file, to go on from. One run at a time has it: another with the same file is refused.

mod lock;
mod settings;

use crate::files;
use crate::train::{Points, Settings, State};
use crate::{Error, Result};
use lock::Lock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use settings::difference;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

pub(super) struct Checkpoint {
    pub path: PathBuf,
    _lock: Option<Lock>,
}

/// How every checkpoint begins.
const BEGINNING: &[u8] = b"{\"settings\":";

/// Whether there is a file with content that no training wrote to go on from.
fn is_something_else(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut start));
    read.is_ok() && path.is_file() && !start.is_empty() && start != BEGINNING
}

impl Checkpoint {
    /// The file for checkpoints, for this run alone until it is dropped.
    pub fn open(path: PathBuf) -> Result<Self> {
        if is_something_else(&path) {
            let what = "this file is no checkpoint, and one would replace it";
            return Err(Error::input(what, path.display(), "name another file for --checkpoint"));
        }
        let lock = Lock::new(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// The file of another process of this run, which reads and writes it.
    pub fn elsewhere(path: PathBuf) -> Self {
        Self { path, _lock: None }
    }

    /// Whole or not at all, so that a kill at any moment leaves the last one.
    pub fn write(&self, state: &impl Serialize) -> Result<()> {
        files::write_atomically(&self.path, |writer| {
            serde_json::to_writer(&mut *writer, state)?;
            writer.write_all(b"\n")
        })
    }

    /// `None` when there is none: a run that was stopped before its first checkpoint starts over.
    pub fn read(&self) -> Result<Option<State>> {
        let Some(state) = self.read_any::<State>()? else { return Ok(None) };
        let sound = state.starts().try_for_each(|start| start.parameters.check());
        let place = self.path.display();
        sound.map_err(|error| Error::input(error, place, "omit --resume to start over"))?;
        Ok(Some(state))
    }

    /// The same of any training; nothing in it is checked.
    pub fn read_any<S: DeserializeOwned>(&self) -> Result<Option<S>> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Error::reading(&self.path, &cause)),
            Ok(text) => text,
        };
        let place = self.path.display();
        serde_json::from_str(&text).map(Some).map_err(|cause| {
            let what = format!("not a checkpoint ({cause})");
            Error::input(what, &place, "name the right file, or leave --resume out")
        })
    }

    /// The state, if it belongs to this command; with more iterations to go, where it asks for more.
    pub fn accept(&self, mut state: State, settings: &Settings, points: &Points) -> Result<State> {
        let place = self.path.display();
        let other_data = || {
            let what = "the checkpoint was written for other data";
            Err(Error::input(
                what,
                self.path.display(),
                "give the same files, or omit --resume to start over",
            ))
        };
        // Of points with other dimensions settings follow that nobody asked for.
        if state.data.1 != points.dims() {
            return other_data();
        }
        if let Some(differs) = difference(&state.settings, settings) {
            let what = format!("the checkpoint was written with {differs}");
            return Err(Error::input(what, place, "repeat that, or omit --resume to start over"));
        }
        if settings.iterations < state.settings.iterations {
            let (before, now) = (state.settings.iterations, settings.iterations);
            let what = format!("the checkpoint was written with --iterations {before}, more than {now}");
            return Err(Error::input(
                what,
                place,
                format_args!("ask for {before} or more, or leave --resume out"),
            ));
        }
        let shape = (points.dims(), settings.latents);
        if state.data != (points.len(), points.dims())
            || state.starts().any(|start| (start.parameters.dims, start.parameters.latents) != shape)
        {
            return other_data();
        }
        state.extend(settings.iterations);
        Ok(state)
    }
}
