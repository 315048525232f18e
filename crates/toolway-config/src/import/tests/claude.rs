//! Claude Desktop and Claude Code.

use super::*;

#[test]
fn claude_desktop() {
    let home = Home::new();
    let found = home.read(
        ImportClient::ClaudeDesktop,
        ".config/Claude/claude_desktop_config.json",
        r#"{
  "globalShortcut": "",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/My Files"]
    },
    "My Notes": {
      "command": "uvx",
      "args": ["notes-server", "--port", 8080, "${NOT_A_VARIABLE}"],
      "env": { "API_KEY": "abc", "DEBUG": true }
    },
    "broken": { "args": ["x"] },
    "worse": "npx thing"
  }
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "claude-desktop",
        "path": "~/.config/Claude/claude_desktop_config.json",
        "servers": [
          {
            "name": "filesystem",
            "line": 4,
            "definition": {
              "command": "npx",
              "args": [
                "-y",
                "@modelcontextprotocol/server-filesystem",
                "/home/me/My Files"
              ]
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          },
          {
            "name": "My Notes",
            "line": 8,
            "definition": {
              "command": "uvx",
              "args": [
                "notes-server",
                "--port",
                "8080",
                "${NOT_A_VARIABLE}"
              ],
              "env": {
                "API_KEY": "abc",
                "DEBUG": "true"
              }
            },
            "enabled": true,
            "dropped": [],
            "notes": [
              "`${NOT_A_VARIABLE}` was plain text before; here it is replaced by the variable's value."
            ]
          }
        ],
        "diagnoses": [
          "Error ~/.config/Claude/claude_desktop_config.json:13: `broken` has neither a command nor a URL",
          "Error ~/.config/Claude/claude_desktop_config.json:14: `worse` is not an object"
        ]
      }
    ]
    "#);
}

#[test]
fn claude_code_has_servers_for_everywhere_and_for_a_project() {
    let home = Home::new();
    let project = home.path("work/project").display().to_string();
    let text = r#"{
  "numStartups": 12,
  "projects": {
    "PROJECT": {
      "allowedTools": [],
      "mcpServers": {
        "db": { "type": "stdio", "command": "db-server", "args": [], "env": { "DSN": "${DSN:-sqlite://}" } },
        "shared": { "type": "http", "url": "https://project.example/mcp" }
      },
      "disabledMcpServers": ["db"]
    },
    "/elsewhere": { "mcpServers": { "hidden": { "command": "no" } } }
  },
  "mcpServers": {
    "shared": { "type": "http", "url": "https://general.example/mcp" },
    "linear": {
      "type": "sse",
      "url": "https://mcp.linear.app/sse",
      "headers": { "Authorization": "Bearer ${LINEAR_KEY}" },
      "headersHelper": "/opt/bin/headers",
      "oauth": { "clientId": "abc", "callbackPort": 8080 },
      "timeout": 60000
    }
  }
}
"#
    .replace("PROJECT", &project);
    insta::assert_snapshot!(home.read(ImportClient::ClaudeCode, ".claude.json", &text), @r#"
    [
      {
        "client": "claude-code",
        "path": "~/.claude.json",
        "servers": [
          {
            "name": "db",
            "line": 7,
            "definition": {
              "command": "db-server",
              "args": [],
              "env": {
                "DSN": "${DSN:-sqlite://}"
              }
            },
            "enabled": false,
            "dropped": [],
            "notes": []
          },
          {
            "name": "shared",
            "line": 8,
            "definition": {
              "type": "http",
              "url": "https://project.example/mcp"
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          },
          {
            "name": "linear",
            "line": 16,
            "definition": {
              "type": "sse",
              "url": "https://mcp.linear.app/sse",
              "headers": {
                "Authorization": "Bearer ${LINEAR_KEY}"
              },
              "headersHelper": "/opt/bin/headers",
              "oauth": {
                "clientId": "abc",
                "callbackPort": 8080
              },
              "timeout": 60000
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          }
        ],
        "diagnoses": [
          "Warning ~/.claude.json:12: left out: `hidden` of the project `/elsewhere`",
          "Warning ~/.claude.json:15: `shared` of this project stands before the general one"
        ]
      }
    ]
    "#);
}

#[test]
fn claude_code_project_file() {
    let home = Home::new();
    home.write(
        "work/project/.mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "alwaysLoad": true}}}"#,
    );
    insta::assert_snapshot!(home.show(&discover(&home.places(), ImportClient::ClaudeCode)), @r#"
    [
      {
        "client": "claude-code",
        "path": "~/work/project/.mcp.json",
        "servers": [
          {
            "name": "a",
            "line": 1,
            "definition": {
              "command": "a",
              "alwaysLoad": true
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
