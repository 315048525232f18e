//! How the pipeline reaches a built-in tool: by a route like that of a server.
//!
//! Owns the way there, and the part of a catalogue by which the tools enter it, which is made again
//! only when something about them changes. A bug in a tool ends that call and nothing else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_config::{Boundaries, CallSubject};
use toolway_types::{ConnectionState, ServerName, ToolKey};
use toolway_wire::{RawJson, view};

use crate::account::Connectors;
use crate::builtin::{Builtin, BuiltinCall, HostHandle, Progressing, authenticate};
use crate::catalog::deferral::Deferral;
use crate::catalog::{
    AimedOffering, AimedServer, BuiltinBackend, CatalogBuiltin, HostPart, Presence,
};
use crate::error::{RequestError, RequestResult};
use crate::offering::READS;
use crate::route::{RequestOptions, Route};
use crate::snapshot::ServerSnapshot;

/// Where the host's own tools are kept.
pub(crate) struct BuiltinTools {
    host: HostHandle,
    tools: Vec<(Builtin, Presence)>,
    made: Option<MadePart>,
}

/// The part that was made last, and what for.
struct MadePart {
    deferral: Deferral,
    /// The servers that want a login.
    locked: Vec<ServerName>,
    part: Arc<HostPart>,
}

impl BuiltinTools {
    /// The host's own tools.
    pub(crate) fn new(host: HostHandle) -> Self {
        Self {
            host,
            tools: crate::builtin::standard().into(),
            made: None,
        }
    }

    /// Another account's connectors are servers too from now on.
    pub(crate) fn set_connectors(&mut self, connectors: Option<Connectors>) {
        self.host.connectors = connectors;
        self.made = None;
    }

    /// The servers are others now, or are described otherwise.
    pub(crate) fn forget_servers(&mut self) {
        self.made = None;
    }

    /// Adds tools of the embedding program. Of two with one name the first counts.
    pub(crate) fn add(&mut self, tools: Vec<Builtin>) {
        self.made = None;
        for tool in tools {
            if self.tools.iter().any(|(known, _)| known.name == tool.name) {
                tracing::warn!(name = tool.name, "two built-in tools of one name");
                continue;
            }
            self.tools.push((tool, Presence::Always));
        }
    }

    /// The host's part of a catalogue beside these servers, each with its address: the one that
    /// was made before, as long as the same servers want a login.
    pub(crate) fn part<'a>(
        &mut self,
        deferral: Deferral,
        boundaries: &Boundaries,
        servers: &(impl Iterator<Item = (&'a ServerSnapshot, Option<&'a str>)> + Clone),
    ) -> Arc<HostPart> {
        let login_of = |server: &ServerName| ToolKey::new(server.clone(), authenticate::NAME);
        let wants_login = |server: &ServerSnapshot| {
            matches!(server.state, ConnectionState::NeedsAuth { .. })
                && boundaries.have(CallSubject::tool(&login_of(&server.name)).with_hints(READS))
        };
        let locked = servers.clone().filter(|(server, _)| wants_login(server));
        if let Some(made) = &self.made
            && made.deferral == deferral
            && locked
                .clone()
                .map(|(server, _)| &server.name)
                .eq(&made.locked)
        {
            return Arc::clone(&made.part);
        }
        let mut own = Vec::new();
        let mut listed = Vec::new();
        for (tool, presence) in &self.tools {
            let key = ToolKey::new(ServerName::built_in(), &tool.name);
            listed.push(tool.listed());
            own.push(self.own(tool.clone(), key, *presence));
        }
        for (server, url) in locked.clone() {
            let key = login_of(&server.name);
            let normalized = server.name.normalized();
            let is_alike =
                |(other, _): &(&ServerSnapshot, _)| other.name.normalized() == normalized;
            let name = match servers.clone().filter(is_alike).count() {
                1 => key.exposed(),
                _ => key.exposed_apart(),
            };
            let tool = authenticate::tool(&name, server, url.map(ToOwned::to_owned));
            listed.push(tool.listed());
            own.push(self.own(tool, key, Presence::Always));
        }
        let listed = to_raw_value(&json!({ "tools": listed }));
        let tools = listed.ok().and_then(|listed| view::tools(&listed).ok());
        let tools = tools.map(|page| page.items).unwrap_or_default();
        let part = Arc::new(HostPart::new(tools, own, deferral));
        self.made = Some(MadePart {
            deferral,
            locked: locked.map(|(server, _)| server.name.clone()).collect(),
            part: Arc::clone(&part),
        });
        part
    }

    fn own(&self, tool: Builtin, key: ToolKey, presence: Presence) -> CatalogBuiltin {
        let name = tool.name.clone();
        let (free, aims) = (tool.free, tool.aims);
        let own = BuiltinRoute {
            tool,
            host: self.host.clone(),
            aimed: None,
        };
        let aim = aims.map(|offering| {
            let own = own.clone();
            AimedOffering {
                offering,
                route: Arc::new(move |aimed| {
                    Arc::new(BuiltinRoute {
                        aimed: Some(aimed),
                        ..own.clone()
                    })
                }),
            }
        });
        CatalogBuiltin {
            key,
            name,
            answers: BuiltinBackend {
                presence,
                free,
                aim,
                route: Arc::new(own),
            },
        }
    }
}

#[derive(Clone)]
struct BuiltinRoute {
    tool: Builtin,
    host: HostHandle,
    aimed: Option<AimedServer>,
}

impl Route for BuiltinRoute {
    fn request<'a>(
        &'a self,
        _method: &'a str,
        params: Box<RawValue>,
        options: RequestOptions<'a>,
    ) -> BoxFuture<'a, RequestResult> {
        #[derive(Deserialize)]
        struct Params {
            arguments: Map<String, Value>,
        }
        async move {
            let params: Params = serde_json::from_str(params.get())
                .map_err(|error| RequestError::Malformed(error.to_string()))?;
            let call = BuiltinCall {
                arguments: params.arguments,
                host: HostHandle {
                    caller: options.origin.map(|origin| Arc::clone(&origin.caller)),
                    ..self.host.clone()
                },
                pool: options.pool,
                progress: Progressing(options.progress),
                aimed: self.aimed.clone(),
            };
            let answer = AssertUnwindSafe(async { (self.tool.handler)(call).await });
            match tokio::time::timeout(options.timeout, answer.catch_unwind()).await {
                Err(_) => Err(RequestError::TimedOut),
                Ok(Err(_)) => Err(RequestError::Malformed(
                    "nothing: a bug ended it".to_owned(),
                )),
                Ok(Ok(answer)) => to_raw_value(&answer.into_result())
                    .map(RawJson::from)
                    .map_err(|error| RequestError::Malformed(error.to_string())),
            }
        }
        .boxed()
    }
}
