//! Broken configuration: one clear diagnosis per fault, and nothing else is affected.

use insta::assert_snapshot;
use serde_json::json;
use toolway_testkit::{Script, ScriptedServer, TempHome};

use crate::support::{command, servers, toolway};

#[test]
fn a_fault_in_a_typed_server_ends_the_command() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["list", "--mcp-server", "npx"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `--mcp-server` needs a name before `=`
    hint: write `--mcp-server name=command` or `--mcp-server name=https://…`
    ");
    assert_snapshot!(toolway(&home, &["list", "--mcp-server", "=npx"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `--mcp-server` needs a name before `=`
    hint: write `--mcp-server name=command` or `--mcp-server name=https://…`
    ");
    assert_snapshot!(toolway(&home, &["list", "--mcp-server", "a='npx"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `--mcp-server a=…` cannot be split into words: a quote is not closed
    hint: write `--mcp-server name=command` or `--mcp-server name=https://…`
    ");
}

/// Asked for one server, `tools` says what `call` says, and nothing about the others.
#[test]
fn tools_of_one_server_says_why_it_cannot_be_used() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[
            ("waiting", json!({ "command": "true" })),
            ("wrong", json!({ "type": "http" })),
            ("other", json!({ "args": 7 })),
            ("slip", json!({ "comand": "true" })),
        ]),
    );
    assert_snapshot!(toolway(&home, &["call", "waiting"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: which tool of `waiting`?
    hint: see its tools with `toolway tools waiting`
    ");
    assert_snapshot!(toolway(&home, &["tools", "slip"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `slip` cannot be used: neither `command` nor `url` is given
      at [PROJECT]/.mcp.json:12
    hint: rename `comand` to `command`
    ");
    let doctor = toolway(&home, &["doctor"]).expect_code(3);
    assert_eq!(
        doctor.stdout.matches("server `slip`").count(),
        1,
        "{doctor}"
    );
    assert_snapshot!(toolway(&home, &["tools", "waiting"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `waiting` cannot be used: `waiting` comes from the project's `.mcp.json` and is not approved
    hint: look at it with `toolway approve waiting`
    ");
    assert_snapshot!(toolway(&home, &["tools", "wrong"]), @r#"
    exit: 3
    ----- stdout
    ----- stderr
    error: server `wrong` cannot be used: `type` is `http`, but `url` is missing
      at [PROJECT]/.mcp.json:7
    hint: add `"url": "https://…"`
    "#);
}

#[test]
fn broken_json_is_located_and_other_files_still_load() {
    let home = TempHome::new();
    home.write_settings(servers(&[(
        "good",
        ScriptedServer::new(Script::default()).entry(),
    )]));
    home.write(
        ".mcp.json",
        "{\n  \"mcpServers\": {\n    \"x\": { \"command\": }\n  }\n}\n",
    );
    // Whether there is a shield depends on the machine.
    let mut doctor = command(&home, &["doctor"]);
    doctor
        .env("TOOLWAY_SHIELD", "off")
        .env("TOOLWAY_VAULT", "file");
    assert_snapshot!(home.run(&mut doctor), @"
    exit: 3
    ----- stdout
    config home   [HOME]/.config/toolway
    project root  [PROJECT]
    servers       1 admitted
    shield        off: `TOOLWAY_SHIELD` is `off`
                  not behind it: good
    keychain      ok: an encrypted file: protects against copying the one file, not against someone who can read your home
    vault         ok: empty
    clock         ok: not compared with a server's: nothing is asked without `--network`
    callback      ok: a browser can come back to this machine
    proxy         ok: none
    certificates  ok: the system's

    error: [PROJECT]/.mcp.json:3:23: not valid JSON: unexpected close brace
    hint: mend the file at that place; nothing in it is read until then
    ----- stderr
    ");
    let listed = toolway(&home, &["list", "--json"]).expect_code(3);
    assert_eq!(
        listed.json()["servers"][0]["state"],
        "connected",
        "{listed}"
    );
    // An invalid file is never overwritten.
    let before = home.read(".mcp.json");
    assert_snapshot!(toolway(&home, &["add", "-s", "project", "y", "true"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[PROJECT]/.mcp.json` is not valid: unexpected close brace (line 3, column 23); it was left as it is
    hint: mend `[PROJECT]/.mcp.json` first; nothing was written
    ");
    assert_eq!(home.read(".mcp.json"), before);
}

#[test]
fn each_faulty_entry_is_diagnosed_and_the_good_one_works() {
    let home = TempHome::new();
    let good = ScriptedServer::new(Script::default()).entry();
    home.write_settings(format!(
        r#"{{
  // every way to get it wrong
  "mcpServers": {{
    "good": {good},
    "unknown-type": {{ "type": "htpp", "url": "https://x.example/" }},
    "no-command": {{ "args": ["x"] }},
    "no-url": {{ "type": "http" }},
    "wrong-args": {{ "command": "true", "args": "one two" }},
    "wrong-env": {{ "command": "true", "env": {{ "PORT": 80 }} }},
    "bad-url": {{ "type": "http", "url": "not a url" }},
    "undefined": {{ "command": "true", "args": ["${{NOWHERE_DEFINED}}"] }},
    "hidden ": {{ "command": "true" }},
    "key-space": {{ "command ": "true" }},
    "short": {{ "command": "true", "timeout": 5 }},
    "string": "npx server",
  }},
}}
"#
    ));
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @r#"
    exit: 0
    ----- stdout
    NAME          SCOPE  TYPE   STATE      TOOLS  DETAIL
    bad-url       user   http   ✘ failed   -      `url` must begin with `http://` or `https://`
    good          user   stdio  · pending  -
    hidden        user   stdio  ✘ failed   -      the server name `hidden ` has white space at its edge
    key-space     user   -      ✘ failed   -      the key `command ` has hidden characters
    no-command    user   -      ✘ failed   -      neither `command` nor `url` is given
    no-url        user   http   ✘ failed   -      `type` is `http`, but `url` is missing
    short         user   stdio  ✘ failed   -      `timeout` is 5 ms; the least is 1000
    string        user   -      ✘ failed   -      a server must be an object, not a string
    undefined     user   stdio  ✘ failed   -      the variable `NOWHERE_DEFINED` is not set
    unknown-type  user   -      ✘ failed   -      unknown `type` `htpp`
    wrong-args    user   stdio  ✘ failed   -      `args` must be an array of strings, not a string
    wrong-env     user   stdio  ✘ failed   -      `env.PORT` must be a string, not a number
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:10: server `bad-url`: `url` must begin with `http://` or `https://`
    hint: write e.g. `"url": "https://example.com/mcp"`
    error: [HOME]/.config/toolway/settings.json:12: server `hidden`: the server name `hidden ` has white space at its edge
    hint: write it as `hidden`
    error: [HOME]/.config/toolway/settings.json:13: server `key-space`: the key `command ` has hidden characters
    hint: write it as `command`
    and 8 more findings like these
    hint: see all of them with `toolway doctor`
    "#);
    // `doctor` leaves nothing out.
    let checked = toolway(&home, &["doctor"]).expect_code(3).stdout;
    let (_, found) = checked.split_once("\n\n").unwrap();
    assert_snapshot!(found, @r#"
    error: [HOME]/.config/toolway/settings.json:10: server `bad-url`: `url` must begin with `http://` or `https://`
    hint: write e.g. `"url": "https://example.com/mcp"`

    error: [HOME]/.config/toolway/settings.json:12: server `hidden`: the server name `hidden ` has white space at its edge
    hint: write it as `hidden`

    error: [HOME]/.config/toolway/settings.json:13: server `key-space`: the key `command ` has hidden characters
    hint: write it as `command`

    error: [HOME]/.config/toolway/settings.json:6: server `no-command`: neither `command` nor `url` is given
    hint: add `"command": "…"`, or `"type": "http"` and `"url": "https://…"`

    error: [HOME]/.config/toolway/settings.json:7: server `no-url`: `type` is `http`, but `url` is missing
    hint: add `"url": "https://…"`

    error: [HOME]/.config/toolway/settings.json:14: server `short`: `timeout` is 5 ms; the least is 1000
    hint: it counts milliseconds: for 5 seconds write 5000

    error: [HOME]/.config/toolway/settings.json:15: server `string`: a server must be an object, not a string
    hint: write `{"command": "…", "args": []}` or `{"type": "http", "url": "https://…"}`

    error: [HOME]/.config/toolway/settings.json:11: server `undefined`: the variable `NOWHERE_DEFINED` is not set
    hint: set it, or give it a default: `${NOWHERE_DEFINED:-value}`

    error: [HOME]/.config/toolway/settings.json:5: server `unknown-type`: unknown `type` `htpp`
    hint: did you mean `http`? The types are `stdio`, `http`, `sse`, `ws`, `sdk`, `sse-ide`, `ws-ide`, `connector`

    error: [HOME]/.config/toolway/settings.json:8: server `wrong-args`: `args` must be an array of strings, not a string
    hint: write e.g. `"args": ["-y", "a-server"]`

    error: [HOME]/.config/toolway/settings.json:9: server `wrong-env`: `env.PORT` must be a string, not a number
    hint: write it in quotes: `"80"`
    "#);
    let listed = toolway(&home, &["list", "--json"]).expect_code(0).json();
    let good = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "good")
        .unwrap();
    assert_eq!(good["state"], "connected");
    toolway(&home, &["doctor"]).expect_code(3);
    assert_snapshot!(toolway(&home, &["explain", "undefined"]), @r#"
    exit: 0
    ----- stdout
    undefined (user scope) at [HOME]/.config/toolway/settings.json:11
      invalid: the variable `NOWHERE_DEFINED` is not set
      reads the variables NOWHERE_DEFINED
        {
          "command": "true",
          "args": [
            "${NOWHERE_DEFINED}"
          ]
        }
      error: [HOME]/.config/toolway/settings.json:11: server `undefined`: the variable `NOWHERE_DEFINED` is not set
      hint: set it, or give it a default: `${NOWHERE_DEFINED:-value}`
    next: mend the entry at [HOME]/.config/toolway/settings.json:11
    ----- stderr
    "#);
    toolway(&home, &["call", "undefined", "x"]).expect_code(3);
}

#[test]
fn the_wrong_root_key_is_named() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        r#"{ "servers": { "x": { "command": "true" } } }"#,
    );
    assert_snapshot!(toolway(&home, &["list", "--no-connect"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: [PROJECT]/.mcp.json:1: `servers` is another program's key; its servers are not loaded
    hint: rename `servers` to `mcpServers`, or run `toolway import`
    no server is configured
    hint: add one with `toolway add <name> <command or url>`
    ");
}

#[test]
fn a_policy_that_cannot_be_parsed_is_said_to_stop_everything() {
    let home = TempHome::new();
    home.write_settings(servers(&[("mine", json!({ "command": "true" }))]));
    home.write(
        home.system().join("managed-settings.json"),
        "{ \"deniedMcpServers\": [",
    );
    assert_snapshot!(toolway(&home, &["list"]), @"
    exit: 3
    ----- stdout
    NAME  SCOPE  TYPE   STATE       TOOLS  DETAIL
    mine  user   stdio  ⊘ disabled  -      nothing may connect, because the policy in `[SYSTEM]/managed-settings.json` is unusable: not valid JSON: unterminated array
    ----- stderr
    error: [SYSTEM]/managed-settings.json:1:23: nothing may connect, because the policy in `[SYSTEM]/managed-settings.json` is unusable: not valid JSON: unterminated array
    hint: ask the administrator of this machine to mend `[SYSTEM]/managed-settings.json`
    ");
    assert_snapshot!(toolway(&home, &["call", "mine", "x"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    error: server `mine` cannot be used: nothing may connect, because the policy in `[SYSTEM]/managed-settings.json` is unusable: not valid JSON: unterminated array
    hint: ask the administrator of this machine to mend `[SYSTEM]/managed-settings.json`
    ");
}

#[test]
fn a_missing_config_file_on_the_command_line_is_an_error() {
    let home = TempHome::new();
    assert_snapshot!(toolway(&home, &["--mcp-config", "nowhere.json", "list"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `--mcp-config`: there is no file `[PROJECT]/nowhere.json`
    hint: give a file's path, or JSON that starts with `{`
    ");
}

#[test]
fn sec_14_rules_that_cannot_be_read_let_no_call_run() {
    let home = TempHome::new();
    home.write(
        ".mcp.json",
        servers(&[("chaos", ScriptedServer::new(Script::default()).entry())]),
    );
    toolway(&home, &["approve", "chaos", "--yes"]).expect_code(0);
    home.write_settings("{\n  \"permissions\": { \"deny\": [\"mcp__chaos__echo\"] }\n  oops\n}\n");
    assert_snapshot!(toolway(&home, &["call", "chaos", "echo", "text=x"]), @"
    exit: 6
    ----- stdout
    ----- stderr
    warning: server `chaos`: its instructions are left out: refused because [HOME]/.config/toolway/settings.json:2 cannot be read, and a deny rule may stand in it
    error: `echo` of server `chaos` was refused because [HOME]/.config/toolway/settings.json:2 cannot be read, and a deny rule may stand in it
    hint: mend the file at [HOME]/.config/toolway/settings.json:2; `toolway doctor` says what is wrong there
    ");
    // Looking is not calling.
    let listed = toolway(&home, &["list", "--json"]).expect_code(3);
    assert_eq!(
        listed.json()["servers"][0]["state"],
        "connected",
        "{listed}"
    );
}
