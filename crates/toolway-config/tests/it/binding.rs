//! Which files of the repository an approval covers: every way in which an entry can make them
//! run, what is only data, and what is said about the rest.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_config::Flags;

use crate::{Stage, findings, server, table, word};

fn entry(command: &str, args: &[&str]) -> Value {
    json!({"command": command, "args": args})
}

/// Puts one server into the project's file.
fn bring(stage: &Stage, definition: &Value) {
    stage.project(&json!({"mcpServers": {"x": definition}}).to_string());
}

/// Whether a yes to an entry ends when a file of the repository is changed, or appears.
fn asks_again(stage: &Stage, definition: &Value, file: &str) -> [bool; 2] {
    let path = format!("home/repo/{file}");
    stage.write(&path, "1");
    bring(stage, definition);
    stage.approve("x", &["FOO"]);
    assert_eq!(word(&stage.plan(), "x"), "admitted", "{definition}");
    stage.write(&path, "2");
    let changed = word(&stage.plan(), "x") == "pending-approval";
    fs::remove_file(stage.root.join(&path)).unwrap();
    stage.approve("x", &["FOO"]);
    stage.write(&path, "1");
    let appeared = word(&stage.plan(), "x") == "pending-approval";
    fs::remove_file(stage.root.join(&path)).unwrap();
    [changed, appeared]
}

fn assert_bound(stage: &Stage, definition: &Value, file: &str) {
    let asked = asks_again(stage, definition, file);
    assert_eq!(asked, [true, true], "{file} of {definition}");
}

#[test]
fn sec_05_a_script_is_bound_whatever_its_name_where_a_program_takes_one() {
    let stage = Stage::new();
    for (command, args, file) in [
        ("python3", &["server"][..], "server"),
        ("python3.12", &["-u", "-W", "ignore", "server"], "server"),
        ("/usr/bin/env", &["-i", "python3", "server"], "server"),
        ("python3", &["app.zip"], "app.zip"),
        ("bash", &["tools/run.txt"], "tools/run.txt"),
        ("bash", &["-o", "pipefail", "run.txt", "x"], "run.txt"),
        ("bash", &["-c", "python3 < server.txt"], "server.txt"),
        ("bash", &["-c", "cd sub; . ./set.txt"], "set.txt"),
        ("node", &["--import", "./hook", "start"], "hook"),
        ("node", &["--import", "./hook", "start"], "start"),
        ("timeout", &["5", "npx", "tsx", "server"], "server"),
        ("deno", &["run", "-A", "server"], "server"),
        ("uv", &["run", "--directory", "sub", "server"], "sub/server"),
        ("awk", &["-fprogram"], "program"),
        ("php", &["-f", "program"], "program"),
    ] {
        fs::create_dir_all(stage.root.join("home/repo/sub")).unwrap();
        assert_bound(&stage, &entry(command, args), file);
    }
}

#[test]
fn sec_05_a_script_is_bound_behind_variables_and_their_defaults() {
    let mut stage = Stage::new();
    let script = "tools/a.py";
    for word in [
        "${workspace}/tools/a.py",
        "${FOO:-tools/a.py}",
        "${FOO:-tools}/${TMPDIR:-a.py}",
        "./${FOO:-deep}/../tools/a.py",
    ] {
        assert_bound(&stage, &entry("python3", &[word]), script);
    }
    stage.set("FOO", "tools");
    assert_bound(&stage, &entry("python3", &["${FOO:-x}/a.py"]), script);
    let mut module = entry("python3", &["-m", "http_x"]);
    module["env"] = json!({"PYTHONPATH": "${workspace}/lib"});
    assert_bound(&stage, &module, "lib/http_x.py");
    let mut inside = entry("python3", &["a.py"]);
    inside["cwd"] = json!("${workspace}");
    assert_bound(&stage, &inside, "a.py");
}

#[test]
fn sec_05_the_workspace_is_bound_where_one_stands_and_no_place_unsays_another() {
    let mut stage = Stage::new();
    stage.write("home/repo/a.py", "1");
    stage.write("home/repo/deep/a.py", "1");
    bring(&stage, &entry("python3", &["${workspace}/a.py"]));
    stage.approve("x", &[]);
    assert_eq!(word(&stage.plan(), "x"), "admitted");
    stage.cwd = stage.root.join("home/repo/deep");
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    stage.approve("x", &[]);
    assert_eq!(word(&stage.plan(), "x"), "admitted");
    stage.cwd = stage.root.join("home/repo");
    assert_eq!(word(&stage.plan(), "x"), "admitted", "both were seen");
    stage.write("home/repo/deep/a.py", "2");
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
}

#[test]
fn sec_05_a_script_is_bound_however_it_is_spelled() {
    let mut stage = Stage::new();
    let repo = stage.root.join("home/repo").display().to_string();
    stage.set("PWD", &repo);
    let url = format!("file://{repo}/x.mjs?a=b");
    for (command, args, file) in [
        ("fastmcp", &["run", "server.py:mcp"][..], "server.py"),
        ("uvicorn", &["pkg.server:app"], "pkg/server.py"),
        ("uvicorn", &["pkg.server:app"], "src/pkg/server.py"),
        ("gunicorn", &["pkg:app"], "pkg/__init__.py"),
        ("python3", &["-c", "from pkg.srv import main"], "pkg/srv.py"),
        ("python3", &["-c", "import pkg"], "pkg/__init__.py"),
        (
            "python3",
            &["-c", "import runpy; runpy.run_module('pkg.srv')"],
            "pkg/srv.py",
        ),
        ("go", &["run", "server.go"], "server.go"),
        ("java", &["Server.java"], "Server.java"),
        ("java", &["-cp", "out", "a.Main"], "out/a/Main.class"),
        ("Rscript", &["server.R"], "server.R"),
        ("julia", &["server.jl"], "server.jl"),
        ("elixir", &["server.exs"], "server.exs"),
        ("dart", &["server.dart"], "server.dart"),
        ("kotlin", &["server.main.kts"], "server.main.kts"),
        ("env", &["-Csub/deep", "python3", "a.py"], "sub/deep/a.py"),
        ("env", &["-Csub/deep", "npm", "start"], "sub/deep/server.js"),
        ("perl", &["-Itools", "-MSrv", "-e1"], "tools/Srv.pm"),
        ("perl", &["-Itools", "-MA::Srv", "-e1"], "tools/A/Srv.pm"),
        ("php", &["-fserver.php"], "server.php"),
        ("ruby", &["-r./server.rb", "-e", "1"], "server.rb"),
        ("ruby", &["-Ilib", "-rserver", "-e1"], "lib/server.rb"),
        ("node", &["--import", &url], "x.mjs"),
        ("node", &["--import=file:./x.mjs"], "x.mjs"),
        ("bash", &["-c", "python3 $PWD/tools/a.py"], "tools/a.py"),
        ("bash", &["-c", "python3 ${PWD}/tools/a.py"], "tools/a.py"),
        ("bash", &["-lc", "python3 too\"ls\"/a.py"], "tools/a.py"),
        ("bash", &["-c", "python3 'tools'/a\\.py"], "tools/a.py"),
        ("bash", &["-c", "python3 ~/repo/tools/a.py"], "tools/a.py"),
        ("node", &["--env-file=./start.env", "/x.js"], "start.env"),
        (
            "docker",
            &["run", "-v", "./src:/src", "img", "/src/server.js"],
            "src/server.js",
        ),
        (
            "docker",
            &[
                "run",
                "--mount=type=bind,source=./src,target=/app",
                "img",
                "/app/server",
            ],
            "src/server",
        ),
    ] {
        for folder in ["sub/deep", "tools", "lib", "src", "out"] {
            fs::create_dir_all(stage.root.join("home/repo").join(folder)).unwrap();
        }
        assert_bound(&stage, &entry(command, args), file);
    }
}

#[test]
fn sec_05_what_a_program_looks_for_by_itself_is_bound() {
    let mut stage = Stage::new();
    for (command, args, file) in [
        ("npm", &["start"][..], ".npmrc"),
        ("npx", &["-y", "mcp-time@1.2.3"], ".npmrc"),
        (
            "npx",
            &["-y", "mcp-time@1.2.3"],
            "node_modules/.bin/mcp-time",
        ),
        (
            "npx",
            &["-y", "@a/mcp-time@1"],
            "node_modules/.bin/mcp-time",
        ),
        ("bunx", &["mcp-time"], "node_modules/.bin/mcp-time"),
        ("bun", &["run", "start"], "bunfig.toml"),
        ("yarn", &["start"], ".yarnrc.yml"),
        ("deno", &["task", "start"], "deno.json"),
        ("deno", &["task", "start"], "deno.jsonc"),
        ("uv", &["run", "my-server"], "pyproject.toml"),
        ("uv", &["run", "my-server"], "uv.toml"),
        ("uvx", &["--from", "sub", "my-server"], "sub/pyproject.toml"),
        ("just", &["serve"], "justfile"),
        ("make", &["-s", "server"], "Makefile"),
        ("make", &["-s", "-C", "sub", "server"], "sub/Makefile"),
        ("make", &["-f", "rules", "server"], "rules"),
        ("bash", &["-c", "exec make server"], "Makefile"),
        ("cargo", &["run"], "Cargo.toml"),
        ("docker", &["compose", "up"], "compose.yaml"),
    ] {
        fs::create_dir_all(stage.root.join("home/repo/sub")).unwrap();
        assert_bound(&stage, &entry(command, args), file);
    }
    // And above the directory in which it starts, as far as the repository goes.
    let mut below = entry("make", &["server"]);
    below["cwd"] = json!("deep");
    assert_bound(&stage, &below, "Makefile");
    stage.cwd = stage.root.join("home/repo/deep");
    assert_bound(&stage, &entry("npx", &["x"]), ".npmrc");
}

#[test]
fn sec_05_a_package_that_was_approved_by_its_name_does_not_become_the_repositorys() {
    let stage = Stage::new();
    stage.project(
        r#"{"mcpServers": {
  "alias": {"command": "npx", "args": ["-y", "mcp-alias@1.2.3"]},
  "own": {"command": "npx", "args": ["-y", "selfpkg"]},
  "time": {"command": "npx", "args": ["-y", "mcp-time@1.2.3"]}
}}"#,
    );
    let manifest = |name: &str| {
        json!({"name": name, "version": "1.2.3", "bin": {"run": "run.py"}}).to_string()
    };
    stage.write("home/repo/package.json", &manifest("other"));
    for name in ["alias", "own", "time"] {
        stage.approve(name, &[]);
    }
    // What is common in such a repository says nothing about these packages.
    stage.write(
        "home/repo/node_modules/left/package.json",
        &manifest("left"),
    );
    stage.write("home/repo/package.json", &manifest("renamed"));
    assert_eq!(stage.plan().admitted().count(), 3);

    let planted = "home/repo/node_modules/mcp-time";
    stage.write(&format!("{planted}/package.json"), &manifest("mcp-time"));
    stage.write(&format!("{planted}/run.py"), "1");
    stage.write(
        "home/repo/node_modules/left/node_modules/@any/thing/package.json",
        &manifest("mcp-alias"),
    );
    stage.write("home/repo/package.json", &manifest("selfpkg"));
    assert_snapshot!(table(&stage, &stage.plan()), @"
    alias [project] pending-approval: `node_modules/left/node_modules/@any/thing/package.json` has appeared since `alias`, which runs it, was approved
    own [project] pending-approval: `package.json` has appeared since `own`, which runs it, was approved
    time [project] pending-approval: `node_modules/mcp-time/package.json` has appeared since `time`, which runs it, was approved
    ");
    stage.approve("time", &[]);
    assert_eq!(word(&stage.plan(), "time"), "admitted");
    stage.write(&format!("{planted}/run.py"), "2");
    assert_eq!(word(&stage.plan(), "time"), "pending-approval");
}

#[test]
fn sec_05_what_the_line_of_a_script_in_a_manifest_names_is_bound() {
    let stage = Stage::new();
    let scripts = json!({"scripts": {"start": "NODE_ENV=x node build/main", "other": "node o.js"}});
    let manifest = stage.write("home/repo/package.json", &scripts.to_string());
    assert_bound(&stage, &entry("node", &["--run", "start"]), "build/main");
    for args in [&["start"][..], &["run", "start"], &["--silent", "start"]] {
        for command in ["npm", "pnpm", "yarn", "bun"] {
            assert_bound(&stage, &entry(command, args), "build/main");
        }
    }
    bring(&stage, &entry("npm", &["--silent", "start"]));
    stage.approve("x", &[]);
    fs::write(
        &manifest,
        scripts.to_string().replace("node build", "python3 build"),
    )
    .unwrap();
    assert_snapshot!(table(&stage, &stage.plan()), @"x [project] pending-approval: `package.json` has changed since `x`, which runs it, was approved");
    fs::remove_file(&manifest).unwrap();
    stage.write(
        "home/repo/deno.json",
        r#"{"tasks": {"go": "deno run -A ./serve"}}"#,
    );
    assert_bound(&stage, &entry("deno", &["task", "go"]), "serve");
    stage.write(
        "home/repo/pyproject.toml",
        "[project.scripts]\nmy-server = \"pkg.server:main\"\n",
    );
    let started = entry("uv", &["run", "my-server"]);
    assert_bound(&stage, &started, "src/pkg/server.py");
    assert_bound(&stage, &started, "pkg/server.py");
    // A directory that is run is what its manifest says.
    stage.write("home/repo/app/package.json", r#"{"main": "lib/start"}"#);
    assert_bound(&stage, &entry("node", &["app"]), "app/lib/start.js");
}

#[test]
fn ordinary_servers_are_not_asked_about_when_plain_data_changes() {
    let mut stage = Stage::new();
    let outside = stage
        .write("home/elsewhere/srv.py", "1")
        .display()
        .to_string();
    stage.set("FOO", "data.txt");
    for (command, args) in [
        ("python3", &[&*outside, "."][..]),
        ("python3", &["-u", &outside, "--log", "data.txt"]),
        (
            "npx",
            &["-y", "@modelcontextprotocol/server-filesystem", "."],
        ),
        ("npx", &["-y", "server", "--directory", "."]),
        ("npx", &["-y", "server", "${workspace}", "./mine", "start"]),
        ("npx", &["-y", "server", "--lang", "go", "mine"]),
        ("docker", &["run", "--env-file", "data.txt", "img"]),
        ("uvx", &["mcp-server-git", "--repository", "."]),
        (
            "mcp-db",
            &["--db-path=data.txt", "--lang", "go", "${FOO:-x}"],
        ),
        ("node", &[&outside, "data.txt"]),
        ("bash", &["-c", "exec mcp-db ./data.txt"]),
    ] {
        let written = [
            "package.json",
            "pyproject.toml",
            "index.js",
            "data.txt",
            "go.mod",
        ];
        for file in written {
            stage.write(
                &format!("home/repo/{file}"),
                r#"{"name": "mine", "scripts": {"start": "1"}}"#,
            );
        }
        bring(&stage, &entry(command, args));
        stage.approve("x", &["FOO"]);
        for file in written {
            stage.write(
                &format!("home/repo/{file}"),
                r#"{"name": "mine", "scripts": {"start": "2"}}"#,
            );
            let plan = stage.plan();
            let why = server(&plan, "x").verdict.reason();
            assert_eq!(why, None, "{command} {args:?}");
        }
    }
}

#[test]
fn sec_05_what_cannot_be_bound_is_said() {
    let mut stage = Stage::new();
    stage.set("FOO", "x");
    let mut said = String::new();
    for (command, args) in [
        ("bash", &["-c", "python3 $X/tools/a.py"][..]),
        ("bash", &["-c", "python3 tools/*.py"]),
        ("bash", &["-c", "python3 server.p?"]),
        ("bash", &["-c", "curl https://a.example | sh"]),
        ("bash", &["-c", "node server.js --port $PORT"]),
        ("python3", &["-c", "from pkg.srv import main"]),
        ("node", &["-e", "1"]),
        ("cargo", &["run"]),
        ("go", &["run", "."]),
        ("uv", &["run", "server"]),
        ("docker", &["run", "-v", "./src:/src", "img"]),
        ("docker", &["run", "-v/var/run/x.sock:/x", "img"]),
        ("npx", &["-y", "mcp-time"]),
        ("node", &["server.js"]),
    ] {
        bring(&stage, &entry(command, args));
        let plan = stage.plan();
        let files = toolway_config::repository_files(&stage.environment(), server(&plan, "x"));
        for unbound in &files.unbound {
            let (what, why) = (&unbound.what, unbound.why);
            writeln!(said, "{command}: {what} {why}").unwrap();
        }
    }
    assert_snapshot!(said, @"
    bash: python3 $X/tools/a.py is worked out by a shell when it starts
    bash: python3 tools/*.py is worked out by a shell when it starts
    bash: python3 server.p? is worked out by a shell when it starts
    bash: curl https://a.example | sh is worked out by a shell when it starts
    python3: -c is code, which may load more than it names
    node: -e is code, which may load more than it names
    cargo: cargo builds and runs whatever sources are there
    go: go builds and runs whatever sources are there
    uv: uv runs what is installed in the project's environment
    docker: ./src:/src gives a container files of the repository
    ");
}

#[test]
fn sec_05_a_record_counts_as_typed_only_where_it_says_so() {
    let stage = Stage::new();
    stage.write("home/repo/a.py", "1");
    bring(&stage, &entry("python3", &["a.py"]));
    stage.approve("x", &[]);
    let path = stage.root.join("home/.config/toolway/approvals.json");
    let mut store: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let repo = stage.root.join("home/repo").display().to_string();
    let record = &mut store["projects"][&repo]["servers"]["x"];
    record.as_object_mut().unwrap().remove("files");
    fs::write(&path, store.to_string()).unwrap();
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    store["projects"][&repo]["servers"]["x"]["typed"] = json!(true);
    fs::write(&path, store.to_string()).unwrap();
    assert_eq!(word(&stage.plan(), "x"), "admitted");
}

#[test]
fn sec_05_a_script_without_a_name_is_bound_through_links_and_rights() {
    let stage = Stage::new();
    let run = stage.write("home/repo/run", "1");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    bring(&stage, &entry("launcher", &["run"]));
    stage.approve("x", &[]);
    // Losing the right to run is a change too.
    fs::set_permissions(&run, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        word(&stage.plan(), "x"),
        "admitted",
        "what is in it is the same"
    );
    fs::write(&run, "2").unwrap();
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
    let other = stage.write("home/repo/other", "1");
    bring(&stage, &entry("python3", &["link"]));
    let link = stage.root.join("home/repo/link");
    symlink(&other, &link).unwrap();
    stage.approve("x", &[]);
    fs::write(&other, "2").unwrap();
    assert_eq!(word(&stage.plan(), "x"), "pending-approval");
}

#[test]
fn sec_13_a_repository_inside_another_reads_no_token_of_the_outer_one() {
    let mut stage = Stage::new();
    stage.write("home/repo/mine/api.token", "x");
    stage.write("home/repo/evil/own/token", "x");
    fs::create_dir_all(stage.root.join("home/repo/evil/.git")).unwrap();
    stage.cwd = stage.root.join("home/repo/evil");
    let file = "home/repo/evil/.mcp.json";
    let entry = |path: &str| {
        json!({"mcpServers": {"far": {
            "type": "http", "url": "https://example.com/", "sessionTokenFile": path}}})
        .to_string()
    };
    let approving = Flags {
        approve_project_servers: true,
        ..Flags::default()
    };
    stage.write(file, &entry("../mine/api.token"));
    let plan = stage.plan_with(&approving);
    assert_snapshot!(findings(&stage, &plan), @"home/repo/evil/.mcp.json:1 the file of `sessionTokenFile` lies outside of the repository");
    stage.approve("far", &[]);
    assert_eq!(word(&stage.plan(), "far"), "invalid");
    stage.write(file, &entry("own/token"));
    stage.approve("far", &[]);
    assert_eq!(word(&stage.plan(), "far"), "admitted");
    // Without a mark of its own it is part of the outer one; then a person must have seen it.
    fs::remove_dir(stage.root.join("home/repo/evil/.git")).unwrap();
    toolway_config::reset(&stage.environment()).unwrap();
    stage.write(file, &entry("../mine/api.token"));
    assert_eq!(word(&stage.plan_with(&approving), "far"), "invalid");
    stage.write(file, &entry("own/../own/token"));
    assert_eq!(word(&stage.plan_with(&approving), "far"), "invalid");
    stage.write(file, &entry("../mine/api.token"));
    stage.approve("far", &[]);
    assert_eq!(word(&stage.plan(), "far"), "admitted");
}

#[test]
fn sec_05_what_starts_the_commands_of_packages_is_bound() {
    let stage = Stage::new();
    for command in ["node", "sh"] {
        let file = format!("node_modules/.bin/{command}");
        assert_bound(&stage, &entry("npx", &["-y", "mcp-time@1.2.3"]), &file);
    }
    let start = json!({"scripts": {"start": "tsx server.ts && mcp-srv --x"}}).to_string();
    for text in [start.clone(), format!("\u{feff}{start}")] {
        stage.write("home/repo/package.json", &text);
        for command in ["tsx", "mcp-srv"] {
            let file = format!("node_modules/.bin/{command}");
            assert_bound(&stage, &entry("npm", &["start"]), &file);
        }
    }
}

#[test]
fn sec_05_programs_are_followed_to_where_they_really_are() {
    let stage = Stage::new();
    fs::create_dir_all(stage.root.join("home/repo/a/b")).unwrap();
    symlink("a/b", stage.root.join("home/repo/cur")).unwrap();
    let start = json!({"scripts": {"start": "node srv.js"}}).to_string();
    stage.write("home/repo/a/package.json", &start);
    for place in ["cur", "cur/.."] {
        let mut definition = entry("npm", &["-s", "start"]);
        definition["cwd"] = json!(place);
        assert_bound(&stage, &definition, "a/srv.js");
    }
}

#[test]
fn sec_30_links_of_a_repository_lead_no_search_in_circles() {
    let stage = Stage::new();
    for name in ["l", "m"] {
        let folder = stage.root.join("home/repo/node_modules").join(name);
        fs::create_dir_all(&folder).unwrap();
        symlink("..", folder.join("node_modules")).unwrap();
    }
    bring(&stage, &entry("npx", &["-y", "mcp-time"]));
    stage.approve("x", &[]);
    assert_eq!(word(&stage.plan(), "x"), "admitted");
}
