//! From one message to one answer, in both eras, with the script's faults applied.

use serde_json::{Value, json};

use super::tools;
use crate::{Script, Speaks};

const MODERN: &str = "2026-07-28";
const LATEST_LEGACY: &str = "2025-11-25";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// What to do about a message.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Say nothing.
    Nothing,
    /// End the process.
    Exit(u8),
    /// Send this.
    Message {
        /// The request's id.
        id: Value,
        /// The whole message.
        body: Value,
    },
}

/// What a method does.
pub(super) enum Outcome {
    /// Answers this result.
    Result(Value),
    /// Never answers.
    Never,
    /// Ends the process.
    Exit(u8),
}

/// An error on its way out: code and message.
pub(super) struct Fault(pub(super) i64, pub(super) String);

/// The server's memory between messages.
pub(super) struct Server {
    script: Script,
    answered: u32,
    initialized: bool,
    calls: u64,
}

impl Server {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            answered: 0,
            initialized: false,
            calls: 0,
        }
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn answer(&mut self, text: &str) -> Answer {
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            let fault = Fault(-32700, "parse error".to_owned());
            return error(Value::Null, &fault);
        };
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            return Answer::Nothing;
        };
        if let Some(exit) = self.exit_now(method) {
            return exit;
        }
        if self.script.silent.iter().any(|silent| silent == method) {
            return Answer::Nothing;
        }
        self.answered += 1;
        let modern = message["params"]["_meta"][VERSION_KEY].is_string();
        let outcome = if self.script.failing.iter().any(|failing| failing == method) {
            Err(Fault(-32603, format!("`{method}` fails by script")))
        } else {
            self.result(method, &message["params"], modern)
        };
        match outcome {
            Ok(Outcome::Result(mut result)) => {
                if modern {
                    complete(&mut result, method);
                }
                Answer::Message {
                    id: id.clone(),
                    body: json!({"jsonrpc":"2.0","id":id,"result":result}),
                }
            }
            Ok(Outcome::Never) => Answer::Nothing,
            Ok(Outcome::Exit(code)) => Answer::Exit(code),
            Err(fault) => error(id.clone(), &fault),
        }
    }

    fn exit_now(&self, method: &str) -> Option<Answer> {
        if let Some(code) = self.script.exit_on_probe
            && !self.initialized
            && method != "initialize"
        {
            return Some(exit(code));
        }
        let planned = self.script.exit?;
        (self.answered >= planned.after).then(|| exit(planned.code))
    }

    fn result(&mut self, method: &str, params: &Value, modern: bool) -> Result<Outcome, Fault> {
        let speaks = self.script.speaks;
        let unknown = || Fault(-32601, format!("method not found: {method}"));
        match method {
            "initialize" if speaks == Speaks::Modern => {
                Err(Fault(-32022, format!("this server speaks only {MODERN}")))
            }
            "initialize" => {
                self.initialized = true;
                Ok(Outcome::Result(self.greeting(params)))
            }
            _ if modern && speaks == Speaks::Legacy => Err(unknown()),
            _ if !modern && speaks == Speaks::Modern => {
                Err(Fault(-32602, format!("`_meta` has no `{VERSION_KEY}`")))
            }
            _ if modern && params["_meta"][VERSION_KEY] != MODERN => {
                Err(Fault(-32022, "unsupported protocol version".to_owned()))
            }
            "server/discover" if modern => Ok(Outcome::Result(self.discovery())),
            "ping" if !modern => Ok(Outcome::Result(json!({}))),
            "tools/list" => tools::list(&self.script, params).map(Outcome::Result),
            "tools/call" => {
                self.calls += 1;
                tools::call(&self.script, params, self.calls)
            }
            _ => Err(unknown()),
        }
    }

    fn greeting(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or(LATEST_LEGACY);
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY];
        let version = if known.contains(&asked) {
            asked
        } else {
            LATEST_LEGACY
        };
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": self.info(),
            "instructions": tools::prose(&self.script, "Does what its script says."),
        })
    }

    fn discovery(&self) -> Value {
        json!({
            "supportedVersions": [MODERN],
            "capabilities": { "tools": {} },
            "instructions": tools::prose(&self.script, "Does what its script says."),
            "_meta": { "io.modelcontextprotocol/serverInfo": self.info() },
        })
    }

    fn info(&self) -> Value {
        let name = if self.script.name.is_empty() {
            "chaos"
        } else {
            &self.script.name
        };
        json!({ "name": tools::prose(&self.script, name), "version": "1.0.0" })
    }
}

/// What every modern result carries.
fn complete(result: &mut Value, method: &str) {
    result["resultType"] = json!("complete");
    if method != "tools/call" {
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
}

fn error(id: Value, Fault(code, message): &Fault) -> Answer {
    let mut error = json!({ "code": code, "message": message });
    if *code == -32022 {
        error["data"] = json!({ "supported": [MODERN] });
    }
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    Answer::Message { id, body }
}

fn exit(code: i32) -> Answer {
    Answer::Exit(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests;
