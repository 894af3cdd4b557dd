//! Ctrl-C and SIGTERM: the first ends a run after its iteration, the second at once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set by the first signal, which also says what happens next.
pub(super) fn flag(announce: impl Fn(&str) + Send + 'static, checkpoint: &Path) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let text = format!(
        "stopping: this iteration is finished first, then {} is written for --resume; once more stops at once, without it",
        checkpoint.display()
    );
    let handler = move || {
        if asked.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        announce(&text);
    };
    // Where handlers cannot be set, signals end the process as usual.
    let _ = ctrlc::set_handler(handler);
    stop
}
