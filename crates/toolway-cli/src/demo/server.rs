//! One demo server: both eras in one handler.
//!
//! Owns the protocol: handshake, discovery, versions, methods. What it offers is in `tools.rs` and
//! `library.rs`. It has no state, so one object serves any number of clients without sessions.

use std::future::ready;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_gateway::{Answer, AnswerFuture, Conversation, IncomingRequest, Outlet};
use toolway_types::Era;
use toolway_wire::era::{self, meta_key, method};
use toolway_wire::{RawJson, RpcError, error as code};

use super::flavour::Flavour;
use super::tools::invalid;
use super::{library, tools};

/// The eras a demo server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Speaks {
    /// Only `initialize` and what follows it.
    Legacy,
    /// Only 2026-07-28.
    Modern,
    /// Whatever the client speaks.
    #[default]
    Both,
}

/// A demo server.
#[derive(Debug, Clone)]
pub(crate) struct DemoServer {
    flavour: Flavour,
    speaks: Speaks,
}

impl DemoServer {
    /// A server of both eras.
    pub(crate) fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            speaks: Speaks::Both,
        }
    }

    /// The same server, answering only these eras.
    #[must_use]
    pub(crate) fn speaking(mut self, speaks: Speaks) -> Self {
        self.speaks = speaks;
        self
    }

    fn answer(&self, method: &str, params: Option<&RawValue>) -> Answer {
        let result = self.serve(method, params).and_then(|result| {
            to_raw_value(&result)
                .map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
        });
        match result {
            Ok(result) => Answer::result(result),
            Err(error) => error.into(),
        }
    }

    fn serve(&self, method: &str, params: Option<&RawValue>) -> Result<Value, RpcError> {
        let params: Map<String, Value> = match params.map(|raw| serde_json::from_str(raw.get())) {
            None => Map::new(),
            Some(Ok(params)) => params,
            Some(Err(_)) => return Err(invalid("the parameters must be an object")),
        };
        match self.era(method, &params)? {
            Era::Legacy => self.legacy(method, &params),
            Era::Modern => {
                let mut result = self.modern(method, &params)?;
                result["resultType"] = json!("complete");
                if !matches!(method, method::TOOLS_CALL | method::PROMPTS_GET) {
                    // Nothing here depends on who asks or when.
                    result["ttlMs"] = json!(60_000);
                    result["cacheScope"] = json!("public");
                }
                Ok(result)
            }
        }
    }

    /// Which era a request is written in, checked against what this server speaks.
    fn era(&self, method: &str, params: &Map<String, Value>) -> Result<Era, RpcError> {
        let meta = params.get("_meta");
        let version = meta.and_then(|meta| meta.get(meta_key::PROTOCOL_VERSION));
        if self.speaks == Speaks::Legacy {
            // A server of that time knows nothing of versions in `_meta`.
            return Ok(Era::Legacy);
        }
        if method == method::INITIALIZE {
            return match self.speaks {
                Speaks::Modern => Err(unsupported(
                    params.get("protocolVersion"),
                    era::MODERN_VERSIONS,
                )),
                Speaks::Legacy | Speaks::Both => Ok(Era::Legacy),
            };
        }
        let Some(version) = version else {
            return match self.speaks {
                Speaks::Both if method != method::DISCOVER => Ok(Era::Legacy),
                _ => Err(missing(meta_key::PROTOCOL_VERSION)),
            };
        };
        if !version
            .as_str()
            .is_some_and(|version| era::MODERN_VERSIONS.contains(&version))
        {
            return Err(unsupported(Some(version), era::MODERN_VERSIONS));
        }
        match meta.and_then(|meta| meta.get(meta_key::CLIENT_CAPABILITIES)) {
            Some(Value::Object(_)) => Ok(Era::Modern),
            _ => Err(missing(meta_key::CLIENT_CAPABILITIES)),
        }
    }

    fn legacy(&self, method: &str, params: &Map<String, Value>) -> Result<Value, RpcError> {
        match method {
            method::INITIALIZE => Ok(self.greeting(params)),
            method::PING => Ok(json!({})),
            _ => self.common(method, params, Era::Legacy),
        }
    }

    fn modern(&self, method: &str, params: &Map<String, Value>) -> Result<Value, RpcError> {
        match method {
            method::DISCOVER => Ok(json!({
                "supportedVersions": era::MODERN_VERSIONS,
                "capabilities": self.capabilities(),
                "instructions": self.flavour.instructions(),
                "_meta": { (meta_key::SERVER_INFO): self.info() },
            })),
            _ => self.common(method, params, Era::Modern),
        }
    }

    /// The methods that both eras have.
    fn common(
        &self,
        method: &str,
        params: &Map<String, Value>,
        era: Era,
    ) -> Result<Value, RpcError> {
        let keeps_things = self.flavour == Flavour::Library;
        match method {
            method::TOOLS_LIST => one_page(params, json!({ "tools": tools::list(self.flavour) })),
            method::TOOLS_CALL => tools::call(self.flavour, params),
            method::RESOURCES_LIST if keeps_things => {
                one_page(params, json!({ "resources": library::resources() }))
            }
            method::RESOURCE_TEMPLATES_LIST if keeps_things => {
                one_page(params, json!({ "resourceTemplates": [] }))
            }
            method::RESOURCES_READ if keeps_things => library::read(params, era),
            method::PROMPTS_LIST if keeps_things => {
                one_page(params, json!({ "prompts": library::prompts() }))
            }
            method::PROMPTS_GET if keeps_things => library::prompt(params),
            _ => Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                format!("no method `{method}`"),
            )),
        }
    }

    /// The version asked for when we know it, else our newest: so says the legacy handshake.
    fn greeting(&self, params: &Map<String, Value>) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let version = asked.filter(|asked| era::LEGACY_VERSIONS.contains(asked));
        json!({
            "protocolVersion": version.unwrap_or(era::LATEST_LEGACY),
            "capabilities": self.capabilities(),
            "serverInfo": self.info(),
            "instructions": self.flavour.instructions(),
        })
    }

    fn capabilities(&self) -> Value {
        match self.flavour {
            Flavour::Library => json!({ "tools": {}, "resources": {}, "prompts": {} }),
            Flavour::Desk | Flavour::Studio => json!({ "tools": {} }),
        }
    }

    fn info(&self) -> Value {
        json!({
            "name": format!("toolway-demo-{}", self.flavour.as_str()),
            "title": format!("Demo {}", self.flavour.as_str()),
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

impl Conversation for DemoServer {
    fn request(self: Arc<Self>, request: IncomingRequest, _outlet: Outlet) -> AnswerFuture {
        let params = request.params.as_ref().map(RawJson::as_raw);
        Box::pin(ready(self.answer(&request.method, params)))
    }
}

/// Everything fits one page, so no cursor is ever ours.
fn one_page(params: &Map<String, Value>, page: Value) -> Result<Value, RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(page),
        Some(_) => Err(invalid("unknown cursor")),
    }
}

fn missing(key: &str) -> RpcError {
    invalid(format!("`_meta` has no `{key}`"))
}

fn unsupported(requested: Option<&Value>, supported: &[&str]) -> RpcError {
    let mut error = RpcError::new(
        code::UNSUPPORTED_PROTOCOL_VERSION,
        "unsupported protocol version",
    );
    error.data = to_raw_value(&json!({ "supported": supported, "requested": requested })).ok();
    error
}

#[cfg(test)]
mod tests;
