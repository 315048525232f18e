//! What a user should know about the questions of one server: that a hook refused in their place,
//! or that no user was asked.
//!
//! Owns that every remark is written down (`toolway logs`) and that a request under way gets those
//! made since it was sent. Only a server knows which request a question belongs to, so all that are
//! under way get them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::warn;

use crate::journal::JournalWriter;
use crate::lock::lock;

/// How many are kept for requests under way.
const KEPT: usize = 16;

/// The remarks about one connection.
#[derive(Default)]
pub(crate) struct Remarks {
    journal: Option<JournalWriter>,
    /// How many were made. Apart, because every request looks at it.
    count: AtomicU64,
    last: Mutex<VecDeque<String>>,
}

impl Remarks {
    /// Writes them down there, too.
    pub(crate) fn written_to(journal: Option<JournalWriter>) -> Self {
        Self {
            journal,
            ..Self::default()
        }
    }

    /// Makes one: clean, on one line.
    pub(crate) fn make(&self, remark: String) {
        warn!("{remark}");
        if let Some(journal) = &self.journal {
            journal.remark(&remark);
        }
        let mut last = lock(&self.last);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(remark);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// How many there were until now.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Those made since there were so many, as far as they are kept.
    pub(crate) fn since(&self, count: u64) -> Vec<String> {
        if self.count() == count {
            return Vec::new();
        }
        let last = lock(&self.last);
        let made = usize::try_from(self.count().saturating_sub(count)).unwrap_or(usize::MAX);
        last.range(last.len().saturating_sub(made)..)
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_what_was_remarked_since_it_was_sent() {
        let remarks = Remarks::default();
        remarks.make("before".to_owned());
        let sent = remarks.count();
        assert!(remarks.since(sent).is_empty());
        remarks.make("one".to_owned());
        remarks.make("two".to_owned());
        assert_eq!(remarks.since(sent), ["one", "two"]);
        for number in 0..KEPT {
            remarks.make(number.to_string());
        }
        assert_eq!(remarks.since(sent).len(), KEPT);
    }
}
