//! Where candidates come from: the catalogue that is kept, or the servers.
//!
//! Owns the order: what is kept answers at once, and is refreshed in the background when it is old;
//! other servers are asked, in the background where they are too slow for a shell. Values of
//! arguments and names of skills are not kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolway::catalog::{CatalogPrompt, CatalogTool};
use toolway::template::UriTemplate;
use toolway::{Catalog, CompletionReference, HostSnapshot, ListedSkill, Recalled, ToolTarget};
use toolway_config::Plan;
use toolway_types::{ServerName, ToolKey};

use super::{Unfinished, Wish, arguments_of, given};
use crate::commands::prompt;
use crate::connect::memory::{refresh, refresh_old};
use crate::connect::{self, CommandHost, Wanted};
use crate::context::Context;
use crate::report::Report;

/// The longest a shell is kept waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a catalogue says about the end of a line.
enum Found {
    /// This can come next.
    Words(Vec<String>),
    /// The value of an argument, which only the server can know.
    Value {
        reference: CompletionReference,
        key: String,
        value: String,
        given: BTreeMap<String, String>,
    },
    /// The name of a skill, which no catalogue has.
    Skills,
}

/// What could come next, of the one server that the line names.
pub(super) fn asked(context: &Context, plan: &Plan, line: &Unfinished) -> Option<Vec<String>> {
    let recalled = context.setup.recall(plan);
    if knows(&recalled, &line.server, &line.wanted) {
        refresh_old(context, &recalled);
        if let Found::Words(words) = found(&recalled.snapshot.catalog, line)? {
            return Some(words);
        }
    }
    let servers = vec![line.server.clone()];
    live(context, plan, servers, async |host| {
        host.ready(line.server.as_str()).await;
        ask(host, line).await
    })
    .flatten()
}

fn knows(recalled: &Recalled, server: &ServerName, wanted: &Wish) -> bool {
    let Some(known) = recalled.known.get(server) else {
        return false;
    };
    match wanted {
        Wish::ToolName { .. } | Wish::ToolArgument(_) => known.lists.tools,
        Wish::PromptName { .. } | Wish::PromptArgument(_) => known.lists.prompts,
        Wish::Variable(_) => true,
        Wish::SkillName => false,
    }
}

/// What can be read, of all servers. Those that nothing is kept of are asked only once something was
/// typed, so that a tab alone does not start them all.
pub(super) fn uris(context: &Context, plan: &Plan, word: &str) -> Vec<String> {
    let recalled = context.setup.recall(plan);
    refresh_old(context, &recalled);
    let mut uris = uris_in(&recalled.snapshot.catalog);
    let known = |name: &ServerName| {
        let known = recalled.known.get(name);
        known.is_some_and(|known| known.lists.resources)
    };
    let unknown: Vec<ServerName> = plan
        .admitted()
        .map(|(server, _)| server.name.clone())
        .filter(|name| !known(name))
        .collect();
    let is_meant = !word.is_empty() || plan.admitted().count() == 1;
    if is_meant && !unknown.is_empty() {
        let asked = live(context, plan, unknown, async |host| {
            host.settled().await;
            uris_in(&host.snapshot().catalog)
        });
        uris.extend(asked.unwrap_or_default());
    }
    uris.sort();
    uris.dedup();
    uris
}

fn uris_in(catalog: &Catalog) -> Vec<String> {
    let listed = catalog.resources().map(|it| it.uri.clone());
    let templates = catalog.templates().map(|it| it.uri_template.clone());
    // No address has a blank; behind one, where a line is read twice, a server could stand.
    let is_address = |uri: &String| !uri.contains(char::is_whitespace);
    listed.chain(templates).filter(is_address).collect()
}

/// What servers say within the time of a shell. Those that need longer are asked again behind it;
/// what the others offer is kept with the end of the host.
fn live<T>(
    context: &Context,
    plan: &Plan,
    servers: Vec<ServerName>,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> T,
) -> Option<T> {
    let wanted = Wanted::Some(servers);
    let asked = connect::with_host(context, plan.clone(), wanted, async |host| {
        let answer = tokio::time::timeout(PATIENCE, work(host)).await.ok();
        Ok::<_, Report>((answer, pending(&host.snapshot())))
    });
    let (answer, late) = asked.ok()?;
    refresh(context, late.iter());
    answer
}

fn pending(snapshot: &HostSnapshot) -> Vec<ServerName> {
    let pending = snapshot.servers.iter().filter(|server| server.is_pending());
    pending.map(|server| server.name.clone()).collect()
}

async fn ask(host: &CommandHost<'_>, line: &Unfinished) -> Option<Vec<String>> {
    let server = &line.server;
    match found(&host.snapshot().catalog, line)? {
        Found::Words(words) => Some(words),
        Found::Skills => {
            let skills = host.skills(server).await.ok()?.skills;
            let name = |skill: &ListedSkill| skill.name().as_received().to_owned();
            Some(skills.iter().map(name).collect())
        }
        Found::Value {
            reference,
            key,
            value,
            given,
        } => {
            let found = host.complete(server, &reference, &key, &value, &given);
            let values = found.await.ok()?.values;
            let words = values
                .iter()
                .map(|value| format!("{key}={}", value.as_received()));
            Some(words.collect())
        }
    }
}

/// What the catalogue says about the end of a line.
fn found(catalog: &Catalog, line: &Unfinished) -> Option<Found> {
    let Unfinished {
        server,
        wanted,
        before,
        word,
    } = line;
    let (reference, known) = match wanted {
        Wish::ToolName { flat } => {
            let own = catalog.built_in().iter();
            let own = own.filter(|tool| tool.key.server == *server);
            let tools = catalog.tools_of(server).iter().chain(own);
            // As it is shown.
            let name = |tool: &CatalogTool| match (flat, catalog.alias(&tool.key)) {
                (true, _) => tool.name.clone(),
                (false, Some(alias)) => alias.to_owned(),
                (false, None) => tool.key.tool.clone(),
            };
            return Some(Found::Words(tools.map(name).collect()));
        }
        Wish::ToolArgument(tool) => {
            let target = if tool.starts_with("mcp__") {
                ToolTarget::Exposed(tool.clone())
            } else {
                ToolTarget::Key(ToolKey::new(server.clone(), tool))
            };
            let tool = catalog.find(&target).ok()?;
            let schema: Value = serde_json::from_str(tool.input_schema.get()).ok()?;
            return arguments_of(&schema, &given(before), word).map(Found::Words);
        }
        Wish::PromptName { flat } => {
            let prompts = catalog.prompts();
            let of_server = prompts.filter(|prompt| prompt.key.server == *server);
            let name = |prompt: &CatalogPrompt| match flat {
                true => prompt.name.clone(),
                false => prompt.key.tool.clone(),
            };
            return Some(Found::Words(of_server.map(name).collect()));
        }
        Wish::SkillName => return Some(Found::Skills),
        Wish::PromptArgument(prompt) => {
            let prompt = prompt::find(catalog, Some(server), prompt).ok()?;
            let arguments = prompt.arguments.iter();
            let known: Vec<String> = arguments.map(|argument| argument.name.clone()).collect();
            let reference = CompletionReference::Prompt(prompt.key.tool.clone());
            (reference, known)
        }
        Wish::Variable(template) => {
            let parsed = UriTemplate::parse(template).ok()?;
            let known = parsed.variables().into_iter().map(str::to_owned).collect();
            let reference = CompletionReference::Template(template.clone());
            (reference, known)
        }
    };
    let given = given(before);
    let Some((key, value)) = word.split_once('=') else {
        let open = known.iter().filter(|name| !given.contains_key(*name));
        let words = open.map(|name| format!("{name}=")).collect();
        return Some(Found::Words(words));
    };
    Some(Found::Value {
        reference,
        key: key.to_owned(),
        value: value.to_owned(),
        given,
    })
}
