//! What goes on within an iteration that takes long.

use super::report::place;
use crate::train::{Points, State};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Iterations that take less need no word.
const LONG: Duration = Duration::from_secs(2);

/// Points are read in blocks of some thousands: of fewer, how many have been read says little about how far it is.
const MANY: usize = 20_000;

/// The iteration at work, for another thread to look at.
pub(super) struct Inside {
    now: Arc<Mutex<Now>>,
    points: usize,
    read: Arc<AtomicUsize>,
}

struct Now {
    place: String,
    since: Instant,
    /// Points read before it.
    before: usize,
}

impl Inside {
    pub fn new(state: &State, points: &Points) -> Self {
        let read = points.counter();
        let now = Now { place: String::new(), since: Instant::now(), before: 0 };
        let own = points.len().div_ceil(points.cluster().size());
        let inside = Self { now: Arc::new(Mutex::new(now)), points: own, read };
        inside.next(state);
        inside
    }

    /// The next iteration begins.
    pub fn next(&self, state: &State) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.place = place(state, state.current.history.len());
        (now.since, now.before) = (Instant::now(), self.read.load(Ordering::Relaxed));
    }

    /// Says where it is, once that has taken a while.
    pub fn watcher(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let (now, read, points) = (Arc::clone(&self.now), Arc::clone(&self.read), self.points);
        move || {
            let now = now.lock().unwrap_or_else(PoisonError::into_inner);
            let lasted = now.since.elapsed();
            if lasted < LONG {
                return None;
            }
            let seconds = lasted.as_secs();
            // Some iterations read all points twice; what was read last is still being worked on.
            let part = 100 * read.load(Ordering::Relaxed).saturating_sub(now.before) / points.max(1);
            let part = if points < MANY { String::new() } else { format!(", {}%", part.min(99)) };
            Some(format!("{}: {seconds} s{part}", now.place))
        }
    }
}
