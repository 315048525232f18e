//! Clients that nobody here wrote, in front of `toolway serve`: the official SDKs in all versions,
//! and FastMCP's. Each goes through the same tour (`tests/peers/clients`) over stdio and HTTP.

use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, SpokenEras, TempHome, peers};

use super::{home_with, node, tool_names};
use crate::gateway::{Gateway, started_by_clients};
use crate::support::servers;

/// A server that does what a tour needs.
fn chaos() -> Value {
    let script = Script {
        name: "chaos".to_owned(),
        speaks: SpokenEras::Legacy,
        drama: true,
        offers: true,
        ..Script::default()
    };
    ScriptedServer::new(script).entry()
}

/// What it calls its tools, as the command line lists them.
fn chaos_tools() -> &'static [String] {
    static TOOLS: OnceLock<Vec<String>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let names = tool_names(&home_with("chaos", chaos()));
        let names = names.iter().map(|name| name.strip_prefix("mcp__").unwrap());
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    })
}

/// A home with a real server and one that does what a tour needs.
pub(super) fn toured() -> TempHome {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("chaos", chaos()),
        ("everything", node("server-everything", &["stdio"])),
    ]));
    home
}

/// What a client of all that must see.
pub(super) fn expected() -> Value {
    let of_everything = "\
        echo get-annotated-message get-env get-resource-links get-resource-reference \
        get-roots-list get-structured-content get-sum get-tiny-image gzip-file-as-resource \
        simulate-research-query toggle-simulated-logging toggle-subscriber-updates \
        trigger-elicitation-request trigger-long-running-operation trigger-sampling-request \
        trigger-url-elicitation";
    let of_everything = of_everything.split_whitespace();
    let of_everything = of_everything.map(|name| format!("everything__{name}"));
    let tools: Vec<String> = (chaos_tools().iter().cloned())
        .chain(of_everything)
        .collect();
    let documents = [
        "architecture",
        "extension",
        "features",
        "how-it-works",
        "instructions",
        "startup",
        "structure",
    ];
    let mut resources = vec!["chaos:own".to_owned()];
    resources.extend(documents.map(|name| format!("demo://resource/static/document/{name}.md")));
    resources.push("shared:one".to_owned());
    json!({
        "server": "toolway",
        "tools": tools,
        "resources": resources,
        "templates": [
            "chaos:page/{number}",
            "chaos:verbatim/{hex}",
            "demo://resource/dynamic/blob/{resourceId}",
            "demo://resource/dynamic/text/{resourceId}",
            "shared:page/{number}",
        ],
        "prompts": [
            "chaos__elicit",
            "chaos__greet",
            "chaos__verbatim",
            "everything__args-prompt",
            "everything__completable-prompt",
            "everything__resource-prompt",
            "everything__simple-prompt",
        ],
        "echo": "Echo: hi",
        "structured": { "temperature": 33, "conditions": "Cloudy", "humidity": 82 },
        "read": [
            { "uri": "chaos:own", "mimeType": "text/plain", "text": "chaos:own of chaos" },
        ],
        "prompt": [
            { "role": "user", "content": { "type": "text", "text": "chaos greets Ada" } },
        ],
        "completion": ["chaos", "greet", "a"],
        "counted": "Long running operation completed. Duration: 1 seconds, Steps: 2.",
        "progress": [[1, 2], [2, 2]],
        "failed": { "isError": true, "text": "failed as asked" },
        "unknown": { "code": -32602, "message": "no tool `chaos__no-such-tool`" },
        "asked": ["a word, please"],
        "elicited": r#"{"action":"accept","content":{"word":"yes"}}"#,
        "cancellations": 1,
        "changed": ["prompts", "resources", "tools"],
        "grown": ["chaos__grown_0"],
    })
}

/// A client, and what it cannot do.
#[derive(Debug, Clone, Copy)]
pub(super) struct TouringClient {
    words: &'static [&'static str],
    without: &'static [&'static str],
}

const TYPESCRIPT_1: TouringClient = TouringClient {
    words: &["typescript_client.mjs", "1"],
    without: &[],
};
const TYPESCRIPT_2: TouringClient = TouringClient {
    words: &["typescript_client.mjs", "2"],
    without: &[],
};
pub(super) const TYPESCRIPT_2_MODERN: TouringClient = TouringClient {
    words: &["typescript_client.mjs", "2-modern"],
    without: &[],
};
/// It tells nobody that it does not wait any more.
const PYTHON_1: TouringClient = TouringClient {
    words: &["sdk1_client.py"],
    without: &["cancellations"],
};
const PYTHON_2: TouringClient = TouringClient {
    words: &["sdk2_client.py", "legacy"],
    without: &[],
};
const PYTHON_2_MODERN: TouringClient = TouringClient {
    words: &["sdk2_client.py", "modern"],
    without: &[],
};
const FASTMCP: TouringClient = TouringClient {
    words: &["fastmcp_client.py", "legacy"],
    without: &[],
};
/// It does not listen for changes in that era.
const FASTMCP_MODERN: TouringClient = TouringClient {
    words: &["fastmcp_client.py", "auto"],
    without: &["changed", "grown"],
};

const RUST: TouringClient = TouringClient {
    words: &["rust-client", "legacy"],
    without: &[],
};
const RUST_MODERN: TouringClient = TouringClient {
    words: &["rust-client", "modern"],
    without: &[],
};

impl TouringClient {
    /// What it saw of this.
    pub(super) fn tour(self, home: &TempHome, target: &Value) -> Value {
        let (script, words) = self.words.split_first().unwrap();
        let path = peers::workspace().join("tests/peers/clients").join(script);
        let mut client: Command = match *script {
            "typescript_client.mjs" => {
                let mut node = home.command("node");
                node.arg(path).arg(peers::dir());
                node
            }
            "rust-client" => home.command(peers::rust_client()),
            "sdk1_client.py" => {
                let mut python = home.command(peers::sdk1_program("python"));
                python.arg(path);
                python
            }
            _ => {
                let mut python = home.command(peers::python_program("python"));
                python.arg(path);
                python
            }
        };
        client.args(words).arg(target.to_string());
        let mut found: Value = home.run(&mut client).expect_code(0).json();
        // The TypeScript SDK puts a notification off and an answer not: of progress that it reads
        // together with the answer, its caller hears nothing. Only the last report can be that.
        let all = &expected()["progress"];
        if *script == "typescript_client.mjs" && found["progress"] == json!([all[0]]) {
            found["progress"] = all.clone();
        }
        found
    }

    fn expected(self) -> Value {
        let mut expected = expected();
        for key in self.without {
            expected.as_object_mut().unwrap().remove(*key);
        }
        expected
    }

    #[track_caller]
    fn over_stdio(self) {
        let home = toured();
        let target = started_by_clients(&home, &["--wait", "30"]);
        assert_eq!(self.tour(&home, &target), self.expected());
    }

    #[track_caller]
    fn over_http(self) {
        let home = toured();
        let gateway = Gateway::start(&home, &["--wait", "30"]);
        assert_eq!(self.tour(&home, &gateway.target()), self.expected());
    }
}

#[test]
fn typescript_sdk_1_over_stdio() {
    TYPESCRIPT_1.over_stdio();
}

#[test]
fn typescript_sdk_1_over_http() {
    TYPESCRIPT_1.over_http();
}

#[test]
fn typescript_sdk_2_in_the_legacy_era_over_stdio() {
    TYPESCRIPT_2.over_stdio();
}

#[test]
fn typescript_sdk_2_in_the_legacy_era_over_http() {
    TYPESCRIPT_2.over_http();
}

#[test]
fn typescript_sdk_2_in_the_modern_era_over_stdio() {
    TYPESCRIPT_2_MODERN.over_stdio();
}

#[test]
fn typescript_sdk_2_in_the_modern_era_over_http() {
    TYPESCRIPT_2_MODERN.over_http();
}

#[test]
fn python_sdk_1_over_stdio() {
    PYTHON_1.over_stdio();
}

#[test]
fn python_sdk_1_over_http() {
    PYTHON_1.over_http();
}

#[test]
fn python_sdk_2_in_the_legacy_era_over_stdio() {
    PYTHON_2.over_stdio();
}

#[test]
fn python_sdk_2_in_the_legacy_era_over_http() {
    PYTHON_2.over_http();
}

#[test]
fn python_sdk_2_in_the_modern_era_over_stdio() {
    PYTHON_2_MODERN.over_stdio();
}

#[test]
fn python_sdk_2_in_the_modern_era_over_http() {
    PYTHON_2_MODERN.over_http();
}

#[test]
fn fastmcp_in_the_legacy_era_over_stdio() {
    FASTMCP.over_stdio();
}

#[test]
fn fastmcp_in_the_legacy_era_over_http() {
    FASTMCP.over_http();
}

#[test]
fn fastmcp_in_the_modern_era_over_stdio() {
    FASTMCP_MODERN.over_stdio();
}

#[test]
fn fastmcp_in_the_modern_era_over_http() {
    FASTMCP_MODERN.over_http();
}

#[test]
fn rust_sdk_in_the_legacy_era_over_stdio() {
    RUST.over_stdio();
}

#[test]
fn rust_sdk_in_the_legacy_era_over_http() {
    RUST.over_http();
}

#[test]
fn rust_sdk_in_the_modern_era_over_stdio() {
    RUST_MODERN.over_stdio();
}

#[test]
fn rust_sdk_in_the_modern_era_over_http() {
    RUST_MODERN.over_http();
}

/// What a script that lists once sees: nothing of slow servers the first time, all of it from then on.
#[test]
fn rel_08_a_client_that_lists_at_once_sees_a_slow_server_from_its_second_start_on() {
    let home = TempHome::new();
    let slow = Script {
        name: "slow".to_owned(),
        speaks: SpokenEras::Legacy,
        start_delay_ms: 2_000,
        ..Script::default()
    };
    home.write_settings(servers(&[
        ("chaos", chaos()),
        ("everything", node("server-everything", &["stdio"])),
        ("slow", ScriptedServer::new(slow).entry()),
    ]));
    // The gateway of this tour runs for longer than the slow server takes.
    let waiting = started_by_clients(&home, &["--wait", "30"]);
    let first = TYPESCRIPT_1.tour(&home, &waiting);
    let is_slow = |tool: &Value| tool.as_str().unwrap().starts_with("slow__");
    let slow: Vec<&Value> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| is_slow(it))
        .collect();
    assert_eq!(slow.len(), 8, "{slow:?}");
    let second = TYPESCRIPT_1.tour(&home, &started_by_clients(&home, &[]));
    assert_eq!(second["tools"], first["tools"]);
    assert_eq!(second["prompts"], first["prompts"]);
    assert_eq!(second["resources"], first["resources"]);
}
