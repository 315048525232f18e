//! The journal: what a server logged and what was said to it, kept on disk for `toolway logs`.
//!
//! Owns one file per server (`<directory>/<server>.log`), the thread that writes them, and what
//! may stand in them: time, process, kind (`stderr`, `→`, `←`, `note`) and text, one line each.
//! Secrets are taken out (`journal/redact.rs`; which values count, `journal/secrets.rs`) and text
//! from servers is cleaned before a line is written, so that a file never steers a terminal.
//! How a file is opened and rotated is `journal/file.rs`, how one is read `journal/read.rs`.
//! Does not own: when something is worth a line.
//!
//! Invariants: no caller ever waits for a disk. A caller copies a bounded piece of a message into
//! a bounded queue; what does not fit is dropped, counted, and said in the file. A disk that is
//! full or a directory that cannot be written costs one warning and nothing else.

mod file;
mod line;
mod lines;
mod message;
mod read;
mod redact;
mod secrets;
mod tail;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use toolway_types::{Secret, ServerName, Untrusted};
use tracing::warn;

use message::MessagePiece;

use crate::lock::lock;
pub(crate) use redact::Redactor;

pub use file::JournalName;
pub(crate) use file::{LogFile, file_stem};
pub use line::{JournalLine, JournalLineKind, timestamp};
pub use lines::LineFollower;
pub(crate) use lines::last;
pub use read::{logged_servers, read_last};
pub use secrets::{secrets_of, secrets_of_process};

/// How many lines may wait to be written, and how many bytes they may hold together.
const QUEUE_LINES: usize = 1024;
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// What is shown of a message; the rest is only counted.
const SHOWN_OF_A_MESSAGE: usize = 2 * 1024;

/// What is shown of a line that a server logged or of a note.
const SHOWN_OF_A_LINE: usize = 8 * 1024;

/// A piece of stderr this long is the beginning of a line that goes on in the next.
const FULL_PIECE: usize = 8 * 1024;

/// How long a flush waits for a disk.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// A text without these secrets, however they are spelled, and without what stands behind names and
/// words that speak of one.
pub fn without_secrets(text: &str, secrets: &[Secret]) -> String {
    Redactor::new(secrets).text(text)
}

/// Where the journals of all servers are kept. A cheap handle.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<JournalShared>,
    /// Whether messages are traced. What servers log, and notes, always are.
    trace: bool,
    listener: Option<LineListener>,
}

/// Hears every line that a server logs, and every note, as it is written. It must not block.
pub(crate) type LineListener = Arc<dyn Fn(&ServerName, &str) + Send + Sync>;

struct JournalShared {
    directory: PathBuf,
    /// The way to the thread, started by the first line; absent when it could not be.
    queue: OnceLock<Option<SyncSender<JournalOrder>>>,
    /// Bytes that wait in the queue.
    waiting: Arc<AtomicUsize>,
    warned: Arc<AtomicBool>,
}

impl Journal {
    /// Journals below a directory, which is made when the first line is written.
    pub fn in_directory(directory: PathBuf) -> Journal {
        Journal {
            shared: Arc::new(JournalShared {
                directory,
                queue: OnceLock::new(),
                waiting: Arc::default(),
                warned: Arc::default(),
            }),
            trace: true,
            listener: None,
        }
    }

    /// The same journals without the messages: only what servers log, and notes.
    #[must_use]
    pub fn without_messages(mut self) -> Journal {
        self.trace = false;
        self
    }

    /// The same journals; what is written by way of this handle is told, but for messages.
    pub(crate) fn told_to(&self, listener: LineListener) -> Journal {
        Journal {
            listener: Some(listener),
            ..self.clone()
        }
    }

    /// Where the files are.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// The journal of one server. None of `secrets` will stand in it; [`secrets_of`] says which
    /// values of a definition these are.
    pub fn open(&self, name: impl Into<JournalName>, secrets: Vec<Secret>) -> JournalWriter {
        let name = name.into();
        JournalWriter {
            shared: Arc::clone(&self.shared),
            trace: self.trace,
            sink: Arc::new(ServerSink {
                server: name.server().clone(),
                redactor: RwLock::new(Arc::new(Redactor::new(&secrets))),
                secrets: Mutex::new(secrets),
                dropped: AtomicU64::new(0),
                listener: self.listener.clone(),
                page: Mutex::new(OpenJournal {
                    file: LogFile::new(self.shared.directory.clone(), name.file()),
                    continued: false,
                }),
            }),
        }
    }

    /// Waits until what was said so far is written, at most a second: a program that is about to
    /// exit calls it.
    pub async fn flush(&self) {
        let Some(Some(queue)) = self.shared.queue.get() else {
            return;
        };
        let (done, written) = oneshot::channel();
        let mut order = JournalOrder::Flush(done);
        let asked = async {
            while let Err(TrySendError::Full(back)) = queue.try_send(order) {
                order = back;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // An error is a thread that is gone, and then nothing is left to wait for.
            let _ = written.await;
        };
        if tokio::time::timeout(FLUSH_PATIENCE, asked).await.is_err() {
            warn!("the journal could not be written in time");
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("directory", &self.shared.directory)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}

/// Writes one server's journal. A cheap handle; no method ever waits.
#[derive(Clone)]
pub struct JournalWriter {
    shared: Arc<JournalShared>,
    sink: Arc<ServerSink>,
    trace: bool,
}

impl JournalWriter {
    /// Something about the connection itself, in the course of this attempt.
    pub fn note(&self, attempt: u32, text: &str) {
        self.put(EntryBody::Note(attempt, text.to_owned()));
    }

    /// Something about the server that has nothing to do with an attempt to connect.
    pub(crate) fn remark(&self, text: &str) {
        self.put(EntryBody::Remark(text.to_owned()));
    }

    /// Takes note of headers that are about to be sent and stand in no definition, such as a
    /// helper's: from here on their values are kept back like those of [`secrets_of`].
    pub fn keep_back(&self, headers: &[(String, Secret)]) {
        self.sink.learn(secrets::of_headers(headers));
    }

    /// The same for secrets that a definition names and does not hold.
    pub fn keep_secrets_back(&self, secrets: Vec<Secret>) {
        self.sink.learn(secrets);
    }

    /// What keeps back the secrets that are known by now.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.sink.redactor()
    }

    /// A line the server logged.
    pub fn stderr(&self, line: &Untrusted) {
        let text = line.as_received();
        self.put(EntryBody::Stderr {
            text: text.to_owned(),
            continues: text.len() >= FULL_PIECE,
        });
    }

    /// A message on its way to the server.
    pub fn sent(&self, message: &[u8]) {
        self.message(JournalLineKind::Sent, message);
    }

    /// A message from the server.
    pub fn received(&self, message: &[u8]) {
        self.message(JournalLineKind::Received, message);
    }

    fn message(&self, kind: JournalLineKind, message: &[u8]) {
        if self.trace {
            let piece = MessagePiece::of(message, self.sink.redactor().longest());
            self.put(EntryBody::Message(kind, piece));
        }
    }

    fn put(&self, body: EntryBody) {
        let Some(queue) = self.shared.queue() else {
            return;
        };
        let size = body.size();
        let fits = self.shared.waiting.fetch_add(size, Ordering::Relaxed) + size <= QUEUE_BYTES;
        let entry = JournalEntry {
            sink: Arc::clone(&self.sink),
            at: SystemTime::now(),
            size,
            body,
        };
        if !fits || queue.try_send(JournalOrder::Write(entry)).is_err() {
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            self.sink.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for JournalWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JournalWriter")
            .field("server", &self.sink.server)
            .finish_non_exhaustive()
    }
}

impl JournalShared {
    fn queue(&self) -> Option<&SyncSender<JournalOrder>> {
        self.queue
            .get_or_init(|| {
                let (queue, orders) = sync_channel(QUEUE_LINES);
                let clerk = JournalThread {
                    orders,
                    waiting: Arc::clone(&self.waiting),
                    warned: Arc::clone(&self.warned),
                };
                // A thread, not a task: files block, and the last line is written when the
                // runtime is gone already. It ends with the last handle.
                std::thread::Builder::new()
                    .name("journal".to_owned())
                    .spawn(move || clerk.work())
                    .inspect_err(|error| warn!(%error, "there is no journal"))
                    .ok()
                    .map(|_| queue)
            })
            .as_ref()
    }
}

/// Where one server's lines go.
struct ServerSink {
    server: ServerName,
    redactor: RwLock<Arc<Redactor>>,
    /// What the redactor knows, and learns from.
    secrets: Mutex<Vec<Secret>>,
    /// Lines that did not fit into the queue since this was last said.
    dropped: AtomicU64,
    listener: Option<LineListener>,
    /// Only the thread looks at it; it closes with the last handle.
    page: Mutex<OpenJournal>,
}

impl ServerSink {
    fn redactor(&self) -> Arc<Redactor> {
        // It is replaced as a whole, so a panic elsewhere leaves none half done.
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&redactor)
    }

    fn learn(&self, found: Vec<Secret>) {
        let mut secrets = lock(&self.secrets);
        let known = secrets.len();
        for secret in found {
            if !secrets.contains(&secret) {
                secrets.push(secret);
            }
        }
        if secrets.len() > known {
            let redactor = Arc::new(Redactor::new(&secrets));
            *self
                .redactor
                .write()
                .unwrap_or_else(PoisonError::into_inner) = redactor;
        }
    }
}

struct OpenJournal {
    file: LogFile,
    /// The last piece of stderr was full: what follows is the rest of the same line.
    continued: bool,
}

enum JournalOrder {
    Write(JournalEntry),
    Flush(oneshot::Sender<()>),
}

struct JournalEntry {
    sink: Arc<ServerSink>,
    at: SystemTime,
    size: usize,
    body: EntryBody,
}

enum EntryBody {
    Note(u32, String),
    Remark(String),
    Stderr { text: String, continues: bool },
    Message(JournalLineKind, MessagePiece),
}

impl EntryBody {
    fn size(&self) -> usize {
        match self {
            EntryBody::Note(_, text) | EntryBody::Remark(text) | EntryBody::Stderr { text, .. } => {
                text.len()
            }
            EntryBody::Message(_, piece) => piece.weight(),
        }
    }
}

/// The thread that writes.
struct JournalThread {
    orders: Receiver<JournalOrder>,
    waiting: Arc<AtomicUsize>,
    warned: Arc<AtomicBool>,
}

impl JournalThread {
    fn work(self) {
        while let Ok(order) = self.orders.recv() {
            match order {
                JournalOrder::Write(entry) => {
                    self.waiting.fetch_sub(entry.size, Ordering::Relaxed);
                    self.write(&entry);
                }
                // The caller may have stopped waiting.
                JournalOrder::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&self, entry: &JournalEntry) {
        // A panic elsewhere leaves at worst half a line.
        let mut page = lock(&entry.sink.page);
        let (kind, text) = compose(&entry.body, &entry.sink.redactor(), &mut page.continued);
        let dropped = entry.sink.dropped.swap(0, Ordering::Relaxed);
        let lost = dropped + page.file.take_lost();
        if lost > 0 {
            let text = format!("{lost} lines are missing here: they could not be written in time");
            let line = line::format(entry.at, JournalLineKind::Note, &text);
            self.append(entry, &mut page, &line);
        }
        let line = line::format(entry.at, kind, &text);
        self.append(entry, &mut page, &line);
        if let Some(listener) = &entry.sink.listener
            && matches!(kind, JournalLineKind::Stderr | JournalLineKind::Note)
        {
            listener(&entry.sink.server, &text);
        }
    }

    fn append(&self, entry: &JournalEntry, page: &mut OpenJournal, line: &str) {
        if let Err(error) = page.file.append(line)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            warn!(server = %entry.sink.server, %error, "the journal cannot be written");
        }
    }
}

/// What stands behind time and process: cleaned, without secrets, cut.
fn compose(
    body: &EntryBody,
    redactor: &Redactor,
    continued: &mut bool,
) -> (JournalLineKind, String) {
    match body {
        EntryBody::Note(attempt, text) => {
            let text = shown_line(text, redactor);
            (JournalLineKind::Note, format!("attempt {attempt}: {text}"))
        }
        EntryBody::Remark(text) => (JournalLineKind::Note, shown_line(text, redactor)),
        EntryBody::Stderr { text, continues } => {
            let mut text = text.as_str();
            // A secret may have been cut in two: its beginning ends this piece, or its end
            // begins it.
            if *continues {
                let most = text.len().saturating_sub(redactor.longest());
                text = &text[..text.floor_char_boundary(most)];
            }
            if std::mem::replace(continued, *continues) {
                let skipped = redactor.longest().min(text.len());
                text = &text[text.ceil_char_boundary(skipped)..];
            }
            (JournalLineKind::Stderr, shown_line(text, redactor))
        }
        EntryBody::Message(kind, piece) => (*kind, piece.shown(redactor, SHOWN_OF_A_MESSAGE)),
    }
}

fn shown_line(text: &str, redactor: &Redactor) -> String {
    // Cleaned first: a secret with an invisible character in it is whole again behind cleaning.
    let text = toolway_types::text::clean_line(text);
    let text = redactor.text(&text);
    toolway_types::text::cut(&text, SHOWN_OF_A_LINE).into_owned()
}
