//! Which tool was meant: `server tool`, `server.tool`, `mcp__server__tool`, a URL and a tool, a
//! tool of a command behind `--`, one of the host's own, or one that a single server has.

use toolway::builtin::{LIST_RESOURCES, READ_RESOURCE, RESERVED, TOOL_SEARCH};
use toolway::{CallError, CatalogTool, HostSnapshot, ToolTarget};
use toolway_config::Plan;
use toolway_types::name::as_word;
use toolway_types::{ConnectionState, ToolKey, Untrusted, nearest};

use crate::commands::admitted::{near_built_in, require_known_scheme, unknown};
use crate::connect::Typed;
use crate::report::Report;

/// The tool that was meant, and the words behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) server: Server,
    pub(super) tool: String,
    pub(super) rest: &'a [String],
}

/// How its server was named.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// By name.
    Named(String),
    /// Inside the tool's exposed name.
    FromExposed(String),
    /// By none: it is the host's own tool of this name.
    Host(String),
    /// By none: it is the one that has a tool of this name.
    Unnamed,
}

/// Reads the words.
pub(super) fn parse<'a>(
    plan: &Plan,
    words: &'a [String],
    typed: Option<&Typed>,
    behind_dashes: bool,
) -> Result<Target<'a>, Report> {
    let named = |server: &str, tool: &str, rest| Target {
        server: Server::Named(server.to_owned()),
        tool: tool.to_owned(),
        rest,
    };
    let first = words.first().map_or("", String::as_str);
    match typed {
        Some(typed) if behind_dashes => return Ok(named(&typed.name, first, &words[1..])),
        Some(typed) => {
            return match words.get(1).filter(|word| !is_argument(word)) {
                Some(tool) => Ok(named(&typed.name, tool, &words[2..])),
                None => Err(missing_tool(first)),
            };
        }
        None => {}
    }
    if first.starts_with("mcp__") && plan.winner(first).is_none() {
        if let Some(server) = only_server(plan, first) {
            return Err(missing_tool(&server));
        }
        return Ok(Target {
            server: Server::FromExposed(first.to_owned()),
            tool: String::new(),
            rest: &words[1..],
        });
    }
    let second = words.get(1).filter(|word| !is_argument(word));
    if RESERVED.contains(&first) && (second.is_none() || plan.winner(first).is_none()) {
        return Ok(Target {
            server: Server::Host(first.to_owned()),
            tool: String::new(),
            rest: &words[1..],
        });
    }
    if plan.winner(first).is_some() {
        return match words.get(1).filter(|word| !is_argument(word)) {
            Some(tool) => Ok(named(first, tool, &words[2..])),
            None => Err(missing_tool(first)),
        };
    }
    match dotted(plan, first) {
        Some((server, "")) => Err(missing_tool(server)),
        Some((server, tool)) => Ok(named(server, tool, &words[1..])),
        None => {
            require_known_scheme(first)?;
            // Who writes a dot or a second word names a server; a slip in it is told at once.
            let can_be_tool = second.is_none()
                && !first.contains('.')
                && near_built_in(first).is_none()
                && !plan.servers.is_empty();
            if can_be_tool {
                return Ok(Target {
                    server: Server::Unnamed,
                    tool: first.to_owned(),
                    rest: &words[1..],
                });
            }
            Err(unknown(plan, first.split('.').next().unwrap_or(first)))
        }
    }
}

/// `server.tool`: server names may hold dots themselves, so the longest configured one that fits is
/// meant.
pub(in crate::commands) fn dotted<'w>(plan: &Plan, word: &'w str) -> Option<(&'w str, &'w str)> {
    word.char_indices()
        .rev()
        .filter(|(_, character)| *character == '.')
        .map(|(at, _)| (&word[..at], &word[at + 1..]))
        .find(|(server, _)| plan.winner(server).is_some())
}

/// The tool of this name, or alias, that a single server has. An error while one of them is not
/// connected: it may have the tool that was meant.
pub(super) fn the_only(snapshot: &HostSnapshot, word: &str) -> Result<ToolKey, Report> {
    let catalog = &snapshot.catalog;
    let is_meant = |tool: &&CatalogTool| {
        tool.key.tool == word || catalog.alias(&tool.key).is_some_and(|alias| alias == word)
    };
    let found: Vec<&CatalogTool> = catalog.tools().filter(is_meant).collect();
    let is_out = |state: &ConnectionState| {
        !matches!(
            state,
            ConnectionState::Connected(_) | ConnectionState::Disabled { .. }
        )
    };
    let mut out = snapshot
        .servers
        .iter()
        .filter(|server| is_out(&server.state));
    let named = |tool: &CatalogTool| {
        let line = format!(
            "toolway call {} {}",
            as_word(tool.key.server.as_str()),
            as_word(word)
        );
        Untrusted::new(line).to_string()
    };
    match (found.as_slice(), out.next()) {
        ([only], None) => Ok(only.key.clone()),
        ([only], Some(server)) => Err(Report::usage(format!(
            "`{word}` is a tool of server `{}`, but server `{}`, which may have one too, is \
                 not connected",
            only.key.server, server.name
        ))
        .hint(format!("name the server: `{}`", named(only)))),
        ([], missing) => {
            let tools = catalog.tools().map(|tool| tool.key.tool.as_str());
            let servers = snapshot.servers.iter().map(|server| server.name.as_str());
            let near = nearest(word, tools.chain(servers));
            let report =
                Report::usage(format!("`{word}` names neither a server nor a tool of one"));
            let report = match missing {
                Some(server) => report.details([format!(
                    "server `{}` is not connected, and may have such a tool",
                    server.name
                )]),
                None => report,
            };
            Err(report.hint(match near {
                Some(near) => format!("did you mean `{}`?", Untrusted::new(near)),
                None => "see all tools with `toolway tools`".to_owned(),
            }))
        }
        (several, _) => {
            let servers: Vec<String> = several
                .iter()
                .map(|tool| format!("`{}`", tool.key.server))
                .collect();
            Err(Report::usage(format!(
                "`{word}` is a tool of several servers: {}",
                servers.join(", ")
            ))
            .hint(format!(
                "name the one you mean, e.g. `{}`",
                named(several[0])
            )))
        }
    }
}

/// One of the host's own tools that is not there now, and when it would be.
pub(super) fn missing_built_in(error: &CallError) -> Option<Report> {
    let CallError::Unknown {
        target: ToolTarget::Exposed(name),
        ..
    } = error
    else {
        return None;
    };
    let (why, hint) = match name.as_str() {
        TOOL_SEARCH => (
            "no tool is deferred",
            "search all tools with `toolway tools --search '<words>'`",
        ),
        LIST_RESOURCES | READ_RESOURCE => (
            "no connected server has resources",
            "see which servers are connected with `toolway list`",
        ),
        _ => return None,
    };
    Some(Report::usage(format!("there is no `{name}` now: {why}")).hint(hint))
}

/// The server whose exposed prefix this is, with no tool behind it.
fn only_server(plan: &Plan, exposed: &str) -> Option<String> {
    let bare = exposed.strip_prefix("mcp__")?.trim_end_matches("__");
    plan.servers
        .iter()
        .map(|server| &server.name)
        .find(|name| name.normalized().as_str() == bare)
        .map(ToString::to_string)
}

/// Whether a word is an argument rather than a tool's name.
fn is_argument(word: &str) -> bool {
    word.contains('=') || word == "-"
}

fn missing_tool(server: &str) -> Report {
    Report::usage(format!("which tool of `{server}`?"))
        .hint(format!("see its tools with `toolway tools {server}`"))
}
