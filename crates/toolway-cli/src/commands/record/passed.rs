//! A server's process between its client and us: everything is passed on, byte for byte, and kept.
//!
//! Owns the child and its pipes. It has our directory and variables, as it would without us, and its
//! stderr is ours.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use toolway::Recorder;
use toolway::journal::secrets_of_process;
use toolway_types::Secret;
use toolway_types::limits::message::STDIO_LINE;
use toolway_types::secret::parts::names_a_secret;

use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// What is read at a time.
const PIECE: usize = 64 * 1024;

pub(super) fn run(
    context: &Context,
    name: &str,
    words: &[OsString],
    recorder: &Recorder,
) -> Outcome {
    let [program, arguments @ ..] = words else {
        return Err(Report::usage("there is no command behind `--`"));
    };
    let shown = program.to_string_lossy().into_owned();
    let connection = Arc::new(recorder.connection(name, &secrets(context, words)));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let hint = "behind `--` stands a command of Toolway, or one that starts a server: \
                        `toolway record --help`";
            let message = if error.kind() == io::ErrorKind::NotFound {
                format!("`{shown}` is neither a command of Toolway nor a program")
            } else {
                format!("cannot start `{shown}`: {error}")
            };
            Report::new(Exit::Connection, message).hint(hint)
        })?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Report::new(
            Exit::Connection,
            format!("`{shown}` has no pipes"),
        ));
    };
    let streams = context.output.streams().clone();
    let heard = Arc::clone(&connection);
    let from_client = streams.reader();
    // Not joined: it ends with stdin, or with this process.
    let to_server = thread::Builder::new().name("record".to_owned());
    to_server.spawn(move || {
        // A server that is gone reads no more; the end of its output says so.
        let _ = pass(from_client, input, |line| heard.sent(line));
    })?;
    let told = streams.output_writer();
    let passed = pass(output, told, |line| connection.received(line));
    let status = child.wait()?;
    // A client that is gone wanted nothing more.
    passed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })?;
    if status.success() {
        return Ok(Exit::Success);
    }
    Err(Report::new(
        Exit::Connection,
        format!("`{shown}` ended with {status}"),
    ))
}

/// Passes on what is read until it ends, and tells of every whole line before that.
fn pass(mut from: impl Read, mut to: impl Write, keep: impl Fn(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut line = Vec::new();
    let mut is_long = false;
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = &piece[..count];
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            is_long |= line.len() + part.len() > STDIO_LINE;
            if is_long {
                line.clear();
            } else {
                line.extend_from_slice(part);
            }
            if ends {
                if !line.trim_ascii().is_empty() {
                    keep(&line);
                }
                line.clear();
                is_long = false;
            }
        }
        to.write_all(read)?;
        to.flush()?;
    }
    if !line.trim_ascii().is_empty() {
        keep(&line);
    }
    Ok(())
}

/// What the server's words and variables hold that must not be kept.
fn secrets(context: &Context, words: &[OsString]) -> Vec<Secret> {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let (named, others) = context
        .environment()
        .variables()
        .into_iter()
        .map(|(name, value)| (name, Secret::new(value)))
        .partition(|(name, _)| names_a_secret(name));
    secrets_of_process(words, named, others)
}
