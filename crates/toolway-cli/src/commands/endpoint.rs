//! `toolway endpoint`: a pipe to the endpoint of `toolway run`, for clients that start a server.
//!
//! Owns the flag. What becomes of a client whose endpoint is served by another process from then on is
//! `daemon/relay.rs`.

use std::path::PathBuf;

use clap::Args;

use crate::context::Context;
use crate::daemon::relay;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// The variable that says where the endpoint is.
pub(crate) const VARIABLE: &str = "TOOLWAY_ENDPOINT";

/// Talk MCP over stdio with the endpoint of `toolway run`
///
/// For clients that start a stdio server: inside `toolway run`, the variable
/// `TOOLWAY_ENDPOINT_COMMAND` has this command with the socket behind it.
#[derive(Debug, Args)]
pub(crate) struct EndpointArgs {
    /// The socket; what `TOOLWAY_ENDPOINT` says when left out
    socket: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &EndpointArgs) -> Outcome {
    let of_variable = || context.environment().var(VARIABLE).map(PathBuf::from);
    let socket = args.socket.clone().or_else(of_variable).ok_or_else(|| {
        Report::usage(format!("no endpoint is named, and `{VARIABLE}` is not set"))
            .hint("`toolway run -- <command>` starts a program with an endpoint")
    })?;
    let end = relay::run_to_endpoint(&context.path(socket))?;
    if let Some(signal) = end.signal {
        context.end_by(signal);
    }
    Ok(Exit::Program(end.exit))
}
