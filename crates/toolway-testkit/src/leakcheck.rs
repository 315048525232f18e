//! What a host left behind: processes that carry a canary in their environment, and open
//! descriptors of this process.
//!
//! A canary finds a process however it was re-parented or renamed, which a walk over parents does
//! not. Linux only: it reads `/proc`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::patience;

/// The environment variable that marks the processes of one test.
pub const CANARY_VARIABLE: &str = "TOOLWAY_TEST_CANARY";

/// A mark that no other test uses. Put it into a server's declared `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary(String);

impl Default for Canary {
    fn default() -> Self {
        Self::new()
    }
}

impl Canary {
    /// A fresh mark.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let since = std::time::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .as_nanos();
        Self(format!("canary-{}-{number}-{since}", std::process::id()))
    }

    /// The variable's name.
    pub fn name(&self) -> &'static str {
        CANARY_VARIABLE
    }

    /// The variable's value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// Every living process that started with this mark. A zombie has no environment any more
    /// and does not count.
    pub fn processes(&self) -> Vec<LiveProcess> {
        let entry = format!("{CANARY_VARIABLE}={}", self.0);
        process_ids()
            .filter(|pid| carries(*pid, entry.as_bytes()))
            .map(|pid| LiveProcess {
                pid,
                command: command_line(pid),
            })
            .collect()
    }

    /// Panics, naming them, when marked processes live.
    pub fn assert_gone(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "processes were left behind: {left:#?}");
    }
}

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveProcess {
    /// Its id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// What this process holds at one moment; take one before and one after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// The targets of its open descriptors, sorted.
    pub descriptors: Vec<String>,
    /// Its children, zombies included: an unreaped child is a leak too.
    pub children: Vec<LiveProcess>,
}

impl Census {
    /// Counts now.
    pub fn take() -> Self {
        Self {
            descriptors: descriptors(),
            children: children(),
        }
    }

    /// Panics, naming what is new, when there are more descriptors or children than in `before`.
    pub fn assert_no_more_than(&self, before: &Census) {
        if let Err(difference) = self.compare(before) {
            panic!("{difference}");
        }
    }

    fn compare(&self, before: &Census) -> Result<(), String> {
        let new: Vec<_> = self
            .children
            .iter()
            .filter(|child| !before.children.contains(child))
            .collect();
        if !new.is_empty() {
            return Err(format!("children were left behind: {new:#?}"));
        }
        if self.descriptors.len() > before.descriptors.len() {
            return Err(format!(
                "descriptors were left open: before {:#?}, after {:#?}",
                before.descriptors, self.descriptors
            ));
        }
        Ok(())
    }
}

/// How much this process uses at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Memory in use, in KiB.
    pub resident: u64,
    /// The most memory that was ever in use, in KiB.
    pub peak: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Children, zombies included.
    pub children: usize,
    /// Threads.
    pub threads: usize,
}

impl Usage {
    /// Looks now.
    pub fn take() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| -> u64 {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
                .and_then(|number| number.parse().ok())
                .unwrap_or(0)
        };
        Self {
            resident: field("VmRSS:"),
            peak: field("VmHWM:"),
            descriptors: descriptors().len(),
            children: children().len(),
            threads: usize::try_from(field("Threads:")).unwrap_or(0),
        }
    }
}

/// A check around a fault test: nothing of it may be left when it is over.
///
/// Begin it inside the runtime, so that the runtime's own descriptors are in the baseline, and put
/// [`LeakCheck::env`] into the `env` of every server entry.
#[derive(Debug)]
#[must_use = "only `assert_clean` checks anything"]
pub struct LeakCheck {
    canary: Canary,
    before: Census,
}

impl LeakCheck {
    /// Counts what there is already.
    pub fn begin() -> Self {
        Self {
            canary: Canary::new(),
            before: Census::take(),
        }
    }

    /// The mark of this check.
    pub fn canary(&self) -> &Canary {
        &self.canary
    }

    /// The mark as an environment variable.
    pub fn env(&self) -> (&'static str, &str) {
        (self.canary.name(), self.canary.value())
    }

    /// Waits until no marked process lives, no child is left (zombies are) and no more descriptors
    /// are open than before; panics with what is left when that does not happen.
    pub async fn assert_clean(self) {
        patience::eventually(|| self.verdict()).await;
    }

    /// The same for a test without a runtime.
    pub fn assert_clean_blocking(self) {
        patience::eventually_blocking(|| self.verdict());
    }

    fn verdict(&self) -> Result<(), String> {
        let left = self.canary.processes();
        if !left.is_empty() {
            return Err(format!("processes were left behind: {left:#?}"));
        }
        Census::take().compare(&self.before)
    }
}

pub(crate) fn process_ids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A process may end while we look; whatever cannot be read is not there.
fn carries(pid: u32, entry: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|found| found == entry))
}

pub(crate) fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .replace('\0', " ")
        .trim_end()
        .to_owned()
}

fn descriptors() -> Vec<String> {
    let directory = Path::new("/proc/self/fd");
    let mut targets: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(fs::read_link(entry.ok()?.path()).ok()?.display().to_string()))
        // The descriptor of this very listing.
        .filter(|target| !target.ends_with("/fd"))
        .collect();
    targets.sort_unstable();
    targets
}

fn children() -> Vec<LiveProcess> {
    let own = std::process::id();
    process_ids()
        .filter(|pid| parent(*pid) == Some(own))
        .map(|pid| LiveProcess {
            pid,
            command: command_line(pid),
        })
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end: state, then parent.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::eventually_blocking;

    #[test]
    fn a_grandchild_is_found_by_its_canary_and_gone_after_its_end() {
        let canary = Canary::new();
        assert_eq!(canary.processes(), []);
        // `cat` lives until its stdin closes; the shell in front makes it a grandchild.
        let mut child = Command::new("sh")
            .args(["-c", "cat; true"])
            .env(canary.name(), canary.value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The echo proves that both live.
        let mut line = [0; 3];
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"up\n").unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut commands: Vec<_> = canary.processes().into_iter().map(|p| p.command).collect();
        commands.sort_unstable();
        assert_eq!(commands, ["cat", "sh -c cat; true"]);
        assert!(
            Census::take()
                .children
                .iter()
                .any(|process| process.pid == child.id())
        );

        drop(child.stdin.take());
        child.wait().unwrap();
        canary.assert_gone();
    }

    #[test]
    #[should_panic(expected = "processes were left behind")]
    fn a_left_process_fails_the_check() {
        let canary = Canary::new();
        let mut child = Command::new("cat")
            .env(canary.name(), canary.value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that answers has its environment; one that has just been started may not.
        let mut line = [0; 3];
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"up\n").unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let checked = std::panic::catch_unwind(|| canary.assert_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    }

    #[test]
    fn usage_counts_something_of_everything() {
        let usage = Usage::take();
        assert!(usage.resident > 100, "{usage:?}");
        assert!(usage.descriptors >= 3 && usage.threads >= 1, "{usage:?}");
    }

    #[test]
    #[should_panic(expected = "descriptors were left open")]
    fn an_open_descriptor_fails_the_comparison() {
        let before = Census::take();
        let _held = fs::File::open("/dev/null").unwrap();
        Census::take().assert_no_more_than(&before);
    }

    #[test]
    fn a_check_waits_for_the_last_process_to_go() {
        let check = LeakCheck::begin();
        let (name, value) = check.env();
        let mut child = Command::new("cat")
            .env(name, value)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // A process that was started a moment ago may not have its environment yet.
        eventually_blocking(|| match check.canary().processes() {
            all if all.len() == 1 => Ok(()),
            none => Err(format!("{none:?}")),
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(child.stdin.take());
                child.wait().unwrap();
            });
            check.assert_clean_blocking();
        });
    }
}
