//! Which tools were ever pinned: so that a pin that is gone is not taken for a first use (SEC-54).
//!
//! Owns a file of its own, kept apart from the pins: removing those, or one of them, leaves this
//! behind. It does not help where both are removed; that is the shield's work.
//!
//! Invariants: it forgets nothing. Once it is full, everything counts as pinned before, which asks
//! a person once too often and never once too little. A file that is missing knows of nothing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolway_files::state_file;

use super::LOCK_PATIENCE;

/// How many tools it has room for.
const MOST: usize = 20_000;

/// How much of a place is written down, in hexadecimal digits.
const DIGITS: usize = 32;

/// No file of ours is larger.
const MAX_FILE: u64 = 2 << 20;

/// The list; without a file it knows of nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Roster {
    path: Option<PathBuf>,
}

#[derive(Default, Serialize, Deserialize)]
struct RosterContent {
    pinned: BTreeSet<String>,
}

impl Roster {
    pub(super) fn at(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// Whether something was pinned before, as far as is known.
    pub(super) fn holds(&self, place: &str) -> io::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        let pinned = read(path)
            .map_err(|error| io::Error::other(format!("`{}`: {error}", path.display())))?;
        Ok(pinned.contains(short(place)) || pinned.len() >= MOST)
    }

    /// Writes down what is pinned now.
    pub(super) fn add<'a>(&self, places: impl IntoIterator<Item = &'a String>) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        state_file::replace_within(path, LOCK_PATIENCE, || {
            // One that cannot be read is left alone, as the pins are.
            let mut pinned = read(path)?;
            let before = pinned.len();
            for place in places {
                if pinned.len() < MOST {
                    pinned.insert(short(place).to_owned());
                }
            }
            if pinned.len() == before {
                return Ok(None);
            }
            Ok(Some(serde_json::to_string(&RosterContent { pinned })?))
        })
    }
}

fn short(place: &str) -> &str {
    place.get(..DIGITS).unwrap_or(place)
}

fn read(path: &Path) -> io::Result<BTreeSet<String>> {
    match state_file::read(path, MAX_FILE) {
        Ok(text) => Ok(serde_json::from_str::<RosterContent>(&text)?.pinned),
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            Ok(BTreeSet::new())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> String {
        format!("{number:064x}").chars().rev().collect()
    }

    #[test]
    fn sec_54_what_was_pinned_once_is_known_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/pinned.json");
        let roster = Roster::at(Some(path.clone()));
        assert!(!roster.holds(&place(1)).unwrap());
        roster.add(&[place(1), place(2)]).unwrap();
        roster.add(&[place(3)]).unwrap();
        let another = Roster::at(Some(path.clone()));
        for (number, known) in [(1, true), (2, true), (3, true), (4, false)] {
            assert_eq!(another.holds(&place(number)).unwrap(), known, "{number}");
        }
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        another.add(&[place(2)]).unwrap();
        let after = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(before, after, "nothing to write");
        std::fs::write(&path, "{garbage").unwrap();
        let error = another.holds(&place(4)).unwrap_err().to_string();
        assert!(error.contains("pinned.json"), "{error}");
        assert!(another.add(&[place(4)]).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{garbage");
    }

    #[test]
    fn sec_54_a_full_list_takes_everything_for_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pinned.json");
        let roster = Roster::at(Some(path.clone()));
        let places: Vec<String> = (0..MOST + 5).map(place).collect();
        roster.add(&places).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < MAX_FILE);
        assert!(roster.holds(&place(MOST + 4)).unwrap());
        assert!(roster.holds(&place(MOST + 100)).unwrap());
        assert!(!Roster::default().holds(&place(1)).unwrap());
    }
}
