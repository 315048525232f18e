//! `toolway demo`: the main job, without installing anything.
//!
//! Owns the tour: a temporary home, three embedded servers — inside this process, as a stdio
//! child of the same binary, and over loopback HTTP — configured, connected, listed and called.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use toolway::{CallOptions, Consent, Host, HostOptions, ToolRequest, ToolTarget};
use toolway_config::{Environment, Existing, Flags};
use toolway_gateway::http::{HttpOptions, HttpServer};
use toolway_gateway::{Peer, stateless};
use toolway_types::{Scope, ServerName, ToolKey};

use crate::commands::call::as_text;
use crate::commands::list;
use crate::connect::{CommandHost, block_on, host_options, settle};
use crate::context::Context;
use crate::demo::flavour::Flavour;
use crate::demo::server::{DemoServer, Speaks};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// See it work on three embedded servers
///
/// Nothing is installed, and nothing outside temporary directories is read or written. The picture
/// that it makes stays in one of them.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

#[derive(Debug, Args)]
pub(crate) struct DemoServerArgs {
    /// Which of the demo's servers to be
    #[arg(value_enum)]
    flavour: Flavour,
}

/// Is the stdio child.
pub(crate) fn serve(args: &DemoServerArgs) -> Outcome {
    let server = DemoServer::new(args.flavour).speaking(Speaks::Legacy);
    block_on(async {
        toolway_gateway::stdio::serve(stateless(Arc::new(server)), &Peer::owner("demo")).await?;
        Ok(Exit::Success)
    })
}

/// Runs the tour.
pub(crate) fn run(context: &Context, _args: &DemoArgs) -> Outcome {
    let directory = tempfile::Builder::new().prefix("toolway-demo-").tempdir()?;
    let environment = environment(context, directory.path())?;
    let results = tempfile::Builder::new()
        .prefix("toolway-demo-results-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let outcome = block_on(async {
        let studio = DemoServer::new(Flavour::Studio).speaking(Speaks::Modern);
        let loopback = HttpOptions::default();
        let (server, driver) = HttpServer::bind(stateless(Arc::new(studio)), &loopback)
            .map_err(anyhow::Error::from)?;
        configure(context, &environment, &server.url())?;
        let tour = async {
            let outcome = tour(context, &environment, results.path()).await;
            server.shutdown().await;
            outcome
        };
        let (outcome, ()) = tokio::join!(tour, driver);
        outcome
    });
    // The path of the picture was printed: it must stay.
    if std::fs::read_dir(results.path())?.next().is_some() {
        let _ = results.keep();
    }
    outcome
}

/// An environment that reaches nothing of the user's: its own home, project and config home.
fn environment(context: &Context, directory: &Path) -> Result<Environment, Report> {
    let home = directory.join("home");
    let project = directory.join("project");
    std::fs::create_dir(&home)?;
    std::fs::create_dir(&project)?;
    let mut variables: BTreeMap<String, String> = ["PATH", "NO_COLOR", "TERM"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), context.environment().var(name)?.to_owned())))
        .collect();
    variables.insert(
        "TOOLWAY_HOME".to_owned(),
        home.join("toolway").display().to_string(),
    );
    variables.insert("HOME".to_owned(), home.display().to_string());
    // A policy of this machine is not the demo's concern: nothing here leaves the process.
    Ok(Environment::new(variables, project).with_system_dir(directory.join("system")))
}

/// Writes the three entries as `toolway add` would.
fn configure(context: &Context, environment: &Environment, url: &str) -> Result<(), Report> {
    let program = std::env::current_exe()?;
    context
        .output
        .result("$ configure three servers in a temporary home\n")?;
    for (name, entry, words) in [
        (
            "desk",
            json!({ "type": "sdk" }),
            "inside this process (in-process)",
        ),
        (
            "library",
            json!({ "command": program, "args": ["demo-server", "library"] }),
            "a child of the same binary (stdio, legacy era)",
        ),
        (
            "studio",
            json!({ "type": "http", "url": url }),
            "on loopback (Streamable HTTP, modern era)",
        ),
    ] {
        let Value::Object(entry) = entry else {
            continue;
        };
        let name = server_name(name)?;
        toolway_config::add_server(environment, Scope::User, &name, &entry, Existing::Keep)?;
        context
            .output
            .result(&format!("  {:<8} {words}\n", name.as_str()))?;
    }
    Ok(())
}

async fn tour(context: &Context, environment: &Environment, results: &Path) -> Outcome {
    let plan = toolway_config::plan(environment, &Flags::default());
    context.say_diagnoses(&plan);
    let desk = toolway_gateway::in_process(stateless(Arc::new(DemoServer::new(Flavour::Desk))));
    let options = HostOptions {
        in_process: vec![(server_name("desk")?, desk)],
        output_dir: results.to_owned(),
        roots: toolway::Root::directory(environment.project_root())
            .into_iter()
            .collect(),
        // The demo leaves nothing behind in the real state directory.
        era_memory: None,
        catalog_memory: None,
        pins: None,
        rule_keeper: None,
        journal: None,
        audit: None,
        ..host_options(context)
    };
    let host = Host::start(plan.clone(), options);
    let outcome = async {
        settle(context, &CommandHost::own(&host)).await;
        let snapshot = host.snapshot();
        context.output.result("\n$ toolway list\n")?;
        list::show(context, &plan, &snapshot, false)?;
        context.output.result("\n$ toolway tools\n")?;
        crate::commands::tools::table(context, &snapshot.catalog)?;
        call(context, &host, "desk", "add", &json!({ "a": 2, "b": 40 })).await?;
        call(
            context,
            &host,
            "library",
            "word_count",
            &json!({ "text": "one host, every server" }),
        )
        .await?;
        call(context, &host, "studio", "palette", &json!({})).await?;
        context
            .output
            .result("\nNow yours: toolway add <name> <command or url>\n")?;
        Ok(Exit::Success)
    }
    .await;
    host.shutdown().await;
    outcome
}

async fn call(
    context: &Context,
    host: &Host,
    server: &str,
    tool: &str,
    arguments: &Value,
) -> Result<(), Report> {
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
    let words: Vec<String> = arguments
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => format!(" {key}='{text}'"),
            other => format!(" {key}={other}"),
        })
        .collect();
    context.output.result(&format!(
        "\n$ toolway call {server} {tool}{}\n",
        words.concat()
    ))?;
    let target = ToolTarget::Key(ToolKey::new(server_name(server)?, tool));
    let request = ToolRequest::new(target, arguments);
    let outcome = host.call(request, CallOptions::new(Consent::Typed)).await?;
    context.output.result(&as_text(&outcome))?;
    Ok(())
}

fn server_name(name: &str) -> Result<ServerName, Report> {
    ServerName::new(name).map_err(|error| Report::new(Exit::Unexpected, error.to_string()))
}
