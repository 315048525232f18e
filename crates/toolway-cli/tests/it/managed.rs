//! What an organisation's files leave to the commands that edit a person's own.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::toolway;

#[test]
fn a_server_that_policy_refuses_is_not_added() {
    let home = TempHome::new();
    home.write(
        home.system().join("managed-settings.json"),
        json!({ "deniedMcpServers": [{ "serverName": "bad" }] }).to_string(),
    );
    assert_snapshot!(toolway(&home, &["add", "bad", "true"]), @r#"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `bad` is not added: denied by `{"serverName":"bad"}` in `deniedMcpServers` ([SYSTEM]/managed-settings.json:1)
    hint: ask the administrator of this machine to allow it
    "#);
}
