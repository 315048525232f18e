//! Running one scenario of a suite in a process of its own.
//!
//! Owns the process, its time, and where its findings lie. Alone, because only then does the suite
//! look at a client's exit code and time. What the findings mean is `verdict.rs`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::verdict::{Check, Seen};

/// A client ends itself after 25 s and the suite gives up after 30 s; more is a hang.
const LONGEST: Duration = Duration::from_mins(1);

/// Runs the suite as it was told; what it leaves behind stays in `folder`.
pub(super) fn observe(mut command: Command, folder: &Path) -> Result<Seen> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let said = folder.join("suite.txt");
    let log = File::create(&said).with_context(|| format!("`{}`", said.display()))?;
    let mut child = command
        .arg("--output-dir")
        .arg(folder)
        .current_dir(folder)
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("the conformance suite cannot be run")?;
    let status = wait(&mut child)?;
    let said = fs::read(&said).with_context(|| format!("`{}`", said.display()))?;
    Ok(Seen {
        status,
        said: String::from_utf8_lossy(&said).into_owned(),
        checks: checks_in(folder)?,
    })
}

/// None when it had to be ended.
fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The one `checks.json` below the folder, whatever the suite called its own folder.
fn checks_in(folder: &Path) -> Result<Option<Vec<Check>>> {
    let Some(file) = find(folder, "checks.json") else {
        return Ok(None);
    };
    let text = fs::read_to_string(&file).with_context(|| format!("`{}`", file.display()))?;
    Check::read_all(&text)
        .map(Some)
        .with_context(|| format!("`{}`", file.display()))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut below = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            below.push(path);
        } else if entry.file_name() == name {
            return Some(path);
        }
    }
    below.iter().find_map(|folder| find(folder, name))
}
