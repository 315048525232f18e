//! Secrets that people wrote into entries: no command shows them, except where somebody decides.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::marked::MARK;
use toolway_testkit::{TempHome, marked};

use crate::support::{command, servers, toolway};

/// An entry with a secret in every place of its arguments.
fn leaky() -> serde_json::Value {
    json!({
        "command": "npx",
        "args": [
            "-y", "server",
            marked!("--access-token="),
            "--password", marked!("pw "),
            "--api-key", marked!("-dashed"),
            "--header", marked!("X-Mine: "),
            "-e", marked!("DB_PASS=a="),
            "--config", marked!("{\"apiKey\":\"", "\"}"),
            marked!("--db=postgres://u:", "@db/x"),
            marked!("https://h.example/mcp?key=", "&x=${NAME}"),
            marked!("ghp_0123456789"),
            "--token=${TOKEN}", "--port", "8080",
        ],
        "oauth": { "clientSecret": marked!("client-") },
        "unknownKey": { "accessToken": marked!("t-") },
        "alias": { "get_token": "fetch" },
    })
}

#[test]
fn sec_47_secrets_in_arguments_are_shown_by_no_command() {
    let home = TempHome::new();
    home.write_settings(servers(&[("own", leaky())]));
    // `run` fails when a secret is printed.
    for words in [
        &["get", "own"][..],
        &["get", "own", "--json"],
        &["explain", "own"],
        &["explain", "own", "--json"],
        &["list", "--no-connect"],
        &["list", "--no-connect", "--json"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let output = toolway(&home, words);
        assert!(!output.to_string().contains(MARK), "{words:?}");
    }
    assert_snapshot!(toolway(&home, &["get", "own"]).stdout, @r#"
    own
      scope      user
      source     [HOME]/.config/toolway/settings.json:3
      verdict    invalid: the variables `NAME`, `TOKEN` are not set
      command    npx
      args       ["-y","server","--access-token=[redacted]","--password","[redacted]","--api-key","[redacted]","--header","X-Mine: [redacted]","-e","DB_PASS=[redacted]","--config","{\"apiKey\":\"[redacted]\"}","--db=postgres://[redacted]@db/x","https://h.example/mcp?key=[redacted]&x=${NAME}","[redacted]","--token=${TOKEN}","--port","8080"]
      oauth      {"clientSecret":"[redacted]"}
      unknownKey {"accessToken":"[redacted]"}
      alias      {"get_token":"fetch"}
    "#);
}

/// A server's definition as `get --json` shows it.
fn shown_arguments(program: &str, words: &[&str]) -> serde_json::Value {
    let home = TempHome::new();
    let entry = json!({ "command": program, "args": words });
    home.write_settings(servers(&[("own", entry)]));
    let shown = toolway(&home, &["get", "own", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["definition"]["args"].clone()
}

#[test]
fn sec_47_logins_cookies_and_signatures_in_arguments_are_hidden() {
    for (words, expected) in [
        (
            &["--auth", marked!("u:")][..],
            &["--auth", "[redacted]"][..],
        ),
        (&["--auth", MARK], &["--auth", "[redacted]"]),
        (&["-u", marked!("u:")], &["-u", "[redacted]"]),
        (&[marked!("-uu:")], &["-u[redacted]"]),
        (&["--user", marked!("u:")], &["--user", "[redacted]"]),
        (&[marked!("--user=u:")], &["--user=[redacted]"]),
        (
            &["--basicAuth", marked!("u:")],
            &["--basicAuth", "[redacted]"],
        ),
        (&["-p", MARK], &["-p", "[redacted]"]),
        (&[marked!("-p")], &["-p[redacted]"]),
        (&["--cookie", MARK], &["--cookie", "[redacted]"]),
        (&["--cookies", MARK], &["--cookies", "[redacted]"]),
        (&["--pin", MARK], &["--pin", "[redacted]"]),
        (&["--pin=4711"], &["--pin=[redacted]"]),
        (&["--license", MARK], &["--license", "[redacted]"]),
        (&["--passcode", MARK], &["--passcode", "[redacted]"]),
        (&["--jwt", MARK], &["--jwt", "[redacted]"]),
        (
            &["-H", marked!("X-Api-Key: ")],
            &["-H", "X-Api-Key: [redacted]"],
        ),
        (&[marked!("-HX-Mine: ")], &["-HX-Mine: [redacted]"]),
        (
            &["--extra-header", marked!("X-Mine: ")],
            &["--extra-header", "X-Mine: [redacted]"],
        ),
        (
            &["-c", marked!("server -H 'X-Mine: ", "' -p 80")],
            &["-c", "server -H 'X-Mine: [redacted]' -p 80"],
        ),
        (
            &["-c", marked!("true; mysql -p", " -u me")],
            &["-c", "true; mysql -p[redacted] -u me"],
        ),
        (
            &[marked!("/files/a?v=1&X-Amz-Signature=")],
            &["/files/a?v=[redacted]&X-Amz-Signature=[redacted]"],
        ),
        (
            &[marked!("h.example/cb?code=", "&sig=b")],
            &["h.example/cb?code=[redacted]&sig=[redacted]"],
        ),
        (
            &["--connection-string", marked!("Server=h;Uid=sa;Pwd=")],
            &["--connection-string", "[redacted]"],
        ),
        (
            &["--connection-string", marked!("postgres://u:", "@h/db")],
            &["--connection-string", "postgres://[redacted]@h/db"],
        ),
        (
            &["--store", marked!("AccountName=a;AccountKey=", ";Zone=b")],
            &["--store", "AccountName=a;AccountKey=[redacted];Zone=b"],
        ),
        (
            &[marked!("postgres://u:a/", "@h/db")],
            &["postgres://[redacted]@h/db"],
        ),
        (
            &[marked!("http://a.example,http://u:", "@h")],
            &["http://a.example,http://[redacted]@h"],
        ),
    ] {
        assert_eq!(shown_arguments("server", words), json!(expected));
    }
}

#[test]
fn what_only_looks_like_a_login_stays() {
    for (program, words) in [
        ("server", &["-p", "8080", "-u", "root"][..]),
        ("server", &["-p8080", "--user", "me", "-p", "/srv/data"]),
        ("server", &["-port", "80", "-profile=dev", "-update"]),
        ("server", &["--auth", "none", "--auth=oauth2", "--user=me"]),
        (
            "server",
            &["-u", "http://localhost:80/", "-u", "127.0.0.1:80"],
        ),
        ("server", &["--max-tokens", "100", "--cookie-jar", "/tmp/a"]),
        ("server", &["-u", "${USER}:${PW}", "what?", "a?b"]),
        (
            "docker",
            &[
                "run",
                "-p",
                "3000:3000",
                "--user",
                "1000:1000",
                "-u",
                "1000",
            ],
        ),
        ("docker", &["run", "-p", "127.0.0.1:8080:80/tcp", "image"]),
        ("python3", &["-u", "server.py"]),
        ("mkdir", &["-p", "folder"]),
        ("npx", &["-y", "-p", "package@1", "command", "--port", "80"]),
        ("/usr/bin/npx", &["-p", "one", "-p", "two", "command"]),
        ("sudo", &["npx", "-p", "package", "command"]),
        ("npm", &["exec", "-p", "package", "--", "command"]),
        ("sh", &["-c", "mkdir -p folder && npx -p package command"]),
        ("psql", &["-U", "me", "-p", "5432"]),
    ] {
        assert_eq!(shown_arguments(program, words), json!(words), "{program}");
    }
}

#[test]
fn sec_47_a_runner_passes_passwords_on_and_they_are_hidden() {
    for (program, words) in [
        ("npx", &["-y", "server", "-p", MARK][..]),
        ("npx", &["-p", "package", "server", "-p", MARK]),
        ("npm", &["exec", "package", "--", "-p", MARK]),
        ("uv", &["run", "server.py", "-p", MARK]),
        ("docker", &["run", "-p", "80:80", "image", "-p", MARK]),
    ] {
        let shown = shown_arguments(program, words);
        let last = shown.as_array().unwrap().last().unwrap().clone();
        assert_eq!(last, "[redacted]", "{program}");
    }
}

#[test]
fn sec_47_an_import_shows_no_secret_of_the_persons_own_files() {
    let home = TempHome::new();
    let file = home.home().join(".cursor/mcp.json");
    home.write(&file, servers(&[("own", leaky())]));
    home.may_hold_secrets(&file);
    for words in [
        &["import", "cursor"][..],
        &["import", "cursor", "--json"],
        &["import", "cursor", "--yes"],
    ] {
        toolway(&home, words).expect_code(0);
    }
    home.may_keep_secrets(home.config_home().join("settings.json"));
}

#[test]
fn sec_05_what_a_person_decides_about_is_shown_whole_and_its_change_without_secrets() {
    let home = TempHome::new();
    let entry = |secret: &str| {
        let args = json!(["--password", secret, marked!("--token=same-"), "x"]);
        servers(&[("a", json!({ "command": "true", "args": args }))])
    };
    home.write(".mcp.json", entry(marked!("old-")));
    let approve = |words: &[&str]| home.run_showing_secrets(&mut command(&home, words));
    let shown = approve(&["approve", "a", "--yes"]).expect_code(0);
    assert!(shown.stderr.contains(marked!("old-")), "the argv is whole");
    home.write(".mcp.json", entry(marked!("new-")));
    let explained = toolway(&home, &["explain", "a"]);
    assert!(
        explained.stdout.contains("\"[redacted, changed]\""),
        "{explained}"
    );
    assert!(
        explained.stdout.contains("--token=[redacted]\""),
        "{explained}"
    );
    let asked = approve(&["approve", "a"]);
    assert!(asked.stderr.contains(marked!("new-")), "{asked}");
    assert!(!asked.stderr.contains(marked!("old-")), "the difference");
    home.may_keep_secrets(home.config_home().join("approvals.json"));
}

#[test]
fn sec_47_what_was_typed_is_not_repeated_with_its_secrets() {
    let home = TempHome::new();
    let url = marked!("http://127.0.0.1:1/mcp?key=");
    for words in [
        &["tools", "--", "false", "--token", MARK][..],
        &["call", url, "x"],
        &["add", "x", marked!("npx --token ")],
        &["add", "x", marked!("h.example/mcp?key=")],
        &["add", "x", "docker", "-i", "-e", marked!("TOKEN=")],
        &["--mcp-server", marked!("q=false --token "), "tools", "q"],
    ] {
        let output = toolway(&home, words);
        assert_ne!(output.code, Some(0), "{words:?}");
    }
    let output = toolway(&home, &["tools", "--", "false", "--verbose"]);
    assert!(output.stderr.contains("`false --verbose`"), "{output}");
}
