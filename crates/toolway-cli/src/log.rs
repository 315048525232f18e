//! Log lines, written to stderr when they are asked for.
//!
//! Owns that none is written into an open question: they are kept until it is answered, so that no
//! server can push it off the screen (SEC-52).

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The most that is kept for later.
const MAX_KEPT: usize = 256 * 1024;

static LINES: Mutex<Lines> = Mutex::new(Lines {
    questions: 0,
    kept: Vec::new(),
    left_out: 0,
});

/// There is one stderr, and one log.
struct Lines {
    questions: usize,
    kept: Vec<u8>,
    left_out: usize,
}

fn lines() -> MutexGuard<'static, Lines> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs go to stderr from now on.
pub(crate) fn start(level: tracing::Level) {
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(Log)
        .without_time()
        .init();
}

/// Keeps log lines back until what it gives is dropped.
#[must_use]
pub(crate) fn hold() -> Held {
    lines().questions += 1;
    Held
}

/// Log lines are kept back.
#[derive(Debug)]
pub(crate) struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        let mut lines = lines();
        lines.questions = lines.questions.saturating_sub(1);
        if lines.questions > 0 {
            return;
        }
        let left_out = std::mem::take(&mut lines.left_out);
        if left_out > 0 {
            let _ = writeln!(lines.kept, "({left_out} more log lines were left out)");
        }
        // That stderr is closed is no error.
        let _ = io::stderr().write_all(&std::mem::take(&mut lines.kept));
    }
}

/// Where the log is written, one line at a time.
struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = lines();
        if lines.questions == 0 {
            io::stderr().write_all(line)?;
        } else if lines.kept.len() + line.len() <= MAX_KEPT {
            lines.kept.extend_from_slice(line);
        } else {
            lines.left_out += 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        Log
    }
}
