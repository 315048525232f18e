//! A scene for calls: one scripted route, and what it was sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway_config::permission::HookLocation;
use toolway_transport::OpenOptions;
use toolway_types::{ConnectionState, Origin, Scope, Secret, ServerName, ToolKey};
use toolway_wire::view;

use super::super::hooks::{HookRunnerOwner, LibraryHook};
use super::super::result::MAX_PICTURE_MEMORY;
use super::super::*;
use crate::call::Progress;
use crate::catalog::ServerOffer;
use crate::error::{RequestError, RequestResult};
use crate::route::{GeneralLimits, RequestOptions, Route, Routes};

/// What a route saw of one request.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Sent {
    pub(in super::super) method: String,
    pub(in super::super) params: String,
    pub(in super::super) timeout: Duration,
    pub(in super::super) tool: Option<String>,
}

type Script = Box<dyn Fn(&str) -> RequestResult + Send + Sync>;

/// A line that answers by script and remembers what it was sent.
pub(in super::super) struct ScriptedRoute {
    answer: Script,
    pub(in super::super) timeout: Option<Duration>,
    pub(in super::super) is_editor: bool,
    sent: Mutex<Vec<Sent>>,
}

impl Route for ScriptedRoute {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: RequestOptions<'a>,
    ) -> BoxFuture<'a, RequestResult> {
        self.sent.lock().unwrap().push(Sent {
            method: method.to_owned(),
            params: params.get().to_owned(),
            timeout: options.timeout,
            tool: options.tool.map(|tool| tool.name.clone()),
        });
        if let Some(progress) = options.progress {
            progress(Progress {
                progress: 0.5,
                total: None,
                message: None,
                raw: None,
            });
        }
        Box::pin(std::future::ready((self.answer)(params.get())))
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn is_editor(&self) -> bool {
        self.is_editor
    }
}

/// One connected server `s` and one that wants a login, `locked`.
pub(in super::super) struct Scene {
    pub(in super::super) route: Arc<ScriptedRoute>,
    permissions: Permissions,
    hooks: Hooks,
    owner: HookRunnerOwner,
    pub(in super::super) prompter: Option<Box<dyn Prompter>>,
    pub(in super::super) approvals: answers::PersonAnswers,
    /// What `do.it` is described as; a server may change its mind.
    pub(in super::super) described: Mutex<String>,
    pub(in super::super) output: tempfile::TempDir,
    pub(in super::super) max_output_tokens: usize,
    pub(in super::super) result_text: ResultText,
    /// `_meta` of the tool `do.it`.
    pub(in super::super) meta: Value,
    promised: Value,
}

struct OneRoute(Arc<ScriptedRoute>);

impl Routes for OneRoute {
    fn route(&self, server: &ServerName) -> Result<Arc<dyn Route>, CallError> {
        let server = server.clone();
        match server.as_str() {
            "s" => Ok(self.0.clone()),
            "locked" => Err(CallError::NeedsAuth {
                not_widened: None,
                server,
                scopes: Vec::new(),
            }),
            _ => {
                let state = ConnectionState::Pending { attempt: 1 };
                Err(CallError::Unavailable { server, state })
            }
        }
    }
}

fn runner(hooks: Vec<LibraryHook>) -> HookRunnerOwner {
    HookRunnerOwner::new(
        hooks,
        None,
        OpenOptions::default(),
        PathBuf::new(),
        Arc::default(),
        Default::default(),
        None,
    )
}

pub(in super::super) fn settings() -> Origin {
    Origin::file("/home/u/settings.json", 4)
}

impl Scene {
    pub(in super::super) fn answering(answer: Value) -> Self {
        Self::with(move |_| Ok(to_raw_value(&answer).unwrap().into()))
    }

    pub(in super::super) fn failing(
        error: impl Fn() -> RequestError + Send + Sync + 'static,
    ) -> Self {
        Self::with(move |_| Err(error()))
    }

    /// Answers by the tool's own name.
    pub(in super::super) fn by_tool(
        answer: impl Fn(&str) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::with(move |params| {
            let params: Value = serde_json::from_str(params).unwrap();
            Ok(to_raw_value(&answer(params["name"].as_str().unwrap()))
                .unwrap()
                .into())
        })
    }

    fn with(answer: impl Fn(&str) -> RequestResult + Send + Sync + 'static) -> Self {
        let answer: Script = Box::new(answer);
        Self {
            route: Arc::new(ScriptedRoute {
                answer,
                timeout: None,
                is_editor: false,
                sent: Mutex::default(),
            }),
            permissions: Permissions::empty(),
            hooks: Hooks::empty(),
            owner: runner(Vec::new()),
            prompter: None,
            approvals: answers::PersonAnswers::default(),
            described: Mutex::default(),
            output: tempfile::tempdir().unwrap(),
            max_output_tokens: 25_000,
            result_text: ResultText::default(),
            meta: json!({}),
            promised: json!({}),
        }
    }

    /// The tool `promise` has this output schema.
    pub(in super::super) fn promising(mut self, schema: Value) -> Self {
        self.promised = schema;
        self
    }

    pub(in super::super) fn permissions(mut self, settings_value: &Value) -> Self {
        let (permissions, found) = Permissions::parse(settings_value, &settings(), Scope::User);
        assert_eq!(found, []);
        self.permissions = permissions;
        self
    }

    pub(in super::super) fn hooks(mut self, settings_value: &Value) -> Self {
        let (hooks, found) = Hooks::parse(settings_value, &settings(), Scope::User);
        assert_eq!(found, []);
        self.hooks = hooks;
        self
    }

    pub(in super::super) fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Hooks run with this environment.
    pub(in super::super) fn hooks_in(mut self, environment: &[(&str, &str)]) -> Self {
        let mut all = BTreeMap::from([(
            "PATH".to_owned(),
            Secret::new("/usr/local/bin:/usr/bin:/bin"),
        )]);
        all.extend(
            environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Secret::new(*value))),
        );
        self.hooks = self.hooks.placed(HookLocation {
            workspace: self.output.path().to_owned(),
            directory: self.output.path().to_owned().into(),
            environment: Arc::new(all),
        });
        self
    }

    /// Hooks of the embedding program.
    pub(in super::super) fn library(mut self, hooks: Vec<LibraryHook>) -> Self {
        self.owner = runner(hooks);
        self
    }

    pub(in super::super) async fn call(
        &self,
        tool: &str,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let key = ToolKey::new(ServerName::new("s").unwrap(), tool);
        self.call_key(key, options).await
    }

    pub(in super::super) async fn call_key(
        &self,
        key: ToolKey,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let list = json!({"tools": [
            {"name": "do.it", "description": *self.described.lock().unwrap(),
             "inputSchema": {"properties": {"n": {"type": "integer"}}}, "_meta": self.meta},
            {"name": "guard", "inputSchema": {"type": "object"}},
            {"name": "odd", "inputSchema": {"type": "nothing"}},
            {"name": "promise", "inputSchema": {}, "outputSchema": self.promised},
        ]});
        let tools = view::tools(&to_raw_value(&list).unwrap()).unwrap().items;
        let server = ServerName::new("s").unwrap();
        let catalog = Catalog::build(
            1,
            [ServerOffer {
                tools,
                ..ServerOffer::new(server)
            }],
        );
        let routes = OneRoute(self.route.clone());
        let output_dir = self.output.path().join("results");
        let dispatch = Dispatch {
            caller: &Arc::default(),
            catalog: &catalog,
            permissions: &self.permissions,
            hooks: &self.hooks,
            runner: self.owner.runner(),
            routes: &routes,
            approvals: &self.approvals,
            prompter: self.prompter.as_deref(),
            newest: None,
            asks_owner: false,
            limits: GeneralLimits {
                timeout: Some(Duration::from_secs(100)),
                ..GeneralLimits::default()
            },
            output_dir: &output_dir,
            picture_memory: &BytePool::new(MAX_PICTURE_MEMORY),
            audit: None,
            max_output_tokens: self.max_output_tokens,
            result_text: self.result_text,
        };
        let arguments = json!({"n": 1, "text": "x"}).as_object().unwrap().clone();
        dispatch
            .call(ToolRequest::new(ToolTarget::Key(key), arguments), options)
            .await
    }

    pub(in super::super) fn sent(&self) -> Vec<Sent> {
        self.route.sent.lock().unwrap().clone()
    }
}
