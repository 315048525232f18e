//! What connecting does to a client's file, and what taking it back gives, whatever stands in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolway_testkit::marked;

use super::record::ConnectRecord;
use super::*;
use crate::edit::structured_text::TextFormat;
use crate::import::ImportClient;

struct Place {
    _folder: tempfile::TempDir,
    environment: Environment,
    records: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let vars = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        let environment = Environment::new(vars, home);
        let records = environment.state_home().join("clients.json");
        Self {
            _folder: folder,
            environment,
            records,
        }
    }

    fn target(&self, client: ImportClient) -> ClientTarget {
        ClientTarget::find(&self.environment, client, ClientScope::User).unwrap()
    }

    fn reading(&self, target: &ClientTarget) -> ClientReading {
        ClientReading::of(&self.environment, target, &self.records).unwrap()
    }

    /// Connects with every server moved.
    fn connect(&self, target: &ClientTarget, name: &str, profile: Option<&str>) -> Edited<()> {
        let reading = self.reading(target);
        let reach = GatewayReach::Program(GatewayProgram {
            command: "toolway".to_owned(),
            profile: profile.map(str::to_owned),
            home: None,
        });
        let entry = GatewayEntry::new(target, name, &reach).unwrap();
        let moved: Vec<MovedServer> = (reading.file.servers.iter())
            .map(|server| reading.moved(server).unwrap())
            .collect();
        connect(&self.environment, &self.records, target, &entry, &moved).unwrap()
    }

    fn undo(&self, target: &ClientTarget) -> Option<Edited<UndoneConnect>> {
        undo(&self.environment, &self.records, target, None).unwrap()
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c\"/*,{}é ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let members = prop::collection::vec(("[a-e]{1,2}", inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A file of Cursor's, on one line or on many, with comments or without.
fn any_file() -> impl Strategy<Value = String> {
    let server = prop_oneof![
        Just(json!({"command": "c", "args": ["x"]})),
        Just(json!({"url": "https://a.example/mcp"})),
        any_json(),
    ];
    let servers = prop::collection::vec(("[f-j]{1,2}", server), 0..4);
    let others = prop::collection::vec(("[a-e]{1,2}", any_json()), 0..3);
    (servers, others, any::<[bool; 3]>()).prop_map(
        |(servers, others, [wide, comment, no_table])| {
            let mut whole: Map<String, Value> = others.into_iter().collect();
            if !no_table {
                let servers: Map<String, Value> = servers.into_iter().collect();
                whole.insert("mcpServers".to_owned(), Value::Object(servers));
            }
            let text = if wide {
                serde_json::to_string(&whole).unwrap()
            } else {
                serde_json::to_string_pretty(&whole).unwrap() + "\n"
            };
            if comment {
                format!("// mine\n{text} /* end */")
            } else {
                text
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_done_is_taken_back_byte_for_byte(text in any_file(), twice in any::<bool>()) {
        let place = Place::new();
        let target = place.target(ImportClient::Cursor);
        write(&target.path, &text);
        place.connect(&target, "toolway", None);
        if twice {
            place.connect(&target, "toolway", Some("work"));
            place.connect(&target, "second", None);
        }
        let written = fs::read_to_string(&target.path).unwrap();
        prop_assert!(written != text);
        let left = place.reading(&target);
        prop_assert!(left.file.servers.is_empty());
        prop_assert_eq!(left.gateways.len(), if twice { 2 } else { 1 });
        let undone = place.undo(&target).unwrap();
        prop_assert!(!undone.value.was_changed);
        prop_assert_eq!(fs::read_to_string(&target.path).unwrap(), text);
        prop_assert!(place.undo(&target).is_none());
    }

    #[test]
    fn a_file_that_was_changed_since_gets_its_servers_back(text in any_file()) {
        let place = Place::new();
        let target = place.target(ImportClient::Cursor);
        write(&target.path, &text);
        let value = |text: &str| {
            let document = StructuredText::parse(TextFormat::Json, &target.path, text).unwrap();
            document.value()
        };
        place.connect(&target, "toolway", None);
        let written = fs::read_to_string(&target.path).unwrap();
        fs::write(&target.path, format!("{written}\n// later")).unwrap();
        let undone = place.undo(&target).unwrap();
        prop_assert!(undone.value.was_changed);
        let now = fs::read_to_string(&target.path).unwrap();
        prop_assert!(now.ends_with("// later"));
        let mut before = value(&text);
        // The table stays, where there was none before.
        let table = before.as_object_mut().unwrap().entry("mcpServers").or_insert_with(|| json!({}));
        prop_assert!(table.is_object());
        prop_assert_eq!(value(&now), before);
    }

    #[test]
    fn the_part_that_differs_leads_back(old in "[ab\nüß]{0,12}", new in "[ab\nüß]{0,12}") {
        let place = Place::new();
        let target = place.target(ImportClient::Cursor);
        let entry = GatewayEntry::new(&target, "x", &address(None)).unwrap();
        let changed = change::ChangedText {
            after: new.clone(),
            place: Vec::new(),
            line: None,
            replaced: None,
            appended: Vec::new(),
            moved: Vec::new(),
        };
        let record = ConnectRecord::of(&target, &target.path, Some(&old), &entry, &changed);
        let restored = record.restored(&new);
        prop_assert!(matches!(restored, Some(NewText::Written(text)) if text == old));
        let later = new + "x";
        prop_assert!(record.restored(&later).is_none());
    }
}

fn address(token_file: Option<PathBuf>) -> GatewayReach {
    GatewayReach::Address(GatewayAddress {
        url: url::Url::parse("http://127.0.0.1:7/mcp").unwrap(),
        token_file,
    })
}

#[test]
fn sec_47_what_is_remembered_is_its_owners_alone() {
    let place = Place::new();
    let target = place.target(ImportClient::Cursor);
    write(
        &target.path,
        r#"{"mcpServers": {"a": {"command": "a", "env": {"K": "v"}}}}"#,
    );
    place.connect(&target, "toolway", None);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.records), 0o600);
    assert_eq!(mode(place.records.parent().unwrap()), 0o700);
}

#[test]
fn a_change_that_fails_is_not_remembered() {
    let place = Place::new();
    let target = place.target(ImportClient::Cursor);
    let folder = target.path.parent().unwrap();
    write(&target.path, "{}");
    // Writing needs a new file beside the old one; the backup's name is taken by a directory.
    fs::create_dir_all(folder.join("mcp.json.toolway.bak/full")).unwrap();
    let entry = GatewayEntry::new(&target, "toolway", &address(None)).unwrap();
    let done = connect(&place.environment, &place.records, &target, &entry, &[]);
    assert!(matches!(
        done,
        Err(ClientEntryError::Edit(EditError::Io { .. }))
    ));
    assert_eq!(fs::read_to_string(&target.path).unwrap(), "{}");
    assert!(
        record::of_file(&place.records, &target.path)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_server_that_changed_before_it_was_moved_stays() {
    let place = Place::new();
    let target = place.target(ImportClient::Cursor);
    write(&target.path, r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let reading = place.reading(&target);
    let moved = vec![reading.moved(&reading.file.servers[0]).unwrap()];
    let changed = r#"{"mcpServers": {"a": {"command": "b"}}}"#;
    write(&target.path, changed);
    let entry = GatewayEntry::new(&target, "toolway", &address(None)).unwrap();
    let done = connect(&place.environment, &place.records, &target, &entry, &moved);
    assert!(matches!(
        done,
        Err(ClientEntryError::Edit(EditError::Changed { .. }))
    ));
    assert_eq!(fs::read_to_string(&target.path).unwrap(), changed);
    assert!(!format!("{moved:?}").contains("command"));
}

#[test]
fn sec_47_a_difference_hides_secrets_wherever_they_stand() {
    let before = r#"{
  "apiKey": "abcdef",
  "mcpServers": {
    "a": {
      "command": "a", "args": ["--token=s3cr3t", "-v"],
      "env": {"SHORT": "12", "NAME": "${NAME}", "LONG": "line\"quoted"},
      "headers": {"Authorization": "Bearer ${env:T}", "X": "plain-value"}
    }
  }, // TOKEN
  "n": 12
}"#;
    // What it holds is a secret by itself, too.
    let token = marked!("ghp_abcdef", "more");
    let before = before.replace("TOKEN", token);
    let shown = shown::difference(TextFormat::Json, &before, "{}");
    for secret in [
        "abcdef",
        "s3cr3t",
        "quoted",
        "plain-value",
        marked::MARK,
        "\"12\"",
    ] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    for kept in ["${NAME}", "Bearer ${env:T}", "\"n\": 12", "SHORT", "-v"] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
    let toml = "[mcp_servers.a]\nurl = 'u'\nhttp_headers = { X = 'plain-value' }\nbearer_token_env_var = 'T'\n";
    let shown = shown::difference(TextFormat::Toml, toml, "");
    assert!(
        !shown.contains("plain-value") && shown.contains("'T'"),
        "{shown}"
    );
    let yaml =
        "extensions:\n  a:\n    envs:\n      K: |\n        first line\n        second line\n";
    let shown = shown::difference(TextFormat::Yaml, yaml, "a: 1\n");
    assert!(
        !shown.contains("first line") && !shown.contains("second"),
        "{shown}"
    );
}

#[test]
fn a_record_counts_for_its_own_file_and_entry() {
    let place = Place::new();
    let (cursor, zed) = (
        place.target(ImportClient::Cursor),
        place.target(ImportClient::Zed),
    );
    let entry = GatewayEntry::new(&cursor, "toolway", &address(None)).unwrap();
    connect(&place.environment, &place.records, &cursor, &entry, &[]).unwrap();
    // An address is known by the record alone.
    assert_eq!(place.reading(&cursor).gateways, ["toolway"]);
    write(
        &zed.path,
        r#"{"context_servers": {"toolway": {"url": "http://127.0.0.1:7/mcp"}}}"#,
    );
    assert!(place.reading(&zed).gateways.is_empty());
    assert!(place.reading(&zed).is_taken("toolway"));
    let last = recorded_target(&place.records, ImportClient::Cursor, ClientScope::User);
    assert_eq!(
        last.unwrap().unwrap().path,
        cursor.path.canonicalize().unwrap()
    );
}

#[test]
fn a_change_that_was_cut_off_behind_its_record_stands_in_nobodys_way() {
    let place = Place::new();
    let target = place.target(ImportClient::Cursor);
    let text = r#"{"mcpServers": {"mine": {"command": "mine"}}}"#;
    write(&target.path, text);
    place.connect(&target, "toolway", Some("one"));
    let first = fs::read_to_string(&target.path).unwrap();
    place.connect(&target, "toolway", Some("two"));
    // As if the second run had ended before it replaced the file; the client writes on, or not.
    for (written, was_changed) in [(first.clone(), false), (format!("{first}// more\n"), true)] {
        let records = fs::read_to_string(&place.records).unwrap();
        write(&target.path, &written);
        let undone = place.undo(&target).unwrap();
        assert_eq!(undone.value.entries, ["toolway"]);
        assert_eq!(undone.value.was_changed, was_changed);
        let left = fs::read_to_string(&target.path).unwrap();
        assert!(
            left.contains("\"mine\"") && !left.contains("toolway"),
            "{left}"
        );
        if !was_changed {
            assert_eq!(left, text);
        }
        assert!(place.undo(&target).is_none());
        fs::write(&place.records, records).unwrap();
    }
}

#[test]
fn a_backup_takes_the_place_of_no_file_but_our_own() {
    let place = Place::new();
    let target = place.target(ImportClient::Goose);
    write(&target.path, "extensions: {}\n");
    let theirs = target.path.with_file_name("config.yaml.bak");
    write(&theirs, "theirs: 1\n");
    let edited = place.connect(&target, "toolway", None);
    let ours = edited.backup.unwrap();
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs: 1\n");
    assert_eq!(ours.file_name().unwrap(), "config.yaml.toolway.bak");
    assert_eq!(fs::read_to_string(ours).unwrap(), "extensions: {}\n");
    place.undo(&target).unwrap();
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs: 1\n");
}

#[test]
fn many_servers_in_one_file_are_read_in_one_go() {
    let place = Place::new();
    for (client, head, entry) in [
        (
            ImportClient::Codex,
            "",
            "[mcp_servers.NAME]\ncommand = \"c\"\n",
        ),
        (
            ImportClient::Goose,
            "extensions:\n",
            "  NAME:\n    type: stdio\n    cmd: c\n",
        ),
    ] {
        let target = place.target(client);
        let entries = (0..2_000).map(|number| entry.replace("NAME", &format!("s{number}")));
        let text = entries.fold(head.to_owned(), |text, entry| text + &entry);
        write(&target.path, &text);
        let reading = place.reading(&target);
        assert_eq!(reading.file.servers.len(), 2_000);
        let entry = GatewayEntry::new(&target, "toolway", &address(None)).unwrap();
        connect(&place.environment, &place.records, &target, &entry, &[]).unwrap();
        place.undo(&target).unwrap();
        assert_eq!(fs::read_to_string(&target.path).unwrap(), text);
    }
}

#[test]
fn what_is_remembered_stays_small_enough_to_be_read_again() {
    let place = Place::new();
    let target = place.target(ImportClient::Gemini);
    // Both ends of the file change, so that all between them is remembered.
    let filler = "x".repeat(7 << 20);
    let text =
        format!(r#"{{"mcp": {{"allowed": ["a"]}}, "filler": "{filler}", "mcpServers": {{}}}}"#);
    write(&target.path, &text);
    for name in ["one", "two"] {
        place.connect(&target, name, None);
    }
    let before = fs::read(&target.path).unwrap();
    let reach = address(None);
    let entry = GatewayEntry::new(&target, "three", &reach).unwrap();
    let done = connect(&place.environment, &place.records, &target, &entry, &[]);
    let Err(error) = done else {
        panic!("a third record fits");
    };
    assert!(error.to_string().contains("clients.json"), "{error}");
    assert_eq!(fs::read(&target.path).unwrap(), before);
    place.undo(&target).unwrap();
    assert_eq!(fs::read_to_string(&target.path).unwrap(), text);
}

#[test]
fn a_token_is_read_from_a_file_alone() {
    let place = Place::new();
    let target = place.target(ImportClient::Zed);
    let folder = target.path.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let pipe = folder.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let long = folder.join("long");
    fs::write(&long, "t".repeat(100_000)).unwrap();
    for file in [&pipe, &long, &PathBuf::from("/dev/zero")] {
        let entry = GatewayEntry::new(&target, "toolway", &address(Some(file.clone())));
        let Err(error) = entry else {
            panic!("{} was read", file.display());
        };
        let said = error.to_string();
        assert!(said.contains(&file.display().to_string()), "{said}");
    }
}
