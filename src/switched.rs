//! States of latents that are on or off and nothing else.
//!
//! The walk starts at the reference state (the empty one, unless the sample is loud) and reaches every other state
//! once, by *switching* positions in ascending order. Members of the reference stand first: switching one takes it away
//! and makes room for another. What a switch does to the log joint is the model's ([`Superposition`]): [`linear`] for
//! binary sparse coding, [`maximal`] for maximal causes.
//!
//! **Sums.** Each level of the walk has the sum of the weights of its subtree and, for every later position, of those in
//! which it is switched. On the way up these are added to the level above, and to the pairs with the position that led
//! down. So a state costs one addition or two, however many latents it has on, and its log joint: one addition for linear models,
//! 3 D for maximal causes; unless it is negligible, also an exponential.

mod linear;
mod maximal;
mod posterior;

use crate::capacity::{MAX_REFERENCE, MAX_SELECTED};
use crate::math::Real;
use crate::model::Kind;
use crate::posterior::{Joint, Sums};
use crate::slices::{at, span, span_mut};
use crate::states::Path;
use core::ops::Range;
use heapless::Vec;

pub(crate) use maximal::misfit;
pub(crate) use posterior::{each_state, posterior};

/// Memory for the levels of the walk.
#[derive(Debug)]
pub(crate) struct SwitchMemory<'m, T> {
    /// What the superposition keeps of a state: S + 1 numbers a level, D + 2 for maximal causes.
    pub rows: &'m mut [T],
    /// Sums: S + 1 numbers a level.
    pub sums: &'m mut [T],
}

/// Numbers in the two parts of [`SwitchMemory`].
pub(crate) const fn switch_len(
    kind: Kind,
    dims: usize,
    selected: usize,
    max_active: usize,
) -> (usize, usize) {
    let is_maximal = matches!(kind, Kind::Mca);
    // Every member of the reference can be switched before as many others are. States that no switch
    // leads on from need no level.
    let members = if is_maximal { 0 } else { most_members(max_active) };
    let switches = max_active + members;
    let levels = if switches < selected { switches } else { selected };
    (levels * if is_maximal { dims + 2 } else { selected + 1 }, levels * (selected + 1))
}

/// Most latents in the reference.
const fn most_members(max_active: usize) -> usize {
    if max_active < MAX_REFERENCE { max_active } else { MAX_REFERENCE }
}

/// How latents together make a sample: the log joints of the states along the walk.
trait Superposition<T> {
    /// Of the state at `level`.
    fn joint(&self, level: usize) -> T;
    /// Of the states that switching one of these positions leads to from it: the last position first.
    fn each_child(&self, level: usize, positions: Range<usize>, visit: impl FnMut(usize, T));
    /// Makes the state that switching `position` leads to the one at `level + 1`.
    fn descend(&mut self, level: usize, position: usize);
}

/// Which switches there are.
#[derive(Clone, Copy)]
struct Switches {
    positions: usize,
    /// The first positions are those of the reference.
    members: usize,
    max_active: usize,
}

/// A path of switches, ascending.
type Switched = Vec<u16, MAX_SELECTED>;

impl Switches {
    /// Latents that may still be switched on in the reference.
    fn room(&self) -> usize {
        self.max_active.saturating_sub(self.members)
    }

    /// The room there is after switching `position`.
    fn room_after(&self, room: usize, position: usize) -> usize {
        if position < self.members { room + 1 } else { room.saturating_sub(1) }
    }

    /// The state a path leads to, by position.
    fn state(&self, path: &[u16], tail: Option<usize>) -> Path {
        let switched = |p: usize| tail == Some(p) || path.iter().any(|&q| usize::from(q) == p);
        let mut state = Path::new();
        for p in (0..self.positions).filter(|&p| switched(p) != (p < self.members)) {
            let _ = state.push(p as u16); // no more than max_active
        }
        state
    }
}

/// The walk that sums.
struct Walk<'x, 'b, 's, T, J> {
    superposition: &'x mut J,
    tally: Tally<'x, 'b, 's, T>,
}

/// What it sums.
struct Tally<'x, 'b, 's, T> {
    switches: Switches,
    /// Of every level: by later position, the weights of states in which it is switched; then of all states.
    levels: &'x mut [T],
    sums: &'x mut Sums<'s, 'b, T>,
    path: Switched,
}

impl<T: Real, J: Superposition<T>> Walk<'_, '_, '_, T, J> {
    /// Adds all states to `sums`. The superposition is at the reference.
    fn all(superposition: &mut J, switches: Switches, levels: &mut [T], sums: &mut Sums<'_, '_, T>) {
        levels.fill(T::ZERO);
        let tally = Tally { switches, levels, sums, path: Switched::new() };
        let mut walk = Walk { superposition, tally };
        walk.subtree(0, 0, switches.room());
        let Tally { levels, sums, .. } = walk.tally;
        sums.collect_switched(span(levels, 0, switches.positions), at(levels, switches.positions));
    }

    /// Sums over the state at `level` and those that switch positions from `first` on; `room` more may be on.
    fn subtree(&mut self, level: usize, first: usize, room: usize) {
        let Switches { positions, members, .. } = self.tally.switches;
        let weight = self.tally.weigh(self.superposition.joint(level), None);
        self.tally.add(level, positions, weight);
        // The most promising latents stand last. Behind the last one nothing can be switched.
        let (others, last) = (first.max(members), positions.saturating_sub(1));
        match room {
            0 => {}
            1 => self.leaves(level, others..positions),
            _ => {
                self.leaves(level, others.max(last)..positions);
                for p in (others..last).rev() {
                    self.visit(level, p, room);
                }
            }
        }
        for p in (first..members).rev() {
            if p < last { self.visit(level, p, room) } else { self.leaves(level, p..positions) }
        }
    }

    /// The subtree that switching `p` leads to.
    fn visit(&mut self, level: usize, p: usize, room: usize) {
        self.superposition.descend(level, p);
        self.tally.descend(level, p);
        self.subtree(level + 1, p + 1, self.tally.switches.room_after(room, p));
        self.tally.rise(level, p);
    }

    /// The states that switching one of these positions leads to from the one at `level`; nothing follows them.
    fn leaves(&mut self, level: usize, range: Range<usize>) {
        let tally = &mut self.tally;
        self.superposition.each_child(level, range, |p, joint| {
            let weight = tally.weigh(joint, Some(p));
            if !(weight <= T::ZERO) {
                tally.add(level, p, weight);
                tally.add(level, tally.switches.positions, weight);
            }
        });
    }
}

impl<T: Real> Tally<'_, '_, '_, T> {
    /// The weight of a state: the one the path leads to, `tail` switched as well.
    #[inline(always)]
    fn weigh(&mut self, log_joint: T, tail: Option<usize>) -> T {
        if self.sums.is_negligible(log_joint) {
            return T::ZERO;
        }
        let joint = Joint::new(log_joint);
        if self.sums.is_too_high(log_joint) {
            let factor = self.sums.lift(joint);
            self.levels.iter_mut().for_each(|sum| *sum *= factor);
        }
        let weight = self.sums.weight(joint);
        if self.sums.is_best(weight) {
            self.sums.note_best(weight, joint, &self.switches.state(&self.path, tail), &[]);
        }
        weight
    }

    #[inline(always)]
    fn add(&mut self, level: usize, place: usize, weight: T) {
        if let Some(sum) = self.levels.get_mut(level * (self.switches.positions + 1) + place) {
            *sum += weight;
        }
    }

    fn descend(&mut self, level: usize, p: usize) {
        let width = self.switches.positions + 1;
        span_mut(self.levels, (level + 1) * width, width).fill(T::ZERO);
        let _ = self.path.push(p as u16); // ascending positions: no more than there are
    }

    /// Adds the sums of the level below, which switching `p` led to.
    fn rise(&mut self, level: usize, p: usize) {
        self.path.pop();
        let width = self.switches.positions + 1;
        let Some((above, below)) = self.levels.split_at_mut_checked((level + 1) * width) else { return };
        let (above, below) = (span_mut(above, level * width, width), span(below, 0, width));
        let mass = at(below, width - 1);
        if mass <= T::ZERO {
            return;
        }
        if let Some(switched) = above.get_mut(p) {
            *switched += mass;
        }
        // Those of later positions, and the mass behind them.
        let (first, later) = (p + 1, width.saturating_sub(p + 1));
        for (above, &below) in span_mut(above, first, later).iter_mut().zip(span(below, first, later)) {
            *above += below;
        }
        self.sums.add_pairs(p, span(below, first, later.saturating_sub(1)));
    }
}
