//! `toolway explain`: why a server counts, or does not.

use std::fmt::Write as _;

use clap::Args;
use toolway::rows::{explained_row, hook_row};
use toolway_config::permission::names_of_server;
use toolway_config::{Hook, HookEvent, Plan, PlannedServer, ServerVerdict, without_secrets};
use toolway_rows::Explanation;
use toolway_types::ToolKey;
use toolway_types::name::as_word;
use toolway_types::text::spelled_out;

use crate::commands::doctor::hook_line;
use crate::connect::memory::say_if_absent;
use crate::context::{Context, unknown_server};
use crate::exit::Exit;
use crate::report::{Outcome, render_diagnosis};

/// Explain where a server comes from and what became of it
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Its name
    name: String,

    /// A tool of it, by its own name: also say which hooks run around a call of it
    tool: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ExplainArgs) -> Outcome {
    let plan = context.plan();
    let entries: Vec<&PlannedServer> = plan
        .servers
        .iter()
        .filter(|server| server.name.as_str() == args.name)
        .collect();
    if entries.is_empty() {
        context.say_unreadable(plan);
        return Err(unknown_server(plan, &args.name));
    }
    let tool = args.tool.as_deref();
    let key = tool.map(|tool| ToolKey::new(entries[0].name.clone(), tool));
    if let Some(key) = &key {
        say_if_absent(context, plan, key);
    }
    let hooks = key.as_ref().map(|key| hooks(plan, key));
    if args.json {
        return context.json(&Explanation {
            name: args.name.clone(),
            entries: entries.into_iter().map(explained_row).collect(),
            hooks: hooks.map(|hooks| hooks.into_iter().map(hook_row).collect()),
        });
    }
    let mut text = String::new();
    for entry in &entries {
        describe(&mut text, entry);
    }
    if let (Some(tool), Some(hooks)) = (tool, hooks) {
        let tool = spelled_out(tool);
        if hooks.is_empty() {
            let _ = writeln!(text, "no hook runs around a call of `{tool}`");
        } else {
            let _ = writeln!(text, "around a call of `{tool}` run:");
        }
        for hook in hooks {
            let _ = writeln!(text, "  {}", hook_line(hook));
        }
    }
    let waits =
        |entry: &&&PlannedServer| matches!(entry.verdict, ServerVerdict::PendingApproval { .. });
    let first = entries.iter().find(waits).unwrap_or(&entries[0]);
    if let Some(next) = next_step(first) {
        let _ = writeln!(text, "next: {next}");
    }
    context.output.paragraphs(&text, None)?;
    Ok(Exit::Success)
}

/// The hooks that a call of a tool sets off, those around the questions that its server may ask
/// meanwhile included.
fn hooks<'a>(plan: &'a Plan, key: &ToolKey) -> Vec<&'a Hook> {
    let of_event = |event: HookEvent| match event {
        HookEvent::PreToolUse | HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
            plan.hooks.matching_tool(event, key)
        }
        HookEvent::Elicitation | HookEvent::ElicitationResult => plan
            .hooks
            .matching_any(event, &names_of_server(&key.server)),
    };
    HookEvent::ALL.into_iter().flat_map(of_event).collect()
}

fn describe(text: &mut String, entry: &PlannedServer) {
    let _ = writeln!(
        text,
        "{} ({} scope) at {}",
        entry.name, entry.scope, entry.origin
    );
    let _ = match entry.verdict.reason() {
        Some(reason) => writeln!(text, "  {}: {reason}", entry.verdict.word()),
        None => writeln!(text, "  {}", entry.verdict.word()),
    };
    if let ServerVerdict::PendingApproval {
        changed: Some(diff),
        ..
    } = &entry.verdict
    {
        for line in diff.lines() {
            let _ = writeln!(text, "    {}", spelled_out(line));
        }
    }
    for shadow in &entry.shadows {
        let _ = writeln!(text, "  shadows {} ({} scope)", shadow.origin, shadow.scope);
    }
    if !entry.variables.is_empty() {
        let _ = writeln!(text, "  reads the variables {}", entry.variables.join(", "));
    }
    if let Some(reason) = &entry.curation.instructions_dropped {
        let _ = writeln!(text, "  its instructions are dropped: {reason}");
    }
    let shown =
        serde_json::to_string_pretty(&without_secrets(&entry.definition)).unwrap_or_default();
    for line in shown.lines() {
        let _ = writeln!(text, "    {}", spelled_out(line));
    }
    for diagnosis in &entry.diagnoses {
        for line in render_diagnosis(diagnosis).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
}

/// The exact command that gets the winner further.
fn next_step(winner: &PlannedServer) -> Option<String> {
    let name = as_word(winner.name.as_str());
    match &winner.verdict {
        ServerVerdict::Admitted(_) => Some(format!("see its tools with `toolway tools {name}`")),
        ServerVerdict::PendingApproval { .. } => {
            Some(format!("look at it with `toolway approve {name}`"))
        }
        ServerVerdict::Rejected { .. } => {
            Some(format!("to change your mind: `toolway approve {name}`"))
        }
        ServerVerdict::Disabled { .. } => {
            Some(format!("switch it on with `toolway enable {name}`"))
        }
        ServerVerdict::Invalid { .. } => Some(format!("mend the entry at {}", winner.origin)),
        ServerVerdict::Refused { .. } | ServerVerdict::Shadowed { .. } => None,
    }
}
