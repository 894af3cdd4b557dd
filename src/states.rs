//! States: which latents are on.

use crate::capacity::MAX_ACTIVE;
use heapless::Vec;

/// A set of active latents, by position (see [`crate::block`]), ascending.
pub(crate) type Path = Vec<u16, MAX_ACTIVE>;

/// Visits every set of at most `max_active` of so many positions, parents before their children, which add a later one.
pub(crate) fn each_path(positions: usize, max_active: usize, mut visit: impl FnMut(&[u16])) {
    let mut path = Path::new();
    loop {
        visit(&path);
        let next = path.last().map_or(0, |&last| usize::from(last) + 1);
        if path.len() < max_active && next < positions {
            let _ = path.push(next as u16); // within the capacity, like max_active
            continue;
        }
        // Up until there is a later sibling.
        loop {
            let Some(last) = path.pop() else { return };
            if usize::from(last) + 1 < positions {
                let _ = path.push(last + 1);
                break;
            }
        }
    }
}
