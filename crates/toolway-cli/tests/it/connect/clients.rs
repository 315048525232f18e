//! Every client: its own words for the entry, and a file that stays a person's file.

use std::path::PathBuf;

use insta::assert_snapshot;
use toolway_testkit::{TempHome, marked};

use super::{connect, home};

/// Connects a client whose file holds this text, with its servers moved; shows what the file holds
/// then, and sees that taking it back gives the same bytes.
fn moved(client: &str, file: &str, text: &str) -> String {
    let home = home();
    let path = home.write(home.home().join(file), text);
    let said = connect(&home, &[client, "--move", "--yes"]).expect_code(0);
    let written = home.read(&path);
    let listed = connect(&home, &[]).expect_code(0);
    let row = listed.stdout.lines().find(|row| row.starts_with(client));
    let is_connected = row.is_some_and(|row| row.contains("as toolway"));
    assert!(is_connected, "{listed}");
    connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
    assert_eq!(home.read(&path), text);
    format!("{said}----- file\n{}", home.normalise(&written))
}

#[test]
fn claude_desktop() {
    let text = r#"{
    "globalShortcut": "",
    "mcpServers": {
        "my files": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
        }
    }
}"#;
    assert_snapshot!(moved("claude-desktop", ".config/Claude/claude_desktop_config.json", text), @r#"
    exit: 0
    ----- stdout
    Claude Desktop ([HOME]/.config/Claude/claude_desktop_config.json)
      @@ -2,7 +2,7 @@
           "globalShortcut": "",
           "mcpServers": {
      -        "my files": {
      -            "command": "npx",
      -            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]
      +        "toolway": {
      +            "command": "[HOME]/bin/toolway",
      +            "args": ["serve"]
               }
           }
    1 server moves behind Toolway:
      + my files  npx -y @modelcontextprotocol/server-filesystem /home/me
    ----- stderr
    added `my files` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Claude Desktop: [HOME]/.config/Claude/claude_desktop_config.json:4
    the file as it was: [HOME]/.config/Claude/claude_desktop_config.json.toolway.bak
    hint: restart Claude Desktop to use it; take it back with `toolway connect claude-desktop --undo`
    ----- file
    {
        "globalShortcut": "",
        "mcpServers": {
            "toolway": {
                "command": "[HOME]/bin/toolway",
                "args": ["serve"]
            }
        }
    }
    "#);
}

#[test]
fn claude_code() {
    let text = r#"{
  "numStartups": 184,
  "oauthAccount": { "accountUuid": "f0", "emailAddress": "me@example.com" },
  "projects": {
    "/home/me/work": { "allowedTools": [], "mcpServers": { "local": { "command": "local" } } }
  },
  "mcpServers": {
    "tracker": { "type": "http", "url": "https://tracker.example/mcp" },
    "files": { "type": "stdio", "command": "npx", "args": ["-y", "server-files"], "env": {} }
  },
  "tipsHistory": { "shift-enter": 12 }
}
"#;
    assert_snapshot!(moved("claude-code", ".claude.json", text), @r#"
    exit: 0
    ----- stdout
    Claude Code ([HOME]/.claude.json)
      @@ -6,6 +6,9 @@
         },
         "mcpServers": {
      -    "tracker": { "type": "http", "url": "https://tracker.example/mcp" },
      -    "files": { "type": "stdio", "command": "npx", "args": ["-y", "server-files"], "env": {} }
      +    "toolway": {
      +      "type": "stdio",
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
         },
         "tipsHistory": { "shift-enter": 12 }
    2 servers move behind Toolway:
      + tracker  https://tracker.example/mcp
      + files    npx -y server-files
    ----- stderr
    warning: [HOME]/.claude.json:5: left out: `local` of the project `/home/me/work`
    hint: run `toolway import claude-code -s local` in that directory
    added `tracker` to the user scope: [HOME]/.config/toolway/settings.json:3
    added `files` to the user scope: [HOME]/.config/toolway/settings.json:7
    connected Claude Code: [HOME]/.claude.json:8
    the file as it was: [HOME]/.claude.json.toolway.bak
    hint: restart Claude Code to use it; take it back with `toolway connect claude-code --undo`
    ----- file
    {
      "numStartups": 184,
      "oauthAccount": { "accountUuid": "f0", "emailAddress": "me@example.com" },
      "projects": {
        "/home/me/work": { "allowedTools": [], "mcpServers": { "local": { "command": "local" } } }
      },
      "mcpServers": {
        "toolway": {
          "type": "stdio",
          "command": "toolway",
          "args": ["serve"]
        }
      },
      "tipsHistory": { "shift-enter": 12 }
    }
    "#);
}

#[test]
fn cursor() {
    let text = "{ \"mcpServers\": { \"docs\": { \"url\": \"https://docs.example/mcp\" } } }";
    assert_snapshot!(moved("cursor", ".cursor/mcp.json", text), @r#"
    exit: 0
    ----- stdout
    Cursor ([HOME]/.cursor/mcp.json)
      @@ -1 +1,8 @@
      -{ "mcpServers": { "docs": { "url": "https://docs.example/mcp" } } }
      +{
      +  "mcpServers": {
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
      +  }
      +}
    1 server moves behind Toolway:
      + docs  https://docs.example/mcp
          ~ no transport was named; `http` was taken from the URL
    ----- stderr
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Cursor: [HOME]/.cursor/mcp.json:3
    the file as it was: [HOME]/.cursor/mcp.json.toolway.bak
    hint: restart Cursor to use it; take it back with `toolway connect cursor --undo`
    ----- file
    {
      "mcpServers": {
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
}

#[test]
fn vscode() {
    let text = "{\r\n\t// for all workspaces\r\n\t\"inputs\": [],\r\n\t\"servers\": {\r\n\t\t\"github\": {\r\n\t\t\t\"type\": \"http\",\r\n\t\t\t\"url\": \"https://api.githubcopilot.com/mcp/\"\r\n\t\t}\r\n\t}\r\n}\r\n";
    let shown = moved("vscode", ".config/Code/User/mcp.json", text);
    let file = shown.split("----- file\n").nth(1).unwrap();
    assert_eq!(file.matches('\n').count(), file.matches("\r\n").count());
    assert_snapshot!(shown.replace('\r', ""), @r#"
    exit: 0
    ----- stdout
    VS Code ([HOME]/.config/Code/User/mcp.json)
      @@ -3,7 +3,8 @@
         "inputs": [],
         "servers": {
      -    "github": {
      -      "type": "http",
      -      "url": "https://api.githubcopilot.com/mcp/"
      +    "toolway": {
      +      "type": "stdio",
      +      "command": "toolway",
      +      "args": ["serve"]
           }
         }
    1 server moves behind Toolway:
      + github  https://api.githubcopilot.com/mcp/
    ----- stderr
    added `github` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected VS Code: [HOME]/.config/Code/User/mcp.json:5
    the file as it was: [HOME]/.config/Code/User/mcp.json.toolway.bak
    hint: restart VS Code to use it; take it back with `toolway connect vscode --undo`
    ----- file
    {
    	// for all workspaces
    	"inputs": [],
    	"servers": {
    		"toolway": {
    			"type": "stdio",
    			"command": "toolway",
    			"args": ["serve"]
    		}
    	}
    }
    "#);
}

#[test]
fn codex() {
    let text = r#"model = "gpt-6-codex"
approval_policy = "on-request"

[projects."/home/me/work"]
trust_level = "trusted"

# Where I keep notes.
[mcp_servers.notes]
command = "npx"
args = ["-y", "notes"] # no version on purpose
startup_timeout_sec = 20

[mcp_servers.notes.env]
NOTES = "/home/me/notes"

[tui]
notifications = true
"#;
    assert_snapshot!(moved("codex", ".codex/config.toml", text), @r#"
    exit: 0
    ----- stdout
    Codex ([HOME]/.codex/config.toml)
      @@ -6,11 +6,8 @@

       # Where I keep notes.
      -[mcp_servers.notes]
      -command = "npx"
      -args = ["-y", "notes"] # no version on purpose
      -startup_timeout_sec = 20

      -[mcp_servers.notes.env]
      -NOTES = "[redacted]"
      +[mcp_servers.toolway]
      +command = "toolway"
      +args = ["serve"]

       [tui]
    1 server moves behind Toolway:
      + notes  npx -y notes
          env: NOTES
          ! `startup_timeout_sec` was left out: the time to connect is set for all servers by `MCP_TIMEOUT`
    ----- stderr
    added `notes` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Codex: [HOME]/.codex/config.toml:9
    the file as it was: [HOME]/.codex/config.toml.toolway.bak
    hint: restart Codex to use it; take it back with `toolway connect codex --undo`
    ----- file
    model = "gpt-6-codex"
    approval_policy = "on-request"

    [projects."/home/me/work"]
    trust_level = "trusted"

    # Where I keep notes.

    [mcp_servers.toolway]
    command = "toolway"
    args = ["serve"]

    [tui]
    notifications = true
    "#);
}

#[test]
fn zed() {
    let text = r#"// Zed settings
//
// For information on how to configure Zed, see the Zed documentation.
{
  "theme": "One Dark", // the best
  "context_servers": {
    "mcp-server-context7": { "source": "extension", "enabled": true, "settings": {} },
    "notes": {
      "source": "custom",
      "command": "npx",
      "args": ["-y", "notes"],
      "env": null,
    },
  },
  "vim_mode": true,
}
"#;
    assert_snapshot!(moved("zed", ".config/zed/settings.json", text), @r#"
    exit: 0
    ----- stdout
    Zed ([HOME]/.config/zed/settings.json)
      @@ -6,9 +6,8 @@
         "context_servers": {
           "mcp-server-context7": { "source": "extension", "enabled": true, "settings": {} },
      -    "notes": {
      +    "toolway": {
             "source": "custom",
      -      "command": "npx",
      -      "args": ["-y", "notes"],
      -      "env": null,
      +      "command": "toolway",
      +      "args": ["serve"]
           },
         },
    1 server moves behind Toolway:
      + notes  npx -y notes
    ----- stderr
    warning: [HOME]/.config/zed/settings.json:7: `mcp-server-context7` is started by a Zed extension and cannot be taken over
    added `notes` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Zed: [HOME]/.config/zed/settings.json:8
    the file as it was: [HOME]/.config/zed/settings.json.toolway.bak
    hint: restart Zed to use it; take it back with `toolway connect zed --undo`
    ----- file
    // Zed settings
    //
    // For information on how to configure Zed, see the Zed documentation.
    {
      "theme": "One Dark", // the best
      "context_servers": {
        "mcp-server-context7": { "source": "extension", "enabled": true, "settings": {} },
        "toolway": {
          "source": "custom",
          "command": "toolway",
          "args": ["serve"]
        },
      },
      "vim_mode": true,
    }
    "#);
}

#[test]
fn gemini() {
    let text = r#"{
  "theme": "Default",
  "mcp": { "allowed": ["docs", "search"] },
  "mcpServers": {
    "docs": { "httpUrl": "https://docs.example/mcp", "trust": true },
    "search": { "command": "search", "timeout": 30000 }
  }
}
"#;
    assert_snapshot!(moved("gemini", ".gemini/settings.json", text), @r#"
    exit: 0
    ----- stdout
    Gemini CLI ([HOME]/.gemini/settings.json)
      @@ -1,8 +1,10 @@
       {
         "theme": "Default",
      -  "mcp": { "allowed": ["docs", "search"] },
      +  "mcp": { "allowed": ["docs", "search", "toolway"] },
         "mcpServers": {
      -    "docs": { "httpUrl": "https://docs.example/mcp", "trust": true },
      -    "search": { "command": "search", "timeout": 30000 }
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
         }
       }
    2 servers move behind Toolway:
      + docs    https://docs.example/mcp
          ! `trust` was left out: calls are asked about unless a permission rule allows them
      + search  search
    ----- stderr
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:3
    added `search` to the user scope: [HOME]/.config/toolway/settings.json:7
    connected Gemini CLI: [HOME]/.gemini/settings.json:5
    the file as it was: [HOME]/.gemini/settings.json.toolway.bak
    hint: restart Gemini CLI to use it; take it back with `toolway connect gemini --undo`
    ----- file
    {
      "theme": "Default",
      "mcp": { "allowed": ["docs", "search", "toolway"] },
      "mcpServers": {
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
}

#[test]
fn windsurf() {
    let text = r#"{
  "mcpServers": {
    "docs": { "serverUrl": "https://docs.example/mcp", "disabled": true }
  }
}
"#;
    assert_snapshot!(moved("windsurf", ".codeium/windsurf/mcp_config.json", text), @r#"
    exit: 0
    ----- stdout
    Windsurf ([HOME]/.codeium/windsurf/mcp_config.json)
      @@ -1,5 +1,8 @@
       {
         "mcpServers": {
      -    "docs": { "serverUrl": "https://docs.example/mcp", "disabled": true }
      +    "toolway": {
      +      "command": "toolway",
      +      "args": ["serve"]
      +    }
         }
       }
    1 server moves behind Toolway:
      + docs  https://docs.example/mcp
          switched off there, so switched off here
          ~ no transport was named; `http` was taken from the URL
    ----- stderr
    added `docs` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Windsurf: [HOME]/.codeium/windsurf/mcp_config.json:3
    the file as it was: [HOME]/.codeium/windsurf/mcp_config.json.toolway.bak
    hint: restart Windsurf to use it; take it back with `toolway connect windsurf --undo`
    ----- file
    {
      "mcpServers": {
        "toolway": {
          "command": "toolway",
          "args": ["serve"]
        }
      }
    }
    "#);
}

#[test]
fn goose() {
    let text = r"# Written by goose configure, and by me.
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  # slow, but good
  tracker:
    enabled: true
    type: stdio
    name: tracker
    cmd: uvx
    args:
    - tracker-mcp
    envs: {}
    env_keys:
    - TRACKER_KEY
    timeout: 60
GOOSE_MODEL: claude
";
    assert_snapshot!(moved("goose", ".config/goose/config.yaml", text), @r#"
    exit: 0
    ----- stdout
    Goose ([HOME]/.config/goose/config.yaml)
      @@ -9,14 +9,12 @@
           type: builtin
         # slow, but good
      -  tracker:
      +  toolway:
           enabled: true
           type: stdio
      -    name: tracker
      -    cmd: uvx
      +    name: toolway
      +    description: ""
      +    cmd: toolway
           args:
      -    - tracker-mcp
      -    envs: {}
      -    env_keys:
      -    - TRACKER_KEY
      -    timeout: 60
      +    - serve
      +    timeout: 300
       GOOSE_MODEL: claude
    1 server moves behind Toolway:
      + tracker  uvx tracker-mcp
          env: TRACKER_KEY
          ~ the variables in `env_keys` come from the environment here, not from Goose's keyring
    ----- stderr
    warning: [HOME]/.config/goose/config.yaml:1: `developer` cannot be taken over: built into Goose
    added `tracker` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected Goose: [HOME]/.config/goose/config.yaml:11
    the file as it was: [HOME]/.config/goose/config.yaml.toolway.bak
    hint: restart Goose to use it; take it back with `toolway connect goose --undo`
    ----- file
    # Written by goose configure, and by me.
    GOOSE_PROVIDER: anthropic
    extensions:
      developer:
        bundled: true
        enabled: true
        name: developer
        timeout: 300
        type: builtin
      # slow, but good
      toolway:
        enabled: true
        type: stdio
        name: toolway
        description: ""
        cmd: toolway
        args:
        - serve
        timeout: 300
    GOOSE_MODEL: claude
    "#);
}

#[test]
fn opencode() {
    let text = r#"{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "jira": { "enabled": false }, // of the company
    "notes": { "type": "local", "command": ["npx", "-y", "notes"], "environment": { "A": "b" } }
  }
}
"#;
    assert_snapshot!(moved("opencode", ".config/opencode/opencode.jsonc", text), @r#"
    exit: 0
    ----- stdout
    opencode ([HOME]/.config/opencode/opencode.jsonc)
      @@ -3,5 +3,9 @@
         "mcp": {
           "jira": { "enabled": false }, // of the company
      -    "notes": { "type": "local", "command": ["npx", "-y", "notes"], "environment": { "A": "[redacted]" } }
      +    "toolway": {
      +      "type": "local",
      +      "command": ["toolway", "serve"],
      +      "enabled": true
      +    }
         }
       }
    1 server moves behind Toolway:
      + notes  npx -y notes
          env: A
    ----- stderr
    added `notes` to the user scope: [HOME]/.config/toolway/settings.json:3
    connected opencode: [HOME]/.config/opencode/opencode.jsonc:5
    the file as it was: [HOME]/.config/opencode/opencode.jsonc.toolway.bak
    hint: restart opencode to use it; take it back with `toolway connect opencode --undo`
    ----- file
    {
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "jira": { "enabled": false }, // of the company
        "toolway": {
          "type": "local",
          "command": ["toolway", "serve"],
          "enabled": true
        }
      }
    }
    "#);
}

#[test]
fn opencode_in_its_second_version() {
    let text = "{\n  \"mcp\": {\n    \"servers\": {}\n  }\n}\n";
    let shown = moved("opencode", ".config/opencode/opencode.json", text);
    assert_snapshot!(shown.split("----- file\n").nth(1).unwrap(), @r#"
    {
      "mcp": {
        "servers": {
          "toolway": {
            "type": "local",
            "command": ["toolway", "serve"],
            "enabled": true
          }
        }
      }
    }
    "#);
}

/// The files of every client that takes an address, and how each is told where the token is.
const REMOTE: [(&str, &str); 9] = [
    ("claude-code", ".claude.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("goose", ".config/goose/config.yaml"),
];

/// The token of the gateway.
const TOKEN: &str = marked!("token-");

fn file(home: &TempHome, path: &str) -> PathBuf {
    home.home().join(path)
}

#[test]
fn a_running_gateway_is_named_by_its_address() {
    let home = home();
    let mut all: Vec<String> = Vec::new();
    for (client, path) in REMOTE {
        let words = [client, "--url", "http://127.0.0.1:7777/mcp", "--yes"];
        connect(&home, &words).expect_code(0);
        all.extend([client.to_owned(), home.read(file(&home, path))]);
        let listed = connect(&home, &[]);
        let row = listed.stdout.lines().find(|row| row.starts_with(client));
        assert!(
            row.is_some_and(|row| row.contains("as toolway")),
            "{listed}"
        );
        connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
        assert!(!file(&home, path).exists(), "{client}");
    }
    assert_snapshot!(all.join("\n"), @r#"
    claude-code
    {
      "mcpServers": {
        "toolway": {
          "type": "http",
          "url": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    cursor
    {
      "mcpServers": {
        "toolway": {
          "url": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    vscode
    {
      "servers": {
        "toolway": {
          "type": "http",
          "url": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    codex
    [mcp_servers.toolway]
    url = "http://127.0.0.1:7777/mcp"

    gemini
    {
      "mcpServers": {
        "toolway": {
          "httpUrl": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    windsurf
    {
      "mcpServers": {
        "toolway": {
          "serverUrl": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    zed
    {
      "context_servers": {
        "toolway": {
          "url": "http://127.0.0.1:7777/mcp"
        }
      }
    }

    opencode
    {
      "mcp": {
        "toolway": {
          "type": "remote",
          "url": "http://127.0.0.1:7777/mcp",
          "enabled": true
        }
      }
    }

    goose
    extensions:
      toolway:
        enabled: true
        type: streamable_http
        name: toolway
        description: ""
        uri: "http://127.0.0.1:7777/mcp"
        timeout: 300
    "#);
}

#[test]
fn a_token_is_named_in_the_words_of_each_client() {
    let home = home();
    let token = home.write(home.home().join("my keys/token"), format!("{TOKEN}\n"));
    let mut all: Vec<String> = Vec::new();
    for (client, path) in REMOTE {
        let words = [
            client,
            "--url",
            "http://127.0.0.1:7777/mcp",
            "--token-file",
            token.to_str().unwrap(),
            "--yes",
        ];
        let said = connect(&home, &words).expect_code(0);
        // One client only takes it written out, and even that is not shown.
        let written = home.read(file(&home, path));
        assert_eq!(written.contains(TOKEN), client == "zed", "{client}");
        let written = written.replace(TOKEN, "[TOKEN]");
        let notes = said.stderr.lines().filter(|line| line.starts_with("note:"));
        all.extend([client.to_owned(), home.normalise(&written)]);
        all.extend(notes.map(str::to_owned));
        connect(&home, &[client, "--undo", "--yes"]).expect_code(0);
        assert!(!file(&home, path).exists(), "{client}");
    }
    assert_snapshot!(all.join("\n"), @r#"
    claude-code
    {
      "mcpServers": {
        "toolway": {
          "type": "http",
          "url": "http://127.0.0.1:7777/mcp",
          "headersHelper": "printf '{\"Authorization\":\"Bearer %s\"}' \"$(cat '[HOME]/my keys/token')\""
        }
      }
    }

    cursor
    {
      "mcpServers": {
        "toolway": {
          "url": "http://127.0.0.1:7777/mcp",
          "headers": {
            "Authorization": "Bearer ${env:TOOLWAY_TOKEN}"
          }
        }
      }
    }

    note: Cursor takes the token from `TOOLWAY_TOKEN`: have it set where Cursor starts, e.g. `export TOOLWAY_TOKEN="$(cat '[HOME]/my keys/token')"`
    vscode
    {
      "servers": {
        "toolway": {
          "type": "http",
          "url": "http://127.0.0.1:7777/mcp",
          "headers": {
            "Authorization": "Bearer ${input:toolway-token}"
          }
        }
      },
      "inputs": [
        {
          "type": "promptString",
          "id": "toolway-token",
          "description": "Token of Toolway",
          "password": true
        }
      ]
    }

    note: VS Code asks for the token once and keeps it: paste what is in `[HOME]/my keys/token`
    codex
    [mcp_servers.toolway]
    url = "http://127.0.0.1:7777/mcp"
    bearer_token_env_var = "TOOLWAY_TOKEN"

    note: Codex takes the token from `TOOLWAY_TOKEN`: have it set where Codex starts, e.g. `export TOOLWAY_TOKEN="$(cat '[HOME]/my keys/token')"`
    gemini
    {
      "mcpServers": {
        "toolway": {
          "httpUrl": "http://127.0.0.1:7777/mcp",
          "headers": {
            "Authorization": "Bearer ${TOOLWAY_TOKEN}"
          }
        }
      }
    }

    note: Gemini CLI takes the token from `TOOLWAY_TOKEN`: have it set where Gemini CLI starts, e.g. `export TOOLWAY_TOKEN="$(cat '[HOME]/my keys/token')"`
    windsurf
    {
      "mcpServers": {
        "toolway": {
          "serverUrl": "http://127.0.0.1:7777/mcp",
          "headers": {
            "Authorization": "Bearer ${file:[HOME]/my keys/token}"
          }
        }
      }
    }

    zed
    {
      "context_servers": {
        "toolway": {
          "url": "http://127.0.0.1:7777/mcp",
          "headers": {
            "Authorization": "Bearer [TOKEN]"
          }
        }
      }
    }

    note: Zed takes a token only written out: it stands in its settings now
    opencode
    {
      "mcp": {
        "toolway": {
          "type": "remote",
          "url": "http://127.0.0.1:7777/mcp",
          "enabled": true,
          "oauth": false,
          "headers": {
            "Authorization": "Bearer {file:[HOME]/my keys/token}"
          }
        }
      }
    }

    goose
    extensions:
      toolway:
        enabled: true
        type: streamable_http
        name: toolway
        description: ""
        uri: "http://127.0.0.1:7777/mcp"
        env_keys:
        - TOOLWAY_TOKEN
        headers:
          Authorization: "Bearer ${TOOLWAY_TOKEN}"
        timeout: 300

    note: Goose takes the token from `TOOLWAY_TOKEN`: have it set where Goose starts, e.g. `export TOOLWAY_TOKEN="$(cat '[HOME]/my keys/token')"`
    "#);
    let words = [
        "zed",
        "-s",
        "project",
        "--url",
        "http://127.0.0.1:1/mcp",
        "--token-file",
        "t",
    ];
    assert_snapshot!(connect(&home, &words), @"
    exit: 2
    ----- stdout
    ----- stderr
    warning: there is no file `[PROJECT]/t` yet
    error: Zed takes a token only written out, which must not lie in a project
    hint: leave `--scope project` out, or `--url`
    ");
}

#[test]
fn the_headers_helper_prints_what_claude_code_reads() {
    let home = home();
    let token = home.write(home.home().join("it's a/token"), format!("{TOKEN}\n"));
    let words = [
        "claude-code",
        "--url",
        "http://127.0.0.1:7777/mcp",
        "--token-file",
        token.to_str().unwrap(),
        "--yes",
    ];
    connect(&home, &words).expect_code(0);
    let written: serde_json::Value =
        serde_json::from_str(&home.read(file(&home, ".claude.json"))).unwrap();
    let helper = written["mcpServers"]["toolway"]["headersHelper"]
        .as_str()
        .unwrap();
    let mut sh = home.command("sh");
    let printed = home.run_showing_secrets(sh.args(["-c", helper]));
    let headers = serde_json::json!({ "Authorization": format!("Bearer {TOKEN}") });
    assert_eq!(printed.json(), headers);
}
