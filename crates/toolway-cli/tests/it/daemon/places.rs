//! Where the daemon's socket lies: what others left there, and what is refused.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;

use insta::assert_snapshot;
use toolway_testkit::TempHome;

use super::{attaching, home_with, reporting, run, start, status, until};
use std::io::{Read as _, Write as _};

fn folder(home: &TempHome) -> PathBuf {
    home.config_home().join("state/daemon")
}

/// The socket of the daemon that runs.
pub(super) fn socket(home: &TempHome) -> PathBuf {
    let mut files = std::fs::read_dir(folder(home)).unwrap().flatten();
    let socket = files.find(|file| file.path().extension().is_some_and(|it| it == "sock"));
    socket.unwrap().path()
}

#[test]
fn rel_34_a_socket_that_a_dead_daemon_left_is_in_nobody_s_way() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let name = socket(&home);
    run(&home, &["daemon", "stop"]).expect_code(0);
    // Bound once, and nobody listens.
    drop(UnixListener::bind(&name).unwrap());
    run(&home, &["call", "s", "report"]).expect_code(0);
    start(&home);
    assert_eq!(socket(&home), name);
}

#[test]
fn a_file_in_the_socket_s_place_is_replaced_and_never_followed() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let name = socket(&home);
    run(&home, &["daemon", "stop"]).expect_code(0);
    let precious = home.write("precious.txt", "mine");
    symlink(&precious, &name).unwrap();
    run(&home, &["call", "s", "report"]).expect_code(0);
    start(&home);
    assert_eq!(home.read("precious.txt"), "mine");
}

#[test]
fn a_folder_that_others_can_write_to_is_closed_to_them() {
    let home = TempHome::new();
    std::fs::create_dir_all(folder(&home)).unwrap();
    std::fs::set_permissions(folder(&home), Permissions::from_mode(0o777)).unwrap();
    start(&home);
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder(&home)), 0o700);
    assert_eq!(mode(socket(&home)), 0o600);
}

#[test]
fn a_link_in_the_folder_s_place_is_named() {
    let (home, _canary) = home_with(reporting());
    std::fs::create_dir_all(home.config_home().join("state")).unwrap();
    let elsewhere = home.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    symlink(elsewhere, folder(&home)).unwrap();
    assert_snapshot!(run(&home, &["daemon", "start"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: the folder `[HOME]/.config/toolway/state/daemon` of the owner's sockets cannot be used: a link lies in its place
    hint: look at what lies there and move it away: `ls -ld [HOME]/.config/toolway/state/daemon`
    ");
    // Commands do without.
    run(&home, &["call", "s", "report"]).expect_code(0);
}

#[test]
fn garbage_on_the_socket_harms_nobody() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let long = vec![b'x'; 100_000];
    let lines: [&[u8]; 6] = [
        b"\n",
        b"not json\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toolway/run\",\"params\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
        b"[]\n",
        &long,
    ];
    let heard = lines.map(|line| {
        let mut stream = UnixStream::connect(socket(&home)).unwrap();
        stream.write_all(line).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        // One that is cut off may be hung up on before all of it was written.
        let _ = stream.read_to_string(&mut said);
        said.trim_end().to_owned()
    });
    let heard = heard.join("\n");
    assert_snapshot!(heard, @r#"
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"that is no message"}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"that is no message"}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"that is no command that the daemon runs","data":{"reason":"not-here"}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the daemon has no method `tools/list`"}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"that is no message"}}
    "#);
    run(&home, &["call", "s", "report"]).expect_code(0);
    assert_eq!(status(&home)["runs"], serde_json::json!([]));
}

/// A daemon in its last moment: it takes a connection, and is gone.
#[test]
fn a_daemon_that_ends_while_it_is_asked_is_none() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let name = socket(&home);
    run(&home, &["daemon", "stop"]).expect_code(0);
    for words in [["status", "--json"].as_slice(), &["stop"]] {
        let listener = UnixListener::bind(&name).unwrap();
        let gone = name.clone();
        let ending = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            std::fs::remove_file(&gone).unwrap();
            drop((stream, listener));
        });
        let words = [&["daemon"], words].concat();
        let output = run(&home, &words).expect_code(0);
        ending.join().unwrap();
        assert!(!output.stderr.contains("error"), "{}", output.stderr);
        assert_eq!(
            output.stdout.trim(),
            if words[1] == "stop" { "" } else { "null" }
        );
    }
}

#[test]
fn a_service_manager_can_hand_the_socket_over() {
    let (home, _canary) = home_with(reporting());
    start(&home);
    let name = socket(&home);
    run(&home, &["daemon", "stop"]).expect_code(0);
    let listener = UnixListener::bind(&name).unwrap();
    std::fs::set_permissions(&name, Permissions::from_mode(0o600)).unwrap();
    let mut daemon = attaching(&home, &["daemon", "start", "--foreground"])
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it answers", || !status(&home).is_null());
    run(&home, &["call", "s", "report"]).expect_code(0);
    run(&home, &["daemon", "stop"]).expect_code(0);
    assert!(daemon.wait().unwrap().success());
    assert!(name.exists(), "the socket is the service manager's");
}
