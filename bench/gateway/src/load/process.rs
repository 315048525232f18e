//! Processes from outside: processor time, memory, descriptors, and on which processors they run.
//!
//! Owns reading `/proc`. Linux only, as the figures are.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A gateway's own processes: the one that was started and what of its program it started itself.
/// The servers behind it do not count.
pub struct Processes {
    first: u32,
}

impl Processes {
    #[must_use]
    pub fn new(first: u32) -> Self {
        Self { first }
    }

    /// Processor time of all of them, threads that live.
    pub fn time(&self) -> Result<Duration> {
        let mut total = Duration::ZERO;
        for process in self.all()? {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            for task in tasks.context("the gateway is gone")?.flatten() {
                let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else {
                    continue;
                };
                let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
                total += Duration::from_nanos(nanoseconds.unwrap_or_default());
            }
        }
        Ok(total)
    }

    /// Memory of the gateway alone that is in use, in KiB.
    pub fn memory(&self) -> Result<u64> {
        field(&format!("/proc/{}/status", self.first), "VmRSS:")
    }

    /// The part of it that is in no file, in KiB: the program itself, which it shares with others
    /// that run it, is left out.
    pub fn own_memory(&self) -> Result<u64> {
        field(&format!("/proc/{}/status", self.first), "RssAnon:")
    }

    /// The most that was in use at a time, in KiB.
    pub fn peak(&self) -> Result<u64> {
        field(&format!("/proc/{}/status", self.first), "VmHWM:")
    }

    /// Memory of all of them, in KiB; what several share is counted once.
    pub fn memory_of_all(&self) -> Result<u64> {
        let mut total = 0;
        for process in self.all()? {
            total += field(&format!("/proc/{process}/smaps_rollup"), "Pss:")?;
        }
        Ok(total)
    }

    fn all(&self) -> Result<Vec<u32>> {
        let program = program(self.first).context("the gateway is gone")?;
        let mut all = vec![self.first];
        let mut next = 0;
        while let Some(process) = all.get(next) {
            let children = format!("/proc/{process}/task/{process}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            let children = children
                .split_whitespace()
                .filter_map(|word| word.parse().ok());
            all.extend(children.filter(|child| program_is(*child, &program)));
            next += 1;
        }
        Ok(all)
    }
}

fn field(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|word| word.parse().ok());
    number.with_context(|| format!("`{file}` says nothing of `{name}`"))
}

fn program(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/exe")).ok()
}

fn program_is(process: u32, wanted: &PathBuf) -> bool {
    program(process).is_some_and(|found| found == *wanted)
}

/// On how many processors something runs: load, gateway and server together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Processors {
    One,
    Two,
}

/// From now on this thread, and what it starts, runs there.
pub fn settle(on: Processors) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(0);
    if on == Processors::Two {
        set.set(1);
    }
    sched_setaffinity(None, &set).context("processors cannot be chosen")
}
