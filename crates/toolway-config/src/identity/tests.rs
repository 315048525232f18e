//! The identity provider as written, and what is wrong with it.

use insta::assert_snapshot;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{Diagnosis, ReferenceKind};

use super::IdentitySettings;
use crate::raw;
use crate::raw::settings::ObjectSetting;
use crate::source::{FileKind, TextSource};

/// What a settings file with this `identityProvider` says.
fn read(kind: FileKind, provider: &str) -> (Option<IdentitySettings>, Vec<Diagnosis>) {
    let text = format!("{{\n\"identityProvider\": {provider}\n}}");
    let file = raw::read(&text, &TextSource::file("f.json"), kind).expect("JSON");
    let settings = file.settings.identity.and_then(|identity| match identity {
        ObjectSetting::Read(settings) => Some((*settings).clone()),
        ObjectSetting::Faulty => None,
    });
    (settings, file.diagnoses)
}

fn findings(kind: FileKind, provider: &str) -> String {
    let (settings, found) = read(kind, provider);
    let lines = found.iter().map(|found| {
        let place = found.origin.as_ref().map(ToString::to_string);
        let hint = found.hint.as_deref().map(|hint| format!(" | hint: {hint}"));
        let (place, hint) = (place.unwrap_or_default(), hint.unwrap_or_default());
        format!("{place} {}{hint}\n", found.message)
    });
    let lines: String = lines.collect();
    let used = if settings.is_some() {
        "used"
    } else {
        "not used"
    };
    format!("{lines}{used}")
}

#[test]
fn everything_that_can_be_said_is_read() {
    let (settings, found) = read(
        FileKind::User,
        r#"{"issuer": "https://login.example/tenant/", "clientId": "toolway",
            "clientSecret": "${keychain:idp}", "scopes": "email profile",
            "tokenEndpoint": "https://login.example/token", "callbackPort": 7777}"#,
    );
    assert_eq!(found, []);
    let settings = settings.expect("a provider");
    assert_eq!(settings.issuer, "https://login.example/tenant/");
    assert_eq!(settings.client_id, "toolway");
    let secret = settings.client_secret.expect("a reference");
    assert_eq!(
        (secret.kind, secret.target.as_str()),
        (ReferenceKind::Keychain, "idp")
    );
    assert_eq!(settings.scopes, ["email", "profile"]);
    assert_eq!(settings.callback_port, Some(7777));
    assert!(settings.token_endpoint.is_some());
}

#[test]
fn what_is_missing_or_wrong_is_said_with_its_line() {
    assert_snapshot!(findings(FileKind::User, "true"), @r#"
    f.json:2 `identityProvider` must be an object, not a boolean | hint: write e.g. `"identityProvider": {"issuer": "https://login.example.com", "clientId": "toolway"}`
    not used
    "#);
    assert_snapshot!(findings(FileKind::User, "{}"), @"
    f.json:2 `identityProvider` lacks `issuer`
    f.json:2 `identityProvider` lacks `clientId`
    not used
    ");
    assert_snapshot!(findings(FileKind::User, "{\n\"issuer\": \"http://login.example\",\n\"clientId\": 7,\n\"scopes\": 1,\n\"tokenEndpoint\": \"/token\",\n\"callbackPort\": 0,\n\"cliendSecret\": \"\"}"), @r#"
    f.json:8 `identityProvider.cliendSecret` is not a key Toolway reads | hint: did you mean `identityProvider.clientSecret`?
    f.json:3 `identityProvider.issuer` must begin with `https://`; `http://` only leads to this machine | hint: write e.g. `"https://login.example.com"`
    f.json:4 `identityProvider.clientId` must be a string, not a number
    f.json:5 `identityProvider.scopes` must be a string or an array of strings, not a number
    f.json:6 `identityProvider.tokenEndpoint` must begin with `http://` or `https://` | hint: write e.g. `"https://login.example.com"`
    f.json:7 `identityProvider.callbackPort` must be a port number from 1 to 65535
    not used
    "#);
}

#[test]
fn the_secret_is_never_in_the_file() {
    let with = |secret: &str| {
        format!(
            r#"{{"issuer": "https://login.example", "clientId": "c", "clientSecret": {secret}}}"#
        )
    };
    let written = findings(FileKind::User, &with(marked!("\"", "\"")));
    assert!(!written.contains(MARK));
    assert_snapshot!(written, @r#"
    f.json:2 `identityProvider.clientSecret` must be a reference, not the secret itself | hint: keep it with `toolway vault set idp`, and write `"${keychain:idp}"`
    not used
    "#);
    assert_snapshot!(findings(FileKind::User, &with(r#""x${keychain:a}""#)), @r#"
    f.json:2 `identityProvider.clientSecret` must be a reference, not the secret itself | hint: keep it with `toolway vault set idp`, and write `"${keychain:idp}"`
    not used
    "#);
    assert_snapshot!(findings(FileKind::User, &with(r#""${VARIABLE}""#)), @r#"
    f.json:2 `identityProvider.clientSecret` must be a reference, not the secret itself | hint: keep it with `toolway vault set idp`, and write `"${keychain:idp}"`
    not used
    "#);
    assert_snapshot!(findings(FileKind::User, &with(r#""${file:secret}""#)), @"
    f.json:2 `identityProvider.clientSecret` has `${file:secret}`, which is no absolute path
    not used
    ");
    assert_snapshot!(findings(FileKind::User, &with(r#""${cmd:pass show idp}""#)), @"used");
    assert_snapshot!(findings(FileKind::Managed, &with(r#""${cmd:pass show idp}""#)), @"
    f.json:2 `identityProvider.clientSecret` may not use `${cmd:pass …}`: only your own settings can name a command
    not used
    ");
    assert_snapshot!(findings(FileKind::Managed, &with(r#""${file:/etc/toolway/idp}""#)), @"used");
}
