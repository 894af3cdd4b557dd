//! The one error of the command: what is wrong, where, and what to do about it.
//!
//! In comes the context of a failure, out goes one line of text (the command puts `error: ` before it) and an exit status: 2 when
//! the user gave something wrong, 1 when the work itself failed, 130 when it was interrupted. There are no conversions from other
//! errors, because each of them would lose the place.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Bad usage or bad input: exit status 2.
    Input,
    /// A failure while running: exit status 1.
    Run,
    /// Stopped by the user or the system: exit status 130, as shells have it for Ctrl-C.
    Interrupted,
}

/// Why a command stopped. Prints as `what is wrong: where: what to do`, on one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{what}: {place}: {advice}")]
pub struct Error {
    kind: Kind,
    what: String,
    place: String,
    advice: String,
}

impl Error {
    /// Bad usage or input: the command ends with status 2.
    ///
    /// ```
    /// let error = spikelet_trainer::Error::input("not a number", "a.csv, line 3", "correct the cell");
    /// assert_eq!(error.to_string(), "not a number: a.csv, line 3: correct the cell");
    /// assert_eq!(error.exit_code(), 2);
    /// ```
    pub fn input(what: impl Display, place: impl Display, advice: impl Display) -> Self {
        Self::new(Kind::Input, what, place, advice)
    }

    /// A failure while running: the command ends with status 1.
    ///
    /// ```
    /// let error = spikelet_trainer::Error::run("the disk is full", "model.spk", "free some space");
    /// assert_eq!(error.exit_code(), 1);
    /// ```
    pub fn run(what: impl Display, place: impl Display, advice: impl Display) -> Self {
        Self::new(Kind::Run, what, place, advice)
    }

    /// Stopped on demand: the command ends with status 130.
    ///
    /// ```
    /// let error = spikelet_trainer::Error::interrupted("stopped", "iteration 3", "use --resume to go on");
    /// assert_eq!(error.exit_code(), 130);
    /// ```
    pub fn interrupted(what: impl Display, place: impl Display, advice: impl Display) -> Self {
        Self::new(Kind::Interrupted, what, place, advice)
    }

    fn new(kind: Kind, what: impl Display, place: impl Display, advice: impl Display) -> Self {
        let line = |part: &dyn Display| one_line(&part.to_string());
        Self { kind, what: line(&what), place: line(&place), advice: line(&advice) }
    }

    /// The system refused to read `path`. A name that leads nowhere is the user's to correct; the rest happened to us.
    pub fn reading(path: &Path, cause: &io::Error) -> Self {
        let place = path.display();
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::input("there is no such file", place, "check the name")
            }
            io::ErrorKind::PermissionDenied => {
                Self::input("the file may not be read", place, "change its permissions or name another file")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
                Self::input(format_args!("this cannot be a file name ({cause})"), place, "check the name")
            }
            io::ErrorKind::UnexpectedEof => Self::run(
                "the file became shorter while it was read",
                place,
                "let the program that writes it finish first",
            ),
            _ => Self::run(
                format_args!("the file cannot be read ({cause})"),
                place,
                "check the disk and try again",
            ),
        }
    }

    /// The system refused to write `path`.
    pub fn writing(path: &Path, cause: &io::Error) -> Self {
        let place = path.display();
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::input("the folder does not exist", place, "create it or name another place")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
                Self::input(format_args!("this cannot be a file name ({cause})"), place, "name another file")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::run(
                "the folder may not be written to",
                place,
                "change its permissions or name another place",
            ),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::run("the disk is full", place, "free some space or name another place")
            }
            _ => Self::run(
                format_args!("the file cannot be written ({cause})"),
                place,
                "check the disk and try again",
            ),
        }
    }

    /// Whether the user or the run is at fault.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Exit status of the command: 2 for bad usage or input, 1 for a failure while running, 130 when interrupted.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Input => 2,
            Kind::Run => 1,
            Kind::Interrupted => 130,
        }
    }
}

/// Lets an `Error` pass through code that speaks `io::Error`; what writes the file takes it out again unchanged.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}

impl Error {
    /// The `Error` an `io::Error` carries, or else what `context` makes of it.
    pub(crate) fn from_io(cause: io::Error, context: impl FnOnce(&io::Error) -> Self) -> Self {
        cause.downcast::<Self>().unwrap_or_else(|cause| context(&cause))
    }
}

/// File names and cells are the user's text: a control character in one must not break the message or the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_three_parts_on_one_line() {
        let error = Error::input("bad\nthing", "a\u{1b}[31m.npy", "stop");
        assert_eq!(error.to_string(), "bad?thing: a?[31m.npy: stop");
    }

    #[test]
    fn a_wrong_name_is_the_users_and_a_full_disk_is_not() {
        let path = Path::new("x.npy");
        assert_eq!(Error::reading(path, &io::ErrorKind::NotFound.into()).exit_code(), 2);
        assert_eq!(Error::reading(path, &io::ErrorKind::UnexpectedEof.into()).exit_code(), 1);
        assert_eq!(Error::writing(path, &io::ErrorKind::NotFound.into()).exit_code(), 2);
        let full = Error::writing(path, &io::ErrorKind::StorageFull.into());
        assert_eq!(full.to_string(), "the disk is full: x.npy: free some space or name another place");
        assert_eq!(full.exit_code(), 1);
    }

    #[test]
    fn survives_the_way_through_io() {
        let error = Error::run("a", "b", "c");
        let back = Error::from_io(error.clone().into(), |_| unreachable!());
        assert_eq!(back, error);
    }
}
