//! Header encoding and the validity rules of `x-mcp-header`.

use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;
use crate::view;

fn tool(schema: &Value) -> Tool {
    let result = json!({"tools": [{"name": "query", "inputSchema": schema}]});
    let page = view::tools(&to_raw_value(&result).expect("JSON")).expect("a page");
    page.items.into_iter().next().expect("one tool")
}

fn params_of(schema: &Value) -> Result<Vec<HeaderParam>, HeaderFault> {
    header_params(&to_raw_value(schema).expect("JSON"))
}

fn pairs(method: &str, params: &Value, tool: Option<&Tool>) -> Vec<(String, String)> {
    let params = to_raw_value(params).expect("JSON");
    modern(method, Some(&params), tool)
        .expect("headers")
        .into_iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("ASCII").to_owned()))
        .collect()
}

#[test]
fn every_request_carries_version_and_method_and_some_a_name() {
    let expected = |name: Option<&str>, method: &str| {
        let mut expected = vec![
            ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        expected.extend(name.map(|name| ("mcp-name".to_owned(), name.to_owned())));
        expected
    };
    for (method, params, name) in [
        ("tools/list", json!({}), None),
        (
            "tools/call",
            json!({"name": "get weather"}),
            Some("get weather"),
        ),
        (
            "resources/read",
            json!({"uri": "file:///ä"}),
            Some("=?base64?ZmlsZTovLy/DpA==?="),
        ),
        (
            "prompts/get",
            json!({"name": " x"}),
            Some("=?base64?IHg=?="),
        ),
        ("tasks/get", json!({"taskId": "t-1"}), Some("t-1")),
    ] {
        assert_eq!(pairs(method, &params, None), expected(name, method));
    }
}

#[test]
fn the_version_header_follows_the_body() {
    let params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}});
    assert_eq!(pairs("tools/list", &params, None)[0].1, "2027-01-01");
}

#[test]
fn annotated_arguments_are_mirrored() {
    let tool = tool(&json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "absent": {"type": "string", "x-mcp-header": "Absent"},
        "none": {"type": "string", "x-mcp-header": "None"},
        "options": {"type": "object", "properties": {
            "zone": {"type": "string", "x-mcp-header": "Zone"}}},
    }}));
    let arguments = json!({"region": "us\r\nEvil: 1", "count": 42, "dry": false, "none": null,
        "options": {"zone": "=?base64?AA==?="}});
    let headers = pairs(
        "tools/call",
        &json!({"name": "query", "arguments": arguments}),
        Some(&tool),
    );
    assert_eq!(
        headers[3..],
        [
            (
                "mcp-param-region".to_owned(),
                "=?base64?dXMNCkV2aWw6IDE=?=".to_owned()
            ),
            ("mcp-param-count".to_owned(), "42".to_owned()),
            ("mcp-param-dry".to_owned(), "false".to_owned()),
            (
                "mcp-param-zone".to_owned(),
                "=?base64?PT9iYXNlNjQ/QUE9PT89?=".to_owned()
            ),
        ]
    );
}

#[test]
fn sec_28_an_invalid_annotation_makes_the_tool_invalid() {
    let property = |property: Value| json!({"type": "object", "properties": {"p": property}});
    for schema in [
        property(json!({"type": "number", "x-mcp-header": "N"})),
        property(json!({"type": ["string", "null"], "x-mcp-header": "N"})),
        property(json!({"type": "string", "x-mcp-header": ""})),
        property(json!({"type": "string", "x-mcp-header": 7})),
        property(json!({"type": "string", "x-mcp-header": "a b"})),
        property(json!({"type": "string", "x-mcp-header": "a\r\nb"})),
        property(json!({"type": "string", "x-mcp-header": "ä"})),
        property(json!({"type": "string", "x-mcp-header": "../x"})),
        property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "I"}})),
        property(json!({"anyOf": [{"type": "string", "x-mcp-header": "I"}]})),
        json!({"type": "object", "x-mcp-header": "Root"}),
        json!({"$defs": {"d": {"type": "string", "x-mcp-header": "D"}}}),
        json!({"if": {"properties": {"p": {"type": "string", "x-mcp-header": "D"}}}}),
        json!({"properties": {"a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "sAME"}}}),
    ] {
        assert!(params_of(&schema).is_err(), "{schema}");
    }
}

#[test]
fn a_property_or_datum_that_only_shares_the_word_is_no_annotation() {
    let schema = json!({"properties": {
        "x-mcp-header": {"type": "number"},
        "p": {"type": "object", "default": {"x-mcp-header": "x"}, "enum": [{"x-mcp-header": 1}]},
        },
        "dependentRequired": {"x-mcp-header": ["p"]},
        "dependencies": {"x-mcp-header": ["p"]},
    });
    assert_eq!(params_of(&schema), Ok(Vec::new()));
}

#[test]
fn an_escaped_spelling_of_the_annotation_is_seen() {
    let raw = RawValue::from_string(
        r#"{"properties":{"p":{"type":"number","x-mcp-\u0068eader":"N"}}}"#.to_owned(),
    );
    assert!(header_params(&raw.expect("JSON")).is_err());
}

proptest! {
    #[test]
    fn any_text_survives_a_header(text in any::<String>()) {
        let header = encode(&text);
        prop_assert_eq!(decode(header.to_str().expect("ASCII")), Ok(text));
    }
}
