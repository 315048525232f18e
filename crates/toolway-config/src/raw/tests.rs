//! A zoo of broken files: one clear diagnosis per fault, and nothing else is affected.

use std::fmt::Write as _;

use insta::assert_snapshot;

use super::*;

/// Everything that was found, one line each, the way a person would read it.
fn shown(text: &str, kind: FileKind) -> String {
    let source = TextSource::file("f.json");
    let file = match raw_file(text, &source, kind) {
        Ok(file) => file,
        Err(fault) => return line(&fault),
    };
    let mut all = String::new();
    for diagnosis in &file.diagnoses {
        all.push_str(&line(diagnosis));
    }
    for server in &file.servers {
        let kind = server.kind.map_or("-", TransportKind::as_str);
        let _ = writeln!(all, "{} ({kind}) at {}", server.name, server.origin);
        for diagnosis in &server.diagnoses {
            assert_eq!(diagnosis.server.as_ref(), Some(&server.name));
            let _ = write!(all, "  {}", line(diagnosis));
        }
    }
    all
}

fn raw_file(text: &str, source: &TextSource, kind: FileKind) -> Result<RawFile, Diagnosis> {
    super::read(text, source, kind)
}

fn line(diagnosis: &Diagnosis) -> String {
    let mut text = format!("{:?} ", diagnosis.severity).to_lowercase();
    if let Some(origin) = &diagnosis.origin {
        let _ = write!(text, "{origin}");
    }
    if let Some(column) = diagnosis.column {
        let _ = write!(text, ":{column}");
    }
    let _ = write!(text, " {}", diagnosis.message);
    if let Some(hint) = &diagnosis.hint {
        let _ = write!(text, " | hint: {hint}");
    }
    text + "\n"
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_fine() {
    let text = "\u{FEFF}// servers\n{\n  \"mcpServers\": { /* one */\n    \"a\": {\"command\": \"x\", \"args\": [\"y\",],},\n  },\n}\n";
    assert_snapshot!(shown(text, FileKind::Project), @"a (stdio) at f.json:4");
}

#[test]
fn broken_json_has_its_line_and_column() {
    for text in [
        "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"\n  }\n",
        "{\"mcpServers\": {\"a\" {}}}",
        "{'mcpServers': {}}",
        "{\"a\": 1 \"b\": 2}",
        "[]",
        "{} {}",
        "\"x",
    ] {
        let fault = line(&raw_file(text, &TextSource::file("f.json"), FileKind::User).unwrap_err());
        assert!(fault.starts_with("error f.json:"), "{fault}");
    }
    assert_snapshot!(shown("{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}", FileKind::User), @"error f.json:3:21 not valid JSON: expected colon after the string or word in object property | hint: mend the file at that place; nothing in it is read until then");
}

#[test]
fn every_fault_of_an_entry_is_named_once() {
    let text = r#"{
  "mcpServers": {
    "typo": {"type": "htpp", "url": "https://a.example"},
    "strange": {"type": "carrier-pigeon"},
    "socket": {"type": "websocket", "url": "wss://a.example"},
    "nothing": {},
    "empty": {"command": " "},
    "both": {"command": "x", "url": "https://a.example"},
    "inferred": {"url": "https://a.example"},
    "inferred-socket": {"url": "ws://a.example"},
    "no-command": {"type": "stdio", "url": "https://a.example"},
    "no-url": {"type": "sse", "command": "x"},
    "text": "npx server",
    "list": ["npx"],
    "types": {
      "command": 1,
      "args": "-y",
      "env": {
        "PORT": 8080,
        "A=B": "x"
      },
      "disabled": "yes",
      "cwd": null
    },
    "args": {"command": "x", "args": ["ok", 7, null]},
    "headers": {"type": "http", "url": "https://a.example", "headers": {
      "Bad Name": "x",
      "Split": "a\r\nb",
      "Fine": "x"
    }},
    "relative": {"type": "http", "url": "a.example/mcp"},
    "scheme": {"type": "http", "url": "ftp://a.example"},
    "scheme-ws": {"type": "ws", "url": "https://a.example"},
    "port": {"type": "http", "url": "https://a.example:99999"},
    "seconds": {"command": "x", "timeout": 30},
    "fraction": {"command": "x", "timeout": 1500.5},
    "words": {"command": "x", "timeout": "1m"},
    "era": {"command": "x", "protocol": "modern"},
    "slips": {"cmd": "x", "arg": [], "environment": {}, "Command": "y", "x-mine": 1, "command": "z"},
    "oauth": {"type": "http", "url": "https://a.example", "oauth": {
      "clientId": 7, "callbackPort": 70000, "scope": "a", "authServerMetadataUrl": "x"
    }},
    "shell": {"command": "npx -y server"},
    "later": {"command": "x", "alwaysLoad": 1, "includeTools": ["a"], "excludeTools": "b", "alias": ""},
    "fine": {"command": "x", "unknown": {"kept": true}}
  }
}"#;
    assert_snapshot!(shown(text, FileKind::User), @r#"
    typo (-) at f.json:3
      error f.json:3 unknown `type` `htpp` | hint: did you mean `http`? The types are `stdio`, `http`, `sse`, `ws`, `sdk`, `sse-ide`, `ws-ide`, `connector`
    strange (-) at f.json:4
      error f.json:4 unknown `type` `carrier-pigeon` | hint: the types are `stdio`, `http`, `sse`, `ws`, `sdk`, `sse-ide`, `ws-ide`, `connector`
    socket (-) at f.json:5
      error f.json:5 unknown `type` `websocket` | hint: did you mean `ws`? The types are `stdio`, `http`, `sse`, `ws`, `sdk`, `sse-ide`, `ws-ide`, `connector`
    nothing (-) at f.json:6
      error f.json:6 neither `command` nor `url` is given | hint: add `"command": "…"`, or `"type": "http"` and `"url": "https://…"`
    empty (-) at f.json:7
      error f.json:7 `command` is empty | hint: write e.g. `"command": "npx"`
    both (-) at f.json:8
      error f.json:8 `command` and `url` are both given; a server has one of them | hint: remove one of them
    inferred (http) at f.json:9
      warning f.json:9 `url` without `type`: taken as `http` | hint: add `"type": "http"`
    inferred-socket (ws) at f.json:10
      warning f.json:10 `url` without `type`: taken as `ws` | hint: add `"type": "ws"`
    no-command (stdio) at f.json:11
      error f.json:11 `type` is `stdio`, but `command` is missing | hint: set `type` to `http`
    no-url (sse) at f.json:12
      error f.json:12 `type` is `sse`, but `url` is missing | hint: set `type` to `stdio`, or leave it out
    text (-) at f.json:13
      error f.json:13 a server must be an object, not a string | hint: write `{"command": "…", "args": []}` or `{"type": "http", "url": "https://…"}`
    list (-) at f.json:14
      error f.json:14 a server must be an object, not an array | hint: write `{"command": "…", "args": []}` or `{"type": "http", "url": "https://…"}`
    types (stdio) at f.json:15
      error f.json:16 `command` must be a string, not a number | hint: write e.g. `"command": "npx"`
      error f.json:17 `args` must be an array of strings, not a string | hint: write e.g. `"args": ["-y", "a-server"]`
      error f.json:19 `env.PORT` must be a string, not a number | hint: write it in quotes: `"8080"`
      error f.json:20 `A=B` is not a valid variable name | hint: write e.g. `"env": {"NAME": "value"}`
      error f.json:22 `disabled` must be `true` or `false`, not a string | hint: mend `disabled` in the entry, or leave it out
      error f.json:23 `cwd` must be a string, not null | hint: mend `cwd` in the entry, or leave it out
    args (stdio) at f.json:25
      error f.json:25 `args[1]` must be a string, not a number | hint: write it in quotes: `"7"`
      error f.json:25 `args[2]` must be a string, not null | hint: write e.g. `"args": ["-y", "a-server"]`
    headers (http) at f.json:26
      error f.json:27 `Bad Name` is not a valid header name | hint: write e.g. `"headers": {"Name": "value"}`
      error f.json:28 `headers.Split` has a line break, which would start another header | hint: write e.g. `"headers": {"Name": "value"}`
    relative (http) at f.json:31
      error f.json:31 `url` must begin with `http://` or `https://` | hint: write e.g. `"url": "https://example.com/mcp"`
    scheme (http) at f.json:32
      error f.json:32 `url` must begin with `http://` or `https://`, not `ftp:` | hint: write e.g. `"url": "https://example.com/mcp"`
    scheme-ws (ws) at f.json:33
      error f.json:33 `url` must begin with `ws://` or `wss://`, not `https:` | hint: write e.g. `"url": "https://example.com/mcp"`
    port (http) at f.json:34
      error f.json:34 `url` is not a URL: invalid port number | hint: write e.g. `"url": "https://example.com/mcp"`
    seconds (stdio) at f.json:35
      error f.json:35 `timeout` is 30 ms; the least is 1000 | hint: it counts milliseconds: for 30 seconds write 30000
    fraction (stdio) at f.json:36
      error f.json:36 `timeout` must be a whole number of milliseconds, not 1500.5 | hint: write milliseconds, e.g. `"timeout": 60000`
    words (stdio) at f.json:37
      error f.json:37 `timeout` must be a whole number of milliseconds, not a string | hint: write milliseconds, e.g. `"timeout": 60000`
    era (stdio) at f.json:38
      error f.json:38 unknown `protocol` `modern` | hint: use `auto`, `legacy` or `2026-07-28`
    slips (stdio) at f.json:39
      warning f.json:39 `cmd` is not a key Toolway reads | hint: did you mean `command`?
      warning f.json:39 `arg` is not a key Toolway reads | hint: did you mean `args`?
      warning f.json:39 `environment` is not a key Toolway reads | hint: did you mean `env`?
      warning f.json:39 `Command` is not a key Toolway reads | hint: did you mean `command`?
    oauth (http) at f.json:40
      error f.json:41 `oauth.clientId` must be a string, not a number | hint: mend `oauth` in the entry, or leave it out
      error f.json:41 `oauth.callbackPort` must be a port number from 1 to 65535, not 70000 | hint: mend `oauth` in the entry, or leave it out
      warning f.json:41 `oauth.scope` is not a key Toolway reads | hint: did you mean `oauth.scopes`?
      error f.json:41 `oauth.authServerMetadataUrl` must begin with `http://` or `https://` | hint: mend `oauth` in the entry, or leave it out
    shell (stdio) at f.json:43
      warning f.json:43 `command` has a space in it, and no shell will split it | hint: put the rest into `args`
    later (stdio) at f.json:44
      error f.json:44 `alwaysLoad` must be `true` or `false`, not a number | hint: mend `alwaysLoad` in the entry, or leave it out
      error f.json:44 `excludeTools` must be an array of strings, not a string | hint: mend `excludeTools` in the entry, or leave it out
      error f.json:44 `alias` must be an object with string values, not a string | hint: write e.g. `"alias": {"a_long_tool_name": "short"}`
    fine (stdio) at f.json:45
    "#);
}

#[test]
fn how_long_a_server_may_be_idle_is_seconds_or_never() {
    let text = r#"{
  "mcpServers": {
    "minutes": {"command": "x", "idle": 600},
    "always": {"command": "x", "idle": "never"},
    "zero": {"command": "x", "idle": 0},
    "fraction": {"command": "x", "idle": 0.5},
    "less": {"command": "x", "idle": -1},
    "word": {"command": "x", "idle": "10m"},
    "switch": {"command": "x", "idle": false}
  }
}"#;
    assert_snapshot!(shown(text, FileKind::User), @r#"
    minutes (stdio) at f.json:3
    always (stdio) at f.json:4
    zero (stdio) at f.json:5
      error f.json:5 `idle` must be a whole number of seconds, or `never`, not 0 | hint: for a server that never rests write `"idle": "never"`
    fraction (stdio) at f.json:6
      error f.json:6 `idle` must be a whole number of seconds, or `never`, not 0.5 | hint: write seconds, e.g. `"idle": 600`, or `"idle": "never"`
    less (stdio) at f.json:7
      error f.json:7 `idle` must be a whole number of seconds, or `never`, not -1 | hint: write seconds, e.g. `"idle": 600`, or `"idle": "never"`
    word (stdio) at f.json:8
      error f.json:8 `idle` must be a whole number of seconds, or `never`, not `10m` | hint: write seconds, e.g. `"idle": 600`, or `"idle": "never"`
    switch (stdio) at f.json:9
      error f.json:9 `idle` must be a whole number of seconds, or `never`, not a boolean | hint: write seconds, e.g. `"idle": 600`, or `"idle": "never"`
    "#);
}

#[test]
fn slips_inside_oauth_are_named_like_those_of_an_entry() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\"type\": \"http\", \"url\": \"https://a.example\", \"oauth\": {\n      \"clientID\": \"x\",\n      \"client_id\": \"x\",\n      \"acount\": \"x\",\n      \"scopes\u{200B}\": \"x\",\n      \"xaa \": true,\n      \"x-mine\": 1\n    }}\n  }\n}";
    assert_snapshot!(shown(text, FileKind::User), @r#"
    a (http) at f.json:3
      warning f.json:4 `oauth.clientID` is not a key Toolway reads | hint: did you mean `oauth.clientId`?
      warning f.json:5 `oauth.client_id` is not a key Toolway reads | hint: did you mean `oauth.clientId`?
      warning f.json:6 `oauth.acount` is not a key Toolway reads | hint: did you mean `oauth.account`?
      error f.json:7 the key `oauth.scopes\u{200B}` has hidden characters | hint: write it as `scopes`
      error f.json:8 the key `oauth.xaa ` has hidden characters | hint: write it as `xaa`
    "#);
}

#[test]
fn an_account_is_a_word_that_a_person_can_see_and_type() {
    let long = "x".repeat(129);
    let text = format!(
        "{{\n  \"mcpServers\": {{\n{}  }}\n}}",
        [
            ("number", "7"),
            ("empty", "\"\""),
            ("blank", "\" \""),
            ("edge", "\"work \""),
            ("hidden", "\"wo\\u200brk\""),
            ("newline", "\"a\\nb\""),
            ("long", &format!("\"{long}\"")),
            ("fine", "\"me@work.example\""),
            ("variable", "\"${WHO}\""),
        ]
        .map(|(name, account)| format!(
            "    \"{name}\": {{\"type\": \"http\", \"url\": \"https://a.example\",\n      \"oauth\": {{\"account\": {account}}}}},\n"
        ))
        .concat()
    );
    assert_snapshot!(shown(&text, FileKind::User), @r#"
    number (http) at f.json:3
      error f.json:4 `oauth.account` must be a string, not a number | hint: mend `oauth` in the entry, or leave it out
    empty (http) at f.json:5
      error f.json:6 `oauth.account` must not be empty | hint: mend `oauth` in the entry, or leave it out
    blank (http) at f.json:7
      error f.json:8 `oauth.account` must not be empty | hint: mend `oauth` in the entry, or leave it out
    edge (http) at f.json:9
      error f.json:10 `oauth.account` has white space at its edge | hint: write your word for the account, e.g. `"account": "work"`
    hidden (http) at f.json:11
      error f.json:12 `oauth.account` has an invisible character (U+200B) | hint: write your word for the account, e.g. `"account": "work"`
    newline (http) at f.json:13
      error f.json:14 `oauth.account` has an invisible character (U+000A) | hint: write your word for the account, e.g. `"account": "work"`
    long (http) at f.json:15
      error f.json:16 `oauth.account` is longer than 128 characters | hint: write your word for the account, e.g. `"account": "work"`
    fine (http) at f.json:17
    variable (http) at f.json:19
    "#);
}

#[test]
fn hidden_characters_and_doubled_keys_are_found() {
    let text = "{\n  \"mcpServers\": {\n    \" a\": {\"command\": \"x\"},\n    \"b\u{200B}\": {\"command\": \"x\"},\n    \"c\": {\"command \": \"x\"},\n    \"d\": {\"command\": \"x\", \"command\": \"y\"},\n    \"e\": {\"command\": \"x\", \"env\": {\"K\": \"1\",\n      \"K\": \"2\"}},\n    \"f\": {\"command\": \"x\"},\n    \"f\": {\"command\": \"y\"},\n    \"\": {\"command\": \"x\"}\n  },\n  \"mcpServers \": {},\n  \"permissions\": {},\n  \"permissions\": {}\n}";
    assert_snapshot!(shown(text, FileKind::User), @"
    error f.json:13 the key `mcpServers ` has hidden characters and is not read | hint: write it as `mcpServers`
    error f.json:15 `permissions` stands twice, on lines 14 and 15 | hint: make them one
    a (stdio) at f.json:3
      error f.json:3 the server name ` a` has white space at its edge | hint: write it as `a`
    b (stdio) at f.json:4
      error f.json:4 the server name has an invisible character (U+200B) | hint: write it as `b`
    c (-) at f.json:5
      error f.json:5 the key `command ` has hidden characters | hint: write it as `command`
    d (stdio) at f.json:6
      error f.json:6 `command` stands twice in this entry, on lines 6 and 6 | hint: keep one of them
    e (stdio) at f.json:7
      error f.json:8 `K` stands twice in this entry, on lines 7 and 8 | hint: keep one of them
    f (stdio) at f.json:9
    f (stdio) at f.json:10
      warning f.json:10 `f` stands twice in this file; the one on line 9 is not used
    (unnamed) (stdio) at f.json:11
      error f.json:11 a server name must not be empty
    ");
}

#[test]
fn other_programs_keys_are_named_and_not_loaded() {
    for key in ["servers", "mcp", "context_servers"] {
        let text = format!("{{\n  \"{key}\": {{\"a\": {{\"command\": \"x\"}}}}\n}}");
        let file = raw_file(&text, &TextSource::file("f.json"), FileKind::Project).unwrap();
        assert_eq!(file.servers.len(), 0);
        assert_eq!(file.diagnoses.len(), 1, "{key}");
        assert_eq!(
            line(&file.diagnoses[0]),
            format!(
                "error f.json:2 `{key}` is another program's key; its servers are not loaded \
                 | hint: rename `{key}` to `mcpServers`, or run `toolway import`\n"
            )
        );
    }
    assert_snapshot!(shown(r#"{"a": {"command": "x"}}"#, FileKind::Project), @r#"warning f.json:1 there is no `mcpServers` in this file | hint: put the servers below `"mcpServers": {…}`"#);
    assert_snapshot!(shown(r#"{"mcpServers": []}"#, FileKind::Project), @r#"error f.json:1 `mcpServers` must be an object, not an array | hint: write `"mcpServers": {"name": {"command": "…"}}`"#);
    assert_snapshot!(shown(r#"{"disabledMcpServer": [], "disabledMcpServers": "a", "enabledMcpServers": [1], "enableAllProjectMcpServers": 1, "enabledPlugins": {"p": "no"}}"#, FileKind::User), @"
    warning f.json:1 `disabledMcpServer` is not a key Toolway reads | hint: did you mean `disabledMcpServers`?
    error f.json:1 `disabledMcpServers` must be an array of strings, not a string
    error f.json:1 `enabledMcpServers[0]` must be a string, not a number
    error f.json:1 `enableAllProjectMcpServers` must be `true` or `false`, not a number
    error f.json:1 `enabledPlugins.p` must be `true` or `false`, not a string
    ");
}

#[test]
fn sec_03_a_projects_file_cannot_speak_about_trust() {
    let text = r#"{
  "mcpServers": {},
  "enabledMcpjsonServers": ["a"],
  "enableAllProjectMcpServers": true,
  "enabledMcpServers": ["a"],
  "permissions": {"defaultMode": "bypass"},
  "hooks": {},
  "projectVariables": ["*"],
  "allowedMcpServers": [{"serverName": "*"}],
  "env": {"HTTPS_PROXY": "http://evil"}
}"#;
    assert_snapshot!(shown(text, FileKind::Project), @"
    warning f.json:3 `enabledMcpjsonServers` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:4 `enableAllProjectMcpServers` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:5 `enabledMcpServers` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:6 `permissions` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:7 `hooks` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:8 `projectVariables` is ignored: a project's own file cannot set it | hint: it counts only in your own settings (`settings.json` in the config home)
    warning f.json:9 `allowedMcpServers` is ignored: a project's own file cannot set it | hint: it counts only in the system directory's `managed-settings.json`
    warning f.json:10 `env` is ignored: a project's own file cannot set it | hint: it counts only in the system directory's `managed-settings.json`
    ");
    let file = raw_file(text, &TextSource::file("f.json"), FileKind::Project).unwrap();
    assert!(file.settings.enabled_project.is_empty() && file.settings.enable_all_project.is_none());
    assert!(file.settings.permissions.is_none() && file.settings.hooks.is_none());
    assert!(file.settings.allowed.is_none() && file.settings.env.is_empty());
}

#[test]
fn sec_14_a_policy_that_could_mean_something_else_is_a_fault() {
    for text in [
        r#"{"deniedMcpServers": {}}"#,
        r#"{"deniedMcpServers": ["a"]}"#,
        r#"{"deniedMcpServers": [{"serverName": "a", "serverUrl": "b"}]}"#,
        r#"{"deniedMcpServers": [{"serverName": "a", "serverName": "b"}]}"#,
        r#"{"deniedMcpServers": [{"name": "a"}]}"#,
        r#"{"deniedMcpServers": [{"serverUrl": "https://u@a/"}]}"#,
        r#"{"deniedMcpServers": [{"serverCommand": "npx"}]}"#,
        r#"{"deniedMcpServers": [], "deniedMcpServers": []}"#,
        r#"{"deniedMcpServers ": []}"#,
        r#"{"deniedMcpServer": []}"#,
        r#"{"allowedMcpInstructions": {"allow": ["a"]}}"#,
        r#"{"deniedMcpInstructions": [{"name": "a"}]}"#,
        r#"{"deniedMcpInstruction": []}"#,
    ] {
        let file = raw_file(text, &TextSource::file("f.json"), FileKind::Managed).unwrap();
        assert!(file.settings.policy_fault.is_some(), "{text}");
    }
    assert!(raw_file("", &TextSource::file("f.json"), FileKind::Managed).is_err());
}
