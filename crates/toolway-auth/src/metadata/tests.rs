//! Documents as servers write them, and as attackers do.

use serde_json::json;

use super::*;

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn document() -> Value {
    json!({
        "issuer": "https://Idp.example.com:443/a/",
        "authorization_endpoint": "https://idp.example.com/authorize",
        "token_endpoint": "https://idp.example.com/token",
        "revocation_endpoint": "https://idp.example.com/revoke",
        "registration_endpoint": "",
        "code_challenge_methods_supported": ["plain", "S256"],
        "scopes_supported": ["a", 7, "b", null],
    })
}

#[test]
fn sec_18_the_issuer_is_kept_as_it_was_written() {
    let read = ServerMetadata::read(object(&document()), NetworkReach::Public).unwrap();
    assert_eq!(read.issuer, "https://Idp.example.com:443/a/");
}

#[test]
fn what_is_not_said_is_told_from_what_is_denied() {
    let read = ServerMetadata::read(object(&document()), NetworkReach::Public).unwrap();
    assert_eq!(read.scopes, ["a", "b"]);
    assert_eq!(read.grant_types, None);
    assert!(read.offers("refresh_token"));
    assert_eq!(read.registration_endpoint, None);
    assert_eq!(
        read.challenge_methods,
        Some(vec!["plain".into(), "S256".into()])
    );
    assert!(!read.promises_issuer && !read.takes_documents && !read.is_assumed);
    let mut denied = document();
    denied["grant_types_supported"] = json!(["authorization_code"]);
    denied["code_challenge_methods_supported"] = json!([]);
    let read = ServerMetadata::read(object(&denied), NetworkReach::Public).unwrap();
    assert!(!read.offers("refresh_token"));
    assert_eq!(read.challenge_methods, Some(Vec::new()));
}

#[test]
fn sec_16_an_endpoint_that_is_no_plain_https_address_ends_the_reading() {
    let huge = format!("https://idp.example.com/?x={}", "a".repeat(64 * 1024));
    for text in [
        "javascript:alert(1)",
        "data:text/html,<script>",
        "file:///etc/passwd",
        "vbscript:x",
        "ms-msdt:/id",
        "--load-extension=/tmp/x",
        "-flag",
        "/authorize",
        "http://login.example.com/authorize",
        "http://8.8.8.8/authorize",
        "http://169.254.169.254/",
        "https://idp.example.com/\u{1b}[2J",
        "https://idp.example.com/a\r\nb",
        "https://idp.example.com/a b",
        "https://idp.example.com/\u{202e}x",
        "https://user:word@idp.example.com/",
        "https://idp.example.com/#x",
        "https://",
        &huge,
    ] {
        for field in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "device_authorization_endpoint",
        ] {
            let mut document = document();
            document[field] = json!(text);
            match ServerMetadata::read(object(&document), NetworkReach::Loopback) {
                Err(MetadataError::Address { field: named, .. }) => assert_eq!(named, field),
                other => panic!("{field} {text}: {other:?}"),
            }
        }
        let mut document = document();
        document["revocation_endpoint"] = json!(text);
        let read = ServerMetadata::read(object(&document), NetworkReach::Loopback).unwrap();
        assert_eq!(read.revocation_endpoint, None, "{text}");
    }
}

#[test]
fn sec_16_what_a_shell_would_run_is_an_address_like_any_other() {
    let url = endpoint(
        "https://idp.example.com/?x=$(id)`id`;id|id&y=",
        NetworkReach::Public,
    )
    .unwrap();
    assert_eq!(url.host_str(), Some("idp.example.com"));
    assert!(may_be_opened(&url));
}

#[test]
fn sec_16_plain_http_stays_on_this_machine_or_in_this_network() {
    for text in [
        "http://127.0.0.1:1/a",
        "http://[::1]/a",
        "http://localhost/a",
    ] {
        let url = endpoint(text, NetworkReach::Public).unwrap();
        assert!(may_be_opened(&url), "{text}");
    }
    assert!(endpoint("http://10.0.0.1/a", NetworkReach::Public).is_err());
    let inside = endpoint("http://10.0.0.1/a", NetworkReach::Private).unwrap();
    assert!(!may_be_opened(&inside));
    let mut document = document();
    document["authorization_endpoint"] = json!("http://10.0.0.1/a");
    assert!(ServerMetadata::read(object(&document), NetworkReach::Private).is_err());
}

#[test]
fn endless_lists_are_cut_short() {
    let many: Vec<String> = (0..100_000).map(|number| format!("s{number}")).collect();
    let mut document = document();
    document["scopes_supported"] = json!(many);
    document["grant_types_supported"] = json!(["x".repeat(100_000), "refresh_token"]);
    let read = ServerMetadata::read(object(&document), NetworkReach::Public).unwrap();
    assert_eq!(read.scopes.len(), MAX_LIST);
    assert_eq!(read.grant_types, Some(vec!["refresh_token".to_owned()]));
}

#[test]
fn a_resource_must_say_which_it_is() {
    let read = |value: Value| ResourceMetadata::read(object(&value));
    assert_eq!(
        read(json!({"authorization_servers": ["https://a"]})),
        Err(MetadataError::Missing("resource"))
    );
    assert_eq!(
        read(json!({"resource": 7})),
        Err(MetadataError::Missing("resource"))
    );
    let read = read(json!({
        "resource": "https://mcp.example.com",
        "authorization_servers": ["https://a", "https://b/"],
        "dpop_bound_access_tokens_required": true,
    }))
    .unwrap();
    assert_eq!(read.authorization_servers, ["https://a", "https://b/"]);
    assert!(read.requires_dpop);
}
