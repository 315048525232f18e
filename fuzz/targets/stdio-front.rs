//! Fuzz target: the lines of one client over stdin.
//!
//! Owns the promises of `toolway_gateway::stdio`: whatever comes, nothing panics; what is said back is
//! JSON, one message on each line; a request that only one reading has is answered once, with its id;
//! and no line has more than one answer.
#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::Runtime;
use toolway_gateway::{
    Answer, AnswerFuture, Conversation, IncomingRequest, Outlet, Peer, stateless, stdio,
};
use toolway_wire::scan;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
});

struct Repeating;

impl Conversation for Repeating {
    fn request(self: Arc<Self>, request: IncomingRequest, outlet: Outlet) -> AnswerFuture {
        if request.method == "say" {
            outlet.notify(br#"{"jsonrpc":"2.0","method":"said"}"#.as_slice().into());
        }
        let params = request.params.filter(|params| params.get().starts_with('{'));
        Box::pin(std::future::ready(Answer::result(params.unwrap_or_default())))
    }
}

fuzz_target!(|data: &[u8]| {
    let (mut client, server) = duplex(1 << 20);
    let (input, output) = tokio::io::split(server);
    let service = stateless(Arc::new(Repeating));
    let peer = Peer::owner("fuzz");
    let served = stdio::serve_on(service, &peer, input, output);
    let talk = async {
        client.write_all(data).await.expect("there is room");
        client.shutdown().await.expect("it is open");
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.expect("it can be read");
        said
    };
    let said = RUNTIME.block_on(async {
        let (served, said) = tokio::join!(async { served.await }, talk);
        served.expect("nothing broke");
        said
    });
    let said = String::from_utf8(said).expect("JSON is text");
    let mut answers: HashMap<String, usize> = HashMap::new();
    let mut all = 0;
    for line in said.lines() {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            // What no value of ours has room for is still JSON.
            Err(_) => {
                let raw: Result<&serde_json::value::RawValue, _> = serde_json::from_str(line);
                assert!(raw.is_ok(), "{line}");
                all += 1;
                continue;
            }
        };
        if message.get("method").is_none() {
            all += 1;
            *answers.entry(message["id"].to_string()).or_default() += 1;
        }
    }
    let lines = data.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    let mut asked: HashMap<String, usize> = HashMap::new();
    let mut most = 0;
    for line in lines {
        most += 1;
        if takes_back(line) {
            // What a client does not want answered any more need not be.
            asked.clear();
        }
        if let Some(id) = clear_request(line) {
            *asked.entry(id).or_default() += 1;
        }
    }
    assert!(all <= most, "{all} answers to {most} lines");
    for (id, count) in asked {
        let answered = answers.get(&id).copied().unwrap_or_default();
        assert!(answered >= count, "{id}: {answered} answers to {count}: {said}");
    }
});

/// Whether a line may take requests back that came before it.
fn takes_back(line: &[u8]) -> bool {
    let message: Result<Value, _> = serde_json::from_slice(line);
    message.is_ok_and(|message| message["method"] == "notifications/cancelled")
}

/// The id of a line that is a request to every reader.
fn clear_request(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    if scan::doubled_key(text).is_some() || !scan::is_shallow(line) {
        return None;
    }
    let message: Value = serde_json::from_str(text).ok()?;
    let object = message.as_object()?;
    let is_two = object.get("jsonrpc").is_none_or(|it| it == "2.0");
    let id = object.get("id")?;
    let is_id = id.is_string() || id.as_i64().is_some_and(|id| id.unsigned_abs() < 1 << 53);
    let is_request = is_two && is_id && object.get("method")?.is_string();
    is_request.then(|| id.to_string())
}
