//! The part of a definition that concerns servers across a network: where, and with what.
//!
//! Owns: the URL and headers once expanded, what an editor's lock file adds, and the token in a
//! file. No message repeats an expanded value: it may be a secret.
//! Does not own: how to log in (`oauth.rs`).

use std::path::{Component, Path};
use std::sync::Arc;

use serde_json::Value;
use toolway_types::{
    HeadersHelper, RemoteKind, RemoteSpec, Scope, Secret, StdioSpec, TransportPeer,
};
use url::Url;

use super::SpecBuild;
use crate::approval::ApprovalBasis;
use crate::command_line::split_command;
use crate::error::FileReadError;
use crate::file::open_beneath;
use crate::file::{open, read_opened};
use crate::http_syntax::{header_value, parse_url};
use crate::ide::TOKEN_HEADER;
use crate::json::EntryMembers as _;

/// More than any server takes as a header.
const LONGEST_TOKEN: u64 = 64 * 1024;

impl SpecBuild<'_> {
    pub(super) fn remote(&mut self, kind: RemoteKind) -> Option<RemoteSpec> {
        let mut headers = self.headers();
        let facts = kind.facts();
        let url = match facts.peer {
            TransportPeer::Editor => self.editor(kind, &mut headers),
            _ => self.url("url", facts.schemes),
        };
        self.session_token(&mut headers);
        let headers_helper = self.headers_helper();
        let oauth = self.oauth();
        Some(RemoteSpec {
            url: url?,
            headers,
            headers_helper: headers_helper.map(Box::new),
            oauth: oauth.map(Box::new),
            rules: Arc::default(),
        })
    }

    /// The program that prints headers. Its words are told apart before variables are expanded,
    /// so that no value becomes two of them. A path is one beside the file that names it, wherever
    /// the host runs.
    fn headers_helper(&mut self) -> Option<HeadersHelper> {
        const KEY: &str = "headersHelper";
        let command = self
            .builder
            .definition
            .member(KEY)
            .and_then(Value::as_str)?;
        let words = match split_command(command) {
            Ok(words) => words,
            Err(error) => {
                self.fault(KEY, format!("`{KEY}` cannot be read: {error}"));
                return None;
            }
        };
        let mut expanded = Vec::new();
        for word in &words {
            let word = self.expand("headersHelper", word);
            self.without_nul(KEY, &word);
            expanded.push(word);
        }
        let mut expanded = expanded.into_iter();
        let directory = &self.builder.place.directory;
        let mut program = expanded.next().unwrap_or_default();
        if program.is_empty() {
            if self.missing.is_empty() {
                self.fault(KEY, format!("`{KEY}` names no program"));
            }
            return None;
        }
        if program.contains('/') && !Path::new(&program).is_absolute() {
            // A flag has no directory of its own.
            if self.builder.scope == Scope::Dynamic {
                let message = format!("`{KEY}` is a relative path, and a flag has no directory");
                self.refuse(KEY, message, "write the whole path of the program");
                return None;
            }
            program = directory.join(program).display().to_string();
        }
        Some(HeadersHelper {
            command: command.to_owned(),
            process: StdioSpec {
                command: program,
                program: None,
                args: expanded.collect(),
                inherited: Arc::clone(self.builder.inherited),
                env: self.declared(),
                cwd: self.usual_directory(),
                shield: self.shield(),
                umask: self.builder.environment.umask(),
            },
        })
    }

    /// Where an editor's server is, and the token of its lock file. The token is for this machine
    /// only, and a name could come to mean another.
    fn editor(&mut self, kind: RemoteKind, headers: &mut Vec<(String, Secret)>) -> Option<Url> {
        let editors = self.builder.editors;
        let (url, editor) = if self.builder.definition.contains_key("url") {
            let mut url = self.url("url", kind.facts().schemes)?;
            let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1"));
            if !is_here || url.set_host(Some("127.0.0.1")).is_err() {
                let message = "`url` must be on 127.0.0.1: an editor runs on this machine";
                self.fault("url", message.to_owned());
                return None;
            }
            let editor = url.port().and_then(|port| editors.on_port(port));
            (url, editor)
        } else {
            match editors.only(kind) {
                Ok(editor) => (editor.url().parse().ok()?, Some(editor)),
                Err(why) => {
                    let hint = "open this project in an editor with its extension, or give `url`";
                    self.refuse("type", why, hint);
                    return None;
                }
            }
        };
        if let Some(token) = editor.and_then(|editor| editor.token.clone()) {
            let is_token = |(name, _): &(String, Secret)| name.eq_ignore_ascii_case(TOKEN_HEADER);
            if !headers.iter().any(is_token) {
                headers.push((TOKEN_HEADER.to_owned(), token));
            }
        }
        Some(url)
    }

    /// The text of `sessionTokenFile`, as a header.
    fn session_token(&mut self, headers: &mut Vec<(String, Secret)>) {
        const KEY: &str = "sessionTokenFile";
        let known = self.faults.len();
        let Some(path) = self.text(KEY) else { return };
        if !self.missing.is_empty() || self.faults.len() > known {
            return; // Half a path leads nowhere.
        }
        if headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            self.fault(
                KEY,
                format!("`{KEY}` and `headers.Authorization` are both given"),
            );
            return;
        }
        let token = match self.token_text(Path::new(&path)) {
            Ok(Some(token)) => token.trim().to_owned(),
            Ok(None) => return self.fault(KEY, format!("the file of `{KEY}` does not exist")),
            Err(why) => return self.fault(KEY, format!("the file of `{KEY}` {why}")),
        };
        if token.is_empty() {
            self.fault(KEY, format!("the file of `{KEY}` is empty"));
        } else if let Err(why) = header_value(&token) {
            self.fault(KEY, format!("the text in the file of `{KEY}` {why}"));
        } else {
            let value = Secret::new(format!("Bearer {token}"));
            headers.push(("Authorization".to_owned(), value));
        }
    }

    fn token_text(&self, path: &Path) -> Result<Option<String>, FileReadError> {
        let directory = &self.builder.place.directory;
        let opened = if self.builder.author.brings_files() {
            // The user names their own file, or has seen the path before approval.
            let leads_away =
                path.is_absolute() || path.components().any(|it| it == Component::ParentDir);
            if leads_away && self.builder.vouched == ApprovalBasis::Unseen {
                return Err(FileReadError::Outside);
            }
            let root = match self.builder.scope {
                Scope::Plugin => directory,
                _ => self.builder.environment.innermost_repository_of(directory),
            };
            open_beneath(root, directory, path)
        } else if self.builder.scope == Scope::Local {
            let root = self.builder.environment.innermost_repository_of(directory);
            open_beneath(root, directory, path)
        } else {
            open(&directory.join(path))
        };
        read_opened(opened, LONGEST_TOKEN)
    }

    fn url(&mut self, key: &str, schemes: &[&str]) -> Option<Url> {
        if let Some(url) = self.builder.url {
            return Some(url.clone());
        }
        let text = self
            .builder
            .definition
            .member(key)
            .and_then(Value::as_str)?;
        let text = self.expand_secret(key, text);
        self.without_nul(key, &text);
        let parsed = parse_url(&text, schemes);
        if let Some(reference) = self.misled(key, parsed.as_ref().ok()) {
            self.refuse_address(key, &reference);
            return None;
        }
        parsed
            .map_err(|why| self.fault(key, format!("`{key}` {why}")))
            .ok()
    }

    fn headers(&mut self) -> Vec<(String, Secret)> {
        let headers = self
            .builder
            .definition
            .member("headers")
            .and_then(Value::as_object);
        let mut expanded = Vec::new();
        for (name, value) in headers.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let value = self.expand_secret(format_args!("headers.{name}"), value);
            if let Err(why) = header_value(&value) {
                self.fault("headers", format!("`headers.{name}` {why}"));
            }
            expanded.push((name.clone(), Secret::new(value)));
        }
        expanded
    }
}
