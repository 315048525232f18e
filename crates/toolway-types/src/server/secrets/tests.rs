//! Values in the places of their words: whole, escaped in addresses, and never inside each other.

use url::Url;

use super::*;
use crate::{ProtocolMode, ReferenceKind, RemoteKind, SecretReference, ServerName};

fn reference(target: &str, place: &str) -> SecretReference {
    SecretReference {
        kind: ReferenceKind::Keychain,
        target: target.to_owned(),
        place: place.to_owned(),
        file: None,
    }
}

fn filled(url: &str, value: &str) -> Url {
    let reference = reference("a", "url");
    let spec = ServerSpec {
        name: ServerName::new("a").unwrap(),
        transport: TransportSpec::Remote(
            RemoteKind::Http,
            RemoteSpec {
                rules: std::sync::Arc::default(),
                url: url
                    .replace('@', &reference.placeholder())
                    .replace('§', "@")
                    .parse()
                    .unwrap(),
                headers: Vec::new(),
                headers_helper: None,
                oauth: None,
            },
        ),
        timeout: None,
        request_timeout: None,
        protocol: ProtocolMode::Auto,
        share: crate::ServerShare::User,
        roots: Vec::new(),
        references: vec![reference],
    };
    match spec.with_secrets(&[Secret::new(value)]).transport {
        TransportSpec::Remote(RemoteKind::Http, remote) => remote.url,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_in_an_address_is_a_part_of_it_and_leads_nowhere() {
    for (url, value, expected) in [
        (
            "https://a.example/@/mcp",
            "k-1_~",
            "https://a.example/k-1_~/mcp",
        ),
        (
            "https://a.example/bot@/mcp",
            "1:AB",
            "https://a.example/bot1:AB/mcp",
        ),
        (
            "https://a.example/@/mcp",
            "a/../b",
            "https://a.example/a%2F..%2Fb/mcp",
        ),
        (
            "https://a.example/@",
            "?x#y\\z %",
            "https://a.example/%3Fx%23y%5Cz%20%25",
        ),
        (
            "https://a.example/x%20y?k=@&l=a+b",
            "a&l=b+c",
            "https://a.example/x%20y?k=a%26l%3Db%2Bc&l=a+b",
        ),
        (
            "https://u:@§a.example/",
            "p§b.example/",
            "https://u:p%C2%A7b.example%2F@a.example/",
        ),
    ] {
        assert_eq!(filled(url, value).as_str(), expected);
    }
}

#[test]
fn every_spelling_of_a_value_that_is_sent_is_known() {
    let value = Secret::new("a/b:c");
    let spellings = |place| -> Vec<String> {
        let spellings = reference("a", place).spellings(&value);
        spellings.iter().map(|it| it.expose().to_owned()).collect()
    };
    assert_eq!(spellings("url"), ["a/b:c", "a%2Fb:c", "a%2Fb%3Ac"]);
    assert_eq!(spellings("env.K"), ["a/b:c"]);
}

#[test]
fn one_value_is_not_looked_for_inside_another() {
    let references = [reference("a", "env.A"), reference("b", "env.B")];
    let values = [
        Secret::new(references[1].placeholder()),
        Secret::new("CANARY"),
    ];
    let text = format!("{} toolwaysecret", references[0].placeholder());
    let filled = ReferenceValues::new(&references, &values).text(&text);
    assert_eq!(
        filled,
        format!("{} toolwaysecret", references[1].placeholder())
    );
}
