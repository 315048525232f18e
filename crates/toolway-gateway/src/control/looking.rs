//! What a program may look at: entries, logs, calls, rules, hooks, and what servers offer beside tools.
//!
//! Owns the choice of rows; what they say is `toolway::rows`.

use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use toolway::audit::{self, AuditLine};
use toolway::config::permission::names_of_server;
use toolway::config::{Hook, HookEvent, Plan, PlannedServer, ServerVerdict};
use toolway::journal::{self, JournalName};
use toolway::rows::{explained_row, hook_row, rule_listing};
use toolway::setup::off_runtime;
use toolway::toolway_rows::{
    Explanation, HookRow, LogRow, PromptRow, ResourceRow, SourceRow, TemplateRow,
};
use toolway::types::{Origin, Scope, ServerName, ServerShare, ToolKey};
use toolway::{Attached, CallOptions, Consent, PassedMethod, RawJson, tokens};

use super::error::ControlError;
use super::messages::{
    AuditLines, AuditParams, ContextRow, ExplainParams, HookListing, LogLines, LogsParams,
    PermissionListing, PermissionRow, PromptParams, PromptsListed, ReadParams, ResourcesListed,
    ServerContext,
};
use super::program::Program;
use crate::conversation::Answer;

/// The most lines where nothing is said.
const LINES: usize = 200;

fn unread() -> ControlError {
    ControlError::internal("it could not be read")
}

fn server_name(name: &str) -> Result<ServerName, ControlError> {
    ServerName::new(name).map_err(|error| ControlError::invalid(error.to_string()))
}

/// What became of the entries of a name; those that the program brought come first.
pub(super) async fn explain(
    program: &Program,
    params: &ExplainParams,
) -> Result<Explanation, ControlError> {
    let plan = program.core.setup.fresh_plan().await.ok_or_else(unread)?;
    let brought = program.brought();
    let is_meant = |server: &&PlannedServer| server.name.as_str() == params.server;
    let own = brought.plan().servers.iter().filter(is_meant);
    let entries = own.chain(plan.servers.iter().filter(is_meant));
    let entries: Vec<_> = entries.map(explained_row).collect();
    if entries.is_empty() {
        return Err(ControlError::unknown_server(&params.server));
    }
    let name = server_name(&params.server)?;
    let hooks = params.tool.as_ref().map(|tool| {
        let key = ToolKey::new(name, tool);
        hooks_around(&plan, &key)
            .into_iter()
            .map(hook_row)
            .collect()
    });
    Ok(Explanation {
        name: params.server.clone(),
        entries,
        hooks,
    })
}

/// The hooks that a call of a tool sets off.
fn hooks_around<'a>(plan: &'a Plan, key: &ToolKey) -> Vec<&'a Hook> {
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

/// What a server logged.
pub(super) async fn logs(program: &Program, params: &LogsParams) -> Result<LogLines, ControlError> {
    let name = server_name(&params.server)?;
    let setup = &program.core.setup;
    let plan = setup.fresh_plan().await.ok_or_else(unread)?;
    let brought = program.brought();
    let planned = brought.plan().winner(name.as_str());
    let planned = planned.or_else(|| plan.winner(name.as_str()));
    let project = || ServerShare::Project(setup.environment().project_root().to_owned());
    let share = planned.map(|planned| match &planned.verdict {
        ServerVerdict::Admitted(spec) => spec.share.clone(),
        _ if matches!(planned.scope, Scope::Project | Scope::Local) => project(),
        _ => ServerShare::User,
    });
    let journal = JournalName::of(&name, &share.unwrap_or_default());
    let (directory, count) = (setup.files().logs(), params.lines.unwrap_or(LINES));
    let read = off_runtime("logs", move || {
        journal::read_last(&directory, &journal, count, |_| true)
    });
    let read = read.await.ok_or_else(unread)?;
    let found = read.map_err(|error| ControlError::internal(error.to_string()))?;
    let lines = found.map(|(lines, _)| lines).unwrap_or_default();
    Ok(LogLines {
        lines: lines.iter().map(LogRow::from).collect(),
    })
}

/// What was called, by whomever.
pub(super) async fn calls(
    program: &Program,
    params: AuditParams,
) -> Result<AuditLines, ControlError> {
    let (directory, count) = (
        program.core.setup.files().audit(),
        params.limit.unwrap_or(LINES),
    );
    let wants = move |line: &AuditLine| {
        let (time, server) = match line {
            AuditLine::Call(record) => (&record.time, record.server.as_deref()),
            AuditLine::Lost { time, .. } => (time, None),
        };
        // Times are spelled so that their order is the order of letters.
        params.since.as_ref().is_none_or(|since| time >= since)
            && (params.server.is_none() || server == params.server.as_deref())
    };
    let read = off_runtime("audit", move || audit::read_last(&directory, count, wants));
    let read = read.await.ok_or_else(unread)?;
    let found = read.map_err(|error| ControlError::internal(error.to_string()))?;
    let lines = found.map(|(lines, _)| lines).unwrap_or_default();
    Ok(AuditLines { calls: lines })
}

/// The rules that hold for the program.
pub(super) async fn permissions(program: &Program) -> Result<PermissionListing, ControlError> {
    let plan = program.core.setup.fresh_plan().await.ok_or_else(unread)?;
    let brought = program.brought();
    let all = [&plan.permissions, &brought.plan().permissions];
    let rows = all.into_iter().flat_map(|it| rule_listing(it, &[]).rules);
    let rules = rows.map(|row| PermissionRow {
        rule: row.rule,
        behavior: row.list,
        scope: row.scope,
        source: row.source,
    });
    Ok(PermissionListing {
        rules: rules.collect(),
    })
}

/// The hooks that run: those of files, then the program's own.
pub(super) async fn hooks(program: &Program) -> Result<HookListing, ControlError> {
    let plan = program.core.setup.fresh_plan().await.ok_or_else(unread)?;
    let own = program.said_hooks.iter().map(|hook| HookRow {
        event: hook.event.clone().into(),
        matcher: hook.matcher.clone(),
        runs: hook.callback.clone(),
        timeout_seconds: hook.timeout.unwrap_or(super::hooks::USUAL_SECONDS),
        source: SourceRow::from(&Origin::Program),
    });
    Ok(HookListing {
        hooks: plan.hooks.iter().map(hook_row).chain(own).collect(),
    })
}

/// An estimate of what servers cost a model's context.
pub(super) fn context(program: &Program) -> ContextRow {
    let snapshot = program.view.snapshot();
    let cost = |server: &toolway::ServerSnapshot| {
        let tools = snapshot.catalog.tools();
        let tools = tools.filter(|tool| tool.key.server == server.name);
        let (mut count, mut tool_tokens) = (0, 0);
        for tool in tools {
            count += 1;
            let words = [&*tool.name, &*tool.description, tool.input_schema.get()];
            tool_tokens += words.into_iter().map(tokens::estimate).sum::<usize>();
        }
        let facts = server.facts().and_then(|facts| facts.instructions.as_ref());
        ServerContext {
            server: server.name.to_string(),
            tools: count,
            tool_tokens,
            instruction_tokens: facts.map_or(0, |words| tokens::estimate(words.as_received())),
        }
    };
    let servers: Vec<_> = snapshot.servers.iter().map(|server| cost(server)).collect();
    let total = servers
        .iter()
        .map(|it| it.tool_tokens + it.instruction_tokens);
    ContextRow {
        total: total.sum(),
        servers,
    }
}

/// What can be read.
pub(super) async fn resources(
    attached: &Attached,
    only: Option<&str>,
) -> Result<ResourcesListed, ControlError> {
    await_servers(attached, only).await?;
    let snapshot = attached.view().snapshot();
    let is_meant = |server: &ServerName| only.is_none_or(|only| only == server.as_str());
    let all = snapshot.catalog.resources();
    let resources = all.filter(|it| is_meant(&it.server)).map(ResourceRow::from);
    let all = snapshot.catalog.templates();
    let templates = all.filter(|it| is_meant(&it.server)).map(TemplateRow::from);
    Ok(ResourcesListed {
        resources: resources.collect(),
        templates: templates.collect(),
    })
}

/// Which prompts there are.
pub(super) async fn prompts(
    attached: &Attached,
    only: Option<&str>,
) -> Result<PromptsListed, ControlError> {
    await_servers(attached, only).await?;
    let snapshot = attached.view().snapshot();
    let is_meant = |server: &ServerName| only.is_none_or(|only| only == server.as_str());
    let all = snapshot.catalog.prompts();
    let prompts = all
        .filter(|it| is_meant(&it.key.server))
        .map(PromptRow::from);
    Ok(PromptsListed {
        prompts: prompts.collect(),
    })
}

async fn await_servers(attached: &Attached, only: Option<&str>) -> Result<(), ControlError> {
    let view = attached.view();
    match only {
        Some(name) if view.snapshot().server(name).is_none() => {
            Err(ControlError::unknown_server(name))
        }
        Some(name) => {
            view.ready(name).await;
            Ok(())
        }
        None => {
            view.settled().await;
            Ok(())
        }
    }
}

/// Reads a resource.
pub(super) async fn read(attached: &Attached, params: &ReadParams) -> Result<Answer, ControlError> {
    let asked = json!({ "uri": params.uri });
    pass_on(attached, &params.server, PassedMethod::ReadResource, &asked).await
}

/// Fills a prompt in.
pub(super) async fn prompt(
    attached: &Attached,
    params: &PromptParams,
) -> Result<Answer, ControlError> {
    let mut asked = json!({ "name": params.prompt });
    if let Some(arguments) = &params.arguments {
        asked["arguments"] = arguments.clone().into();
    }
    pass_on(attached, &params.server, PassedMethod::GetPrompt, &asked).await
}

async fn pass_on(
    attached: &Attached,
    server: &str,
    method: PassedMethod,
    params: &impl Serialize,
) -> Result<Answer, ControlError> {
    await_servers(attached, Some(server)).await?;
    let server = server_name(server)?;
    let params = to_raw_value(params).map_err(|it| ControlError::internal(it.to_string()))?;
    // A program that reads does not act: it is asked only where a rule or a hook wants that.
    let options = CallOptions::new(Consent::Delegated);
    let params = RawJson::from(params);
    let answered = attached.pass_on(&server, method, &params, &options).await?;
    Ok(Answer::result(answered.raw))
}
