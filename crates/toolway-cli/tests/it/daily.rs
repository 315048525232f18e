//! What a person meets in a day's work: slow tools, servers that are down, typing errors.

use std::net::TcpListener;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::marked;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, home_with, servers, shown_on, terminal, toolway};

/// Runs `toolway` with stderr on a terminal; gives what the terminal got, escapes and all.
fn on_a_terminal(home: &TempHome, words: &[&str]) -> String {
    let (ours, theirs) = terminal();
    let mut child = command(home, words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(theirs)
        .spawn()
        .unwrap();
    let shown = shown_on(ours);
    child.wait().unwrap();
    shown
}

#[test]
fn a_call_that_takes_long_says_on_a_terminal_what_it_waits_for() {
    let home = home_with(Script::default());
    let shown = on_a_terminal(&home, &["call", "chaos", "hang", "--timeout", "2"]);
    // Between the words the cursor is moved; what a screen makes of it is `toolway-tui`'s test.
    for word in ["waiting", "`hang`", "`chaos`", "Ctrl-C cancels"] {
        assert!(shown.contains(word), "no {word} in {shown:?}");
    }
    assert!(
        shown.ends_with(
            "error:\u{1b}[0m `hang` of server `chaos` did not answer within 2s\r\n\
             \u{1b}[1;36mhint:\u{1b}[0m give it longer with `--timeout <seconds>`\r\n"
        ),
        "{shown:?}"
    );
}

/// What `tools` says on stderr about one server of this type at this address.
fn complaint(kind: &str, url: &str, variables: &[(&str, &str)]) -> String {
    let home = TempHome::new();
    home.write_settings(servers(&[("far", json!({ "type": kind, "url": url }))]));
    let mut command = command(&home, &["tools", "far"]);
    let output = home.run(command.envs(variables.iter().copied()));
    assert_eq!(output.stdout, "");
    // Ports differ from run to run.
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
    format!(
        "{}exit {:?}\n",
        output.stderr.replace(&format!(":{port}"), ":[PORT]"),
        output.code
    )
}

#[test]
fn an_address_where_nothing_answers_is_named() {
    assert_snapshot!(complaint("http", "http://127.0.0.1:9/mcp", &[]), @"
    error: server `far` failed: cannot reach the server: 127.0.0.1:[PORT]: Connection refused
    hint: is it up? check its address with `toolway get far`
    exit Some(4)
    ");
    assert_snapshot!(complaint("sse", "http://127.0.0.1:9/sse", &[]), @"
    error: server `far` failed: cannot reach the server: 127.0.0.1:[PORT]: Connection refused
    hint: is it up? check its address with `toolway get far`
    exit Some(4)
    ");
    assert_snapshot!(complaint("ws", "ws://127.0.0.1:9/", &[]), @"
    error: server `far` failed: cannot reach the server: 127.0.0.1:[PORT]: Connection refused
    hint: is it up? check its address with `toolway get far`
    exit Some(4)
    ");
}

#[test]
fn a_proxy_that_is_down_is_blamed_instead_of_the_server() {
    let down = [("HTTP_PROXY", marked!("http://me:", "@127.0.0.1:9"))];
    assert_snapshot!(complaint("http", "http://far.invalid:7000/mcp", &down), @"
    error: server `far` failed: cannot reach the server: through the proxy 127.0.0.1:9: Connection refused
    hint: check `HTTPS_PROXY` and `HTTP_PROXY`; hosts in `NO_PROXY` are reached without one
    exit Some(4)
    ");
    assert_snapshot!(complaint("ws", "ws://far.invalid:7000/mcp", &down), @"
    error: server `far` failed: cannot reach the server: the proxy 127.0.0.1:9 cannot be reached: Connection refused
    hint: check `HTTPS_PROXY` and `HTTP_PROXY`; hosts in `NO_PROXY` are reached without one
    exit Some(4)
    ");
}

#[test]
fn a_wrong_type_or_scheme_says_which_one_is_right() {
    let http = ScriptedServer::new(Script::default()).serve_http();
    assert_snapshot!(complaint("sse", http.url(), &[]), @r#"
    error: server `far` failed: the server answers HTTP 405 and opens no stream: its URL is wrong, or its entry needs `"type": "http"`
    hint: check that it is an MCP server: `toolway get far`
    exit Some(4)
    "#);
    let socket = http.url().replace("http:", "ws:");
    assert_snapshot!(complaint("ws", &socket, &[]), @r#"
    error: server `far` failed: the server answers HTTP 405 and opens no stream: its URL is wrong, or its entry needs `"type": "http"`
    hint: check that it is an MCP server: `toolway get far`
    exit Some(4)
    "#);
    let encrypted = http.url().replace("http:", "https:");
    assert_snapshot!(complaint("http", &encrypted, &[]), @"
    error: server `far` failed: cannot reach the server: 127.0.0.1:[PORT]: it ended the TLS handshake; if it speaks no TLS, try `http://` in its URL
    hint: is it up? check its address with `toolway get far`
    exit Some(4)
    ");
}

#[test]
fn a_server_that_is_busy_is_not_called_something_else() {
    let busy = ScriptedServer::new(Script {
        http_status: Some(503),
        ..Script::default()
    })
    .serve_http();
    assert_snapshot!(complaint("http", busy.url(), &[]), @"
    error: server `far` failed: the server answered HTTP 503 (busy or down)
    hint: is it up? check its address with `toolway get far`
    exit Some(4)
    ");
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up_after_a_time_that_is_named() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", mute.local_addr().unwrap());
    let soon = [("MCP_TIMEOUT", "300")];
    assert_snapshot!(complaint("http", &url, &soon), @"
    error: server `far` failed: not connected after 0.3 s: it did not answer the handshake
    hint: give it longer with the variable `MCP_TIMEOUT` (milliseconds)
    exit Some(8)
    ");
    assert_snapshot!(complaint("sse", &url, &soon), @"
    error: server `far` failed: not connected after 0.3 s: it did not answer the handshake
    hint: give it longer with the variable `MCP_TIMEOUT` (milliseconds)
    exit Some(8)
    ");
}

#[test]
fn a_file_of_certificates_that_is_missing_is_what_is_to_be_mended() {
    let missing = [("NODE_EXTRA_CA_CERTS", "/nonexistent/authority.pem")];
    assert_snapshot!(complaint("http", "https://127.0.0.1:9/mcp", &missing), @"
    error: server `far` failed: cannot set up the HTTP client: cannot read certificates from `/nonexistent/authority.pem`: I/O error: No such file or directory (os error 2)
    hint: mend that file, or the variable that names it
    exit Some(4)
    ");
}

/// A home whose settings hold this many entries without a command, and one that is fine.
fn home_with_typos(count: usize) -> TempHome {
    let home = TempHome::new();
    let names: Vec<String> = (1..=count).map(|number| format!("typo{number}")).collect();
    let mut entries: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), json!({ "comand": "true" })))
        .collect();
    entries.push(("fine", ScriptedServer::new(Script::default()).entry()));
    home.write_settings(servers(&entries));
    home
}

#[test]
fn many_wrong_entries_are_counted_instead_of_filling_the_screen() {
    let home = home_with_typos(6);
    let listed = toolway(&home, &["list", "--no-connect"]);
    assert_snapshot!(listed.stderr, @"
    error: [HOME]/.config/toolway/settings.json:3: server `typo1`: neither `command` nor `url` is given
    hint: rename `comand` to `command`
    error: [HOME]/.config/toolway/settings.json:6: server `typo2`: neither `command` nor `url` is given
    hint: rename `comand` to `command`
    error: [HOME]/.config/toolway/settings.json:9: server `typo3`: neither `command` nor `url` is given
    hint: rename `comand` to `command`
    and 3 more findings like these
    hint: see all of them with `toolway doctor`
    ");
}

#[test]
fn a_name_that_is_not_known_brings_up_no_other_servers_faults() {
    let home = home_with_typos(2);
    for words in [
        &["reconnect", "nope"][..],
        &["call", "nope", "echo"],
        &["tools", "nope"],
        &["get", "nope"],
    ] {
        let output = toolway(&home, words).expect_code(3);
        assert_eq!(
            output.stderr,
            "error: no server named `nope` is configured\n\
             hint: see what is configured with `toolway list --no-connect`\n",
            "{words:?}"
        );
    }
}

#[test]
fn an_entry_that_is_wrong_is_named_with_its_line() {
    let home = home_with_typos(1);
    assert_snapshot!(toolway(&home, &["call", "typo1", "echo"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `typo1` cannot be used: neither `command` nor `url` is given
      at [HOME]/.config/toolway/settings.json:3
    hint: rename `comand` to `command`
    ");
}

#[test]
fn a_server_that_dies_during_a_call_leads_to_its_log() {
    let home = home_with(Script::default());
    assert_snapshot!(toolway(&home, &["call", "chaos", "crash"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: the call of `crash` of server `chaos` was sent, but its answer was lost: its process ended (exit status: 9); nobody knows whether it ran
    hint: see whether it took effect before you run it again; what happened is in `toolway logs chaos`
    ");
}

#[test]
fn servers_that_did_not_reconnect_are_counted_in_a_sentence() {
    let home = TempHome::new();
    let nobody = json!({ "type": "http", "url": "http://127.0.0.1:9/" });
    home.write_settings(servers(&[
        ("a", nobody.clone()),
        ("b", nobody.clone()),
        ("c", nobody),
    ]));
    assert_snapshot!(toolway(&home, &["reconnect", "--all"]).stderr, @"
    error: server `a` failed: cannot reach the server: 127.0.0.1:9: Connection refused; 2 more are not connected
    hint: is it up? check its address with `toolway get a`
    ");
}

#[test]
fn reconnect_prints_what_list_prints_as_json_also_when_it_fails() {
    let home = TempHome::new();
    let chaos = ScriptedServer::new(Script::default()).entry();
    let nobody = json!({ "type": "http", "url": "http://127.0.0.1:9/" });
    home.write_settings(servers(&[("chaos", chaos), ("nobody", nobody)]));
    let listed = toolway(&home, &["list", "--json"]).expect_code(0).json();
    let one = toolway(&home, &["reconnect", "chaos", "--json"]).expect_code(0);
    assert_eq!(one.json()["servers"][0], listed["servers"][0]);
    let all = toolway(&home, &["reconnect", "--all", "--json"]).expect_code(4);
    assert_eq!(all.json(), listed);
}
