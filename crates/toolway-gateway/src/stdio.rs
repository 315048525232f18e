//! MCP over this process's stdin and stdout: one message per line.
//!
//! Owns the lines and their bound. Nothing but messages is ever written to stdout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use toolway_types::limits;
use toolway_wire::Id;
use toolway_wire::skim::IdSkimmer;

use crate::conversation::{Peer, Service};
use crate::error::RequestRefusal;
use crate::ordered::OrderedClient;

/// The longest line taken; a longer one is answered with an error and skipped.
pub const MAX_LINE: usize = limits::gateway::STDIO_LINE;

/// How long requests under way may take to finish once the client closed its end.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves this process's stdin and stdout until stdin ends.
pub async fn serve(service: Arc<dyn Service>, peer: &Peer) -> io::Result<()> {
    serve_on(service, peer, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves any pair of byte streams until the input ends.
pub async fn serve_on(
    service: Arc<dyn Service>,
    peer: &Peer,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send,
) -> io::Result<()> {
    serve_within(service, peer, input, output, PipeTimes::default()).await
}

/// How long a client may say nothing while nothing of it is under way; for ever when absent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PipeTimes {
    /// Before its first message is whole.
    pub(crate) first: Option<Duration>,
    /// After that.
    pub(crate) idle: Option<Duration>,
}

/// The same for a client that is cut off when it says nothing for too long.
pub(crate) async fn serve_within(
    service: Arc<dyn Service>,
    peer: &Peer,
    input: impl AsyncRead + Unpin + Send,
    mut output: impl AsyncWrite + Unpin + Send,
    times: PipeTimes,
) -> io::Result<()> {
    let mut client = OrderedClient::new(&*service, peer).map_err(io::Error::other)?;
    let outlet = client.outlet().clone();
    let mut lines = InputLines::new(input);
    // Beside the rest: a client that stops reading holds up its answers, not the calls that make
    // them.
    let writing = async {
        loop {
            write_line(&mut output, &outlet.next().await).await?;
            outlet.written();
        }
    };
    let talking = async {
        let mut limit = times.first;
        loop {
            let is_idle = client.is_idle();
            tokio::select! {
                line = lines.next(), if client.has_room() => {
                    match line? {
                        Some(InputLine::Whole(line)) => client.accept(&line),
                        Some(InputLine::TooLong(id)) => {
                            let refusal = RequestRefusal::TooLarge { limit: MAX_LINE };
                            client.refuse(&refusal, id.as_ref());
                        }
                        None => break,
                    }
                    limit = times.idle;
                }
                () = client.carry_on() => {}
                () = after(limit), if is_idle => break,
            }
        }
        // `printf … | toolway serve` deserves its answers; a hung tool must not hold the process.
        if tokio::time::timeout(DRAIN, client.drain()).await.is_err() {
            tracing::debug!("answers were cut off at the end of input");
        }
        Ok(())
    };
    tokio::select! {
        broken = writing => broken,
        ended = talking => ended,
    }
}

async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

async fn write_line(output: &mut (impl AsyncWrite + Unpin), message: &Bytes) -> io::Result<()> {
    let mut line = BytesMut::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    line.extend_from_slice(b"\n");
    output.write_all(&line).await?;
    output.flush().await
}

enum InputLine {
    Whole(Bytes),
    /// The id of the request that it was, where it could be seen.
    TooLong(Option<Id>),
}

/// Lines of bounded length. Everything read so far lives in the struct, so that a lost `next`
/// loses nothing.
struct InputLines<R> {
    input: R,
    buffer: BytesMut,
    /// Bytes of the buffer already known to hold no line break.
    searched: usize,
    /// What was seen of a line that is too long, whose start is gone already.
    skipped: Option<IdSkimmer>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> InputLines<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            buffer: BytesMut::new(),
            searched: 0,
            skipped: None,
            ended: false,
        }
    }

    /// The next line that is not blank.
    async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            if self.buffer.len() > MAX_LINE {
                let skimmer = self.skipped.get_or_insert_default();
                skimmer.feed(&self.buffer);
                self.buffer.clear();
                self.searched = 0;
            }
            self.buffer.reserve(8 * 1024);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                self.ended = true;
                // A last line without its break is a line.
                self.buffer.extend_from_slice(b"\n");
            }
        }
    }

    fn take_line(&mut self) -> Option<InputLine> {
        while let Some(found) = self.buffer[self.searched..]
            .iter()
            .position(|b| *b == b'\n')
        {
            let mut line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            line.truncate(line.len() - 1);
            if self.skipped.is_some() || line.len() > MAX_LINE {
                let mut skimmer = self.skipped.take().unwrap_or_default();
                skimmer.feed(&line);
                return Some(InputLine::TooLong(skimmer.request_id()));
            }
            if !line.trim_ascii().is_empty() {
                return Some(InputLine::Whole(line.freeze()));
            }
        }
        self.searched = self.buffer.len();
        None
    }
}
