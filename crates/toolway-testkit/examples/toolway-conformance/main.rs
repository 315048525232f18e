//! The client that the official conformance suite judges: a small program that embeds the
//! library and uses nothing but what it makes public.
//!
//! `toolway-conformance pinned|auto URL`, with the suite's variables in the environment. Pinned
//! obeys the revision the suite names; auto lets the host find out. It exits with 0 only when
//! everything that it tried succeeded. Owns the command line and the time limit; what is tried is
//! `walk.rs`.
#![expect(
    clippy::print_stderr,
    reason = "what went wrong goes where the suite records it"
)]

mod login;
mod person;
mod skills;
mod specimen;
mod walk;

use std::process::ExitCode;
use std::time::Duration;

use toolway::config::Environment;
use walk::{Failure, Task};

/// The suite gives up after 30 s and then waits for this program without end.
const LONGEST: Duration = Duration::from_secs(24);

#[tokio::main]
async fn main() -> ExitCode {
    let environment = Environment::capture();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match Task::read(&words, &environment) {
        Ok(task) => tokio::time::timeout(LONGEST, walk::walk(&task))
            .await
            .unwrap_or(Err(Failure::TooSlow(LONGEST))),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("toolway-conformance: {failure}");
            ExitCode::FAILURE
        }
    }
}
