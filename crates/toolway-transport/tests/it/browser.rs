//! Pages handed to a browser program: which pages, which program, and how it is called.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolway_transport::browser::{Browser, BrowserError};
use toolway_types::Secret;
use url::Url;

/// A program that writes down how it was called.
fn program(folder: &TempDir, name: &str, end: &str) -> PathBuf {
    let path = folder.path().join(name);
    let record = folder.path().join("record");
    let script = format!(
        "#!/bin/sh\n{{ for word; do printf '%s|' \"$word\"; done; printf '%s\\n' \"$GIVEN\"; }} \
         >> {}\n{end}\n",
        record.display()
    );
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

fn recorded(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("record")).unwrap_or_default()
}

fn browser(variable: &str) -> Browser {
    let given = [("GIVEN", "yes"), ("PATH", "/nonexistent")];
    let environment: BTreeMap<String, Secret> = given
        .map(|(name, value)| (name.to_owned(), Secret::new(value)))
        .into();
    Browser::new(Some(variable), environment)
}

fn page(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn a_page_goes_to_the_first_program_that_takes_it_as_one_argument() {
    let folder = tempfile::tempdir().expect("a folder");
    let failing = program(&folder, "failing", "exit 3");
    let taking = program(&folder, "taking", "");
    let variable = format!(
        "/nonexistent/x:{} --new:{} --at=%s",
        shown(&failing),
        shown(&taking)
    );
    let address = "https://example.com/a?b=$(id);c|d&e";
    browser(&variable)
        .show(&page(address))
        .await
        .expect("somebody takes it");
    assert_eq!(
        recorded(&folder),
        format!("--new|{address}|yes\n--at={address}|yes\n")
    );
}

#[tokio::test]
async fn sec_36_only_https_and_this_machine_are_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let taking = program(&folder, "taking", "");
    let browser = browser(&shown(&taking));
    for address in [
        "http://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://127.0.0.1.example.com/",
        "vscode://x/y",
    ] {
        let refused = browser.show(&page(address)).await;
        assert!(matches!(refused, Err(BrowserError::Unfit(_))), "{address}");
    }
    assert_eq!(recorded(&folder), "");
    for address in [
        "http://127.0.0.1:9/x",
        "http://[::1]:9/",
        "http://localhost/",
    ] {
        browser.show(&page(address)).await.expect("this machine");
    }
    assert_eq!(recorded(&folder).lines().count(), 3);
}

#[tokio::test]
async fn sec_16_an_opener_sees_one_address_and_no_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let taking = program(&folder, "taking", "");
    let browser = browser(&shown(&taking));
    let huge = format!("https://example.com/?x={}", "a".repeat(64 * 1024));
    for address in [
        "javascript:alert(1)//",
        "data:text/html,<script>",
        "file:///etc/passwd",
        "vbscript:x",
        "ms-msdt:/id",
        "mailto:-flag",
        "https://example.com@evil.example.com/",
        "https://user:word@example.com/",
        &huge,
    ] {
        match browser.show(&page(address)).await {
            Err(error @ BrowserError::Unfit(_)) => {
                let said = error.to_string();
                assert!(said.len() < 200 && !said.contains("word"), "{said}");
            }
            other => panic!("{address}: {other:?}"),
        }
    }
    assert_eq!(recorded(&folder), "");
    // What a shell would run, break a line at or take for a place holder stays one word.
    for address in [
        "https://example.com/$(id)`id`;id|id&x='y'",
        "https://example.com/a\r\nb%0ac%s",
        "https://example.com/ --flag",
        "https://-flag.example.com/",
    ] {
        let before = recorded(&folder).lines().count();
        let page = page(address);
        browser.show(&page).await.expect("an address");
        let record = recorded(&folder);
        assert_eq!(record.lines().count(), before + 1, "{record}");
        let line = record.lines().last().expect("a line");
        assert_eq!(line, format!("{page}|yes"));
        assert!(line.starts_with("https://"));
    }
}

#[tokio::test]
async fn nobody_who_takes_it_is_an_error_that_names_everybody_who_was_tried() {
    let error = browser("/nonexistent/browser")
        .show(&page("https://example.com/"))
        .await
        .expect_err("nobody");
    assert!(
        error.to_string().contains("`/nonexistent/browser`"),
        "{error}"
    );
}
