//! How long a server may stay silent before that means something.
//!
//! Owns every wait of the handshake. `npx`, `uvx` and their like may install for a minute before
//! they read, so silence proves little; and some servers never answer anything after a first
//! request that they do not know, so silence cannot be waited out either.

use std::path::Path;
use std::time::Duration;

use toolway_types::{StdioSpec, TransportSpec};

/// How long a silent stream is given before `initialize` is sent beside the probe.
const SECOND_QUESTION: Duration = Duration::from_secs(2);

/// The most of the limit that is kept back for a fresh process after a silent one.
const FOR_A_FRESH_PROCESS: Duration = Duration::from_secs(25);

/// How much longer than others a process may need that first installs itself.
const INSTALLING: u32 = 3;

/// The longest limit that is ever made of a shorter one.
const MOST: Duration = Duration::from_secs(90);

/// Programs that fetch what they run, with the words that make them do so; none means always.
const RUNNERS: &[(&str, &[&str])] = &[
    ("npx", &[]),
    ("pnpx", &[]),
    ("bunx", &[]),
    ("uvx", &[]),
    ("dnx", &[]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
    ("bun", &["x"]),
    ("uv", &["run", "tool"]),
    ("pipx", &["run"]),
    ("deno", &["run"]),
    ("docker", &["run"]),
    ("podman", &["run"]),
];

/// Programs whose argument is a command line.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// The longest that connecting may take by default, given what most servers have and the attempt,
/// counted from 1. A package runner gets more at once; another process gets more each time it was
/// not ready. A limit above [`MOST`] stays what it is.
pub(crate) fn patience_for(transport: &TransportSpec, limit: Duration, attempt: u32) -> Duration {
    let TransportSpec::Stdio(process) = transport else {
        return limit;
    };
    let most = limit.max(MOST.min(limit.saturating_mul(INSTALLING)));
    if installs_first(process) {
        return most;
    }
    let doublings = attempt.saturating_sub(1).min(16);
    limit.saturating_mul(1 << doublings).min(most)
}

/// How long a stream may be silent to everything before it is given up for a fresh one.
pub(crate) fn silence_limit(limit: Duration) -> Duration {
    (limit / 3).max(limit.saturating_sub(FOR_A_FRESH_PROCESS))
}

/// How long a stream may be silent to the probe before `initialize` is sent as well.
pub(crate) fn second_question(limit: Duration) -> Duration {
    SECOND_QUESTION.min(silence_limit(limit) / 2)
}

/// Whether a process fetches what it runs, and so needs a network before it can serve.
pub fn installs_first(process: &StdioSpec) -> bool {
    let words = process.args.iter().map(String::as_str);
    let program = program(&process.command);
    if SHELLS.contains(&program) {
        let line: Vec<&str> = words.flat_map(str::split_whitespace).collect();
        return (0..line.len())
            .any(|start| is_runner(self::program(line[start]), &line[start + 1..]));
    }
    is_runner(program, &words.collect::<Vec<_>>())
}

fn is_runner(program: &str, args: &[&str]) -> bool {
    RUNNERS.iter().any(|(name, verbs)| {
        let mut words = args.iter().filter(|word| !word.starts_with('-'));
        *name == program && (verbs.is_empty() || words.next().is_some_and(|w| verbs.contains(w)))
    })
}

fn program(command: &str) -> &str {
    let name = Path::new(command)
        .file_name()
        .and_then(|name| name.to_str());
    let name = name.unwrap_or(command);
    [".cmd", ".exe"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use toolway_types::ShieldMode;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn process(line: &str) -> TransportSpec {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        TransportSpec::Stdio(StdioSpec {
            program: None,
            command: words.next().unwrap_or_default(),
            args: words.collect(),
            inherited: Arc::default(),
            env: BTreeMap::new(),
            cwd: toolway_types::WorkingDirectory::default(),
            shield: ShieldMode::Off,
            umask: None,
        })
    }

    #[test]
    fn package_runners_get_ninety_seconds_at_once() {
        for line in [
            "npx -y server",
            "/usr/local/bin/npx server",
            "npx.cmd server",
            "uvx mcp-server-time",
            "uv tool run x",
            "uv --quiet run server.py",
            "pnpm dlx x",
            "yarn dlx x",
            "bunx x",
            "pipx run x",
            "docker run -i --rm x",
            "sh -c exec npx -y server",
        ] {
            let limit = patience_for(&process(line), LIMIT, 1);
            assert_eq!(limit, Duration::from_secs(90), "{line}");
            assert!(silence_limit(limit).as_secs() > 60, "it may need a minute");
        }
    }

    #[test]
    fn another_process_gets_more_time_with_each_attempt() {
        for line in [
            "python3 server.py",
            "docker exec x",
            "npm start",
            "node npx",
        ] {
            let limits = [1, 2, 3, 4, u32::MAX]
                .map(|attempt| patience_for(&process(line), LIMIT, attempt).as_secs());
            assert_eq!(limits, [30, 60, 90, 90, 90], "{line}");
        }
    }

    #[test]
    fn a_usual_limit_scales_and_is_never_cut() {
        let seconds = Duration::from_secs;
        assert_eq!(patience_for(&process("npx x"), seconds(2), 1), seconds(6));
        assert_eq!(
            patience_for(&process("npx x"), seconds(300), 1),
            seconds(300)
        );
        assert_eq!(patience_for(&process("cat"), seconds(300), 9), seconds(300));
        assert_eq!(patience_for(&TransportSpec::Sdk, LIMIT, 5), LIMIT);
    }

    #[test]
    fn a_fresh_process_has_time_left_after_a_silent_one() {
        for limit in [1, 3, 30, 60, 90, 600].map(Duration::from_secs) {
            assert!(second_question(limit) < silence_limit(limit));
            assert!(silence_limit(limit) < limit);
        }
        assert_eq!(silence_limit(LIMIT), Duration::from_secs(10));
        assert_eq!(second_question(LIMIT), Duration::from_secs(2));
    }
}
