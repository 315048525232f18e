//! The scripted server itself: a real process that speaks MCP and breaks as its script says.
//!
//! Owns the arguments, and what happens before the first message. Answers are `chaos/server.rs`,
//! tools `chaos/tools.rs` and `chaos/drama.rs`, what else is offered `chaos/offers.rs`, skills
//! `chaos/skills.rs`, the ways to be reached `chaos/stdio.rs`, `chaos/http.rs`, `chaos/sse.rs` and `chaos/websocket.rs`. Plain threads and
//! hardly more than the standard library: it must build in a moment and share nothing with what it
//! tests.

mod bulk;
mod control;
mod drama;
pub(crate) mod http;
mod offers;
mod outlet;
mod server;
mod skills;
mod sse;
mod stdio;
mod streamable;
mod tasks;
mod tools;
mod websocket;

use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::{GrandchildEscape, Script, marked};
use server::ChaosServer;

/// How it is reached.
enum ChaosTransport {
    Stdio,
    Http(u16),
    Sse(u16),
    WebSocket(u16),
}

/// Runs with these arguments: `[--script JSON] [--http PORT | --sse PORT | --ws PORT]`, or one of
/// `--linger`, `--linger-session` and `--linger-orphan` for a grandchild.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let given: Vec<String> = args.collect();
    if let Some(place) = secret_place(&given) {
        // Fails whatever test this is part of.
        return usage(&format!("a secret was handed to me in {place}"));
    }
    let mut args = given.into_iter();
    let mut script = Script::default();
    let mut way = ChaosTransport::Stdio;
    let mut deaf = false;
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--linger" => linger(),
            "--linger-session" => linger_in_a_session(),
            "--linger-orphan" => return leave_an_orphan(),
            // Signals are already ignored, by the shell that started this process.
            "--deaf" => {
                deaf = true;
                continue;
            }
            _ => {}
        }
        let Some(value) = args.next() else {
            return usage(&format!("unexpected `{flag}`"));
        };
        if flag == "--script" {
            match serde_json::from_str(&value) {
                Ok(parsed) => script = parsed,
                Err(error) => return usage(&format!("cannot read the script: {error}")),
            }
            continue;
        }
        let Ok(port) = value.parse::<u16>() else {
            return usage(&format!("cannot read the port `{value}`"));
        };
        way = match flag.as_str() {
            "--http" => ChaosTransport::Http(port),
            "--sse" => ChaosTransport::Sse(port),
            "--ws" => ChaosTransport::WebSocket(port),
            flag => return usage(&format!("unexpected `{flag}`")),
        };
    }
    if script.ignores_signals && !deaf {
        return become_deaf();
    }
    let served = prepare(&script).and_then(|ended| {
        if let Some(code) = ended {
            return Ok(code);
        }
        let server = Arc::new(ChaosServer::new(script));
        match way {
            ChaosTransport::Stdio => stdio::serve(&server),
            ChaosTransport::Http(port) => streamable::serve(&server, port),
            ChaosTransport::Sse(port) => sse::serve(&server, port),
            ChaosTransport::WebSocket(port) => websocket::serve(&server, port),
        }
    });
    match served {
        Ok(code) => code,
        // The reader is gone: the error cannot be reported.
        Err(_) => ExitCode::from(1),
    }
}

/// Where this process got a secret that it should not have: what it was started with is for every
/// user of the machine to see, and what the host has for itself is not for servers.
#[expect(
    clippy::disallowed_methods,
    reason = "this is a server, and looks at what its host started it with"
)]
fn secret_place(args: &[String]) -> Option<&'static str> {
    if args
        .iter()
        .any(|word| marked::find(word.as_bytes()).is_some())
    {
        return Some("my arguments");
    }
    let inherited = std::env::var_os(marked::DEVELOPERS)?;
    let is_secret = marked::find(inherited.as_encoded_bytes()).is_some();
    is_secret.then_some("my environment")
}

fn usage(problem: &str) -> ExitCode {
    drop(writeln!(io::stderr(), "toolway-chaos: {problem}"));
    ExitCode::from(2)
}

/// Lives until it is killed.
fn linger() -> ! {
    loop {
        std::thread::park();
    }
}

fn linger_in_a_session() -> ! {
    // Fails only for the leader of a process group, which has what it needs.
    let _ = rustix::process::setsid();
    linger()
}

/// The second half of a double fork: the grandchild's parent ends at once.
fn leave_an_orphan() -> ExitCode {
    match start_grandchild(GrandchildEscape::Session) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    }
}

/// Starts over with SIGINT and SIGTERM ignored. Only a shell can do that without unsafe code, and
/// what it ignores stays ignored in the program it becomes.
fn become_deaf() -> ExitCode {
    let Ok(program) = std::env::current_exe() else {
        return ExitCode::from(1);
    };
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "trap '' INT TERM; exec \"$0\" \"$@\""])
        .arg(program)
        .args(std::env::args().skip(1))
        .arg("--deaf");
    #[cfg(unix)]
    drop(std::os::unix::process::CommandExt::exec(&mut command));
    usage("cannot start over through /bin/sh")
}

/// What happens before the first message is read; a code when that is all.
fn prepare(script: &Script) -> io::Result<Option<ExitCode>> {
    if script.grandchild {
        start_grandchild(GrandchildEscape::Group)?;
    }
    for escape in &script.escapes {
        start_grandchild(*escape)?;
    }
    let mut stderr = io::stderr();
    if let Some(complaint) = &script.complaint {
        writeln!(stderr, "{complaint}")?;
    }
    let line = [b'x'; 1023];
    for _ in 0..script.stderr_flood.div_ceil(line.len() + 1) {
        stderr.write_all(&line)?;
        stderr.write_all(b"\n")?;
    }
    std::thread::sleep(Duration::from_millis(script.start_delay_ms));
    if let Some(code) = script.exit_at_start {
        return Ok(Some(ExitCode::from(u8::try_from(code).unwrap_or(1))));
    }
    if let Some(banner) = &script.banner {
        writeln!(io::stdout(), "{banner}")?;
    }
    Ok(None)
}

/// A host that kills only the process, or only its group, leaves one or the other.
fn start_grandchild(escape: GrandchildEscape) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(match escape {
            GrandchildEscape::None | GrandchildEscape::Group => "--linger",
            GrandchildEscape::Session => "--linger-session",
            GrandchildEscape::Orphan => "--linger-orphan",
        })
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[cfg(unix)]
    if escape == GrandchildEscape::Group {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let mut child = command.spawn()?;
    if escape == GrandchildEscape::Orphan {
        child.wait()?;
    }
    // Never waited for otherwise: that is the misbehaviour.
    Ok(())
}
