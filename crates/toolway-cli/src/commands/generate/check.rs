//! `toolway generate --check`: whether files still say what servers offer.
//!
//! Owns what is said of each difference. A file of another version of Toolway is held to the tools it
//! names, not to its bytes.

use toolway_bindings::{ModuleStamp, ServerTools, VERSION};

use super::target::TargetFile;
use super::{GenerateArgs, old};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// How many differences are named.
const NAMED: usize = 20;

/// Compares, and says what differs.
pub(super) fn run(
    context: &Context,
    args: &GenerateArgs,
    files: &[TargetFile],
    offered: &[ServerTools],
) -> Outcome {
    let mut told: Vec<String> = Vec::new();
    for file in files {
        told.extend(differences(context, file)?);
    }
    if told.is_empty() {
        let tools: usize = offered.iter().map(|server| server.tools.len()).sum();
        context.say(format!("up to date: {tools} tools"));
        return Ok(Exit::Success);
    }
    let count = told.len();
    if count > NAMED {
        told.truncate(NAMED - 1);
        told.push(format!("and {} more", count - told.len()));
    }
    let again = args.again();
    Err(
        Report::configuration("modules are not what their servers offer now")
            .details(told)
            .hint(format!("make them anew with `{again}`")),
    )
}

fn differences(context: &Context, file: &TargetFile) -> Result<Vec<String>, Report> {
    let shown = file.path.display();
    let Some(text) = old(&file.path)? else {
        return Ok(vec![format!("`{shown}` is missing")]);
    };
    if text == file.text {
        return Ok(Vec::new());
    }
    let Some(server) = &file.server else {
        if ModuleStamp::is_ours(&text) && !text.contains(VERSION) {
            return Ok(Vec::new());
        }
        let what = "names other modules, or was changed by hand";
        return Ok(vec![format!("`{shown}` {what}")]);
    };
    let (Some(before), Some(now)) = (ModuleStamp::read(&text), ModuleStamp::read(&file.text))
    else {
        return Ok(vec![format!(
            "`{shown}` was not made by `toolway generate`"
        )]);
    };
    if before.server != *server {
        return Ok(vec![format!(
            "`{shown}` is the module of server `{}`",
            toolway_types::text::spelled_out(&before.server)
        )]);
    }
    let changes = before.changes_to(&now);
    if changes.is_empty() {
        if before.version == now.version {
            return Ok(vec![format!("`{shown}` was changed by hand")]);
        }
        context.say(format!(
            "`{shown}` was made by Toolway {}, for the same tools",
            before.version
        ));
        return Ok(Vec::new());
    }
    let changes = changes
        .iter()
        .map(|change| format!("`{shown}`: {}", change.words()));
    Ok(changes.collect())
}
