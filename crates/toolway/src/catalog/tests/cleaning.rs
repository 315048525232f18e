//! What servers write is cleaned and bounded in every field, and nothing goes without a word.

use super::*;
use crate::catalog::sanitize::{MAX_DESCRIPTION, MAX_NAME, MAX_SCHEMA_BYTES, SchemaSide};
use crate::catalog::tools::MAX_TOOLS;
use crate::export::{ExportTarget, export};
use crate::json_schema::MAX_SCHEMA_NODES;

/// Every class that hides or steers, by its edges and a few from inside: C0, whole terminal
/// sequences, C1, soft hyphen, joiners, bidi marks, embeddings and isolates, fillers, variation
/// selectors, separators, invisible operators, byte order mark, annotation marks, shorthand and
/// musical controls, tags.
const HIDDEN: [&str; 57] = [
    "\u{0}",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{c}",
    "\u{1f}",
    "\u{7f}",
    "\u{1b}[31m",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://x\u{1b}\\",
    "\u{1b}P1$r\u{1b}\\",
    "\u{80}",
    "\u{85}",
    "\u{9b}1m",
    "\u{9f}",
    "\u{ad}",
    "\u{34f}",
    "\u{61c}",
    "\u{115f}",
    "\u{1160}",
    "\u{17b4}",
    "\u{17b5}",
    "\u{180b}",
    "\u{180e}",
    "\u{180f}",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{200e}",
    "\u{200f}",
    "\u{2028}",
    "\u{2029}",
    "\u{202a}",
    "\u{202e}",
    "\u{2060}",
    "\u{2064}",
    "\u{2066}",
    "\u{2069}",
    "\u{206f}",
    "\u{3164}",
    "\u{fe00}",
    "\u{fe0f}",
    "\u{fe0e}\u{fe0f}",
    "\u{feff}",
    "\u{ffa0}",
    "\u{fff0}",
    "\u{fff9}",
    "\u{fffb}",
    "\u{1bca0}",
    "\u{1bca3}",
    "\u{1d173}",
    "\u{1d17a}",
    "\u{e0000}",
    "\u{e0041}",
    "\u{e007f}",
    "\u{e0100}",
    "\u{e01ef}",
];

fn has_hidden(text: &str) -> bool {
    text.chars()
        .any(|c| !matches!(c, '\n' | '\t') && toolway_types::text::is_hidden(c))
}

/// Every text of a catalogue that anyone sees.
fn texts(catalog: &Catalog) -> Vec<String> {
    let mut texts = Vec::new();
    for tool in catalog.tools() {
        let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
        texts.extend([
            tool.name.clone(),
            tool.shown.clone(),
            tool.description.clone(),
        ]);
        texts.extend(tool.title.clone());
        texts.extend(tool.search_hint.clone());
        collect(&schema, &mut texts);
        for raw in [&tool.output_schema, &tool.annotations]
            .into_iter()
            .flatten()
        {
            collect(&serde_json::from_str(raw.get()).unwrap(), &mut texts);
        }
    }
    for resource in catalog.resources() {
        texts.extend([
            resource.uri.clone(),
            resource.name.clone(),
            resource.description.clone(),
        ]);
        texts.extend(
            [resource.title.clone(), resource.mime_type.clone()]
                .into_iter()
                .flatten(),
        );
    }
    for template in catalog.templates() {
        texts.extend([template.uri_template.clone(), template.name.clone()]);
        texts.push(template.description.clone());
        texts.extend(
            [template.title.clone(), template.mime_type.clone()]
                .into_iter()
                .flatten(),
        );
    }
    for prompt in catalog.prompts() {
        texts.extend([
            prompt.name.clone(),
            prompt.shown.clone(),
            prompt.description.clone(),
        ]);
        texts.extend(prompt.title.clone());
        for argument in &prompt.arguments {
            texts.extend([argument.name.clone(), argument.description.clone()]);
            texts.extend(argument.title.clone());
        }
    }
    for tool in catalog.left_out() {
        texts.extend([
            tool.shown.clone(),
            tool.description.clone(),
            tool.reason.clone(),
        ]);
    }
    texts.push(catalog.instructions.to_string());
    for target in ExportTarget::ALL {
        let export = export(target, catalog.tools());
        collect(&export.tools, &mut texts);
        texts.extend(export.notes.into_iter().map(|note| note.argument));
    }
    texts.extend(catalog.warnings().map(|warning| warning.message.clone()));
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            texts.push(key.clone());
            collect(member, texts);
        }),
        _ => {}
    }
}

/// A server that puts the text into every field it writes, besides one honest tool.
fn poisoned(text: &str) -> Arc<Catalog> {
    let word = format!("be{text}fore");
    let lists = raw(&json!({
        "tools": [
            named("honest"),
            {
                "name": word, "title": word, "description": word,
                "inputSchema": {"type": "object", "description": word, "properties": {
                    "choice": {"title": word, "enum": [word, "plain"], "default": {"deep": [word]}}}},
                "outputSchema": {"type": "object", "description": word},
                "annotations": {"title": word, "vendor": [word]},
                "_meta": {"anthropic/searchHint": word},
                "icons": [{"src": format!("https://{word}/i.png"), "mimeType": word}],
            },
            {"name": format!("out{text}side"), "description": word, "inputSchema": {}},
            {"name": "bad_key", "inputSchema": {"properties": {word.clone(): {}}}},
            {"name": "bad_output", "inputSchema": {}, "outputSchema": {"properties": {word.clone(): {}}}},
        ],
        "resources": [
            {"uri": "file:///ok", "name": word, "title": word, "description": word, "mimeType": word},
            {"uri": format!("file:///{word}"), "name": "bad"},
        ],
        "resourceTemplates": [
            {"uriTemplate": "x:{a}", "name": word, "title": word, "description": word, "mimeType": word},
            {"uriTemplate": format!("x:{word}"), "name": "bad"},
        ],
        "prompts": [
            {"name": word, "title": word, "description": word,
             "arguments": [{"name": "a", "title": word, "description": word}]},
            {"name": "bad", "arguments": [{"name": word}]},
        ],
    }));
    let offer = ServerOffer {
        tools: view::tools(&lists).unwrap().items,
        resources: view::resources(&lists).unwrap().items,
        resource_templates: view::resource_templates(&lists).unwrap().items,
        prompts: view::prompts(&lists).unwrap().items,
        instructions: Some(word),
        ..ServerOffer::new(server("s"))
    };
    let entry = r#"{"command": "x", "excludeTools": ["outside"]}"#;
    catalog([curated(entry, offer)])
}

#[test]
fn sec_35_no_hidden_character_survives_in_any_field() {
    for hidden in HIDDEN {
        let catalog = poisoned(hidden);
        for text in texts(&catalog) {
            assert!(!has_hidden(&text), "{hidden:?} survived in {text:?}");
        }
        let names: Vec<&str> = catalog.tools().map(|tool| tool.shown.as_str()).collect();
        assert_eq!(names, ["bad_output", "before", "honest"], "{hidden:?}");
        // The identity is untouched, or the call would reach another tool.
        assert_eq!(
            catalog.tools().nth(1).unwrap().key.tool,
            format!("be{hidden}fore")
        );
        assert_eq!(catalog.tools().nth(1).unwrap().description, "before");
        assert!(catalog.tools().next().unwrap().output_schema.is_none());
        let kept = [
            catalog.resources().count(),
            catalog.templates().count(),
            catalog.prompts().count(),
        ];
        assert_eq!(kept, [1, 1, 1]);
        let left: Vec<&str> = catalog.left_out().map(|it| it.shown.as_str()).collect();
        assert!(left.contains(&"outside"), "{hidden:?}: {left:?}");
        assert_eq!(catalog.instructions.to_string(), "## s\n\n> before");
        // Whatever was left out is told: a tool, a choice, an output schema, a resource, a
        // template, a prompt.
        assert_eq!(catalog.warnings().count(), 6, "{:?}", warnings(&catalog));
    }
}

#[test]
fn sec_35_a_hidden_name_is_another_tool_than_the_plain_one() {
    let catalog = catalog([offer("s", &[named("delete"), named("delete\u{200b}")])]);
    assert_eq!(catalog.tools().count(), 2);
    assert_ne!(
        catalog.tools().next().unwrap().name,
        catalog.tools().nth(1).unwrap().name
    );
    let plain = catalog
        .find(&ToolTarget::Exposed("mcp__s__delete".into()))
        .unwrap();
    assert_eq!(plain.key.tool, "delete");
}

#[test]
fn a_clean_schema_stays_the_bytes_the_server_sent() {
    let text = r#"{"tools":[{"name":"t","inputSchema":{ "type" :"object", "x-vendor": 1.0, "big": 123456789012345678901234567890 }}]}"#;
    let list = RawValue::from_string(text.to_owned()).unwrap();
    let tools = view::tools(&list).unwrap().items;
    let catalog = catalog([ServerOffer {
        tools,
        ..ServerOffer::new(server("s"))
    }]);
    assert_eq!(
        catalog.tools().next().unwrap().input_schema.get(),
        r#"{ "type" :"object", "x-vendor": 1.0, "big": 123456789012345678901234567890 }"#
    );
}

#[test]
fn a_description_is_cut_at_the_limit_and_marked() {
    let described = |length: usize| {
        let tool = json!({"name": "t", "inputSchema": {}, "description": "é".repeat(length)});
        let catalog = catalog([offer("s", &[tool])]);
        catalog.tools().next().unwrap().description.clone()
    };
    assert_eq!(described(MAX_DESCRIPTION), "é".repeat(MAX_DESCRIPTION));
    for length in [MAX_DESCRIPTION + 1, MAX_DESCRIPTION * 1000] {
        let cut = described(length);
        assert_eq!(cut.chars().count(), MAX_DESCRIPTION);
        assert!(cut.ends_with("… [truncated]"));
    }
}

#[test]
fn sec_32_tools_past_the_cap_are_left_out_and_told() {
    let many = |count: usize| {
        let items: Vec<Value> = (0..count)
            .map(|index| named(&format!("tool{index:06}")))
            .collect();
        catalog([offer("s", &items), offer("other", &[named("t")])])
    };
    let full = many(MAX_TOOLS);
    assert_eq!(
        (full.tools().count(), full.warnings().count()),
        (MAX_TOOLS + 1, 0)
    );
    for count in [MAX_TOOLS + 1, MAX_TOOLS * 19] {
        let over = many(count);
        assert_eq!(
            (over.tools().count(), over.warnings().count()),
            (MAX_TOOLS + 1, 1)
        );
        assert!(
            over.warnings()
                .next()
                .unwrap()
                .message
                .contains(&count.to_string())
        );
    }
}

#[test]
fn sec_35_a_key_that_is_there_twice_hides_nothing_in_a_schema() {
    for hidden in ["\u{202e}", "\\u202e", "\\u001b[1m"] {
        let text = format!(r#"{{"title": "a{hidden}", "title": "b: c", "x": [{{}}]}}"#);
        let raw = RawValue::from_string(text).unwrap();
        let cleaned = sanitize::schema(&raw, SchemaSide::Input).unwrap();
        assert_eq!(cleaned.json.get(), r#"{"title":"b: c","x":[{}]}"#);
    }
}

#[test]
fn sec_32_a_schema_past_the_caps_takes_only_its_own_tool() {
    let with = |schema: Value| {
        let tool = json!({"name": "large", "inputSchema": schema});
        catalog([offer("s", &[tool, named("small")])])
    };
    // {"enum":[0,…]} has the object, the array and its items.
    let nodes = |count: usize| json!({"enum": vec![0; count - 2]});
    // {"title":"…"} is twelve bytes around the text.
    let bytes = |count: usize| json!({"title": "x".repeat(count - 12)});
    for fits in [nodes(MAX_SCHEMA_NODES), bytes(MAX_SCHEMA_BYTES)] {
        let catalog = with(fits);
        assert_eq!(
            (catalog.tools().count(), catalog.warnings().count()),
            (2, 0)
        );
    }
    for over in [
        nodes(MAX_SCHEMA_NODES + 1),
        bytes(MAX_SCHEMA_BYTES + 1),
        bytes(MAX_SCHEMA_BYTES * 60),
    ] {
        let catalog = with(over);
        assert_eq!(catalog.tools().count(), 1);
        assert_eq!(catalog.warnings().count(), 1);
        assert!(
            catalog
                .warnings()
                .next()
                .unwrap()
                .message
                .starts_with("tool `large` is skipped")
        );
    }
    let long_name = catalog([offer(
        "s",
        &[named(&"n".repeat(MAX_NAME + 1)), named("small")],
    )]);
    assert_eq!(
        (long_name.tools().count(), long_name.warnings().count()),
        (1, 1)
    );
    assert!(long_name.warnings().next().unwrap().message.len() < 1_000);
}
