//! Programs of others as clients of `toolway serve`: MCP Inspector, mcporter, Claude Code and Codex.
//! None of them needs an account for what is done here.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome, peers};

use super::clients::{expected, toured};
use crate::gateway::{Gateway, started_by_clients};
use crate::support::program;

/// A program of npm that wants a newer Node.js than others here.
fn newer_node(home: &TempHome, script: &str) -> Command {
    let mut command = home.command(peers::newer_node());
    command.arg(peers::dir().join("programs/node_modules").join(script));
    command
}

fn texts(list: &Value, member: &str) -> Value {
    let items = list.as_array().unwrap_or_else(|| panic!("{list}")).iter();
    let mut texts: Vec<&str> = items.map(|it| it[member].as_str().unwrap()).collect();
    texts.sort_unstable();
    json!(texts)
}

/// MCP Inspector without its page.
struct Inspector<'a> {
    home: &'a TempHome,
    target: Vec<String>,
}

impl Inspector<'_> {
    fn run(&self, words: &[&str]) -> CommandOutput {
        let script = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let mut command = newer_node(self.home, script);
        command.arg("--cli").args(&self.target).args(words);
        self.home.run(&mut command)
    }

    /// The answer to a request.
    fn ask(&self, method: &str, words: &[&str]) -> Value {
        let mut all = vec!["--method", method];
        all.extend(words);
        self.run(&all).expect_code(0).json()
    }

    fn tour(&self) {
        let expected = expected();
        assert_eq!(
            texts(&self.ask("tools/list", &[])["tools"], "name"),
            expected["tools"]
        );
        assert_eq!(
            texts(&self.ask("prompts/list", &[])["prompts"], "name"),
            expected["prompts"]
        );
        let resources = &self.ask("resources/list", &[])["resources"];
        assert_eq!(texts(resources, "uri"), expected["resources"]);
        let read = self.ask("resources/read", &["--uri", "chaos:own"]);
        assert_eq!(read["contents"], expected["read"]);
        let words = ["--prompt-name", "chaos__greet", "--prompt-args", "who=Ada"];
        assert_eq!(
            self.ask("prompts/get", &words)["messages"],
            expected["prompt"]
        );
        let words = [
            "--tool-name",
            "everything__echo",
            "--tool-arg",
            "message=hi",
        ];
        let echo = self.ask("tools/call", &words);
        assert_eq!(
            echo["content"],
            json!([{ "type": "text", "text": "Echo: hi" }])
        );
        let failed = self.run(&["--method", "tools/call", "--tool-name", "chaos__fail"]);
        assert_ne!(failed.code, Some(0), "{failed}");
        assert!(failed.stdout.contains("failed as asked"), "{failed}");
    }
}

#[test]
fn inspector_over_stdio() {
    let home = toured();
    let target = ["serve", "--wait", "30"].map(str::to_owned);
    let target = [vec![program().to_owned()], target.to_vec()].concat();
    Inspector {
        home: &home,
        target,
    }
    .tour();
}

#[test]
fn inspector_over_http() {
    let home = toured();
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let header = format!("Authorization: Bearer {}", gateway.token);
    let target = [
        gateway.url.as_str(),
        "--transport",
        "http",
        "--header",
        &header,
    ];
    let target = target.map(str::to_owned).to_vec();
    Inspector {
        home: &home,
        target,
    }
    .tour();
}

#[test]
fn mcporter_over_stdio_and_http() {
    let home = toured();
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let config = json!({ "mcpServers": {
        "local": started_by_clients(&home, &["--wait", "30"]),
        "remote": gateway.entry(),
    } });
    let config = home.write("mcporter.json", config.to_string());
    let mcporter = |words: &[&str]| {
        let mut command = newer_node(&home, "mcporter/dist/cli.js");
        home.run(command.arg("--config").arg(&config).args(words))
    };
    let listed = mcporter(&["list", "--json"]).expect_code(0).json();
    assert_eq!(listed["counts"]["ok"], 2, "{listed}");
    for server in listed["servers"].as_array().unwrap() {
        assert_eq!(texts(&server["tools"], "name"), expected()["tools"]);
    }
    for server in ["local", "remote"] {
        let called = mcporter(&["call", &format!("{server}.everything__echo"), "message=hi"]);
        assert_eq!(called.expect_code(0).stdout, "Echo: hi\n");
        let failed = mcporter(&["call", &format!("{server}.chaos__fail")]);
        assert!(failed.stdout.contains("failed as asked"), "{failed}");
        let read = mcporter(&["resource", server, "chaos:own"]).expect_code(0);
        assert!(read.stdout.contains("chaos:own of chaos"), "{read}");
    }
}

/// `claude mcp list` connects to what it lists.
#[test]
fn claude_code_over_stdio_and_http() {
    let home = toured();
    let gateway = Gateway::start(&home, &[]);
    let claude = |words: &[&str]| {
        let mut command = home.command(peers::claude());
        // It is to talk to nobody but us.
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        home.run(command.args(words))
    };
    let words = [
        "mcp",
        "add",
        "-s",
        "user",
        "local",
        "--",
        program(),
        "serve",
    ];
    claude(&words).expect_code(0);
    let header = format!("Authorization: Bearer {}", gateway.token);
    let url = gateway.url.as_str();
    let words = [
        "mcp", "add", "-s", "user", "-t", "http", "remote", url, "-H", &header,
    ];
    claude(&words).expect_code(0);
    let listed = claude(&["mcp", "list"]).expect_code(0);
    let states: Vec<&str> = (listed.stdout.lines())
        .filter_map(|line| line.rsplit_once(" - ").map(|(_, state)| state))
        .collect();
    assert_eq!(states, ["✔ Connected", "✔ Connected"], "{listed}");
    // By the entry that `toolway connect` writes, too.
    claude(&["mcp", "remove", "-s", "user", "local"]).expect_code(0);
    crate::support::toolway(&home, &["connect", "claude-code", "--yes"]).expect_code(0);
    let listed = claude(&["mcp", "list"]).expect_code(0);
    let connected = listed.stdout.matches("✔ Connected").count();
    assert_eq!(connected, 2, "{listed}");
}

/// The server that Codex's own interface is written on, asked what it has of MCP servers.
fn codex_status(home: &TempHome, token: &str) -> Value {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut child = home
        .command(peers::codex())
        .arg("app-server")
        .env("GATEWAY_TOKEN", token)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let info = json!({ "name": "tests", "title": "Tests", "version": "1" });
    for message in [
        json!({ "id": 1, "method": "initialize", "params": { "clientInfo": info } }),
        json!({ "method": "initialized" }),
        json!({ "id": 2, "method": "mcpServerStatus/list", "params": {} }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = messages.find(|message| message["id"] == 2).unwrap();
    drop((stdin, messages));
    child.kill().unwrap();
    child.wait().unwrap();
    answer["result"]["data"].clone()
}

#[test]
fn codex_over_stdio_and_http() {
    let home = toured();
    let gateway = Gateway::start(&home, &["--wait", "30"]);
    let codex = |words: &[&str]| {
        let output = home.run(home.command(peers::codex()).args(words));
        output.expect_code(0)
    };
    codex(&[
        "mcp",
        "add",
        "local",
        "--",
        program(),
        "serve",
        "--wait",
        "30",
    ]);
    let url = gateway.url.as_str();
    let words = ["--url", url, "--bearer-token-env-var", "GATEWAY_TOKEN"];
    codex(&[&["mcp", "add", "remote"], words.as_slice()].concat());
    let status = codex_status(&home, &gateway.token);
    let names: Vec<&Value> = status
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["local", "remote"], "{status}");
    for server in status.as_array().unwrap() {
        let mut tools: Vec<&String> = server["tools"].as_object().unwrap().keys().collect();
        tools.sort_unstable();
        assert_eq!(
            json!(tools),
            expected()["tools"],
            "{}",
            server["toolsError"]
        );
        assert_eq!(texts(&server["resources"], "uri"), expected()["resources"]);
    }
}

/// Where the tests find what npm and PyPI have for this machine.
#[test]
fn every_program_says_its_version() {
    let home = TempHome::new();
    for (found, version) in [
        (peers::newer_node(), "v24.19.0"),
        (peers::claude(), "2.1.327 (Claude Code)"),
        (peers::codex(), "codex-cli 0.169.0"),
    ] {
        let _: &PathBuf = &found;
        let said = home
            .run(home.command(&found).arg("--version"))
            .expect_code(0);
        assert_eq!(said.stdout.trim_end(), version);
    }
}
