//! `toolway permissions`: the rules that count, and which of them would decide a call.
//!
//! Owns the words. Nothing is connected: what only a connected server could tell, its tools'
//! annotations, counts as not known, and a rule about them then asks.

use std::fmt::Write as _;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use toolway_config::permission::{Cited, Decision, Permissions, Subject};
use toolway_config::{Mode, Plan};
use toolway_types::{Origin, ServerName, ToolKey};

use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Show the permission rules, or what they decide about a tool
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway permissions
  toolway permissions github create_issue
  toolway permissions mcp__db__query --args '{\"sql\": \"SELECT 1\"}'")]
pub(crate) struct PermissionsArgs {
    /// A server and a tool, or a tool's whole name
    #[arg(num_args = 0..=2, value_names = ["SERVER", "TOOL"])]
    words: Vec<String>,

    /// The arguments of the call, as one JSON object
    #[arg(long, value_name = "JSON", requires = "words")]
    args: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &PermissionsArgs) -> Outcome {
    let plan = context.plan();
    context.say_unreadable(plan);
    let Some(key) = tool(plan, &args.words)? else {
        return list(context, &plan.permissions, args.json);
    };
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    let mut subject = Subject::tool(&key);
    if let Some(arguments) = &arguments {
        subject = subject.with_arguments(arguments);
    }
    let permissions = &plan.permissions;
    let (word, rule) = match permissions.decide(subject) {
        Decision::Deny { rule } => ("denied", Some(rule)),
        Decision::Unreadable { origin } => {
            let rule = "a file that cannot be read".to_owned();
            ("denied", Some(Arc::new(Cited { rule, origin })))
        }
        Decision::Ask { rule } => ("asked", rule),
        Decision::Allow { rule } => ("allowed", rule),
    };
    if args.json {
        context.output.json(&json!({
            "server": key.server.as_str(),
            "tool": key.tool,
            "decision": word,
            "rule": rule.as_ref().map(|cited| &cited.rule),
            "source": rule.as_ref().map(|cited| source(&cited.origin)),
            "mode": permissions.mode().as_str(),
        }))?;
        return Ok(Exit::Success);
    }
    let by = match &rule {
        Some(cited) => format!("by `{}` in {}", cited.rule, cited.origin),
        None => format!("by the mode `{}`: no rule names it", mode(permissions)),
    };
    context
        .output
        .result(&format!("{}: {word} {by}\n", key.exposed()))?;
    Ok(Exit::Success)
}

fn mode(permissions: &Permissions) -> &'static str {
    permissions.mode().as_str()
}

fn source(origin: &Origin) -> Value {
    json!({ "path": origin.path(), "line": origin.line() })
}

fn list(context: &Context, permissions: &Permissions, as_json: bool) -> Outcome {
    let banned = permissions.bypass_forbidden_by();
    if as_json {
        let rules: Vec<Value> = permissions
            .rules()
            .map(|(list, rule, scope, origin)| {
                json!({ "list": list, "rule": rule, "scope": scope, "source": source(origin) })
            })
            .collect();
        context.output.json(&json!({
            "mode": mode(permissions),
            "bypassForbidden": banned.is_some(),
            "pins": permissions.pins().as_str(),
            "rules": rules,
        }))?;
        return Ok(Exit::Success);
    }
    let rows: Vec<Vec<String>> = permissions
        .rules()
        .map(|(list, rule, scope, origin)| {
            vec![
                list.to_owned(),
                rule.to_owned(),
                scope.to_string(),
                origin.to_string(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        context
            .output
            .table(&["LIST", "RULE", "SCOPE", "PLACE"], &rows)?;
    }
    let otherwise = match permissions.mode() {
        Mode::Default => "you are asked",
        Mode::Auto => "a hook decides, or you are asked",
        Mode::Bypass => "it runs",
    };
    let mut text = format!("mode {}: without a rule {otherwise}\n", mode(permissions));
    if let Some(origin) = banned {
        let _ = writeln!(text, "bypass is forbidden in {origin}");
    }
    let _ = writeln!(
        text,
        "pins {}: what happens when a tool's definition changed",
        permissions.pins().as_str()
    );
    context.output.result(&text)?;
    Ok(Exit::Success)
}

/// The tool that was named; none when nothing was.
fn tool(plan: &Plan, words: &[String]) -> Result<Option<ToolKey>, Report> {
    let (server, tool) = match words {
        [] => return Ok(None),
        [server, tool] => (server.clone(), tool.clone()),
        [whole] => split(plan, whole).ok_or_else(|| {
            Report::new(Exit::Usage, format!("`{whole}` names no tool"))
                .hint("write `toolway permissions <server> <tool>`")
        })?,
        [_, _, ..] => return Err(Report::new(Exit::Usage, "too many words")),
    };
    let server = ServerName::new(&server)
        .map_err(|error| Report::new(Exit::Usage, error.to_string()).hint("check its name"))?;
    Ok(Some(ToolKey::new(server, tool)))
}

/// `mcp__server__tool`, of the server with the longest name that fits, or `server.tool`.
fn split(plan: &Plan, whole: &str) -> Option<(String, String)> {
    let Some(rest) = whole.strip_prefix("mcp__") else {
        let (server, tool) = whole.split_once('.')?;
        return Some((server.to_owned(), tool.to_owned()));
    };
    let known = plan.servers.iter().filter_map(|server| {
        let tool = rest
            .strip_prefix(server.name.normalized().as_str())?
            .strip_prefix("__")?;
        Some((server.name.as_str().to_owned(), tool.to_owned()))
    });
    known
        .max_by_key(|(server, _)| server.len())
        .or_else(|| {
            let (server, tool) = rest.split_once("__")?;
            Some((server.to_owned(), tool.to_owned()))
        })
        .filter(|(_, tool)| !tool.is_empty())
}

fn arguments(text: &str) -> Result<Map<String, Value>, Report> {
    serde_json::from_str(text).map_err(|error| {
        Report::new(
            Exit::Usage,
            format!("`--args` is not a JSON object: {error}"),
        )
        .hint("write e.g. `--args '{\"path\": \"/tmp/x\"}'`")
    })
}
