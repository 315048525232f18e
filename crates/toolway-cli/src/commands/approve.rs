//! `toolway approve`, `reject` and `reset-approvals`: a person's word on what a repository may
//! start.

use std::fmt::Write as _;

use clap::Args;
use serde_json::Value;
use toolway_config::{Cited, Plan, PlannedServer, Unheeded, Verdict};
use toolway_types::Scope;
use toolway_types::name::as_word;
use toolway_types::text::spelled_out;

use crate::commands::add::say_written;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, render_diagnosis};

/// Approve a server that came with the repository
///
/// Shows exactly what it would start. The approval holds for this definition in this directory
/// only: when the definition changes, it must be approved again.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Its name
    #[arg(required_unless_present_any = ["all", "local_settings"])]
    name: Option<String>,

    /// Every server that waits for approval
    #[arg(long, conflicts_with = "name")]
    all: bool,

    /// Let the definition read this variable of your environment. Repeatable
    #[arg(long, value_name = "VAR")]
    allow_env: Vec<String>,

    /// Let the allow rules that name it count for it, as it is now
    #[arg(long, conflicts_with = "local_settings")]
    with_rules: bool,

    /// Trust `.toolway/settings.local.json` as it is now
    #[arg(long, conflicts_with_all = ["name", "all"])]
    local_settings: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Reject a server that came with the repository
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// Its name
    name: String,
}

/// Forget all approvals and rejections of this project
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {}

/// Runs `approve`.
pub(crate) fn approve(context: &Context, args: &ApproveArgs) -> Outcome {
    if args.local_settings {
        return trust_local_settings(context, args);
    }
    let plan = context.plan();
    let servers: Vec<&PlannedServer> = match &args.name {
        Some(name) => vec![decidable(context, name)?],
        None => waiting(plan),
    };
    require_used(&servers, &args.allow_env)?;
    if servers.is_empty() {
        context.output.say("no server waits for approval");
        return Ok(Exit::Success);
    }
    let several = servers.len() > 1;
    let mut exit = Exit::Success;
    for server in servers {
        context.output.say(&describe(server));
        let answer = ask(
            context,
            args.yes,
            &format!("Start `{}` from now on?", server.name),
            || format!("toolway approve {}", as_word(server.name.as_str())),
        );
        match answer {
            Ok(()) => {}
            // A no to one is no answer about the others.
            Err(no) if several && context.output.can_ask() => {
                context.output.say(&no.render());
                exit = no.exit;
                continue;
            }
            Err(no) => return Err(no),
        }
        let edited = toolway_config::approve(&context.environment, server, &args.allow_env)?;
        say_written(context, &format!("approved `{}`", server.name), &edited);
        allow_rules(context, server, args)?;
        say_what_is_missing(context, server);
    }
    Ok(exit)
}

/// Rules follow names, and a repository chooses its own: those that a person wrote for a server of
/// that name count for this one only when they say so.
fn allow_rules(
    context: &Context,
    server: &PlannedServer,
    args: &ApproveArgs,
) -> Result<(), Report> {
    let Some(brought) = toolway_config::brought(server) else {
        return Ok(());
    };
    let all = context.plan().permissions.all_unheeded();
    let unheeded: Vec<&Unheeded> = all
        .iter()
        .filter(|unheeded| unheeded.server.server == server.name)
        .collect();
    if unheeded.is_empty() {
        return Ok(());
    }
    let shown = unheeded.iter().map(|unheeded| {
        let Cited { rule, origin } = &*unheeded.rule;
        format!("`{}` in {origin}", spelled_out(rule))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if args.with_rules {
        let rules = unheeded.iter().map(|unheeded| unheeded.rule.rule.clone());
        let rules: Vec<String> = rules.collect();
        let edited = toolway_config::allow_brought(&context.environment, &brought, &rules)?;
        say_written(
            context,
            &format!("from now on {shown} counts for it"),
            &edited,
        );
    } else {
        context.output.say(&format!(
            "note: {shown} was given for another server of that name, and does not count for it\n\
             hint: to let it count: `toolway approve {} --with-rules`",
            as_word(server.name.as_str())
        ));
    }
    Ok(())
}

/// A variable that no definition reads is a slip, and would be allowed to nobody.
fn require_used(servers: &[&PlannedServer], allowed: &[String]) -> Result<(), Report> {
    let read: Vec<&String> = servers
        .iter()
        .flat_map(|server| &server.variables)
        .collect();
    match allowed.iter().find(|name| !read.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let words: Vec<String> = read.iter().map(|name| format!("`{name}`")).collect();
            let hint = match words.as_slice() {
                [] => "leave `--allow-env` out: no variable is read".to_owned(),
                words => format!("what is read: {}", words.join(", ")),
            };
            Err(Report::new(Exit::Usage, format!("no variable `{name}` is read")).hint(hint))
        }
    }
}

/// An approval alone may not be enough: it may read a variable that was not allowed, or other
/// settings may keep the server off.
fn say_what_is_missing(context: &Context, server: &PlannedServer) {
    let plan = context.plan_with(&context.flags);
    if let Some(Verdict::Rejected { reason } | Verdict::Disabled { reason }) =
        plan.winner(server.name.as_str()).map(|now| &now.verdict)
    {
        context.output.say(&format!(
            "warning: `{}` still does not start: {reason}",
            server.name
        ));
    }
    let still = plan.winner(server.name.as_str()).filter(|server| {
        matches!(
            server.verdict,
            Verdict::Refused { .. } | Verdict::Invalid { .. }
        )
    });
    for finding in still.iter().flat_map(|server| &server.diagnoses) {
        context.output.say(&render_diagnosis(finding));
    }
}

/// Runs `reject`.
pub(crate) fn reject(context: &Context, args: &RejectArgs) -> Outcome {
    let server = decidable(context, &args.name)?;
    let edited = toolway_config::reject(&context.environment, server)?;
    say_written(context, &format!("rejected `{}`", server.name), &edited);
    Ok(Exit::Success)
}

/// Runs `reset-approvals`.
pub(crate) fn reset(context: &Context, _args: &ResetArgs) -> Outcome {
    let edited = toolway_config::reset(&context.environment)?;
    let what = match edited.value {
        1 => "forgot 1 decision".to_owned(),
        count => format!("forgot {count} decisions"),
    };
    say_written(context, &what, &edited);
    Ok(Exit::Success)
}

fn trust_local_settings(context: &Context, args: &ApproveArgs) -> Outcome {
    let path = context.environment.settings_file(Scope::Local);
    let text = toolway_config::local_settings_text(&context.environment)?;
    let (Some(path), Some(text)) = (path, text) else {
        return Err(
            Report::new(Exit::Configuration, "this project has no local settings")
                .hint("`toolway add <name> <command or url>` makes them"),
        );
    };
    let lines: Vec<String> = text.lines().map(spelled_out).collect();
    context
        .output
        .say(&format!("{}:\n{}", path.display(), lines.join("\n")));
    ask(context, args.yes, "Let these settings count?", || {
        "toolway approve --local-settings".to_owned()
    })?;
    let edited = toolway_config::trust_local_text(&context.environment, &text)?;
    say_written(context, "trusted the local settings", &edited);
    Ok(Exit::Success)
}

/// Asks unless told not to; without a person to ask, the answer is no.
fn ask(
    context: &Context,
    yes: bool,
    question: &str,
    command: impl Fn() -> String,
) -> Result<(), Report> {
    if yes {
        return Ok(());
    }
    if !context.output.can_ask() {
        return Err(
            Report::new(Exit::Refused, "nobody is there to confirm this")
                .hint(format!("read the above, then run `{} --yes`", command())),
        );
    }
    if context.output.confirm(question)? {
        Ok(())
    } else {
        Err(
            Report::new(Exit::Refused, "not approved, nothing was changed")
                .hint(format!("to look at it again: `{}`", command())),
        )
    }
}

/// The entry a decision is about: the one that counts for its name, when it needs approval.
fn decidable<'a>(context: &'a Context, name: &str) -> Result<&'a PlannedServer, Report> {
    let server = context.server(name)?;
    if matches!(server.scope, Scope::Project | Scope::Local) {
        return Ok(server);
    }
    Err(Report::new(
        Exit::Usage,
        format!(
            "server `{name}` comes from the {} scope, which needs no approval",
            server.scope
        ),
    )
    .hint(format!("switch it off with `toolway disable {name}`")))
}

fn waiting(plan: &Plan) -> Vec<&PlannedServer> {
    plan.servers
        .iter()
        .filter(|server| matches!(server.verdict, Verdict::PendingApproval { .. }))
        .collect()
}

/// Exactly what would be started, nothing cut.
pub(crate) fn describe(server: &PlannedServer) -> String {
    let mut text = format!("server `{}` from {}\n", server.name, server.origin);
    if let Verdict::PendingApproval {
        changed: Some(diff),
        ..
    } = &server.verdict
    {
        let _ = writeln!(text, "its definition has changed since it was approved:");
        for line in diff.lines() {
            let _ = writeln!(text, "  {}", spelled_out(line));
        }
    }
    // Nothing is hidden: the values of `env` are as much code as the command is.
    for (key, value) in &server.definition {
        let shown = match value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        let _ = writeln!(text, "  {}: {}", spelled_out(key), spelled_out(&shown));
    }
    if !server.variables.is_empty() {
        let _ = writeln!(
            text,
            "  it reads these variables: {}",
            server.variables.join(", ")
        );
    }
    if server.definition.contains_key("headersHelper") {
        text.push_str("This runs its `headersHelper` on this machine, with your rights.\n");
    }
    text.push_str(if server.definition.contains_key("url") {
        "This sends what you and your agents ask of it to that address.\n"
    } else {
        "This runs the program above on this machine, with your rights.\n"
    });
    text
}
