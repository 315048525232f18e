//! The entry that leads to Toolway, in each client's words.
//!
//! Owns how each client starts a program, names an address and takes a token. A token is never
//! copied where the client can read it from its file, from a variable or ask for it itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolway_types::name::shell_word;
use url::Url;

use super::elements::AppendedElement;
use super::{ClientEntryError, ClientScope, ClientTarget, read_token};
use crate::Environment;
use crate::import::ImportClient;
use crate::itself::{PROGRAM, SERVE};

/// The variable that clients which know no files take the token from.
const TOKEN_VARIABLE: &str = "TOOLWAY_TOKEN";

/// Directories that every program has in its `PATH`, however it was started.
const EVERYWHERE: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How long Goose waits for a tool, in seconds, as it writes itself.
const GOOSE_TIMEOUT: u32 = 300;

/// How a client reaches Toolway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayReach {
    /// It starts the program.
    Program(GatewayProgram),
    /// It connects to one that runs.
    Address(GatewayAddress),
}

/// The program that a client starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayProgram {
    /// Its name or path.
    pub command: String,
    /// The profile that it serves, if not all.
    pub profile: Option<String>,
    /// `TOOLWAY_HOME`, where the client would not have it.
    pub home: Option<PathBuf>,
}

/// Where a running gateway listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAddress {
    /// Its address.
    pub url: Url,
    /// The file with its token, an absolute path; none where it wants no token.
    pub token_file: Option<PathBuf>,
}

/// The entry for one client. Has no `Debug`: one client takes a token only written out.
pub struct GatewayEntry {
    /// Its name there.
    pub name: String,
    /// What the user has to know or do, one sentence each.
    pub notes: Vec<String>,
    pub(super) value: Value,
    /// What has to stand in a list beside it.
    pub(super) appended: Vec<AppendedElement>,
}

impl GatewayEntry {
    /// The entry for a client's file.
    pub fn new(
        target: &ClientTarget,
        name: &str,
        reach: &GatewayReach,
    ) -> Result<Self, ClientEntryError> {
        let mut entry = Self {
            name: name.to_owned(),
            notes: Vec::new(),
            value: Value::Null,
            appended: Vec::new(),
        };
        entry.value = match reach {
            GatewayReach::Program(program) => program.entry(target, name),
            GatewayReach::Address(address) => entry.remote(target, address)?,
        };
        if target.client == ImportClient::Gemini {
            entry.appended.push(AppendedElement {
                path: vec!["mcp".to_owned(), "allowed".to_owned()],
                element: json!(name),
                only_to_a_list: true,
            });
        }
        Ok(entry)
    }

    /// The entry of an address.
    fn remote(
        &mut self,
        target: &ClientTarget,
        GatewayAddress { url, token_file }: &GatewayAddress,
    ) -> Result<Value, ClientEntryError> {
        let client = target.client;
        let key = match client {
            ImportClient::ClaudeDesktop => {
                return Err(ClientEntryError::NoAddress {
                    client: client.title(),
                });
            }
            ImportClient::Gemini => "httpUrl",
            ImportClient::Windsurf => "serverUrl",
            ImportClient::Goose => "uri",
            _ => "url",
        };
        let mut entry = Map::new();
        let kind = match client {
            ImportClient::ClaudeCode | ImportClient::VsCode => Some("http"),
            ImportClient::Opencode => Some("remote"),
            ImportClient::Goose => Some("streamable_http"),
            _ => None,
        };
        if client == ImportClient::Goose {
            entry.insert("enabled".to_owned(), json!(true));
        }
        entry.extend(kind.map(|kind| ("type".to_owned(), json!(kind))));
        if client == ImportClient::Goose {
            entry.insert("name".to_owned(), json!(self.name));
            entry.insert("description".to_owned(), json!(""));
        }
        entry.insert(key.to_owned(), json!(url.as_str()));
        if client == ImportClient::Opencode {
            entry.insert("enabled".to_owned(), json!(true));
        }
        if let Some(file) = token_file {
            self.give_token(target, file, &mut entry)?;
        }
        if client == ImportClient::Goose {
            entry.insert("timeout".to_owned(), json!(GOOSE_TIMEOUT));
        }
        Ok(Value::Object(entry))
    }

    /// Says in the client's words where the token is.
    fn give_token(
        &mut self,
        target: &ClientTarget,
        file: &Path,
        entry: &mut Map<String, Value>,
    ) -> Result<(), ClientEntryError> {
        let title = target.client.title();
        let path = file.display();
        let mut by_variable = |spelled: &str| {
            self.notes.push(format!(
                "{title} takes the token from `{TOKEN_VARIABLE}`: have it set where {title} starts, e.g. \
                 `export {TOKEN_VARIABLE}=\"$(cat {})\"`",
                shell_word(&path.to_string())
            ));
            format!("Bearer {spelled}")
        };
        let header = match target.client {
            ImportClient::ClaudeDesktop => return Ok(()),
            ImportClient::ClaudeCode => {
                // A shell's own command: the token is in no process's arguments.
                let helper = format!(
                    "printf '{{\"Authorization\":\"Bearer %s\"}}' \"$(cat {})\"",
                    shell_word(&path.to_string())
                );
                entry.insert("headersHelper".to_owned(), json!(helper));
                return Ok(());
            }
            ImportClient::Codex => {
                by_variable("");
                entry.insert("bearer_token_env_var".to_owned(), json!(TOKEN_VARIABLE));
                return Ok(());
            }
            ImportClient::Cursor => by_variable(&format!("${{env:{TOKEN_VARIABLE}}}")),
            ImportClient::Gemini => by_variable(&format!("${{{TOKEN_VARIABLE}}}")),
            ImportClient::Goose => {
                entry.insert("env_keys".to_owned(), json!([TOKEN_VARIABLE]));
                by_variable(&format!("${{{TOKEN_VARIABLE}}}"))
            }
            ImportClient::VsCode => {
                let id = format!("{}-token", self.name);
                self.notes.push(format!(
                    "{title} asks for the token once and keeps it: paste what is in `{path}`"
                ));
                self.appended.push(AppendedElement {
                    path: vec!["inputs".to_owned()],
                    element: json!({
                        "type": "promptString",
                        "id": id,
                        "description": "Token of Toolway",
                        "password": true,
                    }),
                    only_to_a_list: false,
                });
                format!("Bearer ${{input:{id}}}")
            }
            ImportClient::Windsurf => format!("Bearer ${{file:{path}}}"),
            ImportClient::Opencode => {
                // With a header of its own it must not look for a login.
                entry.insert("oauth".to_owned(), json!(false));
                format!("Bearer {{file:{path}}}")
            }
            ImportClient::Zed => {
                if target.scope == ClientScope::Project {
                    return Err(ClientEntryError::TokenInProject { client: title });
                }
                self.notes.push(format!(
                    "{title} takes a token only written out: it stands in its settings now"
                ));
                format!("Bearer {}", read_token(file)?.expose())
            }
        };
        entry.insert("headers".to_owned(), json!({ "Authorization": header }));
        Ok(())
    }
}

impl GatewayProgram {
    fn entry(&self, target: &ClientTarget, name: &str) -> Value {
        let mut args = vec![SERVE.to_owned()];
        if let Some(profile) = &self.profile {
            args.extend(["--profile".to_owned(), profile.clone()]);
        }
        let command = &self.command;
        let mut entry = match target.client {
            ImportClient::ClaudeCode | ImportClient::VsCode => {
                json!({ "type": "stdio", "command": command, "args": args })
            }
            ImportClient::Zed => json!({ "source": "custom", "command": command, "args": args }),
            ImportClient::Opencode => {
                let words: Vec<&String> = std::iter::once(command).chain(&args).collect();
                json!({ "type": "local", "command": words, "enabled": true })
            }
            ImportClient::Goose => json!({
                "enabled": true,
                "type": "stdio",
                "name": name,
                "description": "",
                "cmd": command,
                "args": args,
                "timeout": GOOSE_TIMEOUT,
            }),
            _ => json!({ "command": command, "args": args }),
        };
        let variables = match target.client {
            ImportClient::Opencode => "environment",
            ImportClient::Goose => "envs",
            _ => "env",
        };
        if let (Some(home), Some(members)) = (&self.home, entry.as_object_mut()) {
            let home = home.display().to_string();
            members.insert(variables.to_owned(), json!({ "TOOLWAY_HOME": home }));
        }
        entry
    }
}

/// How a client's settings name this program: by its bare name where `PATH` leads to it, else by
/// its path. A desktop program may have another `PATH` than the shell.
pub fn gateway_command(environment: &Environment, client: ImportClient, own: &Path) -> String {
    let is_own = |directory: &PathBuf| {
        let found = directory.join(PROGRAM);
        found.canonicalize().ok() == own.canonicalize().ok()
    };
    let path = environment.var("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(path).filter(|it| it.is_absolute());
    let first = directories.find(|directory| is_program(&directory.join(PROGRAM)));
    match first.filter(is_own) {
        Some(directory)
            if client != ImportClient::ClaudeDesktop
                || EVERYWHERE
                    .iter()
                    .any(|common| directory == Path::new(common)) =>
        {
            PROGRAM.to_owned()
        }
        Some(directory) => directory.join(PROGRAM).display().to_string(),
        None => own.display().to_string(),
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}
