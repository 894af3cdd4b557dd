//! Which latents belong together: the section `grps` of a blob.
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | u16, H times | number of the group that each latent belongs to, from 0 on |
//! | 2 H | 0 or 2 bytes | 0, up to a multiple of 4 |
//! | then | text | UTF-8: the name of each group, in order, each ended by a NUL byte |
//!
//! A group is a source as a listener would count them: one voice may take many latents. Every group has a latent; names
//! differ, are 1 to 63 bytes long and have no control characters. A stream ([`crate::stream`]) puts out one signal for each.
//! Without the section, all latents of windows and patches are one group without a name, and otherwise every latent is one.

use super::bytes::u16_at;
use crate::error::{BlobError, ModelError};
use core::ffi::CStr;

/// More named groups than this are refused: names are compared with each other when a blob is read.
pub const MOST_GROUPS: usize = 1024;
/// Bytes of a name, at most.
pub const LONGEST_NAME: usize = 63;

/// The groups of a model's latents.
///
/// ```
/// # let blob = spikelet::Blob::parse(spikelet::doc::TWO_SOURCES).unwrap();
/// let groups = blob.groups(); // the model names none: every latent is one
/// assert_eq!((groups.len(), groups.of(1), groups.name(1), groups.is_named()), (2, 1, "", false));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// Two bytes for each latent; empty where the blob has no groups.
    numbers: &'a [u8],
    /// The names, each with its NUL byte.
    names: &'a [u8],
    len: usize,
}

impl<'a> Groups<'a> {
    /// All latents in one, or each by itself.
    pub(crate) const fn unnamed(latents: usize, all_in_one: bool) -> Self {
        Self { numbers: &[], names: &[], len: if all_in_one { 1 } else { latents } }
    }

    /// Reads the section of a model of `latents` latents.
    pub fn parse(bytes: &'a [u8], latents: usize) -> Result<Self, BlobError> {
        let damaged = BlobError::Section { tag: *b"grps" };
        let numbers = bytes.get(..2 * latents).ok_or(damaged)?;
        let rest = bytes.get(2 * latents..).unwrap_or(&[]);
        let padding = latents % 2 * 2;
        let (zeros, names) = rest.split_at_checked(padding).ok_or(damaged)?;
        let groups = Self { numbers, names, len: names.iter().filter(|&&byte| byte == 0).count() };
        if zeros.iter().any(|&zero| zero != 0) || names.last() != Some(&0) || groups.len > MOST_GROUPS {
            return Err(damaged);
        }
        let wrong = |field, index| Err(BlobError::Model(ModelError::Range { field, index }));
        for (group, name) in groups.all_names().enumerate() {
            let is_new = groups.all_names().take(group).all(|earlier| earlier != name);
            let is_sized = name.len() > 1 && name.len() <= LONGEST_NAME + 1;
            let text = core::str::from_utf8(name).map_err(|_| damaged)?;
            if !is_new || !is_sized || text.chars().filter(|c| c.is_control()).count() != 1 {
                return wrong("group names", group);
            }
        }
        if let Some(latent) = (0..latents).find(|&latent| groups.of(latent) >= groups.len) {
            return wrong("groups", latent);
        }
        let is_used = |group: usize| (0..latents).any(|latent| groups.of(latent) == group);
        match (0..groups.len).find(|&group| !is_used(group)) {
            Some(group) => wrong("group names", group),
            None => Ok(groups),
        }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Always false: a model has a latent.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether every latent is a group by itself, in order.
    #[cfg(feature = "stream")]
    pub(crate) const fn are_latents(&self) -> bool {
        self.numbers.is_empty() && self.len != 1
    }

    /// Whether the blob says which latents belong together, and how the groups are called.
    pub const fn is_named(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The group of a latent.
    #[inline(never)]
    pub fn of(&self, latent: usize) -> usize {
        match (self.is_named(), self.len) {
            (true, _) => usize::from(u16_at(self.numbers, 2 * latent)),
            (false, 1) => 0,
            (false, _) => latent,
        }
    }

    /// The name of a group; empty where groups have none.
    pub fn name(&self, group: usize) -> &'a str {
        self.c_name(group).to_str().unwrap_or_default()
    }

    /// The same as C wants it, ended by a NUL byte.
    pub fn c_name(&self, group: usize) -> &'a CStr {
        self.all_names().nth(group).and_then(|name| CStr::from_bytes_with_nul(name).ok()).unwrap_or_default()
    }

    /// The names in order, each with its NUL byte.
    fn all_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.names;
        core::iter::from_fn(move || {
            let end = rest.iter().position(|&byte| byte == 0)?;
            let (name, later) = rest.split_at_checked(end + 1)?;
            rest = later;
            Some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn section(numbers: &[u16], names: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(names);
        bytes
    }

    #[test]
    fn names_and_numbers_come_back() {
        for numbers in [&[1, 0, 1][..], &[0, 1, 1, 1]] {
            let bytes = section(numbers, b"voice\0caf\xc3\xa9\0");
            let groups = Groups::parse(&bytes, numbers.len()).unwrap();
            assert_eq!((groups.len(), groups.is_named(), groups.is_empty()), (2, true, false));
            assert_eq!([0, 1, 2].map(|group| groups.name(group)), ["voice", "café", ""]);
            assert_eq!(groups.c_name(0), c"voice");
            for (latent, &number) in numbers.iter().enumerate() {
                assert_eq!(groups.of(latent), usize::from(number));
            }
            for len in 0..bytes.len() {
                assert!(Groups::parse(&bytes[..len], numbers.len()).is_err(), "{len}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let damaged = BlobError::Section { tag: *b"grps" };
        let name = |index| BlobError::Model(ModelError::Range { field: "group names", index });
        let number = |index| BlobError::Model(ModelError::Range { field: "groups", index });
        let long = [[b'x'; 64].as_slice(), b"\0"].concat();
        for (numbers, names, error) in [
            (&[0, 0, 1][..], &b"a\0a\0"[..], name(1)), // twice the same
            (&[0, 0, 1], b"a\0\0", name(1)),           // empty
            (&[0, 0, 0], b"a\nb\0", name(0)),
            (&[0, 0, 0], b"a\xc2\x85\0", name(0)), // U+0085, a control character too
            (&[0, 0, 0], &long, name(0)),
            (&[0, 2, 1], b"a\0b\0", number(1)),
            (&[0, 0, 2], b"a\0b\0c\0", name(1)), // nobody's
            (&[0, 0, 0], b"a\0b", damaged),      // no end
            (&[0, 0, 0], b"", damaged),
            (&[0, 0, 0], b"a\xff\0", damaged), // no UTF-8
        ] {
            assert_eq!(Groups::parse(&section(numbers, names), 3).unwrap_err(), error, "{names:?}");
        }
        assert!(Groups::parse(&section(&[0, 0, 0], &long[1..]), 3).is_ok());
        let mut filled = section(&[0, 0, 0], b"a\0");
        filled[6] = 1;
        assert_eq!(Groups::parse(&filled, 3).unwrap_err(), damaged);
        let many: Vec<u8> =
            (0..1025u32).flat_map(|i| [std::format!("{i}\0").into_bytes()].concat()).collect();
        let numbers: Vec<u16> = (0..1025).collect();
        assert_eq!(Groups::parse(&section(&numbers, &many), 1025).unwrap_err(), damaged);
    }
}
