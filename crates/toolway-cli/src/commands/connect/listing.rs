//! The clients that are found, and whether they are connected.

use toolway_config::connect::{ClientReading, ClientScope, ClientTarget};
use toolway_config::import::ImportClient;
use toolway_rows::{ClientListing, ClientRow};

use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

pub(super) fn run(context: &Context, json: bool) -> Outcome {
    let clients = rows(context);
    if json {
        return context.json(&ClientListing { clients });
    }
    if clients.is_empty() {
        let known: Vec<&str> = ImportClient::ALL.iter().map(ImportClient::id).collect();
        context.say("no client was found");
        context.hint(format!(
            "name one all the same with `toolway connect <client>`: {}",
            known.join(", ")
        ));
        return Ok(Exit::Success);
    }
    let cells = clients.iter().map(|row| {
        let connected = match (&row.problem, row.connected.as_slice()) {
            (Some(_), _) => "cannot be read".to_owned(),
            (None, []) => "no".to_owned(),
            (None, names) => format!("as {}", names.join(", ")),
        };
        let scope = row.scope.to_string();
        let servers = row.servers.to_string();
        vec![
            row.client.to_string(),
            scope,
            connected,
            servers,
            row.path.clone(),
        ]
    });
    let head = ["CLIENT", "SCOPE", "CONNECTED", "OTHER SERVERS", "FILE"];
    context.output.table(&head, cells)?;
    for problem in clients.iter().filter_map(|row| row.problem.as_ref()) {
        context.warn(problem);
    }
    if clients.iter().all(|row| row.connected.is_empty()) {
        context.hint("connect one with `toolway connect <client>`");
    }
    Ok(Exit::Success)
}

fn rows(context: &Context) -> Vec<ClientRow> {
    let environment = context.environment();
    let scopes = [ClientScope::User, ClientScope::Project];
    let targets = ImportClient::ALL.into_iter().flat_map(|client| {
        let targets = scopes.map(|scope| ClientTarget::find(environment, client, scope).ok());
        targets.into_iter().flatten()
    });
    let mut rows: Vec<ClientRow> = Vec::new();
    for target in targets.filter(|target| target.is_found(environment)) {
        let path = target.path.display().to_string();
        // In the home directory a project's file can be the user's own.
        if !rows.iter().any(|row| row.path == path) {
            rows.push(row(context, &target, path));
        }
    }
    rows
}

fn row(context: &Context, target: &ClientTarget, path: String) -> ClientRow {
    let records = context.setup.files().clients();
    let reading = ClientReading::of(context.environment(), target, &records);
    let scope = match target.scope {
        ClientScope::User => "user",
        ClientScope::Project => "project",
    };
    let row = ClientRow {
        client: target.client.id().into(),
        scope: scope.into(),
        path,
        connected: Vec::new(),
        servers: 0,
        problem: None,
    };
    match reading {
        Ok(reading) => ClientRow {
            servers: reading.file.servers.len(),
            connected: reading.gateways,
            ..row
        },
        Err(error) => ClientRow {
            problem: Some(Report::from(error).message),
            ..row
        },
    }
}
