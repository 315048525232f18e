//! Where files are looked for, and what happens to broken ones.

use super::*;

fn files(home: &Home, client: ImportClient) -> Vec<String> {
    discover(&home.places(), client)
        .iter()
        .map(|found| {
            found
                .path
                .strip_prefix(home.directory.path())
                .unwrap()
                .display()
                .to_string()
        })
        .collect()
}

#[test]
fn every_client_is_found_where_it_keeps_its_files() {
    let servers = r#"{"mcpServers": {}}"#;
    for (client, expected) in [
        (
            ImportClient::ClaudeDesktop,
            &[
                ".config/Claude/claude_desktop_config.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
            ][..],
        ),
        (
            ImportClient::ClaudeCode,
            &[".claude.json", "work/project/.mcp.json"],
        ),
        (
            ImportClient::Cursor,
            &[".cursor/mcp.json", "work/project/.cursor/mcp.json"],
        ),
        (
            ImportClient::VsCode,
            &[
                ".config/Code/User/mcp.json",
                ".config/Code/User/profiles/-1a/mcp.json",
                ".config/VSCodium/User/mcp.json",
                "work/project/.vscode/mcp.json",
            ],
        ),
        (
            ImportClient::Codex,
            &[".codex/config.toml", "work/project/.codex/config.toml"],
        ),
        (
            ImportClient::Gemini,
            &[
                ".gemini/settings.json",
                "work/project/.gemini/settings.json",
            ],
        ),
        (
            ImportClient::Windsurf,
            &[".codeium/windsurf/mcp_config.json"],
        ),
        (
            ImportClient::Zed,
            &[
                ".config/zed/settings.json",
                "work/project/.zed/settings.json",
            ],
        ),
        (
            ImportClient::Opencode,
            &[
                ".config/opencode/opencode.json",
                "work/project/.opencode/opencode.json",
                "work/project/opencode.jsonc",
            ],
        ),
        (ImportClient::Goose, &[".config/goose/config.yaml"]),
    ] {
        let home = Home::new();
        assert_eq!(files(&home, client), Vec::<String>::new());
        for file in expected {
            home.write(file, servers);
        }
        assert_eq!(files(&home, client), expected, "{}", client.title());
        assert_eq!(ImportClient::parse(client.id()), Some(client));
    }
}

#[test]
fn directories_named_by_the_environment_go_first() {
    let home = Home::new();
    home.write(".claude.json", "{}");
    home.write(".codex/config.toml", "");
    home.write("c/.claude.json", "{}");
    home.write("x/config.toml", "");
    let places = ClientLocations {
        claude_config_dir: Some(home.path("c")),
        codex_home: Some(home.path("x")),
        ..home.places()
    };
    assert_eq!(
        discover(&places, ImportClient::ClaudeCode)[0].path,
        home.path("c/.claude.json")
    );
    assert_eq!(
        discover(&places, ImportClient::Codex)[0].path,
        home.path("x/config.toml")
    );
}

#[test]
fn a_broken_file_is_a_diagnosis_and_the_others_are_read() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" \"args\": [] }\n  }\n}",
    );
    home.write(
        "work/project/.cursor/mcp.json",
        r#"{"mcpServers": {"b": {"command": "b"}}}"#,
    );
    insta::assert_snapshot!(home.show(&discover(&home.places(), ImportClient::Cursor)), @r#"
    [
      {
        "client": "cursor",
        "path": "~/.cursor/mcp.json",
        "servers": [],
        "diagnoses": [
          "Error ~/.cursor/mcp.json:3:26: not valid: expected comma"
        ]
      },
      {
        "client": "cursor",
        "path": "~/work/project/.cursor/mcp.json",
        "servers": [
          {
            "name": "b",
            "line": 1,
            "definition": {
              "command": "b"
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn broken_toml_and_yaml_say_where() {
    let home = Home::new();
    insta::assert_snapshot!(home.read(ImportClient::Codex, "config.toml", "[mcp_servers.a]\ncommand = \"x\nargs = []\n"), @r#"
    [
      {
        "client": "codex",
        "path": "~/config.toml",
        "servers": [],
        "diagnoses": [
          "Error ~/config.toml:2:13: not valid: invalid basic string, expected `\"`"
        ]
      }
    ]
    "#);
    insta::assert_snapshot!(home.read(ImportClient::Goose, "config.yaml", "extensions:\n  a: [1, 2\n  b: }\n"), @r#"
    [
      {
        "client": "goose",
        "path": "~/config.yaml",
        "servers": [],
        "diagnoses": [
          "Error ~/config.yaml:3:4: not valid: illegal placement of ':' indicator"
        ]
      }
    ]
    "#);
    insta::assert_snapshot!(home.read(ImportClient::Codex, "shape.toml", "mcp_servers = 3\n"), @r#"
    [
      {
        "client": "codex",
        "path": "~/shape.toml",
        "servers": [],
        "diagnoses": [
          "Error ~/shape.toml:1:15: not valid: invalid type: integer `3`, expected a map"
        ]
      }
    ]
    "#);
}

#[test]
fn a_file_that_cannot_be_read_is_a_diagnosis() {
    let home = Home::new();
    let found = read_file(
        &home.places(),
        ImportClient::Cursor,
        &home.path("missing.json"),
    );
    assert!(found.servers.is_empty());
    assert!(found.diagnoses[0].message.starts_with("cannot read `"));
    let path = home.path("latin.json");
    fs::write(&path, b"{\n \"\xe9\": 1}").unwrap();
    let found = read_file(&home.places(), ImportClient::Cursor, &path);
    assert_eq!(
        (
            found.diagnoses[0].origin.as_ref().unwrap().line(),
            found.diagnoses[0].column
        ),
        (Some(2), Some(3))
    );
}

#[test]
fn json_of_any_client_may_keep_its_servers_anywhere() {
    let home = Home::new();
    let entries = r#"{"a": {"command": "a"}}"#;
    for text in [
        format!(r#"{{"mcpServers": {entries}}}"#),
        format!(r#"{{"servers": {entries}}}"#),
        format!(r#"{{"mcp": {entries}}}"#),
        format!(r#"{{"mcp": {{"servers": {entries}}}}}"#),
        format!(r#"{{"context_servers": {entries}}}"#),
        format!("\u{FEFF}{entries}"),
    ] {
        let path = home.write("any.json", &text);
        for client in [
            ImportClient::ClaudeDesktop,
            ImportClient::ClaudeCode,
            ImportClient::Cursor,
            ImportClient::VsCode,
            ImportClient::Gemini,
            ImportClient::Windsurf,
            ImportClient::Zed,
            ImportClient::Opencode,
        ] {
            let found = read_file(&home.places(), client, &path);
            let names: Vec<&str> = found
                .servers
                .iter()
                .map(|server| server.name.as_str())
                .collect();
            assert_eq!(names, ["a"], "{} {text}", client.title());
        }
    }
    // Settings without servers are no mistake, and nothing is guessed out of them.
    for text in [
        "{}",
        "",
        r#"{"theme": "dark", "lsp": {"x": {"command": "y"}}}"#,
        "[]",
    ] {
        let found = read_file(
            &home.places(),
            ImportClient::Zed,
            &home.write("none.json", text),
        );
        assert_eq!(
            (found.servers.len(), found.diagnoses.len()),
            (0, 0),
            "{text}"
        );
    }
}

#[test]
fn names_nobody_could_type_again_are_refused() {
    let home = Home::new();
    insta::assert_snapshot!(home.read(ImportClient::Cursor, "m.json", "{\"mcpServers\": {\n\"a \": {\"command\": \"a\"},\n\"b\\u200b\": {\"command\": \"b\"}}}"), @r#"
    [
      {
        "client": "cursor",
        "path": "~/m.json",
        "servers": [],
        "diagnoses": [
          "Error ~/m.json:2: the server name `a ` has white space at its edge",
          "Error ~/m.json:3: the server name has an invisible character (U+200B)"
        ]
      }
    ]
    "#);
}
