//! What an entry says about single tools.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::raw;
use crate::source::FileKind;

fn curation(entry: &str) -> Curation {
    let text = format!("{{\"mcpServers\": {{\"s\":\n{entry}\n}}}}");
    let source = TextSource::file("f.json");
    let file = raw::read(&text, &source, FileKind::User).unwrap();
    let server = &file.servers[0];
    Curation::read(&server.definition, &server.lines, &source)
}

#[test]
fn an_entry_that_says_nothing_changes_nothing() {
    let plain = curation(r#"{"command": "x"}"#);
    assert_eq!(plain, Curation::default());
    assert_eq!(plain.admits("anything"), Ok(()));
    assert_eq!(plain.idle(&["a"]), Vec::<String>::new());
    assert_eq!(plain.instructions_dropped, None);
    let silent = curation(r#"{"command": "x", "instructions": false}"#).instructions_dropped;
    assert_eq!(silent.unwrap(), "`instructions` is `false` (f.json:2)");
}

#[test]
fn exclusion_beats_inclusion_and_both_say_where_they_stand() {
    let curation = curation(
        r#"{"command": "x",
  "includeTools": ["get_*", "search"],
  "excludeTools": [
    "*_secret",
    "search"
  ]}"#,
    );
    let reason = |tool: &str| curation.admits(tool).unwrap_err().to_string();
    assert_eq!(curation.admits("get_item"), Ok(()));
    assert_eq!(
        reason("get_secret"),
        "`excludeTools` has `*_secret` (f.json:5)"
    );
    assert_eq!(reason("search"), "`excludeTools` has `search` (f.json:6)");
    assert_eq!(
        reason("delete"),
        "`includeTools` does not have it (f.json:3)"
    );
    assert_eq!(
        reason("Get_item"),
        "`includeTools` does not have it (f.json:3)"
    );
}

#[test]
fn an_empty_inclusion_offers_nothing() {
    let curation = curation(r#"{"command": "x", "includeTools": []}"#);
    assert!(curation.admits("a").is_err());
}

#[test]
fn sec_35_a_disguised_name_is_still_excluded_and_no_star_includes_it() {
    let curation =
        curation(r#"{"command": "x", "includeTools": ["*"], "excludeTools": ["delete"]}"#);
    for disguised in [
        "del\u{200b}ete",
        "delete\u{feff}",
        "\u{1b}[1mdelete",
        "del\u{1b}ete",
    ] {
        assert!(
            matches!(curation.admits(disguised), Err(LeftOutReason::Excluded(_))),
            "{disguised:?}"
        );
    }
    assert!(matches!(
        curation.admits("get\u{200b}"),
        Err(LeftOutReason::NotIncluded(_))
    ));
}

#[test]
fn what_speaks_of_no_tool_is_named_with_its_line() {
    let curation = curation(
        r#"{"command": "x",
  "includeTools": ["get_*", "gte_*"],
  "excludeTools": ["drop"],
  "alias": {"get_item": "item",
    "nobody": "no"},
  "tools": {"get_item": {"description": "Gets."},
    "ghost": {"description": "Boo."}}}"#,
    );
    assert_eq!(
        curation.idle(&["get_item", "get_list"]),
        [
            "`gte_*` in `includeTools` matches none of its tools (f.json:3)",
            "`drop` in `excludeTools` matches none of its tools (f.json:4)",
            "`nobody` in `alias` is none of its tools (f.json:6)",
            "`ghost` in `tools` is none of its tools (f.json:8)",
        ]
    );
    assert_eq!(curation.alias("get_item").unwrap().text, "item");
    assert_eq!(curation.description("get_item").unwrap().text, "Gets.");
    assert_eq!(curation.alias("get_list"), None);
}

#[test]
fn a_malformed_change_is_an_error_that_names_its_line() {
    let text = r#"{"mcpServers": {
  "s": {"command": "x",
    "alias": {"a": "fine",
      "b": "fine",
      "c": "not fine",
      "d": "",
      "e": "far_too_long_for_a_name_that_every_provider_of_models_would_take",
      "f": 7},
    "tools": {"a": "text",
      "b": {"description": " "},
      "c": {"description": 1},
      "d": {"name": "x", "description": "Good."}},
    "includeTools": [],
    "instructions": "no"}
}}"#;
    let file = raw::read(text, &TextSource::file("f.json"), FileKind::User).unwrap();
    let said: Vec<String> = file.servers[0]
        .diagnoses
        .iter()
        .map(|found| {
            let line = found.origin.as_ref().and_then(Origin::line).unwrap();
            let hint = found.hint.as_deref().unwrap();
            format!("{line}: {} | {hint}", found.message)
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    8: `alias.f` must be a string, not a number | write it in quotes: `"7"`
    9: `tools.a` must be an object, not a string | write e.g. `"tools": {"a_tool": {"description": "…"}}`
    10: `tools.b.description` must be a string, not an empty one | write e.g. `"tools": {"a_tool": {"description": "…"}}`
    11: `tools.c.description` must be a string, not a number | write e.g. `"tools": {"a_tool": {"description": "…"}}`
    12: `tools.d.name` is not a key Toolway reads | another name stands in the entry's `alias`
    14: `instructions` must be `true` or `false`, not a string | mend `instructions` in the entry, or leave it out
    13: `includeTools` is empty, so none of its tools is offered | name some, or leave the key out to offer all
    4: `alias.b` and `alias.a` are both `fine`; a name is that of one tool | choose another one
    5: `alias.c` may have letters, digits, `_` and `-` only, not `not fine` | write e.g. `"alias": {"a_long_tool_name": "short"}`
    6: `alias.d` may have letters, digits, `_` and `-` only, not `` | write e.g. `"alias": {"a_long_tool_name": "short"}`
    7: `alias.e` makes a name of 72 characters, `mcp__s__far_too_long_for_a_name_that_every_provider_of_models_would_take`; the most is 64 | choose a shorter one
    "#);
}

proptest! {
    #[test]
    fn sec_35_what_is_excluded_by_name_stays_out_however_it_is_included(
        tool in "\\PC{1,12}",
        include in proptest::collection::vec("[a-c*]{0,4}", 0..4),
    ) {
        let definition = json!({"includeTools": include, "excludeTools": [tool.clone()]});
        let definition = definition.as_object().unwrap();
        let curation = Curation::read(definition, &ValueLines::default(), &TextSource::Program);
        prop_assert!(curation.admits(&tool).is_err());
    }
}
