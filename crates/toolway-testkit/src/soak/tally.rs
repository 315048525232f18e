//! What became of the calls of a soak. Owns the count; each call is entered once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::SoakFault;

/// What one call led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SoakOutcome {
    /// The right answer.
    Answered,
    /// An error, of a server that may crash.
    Failed,
    /// The call that made a server crash.
    Crash,
    /// Cancelled, and answered all the same, or with an error.
    CancelledAnswered,
    /// Cancelled, and nothing came.
    CancelledSilent,
    /// The client hung up.
    HungUp,
    /// The list of tools.
    Listed,
    /// The list was changed.
    Changed,
    /// Its daemon ended under way, and nobody knows whether it was carried out.
    InDoubt,
}

impl SoakOutcome {
    fn name(self) -> &'static str {
        match self {
            SoakOutcome::Answered => "answered",
            SoakOutcome::Failed => "failed",
            SoakOutcome::Crash => "crashes",
            SoakOutcome::CancelledAnswered => "cancelled, answered",
            SoakOutcome::CancelledSilent => "cancelled, silent",
            SoakOutcome::HungUp => "hung up",
            SoakOutcome::Listed => "lists",
            SoakOutcome::Changed => "list changes",
            SoakOutcome::InDoubt => "in doubt",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct SoakTally {
    counts: Mutex<BTreeMap<SoakOutcome, u64>>,
    announcements: Mutex<u64>,
}

impl SoakTally {
    pub(super) fn enter(&self, outcome: SoakOutcome) {
        let mut counts = super::lock(&self.counts);
        *counts.entry(outcome).or_default() += 1;
    }

    /// A client was told that its list changed.
    pub(super) fn announced(&self) {
        let mut count = super::lock(&self.announcements);
        *count += 1;
    }

    fn of(&self, outcome: SoakOutcome) -> u64 {
        super::lock(&self.counts)
            .get(&outcome)
            .copied()
            .unwrap_or(0)
    }

    pub(super) fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let counts = super::lock(&self.counts);
        let mut all: Vec<(&'static str, u64)> = counts
            .iter()
            .map(|(outcome, count)| (outcome.name(), *count))
            .collect();
        all.push(("list changes told", *super::lock(&self.announcements)));
        all
    }

    /// Whether every call was entered, and enough of them were answered to prove anything. No more
    /// than so many may be in doubt.
    pub(super) fn settle(&self, calls: u64, doubts: u64) -> Result<(), SoakFault> {
        let entered: u64 = super::lock(&self.counts).values().sum();
        if entered != calls {
            let what = format!("{entered} of {calls} calls had an outcome");
            return Err(SoakFault::new(what));
        }
        if self.of(SoakOutcome::Answered) * 2 < calls {
            let what = format!("too few calls were answered: {:?}", self.outcomes());
            return Err(SoakFault::new(what));
        }
        if self.of(SoakOutcome::InDoubt) > doubts {
            let what = format!("calls were in doubt: {:?}", self.outcomes());
            return Err(SoakFault::new(what));
        }
        if self.of(SoakOutcome::Changed) > 0 && *super::lock(&self.announcements) == 0 {
            return Err(SoakFault::new("no client was told that its list changed"));
        }
        Ok(())
    }
}
