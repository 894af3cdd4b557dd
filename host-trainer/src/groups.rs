//! Groups of latents as a trainer makes them: what [`spikelet::groups`] reads.

use crate::{Error, Result};
use spikelet::groups::{Groups, LONGEST_NAME, MOST_GROUPS};

/// Names, and the group that each latent belongs to.
///
/// ```
/// use spikelet_trainer::groups::Grouping;
/// let duo = Grouping { names: vec!["voice".into(), "horn".into()], numbers: vec![0, 0, 1] };
/// assert_eq!(duo.section().unwrap(), b"\0\0\0\0\x01\0\0\0voice\0horn\0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// One for each group: unlike each other, 1 to 63 bytes, no control characters.
    pub names: Vec<String>,
    /// For each latent the number of its group. Every group has a latent.
    pub numbers: Vec<u16>,
}

impl Grouping {
    /// Those of a model of `latents` latents, if it has any.
    pub fn of(groups: &Groups<'_>, latents: usize) -> Option<Self> {
        groups.is_named().then(|| Self {
            names: (0..groups.len()).map(|group| groups.name(group).to_string()).collect(),
            numbers: (0..latents).map(|latent| groups.of(latent) as u16).collect(),
        })
    }

    /// The section of a blob; fails where its reader would.
    pub fn section(&self) -> Result<Vec<u8>> {
        let mut bytes: Vec<u8> = self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        for name in &self.names {
            bytes.extend(name.as_bytes());
            bytes.push(0);
        }
        match Groups::parse(&bytes, self.numbers.len()) {
            Ok(groups) if groups.len() == self.names.len() => Ok(bytes),
            _ => {
                let advice = format!(
                    "give at most {MOST_GROUPS} names that differ, each of 1 to {LONGEST_NAME} bytes without control \
                     characters, and a latent to each"
                );
                Err(Error::input("these are no groups", format_args!("{:?}", self.names), advice))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_back_or_are_refused() {
        let with = |names: &[&str], numbers: &[u16]| Grouping {
            names: names.iter().map(|name| name.to_string()).collect(),
            numbers: numbers.to_vec(),
        };
        let good = with(&["a", "b"], &[1, 0, 1]);
        let bytes = good.section().unwrap();
        let groups = Groups::parse(&bytes, 3).unwrap();
        assert_eq!(Grouping::of(&groups, 3), Some(good));
        for bad in [
            with(&["a", "a"], &[1, 0]),
            with(&["a"], &[1]),
            with(&["a\0b"], &[0, 1]), // would be two
            with(&["a", "b"], &[0]),
            with(&[], &[]),
        ] {
            assert!(bad.section().unwrap_err().to_string().starts_with("these are no groups: ["));
        }
    }
}
