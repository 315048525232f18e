//! What servers log (`notifications/message`), and who hears it.
//!
//! Owns who listens to which server, from which level on, and the queue of each listener. What a
//! server says while it works for one caller is that caller's; what belongs to no request is for
//! all who listen. Whose it is is found out by the session (`session/correlator/reader.rs`); that
//! the server is told which levels are wanted is `connection/log_level.rs`'s.
//!
//! Invariant: putting a message into a queue never waits. A slow reader loses the oldest, and
//! hears how many.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use toolway_types::Budget;

use super::caller_side::{CallerSide, RequestOrigin};
use super::log_message::{LogLevel, LogMessage};
use super::notices::ServerNotices;
use crate::lock::lock;

/// How much waits for a slow reader.
const WAITING: Budget = Budget::new(1 << 20, 256);

/// What a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogNews {
    /// A message.
    Message(LogMessage),
    /// So many messages before the next one were lost, because nobody read them in time or they
    /// were too large.
    Lost(u64),
}

#[derive(Debug, Default)]
struct LogQueue {
    waiting: Mutex<WaitingLogs>,
    news: Notify,
}

#[derive(Debug, Default)]
struct WaitingLogs {
    messages: VecDeque<LogMessage>,
    bytes: usize,
    lost: u64,
}

impl LogQueue {
    fn put(&self, message: &LogMessage) {
        let mut waiting = lock(&self.waiting);
        let size = message.raw.len();
        while !waiting.messages.is_empty()
            && (waiting.messages.len() >= WAITING.items || waiting.bytes + size > WAITING.bytes)
        {
            if let Some(oldest) = waiting.messages.pop_front() {
                waiting.bytes -= oldest.raw.len();
                waiting.lost += 1;
            }
        }
        if size > WAITING.bytes {
            waiting.lost += 1;
        } else {
            waiting.bytes += size;
            waiting.messages.push_back(message.clone());
        }
        drop(waiting);
        self.news.notify_one();
    }

    fn take(&self) -> Option<LogNews> {
        let mut waiting = lock(&self.waiting);
        if waiting.lost > 0 {
            return Some(LogNews::Lost(std::mem::take(&mut waiting.lost)));
        }
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.raw.len();
        Some(LogNews::Message(message))
    }
}

/// Who listens to one server.
#[derive(Debug, Clone)]
struct LogListener {
    caller: Arc<CallerSide>,
    level: LogLevel,
    queue: Arc<LogQueue>,
}

impl LogListener {
    fn hear(&self, message: &LogMessage) {
        if message.level >= self.level {
            self.queue.put(message);
        }
    }
}

/// All who listen to one server, as long as it is defined as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerLogs {
    listeners: Arc<watch::Sender<Vec<LogListener>>>,
    /// The level that a legacy server was last told.
    told: Arc<watch::Sender<Option<LogLevel>>>,
    /// What it says beside.
    pub(crate) notices: ServerNotices,
}

impl ServerLogs {
    /// Listens, for as long as what is returned is held.
    pub(crate) fn listen(&self, caller: &Arc<CallerSide>, level: LogLevel) -> LogStream {
        let queue = Arc::<LogQueue>::default();
        let listener = LogListener {
            caller: Arc::clone(caller),
            level,
            queue: Arc::clone(&queue),
        };
        self.listeners
            .send_modify(|listeners| listeners.push(listener));
        LogStream {
            server: self.clone(),
            queue,
        }
    }

    /// The most talkative level that anybody wants, and every change of it.
    pub(crate) fn watch(&self) -> WantedLevel {
        WantedLevel(self.listeners.subscribe())
    }

    /// A legacy server was told this level, or is a new one that was told nothing yet.
    pub(crate) fn note_told(&self, level: Option<LogLevel>) {
        self.told.send_replace(level);
    }

    /// The level that requests of a caller ask for.
    pub(crate) fn level_of(&self, origin: &RequestOrigin) -> Option<LogLevel> {
        let own = origin.logs().map(|sink| sink.level);
        let listeners = self.listeners.borrow();
        let listened = listeners.iter();
        let listened = listened.filter(|it| Arc::ptr_eq(&it.caller, &origin.caller));
        listened.map(|it| it.level).chain(own).min()
    }

    /// Gives a message that belongs to no request to all who listen.
    pub(crate) fn tell_all(&self, message: &LogMessage) {
        for listener in self.listeners.borrow().iter() {
            listener.hear(message);
        }
    }

    /// Gives a message to the caller of these requests, one of which it belongs to.
    pub(crate) fn tell_caller(&self, requests: &[Arc<RequestOrigin>], message: &LogMessage) {
        let Some(first) = requests.first() else {
            return;
        };
        if let Some(sink) = requests.iter().find_map(|request| request.logs()) {
            if message.level >= sink.level {
                (sink.sink)(message.clone());
            }
            return;
        }
        for listener in self.listeners.borrow().iter() {
            if Arc::ptr_eq(&listener.caller, &first.caller) {
                listener.hear(message);
            }
        }
    }
}

/// The most talkative level that anybody wants.
pub(crate) struct WantedLevel(watch::Receiver<Vec<LogListener>>);

impl WantedLevel {
    /// The level now; nothing where nobody listens.
    pub(crate) fn now(&mut self) -> Option<LogLevel> {
        let listeners = self.0.borrow_and_update();
        listeners.iter().map(|it| it.level).min()
    }

    /// Waits until somebody wants something else; false when nobody can any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// What one caller hears of one server's log: what is said while its own requests are worked on,
/// and what belongs to nobody's. Dropping it ends that.
#[derive(Debug)]
pub struct LogStream {
    server: ServerLogs,
    queue: Arc<LogQueue>,
}

impl LogStream {
    /// Waits for the next message.
    pub async fn next(&mut self) -> LogNews {
        loop {
            if let Some(news) = self.queue.take() {
                return news;
            }
            self.queue.news.notified().await;
        }
    }

    /// Whether it is of this log.
    pub(crate) fn is_of(&self, logs: &ServerLogs) -> bool {
        Arc::ptr_eq(&self.server.listeners, &logs.listeners)
    }

    /// Waits until a legacy server has been told that this much is wanted. Servers that take no
    /// level are never told any.
    pub async fn heeded(&self, level: LogLevel) {
        let mut told = self.server.told.subscribe();
        let includes = |told: &Option<LogLevel>| told.is_some_and(|told| told <= level);
        // It is there as long as this is.
        let _ = told.wait_for(includes).await;
    }

    /// Listens from another level on.
    pub fn set_level(&self, level: LogLevel) {
        self.server.listeners.send_if_modified(|listeners| {
            let own = |it: &&mut LogListener| Arc::ptr_eq(&it.queue, &self.queue);
            match listeners.iter_mut().find(own) {
                Some(own) if own.level != level => {
                    own.level = level;
                    true
                }
                _ => false,
            }
        });
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        self.server.listeners.send_modify(|listeners| {
            listeners.retain(|it| !Arc::ptr_eq(&it.queue, &self.queue));
        });
    }
}

#[cfg(test)]
mod tests {
    use toolway_types::ServerName;
    use toolway_wire::RawJson;

    use super::*;

    fn message(level: LogLevel, data: &str) -> LogMessage {
        let raw = format!(r#"{{"level":"{level}","data":"{data}"}}"#);
        let raw = RawJson::read(&raw.into()).expect("JSON");
        let server = ServerName::new("s").expect("a name");
        LogMessage::read(&server, raw).expect("a message")
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_and_hears_how_many() {
        let server = ServerLogs::default();
        let caller = Arc::<CallerSide>::default();
        let mut stream = server.listen(&caller, LogLevel::Info);
        server.tell_all(&message(LogLevel::Debug, "too quiet"));
        for number in 0..WAITING.items + 3 {
            server.tell_all(&message(LogLevel::Info, &number.to_string()));
        }
        assert_eq!(stream.next().await, LogNews::Lost(3));
        let first = LogNews::Message(message(LogLevel::Info, "3"));
        assert_eq!(stream.next().await, first);
        let huge = "x".repeat(WAITING.bytes);
        server.tell_all(&message(LogLevel::Alert, &huge));
        let lost = u64::try_from(WAITING.items).expect("a number");
        assert_eq!(stream.next().await, LogNews::Lost(lost));
    }

    #[tokio::test]
    async fn the_most_talkative_level_is_wanted_as_long_as_somebody_wants_it() {
        let server = ServerLogs::default();
        let caller = Arc::<CallerSide>::default();
        let mut wanted = server.watch();
        assert_eq!(wanted.now(), None);
        let quiet = server.listen(&caller, LogLevel::Error);
        let loud = server.listen(&caller, LogLevel::Debug);
        assert_eq!(wanted.now(), Some(LogLevel::Debug));
        drop(loud);
        assert!(wanted.changed().await);
        assert_eq!(wanted.now(), Some(LogLevel::Error));
        quiet.set_level(LogLevel::Notice);
        assert_eq!(wanted.now(), Some(LogLevel::Notice));
    }
}
