//! The gateway's own token: made once, private, and checked whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use super::{GatewayToken, GatewayTokenError, PREFIX};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn sec_27_however_many_start_there_is_one_token_in_a_private_file() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state/gateway-token");
    let start = || GatewayToken::load_or_create(&path).unwrap();
    let tokens: Vec<String> = thread::scope(|scope| {
        let all: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
        all.into_iter()
            .map(|one| one.join().unwrap().token().expose().to_owned())
            .collect()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]));
    assert!(tokens[0].starts_with(PREFIX) && tokens[0].len() >= PREFIX.len() + 43);
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), tokens[0]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn only_the_whole_token_is_it() {
    let home = TempDir::new().unwrap();
    let token = GatewayToken::load_or_create(&home.path().join("token")).unwrap();
    let text = token.token().expose();
    assert!(token.check(text));
    for wrong in [
        "",
        &text[..text.len() - 1],
        &format!("{text}x"),
        &format!(" {text}"),
        &text.to_uppercase(),
        &"x".repeat(10_000),
    ] {
        assert!(!token.check(wrong), "{wrong}");
    }
    assert_eq!(format!("{token:?}"), "GatewayToken");
}

#[test]
fn sec_27_a_file_that_others_may_read_or_that_is_none_is_not_used() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("token");
    GatewayToken::load_or_create(&path).unwrap();
    for mode in [0o640, 0o604, 0o644] {
        set_mode(&path, mode);
        let error = GatewayToken::load_or_create(&path).unwrap_err();
        assert!(matches!(error, GatewayTokenError::Open(_)), "{error}");
    }
    set_mode(&path, 0o620);
    let error = GatewayToken::load_or_create(&path).unwrap_err();
    assert!(matches!(error, GatewayTokenError::File { .. }), "{error}");
    set_mode(&path, 0o600);
    // A token of the user's own is taken as it is, and a poor one is not replaced.
    let own = "my-own-token-of-enough-length";
    fs::write(&path, format!("{own}\n")).unwrap();
    assert!(GatewayToken::load_or_create(&path).unwrap().check(own));
    for poor in [
        "",
        "short",
        "two words that are long enough together",
        "a\nb",
    ] {
        fs::write(&path, poor).unwrap();
        let error = GatewayToken::load_or_create(&path).unwrap_err();
        assert!(matches!(error, GatewayTokenError::Malformed(_)), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), poor);
    }
    let link = home.path().join("link");
    symlink(&path, &link).unwrap();
    let error = GatewayToken::load_or_create(&link).unwrap_err();
    assert!(matches!(error, GatewayTokenError::File { .. }), "{error}");
    let folder = home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let error = GatewayToken::load_or_create(&folder).unwrap_err();
    assert!(matches!(error, GatewayTokenError::File { .. }), "{error}");
}
