//! No other processes: nothing here is ever called with more than one rank.

use crate::{Error, Result};

/// What can be sent.
pub(super) trait Sent {}
impl Sent for f64 {}
impl Sent for u64 {}
impl Sent for u8 {}

#[derive(Default)]
pub(super) struct Link {
    _nothing: (),
}

/// Refuses what `mpirun` has started, unless it is alone: all processes would do the same work and write the same files.
pub(super) fn join() -> Result<(Link, usize, usize)> {
    let size = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
    let size = size.iter().find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    match size {
        Some(size) if size > 1 => Err(Error::input(
            "this spikelet was built without MPI",
            format_args!("{size} processes were started"),
            "build it with `cargo install --path host-trainer --features mpi`, or start one process",
        )),
        _ => Ok((Link::default(), 0, 1)),
    }
}

pub(super) fn send(_: usize, _: &[f64]) {}

pub(super) fn receive(_: usize, _: &mut [f64]) {}

pub(super) fn broadcast<T: Sent>(_: usize, _: &mut [T]) {}

pub(super) fn gather(own: &[f64], _: usize) -> Vec<f64> {
    own.to_vec()
}

pub(super) fn total(own: u64) -> u64 {
    own
}

pub(super) fn abort(status: u8) -> ! {
    std::process::exit(status.into())
}
