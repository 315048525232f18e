//! Gateways behind gateways: ours behind ours, and FastMCP's proxy between two of ours.

use serde_json::{Value, json};
use toolway_testkit::{TempHome, peers};

use super::clients::{TYPESCRIPT_2_MODERN, TouringClient, expected, toured};
use crate::gateway::{Gateway, started_by_clients};
use crate::support::servers;

/// What a client sees of one server of a gateway, whatever stands behind that.
fn tour(entry: Value, client: TouringClient, without: &[&str]) -> Value {
    let home = TempHome::new();
    home.write_settings(servers(&[("inner", entry)]));
    let gateway = Gateway::start(&home, &[]);
    let mut target = gateway.target();
    target["url"] = format!("{}/inner", gateway.url).into();
    target["without"] = json!(without);
    target["roots"] = json!([]);
    client.tour(&home, &target)
}

/// Where a client names a tool of one server, the nearest ones of that server are suggested.
fn seen_of_one() -> Value {
    let mut expected = expected();
    let message = "no tool `chaos__no-such-tool`; did you mean `chaos__count`?";
    expected["unknown"]["message"] = message.into();
    expected
}

#[test]
fn ours_behind_ours_over_http() {
    let home = toured();
    let inner = Gateway::start(&home, &["--wait", "30"]);
    assert_eq!(tour(inner.entry(), TYPESCRIPT_2_MODERN, &[]), seen_of_one());
}

#[test]
fn ours_behind_ours_over_stdio() {
    let home = toured();
    let inner = started_by_clients(&home, &["--wait", "30"]);
    assert_eq!(tour(inner, TYPESCRIPT_2_MODERN, &[]), seen_of_one());
}

/// It passes no completion on, no change of a list, and no cancellation.
#[test]
fn ours_behind_the_proxy_of_fastmcp_behind_ours() {
    let home = toured();
    let inner = started_by_clients(&home, &["--wait", "30"]);
    let script = peers::workspace().join("tests/peers/clients/fastmcp_proxy.py");
    let proxy = json!({
        "command": peers::python_program("python"),
        "args": [script, inner.to_string()],
        "env": inner["env"],
    });
    let seen = tour(
        proxy,
        TYPESCRIPT_2_MODERN,
        &["completion", "cancelling", "changes"],
    );
    let mut expected = seen_of_one();
    for key in ["completion", "cancellations", "changed", "grown"] {
        expected.as_object_mut().unwrap().remove(key);
    }
    expected["server"] = "toolway-fastmcp-proxy".into();
    assert_eq!(seen, expected);
}
