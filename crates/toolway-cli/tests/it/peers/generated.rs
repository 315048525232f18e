//! Modules of `toolway generate`, for every server of the peers, and for schemas that mean no good:
//! the compilers of their languages take them, as strict as they can be.
//!
//! Owns the words in which the packages `toolway` are declared for the compilers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolway_testkit::{TempHome, peers};

use super::{Peer, node, python};
use crate::support::{command, servers};

/// Schemas as no sane server writes them.
const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/odd_server.py");

/// The part of the TypeScript package that modules use.
const TYPESCRIPT: &str = r"
export declare class CallResult<Structured = unknown> {
  constructor(raw: object);
  get content(): readonly unknown[];
  get structured(): Structured | undefined;
  get isError(): boolean;
  get text(): string;
}
export interface CallOptions { timeout?: number; check?: boolean; signal?: AbortSignal }
export declare class Toolway {
  static start(options?: object): Promise<Toolway>;
  call<Structured = unknown>(
    server: string, tool: string, input?: { [name: string]: unknown }, options?: CallOptions,
  ): Promise<CallResult<Structured>>;
  close(): Promise<void>;
}
";

/// The part of the Python package that modules use.
const PYTHON: &str = r"
from collections.abc import Callable, Mapping, Sequence
from typing import Any

class CallResult:
    content: Sequence[object]
    structured: Any
    is_error: bool
    raw: Mapping[str, Any]
    @property
    def text(self) -> str: ...

class Toolway:
    def __init__(self) -> None: ...
    async def __aenter__(self) -> Toolway: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Callable[..., Any] | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> CallResult: ...
";

/// Runs a compiler, which has nothing to say.
fn compiles(compiler: &mut Command) {
    let output = compiler.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler:?}\n{said}\n{complained}"
    );
}

fn entries(home: &TempHome, listening: &[(String, Value)]) -> Vec<(String, Value)> {
    let folder = home.project().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let git = Command::new("git").args(["init", "-q", folder]).status();
    assert!(git.unwrap().success());
    let mut memory = node("server-memory", &[]);
    let store = home.home().join("memory.json").display().to_string();
    memory["env"] = json!({ "MEMORY_FILE_PATH": store });
    let pages = peers::workspace().join("tests/peers/pages_server.mjs");
    let pages = json!({ "command": "node", "args": [pages, peers::dir()] });
    let local = [
        ("everything", node("server-everything", &["stdio"])),
        ("filesystem", node("server-filesystem", &[folder])),
        ("memory", memory),
        (
            "time",
            python("mcp-server-time", &["--local-timezone", "UTC"]),
        ),
        ("git", python("mcp-server-git", &["--repository", folder])),
        ("pages", pages),
        ("odd", json!({ "command": "python3", "args": ["-u", ODD] })),
    ];
    let local = local.map(|(name, entry)| (name.to_owned(), entry));
    local.into_iter().chain(listening.iter().cloned()).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn modules_of_every_peer_are_taken_by_strict_compilers() {
    let home = TempHome::new();
    let started = [
        ("fastmcp", Peer::FastMcp),
        ("sdk1", Peer::PythonSdk1("http")),
        ("sdk2", Peer::PythonSdk2),
        ("typescript", Peer::TypeScriptSdk2("both")),
    ]
    .map(|(name, peer)| (name, peer.start()));
    let listening: Vec<(String, Value)> = started
        .iter()
        .map(|(name, it)| ((*name).to_owned(), it.entry()))
        .collect();
    let entries = entries(&home, &listening);
    let named: Vec<(&str, Value)> = entries
        .iter()
        .map(|(name, entry)| (name.as_str(), entry.clone()))
        .collect();
    home.write_settings(servers(&named));
    let folder = home.home().join("made");
    for language in ["typescript", "python", "rust"] {
        let output = folder.join(language).join("tools");
        let mut words = vec!["generate", language, "-o", output.to_str().unwrap()];
        words.extend(named.iter().map(|(name, _)| *name));
        home.run(&mut command(&home, &words)).expect_code(0);
        words.push("--check");
        home.run(&mut command(&home, &words)).expect_code(0);
    }

    let own = folder.join("typescript");
    write(&own.join("package.json"), r#"{"type": "module"}"#);
    let package = own.join("node_modules/toolway");
    write(&package.join("index.d.ts"), TYPESCRIPT);
    write(
        &package.join("package.json"),
        r#"{"name": "toolway", "version": "0.1.0", "type": "module", "types": "index.d.ts"}"#,
    );
    write(
        &own.join("uses.ts"),
        "import { Everything, Time } from \"./tools/index.js\";\n\
         export async function sum(host: Everything.Host): Promise<string> {\n  \
         const tools = new Everything.Everything(host);\n  \
         const weather = await tools.getStructuredContent({ location: \"Chicago\" });\n  \
         const warm: number | undefined = weather.structured?.temperature;\n  \
         // @ts-expect-error There is no such city.\n  \
         await tools.getStructuredContent({ location: \"Paris\" });\n  \
         // @ts-expect-error `b` has to be given.\n  \
         await tools.getSum({ a: 1 });\n  \
         return `${warm}${(await tools.getSum({ a: 1, b: 2 }, { timeout: 5 })).text}`;\n}\n\
         export const now = Time.Time.use((time) => time.getCurrentTime({ timezone: \"UTC\" }));\n",
    );
    let tsc = peers::dir().join("typescript/node_modules/typescript/bin/tsc");
    compiles(
        Command::new("node")
            .arg(tsc)
            .args(["--noEmit", "--strict", "--exactOptionalPropertyTypes"])
            .args([
                "--noUncheckedIndexedAccess",
                "--noUnusedLocals",
                "--noUnusedParameters",
            ])
            .args([
                "--erasableSyntaxOnly",
                "--verbatimModuleSyntax",
                "--isolatedModules",
            ])
            .args(["--module", "nodenext", "--target", "es2022"])
            .args(["uses.ts", "tools/index.ts"])
            .current_dir(&own),
    );

    let own = folder.join("python");
    write(&own.join("stubs/toolway/__init__.pyi"), PYTHON);
    write(
        &own.join("uses.py"),
        "from tools import everything, time\n\n\n\
         async def total(tools: everything.Everything) -> str:\n    \
         weather = await tools.get_structured_content({\"location\": \"Chicago\"})\n    \
         if weather.structured is not None:\n        \
         warm: float = weather.structured[\"temperature\"]\n        print(warm)\n    \
         await tools.get_sum({\"a\": 1})  # type: ignore[typeddict-item]\n    \
         return (await tools.get_sum({\"a\": 1, \"b\": 2}, timeout=5)).text\n\n\n\
         async def now() -> str:\n    async with time.Time.use() as tools:\n        \
         return (await tools.get_current_time({\"timezone\": \"UTC\"})).text\n",
    );
    for version in ["3.10", "3.13"] {
        compiles(
            Command::new(peers::sdk1_program("mypy"))
                .args([
                    "--strict",
                    "--python-version",
                    version,
                    "--cache-dir",
                    "cache",
                ])
                .args(["uses.py", "tools"])
                .env("MYPYPATH", "stubs")
                .current_dir(&own),
        );
    }

    let own = folder.join("rust");
    let workspace = peers::workspace();
    let library = workspace.join("crates/toolway");
    let mut manifest = String::from(
        "[package]\nname = \"generated\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n\
         [dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\"\n",
    );
    writeln!(manifest, "toolway = {{ path = {library:?} }}").unwrap();
    write(&own.join("Cargo.toml"), &manifest);
    fs::copy(workspace.join("Cargo.lock"), own.join("Cargo.lock")).unwrap();
    fs::create_dir_all(own.join("src")).unwrap();
    fs::rename(own.join("tools"), own.join("src/tools")).unwrap();
    write(
        &own.join("src/lib.rs"),
        "#![deny(warnings)]\nmod tools;\n\
         pub async fn sum(host: &toolway::Attached) -> Option<f64> {\n    \
         use tools::everything::*;\n    let tools = Everything::new(host);\n    \
         let options = || toolway::CallOptions::new(toolway::Consent::Typed);\n    \
         let city = GetStructuredContentArgumentsLocation::Chicago;\n    \
         let of = GetStructuredContentArguments { location: city };\n    \
         let weather = tools.get_structured_content(&of, options()).await.ok()?;\n    \
         weather.structured.map(|weather| weather.temperature)\n}\n\
         pub async fn now() -> Option<String> {\n    \
         let done = tools::time::Time::run(async |time| {\n        \
         let options = toolway::CallOptions::new(toolway::Consent::Typed);\n        \
         let of = tools::time::GetCurrentTimeArguments { timezone: \"UTC\".to_owned() };\n        \
         time.get_current_time(&of, options).await.ok()\n    });\n    \
         Some(done.await?.outcome.raw.to_string())\n}\n",
    );
    compiles(
        Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet"])
            .env("CARGO_TARGET_DIR", workspace.join("target/generated"))
            .current_dir(&own),
    );
}
