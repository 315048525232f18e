//! Calls in the background: started, listed, cancelled and collected by their number.
//!
//! Owns the list of them and its bounds. A call runs here as anywhere else; the difference is
//! whose task it is. What a caller did not collect is kept for a while, so that it can come back
//! for it, and not for ever.
//!
//! Invariants: every call ends as collected, cancelled or forgotten, once; cancelling one, or
//! dropping the host, drops its future, which tells the server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolway_types::{Budget, limits};

use super::Attached;
use crate::call::{
    CallError, CallOptions, CallResult, Progress, ToolOutcome, ToolRequest, ToolTarget,
};
use crate::lock::lock;
use crate::tasks::{self, Task};

/// How many calls may run in the background at once.
const MAX_RUNNING: usize = limits::call::BACKGROUND;
/// How much of what ended is kept until it is collected; the newest, however large it is.
const FINISHED: Budget = Budget::new(256 << 20, 100);
/// How long they are kept.
const KEPT_FOR: Duration = limits::call::BACKGROUND_KEPT;

/// The number of a call in the background. No other call of the same caller ever has it, and of
/// another caller's it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u64);

impl fmt::Display for CallId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl CallId {
    /// The number as it was displayed.
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}

/// A call that was started in the background. Dropping it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHandle {
    /// Its number.
    pub id: CallId,
}

/// How far a call in the background is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStage {
    /// It has not ended.
    Running,
    /// It has ended and can be collected.
    Finished,
}

/// One call in the background, as it stands.
#[derive(Debug, Clone)]
pub struct BackgroundCall {
    /// Its number.
    pub id: CallId,
    /// The tool that was asked for.
    pub target: ToolTarget,
    /// How far it is.
    pub stage: CallStage,
    /// How long it has run, or ran.
    pub took: Duration,
    /// The newest word of the server.
    pub progress: Option<Progress>,
}

/// What came of a call that may go to the background.
#[derive(Debug)]
pub enum Called {
    /// It ended in time.
    Finished(Box<ToolOutcome>),
    /// It goes on in the background.
    Background(CallHandle),
}

/// Too many calls run in the background already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{MAX_RUNNING} calls run in the background already: collect or cancel one before another is \
     started"
)]
pub struct TooManyCalls;

/// Why nothing can be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectError {
    /// It is unknown: it never was, was collected, or ended too long ago.
    #[error("no call {0} is known: it was collected already, or ended too long ago")]
    Unknown(CallId),
    /// It was cancelled.
    #[error("call {0} was cancelled")]
    Cancelled(CallId),
}

/// All of one caller's calls in the background.
#[derive(Default)]
pub(super) struct Background {
    list: Arc<Mutex<CallTable>>,
}

#[derive(Default)]
struct CallTable {
    last: u64,
    calls: BTreeMap<CallId, TrackedCall>,
}

struct TrackedCall {
    target: ToolTarget,
    begun: Instant,
    state: watch::Receiver<CallState>,
    progress: watch::Receiver<Option<Progress>>,
    _task: Task<()>,
}

/// Only the newest state counts; collecting takes the outcome out of it.
#[derive(Default)]
enum CallState {
    #[default]
    Running,
    Finished {
        at: Instant,
        /// How many bytes the server answered.
        size: usize,
        outcome: Arc<Mutex<Option<CallResult>>>,
    },
}

impl TrackedCall {
    fn ended(&self) -> Option<Instant> {
        self.finished().map(|(at, _)| at)
    }

    /// When it ended, and how many bytes came of it.
    fn finished(&self) -> Option<(Instant, usize)> {
        match &*self.state.borrow() {
            CallState::Running => None,
            CallState::Finished { at, size, .. } => Some((*at, *size)),
        }
    }
}

impl CallTable {
    /// Forgets what ended too long ago, and the oldest of too many.
    fn prune(&mut self) {
        let now = Instant::now();
        self.calls
            .retain(|_, call| call.ended().is_none_or(|at| now - at < KEPT_FOR));
        let mut ended: Vec<(Instant, CallId, usize)> = self
            .calls
            .iter()
            .filter_map(|(id, call)| call.finished().map(|(at, size)| (at, *id, size)))
            .collect();
        ended.sort_unstable();
        let mut room = FINISHED;
        let mut newest_first = ended.iter().rev();
        // The newest stays in any case: its caller has had no time to come for it.
        if let Some((_, _, size)) = newest_first.next() {
            let _ = room.take((*size).min(room.bytes));
        }
        let too_old = newest_first.skip_while(|(_, _, size)| room.take(*size).is_ok());
        for (_, id, _) in too_old {
            self.calls.remove(id);
        }
    }
}

impl Background {
    /// Cancels all.
    pub(super) fn end(&self) {
        let calls = std::mem::take(&mut lock(&self.list).calls);
        drop(calls);
    }
}

impl Attached {
    /// Starts a call that runs by itself until it ends, is cancelled, or the host goes.
    pub fn start_call(
        &self,
        request: ToolRequest,
        mut options: CallOptions,
    ) -> Result<CallHandle, TooManyCalls> {
        let mut list = lock(&self.background.list);
        list.prune();
        let running = list.calls.values().filter(|call| call.ended().is_none());
        if running.count() >= MAX_RUNNING {
            return Err(TooManyCalls);
        }
        list.last += 1;
        let id = CallId(list.last);
        let (newest, progress) = watch::channel(None);
        let listener = options.progress.take();
        options.progress = Some(Arc::new(move |report: Progress| {
            if let Some(listener) = &listener {
                listener(report.clone());
            }
            newest.send_replace(Some(report));
        }));
        let (finished, state) = watch::channel(CallState::Running);
        let target = request.target.clone();
        let (core, party) = (Arc::clone(&self.core), Arc::clone(&self.party));
        let others = Arc::downgrade(&self.background.list);
        let task = tasks::spawn("background call", async move {
            let outcome = core.call(&party, request, options).await;
            finished.send_replace(CallState::Finished {
                at: Instant::now(),
                size: outcome
                    .as_ref()
                    .map_or(0, |outcome| outcome.raw.get().len()),
                outcome: Arc::new(Mutex::new(Some(outcome))),
            });
            // What it leaves may be too much beside what others left.
            if let Some(list) = others.upgrade() {
                lock(&list).prune();
            }
        });
        let kept = TrackedCall {
            target,
            begun: Instant::now(),
            state,
            progress,
            _task: task,
        };
        list.calls.insert(id, kept);
        Ok(CallHandle { id })
    }

    /// Every call in the background that runs, or that ended and was not collected, in the order
    /// they were started. Of those that ended the newest hundred are kept, for ten minutes, or as
    /// many of those as have 256 MiB together.
    pub fn calls(&self) -> Vec<BackgroundCall> {
        let mut list = lock(&self.background.list);
        list.prune();
        let calls = list.calls.iter().map(|(id, call)| {
            let ended = call.ended();
            BackgroundCall {
                id: *id,
                target: call.target.clone(),
                stage: match ended {
                    None => CallStage::Running,
                    Some(_) => CallStage::Finished,
                },
                took: ended.unwrap_or_else(Instant::now) - call.begun,
                progress: call.progress.borrow().clone(),
            }
        });
        calls.collect()
    }

    /// Cancels a call in the background and tells its server; what ended is forgotten. False when
    /// it is unknown.
    pub fn cancel(&self, id: CallId) -> bool {
        let call = lock(&self.background.list).calls.remove(&id);
        call.is_some()
    }

    /// Waits for a call in the background and takes its outcome, which only one caller gets.
    /// Dropping the future leaves the call as it is.
    pub async fn collect(&self, id: CallId) -> Result<CallResult, CollectError> {
        let state = {
            let mut list = lock(&self.background.list);
            list.prune();
            list.calls.get(&id).map(|call| call.state.clone())
        };
        let mut state = state.ok_or(CollectError::Unknown(id))?;
        let outcome = match state
            .wait_for(|state| matches!(state, CallState::Finished { .. }))
            .await
        {
            Err(_) => None,
            Ok(state) => match &*state {
                CallState::Running => None,
                CallState::Finished { outcome, .. } => Some(Arc::clone(outcome)),
            },
        };
        lock(&self.background.list).calls.remove(&id);
        // Its task was dropped before the end.
        let outcome = outcome.ok_or(CollectError::Cancelled(id))?;
        let taken = lock(&outcome).take();
        taken.ok_or(CollectError::Unknown(id))
    }

    /// Makes a call and waits for it as long as [`CallOptions::background_after`] says, not
    /// counting the time in which a person is being asked something; then it goes on in the
    /// background. Dropping the future before that cancels the call.
    pub async fn call_or_background(
        &self,
        request: ToolRequest,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let finished = |outcome: ToolOutcome| Called::Finished(Box::new(outcome));
        let Some(after) = options.background_after else {
            return self.call(request, options).await.map(finished);
        };
        let Ok(handle) = self.start_call(request.clone(), options.clone()) else {
            // No room in the background: it is waited for like any other.
            return self.call(request, options).await.map(finished);
        };
        let mut waiting = WaitingCaller {
            attached: self,
            id: Some(handle.id),
        };
        let collected = tokio::select! {
            biased;
            collected = self.collect(handle.id) => collected,
            () = self.party.side.attention.unasked(after) => {
                waiting.id = None;
                return Ok(Called::Background(handle));
            }
        };
        waiting.id = None;
        match collected {
            Ok(outcome) => outcome.map(finished),
            // Another caller cancelled it, or took its outcome, by its number.
            Err(_) => Ok(Called::Background(handle)),
        }
    }
}

/// A caller that still waits: when it goes, so does its call.
struct WaitingCaller<'a> {
    attached: &'a Attached,
    id: Option<CallId>,
}

impl Drop for WaitingCaller<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.attached.cancel(id);
        }
    }
}
