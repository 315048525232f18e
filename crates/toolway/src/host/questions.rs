//! The open questions that a caller may answer.
//!
//! Owns the way in for front-ends, and that a caller's questions go with it. What a question is, and
//! who sees it, is `call/questions.rs` and what lies below it.

use std::sync::Arc;

use super::attached::CallingParty;
use super::{Attached, Host, HostCore};
use crate::call::HeldInstances;
use crate::call::questions::{
    AnswerError, OpenQuestion, PartyId, QuestionAnswer, QuestionBook, QuestionCounts, QuestionId,
    QuestionWatch,
};
use crate::lock::lock;

impl Attached {
    /// The open questions that this caller may answer, oldest first: those that its calls caused.
    /// The owner of the host sees those of other callers as well, but for what servers ask them.
    pub fn questions(&self) -> Vec<Arc<OpenQuestion>> {
        self.core.questions.seen_by(self.party.side.asker.party())
    }

    /// The ids that begin with this among the questions that it may answer; where none does, among
    /// those that ended and are remembered.
    pub fn question_ids(&self, beginning: &str) -> Vec<QuestionId> {
        let party = self.party.side.asker.party();
        self.core.questions.beginning(beginning, party)
    }

    /// Answers one of them. Each is answered once: whoever comes second hears that.
    pub fn answer(&self, id: &QuestionId, answer: QuestionAnswer) -> Result<(), AnswerError> {
        let by = self.party.side.asker.party();
        self.core.questions.answer(id, answer, by)
    }

    /// Follows them.
    pub fn watch_questions(&self) -> QuestionWatch {
        let party = self.party.side.asker.party();
        self.core.questions.watched_by(party)
    }
}

impl Host {
    /// How many questions of all callers ended so far.
    pub fn ended_questions(&self) -> QuestionCounts {
        self.core.questions.ended()
    }
}

/// Takes a caller's questions and its own instances of servers along when it goes.
pub(super) struct LeavingParty {
    instances: HeldInstances,
    book: Arc<QuestionBook>,
    party: PartyId,
}

impl LeavingParty {
    pub(super) fn of(core: &HostCore, party: &CallingParty) -> Self {
        Self {
            instances: Arc::clone(&party.side.instances),
            book: Arc::clone(&core.questions),
            party: party.side.asker.party(),
        }
    }
}

impl Drop for LeavingParty {
    fn drop(&mut self) {
        self.book.leave(self.party);
        // Dropped after the lock is open again.
        let instances = std::mem::take(&mut *lock(&self.instances));
        drop(instances);
    }
}
