//! What every kind of child is started with: which variables of ours it sees, and that no secret
//! stands in anybody's arguments (SEC-39, SEC-47).
//!
//! What each may see is what `docs/configuration.md`, `docs/hooks.md` and
//! `docs/authentication.md` say.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolway_testkit::authority::{Authority, AuthoritySettings};
use toolway_testkit::browser::browse;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_testkit::witness::{StartRecord, family};
use toolway_testkit::{CommandOutput, Script, ScriptedServer, StartWitness, TempHome};

use crate::support::{command, servers};
use crate::visiting::{opened, with_browser};

/// What stands in the environment of whoever starts us, and is nobody else's business: some of it
/// is for us, most of it for other programs.
const OURS: [(&str, &str); 7] = [
    ("AWS_SECRET_ACCESS_KEY", marked!("aws-")),
    ("DATABASE_URL", marked!("postgres://me:", "@db/x")),
    ("GITHUB_TOKEN", marked!("ghp_")),
    ("HTTPS_PROXY", marked!("http://me:", "@127.0.0.1:9")),
    ("HTTP_PROXY", marked!("http://me:", "@127.0.0.1:9")),
    ("MCP_CLIENT_SECRET", marked!("client-")),
    ("TOOLWAY_VAULT_KEY", marked!("passphrase-")),
];

/// What every child may have, besides the home's own.
const HARMLESS: [(&str, &str); 5] = [
    ("LC_ALL", "C.UTF-8"),
    ("LOGNAME", "tester"),
    ("SHELL", "/bin/sh"),
    ("TERM", "dumb"),
    ("TZ", "UTC"),
];

/// What a child has besides, that is started for a project and not for all of them.
const PROJECT: &str = "TOOLWAY_PROJECT_DIR";

const INHERITED: [&str; 10] = [
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

struct Scene {
    home: TempHome,
    witness: StartWitness,
}

impl Scene {
    fn new() -> Self {
        let home = TempHome::new();
        let witness = StartWitness::in_folder(home.home().join("seen"));
        Self { home, witness }
    }

    /// Children of this scene are given a secret, and write it down.
    fn with_secret() -> Self {
        let scene = Self::new();
        scene.home.may_hold_secrets(scene.witness.folder());
        let mut set = scene.command(&["vault", "set", "key"]);
        let set = scene.home.run_with_input(&mut set, MARK);
        set.expect_code(0);
        scene
    }

    fn dressed<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("TOOLWAY_VAULT", "file")
            .env("TMPDIR", self.home.home())
            .envs(OURS)
            .envs(HARMLESS)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(&self.home, words);
        self.dressed(&mut command);
        command
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// A program of its own with this text.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.home().join(name);
        let path = self.home.write(path, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A helper that takes its secret from its environment, and runs this line first.
    fn helped(&self, url: &str, line: &str) -> Value {
        let text = format!("{line}; printf '{{\"X-Key\": \"%s\"}}' \"$KEY\"");
        json!({
            "type": "http", "url": url,
            "headersHelper": self.program("helper", &text), "env": { "KEY": "${keychain:key}" },
        })
    }

    /// The arguments of everybody while a child is held under this name: us, what we started and
    /// what that started. The rest is done by `then`.
    fn everybodys_words(&self, command: &mut Command, name: &str, then: impl FnOnce()) {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.witness.account(name).assert_plain_words();
        let family = family(child.id());
        for member in &family {
            marked::assert_none("an argument", member.command.as_bytes());
        }
        assert!(family.len() >= 2, "{family:#?}");
        self.witness.let_go(name);
        then();
        let output = marked::output_of(child);
        assert!(output.status.success(), "{output:?}");
    }
}

/// A scripted server behind a shell that runs this line first.
fn behind_a_shell(line: &str) -> Value {
    let server = ScriptedServer::new(Script::default());
    let line = format!("{line}; exec \"$0\" \"$@\"");
    let mut args = vec![json!("-c"), json!(line), json!(ScriptedServer::program())];
    args.extend(server.args().into_iter().map(Value::from));
    json!({ "command": "/bin/sh", "args": args })
}

/// A scripted server as a program of its own, which runs this line first.
fn as_a_program(scene: &Scene, line: &str) -> Value {
    let text = format!(
        "{line}; exec '{}' \"$@\"",
        ScriptedServer::program().display()
    );
    let args = ScriptedServer::new(Script::default()).args();
    json!({ "command": scene.program("server", &text), "args": args })
}

fn assert_sees(account: &StartRecord, more: &[&str], secrets: &[&str]) {
    let mut names = [&INHERITED[..], more].concat();
    names.sort_unstable();
    assert_eq!(account.names(), names);
    assert_eq!(account.secrets(), secrets);
    account.assert_plain_words();
}

#[test]
fn sec_39_a_server_sees_what_is_harmless_and_what_its_entry_declares() {
    let scene = Scene::with_secret();
    let mut plain = as_a_program(&scene, &scene.witness.line("plain"));
    plain["env"] = json!({ "DECLARED": "yes" });
    let mut keyed = behind_a_shell(&scene.witness.line("keyed"));
    keyed["env"] = json!({ "KEY": "${keychain:key}", "TOKEN": "x-${GITHUB_TOKEN}" });
    let mut shielded = behind_a_shell(&scene.witness.line("shielded"));
    shielded["shield"] = json!("best-effort");
    let entries = [("plain", plain), ("keyed", keyed), ("shielded", shielded)];
    scene.home.write_settings(servers(&entries));
    for (server, more, secrets) in [
        ("plain", &["DECLARED"][..], &[][..]),
        ("keyed", &["KEY", "TOKEN"], &["KEY", "TOKEN"]),
        ("shielded", &[], &[]),
    ] {
        scene
            .run(&["call", server, "echo", "text=x"])
            .expect_code(0);
        assert_sees(&scene.witness.account(server), more, secrets);
    }
}

#[test]
fn sec_39_a_hook_sees_what_is_harmless_as_a_line_and_as_a_program() {
    let scene = Scene::new();
    let line = scene.witness.line("line");
    let program = scene.program("hook", &scene.witness.line("program"));
    let hooks = json!({ "PreToolUse": [{ "hooks": [
        { "type": "command", "command": line },
        { "type": "command", "command": program, "args": ["word"] },
    ] }] });
    let chaos = ScriptedServer::new(Script::default()).entry();
    let settings = json!({ "mcpServers": { "chaos": chaos }, "hooks": hooks });
    scene.home.write_settings(settings.to_string());
    scene
        .run(&["call", "chaos", "echo", "text=x"])
        .expect_code(0);
    for name in ["line", "program"] {
        assert_sees(
            &scene.witness.account(name),
            &["CLAUDE_PROJECT_DIR", PROJECT],
            &[],
        );
    }
}

#[test]
fn sec_39_a_headers_helper_sees_its_server_and_what_its_entry_declares() {
    let scene = Scene::with_secret();
    let server = ScriptedServer::new(Script::default()).serve_http();
    let entry = scene.helped(server.url(), &scene.witness.line("helper"));
    scene.home.write_settings(servers(&[("web", entry)]));
    scene.run(&["call", "web", "echo", "text=x"]).expect_code(0);
    let account = scene.witness.account("helper");
    let more = [
        "CLAUDE_CODE_MCP_SERVER_NAME",
        "CLAUDE_CODE_MCP_SERVER_URL",
        "KEY",
        PROJECT,
        "TOOLWAY_SERVER_NAME",
        "TOOLWAY_SERVER_URL",
    ];
    assert_sees(&account, &more, &["KEY"]);
}

#[test]
fn sec_39_a_command_that_finds_a_secret_sees_what_is_harmless() {
    let scene = Scene::new();
    let finder = scene.program(
        "finder",
        &format!("{}; echo {MARK}", scene.witness.line("found")),
    );
    let mut entry = ScriptedServer::new(Script::default()).entry();
    // Read by the shell that is started for it: a program of that would have what the shell adds.
    entry["env"] = json!({ "KEY": format!("${{cmd:. {}}}", finder.display()) });
    scene.home.write_settings(servers(&[("chaos", entry)]));
    scene
        .run(&["call", "chaos", "echo", "text=x"])
        .expect_code(0);
    assert_sees(&scene.witness.account("found"), &[PROJECT], &[]);
}

#[test]
fn sec_39_who_opens_pages_sees_what_it_needs_for_the_screen() {
    let scene = Scene::new();
    let authority = Authority::start(AuthoritySettings::default());
    scene
        .home
        .write_settings(servers(&[("shop", authority.entry())]));
    scene.program("browser", &opening(&scene.witness.line("browser")));
    let mut login = with_browser(&scene.home, &["login", "shop"]);
    let (output, _) = crate::visiting::visit(&scene.home, scene.dressed(&mut login), browse);
    output.expect_code(0);
    let account = scene.witness.account("browser");
    assert_eq!(account.secrets(), [""; 0]);
    account.assert_plain_words();
    let names = account.names();
    let needed = ["BROWSER", "DBUS_SESSION_BUS_ADDRESS"];
    for name in names {
        assert!(
            INHERITED.contains(&name) || needed.contains(&name),
            "{name}"
        );
    }
}

/// A browser that leaves the page where a test finds it, after this line.
fn opening(line: &str) -> String {
    format!(
        "{line}; printf '%s' \"$1\" > \"$HOME/page.tmp\" && mv \"$HOME/page.tmp\" \"$HOME/page\""
    )
}

#[test]
fn sec_47_no_secret_is_in_anybodys_arguments_while_a_server_has_it() {
    let scene = Scene::with_secret();
    let mut entry = behind_a_shell(&scene.witness.held_line("server"));
    entry["env"] = json!({ "KEY": "${keychain:key}" });
    scene.home.write_settings(servers(&[("keyed", entry)]));
    let mut call = scene.command(&["call", "keyed", "echo", "text=x"]);
    scene.everybodys_words(&mut call, "server", || {});
}

#[test]
fn sec_47_no_secret_is_in_anybodys_arguments_while_a_helper_runs() {
    let scene = Scene::with_secret();
    let server = ScriptedServer::new(Script::default()).serve_http();
    let entry = scene.helped(server.url(), &scene.witness.held_line("helper"));
    scene.home.write_settings(servers(&[("web", entry)]));
    let mut call = scene.command(&["call", "web", "echo", "text=x"]);
    scene.everybodys_words(&mut call, "helper", || {});
}

#[test]
fn sec_47_no_secret_is_in_anybodys_arguments_while_a_person_logs_in() {
    let scene = Scene::new();
    let authority = Authority::start(AuthoritySettings::default());
    scene
        .home
        .write_settings(servers(&[("shop", authority.entry())]));
    scene.program("browser", &opening(&scene.witness.held_line("browser")));
    let mut login = with_browser(&scene.home, &["login", "shop"]);
    let login = scene.dressed(&mut login);
    scene.everybodys_words(login, "browser", || drop(browse(&opened(&scene.home))));
}
