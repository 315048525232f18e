//! Other people's authorization servers, which a server on the TypeScript SDK asks about each
//! token: django-oauth-toolkit and Authlib.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use toolway_testkit::peers::{ProtectedKind, ProviderKind};

use super::scene::Scene;
use super::wait_until_expired;

fn scene(provider: ProviderKind, options: &Value) -> Scene {
    Scene::at(provider, ProtectedKind::TypeScriptOpaque, options)
}

/// Logs in, renews and logs out; the login as it was first and when it was renewed.
fn from_login_to_logout(scene: &Scene) -> (Value, Value) {
    assert_eq!(scene.state(), "needs-auth");
    let (output, page) = scene.log_in(&["login", "peer"], "alice");
    assert_eq!(
        output.expect_code(0).stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(page.body.contains("You are logged in"), "{page:?}");
    let first = scene.kept("default");
    let said = scene.whoami();
    assert!(said.starts_with("subject=alice client="), "{said}");
    assert!(said.ends_with(" scope=read write"), "{said}");
    wait_until_expired(&first);
    assert_eq!(scene.whoami(), said);
    let second = scene.kept("default");
    assert_ne!(second["tokens"]["access"], first["tokens"]["access"]);

    // Somebody has a copy of the login: it ends with it.
    let copy = scene.export();
    let out = scene.run(&["logout", "peer"]).expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("logged out of `peer` as `default`\n", "")
    );
    scene.run(&["vault", "import", &copy]).expect_code(0);
    fs::remove_file(copy).unwrap();
    let ended = scene.run(&["call", "peer", "whoami"]).expect_code(5);
    assert!(ended.stderr.contains("toolway login peer"), "{ended}");
    let (output, _) = scene.log_in(&["login", "peer"], "bob");
    output.expect_code(0);
    assert!(scene.whoami().starts_with("subject=bob "));
    let again = &scene.kept("default")["client"]["client_id"];
    assert_eq!(*again, first["client"]["client_id"], "one registration");
    (first, second)
}

#[test]
fn django_oauth_toolkit_registers_this_program() {
    let options = json!({ "accessSeconds": 4, "registration": true });
    let (first, second) = from_login_to_logout(&scene(ProviderKind::Django, &options));
    assert_ne!(second["tokens"]["refresh"], first["tokens"]["refresh"]);
}

/// As it comes: whoever runs it registers clients by hand.
#[test]
fn django_oauth_toolkit_knows_a_client_that_somebody_registered() {
    let scene = scene(ProviderKind::Django, &json!({ "accessSeconds": 4 }));
    let alone = scene.run(&["login", "peer"]).expect_code(5);
    assert!(
        alone.stderr.contains("registers no clients by itself"),
        "{alone}"
    );
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port().to_string()
    };
    scene.run(&["remove", "peer"]).expect_code(0);
    let url = scene.peer.url();
    scene
        .run(&[
            "add",
            "peer",
            url,
            "--client-id",
            "public",
            "--callback-port",
            &port,
        ])
        .expect_code(0);
    let (first, _) = from_login_to_logout(&scene);
    assert_eq!(first["client"]["client_id"], "public");
}

#[test]
fn authlib_wants_the_secret_in_the_header_and_keeps_the_refresh_token() {
    let options = json!({ "accessSeconds": 4 });
    let (first, second) = from_login_to_logout(&scene(ProviderKind::Authlib, &options));
    assert_eq!(first["client"]["auth_method"], "client_secret_basic");
    assert_eq!(second["tokens"]["refresh"], first["tokens"]["refresh"]);
}
