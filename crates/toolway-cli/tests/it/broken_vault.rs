//! A vault that cannot be read or written: every command names the file and how to mend it, and
//! nothing looks as if nobody had logged in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;
use toolway_testkit::authority::{Authority, AuthoritySettings};
use toolway_testkit::browser::browse;
use toolway_testkit::marked;
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::servers;
use crate::visiting::{visit, with_browser};

/// A home where somebody is logged in to `shop`.
struct Scene {
    home: TempHome,
    authority: Authority,
}

impl Scene {
    fn new() -> Self {
        let authority = Authority::start(AuthoritySettings::default());
        let home = TempHome::new();
        home.write_settings(servers(&[("shop", authority.entry())]));
        let scene = Self { home, authority };
        scene
            .log_in(&mut scene.command(&["login", "shop"]))
            .expect_code(0);
        scene
    }

    fn command(&self, words: &[&str]) -> Command {
        with_browser(&self.home, words)
    }

    fn log_in(&self, command: &mut Command) -> CommandOutput {
        visit(&self.home, command, browse).0
    }

    fn vault(&self) -> PathBuf {
        self.home.config_home().join("vault")
    }

    /// The sealed files.
    fn secrets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.vault().join("secrets")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_none()).collect()
    }

    /// What a command shows, with everything that differs from run to run taken out.
    fn shown(&self, words: &[&str]) -> String {
        self.shown_of(&mut self.command(words))
    }

    fn shown_of(&self, command: &mut Command) -> String {
        let mut text = self.home.run(command).to_string();
        text = text.replace(self.authority.issuer(), "[ISSUER]");
        for (name, instead) in [(".broken-", "[TIME]"), ("secrets/", "[FILE]")] {
            let mut parts = text.split(name);
            let mut rest = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                rest.push_str(name);
                rest.push_str(instead);
                rest.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
            }
            text = rest;
        }
        text
    }

    /// The line of `doctor` about the vault, with its hint.
    fn examined(&self) -> String {
        let output = self.home.run(&mut self.command(&["doctor"]));
        let lines = output.stdout.lines();
        let mut lines = lines.skip_while(|line| !line.starts_with("vault "));
        let (line, hint) = (lines.next().unwrap(), lines.next().unwrap());
        format!("{line}\n{}", hint.trim_start())
    }
}

#[test]
fn a_lost_key_is_named_by_everything_that_needs_it() {
    let scene = Scene::new();
    let (key, aside) = (scene.vault().join("key"), scene.home.home().join("key"));
    fs::rename(&key, &aside).unwrap();
    assert_snapshot!(scene.shown(&["auth", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again
    hint: see what else is there with `toolway vault list`
    ");
    assert_snapshot!(scene.shown(&["auth", "status", "--json"]), @r#"
    exit: 0
    ----- stdout
    {
      "logins": [],
      "unreadable": [
        "the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again"
      ]
    }
    ----- stderr
    "#);
    assert_snapshot!(scene.shown(&["list"]), @"
    exit: 0
    ----- stdout
    NAME  SCOPE  TYPE  STATE     TOOLS  DETAIL
    shop  user   http  ✘ failed  -      the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again
    ----- stderr
    hint: `shop`: check where logins are kept with `toolway doctor`; log in anew with `toolway login shop`
    ");
    assert_snapshot!(scene.shown(&["tools", "shop"]), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `shop` failed: the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again
    hint: check where logins are kept with `toolway doctor`; log in anew with `toolway login shop`
    ");
    assert_snapshot!(scene.shown(&["logout", "shop"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again
    hint: see what else is there with `toolway vault list`; or only forget it: `toolway vault remove --server shop`
    ");
    assert_snapshot!(scene.shown(&["vault", "export", "all.json", "--show-secrets"]), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again
    hint: see what else is there with `toolway vault list`
    ");
    assert_snapshot!(scene.examined(), @"
    vault         fail: the login of `shop` is sealed with a key that is not in `[HOME]/.config/toolway/vault/key`: put the right file back, or log in or set it again; and 1 more cannot be read
    hint: see what else is there with `toolway vault list`
    ");
    fs::rename(&aside, &key).unwrap();
    let mended = scene
        .home
        .run(&mut scene.command(&["doctor"]))
        .expect_code(0);
    assert!(
        mended
            .stdout
            .contains("ok: 2 secrets, which can all be read"),
        "{mended}"
    );
    scene
        .home
        .run(&mut scene.command(&["tools", "shop"]))
        .expect_code(0);
}

#[test]
fn another_passphrase_is_said_to_be_another_one() {
    let scene = Scene::new();
    let with = |words: &[&str], passphrase: &str| {
        let mut command = scene.command(words);
        command.env("TOOLWAY_VAULT_KEY", passphrase);
        command
    };
    scene
        .log_in(&mut with(&["login", "shop"], marked!("right-")))
        .expect_code(0);
    assert_snapshot!(scene.shown_of(&mut with(&["auth", "status"], marked!("wrong-"))), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: the login of `shop` is sealed with a passphrase, and TOOLWAY_VAULT_KEY is another one
    hint: set `TOOLWAY_VAULT_KEY` to the passphrase that it was saved with
    ");
    assert_snapshot!(scene.shown_of(&mut with(&["call", "shop", "whoami"], marked!("wrong-"))), @"
    exit: 4
    ----- stdout
    ----- stderr
    error: server `shop` failed: the login of `shop` is sealed with a passphrase, and TOOLWAY_VAULT_KEY is another one
    hint: check where logins are kept with `toolway doctor`; log in anew with `toolway login shop`
    ");
    assert_snapshot!(scene.shown(&["auth", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: the login of `shop` is sealed with a passphrase, and TOOLWAY_VAULT_KEY is not set
    hint: set `TOOLWAY_VAULT_KEY` to the passphrase that it was saved with
    ");
    // Whoever has forgotten it starts anew.
    assert_snapshot!(scene.shown(&["vault", "remove", "--server", "shop"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    removed the login of `shop`
    ");
    let issuer = scene.authority.issuer();
    assert_snapshot!(scene.shown(&["vault", "remove", "--issuer", issuer]), @"
    exit: 0
    ----- stdout
    ----- stderr
    removed the client for `[ISSUER]`
    ");
    scene
        .log_in(&mut scene.command(&["login", "shop"]))
        .expect_code(0);
}

#[test]
fn a_damaged_login_is_put_aside_and_said_once() {
    let scene = Scene::new();
    for file in scene.secrets() {
        fs::write(file, "half").unwrap();
    }
    assert_snapshot!(scene.shown(&["auth", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    warning: `[HOME]/.config/toolway/vault/secrets/[FILE]` was damaged and the login of `shop` is lost; it is kept as `[HOME]/.config/toolway/vault/secrets/[FILE].broken-[TIME]`; log in or set it again
    hint: see what is left with `toolway vault list`
    ");
    assert_snapshot!(scene.shown(&["auth", "status"]), @"
    exit: 0
    ----- stdout
    ----- stderr
    nobody is logged in anywhere
    hint: log in with `toolway login <server>`
    ");
    assert_snapshot!(scene.shown(&["login", "shop"]), @"
    exit: 5
    ----- stdout
    ----- stderr
    error: cannot log in to `shop`: `[HOME]/.config/toolway/vault/secrets/[FILE]` was damaged and the client for `[ISSUER]` is lost; it is kept as `[HOME]/.config/toolway/vault/secrets/[FILE].broken-[TIME]`; log in or set it again
    hint: check where logins are kept with `toolway doctor`, then start it again: `toolway login shop`
    ");
    scene
        .log_in(&mut scene.command(&["login", "shop"]))
        .expect_code(0);
}

#[test]
fn a_vault_that_is_no_folder_is_named() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.vault()).unwrap();
    fs::write(scene.vault(), "").unwrap();
    assert_snapshot!(scene.shown(&["auth", "status"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: `[HOME]/.config/toolway/vault/index.json` cannot be used: Not a directory (os error 20)
    hint: a file stands where `[HOME]/.config/toolway/vault/index.json` needs a directory: move it away
    ");
    assert_snapshot!(scene.shown(&["vault", "list"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: `[HOME]/.config/toolway/vault/index.json` cannot be used: Not a directory (os error 20)
    hint: a file stands where `[HOME]/.config/toolway/vault/index.json` needs a directory: move it away
    ");
    assert_snapshot!(scene.shown(&["login", "shop"]), @"
    exit: 1
    ----- stdout
    ----- stderr
    error: the login cannot be kept: `[HOME]/.config/toolway/vault/index.json` cannot be used: Not a directory (os error 20)
    hint: a file stands where `[HOME]/.config/toolway/vault/index.json` needs a directory: move it away
    ");
    assert_snapshot!(scene.examined(), @"
    vault         fail: `[HOME]/.config/toolway/vault/index.json` cannot be used: Not a directory (os error 20)
    hint: a file stands where `[HOME]/.config/toolway/vault/index.json` needs a directory: move it away
    ");
}

#[test]
fn a_keychain_that_must_be_used_and_is_not_there_is_a_fault() {
    let scene = Scene::new();
    let mut command = scene.command(&["doctor"]);
    let output = scene
        .home
        .run(command.env("TOOLWAY_VAULT", "keychain"))
        .expect_code(3);
    let keychain = output
        .stdout
        .lines()
        .find(|line| line.starts_with("keychain "))
        .unwrap();
    assert!(
        keychain.starts_with("keychain      fail: there is no keychain here"),
        "{keychain}"
    );
    assert!(
        keychain.ends_with("; `TOOLWAY_VAULT` allows nothing else"),
        "{keychain}"
    );
}

#[test]
fn a_variable_that_says_nothing_is_said_once() {
    let scene = Scene::new();
    let mut command = scene.command(&["list"]);
    let output = scene
        .home
        .run(command.env("TOOLWAY_VAULT", "safe"))
        .expect_code(0);
    assert_snapshot!(output.stderr, @"warning: `TOOLWAY_VAULT` is `safe`, which is none of any, keychain and file");
}

#[test]
fn what_is_no_export_is_not_taken() {
    let scene = Scene::new();
    let run = |words: &[&str], input: &str| {
        let output = scene.home.run_with_input(&mut scene.command(words), input);
        output.to_string()
    };
    run(
        &["vault", "export", "all.sealed"],
        marked!("passphrase-", "\n"),
    );
    assert_snapshot!(run(&["vault", "export", "all.sealed"], marked!("passphrase-", "\n")), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `all.sealed` cannot be written: File exists (os error 17)
    hint: name a file that does not exist yet
    ");
    assert_snapshot!(run(&["vault", "export", "nowhere/all.sealed"], marked!("passphrase-", "\n")), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `nowhere/all.sealed` cannot be written: No such file or directory (os error 2)
    hint: name a file in a directory that exists
    ");
    assert_snapshot!(run(&["vault", "import", "all.sealed"], marked!("another-", "\n")), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `all.sealed` is sealed with another passphrase, or damaged
    hint: try again with the passphrase that it was exported with
    ");
    assert_snapshot!(run(&["vault", "import", "none.sealed"], marked!("passphrase-", "\n")), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `none.sealed` cannot be read: No such file or directory (os error 2)
    hint: name a file that `toolway vault export` wrote
    ");
    scene.home.write("letter", "Dear vault");
    assert_snapshot!(run(&["vault", "import", "letter"], marked!("passphrase-", "\n")), @"
    exit: 3
    ----- stdout
    ----- stderr
    error: `letter` is no export of a vault
    hint: name a file that `toolway vault export` wrote
    ");
}
