//! `toolway generate`: where modules go, what is refused, and what `--check` says.

use std::fs;

use serde_json::{Value, json};
use toolway_testkit::{CommandOutput, TempHome};

use crate::support::{servers, toolway};

const TOOLS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/given_tools_server.py"
);

fn tool(name: &str, input: &Value) -> Value {
    json!({ "name": name, "description": format!("Does {name}."), "inputSchema": input })
}

/// A home with the server `shop`, which offers what its file says.
fn shop(tools: &[Value]) -> TempHome {
    let home = TempHome::new();
    let file = home.write("tools.json", json!(tools).to_string());
    let entry = |file: &str| json!({ "command": "python3", "args": ["-u", TOOLS, file] });
    let file = file.to_str().unwrap();
    home.write_settings(servers(&[("shop", entry(file)), ("sh-op", entry(file))]));
    home
}

fn sum() -> Value {
    let number = json!({ "type": "number" });
    tool(
        "get-sum",
        &json!({ "type": "object", "properties": { "a": number, "b": number }, "required": ["a"] }),
    )
}

fn generate(home: &TempHome, words: &[&str]) -> CommandOutput {
    let mut all = vec!["generate"];
    all.extend(words);
    toolway(home, &all)
}

#[test]
fn a_module_is_printed_where_no_place_is_named_and_the_same_every_time() {
    let home = shop(&[sum()]);
    let first = generate(&home, &["typescript", "shop"]).expect_code(0);
    assert_eq!(first.stderr, "");
    assert!(
        first
            .stdout
            .contains("export interface GetSumArguments {\n  a: number;\n  b?: number;\n}")
    );
    let again = generate(&home, &["ts", "shop"]).expect_code(0);
    assert_eq!(first.stdout, again.stdout);
    let cached = generate(&home, &["typescript", "shop", "--cached"]).expect_code(0);
    assert_eq!(first.stdout, cached.stdout);
    assert!(cached.stderr.starts_with("as of "), "{cached}");
}

#[test]
fn several_servers_get_a_file_each_and_an_index() {
    let home = shop(&[sum()]);
    let made = generate(&home, &["python", "shop", "sh-op", "shop", "-o", "tools"]).expect_code(0);
    insta::assert_snapshot!(home.normalise(&made.stderr), @r"
    wrote `[PROJECT]/tools/sh_op.py`
    wrote `[PROJECT]/tools/shop.py`
    wrote `[PROJECT]/tools/__init__.py`
    ");
    let again = generate(&home, &["python", "shop", "sh-op", "-o", "tools"]).expect_code(0);
    insta::assert_snapshot!(home.normalise(&again.stderr), @r"
    `[PROJECT]/tools/sh_op.py` is as it was
    `[PROJECT]/tools/shop.py` is as it was
    `[PROJECT]/tools/__init__.py` is as it was
    ");
    let index = fs::read_to_string(home.project().join("tools/__init__.py")).unwrap();
    assert!(index.contains("from . import sh_op as sh_op\nfrom . import shop as shop\n"));
    insta::assert_snapshot!(generate(&home, &["python", "shop", "sh-op"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: 2 modules cannot be printed as one
    hint: name a directory for them with `-o DIR`
    ");
    insta::assert_snapshot!(home.normalise(&generate(&home, &["python", "shop", "sh-op", "-o", "all.py"]).to_string()), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: the modules of 2 servers do not fit into the file `[PROJECT]/all.py`
    hint: name a directory for them with `-o DIR`
    ");
}

#[test]
fn slips_are_answered_with_what_was_meant() {
    let home = shop(&[sum()]);
    insta::assert_snapshot!(generate(&home, &["pyhton", "shop"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: invalid value 'pyhton' for '<LANGUAGE>'
      [possible values: typescript, python, rust]
    hint: did you mean `python`?
    ");
    insta::assert_snapshot!(generate(&home, &["python", "shp"]), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: no server named `shp` is configured
    hint: did you mean `shop`?
    ");
    insta::assert_snapshot!(home.normalise(&generate(&home, &["rust", "shop", "-o", "shop.py"]).to_string()), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: `[PROJECT]/shop.py` is a name for python, and this would be rust
    hint: end it with `.rs`
    ");
    insta::assert_snapshot!(generate(&home, &["rust", "shop", "--cached"]), @r"
    exit: 4
    ----- stdout
    ----- stderr
    error: nothing is kept of server `shop` yet
    hint: ask it with `toolway tools shop`
    ");
    assert_eq!(
        generate(&home, &["python", "shop", "--check"]).code,
        Some(2)
    );
    assert_eq!(generate(&home, &["python"]).code, Some(2));
}

#[test]
fn a_file_of_somebody_elses_is_not_replaced() {
    let home = shop(&[sum()]);
    let mine = home.write("shop.py", "print('mine')\n");
    let refused = generate(&home, &["python", "shop", "-o", "shop.py"]);
    insta::assert_snapshot!(home.normalise(&refused.to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: `[PROJECT]/shop.py` was not made by `toolway generate`
    hint: write elsewhere with `-o`, or replace it with `--force`
    ");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "print('mine')\n");
    generate(&home, &["python", "shop", "-o", "shop.py", "--force"]).expect_code(0);
    generate(&home, &["python", "shop", "-o", "shop.py", "--check"]).expect_code(0);
}

#[test]
fn check_names_what_changed_in_words_and_writes_nothing() {
    let home = shop(&[
        sum(),
        tool("kept", &json!({ "type": "object" })),
        tool("old", &json!({ "type": "object" })),
    ]);
    let check = || generate(&home, &["rust", "shop", "-o", "shop.rs", "--check"]);
    insta::assert_snapshot!(home.normalise(&check().to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: modules are not what their servers offer now
      `[PROJECT]/shop.rs` is missing
    hint: make them anew with `toolway generate rust shop -o shop.rs`
    ");
    generate(&home, &["rust", "shop", "-o", "shop.rs"]).expect_code(0);
    insta::assert_snapshot!(check(), @r"
    exit: 0
    ----- stdout
    ----- stderr
    up to date: 3 tools
    ");
    let before = fs::read_to_string(home.project().join("shop.rs")).unwrap();
    let mut sum = sum();
    sum["inputSchema"]["required"] = json!(["a", "b"]);
    let mut kept = tool("kept", &json!({ "type": "object" }));
    kept["outputSchema"] = json!({ "type": "object" });
    kept["description"] = json!("Does more.");
    let tools = json!([
        kept,
        sum,
        tool("new\u{1b}[2J", &json!({ "type": "object" }))
    ]);
    home.write("tools.json", tools.to_string());
    insta::assert_snapshot!(home.normalise(&check().to_string()), @r"
    exit: 3
    ----- stdout
    ----- stderr
    error: modules are not what their servers offer now
      `[PROJECT]/shop.rs`: `get-sum` takes other arguments
      `[PROJECT]/shop.rs`: `kept` gives another result
      `[PROJECT]/shop.rs`: `kept` is described in other words
      `[PROJECT]/shop.rs`: `new\u{001B}[2J` is new
      `[PROJECT]/shop.rs`: `old` is gone
    hint: make them anew with `toolway generate rust shop -o shop.rs`
    ");
    let after = fs::read_to_string(home.project().join("shop.rs")).unwrap();
    assert_eq!(before, after);
    generate(&home, &["rust", "shop", "-o", "shop.rs"]).expect_code(0);
    check().expect_code(0);
    let made = fs::read_to_string(home.project().join("shop.rs")).unwrap();
    home.write("shop.rs", made.replace("pub a: f64", "pub a: f32"));
    assert!(check().stderr.contains("was changed by hand"));
    // Another version makes other bytes of the same tools.
    let older = made.replace("of Toolway ", "of Toolway 0.0.");
    home.write("shop.rs", older);
    let said = check().expect_code(0);
    assert!(said.stderr.contains("was made by Toolway 0.0."), "{said}");
}
