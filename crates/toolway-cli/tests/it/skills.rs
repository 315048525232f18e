//! Skills on the command line that servers publish as plain resources, and slips of the person.

use serde_json::json;
use toolway_testkit::{Script, ScriptedSkills, TempHome};

use crate::support::{home_with, servers, toolway};

/// A server without the extension.
const PLAIN: &str = r#"
import json, sys
FILES = {
    "skill://pdf/SKILL.md": "PDF text\n",
    "skill://pdf/notes.md": "notes\n",
    "skill://a/b/SKILL.md": "not one\n",
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}},
                            "serverInfo": {"name": "plain", "version": "1"}}
    elif method == "resources/list":
        listed = [{"uri": uri, "name": "n", "description": "Works with PDF"} for uri in FILES]
        answer["result"] = {"resources": listed}
    elif method == "resources/templates/list":
        answer["result"] = {"resourceTemplates": []}
    elif method == "resources/read" and params["uri"] in FILES:
        part = {"uri": params["uri"], "text": FILES[params["uri"]]}
        answer["result"] = {"contents": [part]}
    else:
        answer["error"] = {"code": -32002, "message": "not here"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn resources_under_skill_are_skills_without_digests() {
    let home = TempHome::new();
    let plain = json!({ "command": "python3", "args": ["-u", "-c", PLAIN] });
    home.write_settings(servers(&[("plain", plain)]));
    let listed = toolway(&home, &["skills"]).expect_code(0);
    insta::assert_snapshot!(listed.stdout, @"
    NAME  SERVER  DESCRIPTION
    pdf   plain   (no digest) Works with PDF
    ");
    assert_eq!(listed.stderr, "");
    let rows = toolway(&home, &["skills", "--json"]).expect_code(0).json();
    assert_eq!(
        rows["skills"],
        json!([{
            "name": "pdf", "server": "plain", "uri": "skill://pdf/SKILL.md",
            "description": "Works with PDF", "files": null, "digests": false,
            "verified": null, "problem": null,
        }])
    );
    let shown = toolway(&home, &["skill", "plain", "pdf"]).expect_code(0);
    assert_eq!(shown.stdout, "PDF text\n");
    let notes = toolway(&home, &["skill", "plain", "pdf", "--file", "notes.md"]).expect_code(0);
    assert_eq!(notes.stdout, "notes\n");
    let outside = ["skill", "plain", "pdf", "--file", "../a/b/SKILL.md"];
    toolway(&home, &outside).expect_code(2);
    toolway(&home, &["skill", "plain", "pdf", "--file", "absent.md"]).expect_code(7);
    toolway(&home, &["skill", "plain", "png"]).expect_code(2);
    let run = ["skill", "pdf", "--", "python3", "-u", "-c", PLAIN];
    let typed = toolway(&home, &run).expect_code(0);
    assert_eq!(typed.stdout, "PDF text\n");
}

#[test]
fn a_file_that_a_skill_does_not_have_is_the_persons_slip() {
    let home = home_with(Script {
        skills: Some(ScriptedSkills {
            count: 1,
            ..ScriptedSkills::default()
        }),
        ..Script::default()
    });
    for path in ["../x", "absent.md"] {
        let slip = toolway(&home, &["skill", "chaos", "skill-0", "--file", path]).expect_code(2);
        assert!(slip.stderr.contains(" has no file `skill://"), "{slip}");
        assert!(!slip.stderr.contains("tampered"), "{slip}");
    }
    let which = toolway(&home, &["skill", "chaos"]).expect_code(2);
    insta::assert_snapshot!(which.stderr, @"
    error: which skill of `chaos`?
    hint: see its skills with `toolway skills chaos`
    ");
}
