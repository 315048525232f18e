//! The supervisor, step by step: what a report that comes too late may change.

use std::collections::BTreeMap;

use serde_json::json;
use toolway_config::{Environment, Flags, Plan, RunLimits};
use toolway_transport::OpenOptions;
use toolway_types::{Failure, FailureKind};

use super::*;
use crate::connection::{ConnectLimits, EraMemory, RetryFirst, clock::SystemClock};
use crate::session::ClientInfo;

/// A plan with these servers, each of which is a program that does not exist.
fn plan(home: &std::path::Path, servers: &[&str]) -> Plan {
    let servers: serde_json::Map<_, _> = servers
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "command": "/no/such/program" })))
        .collect();
    let vars = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let environment = Environment::new(vars, home.to_owned()).with_system_dir(home.join("system"));
    let config = json!({ "mcpServers": servers }).to_string();
    toolway_config::plan(
        &environment,
        &Flags {
            mcp_config: vec![config],
            ..Flags::default()
        },
    )
}

fn settings(plan: Plan) -> Arc<CallSettings> {
    Arc::new(CallSettings {
        permissions: plan.permissions,
        hooks: plan.hooks,
        limits: plan.limits,
    })
}

/// A supervisor that only does what the test has it do.
fn standing_still(plan: Plan) -> (Supervisor, SupervisorHandle) {
    let context = Arc::new(ConnectionContext {
        caller: Arc::default(),
        client: Arc::new(ClientInfo::new("tests", "0")),
        hooks: Arc::default(),
        open: OpenOptions::default(),
        references: None,
        credentials: Arc::default(),
        eras: EraMemory::default(),
        limits: ConnectLimits::new(&RunLimits::default()),
        all_lists: toolway_types::BytePool::new(1 << 20),
        retry_first: RetryFirst::Never,
        journal: None,
        recorder: None,
        panics: Arc::default(),
        auth: None,
        connectors: None,
        remembered: None,
        rest_after: None,
    });
    let members = roster(&plan, &[], None);
    let (events, _) = broadcast::channel(64);
    let stop = CancellationToken::new();
    let clock = Arc::new(SystemClock);
    let pool = ConnectionPool::default();
    Supervisor::start(members, settings(plan), context, pool, events, clock, stop)
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

#[tokio::test]
async fn a_report_of_a_server_that_was_removed_does_not_count_for_its_successor() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    let (mut supervisor, _handle) = standing_still(plan(home, &["a", "b"]));
    let member = &supervisor.members[&name("a")];
    let (epoch, claim) = (member.epoch, member.claim.as_ref().expect("a claim"));
    let connection = claim.number();
    let failure = Failure {
        kind: FailureKind::Spawn,
        message: "of old".to_owned(),
        stderr: Vec::new(),
    };
    let late = ConnectionReport {
        server: name("a"),
        connection,
        epoch,
        news: ConnectionNews::Down(ConnectionState::Failed(failure)),
    };
    for servers in [&["b"][..], &["a", "b"]] {
        let plan = plan(home, servers);
        let members = roster(&plan, &[], None);
        supervisor.apply(members, settings(plan), PlanEffects::default());
    }
    supervisor.take(late, &mut Vec::new());
    let state = &supervisor.members[&name("a")].shown.state;
    assert_eq!(*state, ConnectionState::Pending { attempt: 1 });
}
