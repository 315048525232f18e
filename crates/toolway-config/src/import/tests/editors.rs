//! Cursor, VS Code, Windsurf and Zed.

use toolway_testkit::marked;

use super::*;

#[test]
fn cursor() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Cursor,
        ".cursor/mcp.json",
        marked!(
            r#"{
  // shared with the team
  "mcpServers": {
    "local": {
      "type": "stdio",
      "command": "${workspaceFolder}/bin/server",
      "args": ["--home", "${userHome}${/}x"],
      "env": { "TOKEN": "${env:TOKEN}" },
      "envFile": "${workspaceFolder}/.env",
    },
    "remote": {
      "url": "https://mcp.example.com/mcp",
      "headers": { "Authorization": "Bearer ${env:API_KEY}" },
      "auth": { "CLIENT_ID": "${env:ID}", "CLIENT_SECRET": ""#,
            r#"", "scopes": ["read", "write"] },
    },
    "old": { "url": "https://old.example.com/sse?x=1", "disabled": true },
  },
}
"#
        ),
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "cursor",
        "path": "~/.cursor/mcp.json",
        "servers": [
          {
            "name": "local",
            "line": 4,
            "definition": {
              "command": "${TOOLWAY_PROJECT_DIR}/bin/server",
              "args": [
                "--home",
                "${HOME}/x"
              ],
              "env": {
                "TOKEN": "${TOKEN}"
              }
            },
            "enabled": true,
            "dropped": [
              "`envFile` was left out: put its variables into `env`."
            ],
            "notes": []
          },
          {
            "name": "remote",
            "line": 11,
            "definition": {
              "type": "http",
              "url": "https://mcp.example.com/mcp",
              "headers": {
                "Authorization": "Bearer ${API_KEY}"
              },
              "oauth": {
                "clientId": "${ID}",
                "scopes": [
                  "read",
                  "write"
                ]
              }
            },
            "enabled": true,
            "dropped": [
              "`auth.CLIENT_SECRET` was left out: client secrets do not belong in this file."
            ],
            "notes": [
              "no transport was named; `http` was taken from the URL."
            ]
          },
          {
            "name": "old",
            "line": 16,
            "definition": {
              "type": "sse",
              "url": "https://old.example.com/sse?x=1"
            },
            "enabled": false,
            "dropped": [],
            "notes": [
              "no transport was named; `sse` was taken from the URL."
            ]
          }
        ],
        "diagnoses": []
      }
    ]
    "#);
}

#[test]
fn vscode() {
    let home = Home::new();
    let found = home.read(
        ImportClient::VsCode,
        "work/project/.vscode/mcp.json",
        r#"{
  "inputs": [
    { "type": "promptString", "id": "perplexity-key", "description": "API key", "password": true },
    { "type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu" },
    { "type": "command", "id": "branch", "command": "git.branch" }
  ],
  "servers": {
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask", "--in", "${workspaceFolderBasename}"],
      "env": { "PERPLEXITY_API_KEY": "${input:perplexity-key}", "REGION": "${input:region}", "UNSET": null },
      "cwd": "${workspaceFolder}",
      "envFile": "${workspaceFolder}/.env",
      "dev": { "watch": "src/**" },
      "sandboxEnabled": true
    },
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": { "X-Branch": "${input:branch}", "X-Theme": "${config:workbench.theme}" },
      "gallery": "https://gallery.example/github",
      "version": "1.0.0"
    },
    "socket": { "type": "http", "url": "unix:///tmp/server.sock" }
  }
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "vscode",
        "path": "~/work/project/.vscode/mcp.json",
        "servers": [
          {
            "name": "perplexity",
            "line": 8,
            "definition": {
              "command": "npx",
              "args": [
                "-y",
                "server-perplexity-ask",
                "--in",
                "${workspaceFolderBasename}"
              ],
              "env": {
                "PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}",
                "REGION": "${REGION}"
              },
              "cwd": "${TOOLWAY_PROJECT_DIR}"
            },
            "enabled": true,
            "dropped": [
              "`${workspaceFolderBasename}` is known only to the editor; replace it by hand.",
              "`env.UNSET` takes a variable away; a server here starts with a clean environment anyway.",
              "`envFile` was left out: put its variables into `env`.",
              "`dev` was left out: Toolway does not restart servers for debugging.",
              "`sandboxEnabled` was left out: the sandbox is VS Code's own.",
              "the input `region` has a default in VS Code, which stays behind."
            ],
            "notes": [
              "the input `perplexity-key` is asked for by the editor; here it is the environment variable `PERPLEXITY_KEY`.",
              "the input `region` is asked for by the editor; here it is the environment variable `REGION`."
            ]
          },
          {
            "name": "github",
            "line": 18,
            "definition": {
              "type": "http",
              "url": "https://api.githubcopilot.com/mcp/",
              "headers": {
                "X-Branch": "${BRANCH}",
                "X-Theme": "${config:workbench.theme}"
              }
            },
            "enabled": true,
            "dropped": [
              "`${config:workbench.theme}` is known only to the editor; replace it by hand.",
              "the input `branch` runs a command of VS Code, which stays behind."
            ],
            "notes": [
              "the input `branch` is asked for by the editor; here it is the environment variable `BRANCH`."
            ]
          }
        ],
        "diagnoses": [
          "Warning ~/work/project/.vscode/mcp.json:25: cannot be taken over: Toolway does not connect to `unix://`"
        ]
      }
    ]
    "#);
}

#[test]
fn vscode_with_the_key_of_others() {
    let home = Home::new();
    let found = home.read(
        ImportClient::VsCode,
        ".vscode/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n",
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "vscode",
        "path": "~/.vscode/mcp.json",
        "servers": [
          {
            "name": "a",
            "line": 3,
            "definition": {
              "command": "a"
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          }
        ],
        "diagnoses": [
          "Warning ~/.vscode/mcp.json:3: the servers stand under `mcpServers`; VS Code itself reads only `servers`"
        ]
      }
    ]
    "#);
}

#[test]
fn windsurf() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Windsurf,
        ".codeium/windsurf/mcp_config.json",
        r#"{
  "mcpServers": {
    "figma": { "serverUrl": "https://figma.example/mcp", "headers": { "KEY": "${env:FIGMA_KEY}" }, "disabledTools": ["delete"] },
    "git": { "command": "uvx", "args": ["mcp-server-git"], "disabled": true, "alwaysAllow": ["git_log"] }
  }
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "windsurf",
        "path": "~/.codeium/windsurf/mcp_config.json",
        "servers": [
          {
            "name": "figma",
            "line": 3,
            "definition": {
              "type": "http",
              "url": "https://figma.example/mcp",
              "headers": {
                "KEY": "${FIGMA_KEY}"
              },
              "excludeTools": [
                "delete"
              ]
            },
            "enabled": true,
            "dropped": [],
            "notes": [
              "no transport was named; `http` was taken from the URL."
            ]
          },
          {
            "name": "git",
            "line": 4,
            "definition": {
              "command": "uvx",
              "args": [
                "mcp-server-git"
              ]
            },
            "enabled": false,
            "dropped": [
              "`alwaysAllow` was left out: write permission rules instead."
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
fn zed() {
    let home = Home::new();
    let found = home.read(
        ImportClient::Zed,
        ".config/zed/settings.json",
        r#"// Zed settings
{
  "theme": "One Dark",
  "lsp": { "rust-analyzer": { "binary": { "path": "ra" } } },
  "context_servers": {
    "new": { "source": "custom", "enabled": false, "command": "npx", "args": ["-y", "x"], "env": {}, "timeout": 90 },
    "old": { "source": "custom", "command": { "path": "uvx", "args": ["y"], "env": { "A": "1" }, "timeout": 60000 } },
    "web": { "url": "https://web.example/mcp", "headers": { "Authorization": "t" } },
    "postgres": { "source": "extension", "settings": { "database_url": "postgres://" } },
  },
}
"#,
    );
    insta::assert_snapshot!(found, @r#"
    [
      {
        "client": "zed",
        "path": "~/.config/zed/settings.json",
        "servers": [
          {
            "name": "new",
            "line": 6,
            "definition": {
              "command": "npx",
              "args": [
                "-y",
                "x"
              ],
              "timeout": 90000
            },
            "enabled": false,
            "dropped": [],
            "notes": [
              "`timeout` of 90 was taken as seconds."
            ]
          },
          {
            "name": "old",
            "line": 7,
            "definition": {
              "command": "uvx",
              "args": [
                "y"
              ],
              "env": {
                "A": "1"
              },
              "timeout": 60000
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          },
          {
            "name": "web",
            "line": 8,
            "definition": {
              "type": "http",
              "url": "https://web.example/mcp",
              "headers": {
                "Authorization": "t"
              }
            },
            "enabled": true,
            "dropped": [],
            "notes": []
          }
        ],
        "diagnoses": [
          "Warning ~/.config/zed/settings.json:9: `postgres` is started by a Zed extension and cannot be taken over"
        ]
      }
    ]
    "#);
}
