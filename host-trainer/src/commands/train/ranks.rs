//! Training by several processes: what cannot be shared, what all must have, what they send each other.

use super::checkpoint::Checkpoint;
use crate::cluster::Cluster;
use crate::commands::output::{counted, note};
use crate::parameters::{NoiseCov, Parameters, SlabCov};
use crate::train::settings::Engine;
use crate::train::{Settings, State};
use crate::{Error, Result};

/// Refuses what one process must do by itself.
pub(super) fn refuse(cluster: &Cluster, flag: &str) -> Result<()> {
    match cluster.size() {
        1 => Ok(()),
        size => {
            let what = format!("{size} processes cannot share this training");
            Err(Error::input(what, flag, "start one process, without mpirun; it uses all cores (--threads)"))
        }
    }
}

/// Refuses engines that keep something of every point in memory.
pub(super) fn check(settings: &Settings, cluster: &Cluster) -> Result<()> {
    match settings.engine {
        Engine::Factored => refuse(cluster, "--engine factored"),
        _ if settings.gp.is_some() => refuse(cluster, "--selection gp"),
        _ if settings.keeps_some_components() => refuse(cluster, "--selected"),
        _ => Ok(()),
    }
}

/// The state in the checkpoint, which the first process reads for all.
pub(super) fn earlier(checkpoint: &Checkpoint, cluster: &Cluster) -> Result<Option<State>> {
    if cluster.size() == 1 {
        return checkpoint.read();
    }
    let unreadable = |cause| Error::run(cause, checkpoint.path.display(), "leave --resume out to begin anew");
    let read = || match cluster.is_first() {
        true => checkpoint.read()?.map(|state| serde_json::to_vec(&state).map_err(unreadable)).transpose(),
        false => Ok(None),
    };
    let bytes = cluster.from_first(cluster.agree(read())?);
    bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(unreadable)).transpose()
}

/// All numbers of a model.
pub(super) fn numbers(parameters: &Parameters) -> impl Iterator<Item = &f64> {
    let Parameters { dictionary, prior, slab_mean, slab_cov, noise, .. } = parameters;
    let slab = match slab_cov {
        SlabCov::Unit => &[],
        SlabCov::Diagonal(psi2) => &psi2[..],
        SlabCov::Full(psi) => &psi[..],
    };
    let noise = match noise {
        NoiseCov::Shared(sigma2) => std::slice::from_ref(sigma2),
        NoiseCov::Diagonal(sigma2) | NoiseCov::Components(sigma2) => &sigma2[..],
        NoiseCov::Full(sigma) => &sigma[..],
    };
    dictionary.iter().chain(prior).chain(slab_mean).chain(slab).chain(noise)
}

/// What processes send each other.
pub(super) struct Traffic {
    cluster: Cluster,
    /// When it began, and at the last iteration. (bytes)
    begun: u64,
    last: u64,
    iterations: usize,
}

impl Traffic {
    pub fn new(cluster: &Cluster, threads: usize) -> Self {
        if cluster.size() > 1 {
            let each = counted(threads, "thread");
            note(format_args!("{} processes with {each} each train one model", cluster.size()));
        }
        let begun = cluster.moved();
        Self { cluster: cluster.clone(), begun, last: begun, iterations: 0 }
    }

    /// What the iteration that ended now has moved, to be put after its line; nothing of one process. All processes must ask.
    pub fn of_iteration(&mut self) -> String {
        if self.cluster.size() == 1 {
            return String::new();
        }
        self.iterations += 1;
        let now = self.cluster.moved();
        let moved = now - std::mem::replace(&mut self.last, now);
        format!(", {} moved", bytes(moved as f64))
    }

    /// The mean over iterations.
    pub fn say(&self) {
        if self.cluster.size() > 1 && self.iterations > 0 {
            let each = (self.last - self.begun) as f64 / self.iterations as f64;
            note(format_args!(
                "{} processes moved {} per iteration, {} each",
                self.cluster.size(),
                bytes(each),
                bytes(each / self.cluster.size() as f64)
            ));
        }
    }
}

fn bytes(count: f64) -> String {
    match count {
        _ if count < 1e3 => format!("{count:.0} bytes"),
        _ if count < 1e6 => format!("{:.1} kB", count / 1e3),
        _ if count < 1e9 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.1} GB", count / 1e9),
    }
}
