//! Secrets in files: sealed, private, and never lost without a word.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::Secret;

use super::{file_vault, login};
use crate::vault::export::ExportError;
use crate::vault::{StorageChoice, Vault, VaultBackend, VaultError, VaultKey, VaultOptions};

const CANARY: &str = marked!("7d1f-");

fn secret(text: &str) -> Secret {
    Secret::new(format!("{text}-{MARK}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn with_passphrase(folder: &Path, passphrase: Option<&str>) -> Vault {
    Vault::open(VaultOptions {
        storage: StorageChoice::File,
        passphrase: passphrase.map(Secret::from),
        ..VaultOptions::new(folder)
    })
}

#[tokio::test]
async fn a_vault_is_unused_until_something_is_put_into_it() {
    let folder = ScannedFolder::new();
    let vault = file_vault(&folder.path().join("vault"));
    assert!(vault.is_unused());
    vault.write(&login("shop"), &CANARY.into()).await.unwrap();
    assert!(!vault.is_unused());
}

#[tokio::test]
async fn a_secret_is_kept_sealed_private_and_by_its_key() {
    let home = ScannedFolder::new();
    let folder = home.path().join("vault");
    let vault = file_vault(&folder);
    assert_eq!(vault.read(&login("a")).await.unwrap(), None);
    vault.write(&login("a"), &CANARY.into()).await.unwrap();
    vault
        .write(&VaultKey::named("b"), &secret("other"))
        .await
        .unwrap();
    vault.write(&login("a"), &CANARY.into()).await.unwrap();

    let again = file_vault(&folder);
    assert_eq!(again.read(&login("a")).await.unwrap(), Some(CANARY.into()));
    assert_eq!(again.read(&login("b")).await.unwrap(), None);
    let mut other = login("a");
    other.definition = "4567".to_owned();
    assert_eq!(again.read(&other).await.unwrap(), None, "another server");
    let listed = again.list().await.unwrap();
    let keys: Vec<_> = listed.iter().map(|listed| listed.key.clone()).collect();
    assert_eq!(keys, [login("a"), VaultKey::named("b")]);
    assert!(
        listed
            .iter()
            .all(|listed| listed.backend == VaultBackend::FileWithKey)
    );

    assert_eq!(mode(&folder), 0o700);
    for file in files(&folder) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let text = fs::read(&file).unwrap();
        let found = text
            .windows(CANARY.len())
            .any(|part| part == CANARY.as_bytes());
        assert!(!found, "{} holds the secret", file.display());
    }

    assert!(again.remove(&login("a")).await.unwrap());
    assert!(!again.remove(&login("a")).await.unwrap());
    assert_eq!(vault.read(&login("a")).await.unwrap(), None);
    assert_eq!(vault.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn plain_text_is_written_only_when_asked_for_and_read_by_all() {
    let home = ScannedFolder::new();
    let plain = Vault::open(VaultOptions {
        storage: StorageChoice::File,
        insecure: true,
        ..VaultOptions::new(home.path())
    });
    assert_eq!(plain.backend().await, VaultBackend::PlainFile);
    plain.write(&login("a"), &CANARY.into()).await.unwrap();
    let sealed = file_vault(home.path());
    assert_eq!(
        sealed.list().await.unwrap()[0].backend,
        VaultBackend::PlainFile
    );
    assert_eq!(sealed.read(&login("a")).await.unwrap(), Some(CANARY.into()));
    sealed.write(&login("a"), &CANARY.into()).await.unwrap();
    assert_eq!(
        sealed.list().await.unwrap()[0].backend,
        VaultBackend::FileWithKey
    );
    for file in files(home.path()) {
        assert!(!fs::read_to_string(&file).unwrap().contains(CANARY));
    }
}

#[tokio::test]
async fn a_passphrase_seals_and_nothing_else_opens() {
    let home = ScannedFolder::new();
    let vault = with_passphrase(home.path(), Some(marked!("one-")));
    assert_eq!(vault.backend().await, VaultBackend::FileWithPassphrase);
    vault.write(&login("a"), &CANARY.into()).await.unwrap();
    assert!(!home.path().join("key").exists(), "no key lies around");

    let same = with_passphrase(home.path(), Some(marked!("one-")));
    assert_eq!(same.read(&login("a")).await.unwrap(), Some(CANARY.into()));
    let error = with_passphrase(home.path(), Some(marked!("two-")))
        .read(&login("a"))
        .await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, VaultError::Passphrase { given: true, .. }),
        "{error}"
    );
    let error = with_passphrase(home.path(), None).read(&login("a")).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "the login of `a` is sealed with a passphrase, and TOOLWAY_VAULT_KEY is not set"
    );
    assert_eq!(same.read(&login("a")).await.unwrap(), Some(CANARY.into()));
}

#[tokio::test]
async fn a_damaged_file_is_told_once_kept_aside_and_harms_no_other() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    for server in ["a", "b", "c", "d"] {
        vault.write(&login(server), &secret(server)).await.unwrap();
    }
    let path = |server: &str| home.path().join("secrets").join(login(server).id());
    let sealed = fs::read_to_string(path("a")).unwrap();
    let damages = [
        ("a", sealed[..sealed.len() / 2].to_owned()),
        ("b", String::new()),
        // A file of ours, but another one's.
        ("c", sealed),
    ];
    for (server, damaged) in damages {
        fs::write(path(server), &damaged).unwrap();
        let error = vault.read(&login(server)).await.unwrap_err();
        let VaultError::Corrupt { aside, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(fs::read_to_string(aside).unwrap(), damaged);
        assert_eq!(vault.read(&login(server)).await.unwrap(), None, "told once");
        vault.write(&login(server), &secret("new")).await.unwrap();
        assert_eq!(
            vault.read(&login(server)).await.unwrap(),
            Some(secret("new"))
        );
    }
    assert_eq!(vault.read(&login("d")).await.unwrap(), Some(secret("d")));
}

#[tokio::test]
async fn a_damaged_list_is_made_anew_from_what_there_is() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    for server in ["a", "b"] {
        vault.write(&login(server), &secret(server)).await.unwrap();
    }
    let list = home.path().join("index.json");
    for damaged in ["{\"secrets\": {", "", "\u{0}\u{0}"] {
        fs::write(&list, damaged).unwrap();
        assert_eq!(vault.list().await.unwrap().len(), 2);
        assert_eq!(vault.read(&login("b")).await.unwrap(), Some(secret("b")));
        fs::write(&list, damaged).unwrap();
        vault.write(&login("a"), &secret("a2")).await.unwrap();
        assert_eq!(vault.list().await.unwrap().len(), 2);
    }
    let kept = files(home.path())
        .iter()
        .filter(|path| path.to_string_lossy().contains("index.json.broken-"))
        .count();
    assert_eq!(kept, 6);
}

#[tokio::test]
async fn without_its_key_nothing_is_given_up() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    vault.write(&login("a"), &secret("1")).await.unwrap();
    let (key, away) = (home.path().join("key"), home.path().join("away"));
    fs::rename(&key, &away).unwrap();
    let error = vault.read(&login("a")).await.unwrap_err();
    assert!(
        matches!(&error, VaultError::WrongKey { path, .. } if *path == key),
        "{error}"
    );
    // Something new can still be saved, with a new key.
    vault.write(&login("b"), &secret("2")).await.unwrap();
    assert_eq!(vault.read(&login("b")).await.unwrap(), Some(secret("2")));
    let error = vault.read(&login("a")).await.unwrap_err();
    assert!(matches!(error, VaultError::WrongKey { .. }), "{error}");
    fs::rename(&away, &key).unwrap();
    assert_eq!(vault.read(&login("a")).await.unwrap(), Some(secret("1")));
}

#[tokio::test]
async fn what_somebody_planted_is_not_followed() {
    let home = ScannedFolder::new();
    let folder = home.path().join("vault");
    let vault = file_vault(&folder);
    vault.write(&login("a"), &secret("1")).await.unwrap();
    let path = folder.join("secrets").join(login("a").id());
    let target = home.path().join("target");
    fs::copy(&path, &target).unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let error = vault.read(&login("a")).await.unwrap_err();
    assert!(matches!(error, VaultError::Io { .. }), "{error}");
    vault.write(&login("a"), &secret("2")).await.unwrap();
    assert_eq!(vault.read(&login("a")).await.unwrap(), Some(secret("2")));
    assert!(!path.is_symlink());
}

#[tokio::test]
async fn something_enormous_is_refused() {
    let home = ScannedFolder::new();
    let vault = file_vault(home.path());
    let largest = Secret::new("\u{1}".repeat(1024 * 1024));
    vault.write(&login("a"), &largest).await.unwrap();
    assert_eq!(vault.read(&login("a")).await.unwrap(), Some(largest));
    let larger = Secret::new("x".repeat(1024 * 1024 + 1));
    let error = vault.write(&login("a"), &larger).await.unwrap_err();
    assert!(matches!(error, VaultError::TooLong { .. }), "{error}");
}

#[tokio::test]
async fn an_export_carries_everything_and_is_opened_by_its_passphrase_only() {
    let home = ScannedFolder::new();
    let (from, to) = (
        file_vault(&home.path().join("from")),
        file_vault(&home.path().join("to")),
    );
    from.write(&login("a"), &CANARY.into()).await.unwrap();
    from.write(&VaultKey::named("b"), &secret("2"))
        .await
        .unwrap();
    let passphrase = Secret::from(marked!("one-"));
    let (text, count) = from.export(Some(&passphrase)).await.unwrap();
    assert_eq!(count, 2);
    assert!(!text.expose().contains(CANARY));
    for wrong in [None, Some(&marked!("two-").into())] {
        let error = to.import(&text, wrong).await.unwrap_err();
        assert!(matches!(error, ExportError::Passphrase), "{error}");
    }
    assert!(to.list().await.unwrap().is_empty());
    assert_eq!(to.import(&text, Some(&passphrase)).await.unwrap(), 2);
    assert_eq!(to.read(&login("a")).await.unwrap(), Some(CANARY.into()));

    let (plain, _) = from.export(None).await.unwrap();
    assert!(plain.expose().contains(CANARY));
    assert_eq!(to.import(&plain, None).await.unwrap(), 2);
    for damaged in ["", "{}", "toolway-export-1 00\n!!!\n"] {
        assert!(to.import(&damaged.into(), Some(&passphrase)).await.is_err());
    }
}
