//! What serves a client behind its relay: a command in the daemon, a process of the client's own, or an
//! agent's endpoint.
//!
//! Owns its pipe and how it ended.

use std::io;
use std::os::fd::AsFd as _;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use toolway::StateFiles;
use toolway_config::Environment;
use toolway_gateway::daemon_socket::{
    DaemonClient, RunBeginning, RunEnd, RunRefusal, RunRequest, WhyMoving, method,
};

use crate::daemon::start;
use crate::daemon_use::DaemonUse;
use crate::exit::Exit;
use crate::report::Report;

/// How often a daemon is looked for: it may have to be started, or make way for a newer build.
const LOOKS: u32 = 3;

/// What serves a client.
pub(crate) struct Upstream {
    from: BufReader<Box<dyn AsyncRead + Unpin>>,
    to: Option<Box<dyn AsyncWrite + Unpin>>,
    line: Vec<u8>,
    control: Control,
    /// Nothing more comes from its pipe.
    is_closed: bool,
}

/// How its end is heard of.
enum Control {
    Daemon(DaemonControl),
    Process(Box<Child>),
    /// Not at all: it is another process's.
    Endpoint,
}

/// What it says.
pub(crate) enum UpstreamNews {
    /// A message for the client.
    Line(Vec<u8>),
    /// It is about to end; what is under way is finished.
    Moving(WhyMoving),
    /// It has ended.
    End(UpstreamEnd),
}

/// How it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UpstreamEnd {
    /// By itself.
    Done(RunEnd),
    /// Without a word.
    Lost,
}

impl Upstream {
    /// A command in the daemon; nothing where none is to be had.
    pub(crate) fn daemon(
        environment: &Environment,
        request: &RunRequest,
        use_of_it: DaemonUse,
    ) -> Result<Option<Self>, Report> {
        let folder = StateFiles::of(environment).daemon();
        let mut starts = use_of_it == DaemonUse::Start;
        for _ in 0..LOOKS {
            let client = match DaemonClient::connect(&folder) {
                Ok(Some(client)) => client,
                Ok(None) if starts && start::start(environment).is_ok() => continue,
                Ok(None) | Err(_) => return Ok(None),
            };
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            let streams = [theirs.as_fd(), theirs.as_fd(), rustix::stdio::stderr()];
            match client.begin(request, streams) {
                Ok(RunBeginning::Begun(running)) => return Ok(Some(Self::begun(ours, running)?)),
                // A daemon that somebody wanted is wanted of this build too.
                Ok(RunBeginning::Refused(refused))
                    if refused.data.reason == RunRefusal::Outdated =>
                {
                    starts = true;
                }
                // Nothing was said to it yet.
                Ok(RunBeginning::NotBegun | RunBeginning::Lost) => {}
                Ok(RunBeginning::Refused(_)) | Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    fn begun(ours: std::os::unix::net::UnixStream, running: DaemonClient) -> io::Result<Self> {
        let (control, read) = running.into_parts();
        for stream in [&ours, &control] {
            stream.set_nonblocking(true)?;
        }
        let (from, to) = UnixStream::from_std(ours)?.into_split();
        let control = UnixStream::from_std(control)?;
        let control: Box<dyn AsyncRead + Unpin> = Box::new(io::Cursor::new(read).chain(control));
        Ok(Self {
            from: BufReader::new(Box::new(from)),
            to: Some(Box::new(to)),
            line: Vec::new(),
            control: Control::Daemon(DaemonControl {
                from: BufReader::new(control),
                line: Vec::new(),
                end: None,
                is_closed: false,
            }),
            is_closed: false,
        })
    }

    /// An agent's endpoint.
    pub(crate) fn endpoint(stream: UnixStream) -> Self {
        let (from, to) = stream.into_split();
        Self {
            from: BufReader::new(Box::new(from)),
            to: Some(Box::new(to)),
            line: Vec::new(),
            control: Control::Endpoint,
            is_closed: false,
        }
    }

    /// A process of this client's own, which does without a daemon.
    pub(crate) fn own(environment: &Environment) -> Result<Self, Report> {
        let words = std::env::args_os().skip(1);
        Self::process(environment, |command| {
            command.arg("--no-daemon").args(words);
        })
    }

    /// A process that runs this program, with what `prepare` adds.
    pub(crate) fn process(
        environment: &Environment,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self, Report> {
        let mut command = Command::new(start::program()?);
        prepare(&mut command);
        let mut child = command
            .current_dir(environment.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lost = || io::Error::from(io::ErrorKind::BrokenPipe);
        let from = child.stdout.take().ok_or_else(lost)?;
        let to = child.stdin.take().ok_or_else(lost)?;
        Ok(Self {
            from: BufReader::new(Box::new(from)),
            to: Some(Box::new(to)),
            line: Vec::new(),
            control: Control::Process(Box::new(child)),
            is_closed: false,
        })
    }

    /// Whether there is nothing behind it to go on with.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self.control, Control::Process(_))
    }

    /// Says something to it. Whether it is gone shows where it is read.
    pub(crate) async fn write(&mut self, line: &[u8]) {
        if let Some(to) = &mut self.to
            && to.write_all(line).await.is_err()
        {
            self.to = None;
        }
    }

    /// Says that nothing more comes.
    pub(crate) async fn hang_up(&mut self) {
        if let Some(mut to) = self.to.take() {
            // It may be gone.
            let _ = to.shutdown().await;
        }
    }

    /// The next thing that it says. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> UpstreamNews {
        while !self.is_closed {
            let heard = async {
                match &mut self.control {
                    Control::Daemon(control) => control.next().await,
                    Control::Process(_) | Control::Endpoint => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                read = self.from.read_until(b'\n', &mut self.line) => {
                    let line = std::mem::take(&mut self.line);
                    if matches!(read, Ok(count) if count > 0) && line.ends_with(b"\n") {
                        return UpstreamNews::Line(line);
                    }
                    self.is_closed = true;
                }
                // Its end comes with that of the pipe.
                why = heard => return UpstreamNews::Moving(why),
            }
        }
        UpstreamNews::End(self.ended().await)
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> UpstreamEnd {
        match &mut self.control {
            Control::Endpoint => UpstreamEnd::Lost,
            Control::Process(child) => match child.wait().await {
                Ok(status) => {
                    let code = status.code().and_then(|code| u8::try_from(code).ok());
                    UpstreamEnd::Done(RunEnd {
                        exit: code.unwrap_or(Exit::Unexpected.code()),
                        signal: None,
                    })
                }
                Err(_) => UpstreamEnd::Lost,
            },
            Control::Daemon(control) => {
                while !control.is_closed {
                    control.read().await;
                }
                control.end.map_or(UpstreamEnd::Lost, UpstreamEnd::Done)
            }
        }
    }
}

/// The connection on which the daemon tells what becomes of the command.
struct DaemonControl {
    from: BufReader<Box<dyn AsyncRead + Unpin>>,
    line: Vec<u8>,
    end: Option<RunEnd>,
    is_closed: bool,
}

impl DaemonControl {
    /// Waits until the daemon is about to end, for ever if it says no such thing.
    async fn next(&mut self) -> WhyMoving {
        while !self.is_closed {
            if let Some(why) = self.read().await {
                return why;
            }
        }
        std::future::pending().await
    }

    /// Takes one message; gives why the daemon is about to end, if it says so.
    async fn read(&mut self) -> Option<WhyMoving> {
        let read = self.from.read_until(b'\n', &mut self.line).await;
        let line = std::mem::take(&mut self.line);
        let said: Value = serde_json::from_slice(&line).unwrap_or_default();
        let end = said.get("result").cloned();
        if let Some(end) = end.and_then(|end| serde_json::from_value(end).ok()) {
            self.end = Some(end);
        }
        self.is_closed = self.end.is_some() || !matches!(read, Ok(count) if count > 0);
        let moving = (said["method"] == method::MOVING).then(|| said["params"]["why"].clone())?;
        Some(serde_json::from_value(moving).unwrap_or(WhyMoving::Stopped))
    }
}
