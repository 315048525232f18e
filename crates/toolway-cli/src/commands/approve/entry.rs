//! An entry as it is shown to the user who approves it (SEC-05, SEC-52).
//!
//! Owns the order: what changed, what is ignored, the keys, what is read, and last, above the
//! question, what is reached and run. Nothing that counts is left out: `env` may be code too.

use std::path::Path;

use serde_json::Value;
use toolway_config::{
    Environment, PlannedServer, RepositoryFiles, ServerVerdict, UnboundCode, entry_keys,
    is_harmless, references_of, split_command,
};
use toolway_types::text::{TextKind, counted, legible};
use toolway_types::{Origin, ReferenceKind, Scope, SecretReference, TransportKind};
use url::Url;

use crate::screen::{Screen, Sheet, disguise, member_name, name};

/// The most ignored keys that are named.
const IGNORED: usize = 10;

/// Exactly what would be started, nothing cut. `covered` are the variables that a yes lets it read.
pub(super) fn sheet(
    server: &PlannedServer,
    covered: &[String],
    files: &RepositoryFiles,
    environment: &Environment,
    screen: Screen,
) -> String {
    let mut sheet = screen.sheet();
    sheet.row(&format!(
        "server `{}` from {}",
        name(server.name.as_str()),
        code(&server.origin.to_string())
    ));
    changed(&mut sheet, server);
    ignored(&mut sheet, server);
    let is_program = server.transport == Some(TransportKind::Stdio);
    let below: &[&str] = if is_program {
        &["command", "args"]
    } else {
        &["url", "headersHelper"]
    };
    for key in entry_keys().filter(|key| !below.contains(key)) {
        if let Some(value) = server.definition.get(key) {
            member(&mut sheet, key, value);
        }
    }
    let references = references_of(&server.definition);
    reads(&mut sheet, server, covered, environment, &references);
    covers(&mut sheet, server, files);
    if is_program && server.scope == Scope::Local && !server.definition.contains_key("cwd") {
        sheet.row(
            "  it starts in a private directory of its own: a relative path leads to nothing of \
             the project",
        );
    }
    if server.scope == Scope::Local {
        let network = if is_program || server.definition.contains_key("headersHelper") {
            " your certificates, proxies and registries without credentials,"
        } else {
            ""
        };
        sheet.row(&format!(
            "Approved, it counts as your own: no shield,{network} and every variable and secret \
             it names."
        ));
    }
    if !is_program {
        address(&mut sheet, server);
    }
    for reference in &references {
        if reference.kind == ReferenceKind::Command {
            // A shell takes the line as it is.
            also(&mut sheet, &format!("`{}`", name(&reference.place)));
            sheet.row(&format!("  {}", code(&reference.target)));
        }
    }
    match server.definition.get("headersHelper") {
        Some(Value::String(line)) if !is_program => {
            also(&mut sheet, "its headers");
            match split_command(line) {
                Ok(words) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    sheet.command("  ", &words);
                }
                Err(_) => sheet.row(&format!("  {}", code(line))),
            }
        }
        _ => {}
    }
    if is_program {
        sheet.row("This runs on this machine, with your rights:");
        let words = argv(server);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        sheet.command("  ", &words);
    }
    sheet.finish()
}

fn code(text: &str) -> String {
    legible(text, TextKind::Code)
}

fn changed(sheet: &mut Sheet, server: &PlannedServer) {
    let ServerVerdict::PendingApproval {
        changed: Some(difference),
        ..
    } = &server.verdict
    else {
        return;
    };
    sheet.row("its definition has changed since it was approved:");
    for line in difference.lines() {
        let mut rest = line.chars();
        let sign = rest.next().unwrap_or(' ');
        let rest = legible(rest.as_str(), TextKind::Source);
        sheet.row(&format!("  {sign}{rest}"));
    }
}

/// Keys that mean nothing. Their values are not shown, so that none is taken for what counts.
fn ignored(sheet: &mut Sheet, server: &PlannedServer) {
    let is_known = |key: &str| entry_keys().any(|known| known == key);
    let keys: Vec<&String> = server
        .definition
        .keys()
        .filter(|key| !is_known(key))
        .collect();
    if keys.is_empty() {
        return;
    }
    let named: Vec<String> = keys
        .iter()
        .take(IGNORED)
        .map(|key| format!("`{}`", name(key)))
        .collect();
    let mut row = format!("no key of Toolway, so ignored: {}", named.join(", "));
    if keys.len() > IGNORED {
        row.push_str(" and ");
        row.push_str(&counted(keys.len() - IGNORED, "other"));
    }
    sheet.row(&row);
}

/// A key with its value; of an object with texts each member.
fn member(sheet: &mut Sheet, key: &str, value: &Value) {
    match value {
        Value::String(text) => sheet.row(&format!("  {key}: {}", code(text))),
        Value::Object(members) if members.values().all(Value::is_string) => {
            for (inner, value) in members {
                let value = value.as_str().unwrap_or_default();
                sheet.row(&format!("  {key} {}: {}", member_name(inner), code(value)));
            }
        }
        other => sheet.row(&format!("  {key}: {}", code(&other.to_string()))),
    }
}

fn reads(
    sheet: &mut Sheet,
    server: &PlannedServer,
    covered: &[String],
    environment: &Environment,
    references: &[SecretReference],
) {
    let (harmless, others): (Vec<&str>, Vec<&str>) = (server.variables.iter())
        .map(String::as_str)
        .partition(|name| is_harmless(name));
    if !harmless.is_empty() {
        let names = harmless.join(", ");
        sheet.row(&format!("  it reads these variables: {names}"));
    }
    let (covered, left): (Vec<&str>, Vec<&str>) = others
        .into_iter()
        .partition(|name| covered.iter().any(|covered| covered == name));
    // Variables with a value must not hide among those without.
    let (set, unset): (Vec<&str>, Vec<&str>) = covered
        .into_iter()
        .partition(|name| environment.var(name).is_some());
    for (names, what) in [
        (set, "your yes lets it read of your environment"),
        (unset, "your yes lets it read, once they are set"),
        (
            left,
            "`--yes` alone does not let it read of your environment",
        ),
    ] {
        if !names.is_empty() {
            sheet.row(&format!("  {what}: {}", names.join(", ")));
        }
    }
    for reference in references {
        let target = code(&reference.target);
        match reference.kind {
            ReferenceKind::Keychain => {
                sheet.row(&format!("  it reads a secret of yours: {target}"));
            }
            ReferenceKind::File => sheet.row(&format!("  it reads a file of yours: {target}")),
            ReferenceKind::Command => {}
        }
    }
    if server.scope == Scope::Project && !references.is_empty() {
        sheet.row("  no repository's entry gets a secret: as it stands, it will not start");
    }
}

/// The repository's files that the yes covers, and what it cannot cover.
fn covers(sheet: &mut Sheet, server: &PlannedServer, files: &RepositoryFiles) {
    let beside = match &server.origin {
        Origin::File { path, .. } => path.parent(),
        _ => None,
    };
    for file in files.bound.keys() {
        let below = beside.and_then(|folder| Path::new(file).strip_prefix(folder).ok());
        let shown = below.map_or_else(|| file.into(), Path::to_string_lossy);
        sheet.row(&format!(
            "  your yes covers {} as it is now; a change asks again",
            code(&shown)
        ));
    }
    for UnboundCode { what, why } in &files.unbound {
        sheet.row(&format!(
            "  what it runs cannot be bound: `{}` {why}",
            code(what)
        ));
    }
}

fn address(sheet: &mut Sheet, server: &PlannedServer) {
    let Some(Value::String(url)) = server.definition.get("url") else {
        return;
    };
    sheet.row("This sends what you and your agents ask of it to");
    let parsed = Url::parse(url).ok();
    let disguise = parsed.as_ref().map(disguise).unwrap_or_default();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or_default();
    sheet.row(&format!("  {}", code(url)));
    if !disguise.is_empty() {
        sheet.row(&format!("  host: {host}{disguise}"));
    }
}

/// What stands above a program beside the main one.
fn also(sheet: &mut Sheet, purpose: &str) {
    sheet.row(&format!(
        "This also runs on this machine, with your rights, for {purpose}:"
    ));
}

/// The words that the program is started with, as they are written.
fn argv(server: &PlannedServer) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let command = server.definition.get("command").into_iter();
    let args = server.definition.get("args").and_then(Value::as_array);
    command
        .chain(args.into_iter().flatten())
        .map(word)
        .collect()
}
