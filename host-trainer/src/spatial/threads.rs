//! Work on all bins, on several threads: the same bits on any number of them, since nothing is added up across threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `work` makes of every item, in their order.
pub(super) fn each<T: Send, R: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let count = items.len();
    let (next, items) = (AtomicUsize::new(0), items.into_iter().map(|item| Mutex::new(Some(item))));
    let items: Vec<Mutex<Option<T>>> = items.collect();
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let item = item.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(item) = item {
                *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(work(index, item));
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads.clamp(1, count.max(1))).for_each(|_| {
            scope.spawn(run);
        });
        run();
    });
    // A thread that panicked has ended the scope with its panic, so that all are there.
    results.into_iter().filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
