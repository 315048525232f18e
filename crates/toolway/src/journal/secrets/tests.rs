//! Which values count.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{ProtocolMode, RemoteKind, ServerName, ShieldMode};

use super::*;

fn found(transport: TransportSpec) -> Vec<String> {
    let spec = ServerSpec {
        name: ServerName::new("one").unwrap(),
        transport,
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::default(),
        share: toolway_types::ServerShare::User,
        roots: Vec::new(),
        references: Vec::new(),
    };
    let mut found: Vec<String> = secrets_of(&spec)
        .iter()
        .map(|secret| secret.expose().to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

fn process(env: &[(&str, &str)], args: &[&str]) -> TransportSpec {
    TransportSpec::Stdio(StdioSpec {
        program: None,
        command: "true".to_owned(),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        inherited: Arc::new(BTreeMap::from([
            ("PATH".to_owned(), Secret::new("/usr/bin:/bin")),
            (
                "HTTPS_PROXY".to_owned(),
                Secret::new("http://me:proxypass@proxy:3128"),
            ),
        ])),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
            .collect(),
        cwd: toolway_types::WorkingDirectory::default(),
        shield: ShieldMode::Off,
        umask: None,
    })
}

#[test]
fn variables_count_by_name_or_by_length() {
    let env = [
        ("NODE_ENV", "production"),
        ("DATA_DIR", "/var/lib/data"),
        ("PORT", "12345678"),
        ("BASE_URL", "https://example.com/api"),
        ("DATABASE_URL", "postgres://me:dbpass@db/x"),
        ("GITHUB_TOKEN", marked!("ghp_")),
        ("DB_PASS", "word"),
        ("SHORT_TOKEN", "abc"),
        ("ANYTHING", "x9-long-enough"),
        ("MODE", "fast"),
    ];
    let all = found(process(&env, &[]));
    assert_eq!(
        all,
        [
            "bWU6ZGJwYXNz",
            "bWU6cHJveHlwYXNz",
            "dbpass",
            marked!("ghp_"),
            "proxypass",
            "word",
            "x9-long-enough"
        ]
    );
}

#[test]
fn arguments_count_behind_a_flag_that_says_so() {
    let args = [
        "--api-key",
        "k1-long",
        "--token=t1",
        "-H",
        marked!("Authorization: Bearer "),
        "--port",
        "80",
        "--user",
        "me:word1",
        "-p",
        "project",
        "-p",
        "Pass1",
    ];
    let all = found(process(&[], &args));
    assert_eq!(
        all,
        [
            marked!("Bearer "),
            "Pass1",
            "bWU6cHJveHlwYXNz",
            MARK,
            "k1-long",
            "me:word1",
            "proxypass",
            "t1",
            "word1"
        ]
    );
}

#[test]
fn headers_and_addresses_count() {
    let all = found(TransportSpec::Remote(
        RemoteKind::Http,
        RemoteSpec {
            rules: std::sync::Arc::default(),
            url: Url::parse(
                "https://someuser1:p%40ss@host/s/abcdefghij0123456789/mcp?key=q%2Bq&v=12345678#f",
            )
            .unwrap(),
            headers: vec![
                (
                    "Authorization".to_owned(),
                    Secret::new("Basic bWU6c2VzYW1l"),
                ),
                ("Accept".to_owned(), Secret::new("application/json")),
                ("X-Key".to_owned(), Secret::new("value")),
            ],
            headers_helper: None,
            oauth: None,
        },
    ));
    let expected = [
        "12345678",
        "Basic bWU6c2VzYW1l",
        "abcdefghij0123456789",
        "bWU6c2VzYW1l",
        "c29tZXVzZXIxOnBAc3M=",
        "me:sesame",
        "p%40ss",
        "p@ss",
        "sesame",
        "someuser1",
        "value",
    ];
    assert_eq!(all, expected);
}

#[test]
fn sec_47_what_an_address_becomes_on_its_way_counts_too() {
    let address = "https://me:s%40cret@example.com/mcp";
    // `me:s@cret`, as the header has it.
    let sent = "bWU6c0BjcmV0";
    let transport = TransportSpec::Remote(
        RemoteKind::Http,
        RemoteSpec {
            rules: std::sync::Arc::default(),
            url: address.parse().unwrap(),
            headers: Vec::new(),
            headers_helper: None,
            oauth: None,
        },
    );
    assert!(found(transport).contains(&sent.to_owned()));
    let all = found(process(&[("UPSTREAM", address)], &[]));
    assert!(all.contains(&sent.to_owned()), "{all:?}");
    // A short token behind its scheme is still a token.
    let short = "ab12";
    let transport = TransportSpec::Remote(
        RemoteKind::Http,
        RemoteSpec {
            rules: std::sync::Arc::default(),
            url: "https://example.com/".parse().unwrap(),
            headers: vec![(
                "Authorization".to_owned(),
                Secret::new(format!("Bearer {short}")),
            )],
            headers_helper: None,
            oauth: None,
        },
    );
    assert!(found(transport).contains(&short.to_owned()));
}
