//! The entry points of the fuzz targets in `fuzz/`: what a server sends over HTTP.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`, so that answers and
//! event streams can be read from any bytes, without a socket.

use bytes::Bytes;
use tokio::sync::mpsc;
use toolway_types::RemoteSpec;

use super::endpoint::{Endpoint, classify, require_success};
use super::exchange::ExchangeContext;
use super::session::{HttpSession, MessageRules};
use super::stream::{EventDecoder, EventTooLarge, StreamEvent};
use crate::channel::{ChannelEvent, OutgoingMessage};
use crate::error::SendFailure;
use crate::{OpenError, OpenOptions};

/// What a stream brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecodedStream {
    /// Its events, each as its kind and its data.
    pub events: Vec<(&'static str, Vec<u8>)>,
    /// Where it would be resumed.
    pub last_id: Option<String>,
    /// How long the server asks to wait before.
    pub retry: Option<std::time::Duration>,
    /// How many keepalives there were.
    pub keepalives: u32,
}

/// Reads an event stream in these pieces; events over the cap are read past. Gives what it brought,
/// and the most bytes that waited meanwhile.
pub fn stream<'a>(
    limit: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (DecodedStream, usize) {
    let mut decoder = EventDecoder::new(limit);
    let mut heard = DecodedStream::default();
    let mut most = 0;
    for piece in pieces {
        decoder.feed(piece);
        loop {
            heard.events.push(match decoder.next_event() {
                Ok(Some(StreamEvent::Message(data))) => ("message", data.to_vec()),
                Ok(Some(StreamEvent::Endpoint(data))) => ("endpoint", data.to_vec()),
                Ok(Some(StreamEvent::Oversized(id))) => {
                    ("oversized", format!("{id:?}").into_bytes())
                }
                Ok(None) => break,
                Err(EventTooLarge) => {
                    decoder.skip();
                    continue;
                }
            });
        }
        most = most.max(decoder.held());
    }
    heard.last_id = decoder.last_id().map(ToOwned::to_owned);
    heard.retry = decoder.retry();
    heard.keepalives = decoder.keepalives();
    (heard, most)
}

/// A channel's end that takes answers as if they had come from a server.
pub struct AnswerReader {
    context: ExchangeContext,
    events: mpsc::Receiver<ChannelEvent>,
}

impl AnswerReader {
    /// For answers of a server at this place, which is never reached.
    pub fn new(spec: &RemoteSpec, options: &OpenOptions) -> Result<Self, OpenError> {
        let (sender, events) = mpsc::channel(1024);
        let context = ExchangeContext {
            endpoint: Endpoint::new(spec, options)?,
            session: HttpSession::default(),
            events: sender,
        };
        Ok(Self { context, events })
    }

    /// Takes one answer to this message; gives the messages it brought, and how it ended.
    pub async fn take(
        &mut self,
        answer: http::Response<Vec<Bytes>>,
        outgoing: &OutgoingMessage,
    ) -> (Vec<ChannelEvent>, Result<(), SendFailure>) {
        let (head, body) = answer.into_parts();
        let frames = body
            .into_iter()
            .map(|piece| Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(piece)));
        let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
        let response = http::Response::from_parts(head, reqwest::Body::wrap(body));
        let outcome = async {
            let response = require_success(response.into()).await?;
            let answer = classify(response).await?;
            // Modern: a stream that was cut is not resumed.
            self.context
                .take(answer, outgoing, MessageRules::Modern)
                .await
        };
        let outcome = outcome.await;
        let mut events = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            events.push(event);
        }
        (events, outcome)
    }
}
