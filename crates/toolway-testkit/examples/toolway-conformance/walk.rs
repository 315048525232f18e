//! What is tried against every mock server: connect, list, call every tool, read every resource,
//! get every prompt.
//!
//! Owns the few exceptions that a scenario asks for; logins are `login.rs`'s. All else is what any
//! embedding program would do, with a home of its own that is gone afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolway::auth::LoginProblem;
use toolway::catalog::CatalogPrompt;
use toolway::config::{Environment, Flags, plan};
use toolway::{
    CallError, CallOptions, Catalog, CatalogTool, Consent, Host, HostOptions, SkillError,
    ToolRequest, ToolTarget,
};
use toolway_testkit::TempHome;

use crate::login::{self, Credentials};
use crate::person::Person;
use crate::skills;
use crate::specimen::{self, Fields};

/// The name the mock server is configured under.
const SERVER: &str = "suite";

/// Why this run must not count as a pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("usage: toolway-conformance pinned|auto URL")]
    Usage,
    #[error("`MCP_CONFORMANCE_{0}` is missing or cannot be read")]
    Variable(&'static str),
    #[error("the plan refuses the mock server: {0}")]
    Plan(String),
    #[error("the mock server is not connected: {0}")]
    NotConnected(String),
    #[error("the mock server offers no tool `{0}`")]
    NoTool(String),
    /// A resource and a prompt are asked for in the same way.
    #[error("asking for `{tool}`: {source}")]
    Call {
        tool: String,
        source: Box<CallError>,
    },
    #[error("`{tool}` says that it failed: {answer}")]
    ToolError { tool: String, answer: String },
    #[error(transparent)]
    Login(Box<LoginProblem>),
    /// The library did what the scenario is there to see refused.
    #[error("nothing was refused")]
    NotRefused,
    #[error("{0}")]
    Skill(#[source] Box<SkillError>),
    #[error("the mock server lists no skill: {0:?}")]
    NoSkill(Vec<String>),
    #[error("the skill `{0}` was loaded although it is not what was listed")]
    Deceived(String),
    #[error("not done after {} s", .0.as_secs())]
    TooSlow(Duration),
}

impl From<LoginProblem> for Failure {
    fn from(problem: LoginProblem) -> Self {
        Failure::Login(Box::new(problem))
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        Failure::Skill(Box::new(error))
    }
}

/// What the suite wants.
pub(crate) struct Task {
    url: String,
    scenario: String,
    /// The value of the entry's `protocol`.
    protocol: &'static str,
    context: Context,
}

/// `MCP_CONFORMANCE_CONTEXT`, as far as it is used.
#[derive(Default, Deserialize)]
struct Context {
    #[serde(default, rename = "toolCalls")]
    tool_calls: Vec<ToolCall>,
    #[serde(flatten)]
    credentials: Credentials,
}

#[derive(Clone, Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Task {
    /// From the words of the command line and the suite's variables.
    pub(crate) fn read(words: &[String], environment: &Environment) -> Result<Self, Failure> {
        let [mode, url] = words else {
            return Err(Failure::Usage);
        };
        let variable = |name: &str| environment.var(&format!("MCP_CONFORMANCE_{name}"));
        let protocol = match mode.as_str() {
            "auto" => "auto",
            "pinned" => match variable("PROTOCOL_VERSION") {
                Some("2026-07-28") => "2026-07-28",
                Some(_) => "legacy",
                None => return Err(Failure::Variable("PROTOCOL_VERSION")),
            },
            _ => return Err(Failure::Usage),
        };
        Ok(Self {
            url: url.clone(),
            scenario: variable("SCENARIO")
                .ok_or(Failure::Variable("SCENARIO"))?
                .to_owned(),
            protocol,
            context: match variable("CONTEXT") {
                Some(text) => {
                    serde_json::from_str(text).map_err(|_| Failure::Variable("CONTEXT"))?
                }
                None => Context::default(),
            },
        })
    }
}

/// Tries everything; the first thing that goes wrong ends it.
pub(crate) async fn walk(task: &Task) -> Result<(), Failure> {
    let home = TempHome::new();
    let host = start(task, &home).await?;
    host.settled().await;
    let outcome = use_everything(task, &host).await;
    host.shutdown().await;
    match outcome {
        Err(failure) if login::is_meant(&task.scenario, &failure) => Ok(()),
        Ok(()) if login::must_refuse(&task.scenario) => Err(Failure::NotRefused),
        outcome => outcome,
    }
}

async fn start(task: &Task, home: &TempHome) -> Result<Host, Failure> {
    let path = |path: &std::path::Path| path.display().to_string();
    let environment = Environment::new(
        BTreeMap::from([
            ("HOME".to_owned(), path(home.home())),
            ("TOOLWAY_HOME".to_owned(), path(&home.config_home())),
            ("TOOLWAY_ENABLE_XAA".to_owned(), "1".to_owned()),
        ]),
        home.project().to_path_buf(),
    )
    .with_system_dir(home.system().to_path_buf());
    let credentials = &task.context.credentials;
    let entry = json!({
        "type": "http",
        "url": task.url,
        "protocol": task.protocol,
        "oauth": credentials.oauth(),
    });
    if let Some(settings) = credentials.settings() {
        home.write_settings(settings.to_string());
    }
    let flags = Flags {
        mcp_config: vec![json!({ "mcpServers": { SERVER: entry } }).to_string()],
        strict: true,
        ..Flags::default()
    };
    let plan = plan(&environment, &flags);
    if plan.admitted().next().is_none() {
        let reasons: Vec<String> = plan.all_diagnoses().map(|d| d.message.clone()).collect();
        return Err(Failure::Plan(reasons.join("; ")));
    }
    let options = HostOptions {
        client_name: "toolway-conformance".to_owned(),
        client_handler: Some(Arc::new(Person)),
        auth: credentials.auth(&task.scenario, SERVER, home).await?,
        output_dir: home.home().join("results"),
        ..HostOptions::default()
    };
    Ok(Host::start(plan, options))
}

async fn use_everything(task: &Task, host: &Host) -> Result<(), Failure> {
    let credentials = &task.context.credentials;
    credentials.connect(&task.scenario, host, SERVER).await?;
    let picture = host.snapshot();
    let catalog = &picture.catalog;
    match task.scenario.as_str() {
        // Its canary watches what listing alone fetches.
        "json-schema-ref-no-deref" => return Ok(()),
        "json-schema-2020-12-preservation" => return echo_the_schema(task, host, catalog).await,
        scenario if scenario.starts_with("sep-2640-client-") => {
            return skills::walk(scenario, host, SERVER).await;
        }
        _ => {}
    }
    if task.context.tool_calls.is_empty() {
        for tool in catalog.tools() {
            let arguments = specimen::object(&schema_of(tool), Fields::Required);
            call(task, host, tool, arguments).await?;
        }
    }
    for wanted in &task.context.tool_calls {
        let tool = find(catalog, &wanted.name)?;
        let arguments = without_nulls(&wanted.arguments);
        call(task, host, tool, arguments).await?;
    }
    for resource in catalog.resources() {
        host.read_resource(&resource.server, &resource.uri)
            .await
            .map_err(|source| Failure::Call {
                tool: resource.uri.clone(),
                source: Box::new(source),
            })?;
    }
    for prompt in catalog.prompts() {
        get(host, prompt).await?;
    }
    Ok(())
}

async fn get(host: &Host, prompt: &CatalogPrompt) -> Result<(), Failure> {
    let arguments = prompt
        .arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| (argument.name.clone(), json!("text")))
        .collect();
    let name = &prompt.key.tool;
    host.get_prompt(&prompt.key.server, name, arguments)
        .await
        .map(drop)
        .map_err(|source| Failure::Call {
            tool: name.clone(),
            source: Box::new(source),
        })
}

/// The suite writes `null` for a member that its own schema calls an optional boolean, which the
/// host refuses to send, for this program as for any other. "Not provided" says the same.
fn without_nulls(arguments: &Map<String, Value>) -> Map<String, Value> {
    arguments
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The suite compares what it gets back with what it sent, keyword by keyword.
async fn echo_the_schema(task: &Task, host: &Host, catalog: &Catalog) -> Result<(), Failure> {
    let schema = schema_of(find(catalog, "json_schema_2020_12_tool")?);
    let arguments = Map::from_iter([("schema".to_owned(), schema)]);
    let echo = find(catalog, "json_schema_echo")?;
    call(task, host, echo, arguments).await
}

/// Calls a tool, and again after a login where the server wants another one for it. The host says
/// when it is enough.
async fn call(
    task: &Task,
    host: &Host,
    tool: &CatalogTool,
    arguments: Map<String, Value>,
) -> Result<(), Failure> {
    let outcome = loop {
        let request = ToolRequest::new(ToolTarget::Exposed(tool.name.clone()), arguments.clone());
        match host.call(request, CallOptions::new(Consent::Typed)).await {
            Err(CallError::NeedsAuth { .. }) => {
                let credentials = &task.context.credentials;
                credentials.log_in(&task.scenario, host, SERVER).await?;
            }
            outcome => break outcome,
        }
    };
    let tool = tool.key.tool.clone();
    match outcome {
        Ok(outcome) if outcome.is_error => Err(Failure::ToolError {
            tool,
            answer: outcome.raw.get().to_owned(),
        }),
        Ok(_) => Ok(()),
        Err(source) => Err(Failure::Call {
            tool,
            source: Box::new(source),
        }),
    }
}

fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a CatalogTool, Failure> {
    catalog
        .tools()
        .find(|tool| tool.key.tool == name)
        .ok_or_else(|| Failure::NoTool(name.to_owned()))
}

fn schema_of(tool: &CatalogTool) -> Value {
    serde_json::from_str(tool.input_schema.get()).unwrap_or_default()
}
