//! The whole way in a real browser: Chromium, headless, with a keyboard and a mouse of its own.
//!
//! Skipped, with a word, where no Chromium is installed.

use std::process::Command;

use serde_json::{Value, json};
use toolway_testkit::peers::{self, ProtectedKind};

use super::scene::Scene;

/// Chromium, by any of its names.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn a_login_in_chromium_from_the_login_page_to_the_tools() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no Chromium is installed");
        return;
    };
    for which in [ProtectedKind::FastMcp, ProtectedKind::TypeScriptSigned] {
        let scene = Scene::new(which, &json!({}));
        let folder = scene.home.home().join("chromium");
        std::fs::create_dir(&folder).unwrap();
        let (output, visit) = scene.visit(&["login", "peer"], |url| {
            let script = peers::workspace().join("tests/peers/chromium_login.mjs");
            let mut driver = Command::new("node");
            driver.arg(script).args([chromium, url, "alice"]);
            driver.arg(&folder).output().unwrap()
        });
        assert!(visit.status.success(), "{output}\n{visit:?}");
        let seen: Value = serde_json::from_slice(&visit.stdout).unwrap();
        let pages = seen.as_array().unwrap();
        let headlines: Vec<&str> = pages
            .iter()
            .map(|page| page["headline"].as_str().unwrap())
            .collect();
        assert_eq!(
            headlines,
            ["Sign-in", "Authorize", "You are logged in"],
            "{seen:#}"
        );
        let last = pages[2]["text"].as_str().unwrap();
        assert!(last.contains("Toolway can now use peer"), "{last}");
        assert_eq!(pages[2]["loads"], json!([]), "it stands alone");
        output.expect_code(0);
        let tools = scene.run(&["tools", "peer", "--json"]).expect_code(0);
        let tools = tools.json();
        let mut names: Vec<&str> = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp__peer__change", "mcp__peer__whoami"]);
        assert!(scene.whoami().starts_with("subject=alice "));
    }
}
