//! One stream of a session that a client can come back to.
//!
//! Owns the events that were sent on it, as many as there is room for, and who reads it now. What
//! was not sent yet waits in its outlet. A stream belongs to one request, or to what is said
//! unasked; coming back to one never gives events of another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::time::Instant;

use crate::http::events::{self, EventSource};
use crate::outlet::Outlet;

/// How many events of one stream are kept.
const MAX_KEPT: usize = 256;

/// The room for kept events, of one session within that of all.
#[derive(Debug)]
pub(super) struct KeptRoom {
    pub(super) used: AtomicUsize,
    pub(super) limit: usize,
    pub(super) all: Option<Arc<KeptRoom>>,
}

impl KeptRoom {
    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        if let Some(all) = &self.all {
            all.add(bytes);
        }
    }

    fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(all) = &self.all {
            all.remove(bytes);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.used.load(Ordering::Acquire) > self.limit
            || self.all.as_ref().is_some_and(|all| all.is_over())
    }
}

/// A stream.
#[derive(Debug)]
pub(super) struct ReplayStream {
    /// Which one of its session.
    pub(super) number: u64,
    outlet: Outlet,
    room: Arc<KeptRoom>,
    state: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    kept: VecDeque<KeptEvent>,
    /// The number of the newest event; the first is 1.
    newest: u64,
    /// Up to which event the reader has them.
    sent: u64,
    /// Counts readers: only the last one reads.
    turn: u64,
    has_reader: bool,
    waker: Option<Waker>,
    /// Nothing is added any more.
    ended: Option<Instant>,
}

#[derive(Debug)]
struct KeptEvent {
    number: u64,
    bytes: usize,
    texts: VecDeque<Bytes>,
}

/// Why nobody can read a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum NoReplay {
    /// Somebody reads it already.
    Taken,
    /// There was no such event.
    Unknown,
}

impl ReplayStream {
    pub(super) fn new(number: u64, outlet: Outlet, room: Arc<KeptRoom>) -> Arc<Self> {
        Arc::new(Self {
            number,
            outlet,
            room,
            state: Mutex::default(),
        })
    }

    /// Reads what comes from now on, if nobody else does.
    pub(super) fn read(self: &Arc<Self>, is_primed: bool) -> Result<ReplayReader, NoReplay> {
        let mut state = self.state();
        if state.has_reader {
            return Err(NoReplay::Taken);
        }
        Ok(self.newcomer(&mut state, is_primed))
    }

    /// The same where nobody else can.
    pub(super) fn read_first(self: &Arc<Self>, is_primed: bool) -> ReplayReader {
        self.newcomer(&mut self.state(), is_primed)
    }

    fn newcomer(self: &Arc<Self>, state: &mut ReplayState, is_primed: bool) -> ReplayReader {
        let newest = state.newest;
        let opening = is_primed.then(|| events::priming(&self.event_id(newest)));
        self.reader(state, newest, opening)
    }

    /// Reads what came after an event. Whoever read until now has lost its connection, or will be
    /// told that it has.
    pub(super) fn resume(self: &Arc<Self>, after: u64) -> Result<ReplayReader, NoReplay> {
        let mut state = self.state();
        if after > state.newest {
            return Err(NoReplay::Unknown);
        }
        let reader = self.reader(&mut state, after, None);
        wake(state);
        Ok(reader)
    }

    fn reader(
        self: &Arc<Self>,
        state: &mut ReplayState,
        after: u64,
        opening: Option<Bytes>,
    ) -> ReplayReader {
        state.turn += 1;
        state.has_reader = true;
        state.sent = after;
        ReplayReader {
            stream: Arc::clone(self),
            turn: state.turn,
            opening,
        }
    }

    /// The last word was said: `parts` are its message.
    pub(super) fn finish(&self, parts: &[Bytes]) {
        let mut state = self.state();
        if state.ended.is_some() {
            return;
        }
        while let Some(message) = self.outlet.try_next() {
            self.keep(&mut state, &[message]);
        }
        self.keep(&mut state, parts);
        self.close(state);
    }

    /// There is no last word.
    pub(super) fn end(&self) {
        let state = self.state();
        if state.ended.is_none() {
            self.close(state);
        }
    }

    fn close(&self, mut state: MutexGuard<'_, ReplayState>) {
        state.ended = Some(Instant::now());
        self.outlet.close();
        self.trim(&mut state);
        wake(state);
    }

    /// Whether somebody reads.
    pub(super) fn has_reader(&self) -> bool {
        self.state().has_reader
    }

    /// Since when nothing is added, where nobody reads the rest.
    pub(super) fn ended(&self) -> Option<Instant> {
        let state = self.state();
        state.ended.filter(|_| !state.has_reader)
    }

    fn event_id(&self, number: u64) -> String {
        format!("{}-{number}", self.number)
    }

    fn keep(&self, state: &mut ReplayState, parts: &[Bytes]) {
        state.newest += 1;
        let mut texts = VecDeque::new();
        let id = self.event_id(state.newest);
        match parts {
            [message] => texts.push_back(events::message(Some(&id), message)),
            parts => events::message_of_parts(Some(&id), parts, &mut texts),
        }
        let bytes = texts.iter().map(Bytes::len).sum();
        self.room.add(bytes);
        state.kept.push_back(KeptEvent {
            number: state.newest,
            bytes,
            texts,
        });
    }

    /// Forgets the oldest events where there are too many; those that a reader has still to get
    /// stay.
    fn trim(&self, state: &mut ReplayState) {
        while state.kept.len() > MAX_KEPT || self.room.is_over() {
            let is_due = |event: &KeptEvent| state.has_reader && event.number > state.sent;
            if state.kept.front().is_none_or(is_due) {
                break;
            }
            if let Some(event) = state.kept.pop_front() {
                self.room.remove(event.bytes);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReplayStream {
    fn drop(&mut self) {
        self.outlet.close();
        for event in &self.state().kept {
            self.room.remove(event.bytes);
        }
    }
}

/// Who reads a stream now.
pub(in crate::http) struct ReplayReader {
    stream: Arc<ReplayStream>,
    turn: u64,
    opening: Option<Bytes>,
}

impl EventSource for ReplayReader {
    fn poll_events(
        &mut self,
        context: &mut Context<'_>,
        ready: &mut VecDeque<Bytes>,
    ) -> Poll<bool> {
        let stream = &self.stream;
        let mut state = stream.state();
        if state.turn != self.turn {
            return Poll::Ready(false);
        }
        let mut has_some = false;
        if let Some(opening) = self.opening.take() {
            ready.push_back(opening);
            has_some = true;
        }
        let sent = state.sent;
        let due = state.kept.partition_point(|event| event.number <= sent);
        for event in state.kept.range(due..) {
            ready.extend(event.texts.iter().cloned());
            has_some = true;
        }
        state.sent = state.newest;
        if !has_some && state.ended.is_none() {
            match stream.outlet.poll_next(context) {
                Poll::Pending => {
                    state.waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
                // Closed, with nothing to say.
                Poll::Ready(None) => {}
                Poll::Ready(Some(message)) => {
                    stream.keep(&mut state, &[message]);
                    if let Some(event) = state.kept.back() {
                        ready.extend(event.texts.iter().cloned());
                    }
                    state.sent = state.newest;
                    has_some = true;
                }
            }
        }
        stream.trim(&mut state);
        Poll::Ready(has_some)
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if state.turn == self.turn {
            state.has_reader = false;
            state.waker = None;
            self.stream.trim(&mut state);
        }
    }
}

/// Wakes the reader, after the lock is given back.
fn wake(mut state: MutexGuard<'_, ReplayState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The stream and the event that an event's id names.
pub(super) fn event_of(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests;
