//! How far a long job is: a bar on a terminal, else a line every few seconds.
//!
//! The bar is one row at 60 columns too. Where steps of a job take long, a watcher says what goes on within one: it is asked
//! every second on a terminal, and for a line whenever there was none for a while.

use super::{is_silent, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Time between looks at what goes on within a step.
const TICK: Duration = Duration::from_secs(1);

/// How far a job is.
#[derive(Debug)]
pub(in crate::commands) struct Progress {
    bar: ProgressBar,
    lines: Arc<Mutex<Lines>>,
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What is written where there is no terminal.
#[derive(Debug)]
struct Lines {
    what: &'static str,
    total: usize,
    done: usize,
    last: Instant,
    note: Option<String>,
}

impl Progress {
    pub fn new(what: &'static str, total: usize) -> Self {
        let target = if io::stderr().is_terminal() && !is_silent() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        // The message is cut to what the rest leaves of the row.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg} {bar:10} {percent:>3}% eta {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let lines = Lines { what, total, done: 0, last: Instant::now(), note: None };
        Self { bar, lines: Arc::new(Mutex::new(lines)), watcher: None }
    }

    /// What came of the last step: beside the bar, or in the next line.
    pub fn note(&mut self, short: String, line: String) {
        self.bar.set_message(short);
        locked(&self.lines).note = Some(line);
    }

    pub fn advance(&mut self, count: usize) {
        self.bar.inc(count as u64);
        let mut lines = locked(&self.lines);
        lines.done += count;
        if self.bar.is_hidden() && lines.last.elapsed() >= LINE_INTERVAL {
            let note = lines.note.take();
            lines.write(note);
        }
    }

    /// Asks `inside` what goes on within a step, until this is dropped; nothing is shown while it has nothing to say.
    pub fn watch(&mut self, inside: impl Fn() -> Option<String> + Send + 'static) {
        let (end, ended) = mpsc::channel();
        let (bar, lines) = (self.bar.clone(), Arc::clone(&self.lines));
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
                let Some(text) = inside() else { continue };
                if !bar.is_hidden() {
                    bar.set_message(text);
                    bar.tick();
                    continue;
                }
                let mut lines = locked(&lines);
                if lines.last.elapsed() >= LINE_INTERVAL {
                    lines.write(Some(text));
                }
            }
        };
        self.watcher = Some((end, std::thread::spawn(watch)));
    }

    /// Writes a line at once, above the bar if there is one.
    pub fn announcer(&self) -> impl Fn(&str) + Send + 'static {
        let bar = self.bar.clone();
        move |text| {
            if bar.is_hidden() {
                say(text);
            } else {
                bar.println(text);
            }
        }
    }
}

impl Lines {
    fn write(&mut self, note: Option<String>) {
        self.last = Instant::now();
        let percent = 100.0 * self.done as f64 / self.total.max(1) as f64;
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        say(format_args!("{}: {} of {} ({percent:.0}%){note}", self.what, self.done, self.total));
    }
}

/// A panic elsewhere is told elsewhere.
fn locked(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, watcher)) = self.watcher.take() {
            drop(end);
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
    }
}
