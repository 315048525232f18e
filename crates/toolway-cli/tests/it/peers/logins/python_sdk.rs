//! The official Python SDK with the authorization server that it brings along.

use std::fs;

use serde_json::{Value, json};
use toolway_testkit::browser::browse;
use toolway_testkit::peers::{PythonSdk, SdkAuthority};
use toolway_testkit::{CommandOutput, TempHome};

use super::wait_until_expired;
use crate::visiting::{visit, with_browser};

struct Scene {
    home: TempHome,
    _peer: SdkAuthority,
}

impl Scene {
    fn new(version: PythonSdk, options: &Value) -> Self {
        let peer = SdkAuthority::start(version, options);
        let home = TempHome::new();
        home.run(&mut with_browser(&home, &["add", "peer", peer.url()]))
            .expect_code(0);
        Self { home, _peer: peer }
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut with_browser(&self.home, words))
    }

    fn log_in(&self) -> CommandOutput {
        let mut command = with_browser(&self.home, &["login", "peer"]);
        visit(&self.home, &mut command, browse).0
    }

    fn says(&self, tool: &str) -> String {
        let said = self.run(&["call", "peer", tool]).expect_code(0).stdout;
        said.trim_end().to_owned()
    }

    /// The login as the vault has it.
    fn kept(&self) -> Value {
        let file = self.home.home().join("export.json");
        let name = file.display().to_string();
        self.run(&["vault", "export", &name, "--show-secrets"])
            .expect_code(0);
        let content: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        let mut secrets = content["secrets"].as_array().unwrap().iter();
        let login = secrets.find(|item| item["kind"] == "login").unwrap();
        serde_json::from_str(login["secret"].as_str().unwrap()).unwrap()
    }
}

fn from_login_to_logout(version: PythonSdk, options: &Value) {
    let scene = Scene::new(version, options);
    let output = scene.log_in().expect_code(0);
    assert_eq!(
        output.stdout,
        "logged in to `peer` as `default`, renews itself\n"
    );
    assert!(scene.says("whoami").ends_with("scope=read"));
    let first = scene.kept();
    wait_until_expired(&first);
    assert!(scene.says("whoami").ends_with("scope=read"));
    assert_ne!(
        scene.kept()["tokens"]["refresh"],
        first["tokens"]["refresh"]
    );
    let out = scene.run(&["logout", "peer"]).expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("logged out of `peer` as `default`\n", "")
    );
    // One login's tokens are good, and one client is known: nothing of the first is left.
    scene.log_in().expect_code(0);
    assert_eq!(scene.says("clients"), "1");
    let tokens = scene.says("tokens");
    assert!(tokens.ends_with(" 1"), "{tokens}");
}

#[test]
fn version_1_with_metadata_of_the_resource() {
    from_login_to_logout(PythonSdk::One, &json!({ "accessSeconds": 4 }));
}

#[test]
fn version_1_without_metadata_of_the_resource() {
    let options = json!({ "accessSeconds": 4, "resource": false });
    from_login_to_logout(PythonSdk::One, &options);
}

#[test]
fn version_2_with_metadata_of_the_resource() {
    from_login_to_logout(PythonSdk::Two, &json!({ "accessSeconds": 4 }));
}

#[test]
fn version_2_without_metadata_of_the_resource() {
    let options = json!({ "accessSeconds": 4, "resource": false });
    from_login_to_logout(PythonSdk::Two, &options);
}
