//! Locks: one holder of a key at a time, among all processes of a user.
//!
//! Owns the locks. In this process waiters queue at a mutex; the first of them waits for the other
//! processes in the kernel's queue (`flock`), which gives the lock back when its holder dies. A
//! thread in that queue cannot be called back: one whose waiter has given up serves the next waiter
//! of this process, or gives the lock back at once. So there is one thread for each key at most.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::{Instant, timeout_at};
use toolway_files::private_file::{open_directory, open_file};

use super::{VaultError, VaultKey, io_error};

/// How long is waited: a holder makes a request or two, each of which is ended after 10 s.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// Held while a key is worked on.
#[derive(Debug)]
pub struct VaultLockGuard {
    // In this order: others of this process come after the file is free.
    _file: File,
    _turn: OwnedMutexGuard<()>,
}

pub(super) struct VaultLocks {
    folder: PathBuf,
    keys: Mutex<HashMap<String, Arc<LockQueue>>>,
}

/// The waiters for one key in this process.
#[derive(Default)]
struct LockQueue {
    turn: Arc<tokio::sync::Mutex<()>>,
    kernel: Mutex<KernelWait>,
}

/// The thread in the kernel's queue, and who waits for it.
#[derive(Default)]
struct KernelWait {
    is_waiting: bool,
    waiter: Option<oneshot::Sender<io::Result<File>>>,
}

impl VaultLocks {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            keys: Mutex::default(),
        }
    }

    pub(super) async fn take(
        &self,
        key: &VaultKey,
        patience: Duration,
    ) -> Result<VaultLockGuard, VaultError> {
        let deadline = Instant::now() + patience;
        let busy = |_| VaultError::Busy {
            what: key.to_string(),
            after: patience,
        };
        let id = key.id();
        let queue = {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(keys.entry(id.clone()).or_default())
        };
        let turn = Arc::clone(&queue.turn).lock_owned();
        let turn = timeout_at(deadline, turn).await.map_err(busy)?;
        let path = self.folder.join(&id);
        let folder = self.folder.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let folder = open_directory(&folder)?;
            let file = open_file(&folder, &id, OFlags::WRONLY | OFlags::CREATE)?;
            // Nearly always it is free, and no thread is needed.
            let is_ours = file.try_lock().is_ok();
            Ok((file, is_ours))
        });
        let (file, is_ours) = opened
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the work was given up")))
            .map_err(io_error(&path))?;
        let file = if is_ours {
            file
        } else {
            let file = queue.wait(file).map_err(io_error(&path))?;
            let file = timeout_at(deadline, file).await.map_err(busy)?;
            file.unwrap_or_else(|_| Err(io::Error::other("the waiting thread ended")))
                .map_err(io_error(&path))?
        };
        Ok(VaultLockGuard {
            _file: file,
            _turn: turn,
        })
    }
}

impl LockQueue {
    /// Waits on a thread, the one that waits already if there is one.
    fn wait(self: &Arc<Self>, file: File) -> io::Result<oneshot::Receiver<io::Result<File>>> {
        let (sender, receiver) = oneshot::channel();
        let mut kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        kernel.waiter = Some(sender);
        if !kernel.is_waiting {
            let queue = Arc::clone(self);
            std::thread::Builder::new()
                .name("vault lock".to_owned())
                .spawn(move || queue.stand_in_line(file))?;
            kernel.is_waiting = true;
        }
        Ok(receiver)
    }

    fn stand_in_line(&self, file: File) {
        let locked = file.lock().map(|()| file);
        let mut kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        kernel.is_waiting = false;
        if let Some(waiter) = kernel.waiter.take() {
            // One who has given up lets the file go, and the lock with it.
            let _ = waiter.send(locked);
        }
    }
}
