//! The memory of eras: what it keeps, what it survives, and what it never holds.

use std::fs;
use std::time::Duration;

use toolway_testkit::marked::MARK;
use toolway_testkit::{ScannedFolder, marked};
use toolway_types::{RemoteKind, RemoteSpec, Secret, ServerName, StdioSpec};
use toolway_wire::RpcError;

use super::*;
use crate::error::RequestError;

fn key(text: &str) -> EraKey {
    EraKey(text.to_owned())
}

fn file() -> (ScannedFolder, PathBuf) {
    let folder = ScannedFolder::new();
    let path = folder.path().join("state/eras.json");
    (folder, path)
}

fn refused() -> ConnectError {
    ConnectError::request("initialize", RequestError::Rpc(RpcError::new(-32601, "no")))
}

fn process(command: &str) -> ServerSpec {
    ServerSpec {
        name: ServerName::new("server").expect("a name"),
        transport: TransportSpec::Stdio(StdioSpec {
            program: None,
            command: command.to_owned(),
            args: vec![marked!("--token=").to_owned()],
            inherited: Arc::default(),
            env: BTreeMap::from([("API_KEY".to_owned(), Secret::new(marked!("swordfish-")))]),
            cwd: toolway_types::WorkingDirectory::default(),
            shield: toolway_types::ShieldMode::Off,
            umask: None,
        }),
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::Auto,
        share: toolway_types::ServerShare::User,
        roots: Vec::new(),
        references: Vec::new(),
    }
}

#[tokio::test]
async fn what_one_host_learns_the_next_one_recalls() {
    let (_folder, path) = file();
    let memory = EraMemory::at(path.clone());
    assert_eq!(memory.recall(Some(&key("a"))), None);
    memory.learn(Some(&key("a")), Ok(Era::Modern)).await;
    memory.learn(Some(&key("b")), Ok(Era::Legacy)).await;
    assert_eq!(memory.recall(Some(&key("a"))), Some(Era::Modern));

    let next = EraMemory::at(path.clone());
    assert_eq!(next.recall(Some(&key("a"))), Some(Era::Modern));
    assert_eq!(next.recall(Some(&key("b"))), Some(Era::Legacy));
    next.learn(Some(&key("b")), Ok(Era::Modern)).await;
    next.learn(Some(&key("a")), Err(&refused())).await;

    let last = EraMemory::at(path);
    assert_eq!(last.recall(Some(&key("a"))), None, "forgotten");
    assert_eq!(last.recall(Some(&key("b"))), Some(Era::Modern), "corrected");
}

#[tokio::test]
async fn a_failure_that_says_nothing_about_the_era_forgets_nothing() {
    let (_folder, path) = file();
    let memory = EraMemory::at(path);
    memory.learn(Some(&key("a")), Ok(Era::Modern)).await;
    let status = |status| {
        RequestError::Send(toolway_transport::SendFailure::Status {
            status,
            www_authenticate: None,
            body: bytes::Bytes::new(),
            had_session: false,
            retry_after: None,
        })
    };
    for error in [
        ConnectError::NeedsAuth { challenge: None },
        ConnectError::Stopped,
        ConnectError::request("server/discover", status(401)),
        ConnectError::request("server/discover", status(403)),
        ConnectError::request("server/discover", status(503)),
    ] {
        memory.learn(Some(&key("a")), Err(&error)).await;
        assert_eq!(memory.recall(Some(&key("a"))), Some(Era::Modern), "{error}");
    }
}

#[tokio::test]
async fn a_broken_file_is_as_none_and_is_mended() {
    for broken in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        br#"{"eras":[1,2]}"#,
        br#"{"eras":{"a":{"era":"future","when":1},"b":7,"c":{"era":"modern"}}}"#,
    ] {
        let (_folder, path) = file();
        state_file::private_folder(path.parent().expect("a folder")).expect("made");
        fs::write(&path, broken).expect("written");
        let memory = EraMemory::at(path.clone());
        for name in ["a", "b", "c"] {
            assert_eq!(memory.recall(Some(&key(name))), None);
        }
        memory.learn(Some(&key("a")), Ok(Era::Legacy)).await;
        assert_eq!(
            EraMemory::at(path).recall(Some(&key("a"))),
            Some(Era::Legacy)
        );
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_only_costs_the_memory() {
    let (_folder, path) = file();
    fs::write(path.parent().expect("a folder"), "not a folder").expect("written");
    let memory = EraMemory::at(path);
    memory.learn(Some(&key("a")), Ok(Era::Modern)).await;
    assert_eq!(
        memory.recall(Some(&key("a"))),
        Some(Era::Modern),
        "in this run"
    );
}

#[tokio::test]
async fn several_hosts_that_write_at_once_lose_nothing() {
    let (_folder, path) = file();
    // Each memory has read the file before the others wrote it, as separate processes would.
    let hosts: Vec<EraMemory> = (0..20).map(|_| EraMemory::at(path.clone())).collect();
    for host in &hosts {
        assert_eq!(host.recall(Some(&key("first"))), None);
    }
    let writes = hosts.iter().enumerate().map(|(number, host)| async move {
        let key = key(&format!("k{number}"));
        host.learn(Some(&key), Ok(Era::Modern)).await;
    });
    futures_util::future::join_all(writes).await;
    let after = EraMemory::at(path);
    for number in 0..20 {
        let key = key(&format!("k{number}"));
        assert_eq!(after.recall(Some(&key)), Some(Era::Modern), "{number}");
    }
}

#[test]
fn old_and_impossible_records_are_not_believed_and_the_newest_are_kept() {
    let now = 1_800_000_000;
    let record = |era, when| EraRecord { era, when };
    assert!(!record(Era::Legacy, now - 7 * DAY).is_old(now));
    assert!(record(Era::Legacy, now - 7 * DAY - 1).is_old(now));
    assert!(!record(Era::Modern, now - 30 * DAY).is_old(now));
    assert!(record(Era::Modern, now - 31 * DAY).is_old(now));
    assert!(
        record(Era::Modern, now + 2 * DAY).is_old(now),
        "a clock was wrong"
    );

    let mut records: EraRecords = (0..1200)
        .map(|age| (key(&format!("{age:04}")), record(Era::Modern, now - age)))
        .collect();
    prune(&mut records, now);
    assert_eq!(records.len(), MOST);
    assert!(records.contains_key(&key("0000")) && !records.contains_key(&key("1000")));
    assert!((render(&records).len() as u64) < MAX_FILE);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_private_and_holds_no_value_of_the_definition() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = file();
    let memory = EraMemory::at(path.clone());
    let source = ServerSource::Spec(Box::new(process("/opt/secret-server")));
    memory
        .learn(EraKey::of(&source).as_ref(), Ok(Era::Legacy))
        .await;
    let text = fs::read_to_string(&path).expect("a file");
    for value in ["secret-server", MARK, "API_KEY"] {
        assert!(!text.contains(value), "{text}");
    }
    for (path, mode) in [
        (path.as_path(), 0o600),
        (path.parent().expect("a folder"), 0o700),
    ] {
        let found = fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(found & 0o777, mode, "{}", path.display());
    }
}

#[test]
fn a_definition_is_known_by_what_makes_it_another_server() {
    let digest = |spec: &ServerSpec| EraKey(digest(spec));
    let base = process("a");
    let TransportSpec::Stdio(stdio) = &base.transport else {
        panic!("a process")
    };
    let with = |change: fn(&mut StdioSpec)| {
        let mut stdio = stdio.clone();
        change(&mut stdio);
        ServerSpec {
            transport: TransportSpec::Stdio(stdio),
            ..base.clone()
        }
    };
    for other in [
        with(|spec| spec.command = "b".to_owned()),
        with(|spec| spec.args.push("x".to_owned())),
        with(|spec| spec.cwd = std::path::PathBuf::from("/tmp").into()),
        with(|spec| drop(spec.env.insert("MORE".to_owned(), Secret::new("")))),
    ] {
        assert_ne!(digest(&base), digest(&other), "{other:?}");
    }
    let rotated = with(|spec| drop(spec.env.insert("API_KEY".to_owned(), Secret::new("new"))));
    assert_eq!(
        digest(&base),
        digest(&rotated),
        "a new value is no new server"
    );

    let remote = |url: &str| RemoteSpec {
        rules: std::sync::Arc::default(),
        url: url.parse().expect("a URL"),
        headers: Vec::new(),
        headers_helper: None,
        oauth: None,
    };
    let at = |transport| {
        digest(&ServerSpec {
            transport,
            ..base.clone()
        })
    };
    let http = at(TransportSpec::Remote(
        RemoteKind::Http,
        remote("https://a.test/mcp"),
    ));
    assert_ne!(
        http,
        at(TransportSpec::Remote(
            RemoteKind::Http,
            remote("https://b.test/mcp")
        ))
    );
    assert_ne!(
        http,
        at(TransportSpec::Remote(
            RemoteKind::Ws,
            remote("https://a.test/mcp")
        ))
    );
}

#[test]
fn a_pinned_era_and_an_object_have_no_place_in_the_memory() {
    let mut pinned = process("a");
    pinned.protocol = ProtocolMode::Legacy;
    assert_eq!(EraKey::of(&ServerSource::Spec(Box::new(pinned))), None);
    let server: crate::InProcessServer = Arc::new(|_| Box::pin(std::future::ready(())));
    let object = ServerSource::Object {
        server,
        timeout: None,
        protocol: ProtocolMode::Auto,
    };
    assert_eq!(EraKey::of(&object), None);
}

#[tokio::test]
async fn a_definition_can_be_forgotten_and_the_others_stay() {
    let (_folder, path) = file();
    forget_era(&path, &process("one")).expect("nothing to forget is no error");
    let memory = EraMemory::at(path.clone());
    for command in ["one", "two"] {
        let key = EraKey(digest(&process(command)));
        memory.learn(Some(&key), Ok(Era::Legacy)).await;
    }
    forget_era(&path, &process("one")).expect("the file can be written");
    let next = EraMemory::at(path);
    let recalled = |command| next.recall(Some(&EraKey(digest(&process(command)))));
    assert_eq!(recalled("one"), None);
    assert_eq!(recalled("two"), Some(Era::Legacy));
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    path.with_added_extension(ending)
}

/// Runs what must not block on a planted file, where blocking is noticed.
fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let result = result.recv_timeout(Duration::from_secs(20));
    result.expect("it waits for a pipe that nobody writes")
}

#[test]
fn sec_30_a_pipe_in_place_of_the_file_holds_nobody_up() {
    let (_folder, path) = file();
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    for name in [path.clone(), beside(&path, "lock")] {
        rustix::fs::mknodat(rustix::fs::CWD, &name, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
    }
    let memory = EraMemory::at(path.clone());
    let recalled = promptly(move || memory.recall(Some(&key("a"))));
    assert_eq!(recalled, None);
    let forgotten = promptly(move || forget_era(&path, &process("true")));
    assert!(forgotten.is_err());
}

#[tokio::test]
async fn sec_13_a_link_in_place_of_a_file_leads_nowhere() {
    let (folder, path) = file();
    let state = path.parent().expect("a folder");
    fs::create_dir_all(state).expect("made");
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, beside(&path, "lock")).expect("a link");
    let memory = EraMemory::at(path.clone());
    memory.learn(Some(&key("a")), Ok(Era::Modern)).await;
    assert!(!elsewhere.exists(), "made through a link");
    assert!(!path.exists());

    // Nor is a record believed that lies elsewhere, or that other users may write.
    fs::remove_file(beside(&path, "lock")).expect("removed");
    memory.learn(Some(&key("b")), Ok(Era::Modern)).await;
    fs::rename(&path, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
    assert_eq!(EraMemory::at(path).recall(Some(&key("b"))), None);
}

#[tokio::test]
async fn sec_13_a_file_that_others_may_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, path) = file();
    let memory = EraMemory::at(path.clone());
    memory.learn(Some(&key("a")), Ok(Era::Modern)).await;
    let recalled = || EraMemory::at(path.clone()).recall(Some(&key("a")));
    assert_eq!(recalled(), Some(Era::Modern));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("opened");
    assert_eq!(recalled(), None);
}
