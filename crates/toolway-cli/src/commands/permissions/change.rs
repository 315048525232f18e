//! `toolway permissions allow|ask|deny|remove`: rules, changed in their files.
//!
//! Owns what may be typed for a rule and what is said about it. What a rule means is
//! `toolway_config::permission`'s; the files are written by `toolway_config::write_rule`.

use clap::{Args, Subcommand};
use toolway::Offering;
use toolway::builtin::RESERVED;
use toolway_config::permission::{RuleMiss, miss, rule_for_server, rule_for_tool};
use toolway_config::{PermissionList, Plan};
use toolway_types::name::{as_word, shell_word};
use toolway_types::{Scope, ServerName, ToolKey, nearest};

use crate::commands::add::{WritableScope, say_written};
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

#[derive(Debug, Subcommand)]
pub(crate) enum Change {
    /// Let calls run without asking
    Allow(RuleArgs),
    /// Ask a person about calls, whatever allows them
    Ask(RuleArgs),
    /// Refuse calls, whatever allows them
    Deny(RuleArgs),
    /// Take a rule out of the lists it stands in
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway permissions deny github delete_repo
  toolway permissions allow mcp__docs
  toolway permissions ask 'mcp__github__*(@destructive)' -s local")]
pub(crate) struct RuleArgs {
    /// A rule, or a server and one of its tools
    #[arg(required = true, num_args = 1..=2, value_names = ["RULE", "TOOL"])]
    words: Vec<String>,

    /// Where the rule is kept: `user` for every project, `local` for this one
    #[arg(short, long, value_enum, default_value = "user")]
    scope: WritableScope,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The rule as it is written, or a server and one of its tools
    #[arg(required = true, num_args = 1..=2, value_names = ["RULE", "TOOL"])]
    words: Vec<String>,

    /// Only there; everywhere that you can change when absent
    #[arg(short, long, value_enum)]
    scope: Option<WritableScope>,
}

/// The command that was probably meant.
pub(super) fn near(word: &str) -> Option<&'static str> {
    let commands = ["allow", "ask", "deny", "remove"];
    nearest(word, commands)
}

/// Runs the command.
pub(super) fn run(context: &Context, change: &Change) -> Outcome {
    match change {
        Change::Allow(args) => write(context, args, PermissionList::Allow),
        Change::Ask(args) => write(context, args, PermissionList::Ask),
        Change::Deny(args) => write(context, args, PermissionList::Deny),
        Change::Remove(args) => remove(context, args),
    }
}

fn write(context: &Context, args: &RuleArgs, list: PermissionList) -> Outcome {
    let scope = writable(args.scope)?;
    let plan = context.plan();
    let rule = rule(plan, &args.words, list)?;
    let edited = toolway_config::write_rule(context.environment(), scope, list, &rule)?;
    let moved = match edited.value.as_slice() {
        [] => String::new(),
        lists => format!(", no longer in {}", named(lists)),
    };
    let what = format!(
        "`{rule}` is in `permissions.{}` of the {scope} scope{moved}",
        list.as_str()
    );
    say_written(context, &what, &edited);
    let now = context.setup.plan();
    say_what_stands_against(context, &now, list, &rule, scope);
    Ok(Exit::Success)
}

/// Whatever keeps a rule that was just written from meaning what it says.
fn say_what_stands_against(
    context: &Context,
    plan: &Plan,
    list: PermissionList,
    rule: &str,
    scope: Scope,
) {
    let permissions = &plan.permissions;
    let counts = permissions
        .rules()
        .any(|(of, text, from, _)| of == list && text == rule && from == scope);
    if !counts {
        context.warn(format!(
            "it does not count yet: the {scope} settings were found here, and nobody \
             approved them\nhint: look at them with `toolway approve`"
        ));
    }
    let stricter = |of: PermissionList| match list {
        PermissionList::Allow => of != PermissionList::Allow,
        PermissionList::Ask => of == PermissionList::Deny,
        PermissionList::Deny => false,
    };
    for (of, text, _, origin) in permissions.rules() {
        if stricter(of) && text == rule {
            let of = of.as_str();
            context.warn(format!(
                "`{text}` also stands in `permissions.{of}` at {origin}, which beats it"
            ));
        }
    }
    let name = rule.split('(').next().unwrap_or_default().trim();
    if let Some(RuleMiss::Nobody(server)) = miss(name, &servers(plan)) {
        context.say(format!(
            "note: no server named `{server}` is configured here"
        ));
    }
}

fn remove(context: &Context, args: &RemoveArgs) -> Outcome {
    let only = args.scope.map(writable).transpose()?;
    let plan = context.plan();
    let written: Vec<_> = plan.permissions.rules().collect();
    let typed = args.words.join(" ");
    let stands = |text: &str| written.iter().any(|(_, rule, ..)| *rule == text);
    // As it is written, before what it could stand for.
    let rule = if stands(&typed) {
        typed
    } else {
        let wide = rule(plan, &args.words, PermissionList::Deny).ok();
        wide.filter(|rule| stands(rule)).unwrap_or(typed)
    };
    let mut left = false;
    for scope in [Scope::User, Scope::Local] {
        if only.is_some_and(|only| only != scope) {
            continue;
        }
        let holds = context
            .environment()
            .settings_file(scope)
            .is_some_and(|path| path.exists());
        if !holds {
            continue;
        }
        let edited = toolway_config::remove_rule(context.environment(), scope, &rule)?;
        if edited.value.is_empty() {
            continue;
        }
        left = true;
        let lists = named(&edited.value);
        say_written(
            context,
            &format!("`{rule}` is no longer in {lists} of the {scope} scope"),
            &edited,
        );
    }
    let is_users_own = |scope: Scope| matches!(scope, Scope::User | Scope::Local);
    let mut others = written.iter().filter(|(_, text, ..)| *text == rule);
    if let Some((list, _, scope, origin)) = others.clone().find(|rule| !is_users_own(rule.2)) {
        let message = format!(
            "`{rule}` stands in `permissions.{}` of the {scope} scope at {origin}, which this does \
             not change",
            list.as_str()
        );
        if left {
            context.say(format!("note: {message}"));
            return Ok(Exit::Success);
        }
        let hint = match scope {
            Scope::Project => "take the approval of its server back: `toolway reset-approvals`",
            _ => "ask the administrator of this machine",
        };
        return Err(Report::refused(message).hint(hint));
    }
    if left {
        return Ok(Exit::Success);
    }
    if let (Some(only), Some((_, _, scope, _))) = (only, others.next()) {
        let message = format!("`{rule}` is in no list of the {only} scope");
        return Err(Report::configuration(message).hint(format!(
            "it stands in the {scope} scope: `toolway permissions remove {} -s {scope}`",
            shell_word(&rule)
        )));
    }
    let rules = written.iter().map(|(_, text, ..)| *text);
    let near = nearest(&rule, rules).map(shell_word);
    let hint = match near {
        Some(near) => format!("did you mean `toolway permissions remove {near}`?"),
        None => "see the rules with `toolway permissions`".to_owned(),
    };
    let message = format!("no list of rules has `{rule}`");
    Err(Report::configuration(message).hint(hint))
}

/// Rules do not stand in a repository's file.
fn writable(scope: WritableScope) -> Result<Scope, Report> {
    match scope {
        WritableScope::Project => Err(Report::usage(
            "a repository's `.mcp.json` holds no permission rules",
        )
        .hint("use `-s local` for this project or `-s user` for every project")),
        WritableScope::Local | WritableScope::User => Ok(scope.scope()),
    }
}

fn named(lists: &[PermissionList]) -> String {
    let named = lists
        .iter()
        .map(|list| format!("`permissions.{}`", list.as_str()));
    named.collect::<Vec<_>>().join(" and ")
}

fn servers(plan: &Plan) -> Vec<&ServerName> {
    plan.servers.iter().map(|server| &server.name).collect()
}

/// The rule that was typed, in the form in which it is written.
fn rule(plan: &Plan, words: &[String], list: PermissionList) -> Result<String, Report> {
    let rule = match words {
        [server, tool] => of_tool(plan, server, tool)?,
        words => of_word(plan, &words.concat(), list)?,
    };
    list.check(&rule).map_err(|(reason, hint)| {
        Report::usage(format!(
            "`{rule}` cannot be read as a rule: {reason}; nothing was written"
        ))
        .hint(hint)
    })?;
    Ok(rule)
}

/// The rule for a tool of a server.
fn of_tool(plan: &Plan, server: &str, tool: &str) -> Result<String, Report> {
    let entry = plan
        .winner(server)
        .ok_or_else(|| unknown_server(plan, server))?;
    let key = ToolKey::new(entry.name.clone(), tool);
    Ok(match rule_for_tool(&key) {
        // A pattern or a predicate is no tool's name.
        Some(rule) if !tool.contains(['*', '(']) => rule,
        _ => format!("mcp__{server}__{tool}"),
    })
}

fn of_word(plan: &Plan, word: &str, list: PermissionList) -> Result<String, Report> {
    let name = word.split('(').next().unwrap_or_default().trim();
    let predicate = &word[word.find('(').unwrap_or(word.len())..];
    match miss(name, &servers(plan)) {
        Some(RuleMiss::Form(meant)) => Ok(format!("{meant}{predicate}")),
        Some(RuleMiss::Slip(meant)) => {
            let meant = format!("{meant}{predicate}");
            let list = list.as_str();
            Err(Report::usage(format!(
                "`{word}` names no tool of a configured server; nothing was written"
            ))
            .hint(format!(
                "did you mean `toolway permissions {list} {}`?",
                shell_word(&meant)
            )))
        }
        Some(RuleMiss::Nobody(_)) => Ok(word.to_owned()),
        None if is_somebodys(name) || list != PermissionList::Allow => Ok(word.to_owned()),
        None => {
            let servers = servers(plan);
            let near = nearest(name, servers.iter().map(|name| name.as_str()));
            let near = near.and_then(|near| plan.winner(near));
            let near = near.and_then(|near| rule_for_server(&near.name));
            Err(Report::usage(format!(
                "`{word}` names no server, and would allow nothing; nothing was written"
            ))
            .hint(match near {
                Some(near) => format!(
                    "did you mean `toolway permissions allow {}`?",
                    shell_word(&near)
                ),
                None => format!(
                    "name the server too: `toolway permissions allow <server> {}`",
                    as_word(word)
                ),
            }))
        }
    }
}

/// Whether a name is complete: with a server in it, everything, or one of the host's own.
fn is_somebodys(name: &str) -> bool {
    name.starts_with("mcp__")
        || name.chars().all(|c| c == '*')
        || RESERVED.contains(&name)
        || Offering::named(name).is_some()
}
