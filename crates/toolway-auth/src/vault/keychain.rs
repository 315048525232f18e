//! The keychain of the system, asked on a thread of its own so that it cannot block a caller.
//!
//! Owns that thread, the time it has and what is said when it fails. On Linux it is the Secret
//! Service on the session's bus (the kernel's own keys do not outlive a restart). A locked keychain
//! is never asked, because that would open a window that the user did not ask for. While the thread
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
use self::linux::SecretServiceKeychain as OpenKeychain;
#[cfg(not(target_os = "linux"))]
use self::native::NativeKeychain as OpenKeychain;
use super::VaultKey;

/// What our secrets are filed under.
const SERVICE: &str = "toolway";

/// How long one request may take, once it has answered at all.
const REQUEST: Duration = Duration::from_secs(10);

/// Why the keychain cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeychainError {
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
const RETRY_DELAY: Duration = Duration::from_secs(30);

type KeychainJob = Box<dyn FnOnce(&mut KeychainConnection) + Send>;

/// What the thread has: an open keychain, or why there is none and when that was found.
struct KeychainConnection {
    state: Result<OpenKeychain, KeychainError>,
    tried_at: std::time::Instant,
}

impl KeychainConnection {
    fn new() -> Self {
        Self {
            state: OpenKeychain::new(),
            tried_at: std::time::Instant::now(),
        }
    }

    /// The keychain, unlocked.
    fn unlocked(&mut self) -> Result<&OpenKeychain, KeychainError> {
        let again = match &self.state {
            Ok(open) => open.require_unlocked().is_err(),
            Err(KeychainError::Locked) => true,
            Err(_) => self.tried_at.elapsed() > RETRY_DELAY,
        };
        if again {
            // Unlocked by now, or started again, or gone.
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
    line: OnceLock<KeychainThread>,
}

/// The line to the thread.
struct KeychainThread {
    jobs: mpsc::Sender<KeychainJob>,
    /// It has answered, whatever the answer.
    answered: watch::Receiver<bool>,
    /// When the first answer is due.
    due: Instant,
    hangs: Arc<AtomicBool>,
}

impl KeychainThread {
    /// Starts asking, and returns.
    fn open(probe: Duration) -> Self {
        let (jobs, inbox) = mpsc::channel::<KeychainJob>();
        let (outcome, answered) = watch::channel(false);
        let work = move || {
            let mut connection = KeychainConnection::new();
            outcome.send_replace(true);
            for job in inbox {
                job(&mut connection);
            }
        };
        // Not a task: it may hang forever, and nothing must wait for it then.
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
    pub(super) async fn ready(&self) -> Result<(), KeychainError> {
        self.ask(|_| Ok(())).await
    }

    pub(super) async fn read(&self, key: &VaultKey) -> Result<Option<Secret>, KeychainError> {
        let key = key.clone();
        self.ask(move |open| open.read(&key)).await
    }

    pub(super) async fn write(&self, key: &VaultKey, secret: &Secret) -> Result<(), KeychainError> {
        let (key, secret) = (key.clone(), secret.clone());
        self.ask(move |open| open.write(&key, &secret)).await
    }

    pub(super) async fn remove(&self, key: &VaultKey) -> Result<(), KeychainError> {
        let key = key.clone();
        self.ask(move |open| open.remove(&key)).await
    }

    /// Has the thread do something with the open keychain. Waits for the first answer as long as
    /// that may take, counted from the first asking.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenKeychain) -> Result<T, KeychainError> + Send + 'static,
    ) -> Result<T, KeychainError> {
        let line = self.line.get_or_init(|| KeychainThread::open(self.probe));
        let mut first = line.answered.clone();
        let first = timeout_at(line.due, first.wait_for(|has| *has)).await;
        let has_answered = matches!(first, Ok(Ok(_)));
        drop(first);
        if !has_answered || line.hangs.load(Ordering::Acquire) {
            return Err(KeychainError::Silent);
        }
        let (answer, answered) = oneshot::channel();
        let hangs = Arc::clone(&line.hangs);
        let job: KeychainJob = Box::new(move |connection| {
            let done = connection.unlocked().and_then(work);
            hangs.store(false, Ordering::Release);
            // The caller may have given up.
            let _ = answer.send(done);
        });
        if line.jobs.send(job).is_err() {
            return Err(KeychainError::Silent);
        }
        match timeout(REQUEST, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(KeychainError::Silent),
            Err(_) => {
                line.hangs.store(true, Ordering::Release);
                Err(KeychainError::Silent)
            }
        }
    }
}

fn absent(error: &impl ToString) -> KeychainError {
    KeychainError::Absent {
        why: error.to_string(),
    }
}

fn no_text() -> KeychainError {
    KeychainError::Refused {
        why: "what it holds is no text".to_owned(),
    }
}
