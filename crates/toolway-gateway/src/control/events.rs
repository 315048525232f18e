//! What goes on beside the requests of a program: what it is told, and what follows from files.
//!
//! Owns that its servers are judged again when files change, so that what is forbidden by then is gone;
//! and the lines of `toolway/event`. Nothing depends on those: one that is slow to read loses the oldest.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::broadcast::error::RecvError;
use toolway::journal::timestamp;
use toolway::rows::EventTeller;
use toolway::toolway_rows::{EventRow, HostChange};
use toolway::{HostEvent, HostSnapshot};
use toolway_wire::envelope;

use super::methods::EVENT;
use super::program::Program;
use crate::outlet::Outlet;

/// Judges the servers of a program again whenever the host follows new files.
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
            program.judge_again().await;
        }
    }
}

/// Tells a program what happens, for as long as it is there.
pub(super) async fn tell(program: Weak<Program>) {
    let begin = program.upgrade().map(|program| {
        let (host, view) = (program.core.host.subscribe(), program.view.subscribe());
        (
            host,
            view,
            program.link.outlet.clone(),
            program.view.snapshot(),
        )
    });
    let Some((mut of_host, mut of_view, outlet, snapshot)) = begin else {
        return;
    };
    let mut teller = EventTeller::default();
    for change in teller.snapshot(&snapshot) {
        put(&outlet, change);
    }
    drop(snapshot);
    loop {
        let (heard, is_of_view) = tokio::select! {
            heard = of_host.recv() => (heard, false),
            heard = of_view.recv() => (heard, true),
        };
        let Some(program) = program.upgrade() else {
            return;
        };
        let snapshot: Arc<HostSnapshot> = program.view.snapshot();
        match heard {
            Ok(HostEvent::CatalogChanged { server, .. }) if is_of_view => {
                let event = HostEvent::CatalogChanged {
                    revision: snapshot.catalog.revision,
                    server: server.clone(),
                };
                for change in teller.event(event, &snapshot) {
                    put(&outlet, change);
                }
                let time = timestamp(SystemTime::now());
                let changed = json!({ "time": time, "event": "tools-changed", "server": server });
                say(&outlet, &changed);
            }
            // Where its servers stand is told by its own view.
            Ok(HostEvent::StateChanged { .. } | HostEvent::CatalogChanged { .. })
                if !is_of_view => {}
            Ok(event) => {
                for change in teller.event(event, &snapshot) {
                    put(&outlet, change);
                }
            }
            Err(RecvError::Lagged(_)) => {
                for change in teller.again(&snapshot) {
                    put(&outlet, change);
                }
            }
            Err(RecvError::Closed) => return,
        }
    }
}

fn put(outlet: &Outlet, change: HostChange) {
    let time = timestamp(SystemTime::now());
    say(outlet, &EventRow { time, change });
}

fn say(outlet: &Outlet, line: &impl serde::Serialize) {
    let params = to_raw_value(line).ok();
    outlet.notify(envelope::notification(EVENT, params.as_deref()));
}
