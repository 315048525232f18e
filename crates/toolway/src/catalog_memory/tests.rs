//! What is kept: whose it is, how much of it there is, and what never stands in it.

use std::collections::BTreeMap;

use serde_json::json;
use toolway_testkit::{ScannedFolder, marked};
use toolway_types::{
    ProtocolMode, Secret, ServerName, ShieldMode, StdioSpec, TransportSpec, WorkingDirectory,
};

use super::*;
use crate::connection::server_route::route_through;
use crate::connection::session_slot::SessionSlot;
use crate::snapshot::SnapshotRoutes;

fn process(env: &[(&str, &str)]) -> StdioSpec {
    let secret = |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new(*value));
    StdioSpec {
        program: None,
        command: "server".to_owned(),
        args: Vec::new(),
        inherited: Arc::default(),
        env: env.iter().map(secret).collect::<BTreeMap<_, _>>(),
        cwd: WorkingDirectory::default(),
        shield: ShieldMode::Off,
        umask: None,
    }
}

fn source(process: StdioSpec) -> ServerSource {
    ServerSource::Spec(Box::new(ServerSpec {
        name: ServerName::new("server").expect("a name"),
        transport: TransportSpec::Stdio(process),
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::Auto,
        share: toolway_types::ServerShare::User,
        roots: Vec::new(),
        references: Vec::new(),
    }))
}

fn tools(count: usize, size: usize) -> Vec<view::Tool> {
    let tool = |number: usize| {
        json!({
            "name": format!("tool_{number}"),
            "description": "x".repeat(size),
            "inputSchema": { "type": "object" },
        })
    };
    let all = json!({ "tools": (0..count).map(tool).collect::<Vec<_>>() }).to_string();
    let raw = RawValue::from_string(all).expect("JSON");
    view::tools(&raw).expect("tools").items
}

/// A snapshot with this server connected.
fn snapshot(source: &ServerSource, tools: Vec<view::Tool>) -> HostSnapshot {
    let mut lists = ServerLists {
        label: MemoryLabel::of(source, Arc::new(Redactor::new(&source.secrets()))),
        ..ServerLists::default()
    };
    lists.tools.items = Arc::new(tools);
    let name = ServerName::new("server").expect("a name");
    let connected = ConnectedServer {
        usage: Arc::default(),
        interests: Arc::default(),
        name,
        route: route_through(&SessionSlot::new(), source, None, None, None, None),
        definition: "definition".into(),
        lists,
    };
    HostSnapshot {
        routes: SnapshotRoutes {
            connected: vec![Arc::new(connected)],
            ..SnapshotRoutes::default()
        },
        ..HostSnapshot::default()
    }
}

fn memory() -> (ScannedFolder, CatalogMemory) {
    let folder = ScannedFolder::new();
    let memory = CatalogMemory::at(folder.path().join("state/catalogue"));
    (folder, memory)
}

#[test]
fn what_is_kept_is_recalled_for_the_same_definition_only() {
    let (_folder, memory) = memory();
    let one = source(process(&[("ACCOUNT", "one")]));
    assert!(memory.recall(&one).is_none());
    memory.keep(&snapshot(&one, tools(3, 10)));
    let kept = memory.recall(&one).expect("kept");
    assert_eq!(kept.lists.tools.items.len(), 3);
    let all = KnownLists {
        tools: true,
        resources: true,
        prompts: true,
    };
    assert_eq!(kept.known, all);
    assert!(
        memory
            .recall(&source(process(&[("ACCOUNT", "two")])))
            .is_none()
    );
    assert!(memory.recall(&source(process(&[]))).is_none());
}

#[test]
fn a_list_that_is_too_large_is_not_known_and_the_others_are() {
    let (_folder, memory) = memory();
    let server = source(process(&[]));
    memory.keep(&snapshot(&server, tools(600, 2_000)));
    let kept = memory.recall(&server).expect("kept");
    assert!(!kept.known.tools && kept.known.prompts);
    assert!(kept.lists.tools.items.is_empty());
}

#[test]
fn the_oldest_go_when_there_is_no_more_room() {
    let (_folder, memory) = memory();
    let server = |number: usize| source(process(&[("NUMBER", &number.to_string())]));
    for number in 0..24 {
        memory.keep(&snapshot(&server(number), tools(450, 2_000)));
        let key = CatalogKey::of(&server(number)).expect("a key");
        let path = memory.folder.join(key.file());
        let then = SystemTime::now() - Duration::from_secs(60 * (100 - number as u64));
        let file = open_own(CWD, &path).expect("it was kept");
        file.set_modified(then).expect("it is ours");
    }
    let files = std::fs::read_dir(&memory.folder)
        .expect("a folder")
        .flatten();
    let sizes = files.map(|entry| entry.metadata().expect("a file").len());
    assert!(sizes.sum::<u64>() <= MAX_ALL + MAX_SERVER as u64);
    assert!(memory.recall(&server(0)).is_none(), "the oldest is gone");
    assert!(memory.recall(&server(23)).is_some(), "the newest stays");
}

#[test]
fn a_broken_file_is_as_none() {
    let (_folder, memory) = memory();
    let server = source(process(&[]));
    memory.keep(&snapshot(&server, tools(3, 10)));
    let path = memory
        .folder
        .join(CatalogKey::of(&server).expect("a key").file());
    for broken in ["", "{", "[]", "{\"tools\":3}", "\u{0}"] {
        std::fs::write(&path, broken).expect("it is ours");
        let kept = memory.recall(&server);
        assert!(kept.is_none_or(|kept| !kept.known.tools), "{broken:?}");
    }
    memory.keep(&snapshot(&server, tools(3, 10)));
    assert!(memory.recall(&server).expect("kept anew").known.tools);
}

#[test]
fn a_secret_that_a_server_repeats_is_not_kept() {
    let (folder, memory) = memory();
    let server = source(process(&[("API_KEY", marked!("swordfish-"))]));
    let mut offered = tools(1, 10);
    let told = offered[0].raw.get().replace("xxxxx", marked!("swordfish-"));
    offered[0].raw = RawValue::from_string(told).expect("JSON");
    memory.keep(&snapshot(&server, offered));
    let kept = memory.recall(&server).expect("kept");
    assert_eq!(
        kept.lists.tools.items[0].description.as_deref(),
        Some("[redacted][redacted]")
    );
    folder.assert_no_secrets();
}

#[test]
fn what_is_forgotten_is_gone() {
    let (_folder, memory) = memory();
    let server = source(process(&[]));
    memory.keep(&snapshot(&server, tools(3, 10)));
    let ServerSource::Spec(spec) = &server else {
        return;
    };
    forget_catalog(&memory.folder, spec);
    assert!(memory.recall(&server).is_none());
}
