//! Whether every request that was accepted had exactly one outcome (L1).
//!
//! Owns the counting; the test names the outcomes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A ledger of requests, shared by the tasks that make them.
#[derive(Debug, Default)]
pub struct RequestLedger {
    ledger: Mutex<Vec<Vec<String>>>,
}

/// One request in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerEntry(usize);

impl RequestLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a request.
    pub fn accept(&self) -> LedgerEntry {
        let mut ledger = self.ledger();
        ledger.push(Vec::new());
        LedgerEntry(ledger.len() - 1)
    }

    /// Enters an outcome, in a word.
    pub fn settle(&self, LedgerEntry(number): LedgerEntry, outcome: impl Into<String>) {
        self.ledger()[number].push(outcome.into());
    }

    /// How many requests have been entered.
    pub fn accepted(&self) -> usize {
        self.ledger().len()
    }

    /// How often each outcome was had.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for outcome in self.ledger().iter().flatten() {
            *tally.entry(outcome.clone()).or_default() += 1;
        }
        tally
    }

    /// Panics, naming them, when requests had no outcome or more than one.
    pub fn assert_each_exactly_once(&self) {
        let ledger = self.ledger();
        let wrong: Vec<(usize, &Vec<String>)> = ledger
            .iter()
            .enumerate()
            .filter(|(_, outcomes)| outcomes.len() != 1)
            .collect();
        assert!(
            wrong.is_empty(),
            "of {} requests, {} had none or several outcomes: {wrong:?}",
            ledger.len(),
            wrong.len()
        );
    }

    fn ledger(&self) -> MutexGuard<'_, Vec<Vec<String>>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outcome_each_passes_and_is_tallied() {
        let outcomes = RequestLedger::new();
        let (one, two) = (outcomes.accept(), outcomes.accept());
        outcomes.settle(two, "answered");
        outcomes.settle(one, "failed");
        outcomes.assert_each_exactly_once();
        assert_eq!(outcomes.accepted(), 2);
        assert_eq!(outcomes.tally()["answered"], 1);
    }

    #[test]
    #[should_panic(expected = "of 1 requests, 1 had none or several outcomes")]
    fn a_second_outcome_fails_the_check() {
        let outcomes = RequestLedger::new();
        let ticket = outcomes.accept();
        outcomes.settle(ticket, "answered");
        outcomes.settle(ticket, "answered");
        outcomes.assert_each_exactly_once();
    }

    #[test]
    #[should_panic(expected = "had none or several")]
    fn a_missing_outcome_fails_the_check() {
        let outcomes = RequestLedger::new();
        let _waiting = outcomes.accept();
        outcomes.assert_each_exactly_once();
    }
}
