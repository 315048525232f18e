//! `toolway permissions`: the rules that count, and which of them would decide a call.
//!
//! Owns the list; changing rules is [`change`], which tool is meant [`named`], the words for it
//! [`judged`]. Nothing is connected: annotations count as not known, and a rule about them asks.
//! Tools are known from earlier runs.

mod change;
mod judged;
mod named;

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Map, Value};
use toolway::rows::rule_listing;
use toolway_config::permission::Permissions;
use toolway_config::{Hooks, PermissionMode, Plan};
use toolway_types::name::as_word;

use self::change::Change;
pub(super) use self::judged::Judged;
use self::judged::told;
use self::named::readings;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Show permission rules, change them, or try them on a tool
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  toolway permissions
  toolway permissions github create_issue
  toolway permissions ToolSearch
  toolway permissions mcp__db__query --args '{\"sql\": \"SELECT 1\"}'
  toolway permissions deny github delete_repo
  toolway permissions allow 'mcp__github__*(repo:acme/*)' -s local
  toolway permissions remove mcp__github__delete_repo

A server that is called like one of the commands: `toolway permissions -- allow <tool>`."
)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    change: Option<Change>,

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
    if let Some(change) = &args.change {
        return change::run(context, change);
    }
    let plan = context.plan();
    context.say_unreadable(plan);
    let readings = readings(context, plan, &args.words)?;
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    let judged = readings.iter().map(|reading| {
        let judged = reading.judged(&plan.permissions, arguments.as_ref());
        (&reading.shown, judged)
    });
    // Of several things that are meant, the call may be the worst.
    let Some((shown, judged)) = judged.min_by_key(|(_, judged)| judged.leniency()) else {
        return list(context, plan, args.json);
    };
    if let Some(note) = judged.note() {
        context.say(&note);
    }
    if args.json {
        context.output.json(&judged.row())?;
    } else {
        let said = judged.lines().map(|line| format!("{shown}: {line}\n"));
        context.output.paragraphs(&said.collect::<String>(), None)?;
    }
    Ok(Exit::Success)
}

fn mode(permissions: &Permissions) -> &'static str {
    permissions.mode().as_str()
}

fn list(context: &Context, plan: &Plan, as_json: bool) -> Outcome {
    let permissions = &plan.permissions;
    let remarks = toolway::rule_remarks(plan, &Hooks::empty());
    let displaced = permissions.classifier_displaced_by();
    let banned = permissions.bypass_forbidden_by();
    let unheeded = permissions.all_unheeded();
    if as_json {
        return context.json(&rule_listing(permissions, &remarks));
    }
    let rows: Vec<Vec<String>> = permissions
        .rules()
        .map(|(list, rule, scope, origin)| {
            vec![
                list.as_str().to_owned(),
                rule.to_owned(),
                scope.to_string(),
                origin.to_string(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let head = ["LIST", "RULE", "SCOPE", "PLACE"];
        context.output.table(&head, rows)?;
    }
    context.say_findings(&remarks);
    for unheeded in &unheeded {
        context.say(format!("note: {}", told(unheeded)));
    }
    for server in unheeded.chunk_by(|one, other| one.server == other.server) {
        let server = &server[0].server.server;
        context.hint(format!(
            "to let your rules count for `{server}` as it is now: `toolway approve {} \
             --with-rules`",
            as_word(server.as_str())
        ));
    }
    let otherwise = match permissions.mode() {
        PermissionMode::Default => "you are asked",
        PermissionMode::Auto => match permissions.classifier() {
            Some(_) if displaced.is_some() => "you are asked, as in default",
            Some(_) => "the classifier decides",
            None => "you are asked, as in default: no classifier is named",
        },
        PermissionMode::Bypass => "it runs",
    };
    let mut text = format!("mode {}: without a rule {otherwise}\n", mode(permissions));
    if let Some(classifier) = permissions.classifier() {
        let what = match (permissions.mode(), displaced) {
            (PermissionMode::Auto, None) => String::new(),
            (PermissionMode::Auto, Some(by)) => format!(
                " decides nothing: `{}` here comes from {}",
                by.server, by.origin
            ),
            (PermissionMode::Default | PermissionMode::Bypass, _) => {
                " (asked only in mode auto)".to_owned()
            }
        };
        let title = classifier.action.title();
        let _ = writeln!(text, "classifier `{title}` in {}{what}", classifier.origin);
    }
    if let Some(origin) = banned {
        let _ = writeln!(text, "bypass is forbidden in {origin}");
    }
    let _ = writeln!(
        text,
        "pins {}: what happens when a tool's definition changed",
        permissions.pins().as_str()
    );
    context.output.paragraphs(&text, None)?;
    Ok(Exit::Success)
}

fn arguments(text: &str) -> Result<Map<String, Value>, Report> {
    serde_json::from_str(text).map_err(|error| {
        Report::usage(format!("`--args` is not a JSON object: {error}"))
            .hint("write e.g. `--args '{\"path\": \"/tmp/x\"}'`")
    })
}
