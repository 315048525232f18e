//! The audit: one line for every call that was asked for, whatever became of it.
//!
//! Owns the file (`<directory>/calls.jsonl`, rotated), the thread that writes it, and that a call
//! whose caller went away is written down too. What stands in a line is `toolway_rows`', how
//! lines are read `audit/read.rs`. Does not own who may call what.
//!
//! The caller only hands over what it knows; wording, serialising and writing are the thread's,
//! which collects for a moment what many calls in a row leave (`DOZE`), because to be woken for
//! each would cost the caller more than the call.
//!
//! Invariants: no call is left out because many are made at once, the caller waits instead. No
//! argument and no result stands in a line unless the embedding program asked for it. A disk that
//! is full costs lines, which are counted and said in the file, and never a call.

mod facts;
mod line;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolway_wire::RawJson;
use tracing::warn;

use self::facts::CallFacts;
use self::line::LineWriter;
use crate::call::{CallError, CallerSide, PermittedBy, ToolArguments, ToolOutcome, ToolRequest};
use crate::catalog::CatalogTool;
use crate::journal::{LogFile, timestamp};
use crate::pins::Difference;
use crate::tasks;

pub use crate::journal::LineFollower;
pub use read::read_last;
pub use toolway_rows::{
    ActingHook, AuditLine, CallEnd, CallRecord, DecidedBy, RecordedCaller, RecordedClassification,
    RecordedDecision,
};

/// The name of the file in its directory.
const FILE: &str = "calls.jsonl";

/// A file that is larger becomes the old one: about a hundred thousand calls.
const ROTATE_AT: u64 = 32 * 1024 * 1024;

/// Larger arguments and results are not written down, though they were asked for.
const MAX_KEPT: usize = 64 * 1024;

/// How many lines may wait to be written before callers wait.
const QUEUE_LINES: usize = 1024;

/// How long the thread lets lines gather before it looks again. A flush and a full queue wake it.
const DOZE: Duration = Duration::from_millis(2);

/// So many bytes are written at once, and a line more.
const WRITE_AT_ONCE: usize = 64 * 1024;

/// How long a flush waits for a disk.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Where calls are written down. A cheap handle.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<AuditShared>,
    arguments: bool,
    results: bool,
}

struct AuditShared {
    directory: PathBuf,
    /// The way to the thread, started by the first line; absent when it could not be.
    queue: OnceLock<Option<AuditQueue>>,
    /// Calls whose callers went away while the queue was full.
    lost: Arc<AtomicU64>,
    trouble: Arc<FirstWriteError>,
}

/// What first kept a line from being written, once something did.
type FirstWriteError = OnceLock<(ErrorKind, String)>;

struct AuditQueue {
    orders: SyncSender<AuditOrder>,
    clerk: Thread,
}

enum AuditOrder {
    Write(Box<CallFacts>),
    Flush(oneshot::Sender<()>),
}

impl Audit {
    /// Writes below a directory, which is made with the first line.
    pub fn in_directory(directory: PathBuf) -> Audit {
        Audit {
            shared: Arc::new(AuditShared {
                directory,
                queue: OnceLock::new(),
                lost: Arc::default(),
                trouble: Arc::default(),
            }),
            arguments: false,
            results: false,
        }
    }

    /// The same with the arguments of every call, as they were sent, or as they were asked for
    /// where nothing was; of more than 64 KiB only the size is written down.
    #[must_use]
    pub fn with_arguments(mut self) -> Audit {
        self.arguments = true;
        self
    }

    /// The same with every result, as its server sent it, up to the same size.
    #[must_use]
    pub fn with_results(mut self) -> Audit {
        self.results = true;
        self
    }

    /// Where the file is.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// What first kept a call from being written down, where something did. Calls go on all the
    /// same, so a program should tell a person of it.
    pub fn trouble(&self) -> Option<io::Error> {
        let (kind, message) = self.shared.trouble.get()?;
        Some(io::Error::new(*kind, message.clone()))
    }

    /// Waits until every call that ended is written down, at most a second: a program that is
    /// about to exit calls it. [`Host::shutdown`](crate::Host::shutdown) does.
    pub async fn flush(&self) {
        let Some(Some(queue)) = self.shared.queue.get() else {
            return;
        };
        let (done, written) = oneshot::channel();
        let asked = async {
            queue.put(AuditOrder::Flush(done)).await;
            queue.clerk.unpark();
            // An error is a thread that is gone, and then nothing is left to wait for.
            let _ = written.await;
        };
        if tokio::time::timeout(FLUSH_PATIENCE, asked).await.is_err() {
            warn!("the audit could not be written in time");
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Audit")
            .field("directory", &self.shared.directory)
            .field("arguments", &self.arguments)
            .field("results", &self.results)
            .finish_non_exhaustive()
    }
}

/// The line of one call under way. Dropped before it is finished, it says that the caller went
/// away.
pub struct AuditEntry(Option<OpenAuditEntry>);

struct OpenAuditEntry {
    audit: Audit,
    begun: Instant,
    facts: Box<CallFacts>,
}

impl AuditEntry {
    /// The line of a call that begins now; nothing is written where there is no audit.
    pub(crate) fn begin(audit: Option<&Audit>, request: &ToolRequest, caller: &CallerSide) -> Self {
        Self(audit.map(|audit| OpenAuditEntry {
            audit: audit.clone(),
            begun: Instant::now(),
            facts: Box::new(CallFacts::of(request, caller.caller.clone())),
        }))
    }

    /// The call may end before anything is sent, or wait for long: these are the arguments that
    /// were asked for. Only the first ones count, and only until some are sent.
    /// What they were read from, where they came as bytes, is what is written down.
    pub(crate) fn asked(&mut self, arguments: &Map<String, Value>, raw: Option<&RawJson>) {
        if let Some(open) = &mut self.0
            && open.facts.sent.is_none()
        {
            match raw {
                Some(raw) => open.facts.sent(raw.get(), open.audit.arguments),
                None => open.facts.asked(arguments, open.audit.arguments),
            }
        }
    }

    /// The same before anything was read.
    pub(crate) fn awaited(&mut self, arguments: &ToolArguments) {
        match arguments {
            ToolArguments::Parsed(arguments) => self.asked(arguments, None),
            ToolArguments::Raw(raw) => self.asked(&Map::new(), Some(raw)),
        }
    }

    /// These arguments go to the server.
    pub(crate) fn sent<'a>(&mut self, arguments: impl FnOnce() -> &'a str) {
        if let Some(open) = &mut self.0 {
            open.facts.sent(arguments(), open.audit.arguments);
        }
    }

    fn note(&mut self, known: impl FnOnce(&mut CallFacts)) {
        if let Some(open) = &mut self.0 {
            known(&mut open.facts);
        }
    }

    /// A hook wrote the arguments.
    pub(crate) fn rewritten(&mut self, by: ActingHook) {
        self.note(|facts| facts.rewritten_by = Some(Box::new(by)));
    }

    /// A hook put something in the place of the result.
    pub(crate) fn replaced(&mut self, by: ActingHook) {
        self.note(|facts| facts.replaced_by = Some(Box::new(by)));
    }

    /// The tool is known from here on.
    pub(crate) fn resolved(&mut self, tool: &CatalogTool) {
        self.note(|facts| facts.resolved(tool));
    }

    /// The tool is not defined any more as it was when it was permitted.
    pub(crate) fn changed(&mut self, difference: &Difference) {
        self.note(|facts| facts.changed = Some(difference.lines.clone()));
    }

    /// The classifier was asked.
    pub(crate) fn classified(&mut self, classified: RecordedClassification) {
        self.note(|facts| facts.classified = Some(Box::new(classified)));
    }

    /// The call may run.
    pub(crate) fn granted(&mut self, grant: &PermittedBy) {
        self.note(|facts| facts.granted = Some(grant.clone()));
    }

    /// The call ended.
    pub(crate) async fn finish(self, outcome: &Result<ToolOutcome, CallError>) {
        let outcome = outcome.as_ref();
        self.ended(outcome.map(|outcome| (&outcome.raw, outcome.is_error)))
            .await;
    }

    /// What was asked of a server beside calls came to its end.
    pub(crate) async fn finish_read(self, read: &Result<RawJson, CallError>) {
        self.ended(read.as_ref().map(|raw| (raw, false))).await;
    }

    /// It was judged whether something may be asked of a server.
    pub(crate) async fn finish_judged<T>(self, judged: &Result<T, CallError>) {
        let judged = judged.as_ref();
        let nothing = RawJson::default();
        self.ended(judged.map(|_| (&nothing, false))).await;
    }

    async fn ended(mut self, outcome: Result<(&RawJson, bool), &CallError>) {
        let Some(mut open) = self.0.take() else {
            return;
        };
        let size = outcome.map(|(raw, is_error)| (raw.len(), is_error));
        open.facts.ended(size, open.begun.elapsed());
        if let (true, Ok((raw, _))) = (open.audit.results, outcome)
            && raw.len() <= MAX_KEPT
        {
            open.facts.result = Some(raw.clone());
        }
        if let Some(queue) = open.audit.shared.queue() {
            queue.put(AuditOrder::Write(open.facts)).await;
        }
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        let Some(mut open) = self.0.take() else {
            return;
        };
        open.facts.took = open.begun.elapsed();
        let shared = &open.audit.shared;
        if let Some(queue) = shared.queue() {
            if queue
                .orders
                .try_send(AuditOrder::Write(open.facts))
                .is_err()
            {
                shared.lost.fetch_add(1, Ordering::Relaxed);
            }
            // A drop cannot wait when the queue is full, and many may be dropped at once.
            queue.clerk.unpark();
        }
    }
}

impl AuditQueue {
    /// Hands an order to the thread, waiting where the queue is full.
    async fn put(&self, order: AuditOrder) {
        if let Err(TrySendError::Full(order)) = self.orders.try_send(order) {
            self.clerk.unpark();
            let orders = self.orders.clone();
            // An error is a thread that is gone: it warned when it went.
            let _ = tasks::blocking("audit", move || orders.send(order)).await;
        }
    }
}

impl AuditShared {
    fn queue(&self) -> Option<&AuditQueue> {
        self.queue
            .get_or_init(|| {
                let (orders, received) = sync_channel(QUEUE_LINES);
                let clerk = AuditThread {
                    file: LogFile::new(self.directory.clone(), FILE.to_owned())
                        .rotating_at(ROTATE_AT),
                    lost: Arc::clone(&self.lost),
                    text: Vec::new(),
                    lines: LineWriter::new(),
                    trouble: Arc::clone(&self.trouble),
                };
                // A thread, not a task: files block, and the last line is written when the
                // runtime is gone already. It ends with the last handle.
                std::thread::Builder::new()
                    .name("audit".to_owned())
                    .spawn(move || clerk.work(&received))
                    .inspect_err(|error| note_trouble(&self.trouble, error))
                    .ok()
                    .map(|thread| AuditQueue {
                        orders,
                        clerk: thread.thread().clone(),
                    })
            })
            .as_ref()
    }
}

/// The thread that writes.
struct AuditThread {
    file: LogFile,
    lost: Arc<AtomicU64>,
    /// Lines to be written, each with its end.
    text: Vec<u8>,
    lines: LineWriter,
    trouble: Arc<FirstWriteError>,
}

impl AuditThread {
    fn work(mut self, orders: &Receiver<AuditOrder>) {
        // Sleeps until there is something, writes all there is, and polls for as long as more
        // comes, so that senders need not wake it.
        while let Ok(mut order) = orders.recv() {
            loop {
                self.follow(order);
                order = match orders.try_recv() {
                    Ok(order) => order,
                    Err(TryRecvError::Disconnected) => break,
                    Err(TryRecvError::Empty) => {
                        self.write();
                        std::thread::park_timeout(DOZE);
                        match orders.try_recv() {
                            Ok(order) => order,
                            Err(_) => break,
                        }
                    }
                };
            }
            self.write();
        }
    }

    fn follow(&mut self, order: AuditOrder) {
        match order {
            AuditOrder::Write(facts) => self.add(*facts),
            AuditOrder::Flush(done) => {
                self.write();
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
        }
    }

    /// Puts a line to those that are to be written.
    fn add(&mut self, facts: CallFacts) {
        let before = self.text.len();
        if let Err(error) = self.lines.add(facts, &mut self.text) {
            self.text.truncate(before);
            note_trouble(&self.trouble, &error.into());
        }
        if self.text.len() > WRITE_AT_ONCE {
            self.write();
        }
    }

    /// Writes the lines there are.
    fn write(&mut self) {
        if self.text.is_empty() {
            return;
        }
        self.tell_lost();
        // What was serialised is text.
        let text = std::str::from_utf8(&self.text).unwrap_or_default();
        let written = self.file.append(text);
        self.text.clear();
        if let Err(error) = written {
            note_trouble(&self.trouble, &error);
        }
    }

    /// Says how many lines are missing here, once something can be said.
    fn tell_lost(&mut self) {
        if self.file.rests() {
            return;
        }
        let lost = self.lost.swap(0, Ordering::Relaxed) + self.file.take_lost();
        if lost == 0 {
            return;
        }
        let time = timestamp(SystemTime::now());
        let line = serde_json::to_string(&AuditLine::Lost { time, lost }).unwrap_or_default();
        if let Err(error) = self.file.append(&(line + "\n")) {
            // The file counts this line itself.
            self.lost.fetch_add(lost - 1, Ordering::Relaxed);
            note_trouble(&self.trouble, &error);
        }
    }
}

/// The first trouble is told, and only that.
fn note_trouble(trouble: &FirstWriteError, error: &io::Error) {
    if trouble.set((error.kind(), error.to_string())).is_ok() {
        warn!(%error, "calls cannot be written down");
    }
}
