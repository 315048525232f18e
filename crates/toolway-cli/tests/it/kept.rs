//! What servers offered is kept between runs: who answers from it starts nobody, and nothing is
//! decided by it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::patience::eventually_blocking;
use toolway_testkit::{Script, ScriptedServer, TempHome, marked};

use crate::support::{servers, toolway};

/// A server that leaves a line in a file at every start.
struct Counted {
    home: TempHome,
    starts: PathBuf,
}

impl Counted {
    fn new(script: Script) -> Self {
        let home = TempHome::new();
        let starts = home.home().join("starts");
        let counted = Self { home, starts };
        counted.configure(&counted.entry(script));
        counted
    }

    fn entry(&self, script: Script) -> Value {
        let count = "echo start >> \"$0\"; exec \"$@\"";
        let server = ScriptedServer::new(script);
        let mut args = vec!["-c".to_owned(), count.to_owned()];
        args.push(self.starts.display().to_string());
        args.push(ScriptedServer::program().display().to_string());
        args.extend(server.args());
        json!({ "command": "sh", "args": args })
    }

    fn configure(&self, entry: &Value) {
        self.home
            .write_settings(servers(&[("chaos", entry.clone())]));
    }

    fn starts(&self) -> usize {
        fs::read_to_string(&self.starts).map_or(0, |text| text.lines().count())
    }

    /// What is kept, file by file.
    fn kept(&self) -> Vec<PathBuf> {
        let folder = self.home.config_home().join("state/catalogue");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|end| end == "json"));
        files
    }

    fn tab(&self, line: &str) -> Vec<String> {
        let output = toolway(&self.home, &["__complete", "zsh", line]).expect_code(0);
        output.stdout.lines().map(str::to_owned).collect()
    }
}

fn make_older(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

#[test]
fn a_tab_that_knows_the_answer_starts_no_server() {
    let counted = Counted::new(Script::default());
    toolway(&counted.home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    assert_eq!(counted.starts(), 1);
    assert_eq!(counted.tab("toolway call chaos ec"), ["echo"]);
    assert_eq!(counted.tab("toolway call chaos echo "), ["text="]);
    assert_eq!(
        counted.tab("toolway call mcp__chaos__ec"),
        ["mcp__chaos__echo"]
    );
    assert_eq!(counted.starts(), 1, "nobody was started for a tab");
}

#[test]
fn tools_a_search_and_the_list_answer_from_what_is_kept() {
    let counted = Counted::new(Script::default());
    let home = &counted.home;
    assert_snapshot!(toolway(home, &["tools", "chaos", "--cached"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: nothing is kept of server `chaos` yet
    hint: ask it with `toolway tools chaos`
    ");
    assert_snapshot!(toolway(home, &["list", "--cached"]), @"
    exit: 0
    ----- stdout
    NAME   SCOPE  TYPE   STATE      TOOLS  DETAIL
    chaos  user   stdio  · pending  -      nothing is kept of it yet
    ----- stderr
    ");
    assert_eq!(counted.starts(), 0);
    toolway(home, &["tools"]).expect_code(0);
    assert_snapshot!(toolway(home, &["tools", "--cached", "--search", "again"]), @"
    exit: 0
    ----- stdout
    NAME              DESCRIPTION
    mcp__chaos__echo  Says it again
    ----- stderr
    as of less than a minute ago; without `--cached` the servers are asked
    ");
    assert_snapshot!(toolway(home, &["list", "--cached"]), @"
    exit: 0
    ----- stdout
    NAME   SCOPE  TYPE   STATE      TOOLS  DETAIL
    chaos  user   stdio  · pending  8      as of less than a minute ago
    ----- stderr
    ");
    let live = toolway(home, &["tools", "--json"]).expect_code(0).json();
    let mut kept = toolway(home, &["tools", "--json", "--cached"])
        .expect_code(0)
        .json();
    let asked = kept.as_object_mut().unwrap().shift_remove("asked").unwrap();
    assert_eq!(kept, live, "the same catalogue");
    assert_eq!(asked[0]["server"], "chaos");
    assert!(asked[0]["secondsAgo"].as_u64().unwrap() < 60, "{asked}");
    let listed = toolway(home, &["list", "--json", "--cached"]).json();
    assert_eq!(listed["servers"][0]["tools"], 8);
    assert!(listed["servers"][0]["secondsAgo"].is_u64(), "{listed}");
    assert_eq!(counted.starts(), 2, "only what connects starts a server");
}

#[test]
fn what_is_kept_belongs_to_one_definition() {
    let counted = Counted::new(Script::default());
    let mut entry = counted.entry(Script::default());
    toolway(&counted.home, &["tools"]).expect_code(0);
    for (name, value) in [("env", json!({ "ACCOUNT": "other" })), ("cwd", json!("/"))] {
        entry[name] = value;
        counted.configure(&entry);
        let output = toolway(&counted.home, &["tools", "chaos", "--cached"]);
        let output = output.expect_code(4);
        assert!(
            output.stderr.contains("nothing is kept"),
            "{name}: {output}"
        );
    }
}

#[test]
fn an_entry_that_may_not_connect_shows_nothing_of_what_is_kept() {
    let counted = Counted::new(Script::default());
    let home = &counted.home;
    let entry = counted.entry(Script::default());
    let silent = |why: &str| {
        let listed = toolway(home, &["list", "--cached", "--json"]).json();
        assert_eq!(
            listed["servers"][0]["tools"],
            Value::Null,
            "{why}: {listed}"
        );
        let tools = toolway(home, &["tools", "--cached", "--json"]).json();
        assert_eq!(tools["tools"], json!([]), "{why}");
        assert_eq!(counted.tab("toolway call chaos ec"), [""; 0], "{why}");
    };
    toolway(home, &["tools", "chaos"]).expect_code(0);
    assert_eq!(counted.tab("toolway call chaos ec"), ["echo"]);

    let mut off = entry.clone();
    off["disabled"] = json!(true);
    counted.configure(&off);
    silent("switched off");

    counted.configure(&entry);
    let policy = json!({ "deniedMcpServers": [{ "serverName": "chaos" }] });
    let policy = home.write(
        home.system().join("managed-settings.json"),
        policy.to_string(),
    );
    silent("denied by policy");
    fs::remove_file(policy).unwrap();

    home.write_settings("{}");
    home.write(".mcp.json", servers(&[("chaos", entry)]));
    silent("not approved");
    assert_eq!(counted.starts(), 1);
}

#[test]
fn what_is_kept_is_private_and_holds_no_secret() {
    let home = TempHome::new();
    // It says its key in a description, where nobody expects it.
    let script = home.write("server.py", CHATTERBOX);
    let entry = json!({
        "command": "python3",
        "args": ["-u", script],
        // What is not ASCII is written in escapes.
        "env": { "SHOP_KEY": marked!("kept-catalogue-"), "ODD": "p\u{e4}ssword-0123456789" },
    });
    home.write_settings(servers(&[("shop", entry)]));
    home.run_showing_secrets(&mut crate::support::command(&home, &["tools"]));
    let kept = toolway(&home, &["tools", "shop", "--cached"]).expect_code(0);
    assert!(
        kept.stdout.contains("my key is [redacted] or [redacted]"),
        "{kept}"
    );
    let folder = home.config_home().join("state/catalogue");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for file in fs::read_dir(&folder).unwrap().flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    home.assert_no_secrets();
}

const CHATTERBOX: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"},
        },
        "tools/list": {"tools": [{
            "name": "buy",
            "description": "my key is " + os.environ["SHOP_KEY"] + " or " + os.environ["ODD"],
            "inputSchema": {"type": "object"},
        }]},
    }.get(message["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

#[test]
fn a_call_goes_by_what_the_server_offers_now() {
    let counted = Counted::new(Script::default());
    let home = &counted.home;
    toolway(home, &["tools"]).expect_code(0);
    let [file] = &counted.kept()[..] else {
        panic!("{:?}", counted.kept());
    };
    // Somebody who can write the file lets a tool take a number, and makes up another one.
    let text = home.read(file);
    let text = text
        .replace("\"string\"", "\"number\"")
        .replace("\"fail\"", "\"\\u001b[31mfree\"");
    fs::write(file, text).unwrap();
    let shown = toolway(home, &["tools", "--cached"]).expect_code(0);
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
    let echoed = toolway(home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    assert_eq!(echoed.stdout.trim(), "hello");
    toolway(home, &["call", "chaos", "free"]).expect_code(2);
    // What was made up is gone with the next run that connected.
    toolway(home, &["call", "chaos", "echo", "text=hello"]).expect_code(0);
    let kept = toolway(home, &["tools", "--cached"]).expect_code(0);
    assert!(kept.stdout.contains("mcp__chaos__fail"), "{kept}");
}

#[test]
fn a_server_too_slow_for_a_tab_is_asked_behind_it() {
    let counted = Counted::new(Script {
        start_delay_ms: 2_500,
        ..Script::default()
    });
    assert_eq!(counted.tab("toolway call chaos ec"), [""; 0]);
    eventually_blocking(|| match counted.kept().len() {
        1 => Ok(()),
        _ => Err("nothing is kept".to_owned()),
    });
    let starts = counted.starts();
    assert_eq!(counted.tab("toolway call chaos ec"), ["echo"]);
    assert_eq!(counted.starts(), starts);
}

#[test]
fn what_is_old_is_shown_at_once_and_asked_for_behind() {
    let counted = Counted::new(Script::default());
    toolway(&counted.home, &["tools"]).expect_code(0);
    let [file] = &counted.kept()[..] else {
        panic!("{:?}", counted.kept());
    };
    let age = || {
        fs::metadata(file)
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap()
    };
    make_older(file, Duration::from_hours(3));
    assert_eq!(counted.tab("toolway call chaos ec"), ["echo"]);
    eventually_blocking(|| match age() {
        age if age < Duration::from_mins(1) => Ok(()),
        age => Err(format!("{age:?}")),
    });
    assert_eq!(counted.starts(), 2);
    make_older(file, Duration::from_hours(31 * 24));
    let output = toolway(&counted.home, &["tools", "chaos", "--cached"]).expect_code(4);
    assert!(output.stderr.contains("nothing is kept"), "{output}");
}

#[test]
fn a_slip_in_a_tools_name_is_noticed_by_those_who_ask_nobody() {
    let counted = Counted::new(Script::default());
    // Nothing is known of it yet.
    let output = toolway(&counted.home, &["explain", "chaos", "ecko"]).expect_code(0);
    assert_eq!(output.stderr, "");
    toolway(&counted.home, &["tools"]).expect_code(0);
    for command in ["explain", "permissions"] {
        let output = toolway(&counted.home, &[command, "chaos", "ecko"]).expect_code(0);
        assert_eq!(
            output.stderr,
            "warning: server `chaos` offered no tool `ecko` when it was last asked\n\
             hint: did you mean `echo`?\n",
            "{command}"
        );
        for tool in ["echo", "ReadMcpResource"] {
            let output = toolway(&counted.home, &[command, "chaos", tool]).expect_code(0);
            assert_eq!(output.stderr, "", "{command} {tool}");
        }
    }
    assert_eq!(counted.starts(), 1);
}
