//! Running the tools that install: `npm`, `pip` and what they need.
//!
//! Owns trying twice and saying what to do when a tool is missing. Which packages is
//! `install.rs`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;

/// How a person without network or tools goes on; ends every message.
pub(super) const GO_ON: &str = "or run `cargo xtask test --no-peers` to leave the real peers out";

/// Registries fail now and then; a second failure is a real one.
pub(super) fn twice(what: &str, command: impl Fn() -> Command) -> Result<()> {
    if let Err(error) = command::run(command()) {
        eprintln!("installing {what} failed ({error:#}); trying once more");
        command::run(command()).with_context(|| {
            format!("cannot install {what}: check the network and the messages above, {GO_ON}")
        })?;
    }
    Ok(())
}

/// What the tool prints, or what is missing and how to go on.
pub(super) fn require(program: &str, arguments: &[&str], fix: &str) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => bail!(
            "`{program} {}` failed ({}): {fix}, {GO_ON}",
            arguments.join(" "),
            command::describe(output.status)
        ),
        Err(error) => bail!("`{program}` cannot be run ({error}): {fix}, {GO_ON}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_way_to_go_on() {
        let error = require("toolway-no-such-tool", &["--version"], "install it").unwrap_err();
        let message = error.to_string();
        assert!(message.contains("`toolway-no-such-tool`"), "{message}");
        assert!(message.contains("install it"), "{message}");
        assert!(message.contains("--no-peers"), "{message}");
    }

    #[test]
    fn a_failing_install_is_tried_twice_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let outcome = twice("the test", || {
            let mut sh = Command::new("sh");
            sh.arg("-c").arg("echo try >> \"$0\"; exit 1").arg(&log);
            sh
        });
        assert!(outcome.is_err());
        assert_eq!(fs::read_to_string(&log).unwrap(), "try\ntry\n");
    }
}
