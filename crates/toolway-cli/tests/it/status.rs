//! `status`: which gateways run, and sockets that lead nowhere.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;
use toolway_testkit::patience::eventually_blocking;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::served::{Gateway, call, outcome, plain, settled, socket_names, sockets};
use crate::support::{home_with, servers, toolway};

#[test]
fn without_a_gateway_it_says_so() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    no gateway is running
    hint: start one with `toolway serve --http 127.0.0.1:0`, or let a client start it: `toolway connect <client>`
    ");
    assert_snapshot!(toolway(&home, &["status", "--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "gateways": []
    }
    ----- stderr
    "#);
}

#[test]
fn every_gateway_shows_its_servers_clients_and_calls() {
    let home = TempHome::new();
    let entries = [
        ("chaos", ScriptedServer::new(Script::default()).entry()),
        ("gone", json!({ "command": "no-such-program" })),
    ];
    home.write_settings(servers(&entries));
    let http = Gateway::http(&home, &[]);
    settled(&home);
    let client = http.client("/mcp");
    assert_eq!(outcome(&client.ask(&call(1, "chaos__echo", "hi"))), "hi");
    let hanging = client.ask_beside(json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "chaos__hang", "arguments": {} },
    }));
    eventually_blocking(|| {
        let status = toolway(&home, &["status", "--json"]).expect_code(0).json();
        match status["gateways"][0]["status"]["calls"][0]["tool"].as_str() {
            Some(_) => Ok(()),
            None => Err(status.to_string()),
        }
    });
    let shown = toolway(&home, &["status"]);
    assert_snapshot!(plain(&[&http], &shown), @"
    exit: 0
    ----- stdout
    Gateway [PID]: toolway [VERSION], running for [AGE], started in [PROJECT]
      http: http://[ADDRESS]/mcp

    SERVER STATE TOOLS DETAIL
    chaos connected 8
    gone failed - cannot start `no-such-program`: no such program, or its interpreter is missing

    CLIENT NAME ERA AT HERE FOR LAST SEEN CALLS
    http probe 1.2 legacy /mcp [AGE] [AGE] ago 2

    CALL SERVER CLIENT RUNS FOR
    hang chaos http [AGE]
    ----- stderr
    ");
    let mut stdio = Gateway::stdio(&home, &["--servers", "chaos"]);
    let both = toolway(&home, &["status", "--json"]).expect_code(0).json();
    let gateways = both["gateways"].as_array().unwrap();
    assert_eq!(gateways.len(), 2, "{both}");
    assert_eq!(gateways[0]["pid"], http.pid());
    assert_eq!(gateways[1]["pid"], stdio.pid());
    let [one, other] = [0, 1].map(|place| &gateways[place]["status"]);
    assert_eq!(one["clients"][0]["calls"], 2);
    assert_eq!(one["clients"][0]["name"], "probe");
    assert_eq!(
        other["listens"],
        json!([{ "way": "stdio", "address": null }])
    );
    assert_eq!(other["clients"][0]["era"], "legacy");
    assert_eq!(other["clients"][0]["shown"], "stdio");
    assert!(!both.to_string().contains("arguments"), "{both}");
    // Each takes its own socket away when it ends.
    stdio.hang_up();
    assert_eq!(socket_names(&home).len(), 1);
    let mut http = http;
    http.end(Signal::TERM);
    assert_eq!(socket_names(&home).len(), 0);
    drop(hanging.join());
}

#[test]
fn one_that_does_not_answer_is_named_and_holds_up_nobody() {
    let home = home_with(Script::default());
    let stopped = Gateway::http(&home, &[]);
    let other = Gateway::http(&home, &[]);
    settled(&home);
    stopped.signal(Signal::STOP);
    let shown = toolway(&home, &["status"]).expect_code(0);
    stopped.signal(Signal::CONT);
    assert_snapshot!(plain(&[&stopped, &other], &shown), @"
    exit: 0
    ----- stdout
    Gateway [PID]: toolway [VERSION], running for [AGE], started in [PROJECT]
      http: http://[ADDRESS]/mcp

    SERVER STATE TOOLS DETAIL
    chaos connected 8

    No client is connected.
    ----- stderr
    warning: the gateway of process [PID] does not answer: it has not answered within 2s
    ");
}

#[test]
fn rel_34_a_killed_gateway_leaves_nothing_in_anybodys_way() {
    let home = home_with(Script::default());
    let mut killed = Gateway::http(&home, &[]);
    killed.end(Signal::KILL);
    let left = socket_names(&home);
    assert_eq!(left.len(), 1, "{left:?}");
    // Neither for one that starts …
    let gateway = Gateway::http(&home, &[]);
    let names = socket_names(&home);
    assert_eq!(names.len(), 1, "{names:?}");
    assert_ne!(names, left);
    let mut gateway = gateway;
    gateway.end(Signal::KILL);
    // … nor for one who looks.
    let shown = toolway(&home, &["status"]).expect_code(0);
    assert!(shown.stderr.starts_with("no gateway is running"), "{shown}");
    assert_eq!(socket_names(&home), Vec::<String>::new());
}

#[test]
fn sec_09_what_is_no_socket_of_ours_is_neither_used_nor_removed() {
    let home = home_with(Script::default());
    let folder = sockets(&home);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let elsewhere = home.home().join("elsewhere.sock");
    let listener = std::os::unix::net::UnixListener::bind(&elsewhere).unwrap();
    listener.set_nonblocking(true).unwrap();
    symlink(&elsewhere, folder.join("link.sock")).unwrap();
    std::fs::write(folder.join("file.sock"), "x").unwrap();
    let gateway = Gateway::http(&home, &[]);
    let status = toolway(&home, &["status", "--json"]).expect_code(0).json();
    let gateways = status["gateways"].as_array().unwrap();
    assert_eq!(gateways.len(), 1, "{status}");
    assert_eq!(gateways[0]["pid"], gateway.pid());
    assert!(listener.accept().is_err(), "the link was followed");
    let mut names = socket_names(&home);
    names.retain(|name| name == "link.sock" || name == "file.sock");
    assert_eq!(names.len(), 2);
    // Others could write there, and cannot any more.
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let own = socket_names(&home);
    let own = own.iter().find(|name| name.len() > 20).unwrap();
    assert_eq!(mode(&folder.join(own)), 0o600);
}

#[test]
fn sec_09_a_folder_that_leads_elsewhere_is_refused_and_the_gateway_serves_all_the_same() {
    let home = home_with(Script::default());
    let elsewhere = home.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir_all(sockets(&home).parent().unwrap()).unwrap();
    symlink(&elsewhere, sockets(&home)).unwrap();
    let shown = toolway(&home, &["status"]);
    assert_snapshot!(shown, @"
    exit: 3
    ----- stdout
    ----- stderr
    error: the folder `[HOME]/.config/toolway/state/gateways` of the owner's sockets cannot be used: a link lies in its place
    hint: look at what lies there and move it away: `ls -ld [HOME]/.config/toolway/state/gateways`
    ");
    let gateway = Gateway::http(&home, &[]);
    let warning = home.normalise(&gateway.said("do not reach"));
    assert_snapshot!(warning, @"warning: `toolway status` and `toolway approvals` do not reach this gateway: the folder `[HOME]/.config/toolway/state/gateways` of the owner's sockets cannot be used: a link lies in its place");
    let client = gateway.client("/mcp");
    assert_eq!(outcome(&client.ask(&call(1, "chaos__echo", "hi"))), "hi");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_home_with_a_very_long_path_has_a_socket_too() {
    let home = home_with(Script::default());
    let long = home.home().join("x".repeat(120));
    std::fs::create_dir_all(&long).unwrap();
    let settings = std::fs::read_to_string(home.config_home().join("settings.json")).unwrap();
    std::fs::write(long.join("settings.json"), settings).unwrap();
    let mut serve = crate::support::command(&home, &["serve"]);
    let mut child = serve
        .env("TOOLWAY_HOME", &long)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    eventually_blocking(|| {
        let mut status = crate::support::command(&home, &["status", "--json"]);
        let shown = home.run(status.env("TOOLWAY_HOME", &long)).json();
        if shown["gateways"][0]["pid"] == pid {
            Ok(())
        } else {
            Err(shown.to_string())
        }
    });
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(
        std::fs::read_dir(long.join("state/gateways"))
            .unwrap()
            .count(),
        0
    );
}
