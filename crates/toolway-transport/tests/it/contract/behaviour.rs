//! What the server of the suite does, wherever it is.
//!
//! `echo` gives its parameters back, `notes` the notifications so far, `progress` reports as often
//! as asked and then answers, `ask` asks something itself and answers when it has its own answer,
//! `large` answers with that many bytes, `never` does not answer, `quit` dies, `leave` says that
//! it is done.

use std::sync::Mutex;

use serde_json::{Value, json};

/// The same as a program.
pub(super) const SCRIPT: &str = r#"
import sys, json, os
notes, asked = [], None
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    id, method, params = m.get("id"), m.get("method"), m.get("params")
    if method is None: say({"id": asked, "result": {"answered": id}})
    elif id is None: notes.append(params)
    elif method == "quit": os._exit(3)
    elif method == "leave": os.close(1); sys.stdin.read()
    elif method == "never": pass
    elif method == "ask": asked = id; say({"id": "s-1", "method": "ping"})
    elif method == "progress":
        for n in range(params): say({"method": "notifications/progress", "params": n})
        say({"id": id, "result": {}})
    elif method == "large": say({"id": id, "result": "x" * params})
    else: say({"id": id, "result": notes if method == "notes" else params})
"#;

/// One thing a server does.
pub(super) enum Deed {
    Say(Value),
    Quit,
    Leave,
}

/// What it remembers.
#[derive(Default)]
pub(super) struct Memory(Mutex<(Vec<Value>, Value)>);

impl Memory {
    /// What it does about a message.
    pub(super) fn react(&self, message: &Value) -> Vec<Deed> {
        let mut memory = self.0.lock().expect("no panic");
        let (notes, asked) = &mut *memory;
        let (id, params) = (message["id"].clone(), message["params"].clone());
        let answer =
            |result: Value| Deed::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        match message["method"].as_str() {
            None => {
                let result = json!({"answered": id});
                vec![Deed::Say(
                    json!({"jsonrpc": "2.0", "id": asked, "result": result}),
                )]
            }
            Some(_) if id.is_null() => {
                notes.push(params);
                Vec::new()
            }
            Some("quit") => vec![Deed::Quit],
            Some("leave") => vec![Deed::Leave],
            Some("never") => Vec::new(),
            Some("ask") => {
                *asked = id;
                vec![Deed::Say(
                    json!({"jsonrpc": "2.0", "id": "s-1", "method": "ping"}),
                )]
            }
            Some("progress") => {
                let report = |number| {
                    let method = "notifications/progress";
                    Deed::Say(json!({"jsonrpc": "2.0", "method": method, "params": number}))
                };
                let count = params.as_u64().expect("a number");
                (0..count).map(report).chain([answer(json!({}))]).collect()
            }
            Some("large") => {
                let size = params.as_u64().and_then(|size| usize::try_from(size).ok());
                vec![answer(json!("x".repeat(size.expect("a number"))))]
            }
            Some("notes") => vec![answer(json!(notes))],
            Some(_) => vec![answer(params)],
        }
    }
}
