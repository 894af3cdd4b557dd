//! What commands write: lines on stdout, progress on stderr, folders of results.

mod progress;

use crate::data::file_of;
use crate::files::{self, Staged, Writer};
use crate::{Error, Result};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

pub(super) use progress::Progress;

/// Whether another process speaks for this one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is said: of processes that work together one speaks.
pub(super) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether this process says nothing.
pub(super) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// Text to stdout. A reader that has gone away (`spikelet inspect m.spk | head -1`) is not a failure.
pub(super) fn print(text: &str) -> Result<()> {
    if is_silent() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(Error::run(
            format_args!("the output cannot be written ({cause})"),
            "stdout",
            "check where it goes",
        )),
        _ => Ok(()),
    }
}

/// `1 point`, `2 points`.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A line on stderr about what may not be meant. It is said once, also where several parts of a command find it.
pub(super) fn warn(text: impl std::fmt::Display) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let line = format!("warning: {text}");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&line) {
        say(&line);
        said.push(line);
    }
}

/// A line on stderr about what was chosen for the user.
pub(super) fn note(text: impl std::fmt::Display) {
    say(format_args!("note: {text}"));
}

/// A line on stderr.
pub(super) fn say(text: impl std::fmt::Display) {
    if !is_silent() {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Text of a model's maker, without what would move the cursor, end a line or turn the writing direction: these do
/// harm in terminals and in the comments of source files.
pub(super) fn printable(text: &str) -> String {
    let harmful = |c: char| {
        let formatting = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
        c.is_control() || formatting
    };
    text.chars().map(|c| if harmful(c) { ' ' } else { c }).collect()
}

/// Whether two paths lead to one file, which need not exist yet.
pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    let resolved = |path: &Path| {
        fs::canonicalize(path).or_else(|cause| {
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let folder = fs::canonicalize(folder)?;
            path.file_name().map(|name| folder.join(name)).ok_or(cause)
        })
    };
    match (resolved(a), resolved(b)) {
        (Ok(a), Ok(b)) => a == b,
        // Both in a folder that is still to be created.
        _ => a == b,
    }
}

/// Refuses a result that would replace what it is made from.
pub(super) fn refuse_overwriting(out: &Path, inputs: &[impl AsRef<Path>]) -> Result<()> {
    if inputs.iter().any(|input| same_file(out, &file_of(input.as_ref()))) {
        let what = "the result would replace a file it is made from";
        return Err(Error::input(what, out.display(), "name another file"));
    }
    Ok(())
}

/// Refuses a result that is called as the description of a model: it could replace one, and no command would take it for a model.
pub(super) fn refuse_description(out: &Path, ending: &str) -> Result<()> {
    if files::ending(out).as_deref() == Some("json") {
        let advice = format!("name it {}", out.with_extension(ending).display());
        return Err(Error::input(
            "names in .json are for descriptions, which `spikelet train` writes",
            out.display(),
            advice,
        ));
    }
    Ok(())
}

/// A folder for results. It is created now, and removed again when nothing came of it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// What did not exist before, the innermost first.
    created: Vec<PathBuf>,
}

impl Folder {
    pub fn create(path: &Path) -> Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let created = path.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        let folder = Self { path: path.to_path_buf(), created };
        files::create_dir(path)?;
        Ok(folder)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens all of `names` at once, lets `write` fill them (in their order), and gives them their names when it is
    /// done: all of them or none.
    pub fn write_together(
        &self,
        names: &[&str],
        write: impl FnOnce(&mut [&mut Writer]) -> Result<()>,
    ) -> Result<()> {
        let paths: Vec<_> = names.iter().map(|name| self.file(name)).collect();
        paths.iter().try_for_each(files::check_target)?;
        let mut staged = Vec::new();
        stage(&paths, Vec::new(), Box::new(write), &mut staged)?;
        staged.into_iter().try_for_each(Staged::commit)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in &self.created {
            // Fails, as it should, when there are results in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes to all files of a group.
type Fill<'f> = Box<dyn FnOnce(&mut [&mut Writer]) -> Result<()> + 'f>;

/// Each file is written through a closure, so several at once are opened inside one another.
fn stage(
    paths: &[PathBuf],
    outer: Vec<&mut Writer>,
    write: Fill<'_>,
    staged: &mut Vec<Staged>,
) -> Result<()> {
    let Some((path, rest)) = paths.split_first() else {
        let mut writers = outer;
        return write(&mut writers);
    };
    let file = Staged::write(path, |writer| {
        let mut writers = outer;
        writers.push(writer);
        Ok(stage(rest, writers, write, staged)?)
    })?;
    staged.push(file);
    Ok(())
}
