//! What the environment says about reaching servers, and the editor beside us.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, servers, toolway};

#[test]
fn certificate_files_are_named_by_the_variables_other_programs_use() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        (
            "far",
            json!({ "type": "http", "url": "https://127.0.0.1:1/" }),
        ),
        (
            "socket",
            json!({ "type": "ws", "url": "wss://127.0.0.1:1/" }),
        ),
    ]));
    for variable in [
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "TOOLWAY_CLIENT_CERT",
    ] {
        let missing = home.home().join(format!("{variable}.pem"));
        let mut command = command(&home, &["list", "--json"]);
        let output = home.run(command.env(variable, &missing));
        for server in output.json()["servers"].as_array().unwrap() {
            let error = server["error"].as_str().unwrap();
            assert!(error.contains(&format!("{variable}.pem")), "{error}");
        }
    }
}

#[test]
fn the_editor_beside_us_is_a_server_when_asked_for() {
    let home = TempHome::new();
    let editor = ScriptedServer::new(Script::default()).serve_http();
    let port = editor
        .url()
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let asked = toolway(&home, &["--ide", "list"]);
    assert!(
        asked
            .stderr
            .contains("`--ide`: no editor with this workspace is running"),
        "{asked}"
    );
    let lock = json!({
        "pid": std::process::id(),
        "workspaceFolders": [home.project()],
        "ideName": "Some Editor",
        "transport": "sse",
    });
    let path = home.write(
        home.home().join(format!(".claude/ide/{port}.lock")),
        lock.to_string(),
    );
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    let listed = toolway(&home, &["--ide", "list", "--json"]).json();
    let server = &listed["servers"][0];
    assert_eq!(
        (&server["name"], &server["transport"]),
        (&json!("ide"), &json!("sse-ide"))
    );
    assert_eq!(
        toolway(&home, &["list", "--json"]).json()["servers"],
        json!([])
    );
}
