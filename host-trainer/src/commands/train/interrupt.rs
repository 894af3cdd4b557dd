//! Ctrl-C and SIGTERM: the first ends a run after its iteration, the second at once.

use crate::cluster::Cluster;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set by the first signal, which also says what happens next.
pub(super) fn flag(
    announce: impl Fn(&str) + Send + 'static,
    checkpoint: &Path,
    cluster: &Cluster,
) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let place = checkpoint.display();
    let text = match cluster.size() {
        1 => format!(
            "stopping: this iteration is finished first, then {place} is written for --resume; once more stops at once, without it"
        ),
        // Where one of them was killed the others wait for it until they are killed, too.
        ranks => format!(
            "stopping: mpirun ends all {ranks} processes, because one of them ended or it was told to; the same command with \
             --resume goes on from the last checkpoint, {place}"
        ),
    };
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
