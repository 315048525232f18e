//! What the organisation's lists are asked about: every program that an entry causes to run, as
//! the system would start it.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_config::adhoc;
use toolway_types::TransportSpec;

use crate::{Stage, object, server, spec, table, word};

/// A program in the stage's folder.
fn program(stage: &Stage, path: &str) -> PathBuf {
    let path = stage.write(path, "#!/bin/sh\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn user(stage: &Stage, servers: &Value) {
    stage.user(&json!({ "mcpServers": servers }).to_string());
}

#[test]
fn sec_53_a_headers_helper_is_a_command_to_the_lists() {
    let stage = Stage::new();
    let root = stage.root.display().to_string();
    let good = program(&stage, "tools/token");
    let evil = program(&stage, "tools/evil");
    let entry = |helper: String| json!({"type": "http", "url": "https://a.example/mcp", "headersHelper": helper});
    user(
        &stage,
        &json!({
            "good": entry(format!("{} --audience a", good.display())),
            "evil": entry(format!("{} x", evil.display())),
            "other": entry(format!("{} --audience b", good.display())),
            "plain": {"type": "http", "url": "https://a.example/mcp"},
        }),
    );
    stage.managed(
        &json!({"allowedMcpServers": [
            {"serverUrl": "https://a.example/*"},
            {"serverCommand": [format!("{root}/tools/token"), "--audience", "a"]},
        ]})
        .to_string(),
    );
    assert_snapshot!(table(&stage, &stage.plan()), @"
    evil [user] refused: its `headersHelper` runs `tools/evil`, which is not in `allowedMcpServers` (system/managed-settings.json:1)
    good [user] admitted
    other [user] refused: its `headersHelper` runs `tools/token`, which is not in `allowedMcpServers` (system/managed-settings.json:1)
    plain [user] admitted
    ");
    stage.managed(r#"{"deniedMcpServers": [{"serverCommand": ["evil", "**"]}]}"#);
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    evil [user] refused: its `headersHelper` runs `tools/evil`, which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    good [user] admitted
    other [user] admitted
    plain [user] admitted
    "#);
    // A list of addresses alone says nothing about programs.
    stage.managed(r#"{"allowedMcpServers": [{"serverUrl": "https://a.example/*"}]}"#);
    assert_eq!(word(&stage.plan(), "evil"), "admitted");
}

#[test]
fn sec_53_a_command_that_prints_a_secret_is_a_command_to_the_lists() {
    let stage = Stage::new();
    let url = "https://a.example/mcp";
    user(
        &stage,
        &json!({
            "header": {"type": "http", "url": url, "headers": {"X-Key": "${cmd:evil --now}"}},
            "address": {"type": "http", "url": "https://a.example/${cmd:evil}/mcp"},
            "variable": {"command": "true", "env": {"KEY": "${cmd:evil}"}},
            "helper": {"type": "http", "url": url, "headersHelper": "true", "env": {"KEY": "${cmd:evil}"}},
            "login": {"type": "http", "url": url, "oauth": {"clientId": "c", "clientSecret": "${cmd:evil}"}},
            "workload": {"type": "http", "url": url, "oauth": {"workload": {"token": "${cmd:evil}"}}},
            "hidden": {"command": "true", "env": {"KEY": "${cmd:true; X=1 nice 'ev'il --now | cat}"}},
            "unknown": {"command": "true", "env": {"KEY": "${cmd:$(echo ev)il --now}"}},
            "vault": {"command": "true", "env": {"KEY": "${keychain:evil}"}},
            "good": {"command": "true", "env": {"KEY": "${cmd:pass show evil}"}},
        }),
    );
    stage.managed(r#"{"deniedMcpServers": [{"serverCommand": ["evil", "**"]}]}"#);
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    address [user] refused: its `url` runs `evil` (`${cmd:evil}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    good [user] admitted
    header [user] refused: its `headers.X-Key` runs `evil` (`${cmd:evil …}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    helper [user] refused: its `env.KEY` runs `evil` (`${cmd:evil}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    hidden [user] refused: its `env.KEY` runs `/bin/sh` (`${cmd:true; …}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    login [user] refused: its `oauth.clientSecret` runs `evil` (`${cmd:evil}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    unknown [user] refused: its `env.KEY` runs `/bin/sh` (`${cmd:$(echo …}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    variable [user] refused: its `env.KEY` runs `evil` (`${cmd:evil}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    vault [user] admitted
    workload [user] refused: its `oauth.workload.token` runs `evil` (`${cmd:evil}`), which is denied by `{"serverCommand":["evil","**"]}` in `deniedMcpServers` (system/managed-settings.json:1)
    "#);
    stage.managed(
        r#"{"allowedMcpServers": [{"serverUrl": "https://a.example/*"}, {"serverCommand": ["true"]},
            {"serverCommand": ["pass", "show", "*"]}]}"#,
    );
    let plan = stage.plan();
    for name in [
        "header", "address", "variable", "helper", "login", "workload",
    ] {
        assert_eq!(word(&plan, name), "refused", "{name}");
    }
    for name in ["hidden", "unknown"] {
        assert_eq!(word(&plan, name), "refused", "{name}: a line for a shell");
    }
    for name in ["vault", "good"] {
        assert_eq!(word(&plan, name), "admitted", "{name}");
    }
}

#[test]
fn sec_53_a_variable_that_decides_what_code_runs_is_not_covered_by_a_command() {
    let stage = Stage::new();
    let names = [
        "PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "GCONV_PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "RUBYOPT",
        "RUBYLIB",
        "PERL5OPT",
        "PERL5LIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "CLASSPATH",
        "BASH_ENV",
        "ENV",
        "BASH_FUNC_cat%%",
        "SHELLOPTS",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_COUNT",
        "npm_config_registry",
        "NPM_CONFIG_SCRIPT_SHELL",
        "UV_INDEX_URL",
        "PIP_INDEX_URL",
        "BUN_OPTIONS",
        "DENO_DIR",
        "DOCKER_HOST",
        "DOTNET_STARTUP_HOOKS",
        "PHPRC",
        "LUA_INIT",
        "HOME",
        "XDG_CONFIG_HOME",
        "SHELL",
        "EDITOR",
        "OPENSSL_CONF",
    ];
    stage.managed(
        r#"{"allowedMcpServers": [{"serverCommand": ["true"]}, {"serverUrl": "https://a.example/*"}]}"#,
    );
    let plan = stage.plan();
    let ask = |definition: Value| adhoc(&stage.environment(), &plan, "t", object(definition));
    for name in names {
        let refused = ask(json!({"command": "true", "env": {name: "/tmp/x"}})).unwrap_err();
        assert!(
            refused.message.contains(&format!("sets `{name}`")),
            "{}",
            refused.message
        );
        let helper = json!({"type": "http", "url": "https://a.example/", "headersHelper": "true", "env": {name: "/tmp/x"}});
        assert!(ask(helper).is_err(), "{name}: a helper gets it too");
    }
    for name in [
        "API_KEY",
        "NODE_ENV",
        "PYTHONUNBUFFERED",
        "PYTHONIOENCODING",
        "GIT_AUTHOR_NAME",
        "DEBUG",
        "TZ",
    ] {
        let asked = ask(json!({"command": "true", "env": {name: "x"}}));
        assert!(asked.is_ok(), "{name}: {asked:?}");
    }
    // What the program would have got anyway is no news.
    assert!(ask(json!({"command": "true", "env": {"PATH": "${PATH}"}})).is_ok());
}

#[test]
fn sec_53_the_organisation_can_permit_a_variable_and_a_directory_in_its_rule() {
    let stage = Stage::new();
    user(
        &stage,
        &json!({
            "permitted": {"command": "true", "env": {"PYTHONPATH": "/srv/lib", "UV_CACHE_DIR": "/srv/cache"}},
            "more": {"command": "true", "env": {"PYTHONPATH": "/srv/lib", "LD_PRELOAD": "/tmp/evil.so"}},
            "there": {"command": "true", "cwd": "/usr/share"},
            "elsewhere": {"command": "true", "cwd": "/"},
            "climbs": {"command": "true", "cwd": "/usr/share/../bin"},
        }),
    );
    stage.managed(
        "{\"allowedMcpServers\": [\n{\"serverCommand\": [\"true\"], \"env\": [\"PYTHONPATH\", \"UV_*\"], \"cwd\": [\"/usr/share\", \"/usr/share/*\"]}]}",
    );
    assert_snapshot!(table(&stage, &stage.plan()), @r#"
    climbs [user] refused: `{"serverCommand":["true"],"env":["PYTHONPATH","UV_*"],"cwd":["/usr/share","/usr/share/*"]}` in `allowedMcpServers` (system/managed-settings.json:2) would allow it, but its entry sets `cwd` to a directory that the rule does not name; the organisation can permit it with `"cwd": ["…"]` in that rule
    elsewhere [user] refused: `{"serverCommand":["true"],"env":["PYTHONPATH","UV_*"],"cwd":["/usr/share","/usr/share/*"]}` in `allowedMcpServers` (system/managed-settings.json:2) would allow it, but its entry sets `cwd` to a directory that the rule does not name; the organisation can permit it with `"cwd": ["…"]` in that rule
    more [user] refused: `{"serverCommand":["true"],"env":["PYTHONPATH","UV_*"],"cwd":["/usr/share","/usr/share/*"]}` in `allowedMcpServers` (system/managed-settings.json:2) would allow it, but its entry sets `LD_PRELOAD`, which can decide what code runs; the organisation can permit it with `"env": ["LD_PRELOAD"]` in that rule
    permitted [user] admitted
    there [user] admitted
    "#);
    // A denial means the command, whatever is set beside it.
    stage.managed(r#"{"deniedMcpServers": [{"serverCommand": ["true"], "env": ["PYTHONPATH"]}]}"#);
    let blocked = stage.plan().blocked.unwrap();
    assert!(
        blocked
            .message
            .contains("`deniedMcpServers[0]` must not have `env`"),
        "{}",
        blocked.message
    );
    // A name admits whatever runs under it.
    stage.managed(r#"{"allowedMcpServers": [{"serverName": "*"}]}"#);
    assert_eq!(word(&stage.plan(), "more"), "admitted");
}

#[test]
fn sec_53_a_program_is_looked_for_where_the_child_would_find_it() {
    let mut stage = Stage::new();
    let evil = program(&stage, "evil/tool");
    program(&stage, "opt/tool");
    let root = stage.root.display().to_string();
    stage.set("PATH", &format!("{root}/opt"));
    let denial =
        json!({"deniedMcpServers": [{"serverCommand": [evil.display().to_string(), "**"]}]});
    stage.managed(&denial.to_string());
    user(
        &stage,
        &json!({
            "opt": {"command": "tool"},
            "evil": {"command": "tool", "env": {"PATH": format!("{root}/evil:{root}/opt")}},
            "relative": {"command": "./tool", "cwd": format!("{root}/evil")},
            "dot": {"command": "tool", "env": {"PATH": format!(":{root}/opt")}, "cwd": format!("{root}/evil")},
        }),
    );
    let plan = stage.plan();
    assert_eq!(word(&plan, "opt"), "admitted");
    for name in ["evil", "relative", "dot"] {
        assert_eq!(word(&plan, name), "refused", "{name}");
    }
    // A link that is denied stands for what it leads to.
    let link = stage.root.join("opt/alias");
    symlink(&evil, &link).unwrap();
    let denial = json!({"deniedMcpServers": [{"serverCommand": [link.display().to_string()]}]});
    stage.managed(&denial.to_string());
    assert_eq!(word(&stage.plan(), "evil"), "refused");
    assert_eq!(word(&stage.plan(), "opt"), "admitted");
    // Where any program may run, no variable makes a difference.
    stage.managed(r#"{"allowedMcpServers": [{"serverCommand": ["**"]}]}"#);
    assert_eq!(word(&stage.plan(), "evil"), "admitted");
}

#[test]
fn sec_13_what_was_checked_is_what_is_started_however_often_a_link_is_swapped() {
    let stage = Stage::new();
    let good = program(&stage, "opt/good").canonicalize().unwrap();
    let evil = program(&stage, "opt/evil").canonicalize().unwrap();
    let link = stage.root.join("opt/link");
    let next = stage.root.join("opt/next");
    symlink(&good, &link).unwrap();
    let rule = json!({"deniedMcpServers": [{"serverCommand": [evil.display().to_string(), "**"]}]});
    stage.managed(&rule.to_string());
    let plan = stage.plan();
    let (environment, done) = (stage.environment(), AtomicBool::new(false));
    let entry = object(json!({"command": link.display().to_string()}));
    let (mut admitted, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for target in [&evil, &good] {
                    symlink(target, &next).unwrap();
                    std::fs::rename(&next, &link).unwrap();
                }
            }
        });
        for _ in 0..10_000 {
            match adhoc(&environment, &plan, "t", entry.clone()) {
                Err(_) => refused += 1,
                Ok(spec) => {
                    let TransportSpec::Stdio(stdio) = &spec.transport else {
                        panic!("{spec:?}");
                    };
                    assert_eq!(stdio.program.as_deref(), Some(good.as_path()));
                    admitted += 1;
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(admitted + refused, 10_000);
}

#[test]
fn sec_13_without_rules_about_commands_nothing_is_looked_for() {
    let stage = Stage::new();
    user(&stage, &json!({"t": {"command": "true"}}));
    stage.managed(r#"{"deniedMcpServers": [{"serverName": "other"}]}"#);
    let plan = stage.plan();
    let TransportSpec::Stdio(stdio) = &spec(&plan, "t").transport else {
        panic!("{:?}", server(&plan, "t"));
    };
    assert_eq!(stdio.program, None);
}
