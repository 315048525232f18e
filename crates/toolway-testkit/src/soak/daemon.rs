//! The daemon under a soak: what keeps the servers of all clients, and is killed and replaced while
//! they call.
//!
//! Owns when that happens, and what the daemon uses in between. The clients are those of
//! `soak/pipe.rs`, behind the relay of `toolway serve`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::SoakFault;
use super::gateway::{GatewayUsage, usage_of};
use super::traffic::Traffic;
use crate::TempHome;

/// How often it is killed, in the first seven tenths of the calls. A client whose daemons end again and
/// again goes on by itself, so there has to be something in between.
pub(super) fn kills(calls: u64) -> u64 {
    (calls / 50_000).clamp(1, 20)
}

/// How long another one may take to be there.
const THERE: Duration = Duration::from_secs(30);

/// What memory may grow to between two moments, in hundredths, and so many KiB.
const MOST_GROWTH: u64 = 125;
const GRACE: u64 = 4 * 1024;

/// Descriptors that may be open more.
const SPARE_DESCRIPTORS: usize = 16;

/// What the one daemon used that was not killed, while clients called: early and late.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DaemonLevels {
    pub(super) early: Option<GatewayUsage>,
    pub(super) late: Option<GatewayUsage>,
    pub(super) kills: u64,
    pub(super) takeovers: u64,
}

/// Kills and replaces the daemon until the calls are over.
pub(super) fn torment(
    home: &TempHome,
    newer: &Path,
    traffic: &Traffic,
    calls: u64,
) -> Result<DaemonLevels, SoakFault> {
    let mut levels = DaemonLevels::default();
    let kills = kills(calls);
    for number in 1..=kills {
        if !traffic.await_begun(calls * 7 * number / (kills * 10)) {
            return Ok(levels);
        }
        let daemon = await_daemon(home, None)?;
        // It may be on its way out for a reason of its own, which is as good.
        let _ = kill_process(daemon, Signal::KILL);
        levels.kills += 1;
        await_daemon(home, Some(daemon))?;
    }
    if !traffic.await_begun(calls * 75 / 100) {
        return Ok(levels);
    }
    let daemon = await_daemon(home, None)?;
    levels.early = Some(usage_of(id(daemon))?);
    if !traffic.await_begun(calls * 90 / 100) {
        return Ok(levels);
    }
    let late = usage_of(id(daemon))?;
    levels.late = Some(late);
    if let Some(early) = levels.early {
        let memory = early.memory * MOST_GROWTH / 100 + GRACE;
        let descriptors = early.descriptors + SPARE_DESCRIPTORS;
        if late.memory > memory || late.descriptors > descriptors {
            return Err(SoakFault::new(format!("the daemon grows: {levels:?}")));
        }
    }
    let mut command = home.command(newer);
    command
        .arg("tools")
        .env("TOOLWAY_DAEMON", "attach")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !command.status()?.success() {
        return Err(SoakFault::new("the newer build does not run"));
    }
    await_daemon(home, Some(daemon))?;
    levels.takeovers += 1;
    Ok(levels)
}

/// The same program as a build that is newer.
pub(super) fn newer(home: &TempHome, program: &Path) -> Result<PathBuf, SoakFault> {
    let copy = home.home().join("toolway-newer");
    fs::copy(program, &copy)?;
    let file = fs::File::options().append(true).open(&copy)?;
    file.set_modified(std::time::SystemTime::now())?;
    Ok(copy)
}

fn id(daemon: Pid) -> u32 {
    u32::try_from(daemon.as_raw_nonzero().get()).unwrap_or_default()
}

/// The daemon that has the lock, once it is another one than that.
fn await_daemon(home: &TempHome, not: Option<Pid>) -> Result<Pid, SoakFault> {
    let begin = Instant::now();
    loop {
        let found = holder(&home.config_home().join("state/daemon"));
        if let Some(daemon) = found.filter(|daemon| Some(*daemon) != not) {
            return Ok(daemon);
        }
        if begin.elapsed() > THERE {
            return Err(SoakFault::new("no other daemon came"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn holder(folder: &Path) -> Option<Pid> {
    let mut files = fs::read_dir(folder).ok()?.flatten();
    let lock = files.find(|file| file.path().extension().is_some_and(|it| it == "lock"))?;
    let process = fs::read_to_string(lock.path()).ok()?;
    let process = Pid::from_raw(process.trim().parse().ok()?)?;
    let lives = Path::new(&format!("/proc/{}", process.as_raw_nonzero())).exists();
    lives.then_some(process)
}
