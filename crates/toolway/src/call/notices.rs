//! Notifications of a server that the protocol does not have, and who hears them.
//!
//! Owns the queue of each listener. As with the log (`logs.rs`), what a server says while it works
//! for one caller is that caller's, and what belongs to no request is for all who listen; whose it
//! is is found out by the session (`session/correlator/reader.rs`).
//!
//! Invariant: telling never waits. A slow reader loses the oldest.

use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolway_wire::RawJson;

use super::caller_side::{CallerSide, RequestOrigin};
use super::server_notice::ServerNotice;

/// How many wait for a slow reader.
const WAITING: usize = 64;

/// The largest that is passed on, in bytes.
const LARGEST: usize = 64 << 10;

/// A notice, and whom it is for.
#[derive(Debug, Clone)]
struct AddressedNotice {
    /// Everybody, where it is nobody's in particular.
    caller: Option<Weak<CallerSide>>,
    notice: ServerNotice,
}

/// All who listen to the notices of one server. Mostly nobody does, and then there is no room for any.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerNotices(Arc<OnceLock<broadcast::Sender<AddressedNotice>>>);

impl ServerNotices {
    /// Listens, for as long as what is returned is held.
    pub(crate) fn listen(&self, caller: &Arc<CallerSide>) -> NoticeStream {
        let listeners = self.0.get_or_init(|| broadcast::Sender::new(WAITING));
        NoticeStream {
            caller: Arc::downgrade(caller),
            notices: listeners.subscribe(),
            of: Arc::downgrade(&self.0),
        }
    }

    /// Passes a notice on to the caller of these requests, one of which it belongs to; to all where
    /// there are none.
    pub(crate) fn tell(&self, requests: &[Arc<RequestOrigin>], notice: ServerNotice) {
        let size = notice.params.as_ref().map_or(0, RawJson::len);
        if notice.method.len() + size > LARGEST {
            tracing::debug!("a notification is too large to be passed on");
            return;
        }
        if let Some(sink) = requests.iter().find_map(|request| request.notices()) {
            sink(notice);
            return;
        }
        let caller = requests.first();
        let caller = caller.map(|request| Arc::downgrade(&request.caller));
        if let Some(listeners) = self.0.get() {
            // They may all have gone.
            let _ = listeners.send(AddressedNotice { caller, notice });
        }
    }
}

/// What one caller hears of one server's notices. Dropping it ends that.
#[derive(Debug)]
pub struct NoticeStream {
    caller: Weak<CallerSide>,
    notices: broadcast::Receiver<AddressedNotice>,
    of: Weak<OnceLock<broadcast::Sender<AddressedNotice>>>,
}

impl NoticeStream {
    /// Whether it is of these.
    pub(crate) fn is_of(&self, notices: &ServerNotices) -> bool {
        std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(&notices.0))
    }

    /// Waits for the next one; nothing once the server is not defined as it was any more.
    pub async fn next(&mut self) -> Option<ServerNotice> {
        loop {
            match self.notices.recv().await {
                Ok(AddressedNotice { caller, notice }) => {
                    if caller.is_none_or(|caller| caller.ptr_eq(&self.caller)) {
                        return Some(notice);
                    }
                }
                Err(RecvError::Lagged(lost)) => {
                    tracing::debug!(lost, "notifications were lost: nobody read them in time");
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
