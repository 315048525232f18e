//! Servers: what a plan says of them, and what connecting found out.

use toolway_config::{Hook, Plan, PlannedServer, ServerVerdict, without_secrets};
use toolway_rows::{
    DiagnosisRow, EntryRow, ExplainedEntry, ExportedServer, HookRow, LoginRow, NameTable,
    PromptMeaning, ServerPlace, ServerRow, ShadowRow, ToolMeaning, Word,
};
use toolway_types::{ConnectionState, TransportKind};

use crate::catalog::Catalog;
use crate::snapshot::ServerSnapshot;

/// What a server wants that refuses a login for want of scopes which it does not name.
pub const UNNAMED_SCOPES: &str = "wants a login that reaches further, and did not say which scopes";

/// A row as the plan knows it, before anything connects.
pub fn planned_row(server: &PlannedServer) -> ServerRow {
    let (state, reason, error) = match &server.verdict {
        ServerVerdict::Admitted(_) => ("pending", None, None),
        ServerVerdict::Invalid { reason } => ("failed", None, Some(reason.clone())),
        ServerVerdict::Shadowed { by, reason } => {
            let reason = format!("shadowed {reason}: {} ({} scope)", by.origin, by.scope);
            ("disabled", Some(reason), None)
        }
        other => {
            let reason = other.reason().unwrap_or_else(|| other.word());
            ("disabled", Some(reason.to_owned()), None)
        }
    };
    ServerRow {
        name: server.name.clone(),
        scope: server.scope,
        source: (&server.origin).into(),
        transport: transport(server),
        state: state.into(),
        resting: false,
        reason,
        error,
        era: None,
        protocol_version: None,
        server_info: None,
        tools: None,
        resources: None,
        prompts: None,
        account: server.account().map(str::to_owned),
        login: None,
        stderr: Vec::new(),
        seconds_ago: None,
        logins: Vec::new(),
    }
}

/// Adds what connecting found out.
pub fn settle_row(row: &mut ServerRow, server: &ServerSnapshot) {
    row.state = server.state.as_str().into();
    row.resting = server.is_resting();
    match &server.state {
        ConnectionState::Connected(facts) => {
            row.era = Some(facts.era);
            row.protocol_version = Some(facts.protocol_version.clone());
            row.server_info = Some(facts.server_info.clone());
        }
        ConnectionState::Failed(failure) => {
            row.error = Some(failure.message.clone());
            let lines = failure.stderr.iter();
            row.stderr = lines.map(|line| line.line().to_string()).collect();
        }
        ConnectionState::NeedsAuth { unnamed_scopes, .. } => {
            row.error = Some(match &row.account {
                _ if *unnamed_scopes => UNNAMED_SCOPES.to_owned(),
                Some(account) => format!("wants a login as `{account}` first"),
                None => "wants a login first".to_owned(),
            });
        }
        ConnectionState::Disabled { reason } => row.reason = Some(reason.clone()),
        ConnectionState::Pending { .. } => {}
    }
    if let Some(counts) = &server.counts {
        row.tools = Some(counts.tools);
        row.resources = Some(counts.resources);
        row.prompts = Some(counts.prompts);
    }
}

/// Servers with their definitions; each row fits the plan's entry in the same place.
pub fn exported_servers(plan: &Plan, rows: Vec<ServerRow>) -> Vec<ExportedServer> {
    let exported = rows.into_iter().zip(&plan.servers);
    let exported = exported.map(|(row, planned)| ExportedServer {
        row,
        normalized_name: planned.name.normalized(),
        verdict: planned.verdict.word().into(),
        definition: without_secrets(&planned.definition),
    });
    exported.collect()
}

/// What the names of a plan and of a catalogue stand for.
pub fn name_table(plan: &Plan, catalog: &Catalog) -> NameTable {
    let mut names = NameTable::default();
    for planned in &plan.servers {
        let spelled = planned.name.normalized();
        let originals = names.servers.entry(spelled).or_default();
        // Entries that others shadow have the same name.
        if !originals.iter().any(|name| name == planned.name.as_str()) {
            originals.push(planned.name.to_string());
        }
    }
    for tool in catalog.tools() {
        let meant = ToolMeaning {
            server: tool.key.server.clone(),
            tool: tool.key.tool.clone(),
        };
        names.tools.insert(tool.name.clone(), meant);
    }
    for prompt in catalog.prompts() {
        let meant = PromptMeaning {
            server: prompt.key.server.clone(),
            prompt: prompt.key.tool.clone(),
        };
        names.prompts.insert(prompt.name.clone(), meant);
    }
    names
}

/// The entry that counts for a name, and the login that its server uses.
pub fn entry_row(server: &PlannedServer, login: Option<LoginRow>) -> EntryRow {
    EntryRow {
        name: server.name.clone(),
        scope: server.scope,
        source: (&server.origin).into(),
        transport: transport(server),
        verdict: server.verdict.word().into(),
        reason: server.verdict.reason().map(str::to_owned),
        definition: without_secrets(&server.definition),
        account: server.account().map(str::to_owned),
        login,
    }
}

/// One entry, and what became of it.
pub fn explained_row(entry: &PlannedServer) -> ExplainedEntry {
    let shadows = entry.shadows.iter().map(|shadow| ShadowRow {
        scope: shadow.scope,
        source: (&shadow.origin).into(),
    });
    let changed = match &entry.verdict {
        ServerVerdict::PendingApproval { changed, .. } => changed.clone(),
        _ => None,
    };
    ExplainedEntry {
        scope: entry.scope,
        source: (&entry.origin).into(),
        transport: transport(entry),
        verdict: entry.verdict.word().into(),
        reason: entry.verdict.reason().map(str::to_owned),
        changed,
        shadows: shadows.collect(),
        variables: entry.variables.clone(),
        instructions_dropped: entry.curation.instructions_dropped.clone(),
        definition: without_secrets(&entry.definition),
        diagnoses: entry.diagnoses.iter().map(DiagnosisRow::from).collect(),
    }
}

/// A server by its name, and where its entry stands.
pub fn place_row(server: &PlannedServer) -> ServerPlace {
    ServerPlace {
        name: server.name.clone(),
        source: (&server.origin).into(),
    }
}

/// A hook.
pub fn hook_row(hook: &Hook) -> HookRow {
    HookRow {
        event: hook.event.as_str().into(),
        matcher: hook.matcher().to_owned(),
        runs: hook.title().clone(),
        timeout_seconds: hook.timeout.as_secs_f64(),
        source: (&hook.origin).into(),
    }
}

fn transport(server: &PlannedServer) -> Option<Word> {
    let transport = server.transport.map(TransportKind::as_str);
    transport.map(Word::Borrowed)
}
