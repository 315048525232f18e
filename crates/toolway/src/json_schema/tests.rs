//! What a schema accepts, what a person is told, and what a hostile schema can cost.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use toolway_types::{ServerName, ToolKey};
use toolway_wire::view;

use super::*;
use crate::call::{CallError, CallFault, Oversize, ToolTarget};
use crate::catalog::{Catalog, CatalogTool, ServerCatalog, ServerOffer, ServerTool};
use crate::dispatch::resolve::{CallArguments, resolve};
use crate::dispatch::validate::validate;

mod patterns;
mod repair;

/// What comes out of the check: the arguments, and why they could not be checked.
fn check(
    schema: &Value,
    arguments: &Value,
) -> Result<(Map<String, Value>, Option<String>), CallError> {
    let list =
        serde_json::value::to_raw_value(&json!({"tools": [{"name": "t", "inputSchema": schema}]}));
    let server = ServerName::new("s").unwrap();
    let tools = view::tools(&list.unwrap()).unwrap().items;
    let catalog = Catalog::build(
        1,
        [ServerOffer {
            tools,
            ..ServerOffer::new(server.clone())
        }],
    );
    assert_eq!(catalog.warnings().next(), None);
    let target = ToolTarget::Key(ToolKey::new(server, "t"));
    let mut arguments = CallArguments::from(arguments.as_object().unwrap().clone());
    let call = validate(resolve(&catalog, &target, &mut arguments).unwrap())?;
    Ok((call.arguments().clone(), call.warning().map(str::to_owned)))
}

fn problems(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    match check(schema, arguments) {
        Err(CallError::Failed(_, CallFault::Invalid(problems))) => problems
            .into_iter()
            .map(|problem| (problem.path, problem.message))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn warning(schema: &Value, arguments: &Value) -> Option<String> {
    check(schema, arguments).unwrap().1
}

#[test]
fn arguments_that_fit_pass_unchanged() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let (arguments, warning) = check(&schema, &json!({"z": [1], "a": 1})).unwrap();
    assert_eq!(Value::Object(arguments), json!({"z": [1], "a": 1}));
    assert_eq!(warning, None);
}

#[test]
fn every_problem_names_its_place_and_what_was_expected() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["fast", "slow"]},
            "items": {"type": "array", "items": {"type": "object", "required": ["id"]}},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let wrong = json!({"limit": 0, "mode": "secret-value", "items": [{"id": 1}, {}], "extra": 1});
    let mut problems = problems(&schema, &wrong);
    problems.sort();
    let expected = [
        ("", "`extra` does not belong here"),
        ("", "`path` is missing"),
        ("/items/1", "`id` is missing"),
        ("/limit", "value is less than the minimum of 1"),
        ("/mode", "value is not one of \"fast\" or \"slow\""),
    ]
    .map(|(path, message)| (path.to_owned(), message.to_owned()));
    assert_eq!(problems, expected);
    let message = check(&schema, &json!({})).unwrap_err().to_string();
    assert_eq!(
        message,
        "the arguments do not fit `t` of server `s`: `/`: `path` is missing"
    );
}

#[test]
fn many_problems_are_told_in_part() {
    let schema = json!({"additionalProperties": {"type": "string"}});
    let arguments: Map<String, Value> = (0..500)
        .map(|index| (format!("k{index}"), json!(1)))
        .collect();
    assert_eq!(
        problems(&schema, &Value::Object(arguments)).len(),
        MAX_PROBLEMS
    );
}

#[test]
fn the_dialect_of_the_schema_decides() {
    // A list under `items` is a tuple up to 2019-09 and an error since.
    let tuple = |dialect: &str| {
        json!({"$schema": dialect, "properties":
            {"pair": {"items": [{"type": "string"}, {"type": "integer"}]}}})
    };
    let wrong = json!({"pair": ["a", "b"]});
    for old in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-04/schema#",
    ] {
        assert_eq!(problems(&tuple(old), &wrong)[0].0, "/pair/1");
    }
    let modern = "https://json-schema.org/draft/2020-12/schema";
    let told = warning(&tuple(modern), &wrong).unwrap();
    assert!(
        told.contains("`/properties/pair/items` was not checked"),
        "{told}"
    );
}

#[test]
fn a_schema_that_cannot_be_used_warns_and_does_not_stop_the_call() {
    for schema in [
        json!({"properties": {"a": {"$id": "http://h.example/x", "$ref": "y"}}}),
        json!({"$id": ":::", "required": ["path"]}),
        json!({"x-part": {"type": "string"}, "properties": {"a": {"$ref": "#/x-part"}, "b": {"type": "any"}}}),
    ] {
        let warning = warning(&schema, &json!({"a": "x"}));
        assert!(
            warning.unwrap().contains("were not checked: its schema "),
            "{schema}"
        );
    }
}

#[test]
fn sec_36_a_reference_to_elsewhere_is_never_followed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"type": "string"}"#).unwrap();
    for reference in [
        format!("http://127.0.0.1:{port}/schema.json"),
        format!("file://{}", file.path().display()),
    ] {
        let referring = json!({"properties": {"a": {"$ref": reference}}});
        let based = json!({"$id": reference, "properties": {"a": {"$ref": "other.json"}}});
        let spoken = json!({"$schema": reference});
        for schema in [referring, based, spoken] {
            assert!(warning(&schema, &json!({"a": 1})).is_some(), "{schema}");
        }
    }
    let error = listener.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

/// A schema of `count` parts, each of which names the next twice.
fn doubling(count: usize, name_next: impl Fn(&str) -> Value) -> Value {
    let mut parts = Map::new();
    for index in 0..count {
        parts.insert(
            format!("d{index}"),
            name_next(&format!("#/$defs/d{}", index + 1)),
        );
    }
    parts.insert(format!("d{count}"), json!({"type": "object"}));
    json!({"$defs": parts, "$ref": "#/$defs/d0"})
}

#[test]
fn sec_30_a_schema_that_doubles_its_work_at_every_step_is_not_run() {
    let begun = Instant::now();
    let twice = |next: &str| json!({"allOf": [{"$ref": next}, {"$ref": next}]});
    // As deep as the recursion may go, and far deeper.
    for count in [12, 15, 16, 300] {
        let warning = warning(&doubling(count, twice), &json!({}));
        assert_eq!(warning.is_some(), count > 15, "{count}: {warning:?}");
    }
    let eightfold = |next: &str| json!({"anyOf": vec![json!({"$ref": next}); 8]});
    assert!(
        warning(&doubling(14, eightfold), &json!({}))
            .unwrap()
            .contains("too much work")
    );
    // Recursion into the members: harmless for flat arguments, without end for deep ones.
    let deepening = json!({
        "allOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}],
    });
    assert_eq!(warning(&deepening, &json!({"a": {"b": {}}})), None);
    let mut deep = json!({});
    for _ in 0..40 {
        deep = json!({ "a": deep });
    }
    assert!(
        warning(&deepening, &deep)
            .unwrap()
            .contains("too much work")
    );
    // References that widen instead: the schema is compiled, so compiling must stay cheap too.
    let wide = |next: &str| json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
    assert_eq!(
        warning(&doubling(300, wide), &json!({"a": {"b": {}}})),
        None
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn sec_30_references_that_go_in_circles_do_not() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"$anchor": "me", "anyOf": [{"$ref": "#me"}]}),
        json!({"$dynamicAnchor": "me", "not": {"$dynamicRef": "#me"}}),
    ] {
        assert!(
            warning(&schema, &json!({}))
                .unwrap()
                .contains("refers to itself"),
            "{schema}"
        );
    }
    // A tree refers to itself and gets somewhere.
    let tree =
        json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
    let mut deep = json!({});
    for _ in 0..MAX_ARGUMENT_DEPTH - 2 {
        deep = json!({"left": deep, "right": {}});
    }
    assert_eq!(warning(&tree, &deep), None);
    assert_eq!(
        problems(&tree, &json!({"left": {"right": 1}}))[0].0,
        "/left/right"
    );
}

#[test]
fn sec_30_patterns_take_linear_time() {
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    let begun = Instant::now();
    let text = format!("{}!", "a".repeat(100_000));
    assert_eq!(problems(&schema, &json!({"a": text}))[0].0, "/a");
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn arguments_past_the_bounds_are_refused() {
    let text = |length: usize| json!({"a": "x".repeat(length)});
    assert!(check(&json!({}), &text(MAX_ARGUMENT_BYTES - 64)).is_ok());
    assert!(matches!(
        check(&json!({}), &text(MAX_ARGUMENT_BYTES + 1)),
        Err(CallError::Failed(
            _,
            CallFault::TooLarge {
                what: Oversize::Arguments,
                limit: MAX_ARGUMENT_BYTES,
                ..
            }
        ))
    ));
    let nested = |levels: usize| {
        let mut value = json!(1);
        for _ in 0..levels {
            value = json!([value]);
        }
        json!({ "a": value })
    };
    assert!(check(&json!({}), &nested(MAX_ARGUMENT_DEPTH - 2)).is_ok());
    for levels in [MAX_ARGUMENT_DEPTH - 1, MAX_ARGUMENT_DEPTH * 2] {
        assert_eq!(
            problems(&json!({}), &nested(levels)),
            [(String::new(), "nested deeper than 60 levels".to_owned())]
        );
    }
}

fn only(catalog: &Catalog) -> &CatalogTool {
    catalog.tools().next().unwrap()
}

#[test]
fn a_validator_is_compiled_once_for_each_list() {
    let offer = || {
        let schema = json!({"type": "object", "required": ["a"]});
        let list = json!({"tools": [{"name": "t", "inputSchema": schema, "outputSchema": schema}]});
        let list = serde_json::value::to_raw_value(&list).unwrap();
        ServerOffer {
            tools: view::tools(&list).unwrap().items,
            ..ServerOffer::new(ServerName::new("s").unwrap())
        }
    };
    let shared: Arc<ServerCatalog> = offer().into();
    let first = Catalog::build(1, [Arc::clone(&shared)]);
    let next = Catalog::after(&first, [Arc::clone(&shared)]);
    let other = Catalog::after(&first, [offer()]);
    let (old, kept, new) = (only(&first), only(&next), only(&other));
    for checker in [
        ServerTool::checker,
        (|tool| tool.output_checker().unwrap()) as fn(&ServerTool) -> &SchemaChecker,
    ] {
        assert!(std::ptr::eq(checker(old), checker(kept)), "kept");
        assert!(
            !std::ptr::eq(checker(old), checker(new)),
            "a new list has its own"
        );
    }
    assert!(!std::ptr::eq(old.checker(), old.output_checker().unwrap()));
}
