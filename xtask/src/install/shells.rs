//! The shells that completions are tested in: zsh and fish, from the system's own packages.
//!
//! Owns installing them where nobody is bothered by it: as root, on a system that has apt. The
//! tests leave a shell out that is not there, so whatever fails here is said and gone past.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command;

/// Bash is everywhere.
const SHELLS: [&str; 2] = ["zsh", "fish"];

/// A mirror that does not answer must not hold the tests up.
const PATIENCE: [&str; 4] = [
    "-o",
    "Acquire::http::Timeout=20",
    "-o",
    "Acquire::Retries=1",
];

/// Installs what is missing, or says what will be left out.
pub(crate) fn install() {
    let missing: Vec<&str> = SHELLS.into_iter().filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return;
    }
    let outcome = if may_install() {
        apt_get(&["update", "-qq"])
            .and_then(|()| {
                let wanted = ["install", "-y", "-qq", "--no-install-recommends"];
                apt_get(&[&wanted[..], &missing].concat())
            })
            .map_err(|error| format!("{error:#}"))
    } else {
        Err("only root on a system with apt gets them by itself".to_owned())
    };
    if let Err(reason) = outcome {
        let names = missing.join(" and ");
        println!("\nwithout {names} ({reason}): their completions are not tested");
    }
}

fn is_there(shell: &str) -> bool {
    let mut command = Command::new(shell);
    command.arg("--version").stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

fn may_install() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0);
    is_root && Path::new("/etc/debian_version").exists() && is_there("apt-get")
}

fn apt_get(words: &[&str]) -> anyhow::Result<()> {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(PATIENCE).args(words);
    command::run(apt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_missing_is_noticed() {
        assert!(is_there("bash"));
        assert!(!is_there("toolway-no-such-shell"));
    }
}
