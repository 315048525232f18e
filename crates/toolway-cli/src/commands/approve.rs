//! `toolway approve`, `reject` and `reset-approvals`: the user's word on what a repository may
//! start. How an entry is shown to them is `approve/entry.rs`.

mod entry;

use clap::Args;
use toolway_config::{CitedRule, Plan, PlannedServer, ServerVerdict, UnheededRule, is_harmless};
use toolway_types::Scope;
use toolway_types::name::{as_word, shell_word};
use toolway_types::text::{TextKind, legible};

use crate::commands::add::say_written;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::screen::name;

/// The flag that answers every question.
const YES: &str = "--yes";

/// Approve a server that came with the repository
///
/// Shows exactly what it would start, and which variables of yours it would read: a yes covers
/// both. The approval holds for this definition in this directory only: when the definition
/// changes, it must be approved again.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Its name
    #[arg(required_unless_present_any = ["all", "local_settings", "agent"])]
    name: Option<String>,

    /// One that this agent brings: a file, or the agent's name. Without a name of a server, all that
    /// wait
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "local_settings")]
    agent: Option<String>,

    /// Every server that waits for approval
    #[arg(long, conflicts_with = "name")]
    all: bool,

    /// With `--yes`: let the definition read this variable of your environment. Repeatable
    #[arg(long, value_name = "VAR")]
    allow_env: Vec<String>,

    /// Let the allow rules that name it count for it, as it is now
    #[arg(long, conflicts_with = "local_settings")]
    with_rules: bool,

    /// Trust `.toolway/settings.local.json` as it is now
    #[arg(long, conflicts_with_all = ["name", "all"])]
    local_settings: bool,

    /// Do not ask. Variables that it reads must be named then
    #[arg(short, long)]
    yes: bool,
}

impl ApproveArgs {
    /// The command that approves a server, with every variable that it may come to read, so that one
    /// run is enough.
    fn again(&self, server: &PlannedServer, last: Option<&str>) -> String {
        let mut words = vec![as_word(server.name.as_str()).into_owned()];
        if let Some(agent) = &self.agent {
            words.push(format!("--agent {}", shell_word(agent)));
        }
        if self.with_rules {
            words.push("--with-rules".to_owned());
        }
        let reads = server.variables.iter().filter(|name| !is_harmless(name));
        words.extend(reads.map(|name| format!("--allow-env {name}")));
        words.extend(last.map(str::to_owned));
        // Behind `--` no word is taken for a flag.
        if words[0].starts_with("-- ") {
            words.rotate_left(1);
        }
        format!("toolway approve {}", words.join(" "))
    }

    /// With `--yes` nothing is read before it counts: it gives no variable that was not named.
    fn require_named(&self, server: &PlannedServer) -> Result<(), Report> {
        let is_named = |name: &&String| self.allow_env.contains(name);
        let missing: Vec<_> = server.withheld.iter().filter(|it| !is_named(it)).collect();
        if !self.yes || missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "`{}` reads {} of your environment, which `--yes` alone does not give it",
            name(server.name.as_str()),
            missing.join(", ")
        );
        let again = self.again(server, Some(YES));
        let hint = format!("read the above, then run `{again}`");
        Err(Report::refused(message).hint(hint))
    }
}

/// Reject a server that came with the repository
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// Its name
    name: String,

    /// One that this agent brings: a file, or the agent's name
    #[arg(long, value_name = "FILE|NAME")]
    agent: Option<String>,
}

/// Forget all approvals and rejections of this project
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {}

/// Runs `approve`.
pub(crate) fn approve(context: &Context, args: &ApproveArgs) -> Outcome {
    if args.local_settings {
        return trust_local_settings(context, args);
    }
    let of_agent;
    let plan = match &args.agent {
        Some(agent) => {
            of_agent = agents_plan(context, agent)?;
            &of_agent
        }
        None => context.plan(),
    };
    let servers: Vec<&PlannedServer> = match &args.name {
        Some(name) => vec![decidable(plan, name)?],
        None => waiting(plan),
    };
    require_used(&servers, &args.allow_env)?;
    if servers.is_empty() {
        context.say("no server waits for approval");
        return Ok(Exit::Success);
    }
    let several = servers.len() > 1;
    let mut exit = Exit::Success;
    for server in servers {
        // Digested before the question: the answer is about what was there when it was asked.
        let files = toolway_config::repository_files(context.environment(), server);
        // The answer covers what is on the screen, which is not read with `--yes`.
        let variables = if args.yes {
            &args.allow_env
        } else {
            &server.variables
        };
        let answer = ask(
            context,
            args.yes,
            &entry::sheet(
                server,
                variables,
                &files,
                context.environment(),
                context.output.screen(),
            ),
            &format!("Start `{}` from now on?", name(server.name.as_str())),
            |last| args.again(server, last),
        )
        .and_then(|()| args.require_named(server));
        match answer {
            Ok(()) => {}
            // A no to one is no answer about the others.
            Err(no) if several && (args.yes || context.output.can_ask()) => {
                context.say(no.render());
                exit = no.exit;
                continue;
            }
            Err(no) => return Err(no),
        }
        let edited =
            toolway_config::approve(context.environment(), server, variables, &files.bound)?;
        say_written(context, &format!("approved `{}`", server.name), &edited);
        let now = match &args.agent {
            Some(agent) => agents_plan(context, agent)?,
            None => context.setup.plan(),
        };
        allow_rules(context, server, args, &now)?;
        say_what_is_missing(context, server, &now);
    }
    Ok(exit)
}

/// Rules follow names, and a repository chooses its own: those that the user wrote for a server of
/// that name count for this one only when they say so.
fn allow_rules(
    context: &Context,
    server: &PlannedServer,
    args: &ApproveArgs,
    plan: &Plan,
) -> Result<(), Report> {
    let Some(brought) = toolway_config::repository_server(server) else {
        return Ok(());
    };
    // Now that it is approved, it is the one that counts.
    let all = plan.permissions.all_unheeded();
    let unheeded: Vec<&UnheededRule> = all
        .iter()
        .filter(|unheeded| unheeded.server.server == server.name)
        .collect();
    if unheeded.is_empty() {
        return Ok(());
    }
    let shown = unheeded.iter().map(|unheeded| {
        let CitedRule { rule, origin } = &*unheeded.rule;
        format!("`{}` in {origin}", legible(rule, TextKind::Code))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if args.with_rules {
        let rules = unheeded.iter().map(|unheeded| unheeded.rule.rule.clone());
        let rules: Vec<String> = rules.collect();
        let edited =
            toolway_config::allow_for_repository_server(context.environment(), &brought, &rules)?;
        say_written(
            context,
            &format!("from now on {shown} counts for it"),
            &edited,
        );
    } else {
        context.say(format!(
            "note: {shown} was given for another server of that name, and does not count for it\n\
             hint: to let it count: `toolway approve {}{} --with-rules`",
            as_word(server.name.as_str()),
            args.agent
                .as_ref()
                .map(|agent| format!(" --agent {}", shell_word(agent)))
                .unwrap_or_default()
        ));
    }
    Ok(())
}

/// A variable that no definition reads is a typing error.
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
            Err(Report::usage(format!("no variable `{name}` is read")).hint(hint))
        }
    }
}

/// An approval alone may not be enough: it may read a variable that was not allowed, or other
/// settings may keep the server off.
fn say_what_is_missing(context: &Context, server: &PlannedServer, plan: &Plan) {
    let Some(now) = plan.winner(server.name.as_str()) else {
        return;
    };
    match &now.verdict {
        ServerVerdict::Rejected { reason } | ServerVerdict::Disabled { reason } => {
            context.warn(format!("`{}` still does not start: {reason}", server.name));
        }
        ServerVerdict::Refused { .. } | ServerVerdict::Invalid { .. } => {
            context.say_findings(&now.diagnoses);
        }
        _ => {}
    }
}

/// Runs `reject`.
pub(crate) fn reject(context: &Context, args: &RejectArgs) -> Outcome {
    let of_agent;
    let plan = match &args.agent {
        Some(agent) => {
            of_agent = agents_plan(context, agent)?;
            &of_agent
        }
        None => context.plan(),
    };
    let server = decidable(plan, &args.name)?;
    let edited = toolway_config::reject(context.environment(), server)?;
    say_written(context, &format!("rejected `{}`", server.name), &edited);
    Ok(Exit::Success)
}

/// Runs `reset-approvals`.
pub(crate) fn reset(context: &Context, _args: &ResetArgs) -> Outcome {
    let edited = toolway_config::reset(context.environment())?;
    let what = match edited.value {
        1 => "forgot 1 decision".to_owned(),
        count => format!("forgot {count} decisions"),
    };
    say_written(context, &what, &edited);
    Ok(Exit::Success)
}

fn trust_local_settings(context: &Context, args: &ApproveArgs) -> Outcome {
    let path = context.environment().settings_file(Scope::Local);
    let text = toolway_config::local_settings_text(context.environment())?;
    let (Some(path), Some(text)) = (path, text) else {
        return Err(Report::configuration("this project has no local settings")
            .hint("`toolway add <name> <command or url>` makes them"));
    };
    let mut sheet = context.output.screen().sheet();
    let place = path.display().to_string();
    sheet.row(&format!("{}:", legible(&place, TextKind::Code)));
    sheet.quote(&text, TextKind::Source, usize::MAX);
    let question = "Let these settings count?";
    ask(context, args.yes, &sheet.finish(), question, |last| {
        spaced("toolway approve --local-settings", last)
    })?;
    let edited = toolway_config::trust_local(context.environment(), &text)?;
    say_written(context, "trusted the local settings", &edited);
    Ok(Exit::Success)
}

/// A command with a flag behind it, where there is one.
pub(super) fn spaced(command: &str, last: Option<&str>) -> String {
    let words = std::iter::once(command).chain(last);
    words.collect::<Vec<_>>().join(" ")
}

/// Shows what it is about and asks, unless told not to; without a terminal the answer is no.
/// `command` is what was typed, with a flag where one is given.
pub(super) fn ask(
    context: &Context,
    yes: bool,
    sheet: &str,
    question: &str,
    command: impl Fn(Option<&str>) -> String,
) -> Result<(), Report> {
    if yes {
        context.say(sheet);
        return Ok(());
    }
    let seen = context.output.lay_before(sheet)?;
    if !context.output.can_ask() {
        return Err(Report::refused("nobody is there to confirm this")
            .hint(format!("read the above, then run `{}`", command(Some(YES)))));
    }
    if seen && context.output.confirm(question)? {
        Ok(())
    } else {
        Err(Report::refused("not approved, nothing was changed")
            .hint(format!("to look at it again: `{}`", command(None))))
    }
}

/// The servers that an agent brings.
fn agents_plan(context: &Context, agent: &str) -> Result<Plan, Report> {
    let environment = context.environment();
    let place = toolway_config::find_agent(environment, agent)?;
    let agent = toolway_config::agent(environment, place)?;
    Ok(agent.own_plan(environment, context.flags()))
}

/// The entry a decision is about: the one of this name that waits for it, else the one that
/// counts, when it needs approval.
fn decidable<'a>(plan: &'a Plan, name: &str) -> Result<&'a PlannedServer, Report> {
    let winner = plan
        .winner(name)
        .ok_or_else(|| unknown_server(plan, name))?;
    let decided = |server: &&&PlannedServer| {
        matches!(
            server.verdict,
            ServerVerdict::PendingApproval { .. } | ServerVerdict::Rejected { .. }
        )
    };
    let named: Vec<&PlannedServer> = (plan.servers.iter())
        .filter(|server| server.name.as_str() == name)
        .collect();
    let server = named.iter().find(decided).map_or(winner, |server| *server);
    if matches!(server.scope, Scope::Project | Scope::Local) {
        return Ok(server);
    }
    Err(Report::usage(format!(
        "server `{name}` comes from the {} scope, which needs no approval",
        server.scope
    ))
    .hint(format!("switch it off with `toolway disable {name}`")))
}

fn waiting(plan: &Plan) -> Vec<&PlannedServer> {
    plan.servers
        .iter()
        .filter(|server| matches!(server.verdict, ServerVerdict::PendingApproval { .. }))
        .collect()
}
