//! Processes that train one model together, each on its own part of the data.
//!
//! Sums over points are kept apart by what they are sums of (lanes, sections), never by who computes them, and are added in one order:
//!
//! ```text
//! sum = ((lane 0 + lane 1) + lane 2) + ...          rank r has lanes [r L / R, (r + 1) L / R)
//! ```
//!
//! So every number of ranks gives the same bits. The sum travels along the ranks in pieces, each rank adding its lanes to a piece
//! while the next one already has the piece before; the last one sends the total to all. That moves 2 (R - 1) sums in all, as few
//! as any exchange after which all ranks have the total, and takes hardly longer with more ranks.
//!
//! All ranks then do the same M-step. What only some can know (a file that cannot be read, a signal) is agreed on, so that all go on or all
//! stop. Without the feature `mpi` there is one rank, and nothing to exchange.

#[cfg(not(feature = "mpi"))]
#[path = "cluster/alone.rs"]
mod link;
#[cfg(feature = "mpi")]
#[path = "cluster/mpi.rs"]
mod link;

use crate::{Error, Result};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Numbers in a piece of a sum that travels along the ranks (256 KiB).
const PIECE: usize = 1 << 15;

/// How long a process waits for the first one to tell of an error.
const PATIENCE: Duration = Duration::from_secs(1);

/// The processes that train together, as one of them sees it.
#[derive(Clone, Debug)]
pub struct Cluster {
    rank: usize,
    size: usize,
    /// Bytes that this rank has received.
    received: Arc<AtomicU64>,
    /// Whether all ranks know that the run has failed.
    failed: Arc<AtomicBool>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::alone()
    }
}

impl Cluster {
    /// One process that has all of the data.
    pub fn alone() -> Self {
        Self::of(0, 1)
    }

    fn of(rank: usize, size: usize) -> Self {
        Self { rank, size, received: Arc::default(), failed: Arc::default() }
    }

    /// Which of them this one is, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// R, how many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this one writes files and speaks to the user.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Which of `lanes` sums this rank computes. Where there are fewer lanes than ranks, the last ranks have none.
    pub fn share(&self, lanes: usize) -> Range<usize> {
        let busy = lanes.min(self.size).max(1);
        let border = |rank: usize| rank.min(busy) * lanes / busy;
        border(self.rank)..border(self.rank + 1)
    }

    /// Adds up an array over all of `lanes` lanes, in their order. `total` is that of the first lane of this rank, `others` are those of
    /// its other lanes; a rank without lanes has any `total` of the right length. Afterwards `total` is the sum, on all ranks.
    ///
    /// ```
    /// let mut total = [1.0, 2.0];
    /// spikelet_trainer::cluster::Cluster::alone().fold(2, &mut total, &[&[10.0, 20.0]]);
    /// assert_eq!(total, [11.0, 22.0]);
    /// ```
    pub fn fold(&self, lanes: usize, total: &mut [f64], others: &[&[f64]]) {
        let busy = lanes.min(self.size).max(1);
        let mut before = vec![0.0; if self.rank > 0 { PIECE.min(total.len()) } else { 0 }];
        if self.rank < busy {
            for (number, piece) in total.chunks_mut(PIECE).enumerate() {
                if self.rank > 0 {
                    let before = &mut before[..piece.len()];
                    link::receive(self.rank - 1, before);
                    self.count(size_of_val(piece));
                    piece.iter_mut().zip(before).for_each(|(sum, before)| *sum += *before);
                }
                for other in others {
                    let other = &other[number * PIECE..][..piece.len()];
                    piece.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
                }
                if self.rank + 1 < busy {
                    link::send(self.rank + 1, piece);
                }
            }
        }
        self.spread(busy - 1, total);
    }

    /// The numbers of all ranks, one rank after the other, on all of them.
    pub fn gather(&self, own: &[f64]) -> Vec<f64> {
        if self.size == 1 {
            return own.to_vec();
        }
        let all = link::gather(own, self.size);
        self.count((all.len() - own.len()) * size_of::<f64>());
        all
    }

    /// The sum of a count over all ranks.
    pub fn total(&self, own: u64) -> u64 {
        if self.size == 1 {
            return own;
        }
        self.count(size_of::<u64>());
        link::total(own)
    }

    /// Whether any rank says so.
    pub fn any(&self, own: bool) -> bool {
        self.total(u64::from(own)) > 0
    }

    /// What the first rank has, on all of them. Its bytes, or none where it has nothing.
    pub fn from_first(&self, own: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.bytes_from(0, own)
    }

    /// The result of all ranks together: where one of them fails all do, with the error of the first that did.
    pub fn agree<T>(&self, own: Result<T>) -> Result<T> {
        if self.size == 1 {
            return own;
        }
        let failed = self.gather(&[f64::from(u8::from(own.is_err()))]);
        let Some(rank) = failed.iter().position(|&failed| failed != 0.0) else { return own };
        self.failed.store(true, Ordering::Relaxed);
        let told = own.err().and_then(|error| serde_json::to_vec(&error).ok());
        let told = self.bytes_from(rank, told).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Err(told.unwrap_or_else(|| Error::run("another process failed", "mpirun", "see what it says")))
    }

    /// Fails unless all ranks have come to the same numbers, as they do where the machines are alike.
    pub fn check_same<'a>(&self, numbers: impl Iterator<Item = &'a f64>) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        // FNV-1a over whole numbers.
        let mix = |hash: u64, x: &f64| (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
        let digest = numbers.fold(0xcbf2_9ce4_8422_2325, mix);
        let all = self.gather(&[f64::from(digest as u32), f64::from((digest >> 32) as u32)]);
        match all.chunks_exact(2).position(|one| one != &all[..2]) {
            None => Ok(()),
            Some(rank) => {
                self.failed.store(true, Ordering::Relaxed);
                let what = format!("rank {rank} has come to other parameters than rank 0");
                let advice = "use machines with the same kind of processor and the same system libraries";
                Err(Error::run(what, "the M-step", advice))
            }
        }
    }

    /// Bytes that all ranks have received so far.
    pub fn moved(&self) -> u64 {
        self.total(self.received.load(Ordering::Relaxed))
    }

    fn bytes_from(&self, rank: usize, own: Option<Vec<u8>>) -> Option<Vec<u8>> {
        if self.size == 1 {
            return own;
        }
        // One more than its length; 0 for nothing.
        let mut length = [own.as_ref().map_or(0, |bytes| bytes.len() as u64 + 1)];
        self.spread(rank, &mut length);
        let length = usize::try_from(length[0].checked_sub(1)?).ok()?;
        let mut bytes = own.filter(|_| self.rank == rank).unwrap_or_default();
        bytes.resize(length, 0);
        self.spread(rank, &mut bytes);
        Some(bytes)
    }

    /// What one rank has, on all of them.
    fn spread<T: link::Sent>(&self, rank: usize, values: &mut [T]) {
        if self.size == 1 {
            return;
        }
        if self.rank != rank {
            self.count(size_of_val(values));
        }
        link::broadcast(rank, values);
    }

    fn count(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The connection to the other ranks, as long as it lasts.
pub struct Session {
    /// All ranks.
    pub cluster: Cluster,
    _link: link::Link,
}

impl Session {
    /// Joins the other processes that `mpirun` (or `srun`, `mpiexec`) has started, if it has.
    pub fn join() -> Result<Self> {
        // Set by Open MPI, by PMIx and PMI launchers, by MPICH's and Intel's mpiexec.
        let launchers = ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK"];
        let is_launched = launchers.iter().any(|name| std::env::var_os(name).is_some());
        let (link, rank, size) = if is_launched { link::join()? } else { (link::Link::default(), 0, 1) };
        Ok(Self { cluster: Cluster::of(rank, size), _link: link })
    }

    /// Runs `work` on all ranks. What they agree to have failed the first one returns: were the others to leave with a status, too,
    /// `mpirun` might end it before it has said why. Any other error ends all processes at once.
    pub fn run(self, work: impl FnOnce(&Cluster) -> Result<()>) -> Result<()> {
        let result = work(&self.cluster);
        let Cluster { rank, size, failed, .. } = &self.cluster;
        match &result {
            Err(error) if *size > 1 && !failed.load(Ordering::Relaxed) => {
                // Mostly the first one has the same error, and ends this process before it says so again.
                if *rank > 0 {
                    std::thread::sleep(PATIENCE);
                }
                let _ = writeln!(std::io::stderr(), "error: rank {rank}: {error}");
                link::abort(error.exit_code())
            }
            Err(_) if *rank > 0 => Ok(()),
            _ => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_has_one_rank() {
        for size in 1..9 {
            for lanes in [1, 2, 3, 5, 8, 16, 1000] {
                let shares: Vec<_> = (0..size).map(|rank| Cluster::of(rank, size).share(lanes)).collect();
                let all: Vec<usize> = shares.iter().cloned().flatten().collect();
                assert_eq!(all, (0..lanes).collect::<Vec<_>>(), "{size} {lanes}");
                let (least, most) = (lanes / size, lanes.div_ceil(size));
                assert!(shares.iter().all(|share| (least..=most).contains(&share.len())), "{shares:?}");
                // Those without any come last: the sum travels along the others.
                assert!(shares.iter().skip_while(|share| !share.is_empty()).all(|share| share.is_empty()));
            }
        }
    }

    #[test]
    fn one_rank_adds_in_order() {
        let lanes = [vec![1e16, 1.0], vec![1.0, 2.0], vec![-1e16, 3.0]];
        let mut total = lanes[0].clone();
        Cluster::alone().fold(3, &mut total, &[&lanes[1], &lanes[2]]);
        assert_eq!(total, [(1e16 + 1.0) - 1e16, 6.0]);
        let own = Cluster::alone();
        assert_eq!(own.gather(&[1.0, 2.0]), [1.0, 2.0]);
        assert_eq!(own.from_first(Some(vec![1])), Some(vec![1]));
        assert!(own.agree::<()>(Err(Error::run("a", "b", "c"))).is_err() && own.moved() == 0);
    }
}
