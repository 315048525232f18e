//! `cargo xtask conformance client|server|upstream`: the official suite judges the library and the
//! gateway.
//!
//! Owns the command line. The order of each side is `conformance/client.rs`,
//! `conformance/server.rs` and `conformance/upstream.rs`; what a scenario's verdict is worth is `conformance/verdict.rs`; what is
//! recorded is `conformance/record.rs`; `tests/conformance/README.md` says how to read it all.

mod case;
mod client;
mod grid;
mod outcome;
mod record;
mod run;
mod server;
mod suite;
mod table;
mod upstream;
mod verdict;
mod workers;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(crate) use self::client::{Options as ClientOptions, run as client};
pub(crate) use self::server::{Options as ServerOptions, run as server};
pub(crate) use self::upstream::{Options as UpstreamOptions, run as upstream};
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    side: Side,
}

#[derive(clap::Subcommand)]
enum Side {
    /// Judge the client side: the adapter of the testkit, which embeds the library
    Client(ClientOptions),
    /// Judge the server side: a fixture on an official SDK, alone and behind the gateway
    Server(ServerOptions),
    /// Judge what the gateway sends to servers: the client of an official SDK, alone and before it
    Upstream(UpstreamOptions),
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    match &options.side {
        Side::Client(options) => client(workspace, options),
        Side::Server(options) => server(workspace, options),
        Side::Upstream(options) => upstream(workspace, options),
    }
}

/// Removes what an earlier run left.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}
