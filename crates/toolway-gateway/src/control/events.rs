//! What goes on beside the requests of a program.
//!
//! Owns that its servers are judged again when files change, so that what is forbidden by then is gone.

use std::sync::{Arc, Weak};

use tokio::sync::broadcast::error::RecvError;
use toolway::HostEvent;

use super::program::Program;

/// Follows the host for as long as the program is there.
pub(super) async fn follow(program: Weak<Program>) {
    let Some(mut events) = program.upgrade().map(|it| it.core.host.subscribe()) else {
        return;
    };
    loop {
        let is_reload = match events.recv().await {
            Ok(event) => matches!(event, HostEvent::Reloaded(_)),
            Err(RecvError::Lagged(_)) => true,
            Err(RecvError::Closed) => return,
        };
        let Some(program) = program.upgrade() else {
            return;
        };
        if is_reload {
            Arc::clone(&program).judge_again().await;
        }
    }
}
