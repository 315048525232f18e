//! What is asked of the daemon: a command line, and what it means where it was typed.
//!
//! Owns gathering that. What is said over the socket is `toolway_gateway::daemon_socket`'s.

use std::collections::BTreeMap;

use rustix::fs::Mode;
use toolway_config::Environment;
use toolway_gateway::daemon_socket::RunRequest;

use super::build::{Build, namespaces};

/// What names something of the process that opens it: another process would open something else.
const OWN_FILES: [&str; 5] = [
    "/dev/fd",
    "/dev/std",
    "/dev/tty",
    "/proc/self",
    "/proc/thread-self",
];

/// Folders below which other names may lead to such files.
const OWN_FOLDERS: [&str; 2] = ["/dev", "/proc"];

/// What is asked for with these words; nothing where it cannot be said in full.
pub(crate) fn request_for(environment: &Environment, words: Vec<String>) -> Option<RunRequest> {
    // Without one, what is meant by home is the system's word for this process.
    environment.var("HOME")?;
    let variables: BTreeMap<String, String> = environment.variables();
    let ours = variables
        .iter()
        .filter(|(name, _)| name.starts_with("TOOLWAY_"));
    let mut named = words.iter().chain(ours.map(|(_, value)| value));
    let is_own = |word: &String| OWN_FILES.iter().any(|own| word.contains(own));
    let directory = environment.cwd();
    if named.any(is_own) || OWN_FOLDERS.iter().any(|own| directory.starts_with(own)) {
        return None;
    }
    Some(RunRequest {
        words,
        directory: directory.to_str()?.to_owned(),
        environment: variables,
        build: Build::own().said(),
        namespaces: namespaces(),
        umask: umask(),
    })
}

/// What this process takes from the mode of files. Only setting it tells, and one thread at most makes
/// files where this is asked.
fn umask() -> u32 {
    let own = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(own);
    own.as_raw_mode()
}
