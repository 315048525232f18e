//! `cargo xtask release`: the program as people install it, its size, and the README's first command.
//!
//! Owns the limit of the size; how it is built is the release profile of the workspace's
//! `Cargo.toml`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::{Profile, Workspace};

/// What the stripped program may have. Wanted are 20 MB; decision 0024 says what is above.
const MOST_BYTES: u64 = 22_400_000;

/// Builds it, weighs it and lets it show its main job.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let binary = workspace.build_binary(Profile::Release)?;
    let bytes = fs::metadata(&binary)
        .with_context(|| format!("cannot look at `{}`", binary.display()))?
        .len();
    println!("{}", verdict(bytes)?);
    let mut demo = Command::new(binary);
    demo.arg("demo");
    command::run(demo).context("the demo of the released program")
}

fn verdict(bytes: u64) -> Result<String> {
    let megabytes =
        |bytes: u64| format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    let (found, most) = (megabytes(bytes), megabytes(MOST_BYTES));
    if bytes > MOST_BYTES {
        bail!(
            "the released program has {found}, more than {most}: `cargo xtask figures --build` and \
             `docs/decisions/0024-what-is-built-for-speed.md` help to find what grew"
        );
    }
    Ok(format!(
        "the released program has {found} of at most {most}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_above_the_limit_is_refused_with_both_sizes() {
        assert_eq!(
            verdict(MOST_BYTES).unwrap(),
            "the released program has 22.4 MB of at most 22.4 MB"
        );
        let refused = verdict(22_500_001).unwrap_err().to_string();
        assert!(refused.contains("22.5 MB, more than 22.4 MB"), "{refused}");
    }
}
