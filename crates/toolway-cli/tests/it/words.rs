//! What others wrote and a person passes on (names, addresses, values) stays data: no word of it
//! becomes a flag, and none sets configuration (SEC-12).

use serde_json::json;
use toolway_testkit::{Script, TempHome};

use crate::support::{command, home_with, program, servers, toolway};

/// A file that starts a program when it is taken for configuration; and the words that would make
/// it so.
fn trap(home: &TempHome) -> (std::path::PathBuf, [String; 3]) {
    let canary = home.home().join("canary");
    let touch = json!({ "command": "touch", "args": [canary] });
    let file = home.write(home.home().join("trap.json"), servers(&[("trap", touch)]));
    let file = file.display();
    let words = [
        format!("--mcp-config={file}"),
        "--approve-project-servers".to_owned(),
        format!("--mcp-server=trap=touch {}", canary.display()),
    ];
    (canary, words)
}

/// Commands that take a name, and what stands between.
const BY_NAME: [&[&str]; 10] = [
    &["get"],
    &["explain"],
    &["approve", "--yes"],
    &["reject"],
    &["enable"],
    &["disable"],
    &["remove"],
    &["login"],
    &["logout"],
    &["logs"],
];

#[test]
fn sec_12_a_name_behind_two_dashes_is_a_name_and_sets_nothing() {
    let home = TempHome::new();
    let (canary, words) = trap(&home);
    for verb in BY_NAME {
        for word in &words {
            let line = [verb, &["--", word.as_str()]].concat();
            let output = toolway(&home, &line);
            assert_ne!(output.code, Some(0), "{line:?}: {output}");
            assert!(!output.stdout.contains("trap:"), "{line:?}: {output}");
            assert!(!canary.exists(), "{line:?}: {output}");
        }
    }
}

#[test]
fn sec_12_a_name_like_a_flag_is_never_guessed_to_be_one() {
    let home = TempHome::new();
    let (canary, _) = trap(&home);
    for word in [
        "--settings",
        "--settings=x.json",
        "-x",
        "--config=x",
        "--scope=user",
    ] {
        for verb in [
            "get", "explain", "approve", "login", "call", "read", "prompt",
        ] {
            let output = toolway(&home, &[verb, word]);
            assert_eq!(output.code, Some(2), "{verb} {word}: {output}");
            assert_eq!(output.stdout, "", "{verb} {word}");
        }
    }
    assert!(!canary.exists());
}

#[test]
fn sec_12_values_of_tools_and_prompts_are_data_whatever_they_look_like() {
    let home = home_with(Script::default());
    let (canary, words) = trap(&home);
    for word in words
        .iter()
        .map(String::as_str)
        .chain(["--", "-x", "--args={}"])
    {
        let said = toolway(&home, &["call", "chaos", "echo", &format!("text={word}")]);
        assert_eq!(said.expect_code(0).stdout.trim_end(), home.normalise(word));
        let args = json!({ "text": word }).to_string();
        let said = toolway(&home, &["call", "chaos", "echo", "--args", &args]);
        assert_eq!(said.expect_code(0).stdout.trim_end(), home.normalise(word));
    }
    assert!(!canary.exists());
}

/// A repository chooses the names of its servers, and a person pastes what we print.
#[test]
fn sec_12_a_hint_that_is_pasted_names_one_server_and_sets_no_flag() {
    let home = TempHome::new();
    let entry = json!({ "command": "true" });
    let names = [
        "--all",
        "-y",
        "--allow-env=PATH",
        "$(touch canary)",
        "a;touch canary",
    ];
    let mut entries: Vec<_> = names.iter().map(|name| (*name, entry.clone())).collect();
    entries.push(("other", entry.clone()));
    home.write(".mcp.json", servers(&entries));
    let folder = std::path::Path::new(program()).parent().unwrap();
    for name in names {
        let explained = toolway(&home, &["explain", "--", name]);
        let hint = explained
            .to_string()
            .lines()
            .find_map(|line| {
                let (_, command) = line.split_once("`toolway approve ")?;
                let (command, _) = command.split_once('`')?;
                Some(format!("toolway approve --yes {command}"))
            })
            .unwrap_or_else(|| panic!("no hint: {explained}"));
        let mut shell = home.command("sh");
        shell
            .args(["-c", &hint])
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        home.run(&mut shell).expect_code(0);
        let state = |name: &str| {
            let shown = home.run(&mut command(&home, &["get", "--json", "--", name]));
            shown.expect_code(0).json()["verdict"].clone()
        };
        assert_eq!(state(name), "admitted", "{hint}");
        assert_eq!(state("other"), "pending-approval", "{hint}");
    }
    assert!(!home.project().join("canary").exists());
}
