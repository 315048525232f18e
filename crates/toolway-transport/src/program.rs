//! One program, run to its end: input in, bounded output out.
//!
//! Owns the time and the room it is given. It is started and ended as a server is
//! (`stdio/process.rs`). Its output is never logged here, because it may hold a secret (SEC-15).

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout_at};
use toolway_types::{Secret, ShieldMode, StdioSpec, WorkingDirectory};

use crate::error::OpenError;
use crate::options::OpenOptions;
use crate::stdio::pipes::Pipes;
use crate::stdio::process::ChildProcess;

/// How long reading the rest of its output may take after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// The shell that reads command lines.
const SHELL: &str = "/bin/sh";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// A command line that a user wrote into settings of their own, for the shell to read.
    Line(String),
    /// A program and its arguments; no shell is involved.
    Words {
        /// The program, looked up in `PATH` when it has no slash.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A file that policy was asked about, under the name it goes by; no shell is involved.
    Checked {
        /// The file.
        file: PathBuf,
        /// What it is told about its own name.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// One run of a program.
pub struct ProgramRun {
    /// What to run.
    pub invocation: Invocation,
    /// What it reads on its stdin, which then ends.
    pub stdin: Vec<u8>,
    /// What every child gets: the allow-list of the host's own environment.
    pub inherited: Arc<BTreeMap<String, Secret>>,
    /// What else it gets; it wins over what is inherited. There is nothing else.
    pub env: BTreeMap<String, Secret>,
    /// Where it is started.
    pub cwd: WorkingDirectory,
    /// Whether it is kept from writing Toolway's own files.
    pub shield: ShieldMode,
    /// The caps.
    pub limits: ProgramLimits,
}

/// How long a program may take, and how much of its output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// The longest it may take from the start to its end.
    pub time: Duration,
    /// The most it may print, in bytes. One that prints more is ended: the rest of its output
    /// would be missing from whatever was made of the beginning.
    pub stdout: usize,
    /// How much of its stderr is kept, in bytes. The rest is read and counted only.
    pub stderr: usize,
}

/// A program that ended by itself.
#[derive(Debug)]
pub struct ProgramOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The beginning of what it complained about.
    pub stderr: Vec<u8>,
    /// How much that was in all, in bytes.
    pub stderr_total: u64,
}

/// Why a program has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] OpenError),
    /// It did not end in time, and was ended.
    #[error("it did not end within {after:?} and was killed")]
    TimedOut {
        /// The time it had.
        after: Duration,
    },
    /// It printed too much, and was ended.
    #[error("it printed more than {limit} bytes and was killed")]
    TooMuch {
        /// The most it may print.
        limit: usize,
    },
    /// It could not be waited for, and was ended.
    #[error("it was lost: {0}")]
    Lost(io::Error),
}

/// Runs a program to its end. When this returns, nothing it started is left; when it is dropped,
/// everything is killed.
pub async fn run(
    program: ProgramRun,
    options: &OpenOptions,
) -> Result<ProgramOutput, ProgramError> {
    let limits = program.limits;
    let deadline = Instant::now() + limits.time;
    let late = || ProgramError::TimedOut { after: limits.time };
    let (spec, input) = spec(program);
    let starting = ChildProcess::spawn(&spec, &options.shield, &options.launcher);
    let (mut process, pipes) = timeout_at(deadline, starting).await.map_err(|_| late())??;
    let ended = interact(&mut process, pipes, &input, limits, deadline).await;
    process.stop().await;
    ended.unwrap_or_else(|| Err(late()))
}

fn spec(program: ProgramRun) -> (StdioSpec, Vec<u8>) {
    let (file, command, args) = match program.invocation {
        Invocation::Line(line) => (None, SHELL.to_owned(), vec!["-c".to_owned(), line]),
        Invocation::Words { program, args } => (None, program, args),
        Invocation::Checked {
            file,
            program,
            args,
        } => (Some(file), program, args),
    };
    let spec = StdioSpec {
        command,
        program: file,
        args,
        inherited: program.inherited,
        env: program.env,
        cwd: program.cwd,
        shield: program.shield,
        umask: None,
    };
    (spec, program.stdin)
}

/// Exchanges input and output until it has ended; `None` when its time is over first.
async fn interact(
    process: &mut ChildProcess,
    pipes: Pipes,
    input: &[u8],
    limits: ProgramLimits,
    deadline: Instant,
) -> Option<Result<ProgramOutput, ProgramError>> {
    let (mut stdout, mut stderr) = (CapturedOutput::default(), CapturedOutput::default());
    let mut ended = None;
    {
        let mut talk = pin!(async {
            tokio::try_join!(
                feed(pipes.stdin, input),
                stdout.listen(pipes.stdout, limits.stdout, OverflowPolicy::Stop),
                stderr.listen(pipes.stderr, limits.stderr, OverflowPolicy::Count),
            )
        });
        let mut talked = false;
        let mut until = deadline;
        while ended.is_none() || !talked {
            tokio::select! {
                outcome = &mut talk, if !talked => {
                    if outcome.is_err() {
                        return Some(Err(ProgramError::TooMuch { limit: limits.stdout }));
                    }
                    talked = true;
                }
                status = process.wait(), if ended.is_none() => {
                    // What it leaves behind would hold its pipes open forever.
                    process.sweep();
                    ended = Some(status);
                    until = deadline.min(Instant::now() + DRAIN_TIMEOUT);
                }
                () = sleep_until(until) => break,
            }
        }
    }
    // All it wrote before it ended was in the pipes by then, and has been read.
    Some(match ended? {
        Ok(status) => Ok(ProgramOutput {
            status,
            stdout: stdout.kept,
            stderr: stderr.kept,
            stderr_total: stderr.total,
        }),
        Err(error) => Err(ProgramError::Lost(error)),
    })
}

/// It printed more than it may.
struct OutputTooLong;

/// Writes its input. A program need not read it.
async fn feed(mut stdin: pipe::Sender, input: &[u8]) -> Result<(), OutputTooLong> {
    let _ = stdin.write_all(input).await;
    Ok(())
}

/// What to do with output beyond the cap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverflowPolicy {
    Stop,
    Count,
}

#[derive(Default)]
struct CapturedOutput {
    kept: Vec<u8>,
    total: u64,
}

impl CapturedOutput {
    async fn listen(
        &mut self,
        mut from: pipe::Receiver,
        cap: usize,
        beyond: OverflowPolicy,
    ) -> Result<(), OutputTooLong> {
        let mut chunk = Vec::with_capacity(CHUNK);
        // An error is an end too.
        while let Ok(count @ 1..) = from.read_buf(&mut chunk).await {
            let room = cap - self.kept.len();
            self.kept.extend_from_slice(&chunk[..count.min(room)]);
            self.total += count as u64;
            if count > room && beyond == OverflowPolicy::Stop {
                return Err(OutputTooLong);
            }
            chunk.clear();
        }
        Ok(())
    }
}
