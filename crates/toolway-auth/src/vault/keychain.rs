//! The keychain of the system, asked in a way that cannot hold anyone up.
//!
//! Owns the thread that talks to it, the time it has and what is said when it fails. On Linux it
//! is the Secret Service on the session's bus, which outlives a restart (the kernel's own keys do
//! not); on macOS the login keychain; on Windows the Credential Manager.
//!
//! Invariants: no request is ever made of a locked keychain, because that would open a window in
//! front of a person who did not ask for it, or wait for one who is not there. While the thread
//! hangs in a request, every other one fails at once.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod native;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use toolway_types::Secret;

#[cfg(target_os = "linux")]
use self::linux::Open;
#[cfg(not(target_os = "linux"))]
use self::native::Open;
use super::Key;

/// What our secrets are filed under.
const SERVICE: &str = "toolway";

/// How long one request may take, once it has answered at all.
const REQUEST: Duration = Duration::from_secs(10);

/// Why the keychain cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeychainTrouble {
    /// There is none.
    #[error("there is no keychain here ({why})")]
    Absent {
        /// What was tried.
        why: String,
    },
    /// There is one, and it is locked.
    #[error(
        "the keychain is locked; unlock it (log in to the desktop, or run `gnome-keyring-daemon --unlock` or your system's counterpart) and try again"
    )]
    Locked,
    /// It does not answer.
    #[error(
        "the keychain does not answer; start it anew, or set TOOLWAY_VAULT=file to do without it"
    )]
    Silent,
    /// It answered that it cannot.
    #[error("the keychain refused: {why}")]
    Refused {
        /// What it said.
        why: String,
    },
    /// It was ruled out.
    #[error("the keychain is not used, because TOOLWAY_VAULT=file says so")]
    NotAllowed,
}

/// How long a keychain that was not there is not looked for again.
const REST: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// What the thread has: an open keychain, or why there is none and when that was found.
struct Connection {
    state: Result<Open, KeychainTrouble>,
    tried_at: std::time::Instant,
}

impl Connection {
    fn new() -> Self {
        Self {
            state: Open::new(),
            tried_at: std::time::Instant::now(),
        }
    }

    /// The keychain, unlocked.
    fn unlocked(&mut self) -> Result<&Open, KeychainTrouble> {
        let again = match &self.state {
            Ok(open) => open.require_unlocked().is_err(),
            Err(KeychainTrouble::Locked) => true,
            Err(_) => self.tried_at.elapsed() > REST,
        };
        if again {
            // Unlocked by now, or started anew, or gone.
            *self = Self::new();
        }
        match &self.state {
            Ok(open) => Ok(open),
            Err(trouble) => Err(trouble.clone()),
        }
    }
}

pub(super) struct Keychain {
    probe: Duration,
    /// Started by the first who asks: most runs of a program need no secret.
    line: OnceLock<Line>,
}

/// The line to the thread.
struct Line {
    jobs: mpsc::Sender<Job>,
    /// It has answered, whatever the answer.
    answered: watch::Receiver<bool>,
    /// When the first answer is due.
    due: Instant,
    hangs: Arc<AtomicBool>,
}

impl Line {
    /// Starts asking, and returns.
    fn open(probe: Duration) -> Self {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (outcome, answered) = watch::channel(false);
        let work = move || {
            let mut connection = Connection::new();
            outcome.send_replace(true);
            for job in inbox {
                job(&mut connection);
            }
        };
        // Not a task: it may hang for ever, and nobody may wait for it then.
        let started = std::thread::Builder::new()
            .name("keychain".to_owned())
            .spawn(work);
        drop(started);
        Self {
            jobs,
            answered,
            due: Instant::now() + probe,
            hangs: Arc::default(),
        }
    }
}

impl Keychain {
    pub(super) fn new(probe: Duration) -> Self {
        Self {
            probe,
            line: OnceLock::new(),
        }
    }

    /// Whether it can be used now.
    pub(super) async fn ready(&self) -> Result<(), KeychainTrouble> {
        self.ask(|_| Ok(())).await
    }

    pub(super) async fn read(&self, key: &Key) -> Result<Option<Secret>, KeychainTrouble> {
        let key = key.clone();
        self.ask(move |open| open.read(&key)).await
    }

    pub(super) async fn write(&self, key: &Key, secret: &Secret) -> Result<(), KeychainTrouble> {
        let (key, secret) = (key.clone(), secret.clone());
        self.ask(move |open| open.write(&key, &secret)).await
    }

    pub(super) async fn remove(&self, key: &Key) -> Result<(), KeychainTrouble> {
        let key = key.clone();
        self.ask(move |open| open.remove(&key)).await
    }

    /// Has the thread do something with the open keychain. Waits for the first answer as long as
    /// that may take, counted from the first asking.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Open) -> Result<T, KeychainTrouble> + Send + 'static,
    ) -> Result<T, KeychainTrouble> {
        let line = self.line.get_or_init(|| Line::open(self.probe));
        let mut first = line.answered.clone();
        let first = timeout_at(line.due, first.wait_for(|has| *has)).await;
        let has_answered = matches!(first, Ok(Ok(_)));
        drop(first);
        if !has_answered || line.hangs.load(Ordering::Acquire) {
            return Err(KeychainTrouble::Silent);
        }
        let (answer, answered) = oneshot::channel();
        let hangs = Arc::clone(&line.hangs);
        let job: Job = Box::new(move |connection| {
            let done = connection.unlocked().and_then(work);
            hangs.store(false, Ordering::Release);
            // Whoever asked may have given up.
            let _ = answer.send(done);
        });
        if line.jobs.send(job).is_err() {
            return Err(KeychainTrouble::Silent);
        }
        match timeout(REQUEST, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(KeychainTrouble::Silent),
            Err(_) => {
                line.hangs.store(true, Ordering::Release);
                Err(KeychainTrouble::Silent)
            }
        }
    }
}

fn absent(error: &impl ToString) -> KeychainTrouble {
    KeychainTrouble::Absent {
        why: error.to_string(),
    }
}

fn no_text() -> KeychainTrouble {
    KeychainTrouble::Refused {
        why: "what it holds is no text".to_owned(),
    }
}
