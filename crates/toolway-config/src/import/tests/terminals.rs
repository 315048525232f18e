//! Codex, Gemini CLI, opencode and Goose.

use toolway_testkit::marked;

use super::*;

#[test]
fn codex() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Codex,
        ".codex/config.toml",
        r#"
model = "gpt-5"
# servers
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-server"]
env = { "MODE" = "fast" }
env_vars = ["DOCS_TOKEN", { name = "REGION", source = "local" }]
cwd = "/srv/docs"
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["search", "read"]

[mcp_servers."figma remote"]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Team" = "TEAM_ID" }
scopes = ["files:read"]
disabled_tools = ["delete"]
enabled = false
required = true

[mcp_servers.docs.tools.search]
approval_mode = "approve"

[profiles.fast]
model = "small"
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "codex",
        "path": "~/.codex/config.toml",
        "servers": [
          {
            "name": "docs",
            "line": 4,
            "definition": {
              "command": "npx",
              "args": [
                "-y",
                "docs-server"
              ],
              "env": {
                "MODE": "fast",
                "DOCS_TOKEN": "${DOCS_TOKEN}",
                "REGION": "${REGION}"
              },
              "cwd": "/srv/docs",
              "timeout": 45500,
              "includeTools": [
                "search",
                "read"
              ]
            },
            "enabled": true,
            "dropped": [
              "`startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`.",
              "`tools` was left out: write permission rules instead."
            ],
            "notes": []
          },
          {
            "name": "figma remote",
            "line": 14,
            "definition": {
              "type": "http",
              "url": "https://mcp.figma.com/mcp",
              "headers": {
                "X-Region": "eu",
                "X-Team": "${TEAM_ID}",
                "Authorization": "Bearer ${FIGMA_TOKEN}"
              },
              "oauth": {
                "scopes": [
                  "files:read"
                ]
              },
              "excludeTools": [
                "delete"
              ]
            },
            "enabled": false,
            "dropped": [
              "`required` was left out: no server is required to start."
            ],
            "notes": []
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn gemini() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Gemini,
        ".gemini/settings.json",
        marked!(r#"{
  "theme": "Dracula",
  "mcp": { "excluded": ["sse"] },
  "mcpServers": {
    "local": {
      "command": "python",
      "args": ["-m", "server", "$HOME/data", "costs $5"],
      "env": { "KEY": "${KEY}", "OTHER": "$OTHER_KEY" },
      "cwd": "./servers",
      "timeout": 15000,
      "trust": true,
      "includeTools": ["safe"],
      "excludeTools": ["danger"]
    },
    "http": { "httpUrl": "https://h.example/mcp", "headers": { "Authorization": "Bearer $TOKEN" }, "timeout": 500 },
    "sse": { "url": "https://s.example/events", "trust": false },
    "typed": { "url": "https://t.example/mcp", "type": "http", "oauth": { "enabled": true, "clientId": "c", "clientSecret": ""#, r#"", "scopes": ["a"], "tokenUrl": "https://t.example/token" } },
    "google": { "httpUrl": "https://g.example/mcp", "authProviderType": "google_credentials" }
  }
}
"#),
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "gemini",
        "path": "~/.gemini/settings.json",
        "servers": [
          {
            "name": "local",
            "line": 5,
            "definition": {
              "command": "python",
              "args": [
                "-m",
                "server",
                "${HOME}/data",
                "costs $5"
              ],
              "env": {
                "KEY": "${KEY}",
                "OTHER": "${OTHER_KEY}"
              },
              "cwd": "./servers",
              "timeout": 15000,
              "includeTools": [
                "safe"
              ],
              "excludeTools": [
                "danger"
              ]
            },
            "enabled": true,
            "dropped": [
              "`trust` was left out: calls are asked about unless a permission rule allows them."
            ],
            "notes": []
          },
          {
            "name": "http",
            "line": 15,
            "definition": {
              "type": "http",
              "url": "https://h.example/mcp",
              "headers": {
                "Authorization": "Bearer ${TOKEN}"
              }
            },
            "enabled": true,
            "dropped": [
              "`timeout` of 500 is outside what `timeout` takes (from 1,000 ms)."
            ],
            "notes": []
          },
          {
            "name": "sse",
            "line": 16,
            "definition": {
              "type": "sse",
              "url": "https://s.example/events"
            },
            "enabled": false,
            "dropped": [],
            "notes": [
              "no transport was named; a plain `url` means `sse` in Gemini CLI."
            ]
          },
          {
            "name": "typed",
            "line": 17,
            "definition": {
              "type": "http",
              "url": "https://t.example/mcp",
              "oauth": {
                "clientId": "c",
                "scopes": [
                  "a"
                ]
              }
            },
            "enabled": true,
            "dropped": [
              "`oauth.clientSecret` was left out: client secrets do not belong in this file.",
              "`oauth.tokenUrl` has no counterpart."
            ],
            "notes": []
          },
          {
            "name": "google",
            "line": 18,
            "definition": {
              "type": "http",
              "url": "https://g.example/mcp"
            },
            "enabled": true,
            "dropped": [
              "`authProviderType` was left out: this kind of login is Google's own."
            ],
            "notes": []
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn opencode() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Opencode,
        "work/project/opencode.jsonc",
        r#"{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "local": {
      "type": "local",
      "command": ["bun", "x", "my-server", "{env:FLAG}"],
      "environment": { "KEY": "{env:MY_KEY}", "PASSWORD": "{file:~/.password}" },
      "enabled": false,
      "timeout": 5000,
    },
    "remote": {
      "type": "remote",
      "url": "https://r.example/mcp",
      "headers": { "Authorization": "Bearer {env:R_KEY}" },
      "oauth": { "clientId": "id", "clientSecret": "{env:SECRET}", "scope": "a b" },
    },
    "plain": { "type": "remote", "url": "https://p.example/mcp", "oauth": false },
    "provided": { "enabled": true },
  },
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "opencode",
        "path": "~/work/project/opencode.jsonc",
        "servers": [
          {
            "name": "local",
            "line": 4,
            "definition": {
              "command": "bun",
              "args": [
                "x",
                "my-server",
                "${FLAG}"
              ],
              "env": {
                "KEY": "${MY_KEY}",
                "PASSWORD": "{file:~/.password}"
              },
              "timeout": 5000
            },
            "enabled": false,
            "dropped": [
              "`{file:~/.password}` puts in the content of a file, which Toolway does not; use a variable."
            ],
            "notes": []
          },
          {
            "name": "remote",
            "line": 11,
            "definition": {
              "type": "http",
              "url": "https://r.example/mcp",
              "headers": {
                "Authorization": "Bearer ${R_KEY}"
              },
              "oauth": {
                "clientId": "id",
                "scopes": "a b"
              }
            },
            "enabled": true,
            "dropped": [
              "`oauth.clientSecret` was left out: client secrets do not belong in this file."
            ],
            "notes": []
          },
          {
            "name": "plain",
            "line": 17,
            "definition": {
              "type": "http",
              "url": "https://p.example/mcp"
            },
            "enabled": true,
            "dropped": [
              "`oauth` was left out: logins are found out by themselves."
            ],
            "notes": []
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn opencode_second_version() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Opencode,
        "opencode.json",
        r#"{
  "mcp": {
    "servers": {
      "a": { "type": "local", "command": ["a"], "cwd": ".", "disabled": true, "timeout": { "startup": 1000, "request": 20000 } }
    }
  }
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "opencode",
        "path": "~/opencode.json",
        "servers": [
          {
            "name": "a",
            "line": 4,
            "definition": {
              "command": "a",
              "cwd": ".",
              "timeout": 20000
            },
            "enabled": false,
            "dropped": [
              "`timeout.startup` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`."
            ],
            "notes": []
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn goose() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Goose,
        ".config/goose/config.yaml",
        r"GOOSE_PROVIDER: anthropic
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  github:
    enabled: true
    type: stdio
    name: github
    description: GitHub
    cmd: npx
    args:
      - -y
      - server-github
      - 8080
    envs:
      MODE: read
    env_keys:
      - GITHUB_TOKEN
    timeout: 120
    bundled: null
    available_tools: []
  search:
    enabled: false
    type: streamable_http
    uri: https://search.example/mcp
    headers:
      Authorization: Bearer ${SEARCH_TOKEN}
    available_tools: [query]
  nested:
    enabled: true
    config:
      type: sse
      uri: https://nested.example/sse
",
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "goose",
        "path": "~/.config/goose/config.yaml",
        "servers": [
          {
            "name": "github",
            "line": null,
            "definition": {
              "command": "npx",
              "args": [
                "-y",
                "server-github",
                "8080"
              ],
              "env": {
                "MODE": "read",
                "GITHUB_TOKEN": "${GITHUB_TOKEN}"
              },
              "timeout": 120000
            },
            "enabled": true,
            "dropped": [],
            "notes": [
              "the variables in `env_keys` come from the environment here, not from Goose's keyring."
            ]
          },
          {
            "name": "search",
            "line": null,
            "definition": {
              "type": "http",
              "url": "https://search.example/mcp",
              "headers": {
                "Authorization": "Bearer ${SEARCH_TOKEN}"
              },
              "includeTools": [
                "query"
              ]
            },
            "enabled": false,
            "dropped": [],
            "notes": []
          },
          {
            "name": "nested",
            "line": null,
            "definition": {
              "type": "sse",
              "url": "https://nested.example/sse"
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          }
        ],
        "diagnoses": [
          "Warning ~/.config/goose/config.yaml:1: `developer` cannot be taken over: built into Goose"
        ]
      }
    ]
    "#);
}
