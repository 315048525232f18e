//! What is remembered of a client for whoever looks: what it calls itself, when it was there, and its
//! calls under way.
//!
//! Owns that nothing of a call but its tool is kept. A request costs a lock that nobody else wants.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use toolway::types::{Era, text};
use toolway::{Caller, RawJson, ToolTarget};
use toolway_rows::CallRow;

/// The longest name or version that a client may give itself, in characters.
const MAX_WORD: usize = 100;

/// What is known of one client.
pub(super) struct ClientRecord {
    since: SystemTime,
    began: Instant,
    /// When it last said something, in milliseconds after it came.
    last: AtomicU64,
    calls: AtomicU64,
    said: Mutex<SaidOfItself>,
    running: Mutex<BTreeMap<u64, RunningCall>>,
}

/// What a client says of itself.
#[derive(Default, Clone)]
struct SaidOfItself {
    /// As it wrote it, to know it again.
    raw: Option<RawJson>,
    info: ClientInfo,
    era: Option<Era>,
}

/// A client's name and version, cleaned.
#[derive(Default, Clone, Deserialize)]
pub(super) struct ClientInfo {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
}

struct RunningCall {
    target: ToolTarget,
    began: Instant,
}

impl ClientRecord {
    pub(super) fn new() -> Self {
        Self {
            since: SystemTime::now(),
            began: Instant::now(),
            last: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            said: Mutex::default(),
            running: Mutex::default(),
        }
    }

    fn said(&self) -> MutexGuard<'_, SaidOfItself> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, RunningCall>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It said something.
    pub(super) fn seen(&self) {
        let after = self.began.elapsed().as_millis();
        self.last
            .store(u64::try_from(after).unwrap_or(u64::MAX), Relaxed);
    }

    /// It asked something in this era, and may have said who it is.
    pub(super) fn asked(&self, era: Era, info: Option<&RawJson>) {
        self.seen();
        let mut said = self.said();
        said.era = Some(era);
        let Some(info) = info else { return };
        if said.raw.as_ref().is_some_and(|raw| raw.get() == info.get()) {
            return;
        }
        said.raw = Some(info.detached());
        let read: ClientInfo = serde_json::from_str(info.get()).unwrap_or_default();
        said.info = ClientInfo {
            name: read.name.as_deref().map(word),
            version: read.version.as_deref().map(word),
        };
    }

    /// A call begins; it runs until what is given is dropped.
    pub(super) fn begin(&self, target: ToolTarget) -> CallUnderWay<'_> {
        let number = self.calls.fetch_add(1, Relaxed);
        let began = Instant::now();
        self.running().insert(number, RunningCall { target, began });
        CallUnderWay(self, number)
    }

    /// What it calls itself.
    pub(super) fn info(&self) -> (ClientInfo, Option<Era>) {
        let said = self.said();
        (said.info.clone(), said.era)
    }

    /// When it came, and when it last said something.
    pub(super) fn times(&self) -> (SystemTime, SystemTime) {
        let last = Duration::from_millis(self.last.load(Relaxed));
        (self.since, self.since + last)
    }

    /// How many calls it has made.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// The calls that run, oldest first, with how long they have.
    pub(super) fn rows(&self, caller: &Caller) -> Vec<CallRow> {
        let running = self.running();
        let rows = running.values().map(|call| {
            let (server, tool) = match &call.target {
                ToolTarget::Exposed(name) => (None, name.clone()),
                ToolTarget::Key(key) => (Some(key.server.clone()), key.tool.clone()),
            };
            CallRow {
                id: None,
                server,
                tool,
                caller: caller.into(),
                background: false,
                stage: "running".into(),
                milliseconds: u64::try_from(call.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                progress: None,
                outcome: None,
            }
        });
        rows.collect()
    }
}

/// A call that runs.
pub(super) struct CallUnderWay<'a>(&'a ClientRecord, u64);

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        self.0.running().remove(&self.1);
    }
}

/// A word of a client about itself, for people.
fn word(text: &str) -> String {
    text::cut(&text::clean_line(text), MAX_WORD).into_owned()
}
