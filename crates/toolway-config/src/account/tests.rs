//! The provider's shape as written, the proxy's addresses, and directories good and bad.

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use toolway_testkit::marked;
use toolway_types::Diagnosis;
use url::Url;

use super::directory::MOST;
use super::{AccountProvider, ConnectorDirectory, DirectoryError, ProxyUrl};
use crate::raw;
use crate::source::{FileKind, TextSource};

/// What a settings file with this `account` says.
fn read(account: &str) -> (Option<AccountProvider>, Vec<Diagnosis>) {
    let text = format!("{{\n\"account\": {account}\n}}");
    let source = TextSource::file("f.json");
    let file = raw::read(&text, &source, FileKind::User).expect("JSON");
    let provider = file.settings.account.and_then(|account| match account {
        raw::settings::ObjectSetting::Read(provider) => Some((*provider).clone()),
        raw::settings::ObjectSetting::Faulty => None,
    });
    (provider, file.diagnoses)
}

fn standard() -> AccountProvider {
    let (provider, found) = read(r#"{"url": "https://connect.example.com/tenant/"}"#);
    assert_eq!(found, []);
    provider.expect("a provider")
}

fn findings(account: &str) -> String {
    let (provider, found) = read(account);
    let lines = found.iter().map(|found| {
        let place = found.origin.as_ref().map(ToString::to_string);
        let hint = found.hint.as_deref().map(|hint| format!(" | hint: {hint}"));
        format!(
            "{} {}{}\n",
            place.unwrap_or_default(),
            found.message,
            hint.unwrap_or_default()
        )
    });
    let lines: String = lines.collect();
    format!(
        "{lines}{}",
        if provider.is_some() {
            "used"
        } else {
            "not used"
        }
    )
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[test]
fn one_address_is_enough_for_a_provider_of_the_preset() {
    let provider = standard();
    assert_eq!(provider.issuer, "https://connect.example.com/tenant");
    assert_eq!(
        provider.directory_url.as_str(),
        "https://connect.example.com/tenant/directory"
    );
    assert_eq!(
        provider.proxy.to_string(),
        "https://connect.example.com/tenant/proxy/{id}/mcp"
    );
    assert_eq!(provider.token_header, "Authorization");
    assert_eq!(provider.token_prefix, "Bearer");
    assert_eq!(provider.headers[0].0, "X-Account-Client");
    assert_eq!(provider.fields.list, "connectors");
}

#[test]
fn every_part_of_the_shape_can_be_said() {
    let (provider, found) = read(
        r#"{
        "provider": "standard",
        "issuer": "https://id.example.com",
        "metadataUrl": "https://id.example.com/meta",
        "clientId": "tw",
        "scopes": "a b",
        "callbackPort": 4711,
        "connectors": {
            "directoryUrl": "https://api.example.com/v1/list?all=1",
            "proxyUrl": "http://127.0.0.1:80/p?server={id}",
            "fields": {"list": "data.items", "id": "uuid", "name": "title", "url": "upstream"},
            "headers": {"X-A": "b"},
            "tokenHeader": "X-Token",
            "tokenPrefix": ""
        }
    }"#,
    );
    assert_eq!(found, []);
    let provider = provider.expect("a provider");
    let address = provider.proxy.of("a/b?c&d=\u{e9}").expect("an address");
    assert_eq!(
        address.as_str(),
        "http://127.0.0.1/p?server=a%2Fb%3Fc%26d%3D%C3%A9"
    );
    let answer = object(&json!({"data": {"items": [
        {"uuid": 7, "title": "Seven", "upstream": "https://seven.example"}
    ]}}));
    let directory = ConnectorDirectory::read(&provider, &answer).expect("a directory");
    assert_eq!(directory.connectors[0].id, "7");
    assert_eq!(directory.connectors[0].name, "Seven");
    assert_eq!(provider.scopes, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(provider.callback_port, Some(4711));
    assert_eq!(provider.token_prefix, "");
}

#[test]
fn mistakes_are_named_with_their_lines_and_leave_no_account() {
    assert_snapshot!(findings("7"), @"
    f.json:2 `account` must be an object, not a number | hint: write e.g. `\"account\": {\"url\": \"https://connect.example.com\"}`
    not used
    ");
    assert_snapshot!(findings("{}"), @"
    f.json:2 `account` lacks `account.issuer`, `account.connectors.directoryUrl`, `account.connectors.proxyUrl` | hint: give `account.url`, below which a provider of the shape `standard` has them, or each of them
    not used
    ");
    assert_snapshot!(findings("{\n\"url\": \"http://connect.example.com\",\n\"isuer\": \"x\"}"), @"
    f.json:4 `account.isuer` is not a key Toolway reads | hint: did you mean `account.issuer`?
    f.json:3 `account.url` must begin with `https://`; `http://` only leads to this machine | hint: write e.g. `\"https://connect.example.com\"`
    not used
    ");
    assert_snapshot!(findings("{\n\"url\": \"https://c.example\",\n\"provider\": \"acme\",\n\"scopes\": 7,\n\"callbackPort\": 0,\n\"connectors\": {\n\"directoryUrl\": \"file:///etc/passwd\",\n\"proxyUrl\": \"https://{id}.example\",\n\"headers\": {\n\"Host\": \"x\",\n\"a b\": \"x\",\n\"X\": \"a\\nb\"},\n\"tokenHeader\": \"Mcp-Session-Id\"}}"), @"
    f.json:4 unknown provider `acme` | hint: write `standard` or leave it out, and describe the provider by the other keys
    f.json:8 `account.connectors.directoryUrl` must begin with `http://` or `https://`, not `file:` | hint: write e.g. `\"https://connect.example.com\"`
    f.json:9 `account.connectors.proxyUrl` must have `{id}` in its path or query | hint: write e.g. `\"https://proxy.example.com/{id}/mcp\"`
    f.json:5 `account.scopes` must be a string or an array of strings, not a number
    f.json:6 `account.callbackPort` must be a port number from 1 to 65535
    f.json:11 the header `Host` belongs to the protocol
    f.json:12 `a b` is not a valid header name
    f.json:13 `account.connectors.headers.X` has a line break, which would start another header
    f.json:14 the header `Mcp-Session-Id` belongs to the protocol
    not used
    ");
    assert_snapshot!(findings(marked!(r#"{"url": "https://u:"#, r#"@c.example", "connectors": []}"#)), @"
    f.json:2 `account.connectors` must be an object, not an array
    f.json:2 `account.url` must not hold a user name or password | hint: write e.g. `\"https://connect.example.com\"`
    not used
    ");
    assert_snapshot!(findings(r#"{"url": "https://${HOST}.example"}"#), @"
    f.json:2 `account.url` has a variable, which is not expanded here | hint: write e.g. `\"https://connect.example.com\"`
    not used
    ");
}

#[test]
fn an_id_stays_one_piece_of_the_proxys_address() {
    let proxy = ProxyUrl::parse("https://p.example/a/{id}/mcp").expect("a template");
    for id in ["", ".", "..", "...", &"x".repeat(257)] {
        assert_eq!(proxy.of(id), None, "{id}");
    }
    for id in [
        "../../steal",
        "a/b",
        "%2e%2e",
        "x?y#z",
        "\u{1b}[31m",
        "${SECRET}",
        "@evil.example",
        "\\evil",
    ] {
        let url = proxy.of(id).expect("an address");
        let path = url.path();
        assert_eq!(url.host_str(), Some("p.example"), "{id}");
        assert_eq!(path.split('/').count(), 4, "{id}");
        assert!(path.starts_with("/a/") && path.ends_with("/mcp"), "{path}");
        assert!(!path.contains('$') && url.query().is_none(), "{path}");
        assert!(proxy.leads_to(&url));
    }
}

#[test]
fn the_token_is_for_the_proxys_addresses_alone() {
    let proxy = ProxyUrl::parse("https://P.example:443/a/{id}/mcp").expect("a template");
    let leads = |url: &str| proxy.leads_to(&Url::parse(url).expect("a URL"));
    assert!(leads("https://p.example/a/notes/mcp"));
    for other in [
        "http://p.example/a/notes/mcp",
        "https://p.example.evil.example/a/notes/mcp",
        "https://p.example:444/a/notes/mcp",
        "https://p.example@evil.example/a/notes/mcp",
        "https://p.example/a//mcp",
        "https://p.example/a/notes/other/mcp",
        "https://p.example/a/notes/mcp?x",
        "https://p.example/a/x/../mcp",
        "https://p.example/a/../b/mcp",
    ] {
        assert!(!leads(other), "{other}");
    }
}

#[test]
fn a_directory_gives_names_and_ids_and_nothing_else() {
    let provider = standard();
    let answer = object(&json!({"connectors": [
        {
            "id": "drive", "name": "Google  Drive (beta)", "url": "https://drive.example/mcp",
            "headers": {"Authorization": marked!("Bearer ")}, "headersHelper": "/bin/sh",
            "command": "/bin/sh", "env": {"A": "b"}, "type": "stdio", "oauth": {"clientId": "x"},
        },
        {"id": "plain"},
    ]}));
    let directory = ConnectorDirectory::read(&provider, &answer).expect("a directory");
    let names: Vec<_> = directory
        .connectors
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(names, ["Google_Drive_beta", "plain"]);
    assert_eq!(
        Value::Object(directory.connectors[0].definition()),
        json!({
            "type": "connector",
            "url": "https://connect.example.com/tenant/proxy/drive/mcp",
            "standsFor": "https://drive.example/mcp",
        })
    );
    assert_eq!(directory.left_out, [""; 0]);
}

#[test]
fn a_hostile_directory_is_bounded_and_harmless() {
    let provider = standard();
    let mut items: Vec<Value> = vec![
        json!("text"),
        json!({"name": "no id"}),
        json!({"id": "..", "name": "up"}),
        json!({"id": "\u{1b}]0;x\u{7}", "name": "\u{1b}[2J\u{202e}evil\u{0}"}),
        json!({"id": "f", "name": "F", "url": "file:///etc/passwd"}),
        json!({"id": "v", "name": "V", "url": "https://x.example/?a=${SECRET}"}),
        json!({"id": "u", "name": "U", "url": marked!("https://user:", "@x.example/")}),
        json!({"id": "long", "name": "n".repeat(1_000_000), "url": "h".repeat(1_000_000)}),
        json!({"id": "nameless", "name": "(\u{2026})"}),
        json!({"id": "(", "name": ")"}),
    ];
    items.extend((0..10_000).map(|n| json!({"id": format!("c{n}"), "name": format!("c{n}")})));
    let answer = object(&json!({"connectors": items}));
    let directory = ConnectorDirectory::read(&provider, &answer).expect("a directory");
    assert!(directory.connectors.len() <= MOST);
    let first: Vec<_> = directory
        .connectors
        .iter()
        .take(6)
        .map(|c| (c.name.as_str(), c.stands_for.is_some()))
        .collect();
    let long = "n".repeat(48);
    assert_eq!(
        first,
        [
            ("2J_evil", false),
            ("F", false),
            ("V", false),
            ("U", false),
            (long.as_str(), false),
            ("nameless", false),
        ]
    );
    for connector in &directory.connectors {
        assert!(
            connector
                .url
                .as_str()
                .starts_with("https://connect.example.com/tenant/proxy/")
        );
        assert!(!connector.url.as_str().contains("${"));
    }
    assert_snapshot!(directory.left_out.join("\n"), @"
    connector 1: it has no id
    connector 2: it has no id
    connector 3: its id cannot be part of an address
    connector 10 ('('): it has no name
    9754 connectors: a directory may have 256, and this one has 10010
    ");
}

#[test]
fn an_answer_without_the_list_is_no_directory() {
    let provider = standard();
    for answer in [json!({}), json!({"connectors": {}}), json!({"error": "x"})] {
        assert_eq!(
            ConnectorDirectory::read(&provider, &object(&answer)),
            Err(DirectoryError::NoList("connectors".to_owned()))
        );
    }
}

#[test]
fn a_copy_is_read_back_for_the_same_provider_only() {
    let provider = standard();
    let answer = object(&json!({"connectors": [
        {"id": "a b", "name": "A B", "url": "https://a.example/"}, {"id": "c"}
    ]}));
    let mut directory = ConnectorDirectory::read(&provider, &answer).expect("a directory");
    directory.fetched_at = 77;
    let copy = directory.to_copy(&provider);
    assert_eq!(
        ConnectorDirectory::from_copy(&provider, &copy),
        Some(directory)
    );
    let (other, _) = read(r#"{"url": "https://other.example"}"#);
    let other = other.expect("a provider");
    assert_eq!(ConnectorDirectory::from_copy(&other, &copy), None);
    for text in ["", "[]", "{}", "{\"version\":1}", &copy.replace("1,", "2,")] {
        assert_eq!(
            ConnectorDirectory::from_copy(&provider, text),
            None,
            "{text}"
        );
    }
}
