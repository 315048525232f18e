//! `toolway permissions`: the rules that count, and which of them would decide a call.
//!
//! Owns the list; changing rules is [`change`], the words for one tool [`judged`]. Nothing is connected: what only a connected server
//! could tell, its tools' annotations, counts as not known, and a rule about them then asks; that
//! two of its tools are spelled alike is not known either.

mod change;
mod judged;

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Map, Value, json};
use toolway::Offering;
use toolway::builtin::{self, AUTHENTICATE, RESERVED};
use toolway_config::permission::{Permissions, Subject};
use toolway_config::{Hooks, Mode, Plan, Unheeded};
use toolway_types::name::{as_word, shell_word};
use toolway_types::{Diagnosis, Origin, ServerName, ToolKey, TransportKind};

use self::change::Change;
pub(super) use self::judged::Judged;
use self::judged::{Own, told};
use super::call::near_built_in;
use super::doctor::diagnosis_json;
use crate::connect::memory::say_if_absent;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report, render_diagnosis};

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
    let Some(named) = tool(context, plan, &args.words)? else {
        return list(context, plan, args.json);
    };
    let Named { key, shown, own } = &named;
    say_if_absent(context, plan, key);
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    let mut subject = Subject::tool(key).shown_as(shown).spelled_alone();
    if let Own::Always(own) = own {
        subject = subject.with_hints(own.known());
    }
    if let Some(arguments) = &arguments {
        subject = subject.with_arguments(arguments);
    }
    let judged = Judged::of(&plan.permissions, &named.key, subject, own);
    if args.json {
        context.output.json(&judged.json())?;
    } else {
        let said = judged.lines().map(|line| format!("{shown}: {line}\n"));
        context.output.result(&said.collect::<String>())?;
    }
    Ok(Exit::Success)
}

/// The tool that was named.
struct Named {
    key: ToolKey,
    /// The name models see.
    shown: String,
    own: Own,
}

/// The rules of a plan, and the matchers of these hooks, that miss or are not what they seem.
pub(crate) fn rule_remarks(plan: &Plan, hooks: &Hooks) -> Vec<Diagnosis> {
    let servers: Vec<_> = plan.servers.iter().map(|server| &server.name).collect();
    let is_own =
        |name: &str| plan.no_prefix || RESERVED.contains(&name) || Offering::named(name).is_some();
    plan.permissions.remarks(hooks, &servers, &is_own)
}

fn mode(permissions: &Permissions) -> &'static str {
    permissions.mode().as_str()
}

fn source(origin: &Origin) -> Value {
    json!({ "path": origin.path(), "line": origin.line() })
}

fn list(context: &Context, plan: &Plan, as_json: bool) -> Outcome {
    let permissions = &plan.permissions;
    let remarks = rule_remarks(plan, &Hooks::empty());
    let banned = permissions.bypass_forbidden_by();
    let unheeded = permissions.all_unheeded();
    if as_json {
        let rules: Vec<Value> = permissions
            .rules()
            .map(|(list, rule, scope, origin)| {
                let list = list.as_str();
                json!({ "list": list, "rule": rule, "scope": scope, "source": source(origin) })
            })
            .collect();
        context.output.json(&json!({
            "mode": mode(permissions),
            "bypassForbidden": banned.is_some(),
            "pins": permissions.pins().as_str(),
            "classifier": permissions.classifier().map(|classifier| json!({
                "title": classifier.action.title(),
                "source": source(&classifier.origin),
            })),
            "rules": rules,
            "remarks": remarks.iter().chain(permissions.faults()).map(diagnosis_json).collect::<Vec<_>>(),
            "unheeded": unheeded
                .iter()
                .map(|Unheeded { rule, server }| json!({
                    "rule": rule.rule,
                    "source": source(&rule.origin),
                    "server": server.server.as_str(),
                    "entry": source(&server.origin),
                }))
                .collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Success);
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
        context
            .output
            .table(&["LIST", "RULE", "SCOPE", "PLACE"], &rows)?;
    }
    for remark in &remarks {
        context.output.say(&render_diagnosis(remark));
    }
    for unheeded in &unheeded {
        context.output.say(&format!("note: {}", told(unheeded)));
    }
    for server in unheeded.chunk_by(|one, other| one.server == other.server) {
        let server = &server[0].server.server;
        context.output.say(&format!(
            "hint: to let your rules count for `{server}` as it is now: `toolway approve {} \
             --with-rules`",
            as_word(server.as_str())
        ));
    }
    let otherwise = match permissions.mode() {
        Mode::Default => "you are asked",
        Mode::Auto => match permissions.classifier() {
            Some(_) => "the classifier decides",
            None => "you are asked, as in default: no classifier is named",
        },
        Mode::Bypass => "it runs",
    };
    let mut text = format!("mode {}: without a rule {otherwise}\n", mode(permissions));
    if let Some(classifier) = permissions.classifier() {
        let what = match permissions.mode() {
            Mode::Auto => "",
            Mode::Default | Mode::Bypass => " (asked only in mode auto)",
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
    context.output.result(&text)?;
    Ok(Exit::Success)
}

/// The tool that was named; none when nothing was.
fn tool(context: &Context, plan: &Plan, words: &[String]) -> Result<Option<Named>, Report> {
    let (server, tool) = match words {
        [] => return Ok(None),
        [word, rule] if plan.winner(word).is_none() && change::near(word).is_some() => {
            let near = change::near(word).unwrap_or_default();
            let report = Report::new(Exit::Usage, format!("there is no server `{word}`"));
            let rule = shell_word(rule);
            return Err(report.hint(format!("did you mean `toolway permissions {near} {rule}`?")));
        }
        [server, tool] => (server.clone(), tool.clone()),
        [whole] => match (builtin::own(whole), split(plan, whole)) {
            (Some(own), _) => {
                return Ok(Some(Named {
                    key: ToolKey::new(ServerName::built_in(), whole),
                    shown: whole.clone(),
                    own: Own::Always(Box::new(own)),
                }));
            }
            (None, Some(parts)) => parts,
            (None, None) => {
                let report = Report::new(Exit::Usage, format!("`{whole}` names no tool"));
                return Err(
                    report.hint(match (near_built_in(whole), plan.suggest(whole)) {
                        (Some(near), _) => format!("did you mean `{near}`?"),
                        (None, Some(near)) => {
                            let near = as_word(&near);
                            format!("name one of its tools: `toolway permissions {near} <tool>`")
                        }
                        (None, None) => "write `toolway permissions <server> <tool>`".to_owned(),
                    }),
                );
            }
        },
        [_, _, ..] => return Err(Report::new(Exit::Usage, "too many words")),
    };
    let server = ServerName::new(&server)
        .map_err(|error| Report::new(Exit::Usage, error.to_string()).hint("check its name"))?;
    if plan.winner(server.as_str()).is_none() {
        if plan.suggest(server.as_str()).is_some() {
            return Err(unknown_server(plan, server.as_str()));
        }
        context.output.say(&format!(
            "note: no server named `{server}` is configured here; this is what rules would say"
        ));
    }
    Ok(Some(of_server(plan, server, tool)))
}

/// A server's tool, by its own name or its alias.
fn of_server(plan: &Plan, server: ServerName, tool: String) -> Named {
    let entry = plan.winner(server.as_str());
    let curation = entry.map(|entry| &entry.curation);
    let own = curation.and_then(|curation| curation.aliased(&tool));
    let own = own.map_or(tool, str::to_owned);
    let alias = curation.and_then(|curation| curation.alias(&own));
    let key = ToolKey::new(server, own);
    let is_remote = entry
        .and_then(|entry| entry.transport)
        .is_some_and(|kind| !matches!(kind, TransportKind::Stdio | TransportKind::Sdk));
    Named {
        shown: match alias {
            // A rule may name what every server offers.
            _ if Offering::named(&key.tool).is_some() => key.tool.clone(),
            Some(alias) => ToolKey::new(key.server.clone(), &alias.text).exposed(),
            None => key.exposed(),
        },
        own: if is_remote && key.tool == AUTHENTICATE {
            Own::WhileLocked
        } else {
            Own::Never
        },
        key,
    }
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
