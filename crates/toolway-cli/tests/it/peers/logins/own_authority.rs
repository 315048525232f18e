//! Servers with the authorization server that their framework brings along: the official SDKs and
//! FastMCP.

use serde_json::{Value, json};
use toolway_testkit::peers::{OwnAuthorityKind, OwnAuthorityPeer, ProviderKind, ProviderPeer};

use super::scene::User;
use super::{refresh, wait_until_expired};

/// Logs in, waits until the token must be renewed, and calls again.
fn log_in_and_renew(user: &User) {
    let (output, page) = user.log_in(&["login", "peer"], "alice");
    assert_eq!(
        output.expect_code(0).stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(page.body.contains("You are logged in"), "{page:?}");
    let first = user.kept("default");
    let said = user.whoami();
    assert!(said.ends_with("scope=read"), "{said}");
    wait_until_expired(&first);
    assert_eq!(user.whoami(), said);
    let second = user.kept("default");
    assert_ne!(second["tokens"]["refresh"], first["tokens"]["refresh"]);
}

fn log_out(user: &User) {
    let out = user.run(&["logout", "peer"]).expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("logged out of `peer` as `default`\n", "")
    );
}

fn from_login_to_logout(which: OwnAuthorityKind, options: &Value) {
    let peer = OwnAuthorityPeer::start(which, options);
    let user = User::of(peer.url());
    log_in_and_renew(&user);
    log_out(&user);
    // One login's tokens are good, and one client is known: nothing of the first is left.
    user.log_in(&["login", "peer"], "alice").0.expect_code(0);
    assert_eq!(user.says("clients"), "1");
    let tokens = user.says("tokens");
    assert!(tokens.ends_with(" 1"), "{tokens}");
}

#[test]
fn version_1_of_the_python_sdk_with_metadata_of_the_resource() {
    from_login_to_logout(OwnAuthorityKind::PythonSdk1, &json!({ "accessSeconds": 4 }));
}

#[test]
fn version_1_of_the_python_sdk_without_metadata_of_the_resource() {
    let options = json!({ "accessSeconds": 4, "resource": false });
    from_login_to_logout(OwnAuthorityKind::PythonSdk1, &options);
}

#[test]
fn version_2_of_the_python_sdk_with_metadata_of_the_resource() {
    from_login_to_logout(OwnAuthorityKind::PythonSdk2, &json!({ "accessSeconds": 4 }));
}

#[test]
fn version_2_of_the_python_sdk_without_metadata_of_the_resource() {
    let options = json!({ "accessSeconds": 4, "resource": false });
    from_login_to_logout(OwnAuthorityKind::PythonSdk2, &options);
}

#[test]
fn version_1_of_the_typescript_sdk() {
    from_login_to_logout(
        OwnAuthorityKind::TypeScriptSdk1,
        &json!({ "accessSeconds": 4 }),
    );
}

#[test]
fn what_fastmcp_keeps_in_memory() {
    from_login_to_logout(OwnAuthorityKind::FastMcp, &json!({ "accessSeconds": 4 }));
}

#[test]
fn the_proxy_of_fastmcp_before_another_authorization_server() {
    let upstream = ProviderPeer::start(ProviderKind::Oidc, &json!({ "accessSeconds": 5 }));
    let options = json!({ "upstream": upstream.issuer() });
    let peer = OwnAuthorityPeer::start(OwnAuthorityKind::FastMcp, &options);
    let user = User::of(peer.url());
    log_in_and_renew(&user);
    // Whom the server behind it knows.
    let said = user.whoami();
    assert!(said.starts_with("subject=alice client=proxy "), "{said}");
    // It registers us without a secret, and takes tokens back all the same.
    let kept = user.kept("default");
    assert_eq!(kept["client"]["auth_method"], "none");
    log_out(&user);
    assert_eq!(refresh(&kept)["error"], "invalid_grant");
    let (output, _) = user.log_in(&["login", "peer"], "bob");
    output.expect_code(0);
    assert!(user.whoami().starts_with("subject=bob "));
    let again = &user.kept("default")["client"]["client_id"];
    assert_eq!(*again, kept["client"]["client_id"]);
}
