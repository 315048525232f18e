//! Secrets from the vault, from files and from commands, and what is said when there is none.

use std::path::Path;
use std::sync::Arc;

use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::OpenOptions;
use toolway_types::{
    OauthSpec, ProtocolMode, ReferenceKind, RemoteKind, RemoteSpec, Secret, SecretReference,
    ServerName, ServerSpec, StdioSpec, TransportSpec, UrlList, UrlPattern, UrlRules,
};

use super::ReferenceResolver;
use crate::vault::{StorageChoice, Vault, VaultKey, VaultOptions};

const CANARY: &str = marked!("51c0-");

fn references(folder: &Path) -> ReferenceResolver {
    let path = ("PATH".to_owned(), Secret::new("/usr/bin:/bin"));
    ReferenceResolver {
        vault: Vault::open(VaultOptions {
            storage: StorageChoice::File,
            ..VaultOptions::new(folder.join("vault"))
        }),
        inherited: Arc::new([path].into()),
        cwd: toolway_types::WorkingDirectory::default(),
    }
}

fn reference(kind: ReferenceKind, target: &str) -> SecretReference {
    SecretReference {
        kind,
        target: target.to_owned(),
        place: "env.TOKEN".to_owned(),
        file: None,
    }
}

fn process(references: Vec<SecretReference>) -> ServerSpec {
    let value = references.iter().map(SecretReference::placeholder);
    let value = value.collect::<Vec<_>>().join("+");
    ServerSpec {
        name: ServerName::new("one").unwrap(),
        transport: TransportSpec::Stdio(StdioSpec {
            program: None,
            command: "true".to_owned(),
            args: Vec::new(),
            inherited: Arc::default(),
            env: [("TOKEN".to_owned(), Secret::new(value))].into(),
            cwd: toolway_types::WorkingDirectory::default(),
            shield: toolway_types::ShieldMode::Off,
            umask: None,
        }),
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::Auto,
        share: toolway_types::ServerShare::User,
        roots: Vec::new(),
        references,
    }
}

async fn token(
    references: &ReferenceResolver,
    wanted: Vec<SecretReference>,
) -> Result<String, String> {
    let spec = process(wanted);
    let resolved = references.resolve(&spec, &OpenOptions::default()).await;
    let (spec, _) = resolved.map_err(|error| error.to_string())?;
    let TransportSpec::Stdio(stdio) = spec.transport else {
        unreachable!();
    };
    Ok(stdio.env["TOKEN"].expose().to_owned())
}

#[tokio::test]
async fn every_kind_is_found_where_it_lies() {
    let home = ScannedFolder::new();
    let references = references(home.path());
    let key = VaultKey::named("git hub");
    references
        .vault
        .write(&key, &marked!("one-").into())
        .await
        .unwrap();
    let file = home.write("file", marked!("two-", "\r\n"));
    let wanted = vec![
        reference(ReferenceKind::Keychain, "git hub"),
        reference(ReferenceKind::File, file.to_str().unwrap()),
        reference(
            ReferenceKind::Command,
            marked!("printf 'three-%s\\n' ", "; exit 0"),
        ),
    ];
    assert_eq!(
        token(&references, wanted).await.unwrap(),
        format!("one-{MARK}+two-{MARK}+three-{MARK}")
    );
}

#[tokio::test]
async fn a_secret_in_an_address_cannot_lead_elsewhere() {
    let home = ScannedFolder::new();
    let references = references(home.path());
    let secret = format!("{CANARY}&a=b#c/../ d");
    let key = VaultKey::named("k");
    references
        .vault
        .write(&key, &secret.as_str().into())
        .await
        .unwrap();
    let wanted = SecretReference {
        place: "url".to_owned(),
        ..reference(ReferenceKind::Keychain, "k")
    };
    let word = wanted.placeholder();
    let remote = RemoteSpec {
        rules: std::sync::Arc::default(),
        url: format!("https://x.example/{word}/mcp?key={word}&other=1")
            .parse()
            .unwrap(),
        headers: vec![("X-Key".to_owned(), Secret::new(format!("v {word}")))],
        headers_helper: None,
        oauth: None,
    };
    let spec = ServerSpec {
        transport: TransportSpec::Remote(RemoteKind::Http, remote),
        ..process(vec![wanted])
    };
    let resolved = references.resolve(&spec, &OpenOptions::default()).await;
    let (resolved, found) = resolved.unwrap();
    let (path, query) = ("&a=b%23c%2F..%2F%20d", "%26a%3Db%23c%2F..%2F%20d");
    let spellings = [
        secret.clone(),
        format!("{CANARY}{path}"),
        format!("{CANARY}{query}"),
    ];
    assert_eq!(found, spellings.map(Secret::new));
    let TransportSpec::Remote(RemoteKind::Http, remote) = &resolved.transport else {
        unreachable!();
    };
    assert_eq!(remote.url.path(), format!("/{CANARY}{path}/mcp"));
    let pairs: Vec<_> = remote.url.query_pairs().collect();
    assert_eq!(pairs[0].1, secret);
    assert_eq!(pairs.len(), 2);
    assert_eq!(remote.headers[0].1.expose(), format!("v {secret}"));
    assert!(!format!("{spec:?} {resolved:?}").contains(MARK));
    // What names a place above would lead there.
    for dots in [".", "..", "..."] {
        let key = VaultKey::named("k");
        references.vault.write(&key, &dots.into()).await.unwrap();
        let error = references.resolve(&spec, &OpenOptions::default()).await;
        let error = error.expect_err("refused").to_string();
        assert!(error.contains("cannot stand in an address"), "{error}");
    }
}

#[tokio::test]
async fn sec_53_a_secret_in_an_address_leads_to_no_denied_path() {
    let home = ScannedFolder::new();
    let references = references(home.path());
    let wanted = SecretReference {
        place: "url".to_owned(),
        ..reference(ReferenceKind::Keychain, "k")
    };
    let word = wanted.placeholder();
    let list = |pattern: &str, reason: &str| UrlList {
        patterns: vec![UrlPattern::parse(pattern).unwrap()],
        reason: reason.to_owned(),
    };
    let rules = UrlRules {
        denied: vec![list("*://*/admin/*", "denied by a rule")],
        allowed: vec![list("http://h.example/t/*", "in no list")],
    };
    let remote = RemoteSpec {
        rules: Arc::new(rules),
        url: format!("http://h.example/t/{word}/mcp").parse().unwrap(),
        headers: Vec::new(),
        headers_helper: None,
        oauth: None,
    };
    let spec = ServerSpec {
        transport: TransportSpec::Remote(RemoteKind::Http, remote),
        ..process(vec![wanted])
    };
    let resolve = async |value: &str| {
        let secret = format!("{CANARY}{value}");
        let key = VaultKey::named("k");
        references
            .vault
            .write(&key, &secret.as_str().into())
            .await
            .unwrap();
        let resolved = references.resolve(&spec, &OpenOptions::default()).await;
        resolved.map(drop).map_err(|error| error.to_string())
    };
    for (value, why) in [
        ("/../../admin/y?z=", "denied by a rule"),
        ("%2f..%2f..%2fadmin", "denied by a rule"),
        ("\\..\\..\\admin\\y", "denied by a rule"),
        ("/../../other", "in no list"),
    ] {
        let expected =
            format!("`url` needs `${{keychain:k}}`: with its value the address is {why}");
        assert_eq!(resolve(value).await, Err(expected), "{value}");
    }
    assert_eq!(resolve("").await, Ok(()));
}

#[tokio::test]
async fn a_login_gets_its_own_and_the_file_is_named_where_one_is_missing() {
    let home = ScannedFolder::new();
    let references = references(home.path());
    let wanted = SecretReference {
        place: "oauth.clientSecret".to_owned(),
        file: Some("/etc/x.json".into()),
        ..reference(ReferenceKind::Keychain, "k")
    };
    let spec = OauthSpec {
        client_id: Some("me".to_owned()),
        client_secret: Some(Secret::new(wanted.placeholder())),
        references: vec![wanted],
        ..OauthSpec::default()
    };
    let options = OpenOptions::default();
    let error = references.resolve_login(&spec, &options).await;
    assert_eq!(
        error.expect_err("not there").to_string(),
        "`oauth.clientSecret` in /etc/x.json needs `${keychain:k}`: the vault has no such secret; \
         put it there with `toolway vault set k`"
    );
    let key = VaultKey::named("k");
    references.vault.write(&key, &CANARY.into()).await.unwrap();
    let filled = references.resolve_login(&spec, &options).await.unwrap();
    assert_eq!(filled.client_secret, Some(CANARY.into()));
    assert!(!format!("{filled:?}").contains(CANARY));
}

#[tokio::test]
async fn what_is_missing_is_named_without_any_value() {
    let home = ScannedFolder::new();
    let references = references(home.path());
    let key = VaultKey::named("two-lines");
    let lines = format!("{CANARY}\n{CANARY}");
    references
        .vault
        .write(&key, &lines.as_str().into())
        .await
        .unwrap();
    let file = home.path().join("none");
    let cases = [
        (
            reference(ReferenceKind::Keychain, "absent"),
            "`env.TOKEN` needs `${keychain:absent}`: the vault has no such secret; put it there \
             with `toolway vault set absent`"
                .to_owned(),
        ),
        (
            reference(ReferenceKind::Keychain, "two-lines"),
            "`env.TOKEN` needs `${keychain:two-lines}`: it is no single line of text of at most \
             65536 bytes"
                .to_owned(),
        ),
        (
            reference(ReferenceKind::File, file.to_str().unwrap()),
            format!(
                "`env.TOKEN` needs `${{file:{}}}`: the file cannot be read: No such file or \
                 directory (os error 2)",
                file.display()
            ),
        ),
        (
            reference(ReferenceKind::File, "/dev/null"),
            "`env.TOKEN` needs `${file:/dev/null}`: the file cannot be read: it is no plain file"
                .to_owned(),
        ),
        (
            reference(
                ReferenceKind::Command,
                &format!("echo {CANARY}; echo {CANARY} >&2; exit 3"),
            ),
            "`env.TOKEN` needs `${cmd:echo …}`: the command ended with exit status: 3".to_owned(),
        ),
        (
            reference(ReferenceKind::Command, "true"),
            "`env.TOKEN` needs `${cmd:true}`: it is empty".to_owned(),
        ),
        (
            reference(ReferenceKind::Command, &format!("yes {CANARY}")),
            "`env.TOKEN` needs `${cmd:yes …}`: the command failed: it printed more than 65538 \
             bytes and was killed"
                .to_owned(),
        ),
    ];
    for (wanted, message) in cases {
        assert_eq!(token(&references, vec![wanted]).await.unwrap_err(), message);
    }
}
