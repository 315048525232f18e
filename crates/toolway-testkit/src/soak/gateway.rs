//! The gateway under a soak, as a process. Owns starting and ending it, and what it uses.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::SoakFault;
use crate::TempHome;

/// How long it may take to end.
const END: Duration = Duration::from_secs(20);

/// How long what is over may take to be let go.
const CLEARING: Duration = Duration::from_secs(30);
/// Memory may grow to so many hundredths of what it was after the first tenth, and by so many KiB.
const MOST_GROWTH: u64 = 125;
const GRACE: u64 = 4 * 1024;
/// Descriptors that may be open more than before the first call.
const SPARE_DESCRIPTORS: usize = 4;

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GatewayUsage {
    /// In KiB.
    pub(super) memory: u64,
    pub(super) descriptors: usize,
}

/// What it used at three moments: before the first call, after the first tenth, and after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GatewayLevels {
    pub(super) idle: Option<GatewayUsage>,
    pub(super) warm: Option<GatewayUsage>,
    pub(super) end: Option<GatewayUsage>,
}

pub(super) struct GatewayProcess {
    process: Mutex<Child>,
    id: u32,
    levels: Mutex<GatewayLevels>,
    /// Where it listens.
    pub(super) address: Option<(SocketAddr, String)>,
    /// Its pipes, until a client takes them.
    pub(super) pipes: Mutex<Option<(ChildStdin, ChildStdout)>>,
}

impl GatewayProcess {
    pub(super) fn over_http(
        home: &TempHome,
        program: &Path,
        config: &Path,
    ) -> Result<Self, SoakFault> {
        let mut command = home.command(program);
        command.args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--no-token",
            "--mcp-config",
        ]);
        command.arg(config).arg("--strict-mcp-config");
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let Some(output) = process.stdout.take() else {
            return Err(SoakFault::new("the gateway has no output"));
        };
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        // What it says further must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let rest = line.trim().strip_prefix("http://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Ok(host) = host.parse() else {
            let what = format!("the gateway said no address but `{}`", line.trim());
            return Err(SoakFault::new(what));
        };
        Ok(Self {
            id: process.id(),
            process: Mutex::new(process),
            levels: Mutex::default(),
            address: Some((host, format!("/{path}"))),
            pipes: Mutex::default(),
        })
    }

    /// One whose servers a daemon keeps, where the word for that says so.
    pub(super) fn over_stdio(
        home: &TempHome,
        program: &Path,
        config: &Path,
        daemon: &str,
    ) -> Result<Self, SoakFault> {
        let mut command = home.command(program);
        command
            .env("TOOLWAY_DAEMON", daemon)
            .args(["serve", "--mcp-config"])
            .arg(config)
            .arg("--strict-mcp-config");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        Ok(Self {
            id: process.id(),
            process: Mutex::new(process),
            levels: Mutex::default(),
            address: None,
            pipes: Mutex::new(pipes),
        })
    }

    pub(super) fn mark_idle(&self) -> Result<(), SoakFault> {
        let now = self.usage()?;
        super::lock(&self.levels).idle = Some(now);
        Ok(())
    }

    pub(super) fn mark_warm(&self) -> Result<(), SoakFault> {
        let now = self.usage()?;
        super::lock(&self.levels).warm = Some(now);
        Ok(())
    }

    pub(super) fn levels(&self) -> GatewayLevels {
        *super::lock(&self.levels)
    }

    /// Waits until it has let go what its clients and calls had.
    pub(super) fn settle(&self) -> Result<(), SoakFault> {
        let begin = Instant::now();
        loop {
            let now = self.usage()?;
            let levels = {
                let mut levels = super::lock(&self.levels);
                levels.end = Some(now);
                *levels
            };
            let memory = levels
                .warm
                .map(|warm| warm.memory * MOST_GROWTH / 100 + GRACE);
            let descriptors = levels
                .idle
                .map_or(usize::MAX, |idle| idle.descriptors + SPARE_DESCRIPTORS);
            if now.descriptors <= descriptors && memory.is_none_or(|most| now.memory <= most) {
                return Ok(());
            }
            if begin.elapsed() > CLEARING {
                let what = format!("the gateway does not come back to its level: {levels:?}");
                return Err(SoakFault::new(what));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn usage(&self) -> Result<GatewayUsage, SoakFault> {
        usage_of(self.id)
    }

    /// Asks it to end, and waits until it did.
    pub(super) fn end(&self) -> Result<(), SoakFault> {
        self.signal();
        let begin = Instant::now();
        let mut process = super::lock(&self.process);
        while process.try_wait()?.is_none() {
            if begin.elapsed() > END {
                return Err(SoakFault::new(
                    "the gateway does not end when it is asked to",
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn signal(&self) {
        if let Some(process) = i32::try_from(self.id).ok().and_then(Pid::from_raw) {
            // It may have ended already; not being waited for, its number is still its own.
            let _ = kill_process(process, Signal::TERM);
        }
    }
}

/// What a process uses now.
pub(super) fn usage_of(id: u32) -> Result<GatewayUsage, SoakFault> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = memory.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let Some(memory) = memory else {
        return Err(SoakFault::new("the gateway has ended"));
    };
    Ok(GatewayUsage {
        memory,
        descriptors: fs::read_dir(format!("/proc/{id}/fd"))?.count(),
    })
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let mut process = super::lock(&self.process);
        if matches!(process.try_wait(), Ok(None)) {
            drop(process);
            if self.end().is_err() {
                let mut process = super::lock(&self.process);
                drop(process.kill());
                drop(process.wait());
            }
        }
    }
}
