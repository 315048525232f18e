//! The events of the view.

use std::sync::Arc;

use toolway::HostSnapshot;

/// One event.
#[derive(Debug, Clone)]
pub(crate) enum ViewEvent {
    /// The host published a new snapshot.
    Snapshot(Arc<HostSnapshot>),
    /// Time has passed.
    Tick,
    /// The host is gone.
    Ended,
}
