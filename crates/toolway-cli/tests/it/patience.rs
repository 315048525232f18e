//! What takes long: who is named for it, what gives it longer, and what ends it.

use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use toolway_testkit::authority::AuthoritySettings;
use toolway_testkit::{
    Canary, ListeningServer, Script, ScriptedServer, TempHome, marked, shell_code,
};

use crate::login::Scene;
use crate::support::{command, program, servers, toolway};
use crate::visiting::Speaking;

const METADATA: &str = "/.well-known/oauth-authorization-server";

fn with_entry(entry: Value) -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[("chaos", entry)]));
    home
}

#[test]
fn a_server_across_http_that_does_not_begin_to_answer_is_told_with_what_helps() {
    let server = ScriptedServer::new(Script::default()).serve_http();
    let home = with_entry(server.entry());
    let mut call = command(&home, &["call", "chaos", "hang"]);
    assert_snapshot!(home.run(call.env("MCP_REQUEST_TIMEOUT_MS", "300")), @"
    exit: 8
    ----- stdout
    ----- stderr
    error: `hang` of server `chaos` did not begin to answer within 300ms
    hint: give it longer with `--timeout <seconds>`, or always with `requestTimeout` (milliseconds) in its entry
    ");
    // What the hint says helps: this one has the time that it was given.
    let words = ["call", "chaos", "slow", "ms=600", "--timeout", "60"];
    let output = home.run(command(&home, &words).env("MCP_REQUEST_TIMEOUT_MS", "300"));
    assert_eq!(output.stdout, "at last\n", "{output}");
}

/// A server that answers everything with a status, and a home whose entry for it has these headers.
fn refusing(status: u16, headers: Value) -> (ListeningServer, TempHome) {
    let server = ScriptedServer::new(Script {
        http_status: Some(status),
        ..Script::default()
    });
    let server = server.serve_http();
    let mut entry = server.entry();
    entry["headers"] = headers;
    (server, with_entry(entry))
}

#[test]
fn a_header_that_the_server_refuses_is_named_and_nobody_is_sent_to_a_login() {
    let headers = json!({ "Authorization": format!("Bearer {}", marked!("wrong-")) });
    let (_server, home) = refusing(401, headers);
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=hi"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `chaos` failed: the server refuses the `Authorization` header of its entry ([HOME]/.config/toolway/settings.json:3)
    hint: change it in its entry (`toolway get chaos` says where); without it, the server can be logged in to
    ");
    let listed = toolway(&home, &["list", "--json"]).json();
    assert_eq!(listed["servers"][0]["state"], "failed", "{listed}");
}

#[test]
fn a_bare_403_names_the_headers_of_the_entry_and_their_place() {
    let told = |headers: Value| {
        let (_server, home) = refusing(403, headers);
        toolway(&home, &["tools", "chaos"])
    };
    let wrong = format!("Bearer {}", marked!("wrong-"));
    assert_snapshot!(told(json!({ "Authorization": wrong, "X-Team": "a" })), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `chaos` failed: the server answered HTTP 403 (forbidden); it may refuse the `Authorization` header of its entry ([HOME]/.config/toolway/settings.json:3)
    hint: check that it is good for this server: `toolway get chaos` says where it is written
    ");
    assert_snapshot!(told(json!({ "X-Api-Key": marked!("wrong-"), "X-Team": "a" })), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `chaos` failed: the server answered HTTP 403 (forbidden); it may refuse the headers `X-Api-Key`, `X-Team` of its entry ([HOME]/.config/toolway/settings.json:3)
    hint: check that it is good for this server: `toolway get chaos` says where it is written
    ");
    let (_server, home) = refusing(403, json!({ "x-api-key": marked!("wrong-") }));
    let listed = toolway(&home, &["list"]);
    assert!(
        listed
            .stdout
            .contains("it may refuse the `x-api-key` header of its entry ("),
        "{listed}"
    );
    assert!(
        listed
            .stderr
            .contains("hint: `chaos`: check that it is good for this server: `toolway get chaos`"),
        "{listed}"
    );
    // Nothing is written down that it could refuse.
    assert_snapshot!(told(json!({})), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `chaos` failed: the server answered HTTP 403 (forbidden)
    hint: check that it is an MCP server: `toolway get chaos`
    ");
}

#[test]
fn a_reconnect_frees_a_call_that_hangs_in_another_process() {
    let home = with_entry(ScriptedServer::new(Script::default()).entry());
    let mut call = Speaking::start(command(&home, &["call", "chaos", "hang"]));
    // It looks out for that only once it has hung for a while.
    while call.is_running() {
        toolway(&home, &["reconnect", "chaos"]).expect_code(0);
    }
    assert_snapshot!(call.end(), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: the call of `hang` of server `chaos` was sent, but its answer was lost: somebody asked for the server to be connected anew; nobody knows whether it ran
    hint: see whether it took effect before you run it again; what happened is in `toolway logs chaos`
    ");
}

/// As at a terminal, a Ctrl-C is for the shell and for what it waits for.
#[test]
fn a_ctrl_c_stops_the_loop_of_a_shell() {
    const LOOP: &str =
        "for i in 1 2 3; do echo round $i; \"$TOOLWAY\" call chaos hang; done; echo done";
    for shell in ["bash", "sh"] {
        let home = TempHome::new();
        let canary = Canary::new();
        let server = ScriptedServer::new(Script::default());
        let entry = server.entry_with_env([(canary.name(), canary.value())]);
        home.write_settings(servers(&[("chaos", entry)]));
        let looping = home
            .command(shell)
            .args(["-c", LOOP])
            .env("TOOLWAY", program())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        while canary.processes().is_empty() {
            std::thread::yield_now();
        }
        kill_process_group(Pid::from_child(&looping), Signal::INT).unwrap();
        let output = marked::output_of(looping);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "round 1\n", "{shell}");
        assert_eq!(shell_code(output.status), Some(130), "{shell}");
        canary.assert_gone();
    }
}

fn logged_in() -> Scene {
    let scene = Scene::new(AuthoritySettings::default());
    scene.log_in(&["login", "shop"]).expect_code(0);
    scene
}

#[test]
fn an_authorization_server_that_does_not_renew_a_login_is_named() {
    let scene = logged_in();
    scene.authority.expire_access_tokens();
    let held = scene.authority.hold("/token");
    let mut call = scene.command(&["call", "shop", "whoami"]);
    let output = scene.home.run(call.env("MCP_TIMEOUT", "1500"));
    drop(held);
    assert_snapshot!(scene.shown(&output), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `shop` failed: the login of `shop` cannot be renewed now: its authorization server [ISSUER] did not answer within 1.5 s
    hint: the login is kept: try again in a while, or log in anew with `toolway login shop`
    ");
}

#[test]
fn logging_in_and_out_say_who_is_being_waited_for() {
    let scene = logged_in();
    let held = scene.authority.hold("/revoke");
    let mut logout = Speaking::start(scene.command(&["logout", "shop"]));
    let line = logout.wait_for("waiting for");
    let expected = format!(
        "waiting for {}/revoke to answer\n",
        scene.authority.issuer()
    );
    assert_eq!(line, expected);
    drop(held);
    let output = logout.end().expect_code(0);
    assert_eq!(output.stdout, "logged out of `shop` as `default`\n");

    let held = scene.authority.hold(METADATA);
    let mut login = Speaking::start(scene.command(&["login", "shop"]));
    let line = login.wait_for("waiting for");
    assert!(line.contains(METADATA), "{line}");
    drop(held);
    login.wait_for("opening a login page");
    login.signal(Signal::INT);
    login.end().expect_code(130);
}
