//! What modules look like, and that they are code whatever servers say.

use std::fs;
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    Language, ModuleChange, ModuleStamp, ServerTools, ToolDefinition, index, module, stem,
};

fn tool(name: &str, input: Value, output: Option<Value>) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "What it does.".to_owned(),
        input,
        output,
    }
}

fn server(tools: Vec<ToolDefinition>) -> ServerTools {
    ServerTools {
        server: "shop".to_owned(),
        tools,
    }
}

/// A module without its head and foot.
fn body(language: Language, tools: Vec<ToolDefinition>) -> String {
    let text = module(language, &server(tools));
    let text = text.split_once("\n\n").unwrap().1;
    let foot = text.find("What `toolway generate --check`").unwrap();
    text[..foot].to_owned()
}

/// The part of a module from one line to another, both told by how they begin.
fn part(text: &str, from: &str, to: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with(from));
    let mut kept = Vec::new();
    for line in lines {
        kept.push(line);
        if line.starts_with(to) && kept.len() > 1 {
            break;
        }
    }
    kept.join("\n")
}

fn order() -> Value {
    json!({
        "type": "object",
        "required": ["item", "count", "to"],
        "properties": {
            "to": { "$ref": "#/$defs/Address" },
            "item": { "type": "string", "description": "Which one." },
            "count": { "type": "integer", "minimum": 1 },
            "speed": { "enum": ["slow", "fast", null], "default": "slow" },
            "from": { "type": "string", "format": "date" },
            "gift-wrap": { "type": ["boolean", "null"] },
            "place": {
                "type": "array",
                "prefixItems": [{ "type": "number" }, { "type": "number" }],
                "items": false,
                "minItems": 2
            },
            "notes": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "$defs": { "Address": {
            "type": "object",
            "required": ["street"],
            "properties": {
                "street": { "type": "string" },
                "behind": { "$ref": "#/$defs/Address" },
            },
        } },
    })
}

#[test]
fn typescript_says_what_is_required_what_may_be_null_and_what_leads_to_itself() {
    let text = body(
        Language::TypeScript,
        vec![tool("place-order", order(), None)],
    );
    let types = part(&text, "export interface Address", "}");
    assert_eq!(
        types,
        "export interface Address {\n  behind?: Address;\n  street: string;\n}"
    );
    let types = part(&text, "export interface PlaceOrderArguments", "}");
    assert_eq!(
        types,
        r#"export interface PlaceOrderArguments {
  count: number;
  /** Format: date. */
  from?: string;
  "gift-wrap"?: boolean | null;
  /** Which one. */
  item: string;
  notes?: { [name: string]: string };
  place?: [number, number];
  /** Default: "slow". */
  speed?: "slow" | "fast" | null;
  to: Address;
}"#
    );
    assert!(text.contains("async placeOrder(args: PlaceOrderArguments, options?: CallOptions)"));
}

#[test]
fn python_says_the_same_in_dictionaries() {
    let text = body(Language::Python, vec![tool("place-order", order(), None)]);
    let types = part(&text, "class Address", "    street");
    assert_eq!(
        types,
        "class Address(TypedDict):\n    behind: NotRequired[Address]\n    street: str"
    );
    let types = part(&text, "PlaceOrderArguments", ")");
    assert_eq!(
        types,
        r#"PlaceOrderArguments = TypedDict(
    "PlaceOrderArguments",
    {
        "count": "int",
        #: Format: date.
        "from": "NotRequired[str]",
        "gift-wrap": "NotRequired[Union[bool, None]]",
        #: Which one.
        "item": "str",
        "notes": "NotRequired[dict[str, str]]",
        "place": "NotRequired[list[float]]",
        #: Default: "slow".
        "speed": "NotRequired[Union[Literal[\"slow\"], Literal[\"fast\"], None]]",
        "to": "Address",
    },
)"#
    );
}

#[test]
fn rust_says_the_same_with_serde() {
    let text = body(Language::Rust, vec![tool("place-order", order(), None)]);
    let types = part(&text, "pub struct Address", "}");
    assert!(
        types.contains("pub behind: Option<Box<Address>>,"),
        "{types}"
    );
    assert!(types.contains("pub street: String,"), "{types}");
    let types = part(&text, "pub struct PlaceOrderArguments", "}");
    for field in [
        "pub count: i64,",
        "pub from: Option<String>,",
        "#[serde(rename = \"gift-wrap\")]",
        "pub gift_wrap: Option<bool>,",
        "pub notes: Option<::std::collections::BTreeMap<String, String>>,",
        "pub place: Option<(f64, f64,)>,",
        "pub speed: Option<PlaceOrderArgumentsSpeed>,",
        "pub to: Address,",
    ] {
        assert!(types.contains(field), "{field}\n{types}");
    }
}

#[test]
fn alternatives_and_parts_are_put_together_and_never_made_narrower() {
    let base = json!({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"],
        "oneOf": [
            { "properties": { "by": { "const": "mail" }, "address": { "type": "string" } }, "required": ["by", "address"] },
            { "properties": { "by": { "const": "phone" } }, "required": ["by"] },
        ],
    });
    let text = body(Language::TypeScript, vec![tool("send", base, None)]);
    assert_eq!(
        part(&text, "export interface SendArguments1", "}"),
        "export interface SendArguments1 {\n  address: string;\n  by: \"mail\";\n  id: string;\n}"
    );
    assert_eq!(
        part(&text, "export type SendArguments", "export"),
        "export type SendArguments = SendArguments1 | SendArguments2;\n\n\
         /** The tools of server \"shop\". */\nexport class Shop {"
    );
    // Which members go together cannot be said, so both may be left out.
    let together = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
    });
    let text = body(Language::TypeScript, vec![tool("pick", together, None)]);
    assert_eq!(
        part(&text, "export interface PickArguments", "}"),
        "export interface PickArguments {\n  a?: string;\n  b?: string;\n}"
    );
    // A condition may ask for members that are named nowhere else.
    let condition = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "if": { "required": ["a"] },
        "then": { "properties": { "b": { "type": "string" } }, "required": ["b"] },
    });
    let text = body(Language::TypeScript, vec![tool("when", condition, None)]);
    assert!(part(&text, "export interface WhenArguments", "}").contains("[name: string]: unknown"));
}

#[test]
fn what_is_not_understood_is_open() {
    for schema in [
        json!(true),
        json!(null),
        json!("text"),
        json!({}),
        json!({ "$ref": "https://elsewhere.example/schema" }),
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "type": "nothing-known" }),
        json!({ "type": "string" }),
    ] {
        let text = body(Language::TypeScript, vec![tool("t", schema.clone(), None)]);
        assert!(
            text.contains("export type TArguments = { [name: string]: unknown };"),
            "{schema}\n{text}"
        );
    }
    let result = json!({ "anyOf": [{ "type": "string" }, {}] });
    let text = body(
        Language::TypeScript,
        vec![tool("t", json!({}), Some(result))],
    );
    assert!(text.contains("export type TResult = unknown;"), "{text}");
}

#[test]
fn a_list_is_a_tuple_only_where_it_can_have_no_other_length() {
    for (schema, spelled) in [
        (
            json!({ "type": "array", "prefixItems": [{ "type": "string" }] }),
            "unknown[]",
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false }),
            "string[]",
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "string" }], "minItems": 1, "maxItems": 1 }),
            "[string]",
        ),
        (
            json!({ "type": "array", "items": [{ "type": "string" }, { "type": "null" }], "minItems": 2, "additionalItems": false }),
            "[string, null]",
        ),
    ] {
        let text = body(
            Language::TypeScript,
            vec![tool("t", json!({}), Some(schema.clone()))],
        );
        assert!(
            text.contains(&format!("export type TResult = {spelled};")),
            "{schema}\n{text}"
        );
    }
}

#[test]
fn names_that_collide_or_mean_something_get_others() {
    let names = [
        "get-sum",
        "getSum",
        "get_sum",
        "class",
        "delete",
        "list",
        "constructor",
        "2fa",
        "größe",
        "日本",
        "",
        "__proto__",
        "use",
        "self",
        "then",
    ];
    let tools: Vec<ToolDefinition> = names
        .iter()
        .map(|name| tool(name, json!({}), None))
        .collect();
    let text = body(Language::TypeScript, tools.clone());
    for method in [
        "getSum(",
        "getSum_2(",
        "getSum_3(",
        "class_2(",
        "constructor_2(",
        "n2fa(",
        "unnamed(",
        "unnamed_2(",
        "proto(",
        "use_2(",
        "then_2(",
        "grE(",
    ] {
        assert!(
            text.contains(&format!("  async {method}")),
            "{method}\n{text}"
        );
    }
    let text = body(Language::Python, tools);
    for method in [
        "get_sum(",
        "get_sum_2(",
        "class_2(",
        "list_2(",
        "self_2(",
        "n2fa(",
    ] {
        assert!(
            text.contains(&format!("    async def {method}")),
            "{method}\n{text}"
        );
    }
    for (name, file) in [
        ("index", "index_"),
        ("a.b", "a_b"),
        ("class", "class_"),
        ("__", "unnamed"),
    ] {
        assert_eq!(stem(name), file);
    }
}

#[test]
fn nothing_that_a_server_says_leaves_its_comment_or_its_string() {
    let evil = "*/ } process.exit() /*\n\"\"\" import os\n# type: ignore\n@ts-ignore\n\
                ```\nfn main() {}\n```\n    code\n<script>x</script>\u{202e}\u{2028}x\\";
    let mut one = tool(
        "a\"\\\n\u{202e}*/\"\"\"",
        json!({ "type": "object", "properties": { evil: { "type": "string", "description": evil, "enum": [evil], "default": evil } } }),
        None,
    );
    one.description = evil.to_owned();
    for language in Language::ALL {
        let text = module(language, &server(vec![one.clone()]));
        assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text}");
        match language {
            Language::TypeScript => {
                assert!(text.contains("*\\/ } process.exit() /\\*"), "{text}");
                assert!(text.contains(" * \\@ts-ignore"), "{text}");
            }
            Language::Python => python(&[text]),
            Language::Rust => {
                syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                let lines = text.lines().map(str::trim);
                for line in lines.filter(|line| line.starts_with("///")) {
                    assert!(!line.contains("```") && !line.contains("/// <"), "{line}");
                    assert!(!line.starts_with("///  "), "{line}");
                }
            }
        }
    }
}

#[test]
fn the_order_of_tools_and_of_members_changes_no_byte() {
    let reversed = |schema: &Value| {
        fn turn(value: &Value) -> Value {
            match value {
                Value::Object(members) => {
                    let members = members.iter().rev();
                    Value::Object(
                        members
                            .map(|(k, v)| (k.clone(), turn(v)))
                            .collect::<Map<_, _>>(),
                    )
                }
                other => other.clone(),
            }
        }
        turn(schema)
    };
    for language in Language::ALL {
        let one = module(
            language,
            &server(vec![
                tool("a", order(), Some(order())),
                tool("b", json!({}), None),
            ]),
        );
        let other = module(
            language,
            &server(vec![
                tool("b", json!({}), None),
                tool("a", reversed(&order()), Some(reversed(&order()))),
            ]),
        );
        assert_eq!(one, other);
    }
}

#[test]
fn a_module_says_what_it_was_made_from_and_what_changed_since() {
    let evil = "x\\u{41} \"y\" \u{1f600}\u{202e}";
    let before = [
        tool("gone", json!({}), None),
        tool("takes", json!({ "type": "object" }), None),
        tool("gives", json!({}), Some(json!({ "type": "object" }))),
        tool("said", json!({}), None),
        tool(evil, json!({}), None),
    ];
    let mut after = before.clone();
    after[0].name = "new".to_owned();
    after[1].input = json!({ "type": "object", "required": ["a"] });
    after[2].output = None;
    after[3].description = "Something else.".to_owned();
    for language in Language::ALL {
        let read = |tools: &[ToolDefinition]| {
            let text = module(language, &server(tools.to_vec()));
            ModuleStamp::read(&text).unwrap()
        };
        let (before, after) = (read(&before), read(&after));
        assert_eq!(before.server, "shop");
        assert_eq!(before.version, crate::VERSION);
        assert!(before.tools.contains_key(evil));
        assert_ne!(before.digest, after.digest);
        let words: Vec<String> = before
            .changes_to(&after)
            .iter()
            .map(ModuleChange::words)
            .collect();
        assert_eq!(
            words,
            [
                "`gives` gives another result",
                "`new` is new",
                "`said` is described in other words",
                "`takes` takes other arguments",
                "`gone` is gone",
            ]
        );
        assert_eq!(before.changes_to(&before), []);
    }
    assert_eq!(ModuleStamp::read("// Mine.\n"), None);
    assert!(!ModuleStamp::is_ours("export {};\n"));
}

#[test]
fn five_thousand_tools_and_schemas_without_end_are_quick() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..60 {
        deep = json!({ "type": "object", "properties": { "a": deep.clone() }, "anyOf": [{ "required": ["a"] }] });
    }
    // Each definition refers twice to the next: followed blindly, that is 2^60 schemas.
    let mut definitions = Map::new();
    for place in 0..60 {
        let next = format!("#/$defs/d{}", place + 1);
        definitions.insert(
            format!("d{place}"),
            json!({ "anyOf": [{ "type": "array", "items": { "$ref": next } }, { "type": "object", "properties": { "x": { "$ref": next } } }] }),
        );
    }
    definitions.insert("d60".to_owned(), json!({ "$ref": "#/$defs/d0" }));
    let wide = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    let small = json!({ "type": "object", "properties": { "a": { "type": "object", "properties": { "b": { "type": "string" } } } } });
    let mut tools: Vec<ToolDefinition> = (0..5_000)
        .map(|place| tool(&format!("tool {place}"), small.clone(), None))
        .collect();
    tools.push(tool("deep", deep.clone(), Some(deep)));
    tools.push(tool("wide", wide.clone(), Some(wide)));
    let begun = std::time::Instant::now();
    for language in Language::ALL {
        let text = module(language, &server(tools.clone()));
        match language {
            Language::TypeScript => {}
            Language::Python => python(&[text]),
            Language::Rust => drop(syn::parse_file(&text).unwrap()),
        }
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn an_index_leads_to_every_module() {
    let servers = [("b", "b"), ("a-1", "a_1")].map(|(one, two)| (one.to_owned(), two.to_owned()));
    let text = index(Language::TypeScript, &servers);
    assert!(text.ends_with("export * as A1 from \"./a_1.js\";\nexport * as B from \"./b.js\";\n"));
    let text = index(Language::Python, &servers);
    assert!(text.ends_with("__all__ = [\"a_1\", \"b\"]\n"), "{text}");
    let text = index(Language::Rust, &servers);
    assert!(text.ends_with("pub mod a_1;\npub mod b;\n"), "{text}");
}

/// Has Python read these modules.
fn python(texts: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("python3");
    command.args([
        "-c",
        "import ast, sys\nfor name in sys.argv[1:]: ast.parse(open(name, encoding='utf-8').read())",
    ]);
    for (place, text) in texts.iter().enumerate() {
        let path = folder.path().join(format!("m{place}.py"));
        fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        texts.first().map_or("", String::as_str)
    );
}

/// Any text, and such as schemas hold.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("type".to_owned()),
        Just("str".to_owned()),
        Just("#/$defs/a".to_owned()),
        Just("#".to_owned()),
        Just("*/".to_owned()),
        Just("\"\"\"".to_owned()),
        "[a-zA-Z0-9_-]{0,8}",
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
        Just(json!([1])),
        Just(json!({ "a": 1 })),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        proptest::sample::select(toolway_schema::TYPES.to_vec()).prop_map(Value::from),
        proptest::collection::vec(
            proptest::sample::select(toolway_schema::TYPES.to_vec()),
            0..3
        )
        .prop_map(Value::from),
        value(),
    ];
    let leaf = prop_oneof![
        kind.clone().prop_map(|kind| json!({ "type": kind })),
        value().prop_map(|value| json!({ "const": value })),
        proptest::collection::vec(value(), 0..4).prop_map(|values| json!({ "enum": values })),
        word().prop_map(|place| json!({ "$ref": place })),
        Just(json!({ "$ref": "#/$defs/a" })),
        value(),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let map = proptest::collection::btree_map(word(), inner.clone(), 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
            .boxed();
        let names = proptest::collection::vec(word(), 0..3);
        let part = prop_oneof![
            (map.clone(), names, word()).prop_map(|(members, names, said)| {
                json!({ "type": "object", "properties": members, "required": names, "description": said })
            }),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            (list.clone(), 0..4_u8).prop_map(|(places, least)| {
                json!({ "prefixItems": places, "minItems": least, "items": false })
            }),
            list.clone().prop_map(|parts| json!({ "allOf": parts })),
            list.clone().prop_map(|parts| json!({ "anyOf": parts })),
            inner.clone().prop_map(|others| json!({ "type": "object", "additionalProperties": others })),
            map.prop_map(|definitions| json!({ "$defs": definitions, "$ref": "#/$defs/a" })),
        ];
        // Several at once, as schemas are.
        proptest::collection::vec(part, 1..3).prop_map(|parts| {
            let mut whole = Map::new();
            for part in parts {
                if let Value::Object(members) = part {
                    whole.extend(members);
                }
            }
            Value::Object(whole)
        })
    })
}

fn any_tools() -> impl Strategy<Value = Vec<ToolDefinition>> {
    let one = (word(), word(), schema(), proptest::option::of(schema())).prop_map(
        |(name, description, input, output)| ToolDefinition {
            name,
            description,
            input,
            output,
        },
    );
    proptest::collection::vec(one, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rust_modules_are_rust_whatever_servers_say(tools in any_tools()) {
        let text = module(Language::Rust, &server(tools));
        if let Err(error) = syn::parse_file(&text) {
            panic!("{error}\n{text}");
        }
        prop_assert!(ModuleStamp::read(&text).is_some());
    }
}

proptest! {
    // Python is started for each.
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn python_modules_are_python_whatever_servers_say(
        servers in proptest::collection::vec(any_tools(), 25)
    ) {
        let texts: Vec<String> = servers
            .into_iter()
            .map(|tools| module(Language::Python, &server(tools)))
            .collect();
        python(&texts);
    }
}
