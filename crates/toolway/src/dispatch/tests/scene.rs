//! A scene for calls: one scripted line, and what it was sent.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway_types::{ConnectionState, Origin, Scope, ServerName, ToolKey};
use toolway_wire::view;

use super::super::send::{GeneralLimits, Line, Lines, SendError, SendOptions};
use super::super::*;
use crate::call::Progress;
use crate::catalog::ServerOffer;

/// What a line saw of one request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sent {
    pub(super) method: String,
    pub(super) params: String,
    pub(super) timeout: Duration,
    pub(super) tool: Option<String>,
}

type Script = Box<dyn Fn() -> Result<Box<RawValue>, SendError> + Send + Sync>;

/// A line that answers by script and remembers what it was sent.
pub(super) struct ScriptedLine {
    answer: Script,
    pub(super) timeout: Option<Duration>,
    pub(super) is_editor: bool,
    sent: Mutex<Vec<Sent>>,
}

impl Line for ScriptedLine {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Box<RawValue>,
        options: SendOptions<'a>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, SendError>> {
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
            });
        }
        Box::pin(std::future::ready((self.answer)()))
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn is_editor(&self) -> bool {
        self.is_editor
    }
}

/// One connected server `s` and one that wants a login, `locked`.
pub(super) struct Scene {
    pub(super) line: Arc<ScriptedLine>,
    permissions: Permissions,
    hooks: Hooks,
    pub(super) prompter: Option<Box<dyn Prompter>>,
    pub(super) output: tempfile::TempDir,
    pub(super) max_output_tokens: usize,
    /// `_meta` of the tool `do.it`.
    pub(super) meta: Value,
}

struct OneLine(Arc<ScriptedLine>);

impl Lines for OneLine {
    fn line(&self, server: &ServerName) -> Result<Arc<dyn Line>, CallError> {
        let server = server.clone();
        match server.as_str() {
            "s" => Ok(self.0.clone()),
            "locked" => Err(CallError::NeedsAuth { server }),
            _ => {
                let state = ConnectionState::Pending { attempt: 1 };
                Err(CallError::Unavailable { server, state })
            }
        }
    }
}

pub(super) fn settings() -> Origin {
    Origin::File {
        path: PathBuf::from("/home/u/settings.json"),
        line: 4,
    }
}

impl Scene {
    pub(super) fn answering(answer: Value) -> Self {
        Self::with(move || Ok(to_raw_value(&answer).unwrap()))
    }

    pub(super) fn failing(error: impl Fn() -> SendError + Send + Sync + 'static) -> Self {
        Self::with(move || Err(error()))
    }

    fn with(answer: impl Fn() -> Result<Box<RawValue>, SendError> + Send + Sync + 'static) -> Self {
        let answer: Script = Box::new(answer);
        Self {
            line: Arc::new(ScriptedLine {
                answer,
                timeout: None,
                is_editor: false,
                sent: Mutex::default(),
            }),
            permissions: Permissions::empty(),
            hooks: Hooks::empty(),
            prompter: None,
            output: tempfile::tempdir().unwrap(),
            max_output_tokens: 25_000,
            meta: json!({}),
        }
    }

    pub(super) fn permissions(mut self, settings_value: &Value) -> Self {
        let (permissions, found) = Permissions::parse(settings_value, &settings(), Scope::User);
        assert_eq!(found, []);
        self.permissions = permissions;
        self
    }

    pub(super) fn hooks(mut self, settings_value: &Value) -> Self {
        let (hooks, found) = Hooks::parse(settings_value, &settings(), Scope::User);
        assert_eq!(found, []);
        self.hooks = hooks;
        self
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let key = ToolKey::new(ServerName::new("s").unwrap(), tool);
        self.call_key(key, options).await
    }

    pub(super) async fn call_key(
        &self,
        key: ToolKey,
        options: CallOptions,
    ) -> Result<ToolOutcome, CallError> {
        let list = json!({"tools": [
            {"name": "do.it", "inputSchema": {"properties": {"n": {"type": "integer"}}},
             "_meta": self.meta},
            {"name": "odd", "inputSchema": {"type": "nothing"}},
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
        let lines = OneLine(self.line.clone());
        let output_dir = self.output.path().join("results");
        let dispatch = Dispatch {
            catalog,
            permissions: &self.permissions,
            hooks: &self.hooks,
            lines: &lines,
            prompter: self.prompter.as_deref(),
            limits: GeneralLimits {
                timeout: Duration::from_secs(100),
                idle: None,
            },
            output_dir: &output_dir,
            max_output_tokens: self.max_output_tokens,
        };
        let arguments = json!({"n": 1, "text": "x"}).as_object().unwrap().clone();
        dispatch
            .call(
                ToolRequest {
                    target: ToolTarget::Key(key),
                    arguments,
                },
                options,
            )
            .await
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.line.sent.lock().unwrap().clone()
    }
}
