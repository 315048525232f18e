//! The directory of an account's connectors: what a provider answered, and what is kept of it.
//!
//! Owns what a directory may say, which is little: for each connector an id, a name and the
//! address of the server it stands for. Nothing of it is trusted: where a connector is reached
//! follows from the settings and its id, no header, command or variable is taken from it, and
//! numbers and lengths are bounded. The kept copy is read by the same rules as a fresh answer.
//! Does not own: fetching it, or writing the copy (the host).

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use toolway_types::name::{normalize_connector, shell_word};
use toolway_types::text::{cut, spelled_out};
use toolway_types::{Scope, TransportKind};
use url::Url;

use super::AccountProvider;
use crate::Environment;
use crate::file::{open_no_link, read_opened};

/// The most connectors of one directory.
pub const MOST: usize = 256;
/// The longest name, in characters.
const LONGEST_NAME: usize = 48;
/// The longest address that is compared with others.
const LONGEST_URL: usize = 2048;
/// The most that is said about entries that are left out.
const ENOUGH: usize = 5;
/// The largest copy that is read.
const LARGEST: u64 = 1024 * 1024;
/// The form of the copy.
const VERSION: u64 = 1;

/// The key of a connector's entry that says which server it stands for.
const STANDS_FOR: &str = "standsFor";

/// The server that a connector's entry stands for. Entries of other scopes stand for themselves,
/// whatever they say.
pub(crate) fn stands_for(scope: Scope, definition: &Map<String, Value>) -> Option<Url> {
    let url = (scope == Scope::Connector).then(|| definition.get(STANDS_FOR))??;
    Url::parse(url.as_str()?).ok()
}

/// One connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connector {
    /// What identifies it at the proxy.
    pub id: String,
    /// Its name, by the rule for names of connectors.
    pub name: String,
    /// The server it stands for.
    pub stands_for: Option<Url>,
    /// Where it is reached.
    pub url: Url,
}

impl Connector {
    /// Its entry, as a configuration file would have it.
    pub fn definition(&self) -> Map<String, Value> {
        let mut definition = Map::new();
        definition.insert("type".to_owned(), json!("connector"));
        definition.insert("url".to_owned(), json!(self.url.as_str()));
        if let Some(url) = &self.stands_for {
            definition.insert(STANDS_FOR.to_owned(), json!(url.as_str()));
        }
        definition
    }
}

/// What an account may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectorDirectory {
    /// The connectors, in the provider's order.
    pub connectors: Vec<Connector>,
    /// What was left out and why, for people.
    pub left_out: Vec<String>,
    /// When the provider answered, in seconds since 1970; zero when that is not known.
    pub fetched_at: u64,
}

/// Why an answer is no directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The array is not where the settings say it is.
    #[error("the connector directory has no array `{0}`")]
    NoList(String),
}

impl ConnectorDirectory {
    /// Reads a provider's answer.
    pub fn read(
        provider: &AccountProvider,
        answer: &Map<String, Value>,
    ) -> Result<Self, DirectoryError> {
        let fields = &provider.fields;
        let mut keys = fields.list.split('.');
        let first = keys.next().and_then(|key| answer.get(key));
        let list = keys.fold(first, |value, key| value?.as_object()?.get(key));
        let Some(Value::Array(items)) = list else {
            return Err(DirectoryError::NoList(spelled_out(&fields.list)));
        };
        let mut reading = DirectoryReader::default();
        for (index, item) in items.iter().enumerate().take(MOST) {
            let text = |key: &str| item.get(key).and_then(Value::as_str);
            let id = match item.get(&fields.id) {
                Some(Value::Number(number)) => number.to_string(),
                _ => text(&fields.id).unwrap_or_default().to_owned(),
            };
            let name = text(&fields.name).unwrap_or(&id);
            reading.add(provider, index, &id, name, text(&fields.url));
        }
        if items.len() > MOST {
            let more = items.len() - MOST;
            reading.directory.left_out.push(format!(
                "{more} connectors: a directory may have {MOST}, and this one has {}",
                items.len()
            ));
        }
        Ok(reading.finish())
    }

    /// The text of the copy that stands for the provider while it cannot be reached.
    pub fn to_copy(&self, provider: &AccountProvider) -> String {
        let connectors: Vec<Value> = self
            .connectors
            .iter()
            .map(|connector| {
                json!({
                    "id": connector.id,
                    "name": connector.name,
                    "url": connector.stands_for.as_ref().map(Url::as_str),
                })
            })
            .collect();
        let copy = json!({
            "version": VERSION,
            "provider": provider.digest(),
            "fetchedAt": self.fetched_at,
            "connectors": connectors,
        });
        format!("{copy:#}\n")
    }

    /// Reads a copy; nothing when it belongs to another provider or is none.
    pub fn from_copy(provider: &AccountProvider, text: &str) -> Option<Self> {
        let copy: Map<String, Value> = serde_json::from_str(text).ok()?;
        if copy.get("version") != Some(&json!(VERSION))
            || copy.get("provider") != Some(&json!(provider.digest()))
        {
            return None;
        }
        let mut reading = DirectoryReader::default();
        for (index, item) in copy
            .get("connectors")?
            .as_array()?
            .iter()
            .enumerate()
            .take(MOST)
        {
            let text = |key: &str| item.get(key).and_then(Value::as_str);
            let (Some(id), Some(name)) = (text("id"), text("name")) else {
                continue;
            };
            reading.add(provider, index, id, name, text("url"));
        }
        reading.directory.fetched_at = copy.get("fetchedAt").and_then(Value::as_u64).unwrap_or(0);
        Some(reading.finish())
    }

    /// The copy of this provider's directory, if one is kept.
    pub fn kept(environment: &Environment, provider: &AccountProvider) -> Option<Self> {
        let path = copy_file(environment);
        let text = read_opened(open_no_link(&path), LARGEST).ok()??;
        Self::from_copy(provider, &text)
    }
}

/// Where the copy is kept.
pub fn copy_file(environment: &Environment) -> PathBuf {
    environment.state_home().join("connectors.json")
}

#[derive(Default)]
struct DirectoryReader {
    directory: ConnectorDirectory,
    unfit: usize,
}

impl DirectoryReader {
    fn add(
        &mut self,
        provider: &AccountProvider,
        index: usize,
        id: &str,
        name: &str,
        url: Option<&str>,
    ) {
        let place = index + 1;
        if id.is_empty() {
            return self.leave_out(format!("connector {place}: it has no id"));
        }
        let Some(address) = provider.proxy.of(id) else {
            return self.leave_out(format!(
                "connector {place}: its id cannot be part of an address"
            ));
        };
        let mut cleaned = named(name);
        if cleaned.is_empty() {
            cleaned = named(id);
        }
        if cleaned.is_empty() {
            let id = spelled_out(&cut(id, 40));
            let id = shell_word(&id).into_owned();
            return self.leave_out(format!("connector {place} ({id}): it has no name"));
        }
        self.directory.connectors.push(Connector {
            id: id.to_owned(),
            name: cleaned,
            stands_for: url.and_then(comparable),
            url: address,
        });
    }

    fn leave_out(&mut self, why: String) {
        self.unfit += 1;
        if self.unfit <= ENOUGH {
            self.directory.left_out.push(why);
        }
    }

    fn finish(mut self) -> ConnectorDirectory {
        if self.unfit > ENOUGH {
            let more = self.unfit - ENOUGH;
            let said = format!("{more} more that have no usable id or name");
            self.directory.left_out.push(said);
        }
        self.directory
    }
}

fn named(name: &str) -> String {
    // Cut first: a name may be as long as the whole answer.
    let start: String = name.chars().take(4 * LONGEST_NAME).collect();
    let name: String = normalize_connector(&start)
        .chars()
        .take(LONGEST_NAME)
        .collect();
    name.trim_matches('_').to_owned()
}

/// An address as far as it serves to find duplicates; nothing is ever sent to it.
fn comparable(text: &str) -> Option<Url> {
    // What looks like a variable must not be taken for one of the person's.
    if text.len() > LONGEST_URL || text.contains("${") {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let is_web = TransportKind::of_scheme(url.scheme()).is_some();
    let is_bare = url.username().is_empty() && url.password().is_none();
    (is_web && is_bare && !url.as_str().contains("${")).then_some(url)
}
