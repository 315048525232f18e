//! `toolway doctor`: everything that is wrong, or will be, without connecting anywhere.
//!
//! Owns what is said of the configuration; what is said of the machine is [`checks`], of the shield
//! [`shielding`], and what a report of a bug holds [`bundle`].

mod bundle;
mod checks;
mod shielding;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use toolway::rows::hook_row;
use toolway_config::{Hook, Plan, PlannedServer, ServerVerdict};
use toolway_rows::{Checkup, DiagnosisRow, VerdictCounts};
use toolway_types::{Diagnosis, Severity, TransportSpec, text};

use self::checks::{Check, Health};
use self::shielding::Shielding;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, render_diagnosis};

/// Check the configuration and say how to mend it
///
/// Reads every file, and looks at what logins depend on. Starts nothing and, without
/// `--network`, connects to nothing. Exits with 3 when something is wrong.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also ask a configured server what time it is
    #[arg(long)]
    network: bool,

    /// Write a report for an issue, as a text file: version, system, settings as `explain` shows
    /// them, states, findings, logs; no secrets, no arguments and results of tools
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = bundle::FILE, conflicts_with = "json")]
    bundle: Option<PathBuf>,

    /// Print the report in place of writing it
    #[arg(long, requires = "bundle")]
    dry_run: bool,
}

/// Where the words behind labels begin.
const LABEL: usize = 14;

/// What can become of a server's entry, in the order in which it is told.
const VERDICTS: [&str; 7] = [
    "admitted",
    "pending-approval",
    "refused",
    "rejected",
    "disabled",
    "shadowed",
    "invalid",
];

/// Runs the command.
pub(crate) fn run(context: &Context, args: &DoctorArgs) -> Outcome {
    let plan = context.plan();
    if let Some(file) = &args.bundle {
        return bundle::run(context, plan, file, args.dry_run);
    }
    let mut found: Vec<Diagnosis> = plan.all_diagnoses().cloned().collect();
    found.extend(missing_programs(plan));
    found.extend(unpinned(plan));
    found.extend(toolway::rule_remarks(plan, &plan.hooks));
    found.extend(plan.permissions.idle_auto());
    found.extend(plan.weak_rules());
    found.extend(toolway_config::agent_findings(
        context.environment(),
        context.flags(),
        plan,
    ));
    let checks = checks::all(context, plan, args.network);
    let exit = if found.iter().any(|d| d.severity == Severity::Error)
        || checks.iter().any(|check| check.health == Health::Fail)
    {
        Exit::Configuration
    } else {
        Exit::Success
    };
    let shield = Shielding::of(context, plan);
    let counts = VERDICTS.map(|verdict| {
        let is_such = |server: &&PlannedServer| server.verdict.word() == verdict;
        (verdict, plan.servers.iter().filter(is_such).count())
    });
    if args.json {
        let [
            admitted,
            pending_approval,
            refused,
            rejected,
            disabled,
            shadowed,
            invalid,
        ] = counts.map(|(_, count)| count);
        context.output.json(&Checkup {
            config_home: context.environment().config_home().display().to_string(),
            project_root: context.environment().project_root().display().to_string(),
            shield: shield.row(),
            servers: VerdictCounts {
                admitted,
                pending_approval,
                refused,
                rejected,
                disabled,
                shadowed,
                invalid,
            },
            hooks: plan.hooks.iter().map(hook_row).collect(),
            checks: checks.iter().map(Check::row).collect(),
            diagnoses: found.iter().map(DiagnosisRow::from).collect(),
        })?;
        return Ok(exit);
    }
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(verdict, count)| format!("{count} {verdict}"));
    let counts = match counts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "none configured".to_owned(),
        counts => counts,
    };
    let mut text = format!(
        "config home   {}\nproject root  {}\nservers       {counts}\n",
        context.environment().config_home().display(),
        context.environment().project_root().display()
    );
    text.push_str(&shield.lines());
    for check in &checks {
        text.push_str(&check.line());
    }
    for (index, hook) in plan.hooks.iter().enumerate() {
        let label = if index == 0 { "hooks" } else { "" };
        let _ = writeln!(text, "{label:<LABEL$}{}", hook_line(hook));
    }
    for diagnosis in &found {
        text.push('\n');
        text.push_str(&render_diagnosis(diagnosis));
    }
    if found.is_empty() && checks.iter().all(|check| check.health == Health::Ok) {
        text.push_str("\nno problems found\n");
    }
    context.output.paragraphs(&text, Some(LABEL))?;
    Ok(exit)
}

/// A hook, for people.
pub(crate) fn hook_line(hook: &Hook) -> String {
    let matcher = match hook.matcher() {
        "" => "everything".to_owned(),
        matcher => format!("`{}`", text::spelled_out(matcher)),
    };
    let event = hook.event.as_str();
    let title = text::spelled_out(&hook.title());
    format!("{event} on {matcher}: `{title}` at {}", hook.origin)
}

/// Commands that no directory of `PATH` holds: said now, before a connection fails on it.
fn missing_programs(plan: &Plan) -> Vec<Diagnosis> {
    let mut missing = Vec::new();
    for server in &plan.servers {
        let ServerVerdict::Admitted(spec) = &server.verdict else {
            continue;
        };
        let TransportSpec::Stdio(stdio) = &spec.transport else {
            continue;
        };
        let path = stdio.variable("PATH").map_or("", |path| path.expose());
        if !is_program(stdio.cwd.path(), &stdio.command, path) {
            missing.push(
                // As written: what its variables stand for may be a secret.
                Diagnosis::error(format!("the program `{}` is not found", written(server)))
                    .of(&server.name)
                    .at(server.origin.clone())
                    .hint("install it, or write its full path as `command`"),
            );
        }
    }
    missing
}

/// Servers that may be another program at every start. What is switched off, or does not count,
/// starts nothing.
fn unpinned(plan: &Plan) -> Vec<Diagnosis> {
    let servers = plan.servers.iter().filter(|server| {
        matches!(
            server.verdict,
            ServerVerdict::Admitted(_) | ServerVerdict::PendingApproval { .. }
        )
    });
    servers
        .filter_map(|server| {
            let said = toolway_config::unpinned(&server.name, &server.definition)?;
            Some(said.at(server.origin.clone()))
        })
        .collect()
}

fn written(server: &PlannedServer) -> &str {
    let command = server.definition.get("command").and_then(Value::as_str);
    command.unwrap_or_default()
}

/// Whether there is such a program for a process that starts in `base`.
pub(crate) fn is_program(base: &Path, command: &str, path: &str) -> bool {
    if command.contains('/') {
        return base.join(command).is_file();
    }
    std::env::split_paths(path).any(|directory| base.join(directory).join(command).is_file())
}
