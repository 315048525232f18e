//! `toolway serve` on stdio where a daemon runs: a pipe between the client and the daemon, which
//! outlives the daemon.
//!
//! Owns what becomes of a client when its daemon ends: it is introduced to the next one as it
//! introduced itself, what it follows is followed again, and what it asked is asked again, except for
//! calls: whether those were carried out is not known, and the client is told so (REL-29). Where no
//! daemon can be had, a process of this client's own takes its place. A client of an agent's endpoint
//! is moved in the same way. What the client asked of whom is `relay/ledger.rs`; the daemon's end, or
//! that process, is `relay/upstream.rs`.

mod ledger;
pub(crate) mod upstream;

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, timeout};
use toolway_config::Environment;
use toolway_gateway::agent_socket::{self, ReachError};
use toolway_gateway::daemon_socket::{RunEnd, RunRequest, WhyMoving};
use toolway_types::limits;

use self::ledger::{Ledger, begins_something};
use self::upstream::{Upstream, UpstreamEnd, UpstreamNews};
use crate::daemon_use::DaemonUse;
use crate::exit::Exit;
use crate::report::Report;
use crate::signals::{SignalSource, Signals};

/// How long what is under way may take to finish before a client is moved to another daemon.
const MOVES_WITHIN: Duration = Duration::from_secs(30);

/// How long a daemon may take to end once its client has hung up.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// How often in a row a client is moved that nothing came of.
const TRIES: u32 = 3;

/// How long another process may take to serve an endpoint whose own was lost.
const SERVED_WITHIN: Duration = Duration::from_secs(20);

/// How often that is looked at.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Serves the client at stdin and stdout until it hangs up, or until what serves it ends by itself.
pub(crate) fn run(
    environment: &Environment,
    request: &RunRequest,
    use_of_it: DaemonUse,
) -> Result<Option<RunEnd>, Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let Some(upstream) = Upstream::daemon(environment, request, use_of_it)? else {
            return Ok(None);
        };
        let behind = Behind::Command {
            environment,
            request,
            use_of_it,
        };
        let relay = Relay::new(behind, upstream);
        relay.serve().await.map(Some)
    });
    // Not waited for: a read of stdin ends only when the client hangs up.
    runtime.shutdown_background();
    outcome
}

/// The same for the client of an agent's endpoint, until it hangs up or the endpoint ends.
pub(crate) fn run_to_endpoint(socket: &Path) -> Result<RunEnd, Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        let upstream = endpoint(socket).await?;
        Relay::new(Behind::Endpoint(socket), upstream).serve().await
    });
    // Not waited for: a read of stdin ends only when the client hangs up.
    runtime.shutdown_background();
    outcome
}

/// An agent's endpoint, which may be about to be served by another process.
async fn endpoint(socket: &Path) -> Result<Upstream, Report> {
    let until = Instant::now() + SERVED_WITHIN;
    loop {
        match agent_socket::reach(socket).await {
            Ok(stream) => return Ok(Upstream::endpoint(stream)),
            Err(ReachError::Nobody) if Instant::now() < until => {
                tokio::time::sleep(LOOKS_EVERY).await;
            }
            Err(error) => {
                let shown = socket.display();
                let message = format!("the endpoint `{shown}` cannot be used: {error}");
                return Err(Report::new(Exit::Connection, message)
                    .hint("it ends with the program that `toolway run` started"));
            }
        }
    }
}

/// What is behind a relay, to be found again.
enum Behind<'a> {
    /// A command in the daemon, or in a process of the client's own.
    Command {
        environment: &'a Environment,
        request: &'a RunRequest,
        use_of_it: DaemonUse,
    },
    /// An agent's endpoint.
    Endpoint(&'a Path),
}

struct Relay<'a> {
    behind: Behind<'a>,
    ledger: Ledger,
    upstream: Upstream,
    /// What the client said while it was moved.
    held: Vec<Vec<u8>>,
    /// Until when what is under way may finish, once the daemon said that it ends.
    moving: Option<Instant>,
    /// How often in a row it was moved without an answer of anybody.
    tries: u32,
}

impl<'a> Relay<'a> {
    fn new(behind: Behind<'a>, upstream: Upstream) -> Self {
        Self {
            behind,
            ledger: Ledger::default(),
            upstream,
            held: Vec::new(),
            moving: None,
            tries: 0,
        }
    }

    async fn serve(mut self) -> Result<RunEnd, Report> {
        let mut signals = Signals::listen(&SignalSource::default());
        let mut client = BufReader::new(tokio::io::stdin());
        let mut output = tokio::io::stdout();
        let mut line = Vec::new();
        loop {
            if self.moving.is_some() && self.ledger.is_idle() {
                self.move_on(&mut output).await?;
                continue;
            }
            let late = async {
                match self.moving {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = read_line(&mut client, &mut line) => {
                    if read? == LineEnd::Closed {
                        return self.finish(&mut output).await;
                    }
                    let said = std::mem::take(&mut line);
                    self.take(said).await;
                }
                news = self.upstream.next() => match news {
                    UpstreamNews::Line(said) => self.give(said, &mut output).await?,
                    UpstreamNews::Moving(why) => {
                        self.moving = Some(Instant::now() + MOVES_WITHIN);
                        if let Behind::Command { use_of_it, .. } = &mut self.behind
                            && why == WhyMoving::Stopped
                        {
                            *use_of_it = DaemonUse::Off;
                        }
                    }
                    UpstreamNews::End(UpstreamEnd::Done(end)) if self.moving.is_none() => {
                        return Ok(end);
                    }
                    UpstreamNews::End(_) => self.move_on(&mut output).await?,
                },
                () = late => self.move_on(&mut output).await?,
                signal = signals.next() => {
                    self.upstream.hang_up().await;
                    let _ = timeout(ENDS_WITHIN, self.upstream.ended()).await;
                    return Ok(RunEnd { exit: Exit::Success.code(), signal: Some(signal.as_raw_value()) });
                }
            }
        }
    }

    /// Takes what the client said.
    async fn take(&mut self, said: Vec<u8>) {
        // An answer, and what takes something back, is about what is under way.
        if self.moving.is_some() && begins_something(&said) {
            self.held.push(said);
            return;
        }
        if let Some(line) = self.ledger.take(said) {
            // A daemon that is gone is noticed where it is read.
            self.upstream.write(&line).await;
        }
    }

    /// Gives the client what was said to it.
    async fn give(&mut self, said: Vec<u8>, output: &mut tokio::io::Stdout) -> io::Result<()> {
        if let Some(line) = self.ledger.give(said) {
            self.tries = 0;
            write_line(output, &line).await?;
        }
        Ok(())
    }

    /// Goes on with another daemon, or with a process of this client's own.
    async fn move_on(&mut self, output: &mut tokio::io::Stdout) -> Result<(), Report> {
        self.tries += 1;
        let is_orderly = self.moving.take().is_some() && self.ledger.is_idle();
        self.upstream.hang_up().await;
        if is_orderly {
            let _ = timeout(ENDS_WITHIN, self.upstream.ended()).await;
        }
        for answer in self.ledger.answers_in_doubt() {
            write_line(output, &answer).await?;
        }
        self.upstream = self.next_upstream().await?;
        for line in self.ledger.introduction() {
            self.upstream.write(&line).await;
        }
        for news in self.ledger.changed_lists() {
            write_line(output, &news).await?;
        }
        for said in std::mem::take(&mut self.held) {
            self.take(said).await;
        }
        Ok(())
    }

    async fn next_upstream(&self) -> Result<Upstream, Report> {
        let may_try = self.tries < TRIES;
        match &self.behind {
            Behind::Endpoint(socket) if self.tries <= TRIES => return endpoint(socket).await,
            Behind::Command {
                environment,
                request,
                use_of_it,
            } => {
                let may_be_daemon = *use_of_it != DaemonUse::Off && !self.upstream.is_last();
                if may_try
                    && may_be_daemon
                    && let Some(next) = Upstream::daemon(environment, request, *use_of_it)?
                {
                    return Ok(next);
                }
                if self.tries <= TRIES {
                    return Upstream::own(environment);
                }
            }
            Behind::Endpoint(_) => {}
        }
        Err(Report::new(
            Exit::Connection,
            "what serves this client ends again and again",
        )
        .hint("see why with `toolway daemon logs`, or run `toolway serve --no-daemon` by hand"))
    }

    /// The client has hung up: what is under way may finish.
    async fn finish(mut self, output: &mut tokio::io::Stdout) -> Result<RunEnd, Report> {
        self.upstream.hang_up().await;
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            match tokio::time::timeout_at(until, self.upstream.next()).await {
                Ok(UpstreamNews::Line(said)) => self.give(said, output).await?,
                Ok(UpstreamNews::Moving(_)) => {}
                Ok(UpstreamNews::End(UpstreamEnd::Done(end))) => return Ok(end),
                Ok(UpstreamNews::End(UpstreamEnd::Lost)) | Err(_) => {
                    return Ok(RunEnd {
                        exit: Exit::Success.code(),
                        signal: None,
                    });
                }
            }
        }
    }
}

/// How reading a line ended.
#[derive(Debug, PartialEq, Eq)]
enum LineEnd {
    /// There is one.
    Whole,
    /// There is none, and will be none.
    Closed,
}

/// Reads on until the line is whole. May be dropped: what was read stays in `line`. A line that is too
/// long is passed on as it is: whoever reads it says so.
async fn read_line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<LineEnd> {
    let left = (limits::gateway::STDIO_LINE + 2).saturating_sub(line.len());
    let mut bounded = from.take(u64::try_from(left).unwrap_or(u64::MAX));
    bounded.read_until(b'\n', line).await?;
    Ok(if line.is_empty() {
        LineEnd::Closed
    } else {
        LineEnd::Whole
    })
}

async fn write_line(output: &mut tokio::io::Stdout, line: &[u8]) -> io::Result<()> {
    output.write_all(line).await?;
    output.flush().await
}
