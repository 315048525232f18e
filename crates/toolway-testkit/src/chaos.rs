//! The scripted server itself: a real process that speaks MCP and breaks as its script says.
//!
//! Owns the arguments, what happens before the first message, and the stdio loop. Answers are
//! `chaos/answer.rs`, tools `chaos/tools.rs`, HTTP `chaos/http.rs`. Plain threads and the standard
//! library only: it must build in a moment and share nothing with what it tests.

mod answer;
mod http;
mod tools;

use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::Script;
use answer::{Answer, Server};

/// Runs with these arguments: `[--script JSON] [--http PORT]`, or `--linger` for a grandchild.
pub fn run(args: impl Iterator<Item = String>) -> ExitCode {
    let mut args = args;
    let mut script = Script::default();
    let mut port = None;
    while let Some(flag) = args.next() {
        match (flag.as_str(), args.next()) {
            ("--linger", None) => linger(),
            ("--script", Some(text)) => match serde_json::from_str(&text) {
                Ok(parsed) => script = parsed,
                Err(error) => return usage(&format!("cannot read the script: {error}")),
            },
            ("--http", Some(text)) => match text.parse::<u16>() {
                Ok(parsed) => port = Some(parsed),
                Err(error) => return usage(&format!("cannot read the port: {error}")),
            },
            (flag, _) => return usage(&format!("unexpected `{flag}`")),
        }
    }
    let served = prepare(&script).and_then(|()| match port {
        Some(port) => http::serve(Server::new(script), port),
        None => serve_stdio(Server::new(script)),
    });
    match served {
        Ok(code) => code,
        // The reader went away: nobody is left to tell.
        Err(_) => ExitCode::from(1),
    }
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

/// What happens before the first message is read.
fn prepare(script: &Script) -> io::Result<()> {
    if script.grandchild {
        start_grandchild()?;
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
    if let Some(banner) = &script.banner {
        writeln!(io::stdout(), "{banner}")?;
    }
    Ok(())
}

/// In a process group of its own, so that a host that kills only the group leaves it.
fn start_grandchild() -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--linger")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // Never waited for: that is the misbehaviour.
    drop(command.spawn()?);
    Ok(())
}

fn serve_stdio(mut server: Server) -> io::Result<ExitCode> {
    let stdin = io::stdin().lock();
    let mut stdout = io::stdout();
    for line in stdin.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match server.answer(&line) {
            Answer::Nothing => {}
            Answer::Exit(code) => return Ok(ExitCode::from(code)),
            Answer::Message { id: _, body } => write_answer(&mut stdout, &server, &body)?,
        }
    }
    if server.script().ignores_end_of_input {
        linger();
    }
    Ok(ExitCode::SUCCESS)
}

fn write_answer(stdout: &mut io::Stdout, server: &Server, body: &Value) -> io::Result<()> {
    if server.script().noise {
        writeln!(stdout, "debug: about to answer {{not json")?;
    }
    // One write per message: another thread's line cannot come between.
    stdout.write_all(format!("{body}\n").as_bytes())?;
    stdout.flush()
}
