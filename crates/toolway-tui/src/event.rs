//! Everything that can happen to the view.

use std::sync::Arc;

use toolway::HostSnapshot;

/// One happening.
#[derive(Debug, Clone)]
pub(crate) enum ViewEvent {
    /// The host shows a new picture.
    Snapshot(Arc<HostSnapshot>),
    /// Time has passed.
    Tick,
    /// The host is gone.
    Ended,
}
