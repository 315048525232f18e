//! What `edit` promises, on real files.

mod crash;
mod format;
mod property;
mod toml;
mod writers;
mod yaml;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The names in a directory, to see what an edit leaves behind.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_and_its_directories_are_private() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/settings.json");
    let done = edit(&path, |document| {
        document.set(&["mcpServers", "x"], &json!({"command": "y"}))
    })
    .unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"y\"\n    }\n  }\n}\n"
    );
    assert_eq!(
        (done.line, done.backup, done.changed),
        (Some(3), None, true)
    );
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.path().join("a")), 0o700);
    assert_eq!(mode(&home.path().join("a/b")), 0o700);
    assert_eq!(names(&home.path().join("a/b")), ["settings.json"]);
}

#[test]
fn the_old_content_is_backed_up_and_the_mode_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    fs::write(&path, "{\"a\": 1}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let done = edit(&path, |document| document.set(&["b"], &json!(2))).unwrap();
    let backup = done.backup.unwrap();
    assert_eq!(backup, done.path.with_file_name("settings.json.bak"));
    assert_eq!(fs::read_to_string(&backup).unwrap(), "{\"a\": 1}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\": 1, \"b\": 2}");
    assert_eq!((mode(&path), mode(&backup)), (0o640, 0o640));
    assert_eq!(
        names(home.path()),
        ["settings.json", "settings.json.bak"],
        "no temporary file and no lock file stays behind"
    );
}

#[test]
fn a_link_stays_a_link_and_the_file_behind_it_changes() {
    let home = tempfile::tempdir().unwrap();
    let dotfiles = home.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    let real = dotfiles.join("settings.json");
    fs::write(&real, "{}").unwrap();
    let link = home.path().join("settings.json");
    symlink("dotfiles/settings.json", &link).unwrap();
    let done = edit(&link, |document| document.set(&["a"], &json!(true))).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(done.path, real.canonicalize().unwrap());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"a\": true\n}");
}

#[test]
fn a_link_to_a_file_that_is_not_there_yet_is_followed() {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("settings.json");
    symlink("dotfiles/new.json", &link).unwrap();
    edit(&link, |document| document.set(&["a"], &json!(1))).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(home.path().join("dotfiles/new.json").is_file());
}

#[test]
fn a_circle_of_links_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("settings.json");
    symlink("settings.json", &link).unwrap();
    let error = edit(&link, |document| document.set(&["a"], &json!(1))).unwrap_err();
    assert!(matches!(error, EditError::Io { .. }), "{error}");
}

#[test]
fn sec_37_what_is_planted_under_our_names_is_neither_followed_nor_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    let victim = home.path().join("victim");
    fs::write(&path, "{\"a\": 1}").unwrap();
    fs::write(&victim, "precious").unwrap();

    symlink(&victim, home.path().join("settings.json.bak")).unwrap();
    edit(&path, |document| document.set(&["b"], &json!(1))).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(
        fs::read_to_string(home.path().join("settings.json.bak")).unwrap(),
        "{\"a\": 1}"
    );
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    let text = "{ // mine\n\t\"a\" : {\"b\":[1,2 , 3]} }";
    fs::write(&path, text).unwrap();
    let done = edit(&path, |document| {
        document.set(&["a"], &json!({"b": [1, 2, 3]}))
    })
    .unwrap();
    assert_eq!(
        (done.changed, done.backup, done.line),
        (false, None, Some(2))
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let missing = home.path().join("missing.json");
    let done = edit(&missing, |document| Ok(document.remove(&["a"]))).unwrap();
    assert_eq!((done.changed, done.value), (false, false));
    assert!(!missing.exists());
}

#[test]
fn an_invalid_file_is_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    for (bytes, line, column) in [
        (&b"{\n  \"a\": 1\n  \"b\": 2\n}"[..], 2, 9),
        (b"{\"a\": 1", 1, 1),
        (b"{'a': 1}", 1, 2),
        (b"{\"a\": \xff}", 1, 7),
        (b"\xff\xfe{\0}\0", 1, 1),
        (b"{} {}", 1, 4),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = edit(&path, |document| document.set(&["x"], &json!(1))).unwrap_err();
        match error {
            EditError::Invalid {
                line: found_line,
                column: found_column,
                ..
            } => {
                assert_eq!((found_line, found_column), (line, column), "{bytes:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn only_objects_take_entries() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    for (text, key) in [
        ("[1]", "the top level"),
        ("3", "the top level"),
        ("{\"a\": {\"b\": 1}}", "a.b"),
    ] {
        fs::write(&path, text).unwrap();
        let error = edit(&path, |document| document.set(&["a", "b", "c"], &json!(1))).unwrap_err();
        assert!(
            matches!(&error, EditError::NotAnObject { key: found, .. } if found == key),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = edit(home.path(), |document| document.set(&["a"], &json!(1))).unwrap_err();
    assert!(matches!(error, EditError::NotAFile { .. }), "{error}");
}

#[test]
fn a_change_that_declines_leaves_the_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    fs::write(&path, "{}").unwrap();
    let error = edit(&path, |document| {
        document.set(&["a"], &json!(1))?;
        Err::<(), _>(EditError::Refused("`a` is taken".to_owned()))
    })
    .unwrap_err();
    assert_eq!(error.to_string(), "`a` is taken");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
}

#[test]
fn what_an_editor_saved_in_between_is_not_written_over() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("settings.json");
    fs::write(&path, "{}").unwrap();
    let error = edit(&path, |document| {
        fs::write(&path, "{\"saved\": true}").unwrap();
        document.set(&["a"], &json!(1))
    })
    .unwrap_err();
    assert!(matches!(error, EditError::Changed { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"saved\": true}");
}
