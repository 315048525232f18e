//! Starting a daemon: a process of its own, which belongs to no terminal and to nobody's session.
//!
//! Owns what that process is given, and waiting until it can be asked. That there is one daemon is the
//! socket's lock to say: of several that are started at once, all but one end at once.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolway::StateFiles;
use toolway_config::Environment;
use toolway_gateway::owner_socket::SocketFolder;

/// What the daemon has of the variables of whoever starts it: where things are, and nothing else. What
/// servers get is theirs who use them.
const GIVEN: [&str; 14] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TOOLWAY_HOME",
    "TOOLWAY_TEST_SYSTEM_DIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "RUST_BACKTRACE",
    "TZ",
];

/// A log that is longer is put aside when a daemon starts.
const LONG_LOG: u64 = 1024 * 1024;

/// What a daemon says when it listens, or when another one does.
pub(crate) const READY: &str = "ready";

/// The log of daemons.
pub(crate) fn log(environment: &Environment) -> PathBuf {
    StateFiles::of(environment).daemon().join("log")
}

/// Starts a daemon unless one runs; returns when it can be asked.
pub(crate) fn start(environment: &Environment) -> io::Result<()> {
    let log = open_log(&log(environment))?;
    let variables = GIVEN.iter();
    let variables = variables.filter_map(|name| Some((*name, environment.var(name)?)));
    let mut command = Command::new(program()?);
    command
        .args(["daemon", "start", "--foreground", "--detached"])
        .env_clear()
        .envs(variables)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    let mut daemon = command.spawn()?;
    let said = daemon.stdout.take().map(BufReader::new);
    let first = said.and_then(|said| said.lines().next()).transpose()?;
    if first.as_deref() == Some(READY) {
        return Ok(());
    }
    let status = daemon.wait()?;
    Err(io::Error::other(format!(
        "it ended at once ({status}); see `toolway daemon logs`"
    )))
}

/// This program, also where its file was replaced since it was started.
pub(crate) fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    // The system marks a file that is gone.
    let shown = own.to_string_lossy();
    match shown.strip_suffix(" (deleted)") {
        Some(before) if Path::new(before).is_file() => Ok(PathBuf::from(before)),
        _ => Ok(own),
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    drop(SocketFolder::open(folder).map_err(io::Error::other)?);
    if path.metadata().is_ok_and(|log| log.len() > LONG_LOG) {
        // One generation is enough to see what happened last.
        let _ = std::fs::rename(path, path.with_extension("old"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}
