//! The book of open questions of one host.
//!
//! Owns which questions are open, who sees them and may answer, and that each ends exactly once: by
//! an answer, by its time, or with what asked it. Does not know how anybody is shown one.
//!
//! Who sees a question: the attachment whose call caused it, and, unless it is a server's question,
//! the owner of the host. Attachments are told apart by a number, never by a name.
//!
//! Invariants: bounded, for each attachment and in all; what was closed is remembered for a while, so
//! that whoever comes second hears that it was answered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};
use toolway_types::limits;

use super::{AnswerError, Askee, OpenQuestion, QuestionAnswer, QuestionId};
use crate::lock::lock;

/// How many questions of one caller may be open.
const MOST_OF_ONE: usize = limits::call::OPEN_QUESTIONS;
/// How many may be open in all.
const MOST: usize = limits::call::ALL_OPEN_QUESTIONS;
/// How many that were closed are remembered.
const MOST_CLOSED: usize = 1024;

/// One attachment. Two callers of equal names are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartyId(u64);

impl PartyId {
    /// The owner of the host.
    pub(crate) const OWNER: Self = Self(0);
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionEnd {
    /// It was answered.
    Answered,
    /// Nobody answered in its time.
    Expired,
    /// What asked it has ended, or its caller has gone.
    Withdrawn,
}

/// How many questions ended, by how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuestionCounts {
    /// Those that were answered.
    pub answered: u64,
    /// Those that nobody answered in their time.
    pub expired: u64,
    /// Those whose asker has ended, or whose caller has gone.
    pub withdrawn: u64,
}

impl QuestionCounts {
    fn add(&mut self, end: QuestionEnd) {
        let count = match end {
            QuestionEnd::Answered => &mut self.answered,
            QuestionEnd::Expired => &mut self.expired,
            QuestionEnd::Withdrawn => &mut self.withdrawn,
        };
        *count += 1;
    }
}

impl QuestionEnd {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Something happened to a question.
pub(crate) enum QuestionNews<'a> {
    Opened(&'a OpenQuestion),
    Closed(&'a OpenQuestion, QuestionEnd),
}

/// Hears what happens to questions. It must not block.
pub(crate) type QuestionListener = Box<dyn Fn(QuestionNews<'_>) + Send + Sync>;

/// All open questions of one host.
#[derive(Default)]
pub(crate) struct QuestionBook {
    state: Mutex<BookState>,
    version: watch::Sender<u64>,
    listener: Option<QuestionListener>,
    /// Whether the owner takes what other callers cannot be asked.
    pub(super) owner_answers: bool,
}

#[derive(Default)]
struct BookState {
    open: Vec<BookEntry>,
    /// Oldest first.
    closed: VecDeque<ClosedQuestion>,
    ended: QuestionCounts,
    parties: u64,
}

/// Who sees a question.
#[derive(Clone, Copy)]
struct Audience {
    party: PartyId,
    askee: Askee,
    is_of_server: bool,
}

impl Audience {
    fn includes(self, party: PartyId) -> bool {
        let is_own = self.party == party;
        match self.askee {
            Askee::Owner => party == PartyId::OWNER,
            Askee::Caller => is_own || (party == PartyId::OWNER && !self.is_of_server),
        }
    }
}

struct BookEntry {
    question: Arc<OpenQuestion>,
    audience: Audience,
    answer: oneshot::Sender<QuestionAnswer>,
}

struct ClosedQuestion {
    id: QuestionId,
    audience: Audience,
    end: QuestionEnd,
}

impl BookState {
    /// Takes one out; what was closed longest ago is forgotten.
    fn close(&mut self, id: &QuestionId, end: QuestionEnd) -> Option<BookEntry> {
        let place = self.open.iter().position(|it| it.question.id == *id)?;
        let entry = self.open.remove(place);
        self.ended.add(end);
        if self.closed.len() == MOST_CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(ClosedQuestion {
            id: id.clone(),
            audience: entry.audience,
            end,
        });
        Some(entry)
    }
}

impl QuestionBook {
    /// A book that tells this listener; `owner_answers`: whether the owner takes what other callers
    /// cannot be asked.
    pub(crate) fn new(listener: QuestionListener, owner_answers: bool) -> Self {
        Self {
            listener: Some(listener),
            owner_answers,
            ..Self::default()
        }
    }

    /// A number that no other attachment has.
    pub(crate) fn new_party(&self) -> PartyId {
        let mut state = lock(&self.state);
        state.parties += 1;
        PartyId(state.parties)
    }

    /// What one attachment may see and answer, oldest first.
    pub(crate) fn seen_by(&self, party: PartyId) -> Vec<Arc<OpenQuestion>> {
        let state = lock(&self.state);
        let seen = state.open.iter().filter(|it| it.audience.includes(party));
        seen.map(|it| Arc::clone(&it.question)).collect()
    }

    /// How many ended so far.
    pub(crate) fn ended(&self) -> QuestionCounts {
        lock(&self.state).ended
    }

    /// Told of every change; the number means nothing.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Follows what one attachment sees.
    pub(crate) fn watched_by(self: &Arc<Self>, party: PartyId) -> QuestionWatch {
        // Before looking: what comes in between is a change then.
        let changes = self.changes();
        QuestionWatch {
            shown: self.seen_by(party),
            book: Arc::clone(self),
            party,
            changes,
        }
    }

    /// Answers a question, once.
    pub(crate) fn answer(
        &self,
        id: &QuestionId,
        answer: QuestionAnswer,
        by: PartyId,
    ) -> Result<(), AnswerError> {
        let question = self.answerable(id, by)?;
        // Without the lock: a form may take its time to be checked.
        if let Some(why) = question.kind.objection(&answer) {
            let id = id.clone();
            return Err(AnswerError::Unfit { id, why });
        }
        let closed = lock(&self.state).close(id, QuestionEnd::Answered);
        let Some(entry) = closed else {
            // Another was quicker, or it has ended meanwhile.
            return self.answerable(id, by).map(drop);
        };
        self.tell(QuestionNews::Closed(&entry.question, QuestionEnd::Answered));
        // Whoever asked may have gone this very moment: it was answered all the same.
        let _ = entry.answer.send(answer);
        Ok(())
    }

    /// The ids of questions that begin so, open or closed, as far as this attachment saw them: the
    /// open ones, else those that were closed and are remembered.
    pub(crate) fn beginning(&self, with: &str, party: PartyId) -> Vec<QuestionId> {
        let is_it = |id: &QuestionId, audience: Audience| {
            id.as_str().starts_with(with) && audience.includes(party)
        };
        let state = lock(&self.state);
        let open = state.open.iter();
        let open = open.filter(|it| is_it(&it.question.id, it.audience));
        let found: Vec<QuestionId> = open.map(|it| it.question.id.clone()).collect();
        if !found.is_empty() {
            return found;
        }
        let closed = state.closed.iter();
        let closed = closed.filter(|it| is_it(&it.id, it.audience));
        closed.map(|it| it.id.clone()).collect()
    }

    /// The question, if this attachment may answer it.
    fn answerable(&self, id: &QuestionId, by: PartyId) -> Result<Arc<OpenQuestion>, AnswerError> {
        let state = lock(&self.state);
        if let Some(open) = state.open.iter().find(|it| it.question.id == *id) {
            return if open.audience.includes(by) {
                Ok(Arc::clone(&open.question))
            } else {
                Err(AnswerError::NotYours(id.clone()))
            };
        }
        let closed = state.closed.iter().find(|it| it.id == *id);
        Err(match closed {
            None => AnswerError::Unknown(id.clone()),
            Some(it) if !it.audience.includes(by) => AnswerError::NotYours(id.clone()),
            Some(it) if it.end == QuestionEnd::Answered => AnswerError::AlreadyAnswered(id.clone()),
            Some(_) => AnswerError::Ended(id.clone()),
        })
    }

    /// Opens a question; none where there are too many.
    pub(super) fn open(
        self: &Arc<Self>,
        question: OpenQuestion,
        party: PartyId,
    ) -> Option<PendingAnswer> {
        let (answer, answered) = oneshot::channel();
        let question = Arc::new(question);
        {
            let mut state = lock(&self.state);
            let own = state.open.iter().filter(|it| it.audience.party == party);
            if state.open.len() >= MOST || own.count() >= MOST_OF_ONE {
                return None;
            }
            state.open.push(BookEntry {
                question: Arc::clone(&question),
                audience: Audience {
                    party,
                    askee: question.put_to,
                    is_of_server: question.kind.is_of_server(),
                },
                answer,
            });
        }
        self.tell(QuestionNews::Opened(&question));
        Some(PendingAnswer {
            book: Arc::clone(self),
            id: question.id.clone(),
            answered,
        })
    }

    /// An attachment goes, and its questions with it.
    pub(crate) fn leave(&self, party: PartyId) {
        let of_party: Vec<QuestionId> = {
            let state = lock(&self.state);
            let own = state.open.iter().filter(|it| it.audience.party == party);
            own.map(|it| it.question.id.clone()).collect()
        };
        for id in of_party {
            self.close(&id, QuestionEnd::Withdrawn);
        }
    }

    /// Closes a question; false when it was closed before.
    fn close(&self, id: &QuestionId, end: QuestionEnd) -> bool {
        let closed = lock(&self.state).close(id, end);
        if let Some(entry) = &closed {
            self.tell(QuestionNews::Closed(&entry.question, end));
        }
        closed.is_some()
    }

    fn tell(&self, news: QuestionNews<'_>) {
        if let Some(listener) = &self.listener {
            listener(news);
        }
        self.version.send_modify(|version| *version += 1);
    }
}

/// The asking side of one open question. Dropping it withdraws the question.
pub(super) struct PendingAnswer {
    book: Arc<QuestionBook>,
    id: QuestionId,
    answered: oneshot::Receiver<QuestionAnswer>,
}

impl PendingAnswer {
    /// The answer that somebody gives to the book; none when the question is withdrawn.
    pub(super) async fn answer(&mut self) -> Option<QuestionAnswer> {
        (&mut self.answered).await.ok()
    }

    /// Ends it in another way. An error where it had ended before, with the answer that was
    /// quicker, if it was one.
    pub(super) fn end(mut self, end: QuestionEnd) -> Result<(), Option<QuestionAnswer>> {
        if self.book.close(&self.id, end) {
            Ok(())
        } else {
            Err(self.answered.try_recv().ok())
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.book.close(&self.id, QuestionEnd::Withdrawn);
    }
}

/// Follows the questions that one caller may answer.
pub struct QuestionWatch {
    book: Arc<QuestionBook>,
    party: PartyId,
    changes: watch::Receiver<u64>,
    shown: Vec<Arc<OpenQuestion>>,
}

impl QuestionWatch {
    /// The questions as they were last seen, oldest first.
    pub fn shown(&self) -> &[Arc<OpenQuestion>] {
        &self.shown
    }

    /// Waits until they are others than those last seen. Never resolves once the host is gone.
    pub async fn changed(&mut self) -> &[Arc<OpenQuestion>] {
        loop {
            // Never an error: the book is held.
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let seen = self.book.seen_by(self.party);
            let ids = |questions: &[Arc<OpenQuestion>]| -> Vec<QuestionId> {
                questions.iter().map(|it| it.id.clone()).collect()
            };
            if ids(&seen) != ids(&self.shown) {
                self.shown = seen;
                return &self.shown;
            }
        }
    }
}
