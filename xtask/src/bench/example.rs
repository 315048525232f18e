//! Figures that an example of the library takes and prints.
//!
//! Owns running it and reading what it printed. Which figures there are, and what they mean, is the
//! suite's.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Runs an example; gives what it printed.
pub(super) fn figures(binary: &Path, words: &[String]) -> Result<Value> {
    let name = binary.file_stem().unwrap_or_default().to_string_lossy();
    let output = Command::new(binary)
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("the example `{name}` cannot be run"))?;
    if !output.status.success() {
        bail!("the example `{name}` failed: {}", output.status);
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the example `{name}` printed no JSON"))
}

/// The times of one candidate, one for each repetition.
pub(super) fn times(figures: &Value, name: &str, repetitions: usize) -> Result<Vec<Duration>> {
    let times = figures["nanoseconds"][name].as_array();
    let times = times.with_context(|| format!("no times of `{name}` were printed"))?;
    let times: Option<Vec<Duration>> = times
        .iter()
        .map(|time| Some(Duration::from_nanos(time.as_u64()?)))
        .collect();
    let times = times.with_context(|| format!("the times of `{name}` are no numbers"))?;
    if times.len() != repetitions {
        bail!(
            "`{name}` was timed {} times, not {repetitions}",
            times.len()
        );
    }
    Ok(times)
}
