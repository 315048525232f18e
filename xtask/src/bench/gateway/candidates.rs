//! The gateways that are measured, and how each is started.
//!
//! Owns their command lines; `bench/gateway/src/load/plan.rs` says what the marks in them stand for.
//! A gateway that is not there is left out with a word.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::install;
use crate::workspace::Workspace;

pub(super) const FLOOR: &str = "floor";
pub(super) const MODERN_FLOOR: &str = "floor, 2026-07-28";
pub(super) const STEPWISE_FLOOR: &str = "floor, one by one";
pub(super) const TOOLWAY: &str = "toolway";
pub(super) const MODERN_TOOLWAY: &str = "toolway, 2026-07-28";

/// Toolway takes no more of one server.
const MOST_TOOLS: usize = 500;

pub(super) struct Candidates {
    pub(super) gateways: Vec<Value>,
    /// Names, and why they are not measured.
    pub(super) left_out: Vec<(String, String)>,
}

impl Candidates {
    /// The floor, once for each era and once one message at a time, and the typed gateway in both of
    /// its modes.
    pub(super) fn own(built: &Path) -> Self {
        let program = built.join("floor-gateway").to_string_lossy().into_owned();
        let floor = |name: &str, era: &str, flag: Option<&str>| {
            let mut command = vec![program.as_str()];
            command.extend(flag);
            command.extend(["--servers", "{count}", "{server}"]);
            json!({
                "name": name,
                "era": era,
                "command": command,
                "takesMany": flag.is_none(),
                "listsOne": true,
            })
        };
        let typed = |name: &str, mode: &str, keeps_sessions: bool| {
            json!({
                "name": name,
                "era": "legacy",
                "command": [built.join("typed-gateway"), mode, "{server}"],
                "keepsSessions": keeps_sessions,
            })
        };
        Self {
            gateways: vec![
                floor(FLOOR, "legacy", None),
                floor(MODERN_FLOOR, "modern", None),
                floor(STEPWISE_FLOOR, "legacy", Some("--one-by-one")),
                typed("typed, stateless JSON", "stateless", false),
                typed("typed, sessions and SSE", "sessions", true),
            ],
            left_out: Vec::new(),
        }
    }

    /// Toolway with everything on that is on for people: rules, pins, audit and metrics.
    pub(super) fn add_toolway(&mut self, binary: &Path) {
        let help = Command::new(binary)
            .args(["serve", "--help"])
            .stdin(Stdio::null())
            .output();
        let serves =
            help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--http"));
        if !serves {
            self.leave_out(TOOLWAY, "it has no `serve --http`");
            return;
        }
        let settings = json!({ "permissions": {
            "allow": ["mcp__bench__echo", "mcp__bench__big"],
            "ask": ["mcp__bench__remove_*"],
            "deny": ["mcp__bench__drop_*", "mcp__production"],
        } });
        for (name, era, is_first) in [(TOOLWAY, "legacy", true), (MODERN_TOOLWAY, "modern", false)]
        {
            self.gateways.push(json!({
                "name": name,
                "era": era,
                "command": [
                    binary, "serve", "--http", "127.0.0.1:0", "--no-token",
                    "--mcp-config", "{config}", "--strict-mcp-config",
                ],
                "files": { ".config/toolway/settings.json": settings },
                "prefix": "bench__",
                "mostTools": MOST_TOOLS,
                "takesMany": true,
                "keepsSessions": is_first,
                "grows": is_first,
            }));
        }
    }

    /// Gateways of others, as far as they can be installed.
    pub(super) fn add_peers(&mut self, workspace: &Workspace) {
        match install::npm_gateways(workspace) {
            Ok(modules) => {
                let proxy = modules.join("mcp-proxy/dist/bin/mcp-proxy.mjs");
                self.add_peer(
                    "mcp-proxy (npm)",
                    "/mcp",
                    &json!([
                        "node",
                        proxy,
                        "--host",
                        "127.0.0.1",
                        "--port",
                        "{port}",
                        "--server",
                        "stream",
                        "--",
                        "{server}",
                    ]),
                );
                let supergateway = modules.join("supergateway/dist/index.js");
                self.add_peer(
                    "supergateway",
                    "/mcp",
                    &json!([
                        "node",
                        supergateway,
                        "--stdio",
                        "{line}",
                        "--outputTransport",
                        "streamableHttp",
                        "--stateful",
                        "--port",
                        "{port}",
                        "--logLevel",
                        "none",
                    ]),
                );
            }
            Err(error) => self.leave_out("peers from npm", &format!("{error:#}")),
        }
        match install::python_gateways(workspace) {
            Ok(programs) => self.add_peer(
                "mcp-proxy (PyPI)",
                "/mcp/",
                &json!([
                    programs.join("mcp-proxy"),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    "{port}",
                    "--log-level",
                    "ERROR",
                    "--",
                    "{server}",
                ]),
            ),
            Err(error) => self.leave_out("peers from PyPI", &format!("{error:#}")),
        }
        // It comes with what the tests talk to, and is large.
        let fastmcp = workspace.path("target/peers/venv/bin/fastmcp");
        if fastmcp.is_file() {
            self.add_peer(
                "fastmcp",
                "/mcp",
                &json!([
                    fastmcp,
                    "run",
                    "{config}",
                    "--transport",
                    "http",
                    "--port",
                    "{port}",
                    "--no-banner",
                ]),
            );
        } else {
            self.leave_out(
                "fastmcp",
                "`cargo xtask test` installs it, and did not here",
            );
        }
    }

    fn add_peer(&mut self, name: &str, path: &str, command: &Value) {
        self.gateways.push(json!({
            "name": name,
            "era": "legacy",
            "command": command,
            "address": format!("http://127.0.0.1:{{port}}{path}"),
            "isOptional": true,
        }));
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        println!("\nwithout {name}: {reason}");
        self.left_out.push((name.to_owned(), reason.to_owned()));
    }
}
