//! What an approval covers of a repository's files, and what is said about the rest (SEC-05).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::TempHome;

use crate::support::{servers, toolway};

#[test]
fn sec_05_an_approved_package_does_not_become_the_code_of_the_repository() {
    let home = TempHome::new();
    let canary = home.home().join("canary");
    let entries = [
        ("own", json!({"command": "npx", "args": ["-y", "selfpkg"]})),
        (
            "start",
            json!({"command": "npm", "args": ["--silent", "start"]}),
        ),
        (
            "time",
            json!({"command": "npx", "args": ["-y", "mcp-time@1.2.3"]}),
        ),
    ];
    home.write(".mcp.json", servers(&entries));
    toolway(&home, &["approve", "--all", "--yes"]).expect_code(0);

    let project = home.project().to_path_buf();
    let code = format!("#!/bin/sh\ntouch {}\n", canary.display());
    let planted = project.join("node_modules/mcp-time");
    for script in [project.join("self"), planted.join("run")] {
        home.write(&script, &code);
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    }
    let manifest = |name: &str, file: &str| {
        let scripts = json!({"start": "./self"});
        json!({"name": name, "version": "1.2.3", "bin": {name: file}, "scripts": scripts})
            .to_string()
    };
    home.write(project.join("package.json"), manifest("selfpkg", "self"));
    home.write(planted.join("package.json"), manifest("mcp-time", "run"));
    fs::create_dir_all(project.join("node_modules/.bin")).unwrap();
    let link = project.join("node_modules/.bin/mcp-time");
    symlink("../mcp-time/run", link).unwrap();

    assert_snapshot!(toolway(&home, &["list"]), @"
    exit: 0
    ----- stdout
    NAME   SCOPE    TYPE   STATE       TOOLS  DETAIL
    own    project  stdio  ⊘ disabled  -      `package.json` has appeared since `own`, which runs it, was approved
    start  project  stdio  ⊘ disabled  -      `package.json` has appeared since `start`, which runs it, was approved
    time   project  stdio  ⊘ disabled  -      `node_modules/mcp-time/package.json` has appeared since `time`, which runs it, was approved
    ----- stderr
    hint: 3 servers wait for your word; look at each with `toolway approve --all`
    ");
    assert!(!canary.exists(), "the repository's code ran");
}

#[test]
fn sec_05_an_approval_says_what_it_cannot_cover() {
    let home = TempHome::new();
    home.write(home.project().join("tools/a.py"), "1");
    let line = "exec python3 tools/*.py";
    let entries = [
        ("all", json!({"command": "bash", "args": ["-c", line]})),
        ("one", json!({"command": "python3", "args": ["tools/a.py"]})),
    ];
    home.write(".mcp.json", servers(&entries));
    assert_snapshot!(toolway(&home, &["approve", "all", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    server `all` from [PROJECT]/.mcp.json:3
      what it runs cannot be bound: `exec python3 tools/*.py` is worked out by a shell when it starts
    This runs on this machine, with your rights:
      bash -c 'exec python3 tools/*.py'
    approved `all`: [HOME]/.config/toolway/approvals.json:6
    ");
    assert_snapshot!(toolway(&home, &["approve", "one", "--yes"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    server `one` from [PROJECT]/.mcp.json:10
      your yes covers tools/a.py as it is now; a change asks again
    This runs on this machine, with your rights:
      python3 tools/a.py
    approved `one`: [HOME]/.config/toolway/approvals.json:17
    ");
}

#[test]
fn sec_05_the_screen_of_a_local_entry_says_where_it_starts() {
    let home = TempHome::new();
    home.write(home.project().join("tools/a.js"), "1");
    let entry = |cwd: Option<&str>| {
        let mut entry = json!({"command": "node", "args": ["tools/a.js"]});
        if let Some(cwd) = cwd {
            entry["cwd"] = json!(cwd);
        }
        servers(&[("own", entry)])
    };
    let local = ".toolway/settings.local.json";
    home.write(local, entry(None));
    assert_snapshot!(toolway(&home, &["approve", "own"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    server `own` from [PROJECT]/.toolway/settings.local.json:3
      it starts in a private directory of its own: a relative path leads to nothing of the project
    Approved, it counts as your own: no shield, your certificates, proxies and registries without credentials, and every variable and secret it names.
    This runs on this machine, with your rights:
      node tools/a.js
    error: nobody is there to confirm this
    hint: read the above, then run `toolway approve own --yes`
    ");
    home.write(local, entry(Some(".")));
    assert_snapshot!(toolway(&home, &["approve", "own"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    server `own` from [PROJECT]/.toolway/settings.local.json:3
      cwd: .
      your yes covers [PROJECT]/tools/a.js as it is now; a change asks again
    Approved, it counts as your own: no shield, your certificates, proxies and registries without credentials, and every variable and secret it names.
    This runs on this machine, with your rights:
      node tools/a.js
    error: nobody is there to confirm this
    hint: read the above, then run `toolway approve own --yes`
    ");
}
