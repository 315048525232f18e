//! `toolway tools <server> <tool>`: one tool at a glance.
//!
//! Owns the page: what the tool takes, what its server says of it, which rule decides about it, and a
//! call that can be typed. Everything in it but the first column and the rule is a server's word, so
//! it stands behind our own words or behind a margin (SEC-52).

use serde_json::Value;
use serde_json::value::RawValue;
use toolway::catalog::ToolHints;
use toolway::rows::tool_row;
use toolway::{CallError, Catalog, CatalogTool, ToolTarget};
use toolway_config::Plan;
use toolway_rows::{ToolArgumentRow, ToolPage, ToolRow};
use toolway_types::name::as_word;
use toolway_types::text::{TextKind, counted, legible, mark};
use toolway_types::{ServerName, ToolKey, Untrusted};

use super::shape::{Form, Member, Shape, signature, value};
use super::{ToolsArgs, example};
use crate::commands::call::Place;
use crate::commands::permissions::Judged;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, did_you_mean};
use crate::screen::{self, Sheet, member_name};

/// The most rows of a tool's description, and of an argument's.
const DESCRIPTION: usize = 24;
const WORDS: usize = 6;
/// The most arguments that are shown, those within others counted.
const ARGUMENTS: usize = 100;
/// The deepest argument within others.
const DEPTH: usize = 4;
/// How deep a type is written out that has no rows of its own for its members.
const TYPE_DEPTH: usize = 3;
/// The longest signature that gets a row: each argument has one too.
const SIGNATURE: usize = 76;

/// Which tool was meant, and how its server was named.
pub(super) struct Meant<'a> {
    target: ToolTarget,
    place: Place<'a>,
}

/// The whole name that stands in the place of a server's.
pub(super) fn whole_name<'a>(args: &'a ToolsArgs, plan: &Plan) -> Option<&'a str> {
    let word = args.server.as_deref().filter(|_| args.tool.is_none())?;
    let is_whole = word.starts_with("mcp__") && plan.winner(word).is_none();
    is_whole.then_some(word)
}

/// The tool that was named, if one was. Before a command, there is no server to be named.
pub(super) fn meant<'a>(
    args: &'a ToolsArgs,
    plan: &Plan,
    only: Option<&'a str>,
) -> Result<Option<Meant<'a>>, Report> {
    let is_command = !args.command.is_empty();
    let tool = match (&args.server, &args.tool) {
        (Some(_), Some(_)) if is_command => {
            return Err(Report::usage(
                "with a command behind `--`, only a tool can be named before it",
            )
            .hint("`toolway tools <tool> -- <command>`"));
        }
        (tool, None) if is_command => tool,
        (_, tool) => tool,
    };
    let place = match (only, &args.server) {
        _ if is_command => Place::Command(&args.command),
        // As it was typed, which may be a URL.
        (Some(_), Some(server)) if args.tool.is_some() => Place::Server(server),
        _ => Place::Host,
    };
    let target = match (tool, only.and_then(|only| ServerName::new(only).ok())) {
        (Some(tool), Some(server)) => ToolTarget::Key(ToolKey::new(server, tool)),
        _ => match whole_name(args, plan) {
            Some(whole) => ToolTarget::Exposed(whole.to_owned()),
            None => return Ok(None),
        },
    };
    Ok(Some(Meant { target, place }))
}

/// Shows it.
pub(super) fn show(
    context: &Context,
    args: &ToolsArgs,
    plan: &Plan,
    catalog: &Catalog,
    meant: &Meant<'_>,
) -> Outcome {
    let found = catalog.find(&meant.target);
    let tool = found.map_err(|error| unknown(catalog, &meant.place, error))?;
    let shape = read(&tool.input_schema);
    let (arguments, one_of) = arguments(&shape);
    let judged = Judged::of_tool(&plan.permissions, tool);
    let name = catalog.alias(&tool.key).unwrap_or(&tool.key.tool);
    let first = one_of.first().into_iter().flatten();
    let first: Vec<&String> = first.collect();
    let typed: Vec<&Member> = arguments
        .iter()
        .filter(|it| it.needed || first.contains(&&it.name))
        .collect();
    let place = match &meant.place {
        Place::Host if !tool.is_built_in() => &Place::Server(tool.key.server.as_str()),
        place => place,
    };
    let example = example::words(place, name, &tool.name, &typed);
    let mut rows = Vec::new();
    let left_out = gather("", &arguments, 0, &mut rows);
    let returns = tool.output_schema.as_deref().map(read);
    let signature = format!("{}({})", screen::name(name), signature(&arguments));
    let page = ToolPage {
        arguments: rows,
        one_of,
        returns: returns.map(|shape| shape.spelled(TYPE_DEPTH)),
        permission: judged.row(),
        example: example.as_ref().map(|words| words.join(" ")),
    };
    if args.json {
        return context.json(&ToolRow {
            signature: Some(signature),
            page: Some(page),
            ..tool_row(catalog, tool)
        });
    }
    let mut sheet = context.output.result_screen().sheet();
    head(&mut sheet, catalog, tool, &signature);
    body(&mut sheet, &page, left_out);
    sheet.row("");
    if let Some(returns) = &page.returns {
        sheet.row(&format!("Gives: {returns}"));
    }
    sheet.row(&format!("Annotations{}", hints(tool.hints)));
    for line in judged.lines() {
        sheet.row(&format!("Permission: {}", legible(&line, TextKind::Prose)));
    }
    match &example {
        Some(words) if sheet.typable("Example:", words) => {}
        Some(_) => sheet.row("Example: too wide for this screen; `--json` has it"),
        None => sheet.row("Example: none that could be typed safely; use `--args <JSON>`"),
    }
    context.output.result(&sheet.finish())?;
    Ok(Exit::Success)
}

fn head(sheet: &mut Sheet, catalog: &Catalog, tool: &CatalogTool, signature: &str) {
    let deferred = catalog.is_deferred(tool);
    sheet.row(&format!(
        "{}: `{}` of server `{}`{}",
        tool.name,
        screen::name(&tool.key.tool),
        tool.key.server,
        if deferred { ", deferred" } else { "" }
    ));
    if let Some(title) = &tool.title {
        sheet.row(&format!("  title: {}", screen::words(title, 120)));
    }
    if signature.chars().count() <= SIGNATURE {
        sheet.row(&format!("  {signature}"));
    }
    sheet.quote(&tool.description, TextKind::Prose, DESCRIPTION);
    sheet.row("");
}

fn body(sheet: &mut Sheet, page: &ToolPage, left_out: usize) {
    if page.arguments.is_empty() {
        sheet.row("Arguments: none");
        return;
    }
    sheet.row("Arguments (`?` where one may be left out):");
    for argument in &page.arguments {
        let default = argument.default.as_ref();
        let default = default.map_or(String::new(), |it| format!(" = {}", value(it)));
        let mark = if argument.needed { "" } else { "?" };
        let limits = argument.limits.iter().map(|limit| format!(", {limit}"));
        let limits: String = limits.collect();
        sheet.row(&format!(
            "  {}{mark}: {}{default}{limits}",
            argument.path, argument.kind
        ));
        if let Some(words) = &argument.description {
            sheet.quote(words, TextKind::Prose, WORDS);
        }
    }
    if left_out > 0 {
        let words = mark(&format!("{} left out", counted(left_out, "argument")));
        sheet.row(&format!("  {words}; `--json` has the whole schema"));
    }
    if !page.one_of.is_empty() {
        let groups: Vec<String> = page
            .one_of
            .iter()
            .take(12)
            .map(|group| {
                let names = group.iter().map(|name| format!("`{}`", member_name(name)));
                names.collect::<Vec<_>>().join(" with ")
            })
            .collect();
        sheet.row(&format!("Needed is one of: {}", groups.join(", or ")));
    }
}

/// What a server says of its tool. Nothing is allowed because of it (SEC-34).
fn hints(hints: ToolHints) -> String {
    let all = [
        (hints.read_only, "read-only", "not read-only"),
        (hints.destructive, "destructive", "not destructive"),
        (hints.idempotent, "idempotent", "not idempotent"),
        (hints.open_world, "open-world", "not open-world"),
    ];
    let said: Vec<&str> = all
        .into_iter()
        .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { yes } else { no }))
        .collect();
    if said.is_empty() {
        ": none".to_owned()
    } else {
        format!(" (its server's word): {}", said.join(", "))
    }
}

/// A schema of the catalogue; what cannot be read says nothing.
fn read(schema: &RawValue) -> Shape {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    Shape::read(&schema)
}

/// What a tool takes, for a list.
pub(super) fn signature_of(tool: &CatalogTool) -> String {
    let (arguments, _) = arguments(&read(&tool.input_schema));
    format!("{}({})", tool.name, signature(&arguments))
}

/// The arguments of all alternatives, and the groups of them of which one is needed.
fn arguments(shape: &Shape) -> (Vec<Member>, Vec<Vec<String>>) {
    let mut all: Vec<Member> = Vec::new();
    let mut needs: Vec<Vec<String>> = Vec::new();
    for form in &shape.forms {
        let Form::Object(members) = form else {
            continue;
        };
        let needed = members.named.iter().filter(|member| member.needed);
        needs.push(needed.map(|member| member.name.clone()).collect());
        for member in &members.named {
            if !all.iter().any(|known| known.name == member.name) {
                all.push(member.clone());
            }
        }
    }
    for member in &mut all {
        member.needed = needs.iter().all(|needed| needed.contains(&member.name));
    }
    for group in &mut needs {
        group.retain(|name| !all.iter().any(|known| known.needed && known.name == *name));
    }
    needs.dedup();
    // Who may choose to give nothing need not choose.
    if needs.len() < 2 || needs.iter().any(Vec::is_empty) {
        needs.clear();
    }
    all.sort_by_key(|member| !member.needed);
    (all, needs)
}

/// The rows of some members, and of theirs; gives how many there was no room for.
fn gather(
    prefix: &str,
    members: &[Member],
    depth: usize,
    rows: &mut Vec<ToolArgumentRow>,
) -> usize {
    let mut left_out = 0;
    for member in members {
        if rows.len() == ARGUMENTS {
            left_out += 1;
            continue;
        }
        let shape = &member.shape;
        let inner = shape.members().filter(|_| depth < DEPTH);
        let path = format!("{prefix}{}", member_name(&member.name));
        rows.push(ToolArgumentRow {
            kind: shape.spelled(if inner.is_some() { 0 } else { TYPE_DEPTH }),
            needed: member.needed,
            default: shape.default.clone(),
            limits: shape.limits(),
            description: shape.description.clone(),
            path: path.clone(),
        });
        if let Some(inner) = inner {
            let items = match shape.only() {
                Some(Form::List(_)) => "[]",
                _ => "",
            };
            left_out += gather(&format!("{path}{items}."), &inner.named, depth + 1, rows);
        }
    }
    left_out
}

/// No such tool: what was meant, the way it was typed.
fn unknown(catalog: &Catalog, place: &Place<'_>, error: CallError) -> Report {
    let near = match &error {
        CallError::Unknown { suggestions, .. } => suggestions.as_slice(),
        _ => &[],
    };
    let near = near.iter().filter_map(|near| {
        let tool = catalog.tools().find(|tool| tool.name == *near)?;
        let name = catalog.alias(&tool.key).unwrap_or(&tool.key.tool);
        let line = match place {
            Place::Server(server) => {
                format!("toolway tools {} {}", as_word(server), as_word(name))
            }
            Place::Host => format!("toolway tools {}", tool.name),
            Place::Command(_) => format!("toolway tools {} -- …", as_word(name)),
        };
        Some(Untrusted::new(line).to_string())
    });
    let hint = did_you_mean(&near.collect::<Vec<_>>());
    Report::from(error).better_hint(hint)
}
