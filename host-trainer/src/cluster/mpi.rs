//! Other processes through MPI. Only the thread that joined speaks to them.

use crate::{Error, Result};
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Root, Source};

/// Elements per message, at most: MPI counts in 32 bits.
const MOST: usize = 1 << 27;

/// What can be sent.
pub(super) trait Sent: Equivalence {}
impl Sent for f64 {}
impl Sent for u64 {}
impl Sent for u8 {}

/// Leaves when it is dropped.
#[derive(Default)]
pub(super) struct Link {
    _universe: Option<Universe>,
}

/// Joins; this rank, and how many there are.
pub(super) fn join() -> Result<(Link, usize, usize)> {
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        return Err(Error::run("MPI was joined before", "mpirun", "report this"));
    };
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    Ok((Link { _universe: Some(universe) }, rank, size))
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

pub(super) fn send(to: usize, values: &[f64]) {
    world().process_at_rank(to as i32).send(values);
}

pub(super) fn receive(from: usize, values: &mut [f64]) {
    world().process_at_rank(from as i32).receive_into(values);
}

pub(super) fn broadcast<T: Sent>(from: usize, values: &mut [T]) {
    for piece in values.chunks_mut(MOST) {
        world().process_at_rank(from as i32).broadcast_into(piece);
    }
}

pub(super) fn gather(own: &[f64], size: usize) -> Vec<f64> {
    let mut counts = vec![0i32; size];
    world().all_gather_into(&(own.len() as i32), &mut counts[..]);
    let begins: Vec<i32> = counts
        .iter()
        .scan(0, |end, count| {
            *end += count;
            Some(*end - count)
        })
        .collect();
    let mut all = vec![0.0; counts.iter().map(|&count| count as usize).sum()];
    world().all_gather_varcount_into(own, &mut PartitionMut::new(&mut all[..], &counts[..], &begins[..]));
    all
}

pub(super) fn total(own: u64) -> u64 {
    let mut all = 0;
    world().all_reduce_into(&own, &mut all, SystemOperation::sum());
    all
}

pub(super) fn abort(status: u8) -> ! {
    world().abort(status.into())
}
