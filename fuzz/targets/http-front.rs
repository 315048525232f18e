//! Fuzz target: the bytes of one connection to the gateway.
//!
//! Owns the promises of `toolway_gateway::http`: whatever comes, nothing panics; what is said back is
//! HTTP, one answer after the other, and JSON where it says so; every message that reaches the service
//! came with our name, our token and the content type of JSON, and each request among them has one
//! answer. `{t}` in the input stands for the token and `{h}` for the address.
#![no_main]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;
use toolway_gateway::http::access::OwnerToken;
use toolway_gateway::http::{Access, HttpOptions, fuzzing};
use toolway_gateway::{Answer, AnswerFuture, Conversation, IncomingRequest, Outlet, stateless};
use toolway_wire::RawJson;

const TOKEN: &str = "fuzz-0123456789abcdef";
const ADDRESS: &str = "127.0.0.1:8808";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
});

#[derive(Default)]
struct Counting {
    requests: AtomicUsize,
    told: AtomicUsize,
}

impl Conversation for Counting {
    fn request(self: Arc<Self>, request: IncomingRequest, _outlet: Outlet) -> AnswerFuture {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let result = br#"{"counted":true,"params":"#.as_slice();
        let params = request.params.unwrap_or_default();
        let result = [result, params.bytes(), b"}"].concat();
        let result = RawJson::read(&result.into()).expect("parameters are JSON");
        Box::pin(std::future::ready(Answer::result(result)))
    }

    fn notified(self: Arc<Self>, _method: &str, _params: Option<RawJson>) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

fuzz_target!(|data: &[u8]| {
    let bytes = filled_in(data);
    let counting = Arc::new(Counting::default());
    let options = HttpOptions {
        access: Access::Checked(Arc::new(OwnerToken::new(TOKEN, "fuzz"))),
        old_transport: false,
        ..HttpOptions::at(ADDRESS.parse().expect("an address"))
    };
    let service = stateless(Arc::clone(&counting) as Arc<dyn Conversation>);
    let said = RUNTIME.block_on(fuzzing::answered(service, &options, &bytes));

    let (requests, told) = (
        counting.requests.load(Ordering::Relaxed),
        counting.told.load(Ordering::Relaxed),
    );
    let answers = Answers::read(&said);
    assert_eq!(answers.results, requests, "{answers:?}");
    let lower = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let count = |what: &str| lower.matches(what).count();
    if requests + told > 0 {
        assert!(count(TOKEN) >= requests + told, "without a token");
        assert!(count("application/json") >= requests + told, "without its type");
        let named = count("127.0.0.1:8808") + count("localhost:8808") + count("[::1]:8808");
        assert!(named >= requests + told, "by another name");
    }
    assert!(!answers.heads.contains("access-control"));
});

fn filled_in(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let [first, behind @ ..] = rest {
        if let Some(after) = rest.strip_prefix(b"{t}") {
            out.extend_from_slice(TOKEN.as_bytes());
            rest = after;
        } else if let Some(after) = rest.strip_prefix(b"{h}") {
            out.extend_from_slice(ADDRESS.as_bytes());
            rest = after;
        } else {
            out.push(*first);
            rest = behind;
        }
    }
    out
}

/// What was answered, taken apart by hand.
#[derive(Debug, Default)]
struct Answers {
    heads: String,
    results: usize,
}

impl Answers {
    fn read(mut said: &[u8]) -> Self {
        let mut answers = Self::default();
        while !said.is_empty() {
            let end = said.windows(4).position(|four| four == b"\r\n\r\n");
            let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(said)));
            let head = std::str::from_utf8(&said[..end]).expect("a head is text");
            let head = head.to_ascii_lowercase();
            said = &said[end + 4..];
            let mut lines = head.split("\r\n");
            let first = lines.next().unwrap_or_default();
            let status = first.split(' ').nth(1).and_then(|it| it.parse::<u16>().ok());
            let status = status.unwrap_or_else(|| panic!("no status: {first}"));
            assert!((100..600).contains(&status) && status != 500, "{first}");
            if status == 100 {
                continue;
            }
            let header = |name: &str| {
                let mut lines = head.split("\r\n");
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            let length = header("content-length").and_then(|it| it.parse::<usize>().ok());
            let is_json = header("content-type") == Some("application/json");
            let body = match (header("transfer-encoding"), length) {
                (Some(_), _) => chunks(&mut said),
                // An answer to `HEAD` has none.
                (None, Some(length)) if said.len() >= length => {
                    let (body, rest) = said.split_at(length);
                    said = rest;
                    body.to_vec()
                }
                (None, _) => Vec::new(),
            };
            if is_json && !body.is_empty() {
                let text = std::str::from_utf8(&body).expect("JSON is text");
                let read: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text);
                assert!(read.is_ok(), "{text}");
                answers.results += usize::from(text.contains(r#""result":{"counted":true"#));
            } else if !is_json {
                let text = String::from_utf8_lossy(&body);
                answers.results += text.matches(r#""result":{"counted":true"#).count();
            }
            answers.heads.push_str(&head);
        }
        answers
    }
}

fn chunks(said: &mut &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = said.windows(2).position(|two| two == b"\r\n").expect("a size");
        let size = std::str::from_utf8(&said[..line]).expect("a size is text");
        let size = usize::from_str_radix(size, 16).expect("a size is a number");
        *said = &said[line + 2..];
        body.extend_from_slice(&said[..size]);
        *said = &said[size + 2..];
        if size == 0 {
            return body;
        }
    }
}
