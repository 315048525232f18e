//! The program that is run: started as it would be without us, and how it ended.
//!
//! Owns what it is given beside its own: a few variables. Streams, terminal, directory and process
//! group are those of who typed it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use tokio::process::{Child, Command};
use toolway_types::text::clean_line;

use crate::exit::Exit;
use crate::report::Report;

/// What shells say of a program that is not there, and of one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProgramEnd {
    Exit(u8),
    Signal(i32),
}

impl ProgramEnd {
    pub(super) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Exit(u8::MAX),
        }
    }
}

/// Starts it.
pub(super) fn spawn<'v>(
    command: &[OsString],
    variables: impl IntoIterator<Item = (&'v str, OsString)>,
) -> Result<Child, Report> {
    let (program, words) = command
        .split_first()
        .ok_or_else(|| Report::usage("no program is named"))?;
    let started = Command::new(program).args(words).envs(variables).spawn();
    started.map_err(|error| {
        let shown = program.to_string_lossy();
        let shown = clean_line(&shown);
        if error.kind() == ErrorKind::NotFound {
            Report::new(
                Exit::Program(NOT_FOUND),
                format!("there is no program `{shown}`"),
            )
            .hint("what stands behind `--` is started as it is: give its name or path")
        } else {
            Report::new(
                Exit::Program(NOT_RUN),
                format!("`{shown}` cannot be run: {error}"),
            )
        }
    })
}
