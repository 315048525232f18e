//! Which tool was named: by its server and its own name, or by the name that models see.
//!
//! Owns finding it as a call by that name would, among what servers offered when they were last
//! asked; and all that a name can mean while it is not known what a server calls its tool (SEC-31).

use serde_json::{Map, Value};
use toolway::builtin::{self, AUTHENTICATE};
use toolway::{CallError, CallFault, CatalogTool, Offering, ToolTarget};
use toolway_config::Plan;
use toolway_config::permission::{CallSubject, Permissions, UnsureName};
use toolway_types::name::{as_word, shell_word};
use toolway_types::{ServerName, ToolKey, TransportKind};

use super::change;
use super::judged::{Judged, Own};
use crate::commands::admitted::{near_built_in, spelled_servers};
use crate::commands::call::dotted;
use crate::connect::memory::say_if_absent;
use crate::context::{Context, unknown_server};
use crate::report::Report;

/// One tool that the words can mean.
pub(super) struct Reading {
    key: ToolKey,
    /// The name models see.
    pub(super) shown: String,
    own: Own,
    /// Whether no other tool that is known is spelled like it.
    is_alone: bool,
    /// What of its name may be a spelling only.
    unsure: Option<UnsureName>,
}

/// The tools that the words can mean; none when there is no word.
pub(super) fn readings(
    context: &Context,
    plan: &Plan,
    words: &[String],
) -> Result<Vec<Reading>, Report> {
    match words {
        [] => Ok(Vec::new()),
        [word, rule] if plan.winner(word).is_none() && change::near(word).is_some() => {
            let near = change::near(word).unwrap_or_default();
            let report = Report::usage(format!("there is no server `{word}`"));
            let rule = shell_word(rule);
            Err(report.hint(format!("did you mean `toolway permissions {near} {rule}`?")))
        }
        [server, tool] => by_parts(context, plan, server, tool),
        [whole] => by_whole(context, plan, whole),
        [_, _, ..] => Err(Report::usage("too many words")),
    }
}

fn by_whole(context: &Context, plan: &Plan, whole: &str) -> Result<Vec<Reading>, Report> {
    if let Some(own) = builtin::own(whole) {
        return Ok(vec![Reading {
            key: ToolKey::new(ServerName::built_in(), whole),
            shown: whole.to_owned(),
            own: Own::Always(Box::new(own)),
            is_alone: true,
            unsure: None,
        }]);
    }
    let parts = match whole.strip_prefix("mcp__") {
        Some(rest) => match spelled_servers(plan, whole).as_slice() {
            [] => rest.split_once("__"),
            servers => return by_exposed(context, plan, servers, whole),
        },
        None => dotted(plan, whole).or_else(|| whole.split_once('.')),
    };
    match parts {
        Some((server, tool)) if !tool.is_empty() => by_parts(context, plan, server, tool),
        _ => Err(no_tool(plan, whole)),
    }
}

fn no_tool(plan: &Plan, whole: &str) -> Report {
    let report = Report::usage(format!("`{whole}` names no tool"));
    report.hint(match (near_built_in(whole), plan.suggest(whole)) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(near)) => {
            let near = as_word(&near);
            format!("name one of its tools: `toolway permissions {near} <tool>`")
        }
        (None, None) => "write `toolway permissions <server> <tool>`".to_owned(),
    })
}

/// A server's tool, by its own name, a spelling of that, or its alias.
fn by_parts(
    context: &Context,
    plan: &Plan,
    server: &str,
    tool: &str,
) -> Result<Vec<Reading>, Report> {
    let server = ServerName::new(server)
        .map_err(|error| Report::usage(error.to_string()).hint("check its name"))?;
    if plan.winner(server.as_str()).is_none() {
        if plan.suggest(server.as_str()).is_some() {
            return Err(unknown_server(plan, server.as_str()));
        }
        context.say(format!(
            "note: no server named `{server}` is configured here; this is what rules would say"
        ));
        return Ok(vec![Reading::of_server(
            plan,
            server,
            tool,
            UnsureName::Both,
        )]);
    }
    let target = ToolTarget::Key(ToolKey::new(server.clone(), tool));
    if let Some(found) = find(context, plan, &[&server], &target)? {
        return Ok(vec![found]);
    }
    let reading = Reading::of_server(plan, server, tool, UnsureName::Tool);
    say_if_absent(context, plan, &reading.key);
    Ok(vec![reading])
}

/// A tool by the name that models see, which one of these servers may have given it.
fn by_exposed(
    context: &Context,
    plan: &Plan,
    servers: &[&ServerName],
    whole: &str,
) -> Result<Vec<Reading>, Report> {
    let target = ToolTarget::Exposed(whole.to_owned());
    let found = find(context, plan, servers, &target)?;
    let mut readings = Vec::new();
    let known = context.setup.recall(plan).known;
    for server in servers {
        let start = format!("mcp__{}__", server.normalized());
        let Some(tool) = whole.strip_prefix(&start).filter(|tool| !tool.is_empty()) else {
            return Err(no_tool(plan, whole));
        };
        let is_known = known.get(*server).is_some_and(|known| known.lists.tools);
        // One that was asked has what was found, or not this.
        if found.is_some() && is_known {
            continue;
        }
        let reading = Reading::of_server(plan, (*server).clone(), tool, UnsureName::Tool);
        say_if_absent(context, plan, &reading.key);
        readings.push(match &reading.unsure {
            Some(_) => Reading {
                shown: whole.to_owned(),
                ..reading
            },
            None => reading,
        });
    }
    Ok(found.into_iter().chain(readings).collect())
}

/// The tool that a call would reach, as far as these servers were asked what they offer. That
/// several are meant is an error, as it is for a call.
fn find(
    context: &Context,
    plan: &Plan,
    servers: &[&ServerName],
    target: &ToolTarget,
) -> Result<Option<Reading>, Report> {
    let mut plan = plan.clone();
    plan.servers
        .retain(|server| servers.contains(&&server.name));
    let catalog = context.setup.recall(&plan).snapshot.catalog;
    match catalog.find(target) {
        Ok(tool) => Ok(Some(Reading::of_tool(&plan, tool))),
        Err(CallError::Failed(key, CallFault::LeftOut { .. })) => Ok(Some(Reading {
            shown: key.exposed(),
            own: own(&plan, &key),
            is_alone: false,
            unsure: None,
            key,
        })),
        Err(error @ CallError::Ambiguous { .. }) => {
            let CallError::Ambiguous { candidates, .. } = &error else {
                return Ok(None);
            };
            let first = candidates.first().cloned().unwrap_or_default();
            let hint = format!("say which one, e.g. `toolway permissions {first}`");
            Err(Report::from(error).hint(hint))
        }
        Err(_) => Ok(None),
    }
}

/// Whether it is the host's own while its server wants a login.
fn own(plan: &Plan, key: &ToolKey) -> Own {
    let entry = plan.winner(key.server.as_str());
    let is_remote = entry
        .and_then(|entry| entry.transport)
        .is_some_and(TransportKind::is_remote);
    if is_remote && key.tool == AUTHENTICATE {
        Own::WhileLocked
    } else {
        Own::Never
    }
}

impl Reading {
    /// A tool that its server offered.
    fn of_tool(plan: &Plan, tool: &CatalogTool) -> Self {
        Self {
            key: tool.key.clone(),
            shown: tool.name.clone(),
            own: own(plan, &tool.key),
            is_alone: tool.is_spelled_alone(),
            unsure: None,
        }
    }

    /// A tool that is known by this name only, or its alias.
    fn of_server(plan: &Plan, server: ServerName, tool: &str, unsure: UnsureName) -> Self {
        let entry = plan.winner(server.as_str());
        let curation = entry.map(|entry| &entry.curation);
        let aliased = curation.and_then(|curation| curation.aliased(tool));
        let key = ToolKey::new(server, aliased.unwrap_or(tool));
        let alias = curation.and_then(|curation| curation.alias(&key.tool));
        // A rule may name what every server offers.
        let is_offering = Offering::named(&key.tool).is_some();
        Self {
            shown: match alias {
                _ if is_offering => key.tool.clone(),
                Some(alias) => ToolKey::new(key.server.clone(), &alias.text).exposed(),
                None => key.exposed(),
            },
            own: own(plan, &key),
            is_alone: true,
            // What an entry names is its server's own word.
            unsure: (alias.is_none() && !is_offering).then_some(unsure),
            key,
        }
    }

    /// What is decided about it, with these arguments where some are known.
    pub(super) fn judged(
        &self,
        permissions: &Permissions,
        arguments: Option<&Map<String, Value>>,
    ) -> Judged<'_> {
        let mut subject = CallSubject::tool(&self.key).shown_as(&self.shown);
        if self.is_alone {
            subject = subject.spelled_alone();
        }
        if let Own::Always(own) = &self.own {
            subject = subject.with_hints(own.known());
        }
        if let Some(arguments) = arguments {
            subject = subject.with_arguments(arguments);
        }
        let literally = Judged::of(permissions, &self.key, subject, &self.own);
        let Some(unsure) = self.unsure else {
            return literally;
        };
        let subject = subject.unsure_of(unsure);
        let presumed = Judged::of(permissions, &self.key, subject, &self.own);
        if presumed.says_as(&literally) {
            literally
        } else {
            presumed.presumed()
        }
    }
}
