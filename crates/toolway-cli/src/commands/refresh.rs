//! `toolway __refresh`: asks servers what they offer, for commands that answer from what is kept.
//!
//! Owns leaving the terminal, the bound, and that of all processes only one asks the same server.
//! It prints nothing, and its exit code is not read.

use std::time::Duration;

use clap::Args;
use toolway::refresh_turn;
use toolway_types::ServerName;

use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// The longest that servers are waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// Ask servers what they offer, and keep it
#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// Their names
    servers: Vec<String>,
}

/// Ctrl-C and the end of the terminal are meant for others. Who leads a group already was not
/// started by a completion, and stays.
pub(crate) fn leave_terminal() {
    let _ = rustix::process::setsid();
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &RefreshArgs) -> Outcome {
    let plan = context.plan();
    let folder = context.setup.files().catalogs();
    let mut turns = Vec::new();
    let mut servers: Vec<ServerName> = Vec::new();
    for (planned, spec) in plan.admitted() {
        if !args
            .servers
            .iter()
            .any(|name| planned.name.as_str() == name)
        {
            continue;
        }
        let turn = refresh_turn(&folder, spec).ok().flatten();
        if let Some(turn) = turn.filter(|turn| turn.try_lock().is_ok()) {
            turns.push(turn);
            servers.push(planned.name.clone());
        }
    }
    if servers.is_empty() {
        return Ok(Exit::Success);
    }
    // What they offer is kept when the host ends.
    connect::with_host(context, plan.clone(), Wanted::Some(servers), async |host| {
        let _ = tokio::time::timeout(PATIENCE, host.settled()).await;
        Ok::<_, Report>(Exit::Success)
    })
}
