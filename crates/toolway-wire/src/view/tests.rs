//! Views: one bad item never costs the list, and unknown things keep their bytes.

use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON")
}

#[test]
fn sec_21_a_tool_is_what_its_exact_members_say() {
    let page = tools(&raw(
        &json!({"Tools": [{"name": "other", "inputSchema": {}}], "tools": [
            {"name": "safe", "Name": "danger", "inputSchema": {"type": "object"}, "InputSchema": {},
             "annotations": {"readOnlyHint": false, "ReadOnlyHint": true, "READONLYHINT": true},
             "Annotations": {"readOnlyHint": true}},
            {"Name": "danger", "inputSchema": {}},
            {"name": "no_schema", "inputschema": {}},
        ]}),
    ))
    .expect("a page");
    let tools: Vec<(&str, &str, Option<bool>)> = page
        .items
        .iter()
        .map(|tool| {
            let schema = tool.input_schema.get();
            (tool.name.as_str(), schema, tool.annotations.read_only)
        })
        .collect();
    assert_eq!(tools, [("safe", r#"{"type":"object"}"#, Some(false))]);
    assert_eq!(page.faults.len(), 2);
}

#[test]
fn one_malformed_tool_is_a_fault_and_the_others_stay() {
    let page = tools(&raw(&json!({"tools": [
        {"name": "good", "inputSchema": {"type": "object"}, "vendor": [1], "annotations": {"readOnlyHint": true, "destructiveHint": "false"}},
        {"name": "no_schema"},
        {"inputSchema": {}},
        7,
        {"name": "", "inputSchema": {}},
        {"name": "schema_is_text", "inputSchema": "{}"},
        {"name": "last", "inputSchema": {}, "title": 5, "cacheScope": "shared"},
    ], "nextCursor": "", "ttlMs": 5000.0, "cacheScope": "shared"})))
    .expect("a page");
    let names: Vec<&str> = page.items.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good", "last"]);
    let faults: Vec<(usize, Option<&str>)> = page
        .faults
        .iter()
        .map(|fault| (fault.index, fault.name.as_deref()))
        .collect();
    assert_eq!(
        faults,
        [
            (1, Some("no_schema")),
            (2, None),
            (3, None),
            (4, Some("")),
            (5, Some("schema_is_text"))
        ]
    );
    assert_eq!(page.faults[0].reason, "`inputSchema` is missing");
    assert_eq!(page.next_cursor.as_deref(), Some(""));
    assert_eq!(
        (page.ttl_ms, page.cache_scope),
        (Some(5000), Some(CacheScope::Private))
    );
    let good = &page.items[0];
    assert_eq!(good.annotations.read_only, Some(true));
    assert_eq!(
        good.annotations.destructive, None,
        "a string is not a promise"
    );
    assert!(good.raw.get().contains("vendor"));
}

#[test]
fn sec_22_a_tool_with_a_doubled_name_is_a_fault() {
    let text = r#"{"tools":[{"name":"safe","name":"danger","inputSchema":{}},{"name":"b","inputSchema":{}}]}"#;
    let page = tools(&RawValue::from_string(text.to_owned()).expect("JSON")).expect("a page");
    assert_eq!(page.items.len(), 1);
    assert!(page.faults[0].reason.contains("`name` stands twice"));
}

#[test]
fn a_result_that_is_no_list_is_an_error() {
    assert_eq!(
        tools(&raw(&json!({}))).expect_err("no list"),
        ViewError::Missing("tools")
    );
    assert_eq!(
        tools(&raw(&json!({"tools": {}}))).expect_err("no list"),
        ViewError::Missing("tools")
    );
    assert!(matches!(
        tools(&raw(&json!([]))),
        Err(ViewError::NotAnObject(_))
    ));
}

#[test]
fn resources_templates_and_prompts_are_read() {
    let page = resources(&raw(
        &json!({"resources": [{"uri": "a:b", "size": 3}, {"name": "x"}]}),
    ));
    let page = page.expect("a page");
    assert_eq!(
        (page.items[0].name.as_str(), page.items[0].size),
        ("a:b", Some(3))
    );
    assert_eq!(page.faults[0].reason, "`uri` is missing");
    let page = resource_templates(&raw(
        &json!({"resourceTemplates": [{"uriTemplate": "a:{b}"}]}),
    ));
    assert_eq!(page.expect("a page").items[0].uri_template, "a:{b}");
    let page = prompts(&raw(&json!({"prompts": [
        {"name": "p", "arguments": [{"name": "a", "required": true}, {"name": "b"}]},
        {"name": "q", "arguments": [{"required": true}]},
    ]})))
    .expect("a page");
    assert_eq!(page.items.len(), 1);
    assert!(page.items[0].arguments[0].required && !page.items[0].arguments[1].required);
    assert_eq!(page.faults[0].name.as_deref(), Some("q"));
}

#[test]
fn what_reading_and_rendering_give_is_read() {
    let read = read_result(&raw(&json!({"contents": [
        {"uri": "a", "text": "t"}, {"uri": "b", "blob": "AA=="}, {"uri": "c"}]})))
    .expect("contents");
    assert_eq!(read.contents[1].body, ResourceBody::Blob("AA==".to_owned()));
    assert_eq!(read.faults[0].name.as_deref(), Some("c"));
    let rendered = prompt_result(&raw(&json!({"messages": [
        {"role": "user", "content": {"type": "text", "text": "hi"}}]})))
    .expect("messages");
    assert!(matches!(&rendered.messages[0].content, ContentBlock::Text { text } if text == "hi"));
}

#[test]
fn content_of_every_kind_is_read_and_the_rest_kept() {
    let result = tool_result(&raw(&json!({"content": [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "u", "text": "x"}},
        {"type": "resource_link", "uri": "u"},
        {"type": "hologram", "depth": 3},
        {"type": "text"},
        "bare",
    ], "structuredContent": null, "isError": true})))
    .expect("a result");
    assert!(result.is_error);
    assert_eq!(result.structured.expect("a null").get(), "null");
    assert_eq!(result.result_type, ResultType::Complete);
    assert!(
        matches!(&result.content[3], ContentBlock::Resource { body: ResourceBody::Text(text), .. } if text == "x")
    );
    assert!(matches!(&result.content[4], ContentBlock::ResourceLink { name, .. } if name == "u"));
    let kinds: Vec<(&str, &str)> = result.content[5..]
        .iter()
        .map(|content| match content {
            ContentBlock::Unknown { kind, raw } => (kind.as_str(), raw.get()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("hologram", r#"{"type":"hologram","depth":3}"#),
            ("text", r#"{"type":"text"}"#),
            ("", "\"bare\"")
        ]
    );
}

#[test]
fn an_absent_result_type_is_complete_and_an_unknown_one_is_told() {
    for (value, expected) in [
        (json!({}), ResultType::Complete),
        (json!({"resultType": "complete"}), ResultType::Complete),
        (
            json!({"resultType": "input_required"}),
            ResultType::InputRequired,
        ),
        (json!({"resultType": "task"}), ResultType::Task),
        (
            json!({"resultType": "x"}),
            ResultType::Unknown("x".to_owned()),
        ),
        (
            json!({"resultType": null}),
            ResultType::Unknown("null".to_owned()),
        ),
    ] {
        assert_eq!(
            tool_result(&raw(&value)).expect("a result").result_type,
            expected
        );
        assert_eq!(ResultType::peek(&raw(&value)), Ok(expected));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(
                prop::sample::select(vec!["name", "inputSchema", "type", "text", "annotations"])
                    .prop_map(str::to_owned),
                inner,
                0..4
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn sec_51_a_page_takes_from_the_budget_what_it_holds_and_stops_where_it_ends() {
    let item = json!({"name": "t", "inputSchema": {}});
    let bytes = item.to_string().len();
    let page = |count: usize| raw(&json!({"tools": vec![item.clone(); count], "nextCursor": "n"}));
    let mut budget = Budget::new(3 * bytes, 5);
    let read = TOOLS.page(&page(2), &mut budget).expect("a page");
    assert_eq!((read.items.len(), read.spent), (2, None));
    assert_eq!(budget, Budget::new(bytes, 3));
    let read = TOOLS.page(&page(2), &mut budget).expect("a page");
    assert_eq!(
        (read.items.len(), read.spent),
        (1, Some(BudgetExceeded::Bytes))
    );
    assert_eq!(read.next_cursor.as_deref(), Some("n"));
    let read = TOOLS.page(&raw(&json!({"tools": [1, 2, 3]})), &mut Budget::new(2, 9));
    let read = read.expect("a page");
    assert_eq!(
        (read.faults.len(), read.spent),
        (2, Some(BudgetExceeded::Bytes))
    );
}

#[test]
fn sec_30_results_of_countless_parts_are_refused() {
    let ones = |count: usize| vec![1; count];
    for count in [MAX_PARTS, MAX_PARTS + 1] {
        let too_many = count > MAX_PARTS;
        let called = tool_result(&raw(&json!({"content": ones(count)})));
        assert_eq!(
            called.err(),
            too_many.then_some(ViewError::TooMany("content"))
        );
        let read = read_result(&raw(&json!({"contents": ones(count)})));
        assert_eq!(
            read.err(),
            too_many.then_some(ViewError::TooMany("contents"))
        );
        let rendered = prompt_result(&raw(&json!({"messages": ones(count)})));
        assert_eq!(
            rendered.err(),
            too_many.then_some(ViewError::TooMany("messages"))
        );
        let batch = raw(&json!(ones(count)));
        let batch = crate::envelope::split_batch(batch.get().as_bytes());
        assert_eq!(batch.map(|parts| parts.len()), (!too_many).then_some(count));
    }
}

proptest! {
    #[test]
    fn every_item_is_either_read_or_a_fault(items in prop::collection::vec(any_json(), 0..6)) {
        let count = items.len();
        let page = tools(&raw(&json!({"tools": items.clone()}))).expect("a list");
        prop_assert_eq!(page.items.len() + page.faults.len(), count);
        let result = tool_result(&raw(&json!({"content": items}))).expect("a list");
        prop_assert_eq!(result.content.len(), count);
    }
}
