//! What counts as a schema, and where references lead.

use serde_json::json;

use super::*;

fn pointers(schema: &serde_json::Value, reach: Reach) -> Vec<String> {
    let places = places(schema, reach);
    places.iter().map(SchemaPlace::pointer).collect()
}

#[test]
fn schemas_are_found_where_keywords_hold_them_and_nowhere_else() {
    let schema = json!({
        "properties": {"default": {"items": [true]}, "a/b": {"not": {}}},
        "dependencies": {"x": ["a/b"], "y": {}},
        "default": {"properties": {"no": {}}},
        "enum": [{"not": {}}],
        "x-own": {"not": {}, "default": {"not": {}}},
        "required": ["a/b"],
    });
    let known = [
        "",
        "/properties/default",
        "/properties/default/items/0",
        "/properties/a~1b",
        "/properties/a~1b/not",
        "/dependencies/y",
    ];
    assert_eq!(pointers(&schema, Reach::Schemas), known);
    let unknown = pointers(&schema, Reach::Unknown);
    assert_eq!(unknown[..known.len()], known);
    assert_eq!(unknown[known.len()..], ["/x-own", "/x-own/not"]);
    let everything = pointers(&schema, Reach::Everything);
    assert!(everything.contains(&"/enum/0/not".to_owned()));
    assert!(everything.contains(&"/x-own/default".to_owned()));
    for pointer in known {
        let steps: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
        assert!(is_schema_place(&schema, &steps), "{pointer}");
    }
    assert!(!is_schema_place(&schema, &["properties"]));
    assert!(!is_schema_place(&schema, &["default"]));
}

#[test]
fn every_schema_is_rewritten_with_its_place_but_not_inside_what_is_named() {
    let mut schema = json!({"anyOf": [{}, {"not": {"if": {}}}], "items": {}, "const": {}});
    let mut seen = Vec::new();
    rewrite(&mut schema, &["not"], &mut |members, place| {
        members.insert("title".to_owned(), json!(place));
        seen.push(place.to_owned());
    });
    assert_eq!(seen, ["", "/anyOf/0", "/anyOf/1", "/items"]);
    assert_eq!(schema["anyOf"][0], json!({"title": "/anyOf/0"}));
}

#[test]
fn a_reference_is_followed_by_its_pointer_within_the_document() {
    let root = json!({"$defs": {"a b/c": {"title": "found"}}});
    for (reference, found) in [
        ("#/$defs/a b~1c", true),
        ("#/%24defs/a%20b~1c", true),
        ("#", true),
        ("#/$defs/gone", false),
        ("#/%2", false),
        ("#anchor", false),
        ("https://example.com/#/$defs/a b~1c", false),
    ] {
        let schema = json!({ "$ref": reference });
        assert_eq!(target(&root, &schema).is_some(), found, "{reference}");
    }
}
