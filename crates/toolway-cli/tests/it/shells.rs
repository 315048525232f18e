//! What shells offer behind a tab: bash, zsh and fish themselves, with their scripts.

mod quoting;
mod session;

use std::path::Path;

use serde_json::{Value, json};
use toolway_testkit::{Script, ScriptedServer, ScriptedSkills, TempHome};

use self::session::{Session, Shell};
use crate::support::{program, servers, toolway};

fn kit_home() -> TempHome {
    let home = TempHome::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/offers_server.py");
    let kit: Value = json!({ "command": "python3", "args": ["-u", script] });
    let chaos = ScriptedServer::new(Script::default()).entry();
    let off = json!({ "command": "true", "disabled": true });
    home.write_settings(servers(&[("kit", kit), ("chaos", chaos), ("off", off)]));
    home
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// What bash is given for this line, of which it replaces this end.
fn bash(home: &TempHome, line: &str, replaced: &str) -> Vec<String> {
    let words = ["__complete", "bash", line, replaced];
    lines(&toolway(home, &words).expect_code(0).stdout)
}

/// The line as a shell has it after a tab; none where there is no such shell.
fn completed(home: &TempHome, shell: Shell, line: &str) -> Option<String> {
    shell.is_there().then(|| {
        let mut session = Session::start(home, shell);
        let shown = session.shown(&format!("{line}\t"));
        session.end();
        shown
    })
}

#[test]
fn bash_completes_prompts_their_arguments_and_the_variables_of_templates() {
    let home = kit_home();
    assert_eq!(bash(&home, "toolway prompt k", "k"), ["kit"]);
    assert_eq!(bash(&home, "toolway prompt kit ", ""), ["draw"]);
    assert_eq!(
        bash(&home, "toolway prompt kit draw ", ""),
        ["what=", "tone="]
    );
    assert_eq!(
        bash(&home, "toolway prompt kit draw what=x ", ""),
        ["tone="]
    );
    // Bash replaces what stands behind the `=`; what hides characters is not offered.
    assert_eq!(
        bash(&home, "toolway prompt kit draw what=r", "r"),
        ["rome", r"rio\ de\ janeiro"]
    );
    assert_eq!(
        bash(&home, "toolway prompt kit draw what=\"rio d", "rio d"),
        ["rio de janeiro"]
    );
    for (line, expected) in [
        ("toolway prompt k", "toolway prompt kit "),
        ("toolway prompt kit draw t", "toolway prompt kit draw tone="),
        (
            "toolway prompt mcp__kit__draw what=o",
            "toolway prompt mcp__kit__draw what=oslo ",
        ),
        (
            "toolway prompt kit draw what=ri",
            r"toolway prompt kit draw what=rio\ de\ janeiro ",
        ),
        (
            "toolway prompt kit draw what=\"rio d",
            "toolway prompt kit draw what=\"rio de janeiro\" ",
        ),
        (
            "toolway read kit://city/{name} kit name=o",
            "toolway read kit://city/{name} kit name=oslo ",
        ),
        ("toolway read kit://te", "toolway read kit://text "),
        // Where servers know nothing, the command line itself is completed.
        ("toolway prompt --js", "toolway prompt --json "),
        ("toolway explai", "toolway explain "),
    ] {
        let Some(completed) = completed(&home, Shell::Bash, line) else {
            return;
        };
        assert_eq!(completed, expected, "{line}");
    }
}

/// What fish offers for this line; none where there is no fish.
fn fish(home: &TempHome, line: &str) -> Option<Vec<String>> {
    let script = "toolway completions fish | source\ncomplete -C $argv[1]\n";
    if !Shell::Fish.is_there() {
        return None;
    }
    let folder = Path::new(program()).parent().unwrap();
    let mut fish = home.command("fish");
    fish.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let output = home.run(fish.args(["--no-config", "-c", script, line]));
    assert_eq!(output.stderr, "", "{output}");
    Some(lines(&output.stdout))
}

#[test]
fn fish_completes_what_servers_offer() {
    let home = kit_home();
    for (line, expected) in [
        ("toolway prompt k", &["kit"][..]),
        ("toolway prompt kit ", &["draw"]),
        ("toolway prompt kit draw ", &["what=", "tone="]),
        ("toolway prompt kit draw what=x ", &["tone="]),
        // Quoting is the shell's business.
        (
            "toolway prompt kit draw what=r",
            &["what=rome", "what=rio de janeiro"],
        ),
        ("toolway read kit://city/{name} kit name=o", &["name=oslo"]),
        ("toolway call chaos ec", &["echo"]),
        ("toolway call chaos echo ", &["text="]),
        ("toolway explain o", &["off"]),
    ] {
        let Some(offered) = fish(&home, line) else {
            return;
        };
        assert_eq!(offered, expected, "{line}");
    }
    let offered = fish(&home, "toolway pro").unwrap();
    assert!(
        offered.iter().any(|it| it.starts_with("prompts\t")),
        "{offered:?}"
    );
}

#[test]
fn zsh_completes_what_servers_offer() {
    let home = kit_home();
    for (line, expected) in [
        // A whole word is followed by a space, the name of an argument by its value.
        ("toolway prompt k", "toolway prompt kit "),
        ("toolway prompt kit ", "toolway prompt kit draw "),
        ("toolway prompt kit draw t", "toolway prompt kit draw tone="),
        (
            "toolway prompt kit draw what=ri",
            "toolway prompt kit draw what=rio\\ de\\ janeiro ",
        ),
        (
            "toolway prompt mcp__kit__draw what=o",
            "toolway prompt mcp__kit__draw what=oslo ",
        ),
        ("toolway call chaos ec", "toolway call chaos echo "),
        ("toolway call chaos echo ", "toolway call chaos echo text="),
        ("toolway explain o", "toolway explain off "),
        // Where servers know nothing, the command line itself is completed.
        ("toolway prompt --js", "toolway prompt --json "),
    ] {
        let Some(completed) = completed(&home, Shell::Zsh, line) else {
            return;
        };
        assert_eq!(completed, expected, "{line}");
    }
}

#[test]
fn bash_completes_servers_and_their_tools() {
    let home = kit_home();
    assert_eq!(bash(&home, "toolway explain ", ""), ["chaos", "kit", "off"]);
    assert_eq!(bash(&home, "toolway tools ", ""), ["chaos", "kit"]);
    assert_eq!(bash(&home, "toolway call chaos ec", "ec"), ["echo"]);
    assert_eq!(bash(&home, "toolway call mcp__chaos__echo ", ""), ["text="]);
}

#[test]
fn whole_names_options_and_uris_are_completed() {
    let home = kit_home();
    for (line, expected) in [
        ("toolway prompt mcp__kit__", &["mcp__kit__draw"][..]),
        ("toolway prompt mcp__k", &["mcp__kit__draw"]),
        ("toolway call mcp__chaos__ec", &["mcp__chaos__echo"]),
        ("toolway call mcp__", &["mcp__chaos__", "mcp__kit__"]),
        ("toolway call --bounded chaos ec", &["echo"]),
        ("toolway call --select .a chaos ec", &["echo"]),
        ("toolway --ide -v call chaos ec", &["echo"]),
        ("toolway prompt --json kit ", &["draw"]),
        ("toolway prompt --json kit draw ", &["what=", "tone="]),
        ("toolway call --select ", &[]),
        ("toolway tools -- k", &[]),
        ("toolway read kit://text ", &["chaos", "kit"]),
    ] {
        let output = toolway(&home, &["__complete", "zsh", line]).expect_code(0);
        assert_eq!(lines(&output.stdout), expected, "{line}");
    }
    assert_eq!(bash(&home, "toolway read kit://te", "//te"), ["//text"]);
    let offered = toolway(
        &home,
        &["__complete", "fish", "toolway read --json kit://c"],
    );
    assert_eq!(
        lines(&offered.expect_code(0).stdout),
        // A template has braces, which shells act on.
        ["kit://counter"]
    );
}

#[test]
fn skills_are_completed() {
    let home = TempHome::new();
    let script = Script {
        skills: Some(ScriptedSkills {
            count: 2,
            ..ScriptedSkills::default()
        }),
        ..Script::default()
    };
    let docs = ScriptedServer::new(script).entry();
    home.write_settings(servers(&[("docs", docs)]));
    let listed = toolway(&home, &["skills", "--json"]).expect_code(0).json();
    let first = listed["skills"][0]["name"].as_str().unwrap();
    let offered = toolway(&home, &["__complete", "fish", "toolway skill docs "]).expect_code(0);
    assert!(
        lines(&offered.stdout).contains(&first.to_owned()),
        "{offered}"
    );
}

#[test]
fn completion_never_speaks_of_failure_and_never_takes_long() {
    let home = TempHome::new();
    home.write_settings(servers(&[
        ("gone", json!({ "command": "/nonexistent/program" })),
        (
            "mute",
            ScriptedServer::new(Script {
                never_reads: true,
                ..Script::default()
            })
            .entry(),
        ),
    ]));
    for line in [
        "toolway prompt gone ",
        "toolway prompt nobody x ",
        "toolway prompt mute x a=",
        "",
        "toolway read x a=",
        "toolway read x://",
        "toolway skill mute ",
        "toolway call mcp__mute__",
        "toolway call gone ",
    ] {
        let begun = std::time::Instant::now();
        let output = toolway(&home, &["__complete", "bash", line]).expect_code(0);
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            ("", ""),
            "{line}"
        );
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
