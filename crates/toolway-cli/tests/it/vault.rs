//! `vault`: secrets by name, never shown, and looked up when a server is connected.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::marked::MARK;
use toolway_testkit::{CommandOutput, Script, ScriptedServer, TempHome, marked};

use crate::support::{command, servers, shown_on, terminal};

const CANARY: &str = marked!("hunter2-");

/// `toolway`, without a keychain, with something on its stdin.
fn toolway(home: &TempHome, words: &[&str], input: &str) -> CommandOutput {
    let mut command = command(home, words);
    command.env("TOOLWAY_VAULT", "file");
    let output = home.run_with_input(&mut command, input);
    assert!(!output.stdout.contains(CANARY), "{}", output.stdout);
    assert!(!output.stderr.contains(CANARY), "{}", output.stderr);
    output
}

/// The table with its times taken out.
fn table(output: &CommandOutput) -> String {
    let line = |line: &str| {
        let words = line.split_whitespace();
        let words = words.map(|word| if word.starts_with("20") { "then" } else { word });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    output.stdout.lines().map(line).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// No file below holds it in plain text.
fn assert_nowhere(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_nowhere(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes
                .windows(CANARY.len())
                .any(|part| part == CANARY.as_bytes());
            assert!(!found, "{} holds the secret", path.display());
        }
    }
}

#[test]
fn a_secret_is_set_listed_and_removed_and_never_shown() {
    let home = TempHome::new();
    let empty = toolway(&home, &["vault", "list"], "").expect_code(0);
    assert_eq!(
        (empty.stdout.as_str(), empty.stderr.as_str()),
        ("", "the vault is empty\n")
    );
    let set = toolway(&home, &["vault", "set", "github"], &format!("{CANARY}\n")).expect_code(0);
    assert_snapshot!(set.stderr, @"
    saved `github` in an encrypted file: protects against copying the one file, not against someone who can read your home
    hint: use it as `${keychain:github}` in `env` or `headers` of a server
    ");
    let set = toolway(&home, &["vault", "set", "other", "--json"], CANARY).expect_code(0);
    assert_snapshot!(set.stdout, @r#"
    {
      "name": "other",
      "where": "file-with-key"
    }
    "#);
    let listed = toolway(&home, &["vault", "list"], "").expect_code(0);
    assert_snapshot!(table(&listed), @"
    KIND NAME ACCOUNT ISSUER SAVED WHERE
    named github - - then file-with-key
    named other - - then file-with-key
    ");
    let listed = toolway(&home, &["vault", "list", "--json"], "").expect_code(0);
    let mut listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    for secret in listed["secrets"].as_array_mut().unwrap() {
        secret["savedAt"] = json!("then");
    }
    assert_snapshot!(listed, @r#"{"secrets":[{"kind":"named","name":"github","savedAt":"then","where":"file-with-key"},{"kind":"named","name":"other","savedAt":"then","where":"file-with-key"}]}"#);
    assert_nowhere(home.home());

    let removed = toolway(&home, &["vault", "remove", "github"], "").expect_code(0);
    assert_snapshot!(removed.stderr, @"removed the secret `github`");
    let again = toolway(&home, &["vault", "remove", "github"], "").expect_code(3);
    assert_snapshot!(again.stderr, @"
    error: the vault has no secret `github`
    hint: see what there is with `toolway vault list`
    ");
    let server = toolway(&home, &["vault", "remove", "--server", "x"], "").expect_code(3);
    assert_snapshot!(server.stderr, @"
    error: the vault has nothing for `x`
    hint: see what there is with `toolway vault list`
    ");
}

#[test]
fn what_is_no_secret_is_refused() {
    let home = TempHome::new();
    let nothing = toolway(&home, &["vault", "set", "a"], "\n").expect_code(2);
    assert_snapshot!(nothing.stderr, @"
    error: nothing was given
    hint: type it, or pipe it in: `pass show x | toolway vault set x`
    ");
    let lines = toolway(&home, &["vault", "set", "a"], marked!("one\n", "\ntwo\n")).expect_code(2);
    assert_snapshot!(lines.stderr, @"error: it must be one line of at most 65536 bytes");
    toolway(&home, &["vault", "set", "a}b"], "x").expect_code(2);
    toolway(&home, &["vault", "remove"], "").expect_code(2);
    toolway(&home, &["vault", "set", "a"], &MARK.repeat(5_000)).expect_code(2);
}

#[test]
fn an_export_to_a_file_whose_name_is_no_text_is_told_as_json() {
    let home = TempHome::new();
    toolway(&home, &["vault", "set", "a"], CANARY).expect_code(0);
    let mut export = command(&home, &["vault", "export", "--json"]);
    export.env("TOOLWAY_VAULT", "file");
    export.arg(OsStr::from_bytes(b"a\xff"));
    let written = home.run_with_input(&mut export, marked!("pass-", "\n"));
    let written = written.expect_code(0);
    assert_snapshot!(written.stdout, @r#"
    {
      "file": "a�",
      "secrets": 1,
      "sealed": true
    }
    "#);
}

#[test]
fn an_export_is_sealed_unless_plain_text_is_asked_for() {
    let home = TempHome::new();
    toolway(&home, &["vault", "set", "a"], CANARY).expect_code(0);
    let sealed = toolway(
        &home,
        &["vault", "export", "sealed"],
        marked!("pass-", "\n"),
    )
    .expect_code(0);
    assert_snapshot!(sealed.stderr, @"wrote 1 secret to `sealed`, sealed with the passphrase");
    assert_nowhere(home.home());
    let again = toolway(
        &home,
        &["vault", "export", "sealed"],
        marked!("pass-", "\n"),
    )
    .expect_code(3);
    assert_snapshot!(again.stderr, @"
    error: `sealed` cannot be written: File exists (os error 17)
    hint: name a file that does not exist yet
    ");
    home.may_keep_secrets("plain");
    let plain = ["vault", "export", "plain", "--show-secrets", "--json"];
    let plain = toolway(&home, &plain, "").expect_code(0);
    assert_snapshot!(plain.stdout, @r#"
    {
      "file": "plain",
      "secrets": 1,
      "sealed": false
    }
    "#);
    assert!(home.read("plain").contains(CANARY));
    for file in ["sealed", "plain"] {
        assert_eq!(mode(&home.project().join(file)), 0o600);
    }

    toolway(&home, &["vault", "remove", "a"], "").expect_code(0);
    let wrong = toolway(
        &home,
        &["vault", "import", "sealed"],
        marked!("other-", "\n"),
    )
    .expect_code(3);
    assert_snapshot!(wrong.stderr, @"
    error: `sealed` is sealed with another passphrase, or damaged
    hint: try again with the passphrase that it was exported with
    ");
    let right = toolway(
        &home,
        &["vault", "import", "sealed"],
        marked!("pass-", "\n"),
    )
    .expect_code(0);
    assert_snapshot!(right.stderr, @"took 1 secret");
    toolway(&home, &["vault", "import", "plain"], "").expect_code(0);
    assert!(
        toolway(&home, &["vault", "list"], "")
            .stdout
            .contains("named")
    );
}

#[test]
fn what_is_typed_is_not_shown() {
    let home = TempHome::new();
    let (mut ours, theirs) = terminal();
    let mut command = command(&home, &["vault", "set", "a"]);
    command
        .env("TOOLWAY_VAULT", "file")
        .stdin(theirs.try_clone().unwrap())
        .stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = String::new();
    let mut piece = [0; 256];
    while !shown.contains("Secret `a`: ") {
        let read = ours.read(&mut piece).unwrap();
        shown.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    ours.write_all(format!("{CANARY}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    shown.push_str(&shown_on(ours));
    assert!(shown.contains("saved `a`"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
    toolway(&home, &["vault", "remove", "a"], "").expect_code(0);
}

/// A scripted server that first writes down a variable, and says it on stderr.
fn confiding(value: &str) -> Value {
    let entry = ScriptedServer::new(Script::default()).entry();
    let mut args = vec![
        json!("-c"),
        json!(
            "printf %s \"$KEY\" > \"$TOOLWAY_PROJECT_DIR/seen\"; echo \"key is $KEY\" >&2; exec \"$0\" \"$@\""
        ),
        entry["command"].clone(),
    ];
    args.extend(entry["args"].as_array().cloned().unwrap_or_default());
    let mut env = entry["env"].as_object().cloned().unwrap_or_default();
    env.insert("KEY".to_owned(), json!(value));
    json!({ "command": "/bin/sh", "args": args, "env": env, "share": "project" })
}

#[test]
fn a_reference_is_looked_up_at_connect_time_and_kept_back_everywhere() {
    let home = TempHome::new();
    let references = [
        ("${keychain:a}".to_owned(), "vault"),
        (
            format!("${{file:{}}}", home.home().join("token").display()),
            "file",
        ),
        ("${file:~/token}".to_owned(), "home"),
        ("${cmd:cat ~/token}".to_owned(), "command"),
    ];
    toolway(&home, &["vault", "set", "a"], CANARY).expect_code(0);
    let token = home.write(home.home().join("token"), format!("{CANARY}\n"));
    for (reference, what) in references {
        let value = format!("x-{reference}");
        home.write_settings(servers(&[("chaos", confiding(&value))]));
        // Listing without connecting looks nothing up and shows nothing.
        toolway(&home, &["list", "--no-connect"], "").expect_code(0);
        toolway(&home, &["get", "chaos"], "").expect_code(0);
        assert!(!home.project().join("seen").exists(), "{what}");
        toolway(&home, &["call", "chaos", "echo", "text=hi"], "").expect_code(0);
        assert_eq!(home.read("seen"), format!("x-{CANARY}"), "{what}");
        std::fs::remove_file(home.project().join("seen")).unwrap();
        let logs = toolway(&home, &["logs", "chaos"], "").expect_code(0);
        assert!(logs.stdout.contains("key is"), "{}", logs.stdout);
    }
    std::fs::remove_file(token).unwrap();
    assert_nowhere(home.home());
}

#[test]
fn a_reference_to_nothing_names_server_and_reference() {
    let home = TempHome::new();
    let cases = [
        "${keychain:absent}",
        "${file:/nonexistent/token}",
        concat!("${cmd:echo ", marked!("hunter2-"), "; exit 3}"),
    ];
    let mut said = String::new();
    for reference in cases {
        home.write_settings(servers(&[("chaos", confiding(reference))]));
        let output = toolway(&home, &["call", "chaos", "echo", "text=hi"], "").expect_code(4);
        said += &output.stderr;
    }
    assert_snapshot!(said, @"
    error: server `chaos` failed: `env.KEY` in [HOME]/.config/toolway/settings.json needs `${keychain:absent}`: the vault has no such secret; put it there with `toolway vault set absent`
    hint: see what there is with `toolway vault list`, and whether it can be read with `toolway doctor`
    error: server `chaos` failed: `env.KEY` in [HOME]/.config/toolway/settings.json needs `${file:/nonexistent/token}`: the file cannot be read: No such file or directory (os error 2)
    hint: check the file; `toolway get chaos` shows where it is named
    error: server `chaos` failed: `env.KEY` in [HOME]/.config/toolway/settings.json needs `${cmd:echo …}`: the command ended with exit status: 3
    hint: run the command yourself; `toolway get chaos` shows where it stands
    ");
    assert!(!home.project().join("seen").exists());
}

/// REL-28 from outside: a bus that accepts and never replies.
#[test]
fn rel_28_a_silent_bus_holds_nobody_up() {
    let home = TempHome::new();
    home.write_settings(servers(&[(
        "chaos",
        ScriptedServer::new(Script::default()).entry(),
    )]));
    let path = home.home().join("bus");
    let _bus = UnixListener::bind(&path).unwrap();
    let address = format!("unix:path={}", path.display());
    let run = |words: &[&str], input: &str| {
        let mut command = command(&home, words);
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        home.run_with_input(&mut command, input)
    };
    // Who needs no secret does not even look.
    run(&["call", "chaos", "echo", "text=hi"], "").expect_code(0);
    let set = run(&["vault", "set", "a"], CANARY).expect_code(0);
    assert_snapshot!(set.stderr, @"
    note: the keychain does not answer; start it anew, or set TOOLWAY_VAULT=file to do without it
    saved `a` in an encrypted file: protects against copying the one file, not against someone who can read your home
    hint: use it as `${keychain:a}` in `env` or `headers` of a server
    ");
}

#[test]
fn plain_text_only_when_it_is_asked_for_and_said_wherever_it_matters() {
    let home = TempHome::new();
    let words = ["vault", "set", "a", "--insecure-storage"];
    let set = toolway(&home, &words, CANARY).expect_code(0);
    assert_snapshot!(set.stderr, @"
    saved `a` in a plain file: not protected from anyone who can read your home
    hint: use it as `${keychain:a}` in `env` or `headers` of a server
    ");
    toolway(&home, &["vault", "set", "b"], "other").expect_code(0);
    let listed = toolway(&home, &["vault", "list"], "").expect_code(0);
    assert_snapshot!(table(&listed), @"
    KIND NAME ACCOUNT ISSUER SAVED WHERE
    named a - - then plain-file
    named b - - then file-with-key
    ");
    assert_snapshot!(listed.stderr, @"note: 1 of 2 in a plain file: not protected from anyone who can read your home");
    let doctor = toolway(&home, &["doctor", "--json"], "").json();
    let checks = doctor["checks"].as_array().unwrap();
    let keychain = checks.iter().find(|check| check["name"] == "keychain");
    assert_snapshot!(keychain.unwrap()["message"].as_str().unwrap(), @"an encrypted file: protects against copying the one file, not against someone who can read your home; 1 secret lies in a plain file: not protected from anyone who can read your home");
    assert_eq!(keychain.unwrap()["state"], "warn");

    let folder = home.config_home().join("vault/secrets");
    let plain: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(CANARY)))
        .collect();
    assert_eq!(plain.len(), 1);
    assert_eq!(mode(&plain[0]), 0o600);
    // Without the flag it is sealed again.
    toolway(&home, &["vault", "set", "a"], CANARY).expect_code(0);
    assert_nowhere(home.home());
}

#[test]
fn policy_forbids_plain_text_and_so_does_what_cannot_be_understood() {
    let home = TempHome::new();
    let words = ["vault", "set", "a", "--insecure-storage"];
    let managed = home.system().join("managed-settings.json");
    home.write(&managed, r#"{"insecureStorage": false}"#);
    let set = toolway(&home, &words, CANARY).expect_code(6);
    assert_snapshot!(set.stderr, @"
    error: `--insecure-storage` is forbidden by `insecureStorage` ([SYSTEM]/managed-settings.json:1)
    hint: leave the flag out: secrets go to the keychain or an encrypted file
    ");
    toolway(&home, &["vault", "set", "a"], CANARY).expect_code(0);
    for text in [r#"{"insecureStorage": "no"}"#, "{"] {
        home.write(&managed, text);
        let set = toolway(&home, &words, CANARY);
        assert_ne!(set.code, Some(0), "{text}");
    }
    home.write(&managed, "{}");
    let mut command = command(&home, &words);
    command.env("TOOLWAY_VAULT", "keychain");
    let contradicts = home.run_with_input(&mut command, CANARY).expect_code(2);
    assert!(
        contradicts.stderr.contains("`TOOLWAY_VAULT`"),
        "{contradicts}"
    );
    assert_nowhere(home.home());
}
