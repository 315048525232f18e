//! Fuzz target: answers of servers over HTTP.
//!
//! Owns the promises of taking them: whatever status, headers and body a server sends, and however
//! the body is cut, there is an end, and it is the same one; a request that was answered got its
//! answer as the last message; nothing larger than the caps is delivered or kept.
#![no_main]

use std::cell::RefCell;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use toolway_transport::http::fuzzing::AnswerReader;
use toolway_transport::{AnswerTimeout, ChannelEvent, ChannelLimits, OpenOptions, OutgoingMessage, SendFailure, RequestTag};
use toolway_types::RemoteSpec;
use toolway_wire::{Id, Message, envelope};

/// So small that many answers go beyond them.
const LIMIT: usize = 256;

/// The id of the request that is answered.
const ID: u64 = 7;

struct Stage {
    runtime: Runtime,
    taker: AnswerReader,
}

thread_local! {
    static STAGE: RefCell<Stage> = RefCell::new(Stage::new());
}

impl Stage {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        let url = "http://127.0.0.1:9/mcp".parse().expect("a URL");
        let options = OpenOptions {
            limits: ChannelLimits {
                response: LIMIT,
                sse_event: LIMIT,
                ..ChannelLimits::default()
            },
            ..OpenOptions::default()
        };
        let spec = RemoteSpec {
            url,
            headers: Vec::new(),
            headers_helper: None,
            oauth: None,
        };
        let taker = AnswerReader::new(&spec, &options).expect("a taker");
        Self { runtime, taker }
    }
}

/// What came of an answer, in a form that can be compared.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<String>,
    end: Result<(), SendFailure>,
}

// A status and a size of pieces, then headers up to an empty line, then the body.
fuzz_target!(|data: &[u8]| {
    let [high, low, size, rest @ ..] = data else {
        return;
    };
    let status = 200 + u16::from_be_bytes([*high, *low]) % 400;
    let end = rest.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&rest[..end], &rest[end + 2..]),
        None => (&[][..], rest),
    };
    STAGE.with_borrow_mut(|stage| {
        let whole = take(stage, status, head, &[body]);
        for size in [1, usize::from(*size).max(2)] {
            let pieces: Vec<&[u8]> = body.chunks(size).collect();
            let cut = take(stage, status, head, &pieces);
            assert_eq!(cut, whole, "in pieces of {size}");
        }
    });
});

fn take(stage: &mut Stage, status: u16, head: &[u8], pieces: &[&[u8]]) -> Outcome {
    let body: Vec<Bytes> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    for line in head.split(|byte| *byte == b'\n').take(16) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(&line[..colon]),
            HeaderValue::from_bytes(value.trim_ascii()),
        ) {
            answer.headers_mut().append(name, value);
        }
    }
    let outgoing = OutgoingMessage {
        bytes: Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"tools/list"}}"#)),
        tag: Some(RequestTag(ID)),
        headers: Vec::new(),
        answer_timeout: AnswerTimeout::ByChannel,
    };
    let Stage { runtime, taker } = stage;
    let (events, mut end) = runtime.block_on(taker.take(answer, &outgoing));
    let mut answered = false;
    for event in &events {
        match event {
            ChannelEvent::Message { bytes: message, .. } => {
                assert!(message.len() <= LIMIT);
                answered |= answers(message);
            }
            ChannelEvent::Oversized { limit, .. } => assert_eq!(*limit, LIMIT),
            ChannelEvent::Failed { .. } | ChannelEvent::Closed(_) => panic!("{event:?} is not its to say"),
        }
    }
    if end.is_ok() {
        assert!(answered, "it ended well without an answer");
    }
    if let Err(SendFailure::Status {
        body, retry_after, ..
    }) = &mut end
    {
        assert!(body.len() <= 64 * 1024);
        // Until a date it is another time every time.
        *retry_after = None;
    }
    let events = events.iter().map(|event| format!("{event:?}")).collect();
    Outcome { events, end }
}

fn answers(message: &[u8]) -> bool {
    matches!(
        envelope::parse(message),
        Ok(Message::Response { id: Some(id), .. }) if id == Id::from(ID) || id.as_ours() == Some(ID)
    )
}
