//! A client on the official Rust SDK, for Toolway's tests: goes through what `toolway serve` offers,
//! and prints what it saw as one JSON document.
//!
//! Usage: `rust-client legacy|modern TARGET`
//!
//! TARGET is JSON, as the README two folders up says.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, GetPromptRequestParams, Implementation,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::sync::Notify;

/// The lists of which a change is waited for.
const LISTS: [&str; 3] = ["prompts", "resources", "tools"];

/// Where the gateway is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Target {
    Address {
        url: String,
        token: String,
    },
    Program {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
}

/// What the client saw beside answers.
#[derive(Default)]
struct Seen {
    progress: Vec<[f64; 2]>,
    asked: Vec<String>,
    changed: BTreeSet<&'static str>,
}

/// The client's side of the conversation.
#[derive(Clone, Default)]
struct Touring {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
}

type Client = RunningService<RoleClient, Touring>;

impl Touring {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, list: &'static str) {
        self.seen().changed.insert(list);
        self.changed.notify_one();
    }
}

impl ClientHandler for Touring {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(
            capabilities,
            Implementation::new("toolway-rust-client", "1.0.0"),
        )
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        self.seen().asked.push(message);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "word": "yes" })))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(total) = params.total {
            self.seen().progress.push([params.progress, total]);
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("tools");
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("prompts");
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note("resources");
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [era, target] = words.as_slice() else {
        bail!("usage: rust-client legacy|modern TARGET");
    };
    let is_modern = era == "modern";
    let lifecycle = if is_modern {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let touring = Touring::default();
    let client = match serde_json::from_str(target)? {
        Target::Address { url, token } => {
            let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
            let transport = StreamableHttpClientTransport::from_config(config);
            touring
                .clone()
                .serve_with_lifecycle(transport, lifecycle)
                .await?
        }
        Target::Program { command, args, env } => {
            let mut program = Command::new(command);
            program.args(args).env_clear().envs(env);
            let (transport, _) = TokioChildProcess::builder(program)
                .stderr(Stdio::inherit())
                .spawn()?;
            touring
                .clone()
                .serve_with_lifecycle(transport, lifecycle)
                .await?
        }
    };
    let found = tour(&client, &touring, is_modern).await?;
    client.cancel().await?;
    println!("{found}");
    Ok(())
}

/// Goes through everything.
async fn tour(client: &Client, touring: &Touring, is_modern: bool) -> Result<Value> {
    let mut found = Map::new();
    let mut see = |key: &str, value: Value| found.insert(key.to_owned(), value);
    let server = client
        .peer_info()
        .context("the server says nothing of itself")?;
    let name = server.server_info.as_ref().map(|it| it.name.clone());
    see("server", json!(name));
    let tools = tools(client).await?;
    see("tools", json!(tools));
    let resources = client.list_all_resources().await?;
    see(
        "resources",
        sorted(resources.iter().map(|it| it.uri.as_str())),
    );
    let templates = client.list_all_resource_templates().await?;
    see(
        "templates",
        sorted(templates.iter().map(|it| it.uri_template.as_str())),
    );
    let prompts = client.list_all_prompts().await?;
    see("prompts", sorted(prompts.iter().map(|it| it.name.as_str())));
    let echo = call(client, "everything__echo", json!({ "message": "hi" })).await?;
    see("echo", text(&echo)?);
    let weather = json!({ "location": "New York" });
    let weather = call(client, "everything__get-structured-content", weather).await?;
    see("structured", json!(weather.structured_content));
    let read = client
        .read_resource(ReadResourceRequestParams::new("chaos:own"))
        .await?;
    see("read", json!(read.contents));
    let arguments = Map::from_iter([("who".to_owned(), json!("Ada"))]);
    let prompt = GetPromptRequestParams::new("chaos__greet").with_arguments(arguments);
    see("prompt", json!(client.get_prompt(prompt).await?.messages));
    let completion = client
        .complete_prompt_simple("chaos__greet", "who", "a")
        .await?;
    see("completion", json!(completion));
    let steps = json!({ "duration": 1, "steps": 2 });
    let counted = call(client, "everything__trigger-long-running-operation", steps).await?;
    see("counted", text(&counted)?);
    let failed = call(client, "chaos__fail", json!({})).await?;
    see(
        "failed",
        json!({ "isError": failed.is_error, "text": text(&failed)? }),
    );
    let unknown = match call(client, "chaos__no-such-tool", json!({})).await {
        Err(ServiceError::McpError(error)) => {
            json!({ "code": error.code.0, "message": error.message })
        }
        other => bail!("an unknown tool gives {other:?}"),
    };
    see("unknown", unknown);
    let elicited = call(client, "chaos__elicit", json!({})).await?;
    see("elicited", text(&elicited)?);
    see("cancellations", cancelled(client).await?);
    let changed = changes(client, touring, is_modern).await?;
    see("changed", json!(changed));
    let after = self::tools(client).await?;
    let grown = after.difference(&tools).collect::<Vec<_>>();
    see("grown", json!(grown));
    let seen = touring.seen();
    let progress = seen.progress.iter();
    // As whole numbers, which they are.
    let progress: Vec<[String; 2]> = progress
        .map(|it| it.map(|number| number.to_string()))
        .collect();
    let progress = serde_json::from_str::<Value>(&json!(progress).to_string().replace('"', ""))?;
    see("progress", progress);
    see("asked", json!(seen.asked));
    Ok(Value::Object(found))
}

async fn tools(client: &Client) -> Result<BTreeSet<String>> {
    let tools = client.list_all_tools().await?;
    Ok(tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect())
}

async fn call(
    client: &Client,
    name: &'static str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    client.call_tool(params).await
}

/// Has a call hang, gives it up, and waits until the server hears of that.
async fn cancelled(client: &Client) -> Result<Value> {
    let report = async || -> Result<Value> {
        let report = call(client, "chaos__report", json!({})).await?;
        report
            .structured_content
            .context("a report without content")
    };
    let calls = |report: &Value| report["calls"].as_u64().unwrap_or_default();
    let before = calls(&report().await?);
    let there = async {
        // A report is a call, too; the server has the one that hangs when there is one more.
        let mut reports = 1;
        while calls(&report().await?) - before == reports {
            reports += 1;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        hung = call(client, "chaos__hang", json!({})) => bail!("it did not hang: {hung:?}"),
        there = there => there?,
    }
    loop {
        let report = report().await?;
        if report["cancellations"] != 0 {
            return Ok(report["cancellations"].clone());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Has all lists change, and waits until that is said.
async fn changes(
    client: &Client,
    touring: &Touring,
    is_modern: bool,
) -> Result<BTreeSet<&'static str>> {
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build();
    let mut subscription = match is_modern {
        true => Some(client.listen(filter).await?),
        false => None,
    };
    // What was heard while servers came is not what is waited for.
    touring.seen().changed.clear();
    call(client, "chaos__grow", json!({})).await?;
    while touring.seen().changed.len() < LISTS.len() {
        let Some(subscription) = &mut subscription else {
            touring.changed.notified().await;
            continue;
        };
        match subscription
            .next()
            .await?
            .context("the subscription ended")?
        {
            ServerNotification::ToolListChangedNotification(_) => touring.note("tools"),
            ServerNotification::PromptListChangedNotification(_) => touring.note("prompts"),
            ServerNotification::ResourceListChangedNotification(_) => touring.note("resources"),
            _ => {}
        }
    }
    if let Some(mut subscription) = subscription {
        subscription.cancel().await?;
    }
    Ok(touring.seen().changed.clone())
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    json!(names.collect::<BTreeSet<_>>())
}

fn text(result: &CallToolResult) -> Result<Value> {
    let parts = result.content.iter();
    let parts = parts.map(|part| Ok(part.as_text().context("no text")?.text.clone()));
    Ok(json!(parts.collect::<Result<Vec<_>>>()?.concat()))
}
