//! Servers on the official SDKs over the network, through the command line.

use serde_json::Value;
use toolway_testkit::TempHome;

use super::listening::{Listening, Peer};
use super::{call, home_with, listed, tool_names};
use crate::support::toolway;

/// A home that knows this peer as `peer`.
fn home_of(server: &Listening) -> TempHome {
    home_with("peer", server.entry())
}

/// What every server on an SDK offers, used once; the answer is the server as it was listed.
fn tour(home: &TempHome) -> Value {
    let server = listed(home);
    let names = tool_names(home);
    for tool in ["echo", "add", "count", "process", "fail"] {
        assert!(names.contains(&format!("mcp__peer__{tool}")), "{names:?}");
    }
    assert_eq!(
        call(home, &["peer", "echo", "message=ahoi"]).stdout,
        "ahoi\n"
    );
    let sum = call(home, &["peer", "add", "a=2", "b=40", "--json"]).json();
    assert_eq!(sum["structuredContent"]["sum"], 42, "{sum}");
    let counted = call(home, &["peer", "count", "steps=3", "milliseconds=1"]);
    assert_eq!(counted.stdout, "counted to 3\n");
    let failed = toolway(home, &["call", "peer", "fail", "reason=because"]);
    assert_eq!(failed.code, Some(7), "{failed}");
    assert!(failed.stdout.contains("because"), "{failed}");
    server
}

#[track_caller]
fn legacy(server: &Value) {
    assert_eq!(server["era"], "legacy", "{server}");
    assert_eq!(server["protocolVersion"], "2025-11-25", "{server}");
}

#[track_caller]
fn modern(server: &Value) {
    assert_eq!(server["era"], "modern", "{server}");
    assert_eq!(server["protocolVersion"], "2026-07-28", "{server}");
}

#[test]
fn python_sdk_1_over_streamable_http() {
    let server = Peer::PythonSdk1("http").start();
    let home = home_of(&server);
    legacy(&tour(&home));
    // It redirects to the address with a slash, which is of the same origin.
    let mut entry = server.entry();
    entry["url"] = server.url.trim_end_matches('/').into();
    let home = home_with("peer", entry);
    assert_eq!(call(&home, &["peer", "echo", "message=hi"]).stdout, "hi\n");
}

#[test]
fn python_sdk_1_over_sse() {
    let server = Peer::PythonSdk1("sse").start();
    legacy(&tour(&home_of(&server)));
}

#[test]
fn python_sdk_1_over_sse_behind_an_entry_of_http() {
    let server = Peer::PythonSdk1("sse").start();
    let mut entry = server.entry();
    entry["type"] = "http".into();
    legacy(&tour(&home_with("peer", entry)));
}

#[test]
fn python_sdk_1_over_websocket() {
    let server = Peer::PythonSdk1("ws").start();
    legacy(&tour(&home_of(&server)));
}

#[test]
fn python_sdk_2_over_http_in_the_modern_era() {
    let server = Peer::PythonSdk2.start();
    modern(&tour(&home_of(&server)));
}

#[test]
fn python_sdk_2_in_the_legacy_era_when_its_entry_says_so() {
    let server = Peer::PythonSdk2.start();
    let mut entry = server.entry();
    entry["protocol"] = "legacy".into();
    legacy(&tour(&home_with("peer", entry)));
}

#[test]
fn typescript_sdk_2_over_http_in_the_modern_era() {
    let server = Peer::TypeScriptSdk2("both").start();
    modern(&tour(&home_of(&server)));
}

#[test]
fn typescript_sdk_2_without_sessions_in_the_legacy_era() {
    let server = Peer::TypeScriptSdk2("both").start();
    let mut entry = server.entry();
    entry["protocol"] = "legacy".into();
    legacy(&tour(&home_with("peer", entry)));
}

#[test]
fn typescript_sdk_2_that_refuses_the_legacy_era() {
    let server = Peer::TypeScriptSdk2("modern").start();
    modern(&tour(&home_of(&server)));
    let mut entry = server.entry();
    entry["protocol"] = "legacy".into();
    let home = home_with("peer", entry);
    let output = toolway(&home, &["list", "--json"]);
    assert_eq!(output.json()["servers"][0]["state"], "failed", "{output}");
    // Nobody sits at this command line, so it declares no forms, and the server is told so.
    let home = home_of(&server);
    let refused = toolway(&home, &["call", "peer", "confirm", "what=it"]);
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.stderr.contains("-32021"), "{refused}");
}

#[test]
fn everything_over_sse() {
    let server = Peer::EverythingSse.start();
    let home = home_of(&server);
    let listed = listed(&home);
    legacy(&listed);
    assert!(listed["tools"].as_u64().unwrap() >= 8, "{listed}");
    assert_eq!(
        call(&home, &["peer", "echo", "message=over sse"]).stdout,
        "Echo: over sse\n"
    );
    let sum = call(&home, &["peer.get-sum", "a=2", "b=40"]);
    assert_eq!(sum.stdout, "The sum of 2 and 40 is 42.\n");
}
