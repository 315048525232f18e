//! Runs a command the way a chore needs it: said aloud first, its output passed on as it comes.
//!
//! Owns the running; what the output means belongs to the caller.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

/// Prints the command as a person would type it.
fn announce(command: &Command) {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let program = words[0].rsplit('/').next().unwrap_or(&words[0]).to_owned();
    println!("\n$ {program} {}", words[1..].join(" "));
}

/// Runs to the end with inherited output; an unsuccessful end is an error.
pub(crate) fn run(mut command: Command) -> Result<()> {
    announce(&command);
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{name}` cannot be run"))?;
    if !status.success() {
        bail!("{}", describe(status));
    }
    Ok(())
}

/// How a command ended, and the lines it printed, without colours.
pub(crate) struct Transcript {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
}

/// Runs to the end, passing both streams on and keeping their lines.
pub(crate) fn run_and_record(mut command: Command) -> Result<Transcript> {
    announce(&command);
    let name = command.get_program().to_string_lossy().into_owned();
    if std::io::stdout().is_terminal() {
        // Behind our pipe the command sees no terminal; the person still has one.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{name}` cannot be run"))?;
    let errors = child
        .stderr
        .take()
        .map(|stream| thread::spawn(move || pass_on(stream, &mut std::io::stderr())));
    let mut lines = match child.stdout.take() {
        Some(stream) => pass_on(stream, &mut std::io::stdout()),
        None => Vec::new(),
    };
    if let Some(Ok(from_stderr)) = errors.map(thread::JoinHandle::join) {
        lines.extend(from_stderr);
    }
    let status = child
        .wait()
        .with_context(|| format!("`{name}` cannot be waited for"))?;
    Ok(Transcript { status, lines })
}

/// In words: `exit code 101`, or the signal.
pub(crate) fn describe(status: ExitStatus) -> String {
    status
        .code()
        .map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

fn pass_on(stream: impl Read, to: &mut impl Write) -> Vec<String> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    while let Ok(1..) = reader.read_until(b'\n', &mut line) {
        // A closed terminal must not stop the run whose result we still report.
        let _ = to.write_all(&line);
        let _ = to.flush();
        lines.push(without_colours(&String::from_utf8_lossy(&line)));
        line.clear();
    }
    lines
}

fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.trim_end().chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // A colour is `ESC [ … m`; nothing else reaches us from cargo and its runners.
            for inside in characters.by_ref() {
                if inside.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out_of_recorded_lines() {
        assert_eq!(
            without_colours("\u{1b}[1;32m  3 passed\u{1b}[0m, 1\n"),
            "  3 passed, 1"
        );
    }

    #[test]
    fn a_recorded_command_keeps_lines_of_both_streams_and_its_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let transcript = run_and_record(command).unwrap();
        assert_eq!(transcript.lines, ["out", "err"]);
        assert_eq!(describe(transcript.status), "exit code 3");
    }

    #[test]
    fn an_unsuccessful_command_is_an_error() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 4"]);
        assert_eq!(run(command).unwrap_err().to_string(), "exit code 4");
    }
}
