//! `tokens`: shown once, kept as digests, bound to a profile and a time, and ended by name.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;
use toolway_auth::named_tokens::NamedTokens;
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{command, toolway};

fn file(home: &TempHome) -> PathBuf {
    home.config_home().join("state/tokens.json")
}

/// Makes a token, and gives it.
fn add(home: &TempHome, words: &[&str]) -> String {
    let output = toolway(home, &[&["tokens", "add"], words].concat()).expect_code(0);
    let token = output.stdout.trim_end().to_owned();
    assert_eq!(
        output.stdout,
        format!("{token}\n"),
        "the token and nothing else"
    );
    assert!(token.starts_with("tw_") && token.len() == 46, "{token}");
    assert!(!output.stderr.contains(&token), "{}", output.stderr);
    token
}

/// What was printed, with times and tokens taken out.
fn plain(output: &CommandOutput) -> String {
    let text = output.to_string();
    let line = |line: &str| {
        let words = line.split(' ').map(|word| {
            let bare = word.trim_matches(['"', ',', ';']);
            if bare.len() == 24 && bare.starts_with("20") && bare.ends_with('Z') {
                word.replace(bare, "[TIME]")
            } else if bare.starts_with("tw_") {
                "[TOKEN]".to_owned()
            } else {
                word.to_owned()
            }
        });
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

fn home_with_profiles() -> TempHome {
    let home = TempHome::new();
    let profiles = json!({ "profiles": {
        "review": { "readOnly": true },
        "broken": { "readonly": true },
    } });
    home.write_settings(profiles.to_string());
    home
}

#[test]
fn sec_27_a_token_is_shown_once_and_only_its_digest_is_kept() {
    let home = home_with_profiles();
    let output = toolway(&home, &["tokens", "add", "laptop"]).expect_code(0);
    assert_snapshot!(plain(&output), @"
    exit: 0
    ----- stdout
    [TOKEN]
    ----- stderr
    the token `laptop` is bound to no profile and is good until [TIME]; it is shown this once
    hint: a client shows it as `Authorization: Bearer <token>`
    ");
    let token = output.stdout.trim_end().to_owned();
    let bound = add(&home, &["ci", "--profile", "review", "--expires", "30d"]);
    add(&home, &["forever", "--expires", "never"]);
    for words in [&["tokens", "list"][..], &["tokens", "list", "--json"]] {
        let listed = toolway(&home, words).expect_code(0);
        assert!(!listed.to_string().contains("tw_"), "{listed}");
        assert!(!listed.to_string().contains(&token[3..]), "{listed}");
    }
    let listed = toolway(&home, &["tokens", "list"]);
    assert_snapshot!(plain(&listed), @"
    exit: 0
    ----- stdout
    NAME     PROFILE  CREATED                   EXPIRES
    ci       review   [TIME]  [TIME]
    forever  -        [TIME]  never
    laptop   -        [TIME]  [TIME]
    ----- stderr
    ");
    let listed = toolway(&home, &["tokens", "list", "--json"]);
    assert_snapshot!(plain(&listed), @r#"
    exit: 0
    ----- stdout
    {
      "tokens": [
        {
          "name": "ci",
          "profile": "review",
          "createdAt": "[TIME]",
          "expiresAt": "[TIME]",
          "expired": false
        },
        {
          "name": "forever",
          "profile": null,
          "createdAt": "[TIME]",
          "expiresAt": null,
          "expired": false
        },
        {
          "name": "laptop",
          "profile": null,
          "createdAt": "[TIME]",
          "expiresAt": "[TIME]",
          "expired": false
        }
      ]
    }
    ----- stderr
    "#);
    let file = file(&home);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(&token[3..]) && !kept.contains(&bound[3..]));
    let mode = file.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let tokens = NamedTokens::open(&file);
    assert_eq!(tokens.check(&token).unwrap().name, "laptop");
    assert_eq!(
        tokens.check(&bound).unwrap().profile.as_deref(),
        Some("review")
    );
}

#[test]
fn a_revoked_token_opens_nothing_for_who_runs_already() {
    let home = TempHome::new();
    let token = add(&home, &["ci"]);
    let running = NamedTokens::open(file(&home));
    assert!(running.check(&token).is_some());
    let output = toolway(&home, &["tokens", "revoke", "ci"]).expect_code(0);
    assert_snapshot!(plain(&output), @"
    exit: 0
    ----- stdout
    ----- stderr
    the token `ci` opens nothing any more
    ");
    assert!(running.check(&token).is_none());
    let output = toolway(&home, &["tokens", "revoke", "ci"]).expect_code(2);
    assert_snapshot!(plain(&output), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no token is called `ci`
    hint: see what there is with `toolway tokens list`
    ");
    let output = toolway(&home, &["tokens", "list"]).expect_code(0);
    assert_snapshot!(plain(&output), @"
    exit: 0
    ----- stdout
    ----- stderr
    there are no tokens
    hint: make one with `toolway tokens add <name>`
    ");
}

#[test]
fn what_cannot_be_made_says_why() {
    let home = home_with_profiles();
    add(&home, &["ci"]);
    let mut all = String::new();
    for words in [
        &["ci"][..],
        &["a b"],
        &["x", "--profile", "revew"],
        &["x", "--profile", "nothing-like-it"],
        &["x", "--profile", "broken"],
        &["x", "--expires", "2020-01-01"],
        &["x", "--expires", "soon"],
    ] {
        let output = toolway(&home, &[&["tokens", "add"], words].concat());
        assert!(output.stdout.is_empty(), "{output}");
        writeln!(all, "{words:?}\n{}", plain(&output).trim_end()).unwrap();
    }
    let root = home.home().display().to_string();
    assert_snapshot!(all.replace(&root, "[HOME]"), @r#"
    ["ci"]
    exit: 2
    ----- stdout
    ----- stderr
    error: there is a token called `ci` already
    hint: choose another name, or end that one with `toolway tokens revoke ci`
    ["a b"]
    exit: 2
    ----- stdout
    ----- stderr
    error: `a b` cannot name a token
    hint: use at most 64 of the letters, digits, `-`, `_` and `.`
    ["x", "--profile", "revew"]
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: `profiles.broken.readonly` is not a key Toolway reads
    hint: did you mean `profiles.broken.readOnly`?
    error: no profile is called `revew`
    hint: did you mean `review`?
    ["x", "--profile", "nothing-like-it"]
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: `profiles.broken.readonly` is not a key Toolway reads
    hint: did you mean `profiles.broken.readOnly`?
    error: no profile is called `nothing-like-it`
    hint: write it in your settings: `"profiles": {"nothing-like-it": {}}`
    ["x", "--profile", "broken"]
    exit: 3
    ----- stdout
    ----- stderr
    error: [HOME]/.config/toolway/settings.json:1: `profiles.broken.readonly` is not a key Toolway reads
    hint: did you mean `profiles.broken.readOnly`?
    error: the profile `broken` cannot be used: `profiles.broken.readonly` is not a key Toolway reads
    hint: mend it at [HOME]/.config/toolway/settings.json:1
    ["x", "--expires", "2020-01-01"]
    exit: 2
    ----- stdout
    ----- stderr
    error: `--expires` names a time that is over
    hint: write e.g. `--expires 30d`, or `--expires never`
    ["x", "--expires", "soon"]
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'soon' for '--expires <WHEN>': write a time such as `12h`, `30d` or `2w`, the last day such as `2027-01-31`, or `never`
    hint: see `toolway tokens add --help`
    "#);
    let output = toolway(&home, &["tokens", "revoke", "cj"]).expect_code(2);
    assert_snapshot!(plain(&output), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: no token is called `cj`
    hint: see what there is with `toolway tokens list`
    ");
}

#[test]
fn sec_27_a_file_that_others_may_read_is_refused_and_left() {
    let home = TempHome::new();
    let token = add(&home, &["ci"]);
    let file = file(&home);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for words in [
        &["tokens", "list"][..],
        &["tokens", "add", "x"],
        &["tokens", "revoke", "ci"],
    ] {
        let output = toolway(&home, words).expect_code(3);
        assert!(output.stdout.is_empty(), "{output}");
        assert!(output.stderr.contains("may be read by others"), "{output}");
        assert!(
            output.stderr.contains("hint: close it with `chmod 600 "),
            "{output}"
        );
    }
    assert!(NamedTokens::open(&file).check(&token).is_none());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(NamedTokens::open(&file).check(&token).is_some());
}

#[test]
fn tokens_that_many_processes_make_at_once_are_all_there() {
    let home = TempHome::new();
    let children: Vec<_> = (0..12)
        .map(|n| {
            let mut command = command(&home, &["tokens", "add", &format!("n{n}")]);
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let made: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout)
                .unwrap()
                .trim_end()
                .to_owned()
        })
        .collect();
    let tokens = NamedTokens::open(file(&home));
    for (n, token) in made.iter().enumerate() {
        assert_eq!(
            tokens.check(token).expect("it is there").name,
            format!("n{n}")
        );
    }
    assert_eq!(tokens.list().unwrap().len(), 12);
}
