//! Named tokens: what is kept of them, who sees a change, and what opens nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{MOST, NamedTokenError, NamedTokens, PREFIX, TokenFileFault};

struct Stage {
    _home: TempDir,
    path: PathBuf,
    now: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        Self {
            path: home.path().join("state/tokens.json"),
            _home: home,
            now: Arc::new(AtomicU64::new(1_000)),
        }
    }

    /// A process of its own, as far as the file can tell.
    fn tokens(&self) -> NamedTokens {
        let now = Arc::clone(&self.now);
        NamedTokens::with_clock(&self.path, move || now.load(Ordering::Relaxed))
    }

    fn add(&self, name: &str) -> String {
        let token = self.tokens().add(name, None, None).unwrap();
        token.expose().to_owned()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn sec_27_only_the_digest_of_a_token_is_kept_in_a_private_file() {
    let stage = Stage::new();
    let tokens = stage.tokens();
    let token = tokens.add("laptop", Some("work"), Some(5_000)).unwrap();
    let text = token.expose();
    assert!(text.starts_with(PREFIX));
    // 256 bits in base64url.
    assert_eq!(text.len(), PREFIX.len() + 43);
    let kept = stage.text();
    assert!(!kept.contains(text) && !kept.contains(&text[PREFIX.len()..]));
    assert!(kept.contains(&hex::encode(Sha256::digest(text))));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&stage.path), 0o600);
    assert_eq!(mode(stage.path.parent().unwrap()), 0o700);
    for file in fs::read_dir(stage.path.parent().unwrap()).unwrap() {
        let path = file.unwrap().path();
        assert!(
            !fs::read_to_string(&path).unwrap().contains(text),
            "{path:?}"
        );
    }
    let found = tokens.check(text).expect("it is good");
    assert_eq!(
        (found.name.as_str(), found.profile.as_deref(), found.expires),
        ("laptop", Some("work"), Some(5_000))
    );
    assert!(!format!("{tokens:?}{found:?}").contains(text));
    assert_ne!(stage.add("other"), text);
}

#[test]
fn only_the_whole_token_is_taken() {
    let stage = Stage::new();
    let all: Vec<String> = (0..20).map(|n| stage.add(&format!("n{n}"))).collect();
    let tokens = stage.tokens();
    for (n, token) in all.iter().enumerate() {
        assert_eq!(tokens.check(token).unwrap().name, format!("n{n}"));
        for wrong in [
            &token[..token.len() - 1],
            &format!("{token}A"),
            &token[PREFIX.len()..],
            &format!(" {token}"),
            &format!("{token}{}", "A".repeat(10_000)),
            &hex::encode(Sha256::digest(token)),
            PREFIX,
            "",
        ] {
            assert!(tokens.check(wrong).is_none(), "{wrong}");
        }
    }
}

#[test]
fn sec_27_what_another_process_adds_and_revokes_counts_at_the_next_check() {
    let stage = Stage::new();
    let running = stage.tokens();
    assert!(running.check("tw_nothing").is_none());
    for round in 0..50 {
        let name = format!("n{round}");
        let token = stage.add(&name);
        assert_eq!(running.check(&token).expect("added").name, name);
        assert!(running.check(&token).is_some(), "still");
        let revoked = stage.tokens().revoke(&name).unwrap();
        assert_eq!(revoked.name, name);
        assert!(running.check(&token).is_none(), "revoked");
    }
    let token = stage.add("last");
    assert!(running.check(&token).is_some());
    fs::remove_file(&stage.path).unwrap();
    assert!(running.check(&token).is_none(), "the file is gone");
    assert_eq!(running.fault(), None);
}

#[test]
fn sec_27_a_file_of_the_same_size_in_its_place_is_noticed() {
    let stage = Stage::new();
    let running = stage.tokens();
    let (first, old) = (stage.add("same"), stage.text());
    assert!(running.check(&first).is_some());
    for _ in 0..100 {
        stage.tokens().revoke("same").unwrap();
        let second = stage.add("same");
        assert_eq!(stage.text().len(), old.len());
        assert!(running.check(&first).is_none());
        assert!(running.check(&second).is_some());
    }
}

#[test]
fn a_token_is_over_when_its_time_is_and_stays_listed() {
    let stage = Stage::new();
    let tokens = stage.tokens();
    let brief = tokens.add("brief", None, Some(2_000)).unwrap();
    let lasting = tokens.add("lasting", None, None).unwrap();
    for (now, is_good) in [(1_999, true), (2_000, false), (9_999, false), (1_000, true)] {
        stage.now.store(now, Ordering::Relaxed);
        assert_eq!(tokens.check(brief.expose()).is_some(), is_good, "{now}");
        assert!(tokens.check(lasting.expose()).is_some(), "{now}");
    }
    let listed: Vec<String> = tokens
        .list()
        .unwrap()
        .iter()
        .map(|it| it.name.clone())
        .collect();
    assert_eq!(listed, ["brief", "lasting"]);
    let again = tokens.add("brief", None, None).unwrap_err();
    assert!(matches!(again, NamedTokenError::Taken(name) if name == "brief"));
}

#[test]
fn tokens_that_many_add_and_revoke_at_once_are_all_there() {
    const EACH: usize = 8;
    let stage = Stage::new();
    thread::scope(|scope| {
        for writer in 0..8 {
            let stage = &stage;
            scope.spawn(move || {
                for round in 0..EACH {
                    let name = format!("w{writer}-{round}");
                    let token = stage.add(&name);
                    assert!(stage.tokens().check(&token).is_some(), "{name}");
                    if round % 2 == 1 {
                        stage.tokens().revoke(&name).unwrap();
                        assert!(stage.tokens().check(&token).is_none(), "{name}");
                    }
                }
            });
        }
    });
    assert_eq!(stage.tokens().list().unwrap().len(), 8 * EACH / 2);
}

#[test]
fn sec_27_a_file_that_is_not_this_users_alone_opens_nothing() {
    let stage = Stage::new();
    let running = stage.tokens();
    let token = stage.add("laptop");
    assert!(running.check(&token).is_some());
    for mode in [0o640, 0o604, 0o644, 0o666] {
        set_mode(&stage.path, mode);
        assert!(running.check(&token).is_none(), "{mode:o}");
        let fault = running.fault().expect("a fault");
        assert_eq!(fault.path(), stage.path, "{mode:o}");
        // Nothing is written over it, and nothing is mended in silence.
        let before = stage.text();
        assert!(matches!(
            stage.tokens().add("more", None, None),
            Err(NamedTokenError::File(_))
        ));
        assert_eq!(stage.text(), before);
    }
    set_mode(&stage.path, 0o600);
    assert!(running.check(&token).is_some(), "mended");
    let elsewhere = stage.path.with_extension("elsewhere");
    fs::rename(&stage.path, &elsewhere).unwrap();
    symlink(&elsewhere, &stage.path).unwrap();
    assert!(running.check(&token).is_none(), "a link");
    assert!(matches!(
        running.fault(),
        Some(TokenFileFault::Unreadable { .. })
    ));
    fs::remove_file(&stage.path).unwrap();
    fs::create_dir(&stage.path).unwrap();
    assert!(running.check(&token).is_none(), "a folder");
}

#[test]
fn sec_27_a_file_of_another_user_opens_nothing() {
    // Only the superuser can give a file away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = Stage::new();
    let running = stage.tokens();
    let token = stage.add("laptop");
    assert!(running.check(&token).is_some());
    let stranger = rustix::fs::Uid::from_raw(65_534);
    rustix::fs::chown(&stage.path, Some(stranger), None).unwrap();
    assert!(running.check(&token).is_none());
    let fault = running.fault().expect("a fault").to_string();
    assert!(fault.contains("belongs to another user"), "{fault}");
}

#[test]
fn sec_27_a_file_that_cannot_be_understood_opens_nothing_and_stays() {
    let stage = Stage::new();
    let running = stage.tokens();
    let token = stage.add("laptop");
    let good = stage.text();
    let digest = hex::encode(Sha256::digest(&token));
    let cut = good[..good.len() / 2].to_owned();
    for bad in [
        String::new(),
        "[]".to_owned(),
        cut,
        good.replace(&digest, "abc"),
        good.replace(&digest, &digest[1..]),
        // Perhaps a newer version narrows so.
        good.replace("\"name\"", "\"scopes\": [], \"name\""),
        good.replace("\"tokens\"", "\"more\": 1, \"tokens\""),
    ] {
        fs::write(&stage.path, &bad).unwrap();
        assert!(running.check(&token).is_none(), "{bad}");
        assert!(matches!(
            running.fault(),
            Some(TokenFileFault::Malformed { .. })
        ));
        assert!(running.list().is_err());
        let revoked = stage.tokens().revoke("laptop");
        assert!(matches!(revoked, Err(NamedTokenError::File(_))), "{bad}");
        assert_eq!(stage.text(), bad);
    }
    fs::write(&stage.path, &good).unwrap();
    assert!(running.check(&token).is_some(), "mended");
    assert_eq!(running.fault(), None);
}

#[test]
fn names_are_plain_and_there_are_not_too_many() {
    let stage = Stage::new();
    let tokens = stage.tokens();
    for bad in ["", "a b", "-x", ".x", "a/b", "é", "a\n", &"x".repeat(65)] {
        let error = tokens.add(bad, None, None).unwrap_err();
        assert!(matches!(error, NamedTokenError::Name(_)), "{bad:?}");
    }
    assert!(!stage.path.exists());
    for n in 0..MOST {
        tokens.add(&format!("n{n}"), None, None).unwrap();
    }
    let full = tokens.add("one-more", None, None).unwrap_err();
    assert!(matches!(full, NamedTokenError::Full));
    let unknown = tokens.revoke("n999").unwrap_err();
    assert!(
        matches!(unknown, NamedTokenError::Unknown { meant: Some(_), .. }),
        "{unknown}"
    );
}
