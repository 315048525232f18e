//! What a call through the gateway costs: `toolway serve --http` beside the floor gateway, a typed
//! gateway on the official SDK, and what peers could be installed, in one run.
//!
//! Owns the run. Which gateways there are and how they are started is `gateway/candidates.rs`, what is
//! wanted of the figures `gateway/wanted.rs`, how they are shown `gateway/table.rs`; taking them is the
//! load's (`bench/gateway/src/load.rs`), because this crate talks to no server.

mod candidates;
mod table;
mod wanted;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::candidates::Candidates;
use super::example;
use super::report::Report;
use crate::command;
use crate::workspace::{Profile, Workspace};

/// How thoroughly it is measured.
pub(super) struct Thoroughness {
    pub(super) repetitions: usize,
    /// How many idle sessions are opened.
    pub(super) sessions: usize,
    /// Whether gateways of others are installed and measured too.
    pub(super) peers: bool,
}

pub(super) fn measure(
    workspace: &Workspace,
    how: &Thoroughness,
    program: Option<&Path>,
) -> Result<Report> {
    let built = build(workspace)?;
    let toolway = match program {
        Some(program) => std::path::absolute(program).context("no such program")?,
        None => workspace.build_binary(Profile::Release)?,
    };
    let mut candidates = Candidates::own(&built);
    candidates.add_toolway(&toolway);
    if how.peers {
        candidates.add_peers(workspace);
    }
    println!(
        "\nmeasuring: {} gateways, {} repetitions",
        candidates.gateways.len(),
        how.repetitions
    );
    let plan = json!({
        "server": built.join("bench-server"),
        "repetitions": how.repetitions,
        "sessions": how.sessions,
        "gateways": candidates.gateways,
    });
    let folder = tempfile::tempdir().context("cannot create a folder for the plan")?;
    let file = folder.path().join("plan.json");
    fs::write(&file, plan.to_string()).context("cannot write the plan")?;
    let words = [file.to_string_lossy().into_owned()];
    let mut figures = example::figures(&built.join("gateway-load"), &words)?;
    for (name, reason) in candidates.left_out {
        figures["leftOut"][name] = Value::String(reason);
    }
    Ok(report(&figures, how))
}

fn report(figures: &Value, how: &Thoroughness) -> Report {
    let figures = table::Samples::read(figures);
    Report {
        title: "A call through the gateway".to_owned(),
        repetitions: how.repetitions,
        rows: Vec::new(),
        notes: figures.markdown(how.sessions),
        facts: figures.facts(how.sessions),
    }
}

/// Builds what is measured beside Toolway, and what measures; the folder where it lies.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.path("target/gateway-bench");
    let mut cargo = workspace.cargo();
    cargo
        .current_dir(workspace.path("bench/gateway"))
        .args([
            "build",
            "--locked",
            "--release",
            "--workspace",
            "--target-dir",
        ])
        .arg(&target);
    command::run(cargo).context("the floor gateway and its load do not build")?;
    let built = target.join("release");
    for program in [
        "floor-gateway",
        "typed-gateway",
        "bench-server",
        "gateway-load",
    ] {
        is_there(&built.join(program))?;
    }
    Ok(built)
}

fn is_there(program: &Path) -> Result<()> {
    if !program.is_file() {
        bail!("the build left no `{}`", program.display());
    }
    Ok(())
}
