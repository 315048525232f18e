//! Where programs are started: a person's own servers, hooks and commands run nothing that a
//! repository has lying about (SEC-48).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::marked::MARK;
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome};

use crate::support::{command, servers, toolway};
use crate::user_home::UserHome;

/// A repository that has something under every name that a program looks for where it starts.
struct Repository {
    home: TempHome,
}

impl Repository {
    fn new() -> Self {
        let home = TempHome::new();
        let canary = home.home().join("canary");
        let touch = format!("touch {}", canary.display());
        let project = home.project().to_path_buf();
        let python = format!("import os\nos.system('{touch}')\n");
        for module in ["mcp_server_time.py", "guard.py", "sitecustomize.py"] {
            home.write(project.join(module), &python);
        }
        for program in [
            "bin/x",
            "node_modules/.bin/mcp-server-planted",
            "uvx",
            "git",
        ] {
            let path = home.write(project.join(program), format!("#!/bin/sh\n{touch}\n"));
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        home.write(project.join("package.json"), r#"{"name": "planted"}"#);
        home.write(
            project.join(".git/config"),
            format!("[credential]\n\thelper = \"!{touch}\"\n"),
        );
        home.write(project.join(".git/HEAD"), "ref: refs/heads/main\n");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(project.join(".git").join(folder)).unwrap();
        }
        Self { home }
    }

    fn canary(&self) -> PathBuf {
        self.home.home().join("canary")
    }

    fn assert_untouched(&self, what: &str) {
        assert!(!self.canary().exists(), "{what} ran the repository's code");
    }
}

/// The entry of a server that tells where it was started.
fn telling() -> Value {
    ScriptedServer::new(Script::default()).entry()
}

/// What the server's tool `inspect` says about itself.
fn started_in(home: &TempHome, server: &str) -> PathBuf {
    let output = toolway(home, &["call", server, "inspect", "--select", ".cwd"]);
    place(home, &output.expect_code(0))
}

/// The directory that was printed, spelled out again.
fn place(home: &TempHome, output: &CommandOutput) -> PathBuf {
    let text = output.stdout.trim().trim_matches('"');
    let folders = [("[PROJECT]", home.project()), ("[HOME]", home.home())];
    let text = folders
        .into_iter()
        .fold(text.to_owned(), |text, (short, path)| {
            text.replace(short, &path.to_string_lossy())
        });
    PathBuf::from(text)
}

#[test]
fn sec_48_a_persons_server_runs_no_module_or_package_of_a_repository() {
    let repository = Repository::new();
    let home = &repository.home;
    home.write_settings(servers(&[
        (
            "module",
            json!({"command": "python3", "args": ["-m", "mcp_server_time"]}),
        ),
        (
            "package",
            json!({"command": "npx", "args": ["--no-install", "mcp-server-planted"]}),
        ),
        ("relative", json!({"command": "./bin/x"})),
        (
            "search",
            json!({"command": "uvx", "args": ["x"], "env": {"PATH": ":.:/usr/bin:/bin"}}),
        ),
    ]));
    toolway(home, &["list"]).expect_code(0);
    repository.assert_untouched("a server");
    for name in ["module", "package", "relative", "search"] {
        toolway(home, &["tools", name]);
        repository.assert_untouched(name);
    }
    // The control: started there, on the person's word, it is the repository's module that runs.
    home.write_settings(servers(&[(
        "module",
        json!({"command": "python3", "args": ["-m", "mcp_server_time"], "cwd": "${workspace}"}),
    )]));
    toolway(home, &["tools", "module"]);
    assert!(repository.canary().exists(), "the trap does not work");
}

#[test]
fn sec_48_a_hook_runs_no_module_of_a_repository() {
    let repository = Repository::new();
    let home = &repository.home;
    let settings = |line: &str| {
        let mut settings: Value = serde_json::from_str(&servers(&[("chaos", telling())])).unwrap();
        settings["permissions"] = json!({"allow": ["mcp__chaos"]});
        settings["hooks"] = json!({"PreToolUse": [{"matcher": "*", "hooks": [
            {"type": "command", "command": line}
        ]}]});
        settings.to_string()
    };
    home.write_settings(settings("python3 -m guard"));
    toolway(home, &["call", "chaos", "inspect"]);
    repository.assert_untouched("a hook");

    // It is told where the project is, twice.
    home.write_settings(settings(
        "cat > \"$HOME/told\"; test \"$PWD\" != \"$TOOLWAY_PROJECT_DIR\" || exit 2",
    ));
    toolway(home, &["call", "chaos", "inspect"]).expect_code(0);
    let told: Value = serde_json::from_str(&home.read(home.home().join("told"))).unwrap();
    assert_eq!(told["cwd"].as_str(), home.project().to_str());
}

#[test]
fn sec_48_a_command_that_prints_a_secret_asks_no_helper_of_a_repository() {
    let repository = Repository::new();
    let home = &repository.home;
    let line = "printf 'protocol=https\\nhost=example.com\\n\\n' | git credential fill";
    home.write_settings(servers(&[(
        "remote",
        json!({
            "type": "http", "url": "http://127.0.0.1:9/mcp",
            "headers": {"X-Key": format!("${{cmd:{line}}}")},
        }),
    )]));
    let mut run = command(home, &["tools", "remote"]);
    home.run(run.env("GIT_TERMINAL_PROMPT", "0"));
    repository.assert_untouched("a command");
    // The control, in the repository itself.
    let mut git = Command::new("sh");
    git.args(["-c", line]).current_dir(home.project());
    home.run(git.env("GIT_TERMINAL_PROMPT", "0").env("HOME", home.home()));
    assert!(repository.canary().exists(), "the trap does not work");
}

#[test]
fn sec_48_each_server_has_a_private_directory_of_its_own() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("one", telling()),
        ("two", telling()),
        ("my server!", telling()),
    ]));
    let places = ["one", "two", "my server!"].map(|name| started_in(&home, name));
    for (index, place) in places.iter().enumerate() {
        assert!(!place.starts_with(home.project()), "{place:?}");
        assert!(!places[..index].contains(place), "{place:?} is shared");
        let facts = fs::metadata(place).unwrap();
        assert_eq!(facts.mode() & 0o777, 0o700, "{place:?}");
        assert_eq!(fs::read_dir(place).unwrap().count(), 0, "{place:?}");
    }
    // What somebody put in its place is not entered.
    fs::remove_dir(&places[0]).unwrap();
    std::os::unix::fs::symlink(home.project(), &places[0]).unwrap();
    let refused = toolway(&home, &["tools", "one"]);
    let refused = refused.expect_code(4);
    assert!(refused.stderr.contains("private directory"), "{refused}");
}

#[test]
fn sec_48_behind_the_shield_nothing_can_be_left_for_another_server() {
    let user = UserHome::all().remove(0);
    if !user.can_shield() {
        return;
    }
    let home = TempHome::new();
    let entry = |shield: &str| {
        let script = Script {
            tampers: true,
            ..Script::default()
        };
        let mut entry = ScriptedServer::new(script).entry();
        entry["shield"] = json!(shield);
        entry
    };
    home.write_settings(servers(&[
        ("shielded", entry("required")),
        ("open", entry("off")),
    ]));
    let shielded = started_in(&home, "shielded");
    let open = started_in(&home, "open");
    for (folder, server, written) in [
        (&open, "shielded", false),
        (&shielded, "shielded", false),
        (&open, "open", true),
    ] {
        let path = folder.join("mcp_server_time.py");
        let arguments = json!({ "path": path, "text": "x" }).to_string();
        toolway(&home, &["call", server, "write", "--args", &arguments]);
        assert_eq!(path.exists(), written, "{server} in {folder:?}");
    }
}

#[test]
fn a_server_whose_subject_is_the_current_directory_can_be_started_there() {
    let home = TempHome::new();
    let mut here = telling();
    here["cwd"] = json!("${workspace}");
    home.write_settings(servers(&[("here", here)]));
    assert_eq!(started_in(&home, "here"), home.project());
    let below = home.project().join("below");
    fs::create_dir(&below).unwrap();
    let mut call = command(&home, &["call", "here", "inspect", "--select", ".cwd"]);
    let output = home.run(call.current_dir(&below)).expect_code(0);
    assert_eq!(place(&home, &output), below);
}

#[test]
fn what_is_typed_behind_two_dashes_runs_where_it_is_typed() {
    let home = TempHome::new();
    let entry = telling();
    let program = entry["command"].as_str().unwrap().to_owned();
    let args: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap();
    let mut words = vec![
        "call",
        "inspect",
        "--select",
        ".cwd",
        "--",
        program.as_str(),
    ];
    words.extend(args.iter().map(String::as_str));
    let output = toolway(&home, &words).expect_code(0);
    assert_eq!(place(&home, &output), home.project());
}

#[test]
fn adding_a_server_of_the_current_directory_says_how_it_is_started_there() {
    let home = TempHome::new();
    let add = |words: &[&str]| home.normalise(&toolway(&home, words).to_string());
    assert_snapshot!(add(&["add", "files", "--force", "-s", "user", "--", "npx", "-y", "server-filesystem@1.0.0", "."]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:3
    warning: `files` is started in a directory of its own, where `.` is not what it is here
    hint: in its place write '${workspace}' for the directory where Toolway runs, or [PROJECT] for this one
    ");
    home.write(home.project().join("server.py"), "");
    assert_snapshot!(add(&["add", "own", "--", "python3", "server.py"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    added `own` to the local scope: [PROJECT]/.toolway/settings.local.json:3
    warning: `own` is started in a directory of its own, where `server.py` is not what it is here
    hint: write [PROJECT]/server.py in its place
    ");
    assert_snapshot!(add(&["add", "git", "--force", "-s", "user", "--cwd", "${workspace}", "--", "mcp-server-git"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    added `git` to the user scope: [HOME]/.config/toolway/settings.json:8
    ");
    home.write(home.project().join("run.sh"), "");
    assert_snapshot!(add(&["add", "script", "-s", "user", "--", "./run.sh", "x"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    added `script` to the user scope: [HOME]/.config/toolway/settings.json:13
    ");
    let written: Value =
        serde_json::from_str(&home.read(home.config_home().join("settings.json"))).unwrap();
    let expected = home.project().join("run.sh");
    assert_eq!(
        written["mcpServers"]["script"]["command"].as_str(),
        expected.to_str()
    );
    // A project's entry means the project.
    assert_snapshot!(add(&["add", "shared", "-s", "project", "--", "./run.sh", "."]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    added `shared` to the project scope: [PROJECT]/.mcp.json:3
    ");
}

#[test]
fn sec_58_a_committed_local_entry_reaches_no_secret_by_the_flag_for_the_project() {
    let home = TempHome::new();
    let mut set = command(&home, &["vault", "set", "github"]);
    set.env("TOOLWAY_VAULT", "file");
    home.run_with_input(&mut set, MARK).expect_code(0);
    let entry = |value: &str| json!({"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X": value}});
    home.write(
        home.project().join(".toolway/settings.local.json"),
        servers(&[
            ("command", entry("${cmd:touch \"$HOME/canary\"; echo x}")),
            ("keychain", entry("${keychain:github}")),
            ("variable", entry("${TOKEN}")),
        ]),
    );
    let mut list = command(&home, &["list", "--approve-project-servers"]);
    list.env("TOOLWAY_VAULT", "file").env("TOKEN", MARK);
    let output = home.run(&mut list);
    assert_snapshot!(home.normalise(&output.to_string()), @r#"
    exit: 0
    ----- stdout
    NAME      SCOPE  TYPE  STATE       TOOLS  DETAIL
    command   local  http  ✘ failed    -      `headers.X` may not use `${cmd:touch …}`: nobody on this machine approved this entry
    keychain  local  http  ✘ failed    -      `headers.X` may not use `${keychain:github}`: nobody on this machine approved this entry
    variable  local  http  ⊘ disabled  -      a project's file may not read `TOKEN` from your environment without your word
    ----- stderr
    error: [PROJECT]/.toolway/settings.local.json:7: server `command`: `headers.X` may not use `${cmd:touch …}`: nobody on this machine approved this entry
    hint: if you wrote it, run `toolway approve command`
    error: [PROJECT]/.toolway/settings.local.json:14: server `keychain`: `headers.X` may not use `${keychain:github}`: nobody on this machine approved this entry
    hint: if you wrote it, run `toolway approve keychain`
    error: [PROJECT]/.toolway/settings.local.json:17: server `variable`: a project's file may not read `TOKEN` from your environment without your word
    hint: run `toolway approve variable --allow-env TOKEN`, or allow it to every repository that you trust unseen, in `[HOME]/.config/toolway/settings.json`: `"projectVariables": ["TOKEN"]` (`["*"]` allows all)
    "#);
    assert!(!home.home().join("canary").exists());
}
