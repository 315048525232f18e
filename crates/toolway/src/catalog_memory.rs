//! What servers offered when they were last connected, kept between runs.
//!
//! Owns the files: one for each definition, their names, their bounds, and what of a server's words
//! may stand in them. What is shown of them is `supervisor/recall.rs`: there the plan of this
//! moment decides, as it does for what a connected server offers. Nothing is ever permitted,
//! validated or sent by what stands here.
//!
//! Invariants: a file's name is a digest of the definition, so that no two definitions share one;
//! it holds lists as the server sent them, without the values that are known to be secret; the
//! files are private, each is replaced as a whole, and together they are bounded.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::CWD;
use serde_json::Value;
use serde_json::value::RawValue;
use toolway_files::private_file::open_own;
use toolway_files::state_file;
use toolway_types::{ServerName, ServerSpec, limits};
use toolway_wire::view;
use tracing::debug;

use crate::journal::Redactor;
use crate::listing::{CatalogKey, MemoryLabel, ServerLists};
use crate::server_source::ServerSource;
use crate::server_source::definition::whole_digest;
use crate::snapshot::{ConnectedServer, HostSnapshot};

/// What is kept of one server. A list that does not fit any more is not kept at all.
const MAX_SERVER: usize = limits::offers::KEPT_CATALOG;

/// What is kept of all servers together.
const MAX_ALL: u64 = 16 << 20;

/// How many servers something is kept of.
const MAX_SERVERS: usize = 256;

/// What is older is not believed, and goes.
const BELIEVED_FOR: Duration = Duration::from_hours(30 * 24);

/// Where catalogues are kept.
#[derive(Debug, Clone)]
pub(crate) struct CatalogMemory {
    folder: PathBuf,
}

impl MemoryLabel {
    /// The label of a connection; `None` where nothing is kept: objects of this program are asked
    /// in no time, and an editor is another one tomorrow.
    pub(crate) fn of(source: &ServerSource, redactor: Arc<Redactor>) -> Option<Self> {
        Some(Self {
            key: CatalogKey::of(source)?,
            redactor,
        })
    }
}

impl CatalogKey {
    fn of(source: &ServerSource) -> Option<Self> {
        match source {
            ServerSource::Spec(spec) if !source.is_editor() => Self::of_spec(spec),
            ServerSource::Spec(_) | ServerSource::Object { .. } => None,
        }
    }

    fn of_spec(spec: &ServerSpec) -> Option<Self> {
        whole_digest(spec).map(Self)
    }

    fn file(&self) -> String {
        format!("{}.json", self.0)
    }
}

/// What was kept of one server.
pub(crate) struct RememberedLists {
    /// Its lists.
    pub(crate) lists: ServerLists,
    /// Which of them are known.
    pub(crate) known: KnownLists,
    /// How long ago the server was asked.
    pub(crate) age: Duration,
}

/// Which lists of a server are known. One that was too large is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownLists {
    /// Its tools.
    pub tools: bool,
    /// Its resources and templates.
    pub resources: bool,
    /// Its prompts.
    pub prompts: bool,
}

impl KnownLists {
    /// Whether none is missing.
    pub(crate) fn is_whole(self) -> bool {
        self.tools && self.resources && self.prompts
    }
}

impl CatalogMemory {
    /// In this folder, which need not exist.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Keeps what the servers of a snapshot offer that are connected, or rest. A file that cannot be written costs
    /// only itself.
    pub(crate) fn keep(&self, snapshot: &HostSnapshot) {
        for connected in &snapshot.routes.connected {
            let ConnectedServer { name, lists, .. } = &**connected;
            self.keep_lists(name, lists);
        }
        for (server, claimed) in snapshot.servers.iter().zip(&snapshot.claimed) {
            if let Some(lists) = claimed.as_ref().and_then(|claimed| claimed.rested.as_ref()) {
                self.keep_lists(&server.name, lists);
            }
        }
    }

    /// Keeps what one server listed in this run; what was recalled is there already.
    pub(crate) fn keep_lists(&self, server: &ServerName, lists: &ServerLists) {
        let kept = match (&lists.label, record(lists)) {
            (Some(label), Some(text)) => self.save(&label.key, text),
            _ => return,
        };
        if let Err(error) = kept {
            debug!(%server, %error, "what it offers was not kept");
        }
    }

    /// What was kept of a definition, if that is still believed.
    pub(crate) fn recall(&self, source: &ServerSource) -> Option<RememberedLists> {
        let path = self.folder.join(CatalogKey::of(source)?.file());
        let age = age_of(&path)?;
        // Room for the braces and names around the lists.
        let text = state_file::read(&path, MAX_SERVER as u64 + 4096).ok()?;
        let raw = RawValue::from_string(text).ok()?;
        let mut known = KnownLists::default();
        let mut lists = ServerLists::default();
        if let Ok(page) = view::TOOLS.page(&raw, &mut view::LIST.clone()) {
            known.tools = true;
            lists.tools.items = Arc::new(page.items);
        }
        if let Ok(page) = view::PROMPTS.page(&raw, &mut view::LIST.clone()) {
            known.prompts = true;
            lists.prompts.items = Arc::new(page.items);
        }
        let resources = view::RESOURCES.page(&raw, &mut view::LIST.clone());
        let templates = view::RESOURCE_TEMPLATES.page(&raw, &mut view::LIST.clone());
        if let (Ok(resources), Ok(templates)) = (resources, templates) {
            known.resources = true;
            lists.resources.items = Arc::new(resources.items);
            lists.templates.items = Arc::new(templates.items);
        }
        Some(RememberedLists { lists, known, age })
    }

    fn save(&self, key: &CatalogKey, text: String) -> io::Result<()> {
        let path = self.folder.join(key.file());
        // Most servers offer what they offered: then only the time is new.
        if state_file::read(&path, text.len() as u64 + 1).is_ok_and(|before| before == text) {
            return open_own(CWD, &path)?.set_modified(SystemTime::now());
        }
        state_file::replace(&path, || text)?;
        self.evict()
    }

    /// Takes the oldest files away until the rest is within bounds.
    fn evict(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let path = entry.path();
            let is_record = path.extension() == Some(OsStr::new("json"));
            if let (true, Ok(facts)) = (is_record, entry.metadata()) {
                let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((modified, facts.len(), path));
            }
        }
        files.sort();
        let mut count = files.len();
        let mut all: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            let is_old = age_of(&path).is_none();
            if !is_old && count <= MAX_SERVERS && all <= MAX_ALL {
                break;
            }
            remove(&path);
            count -= 1;
            all = all.saturating_sub(size);
        }
        Ok(())
    }
}

/// Takes a record away, and what lies beside it while it is written or asked for anew.
fn remove(path: &Path) {
    let beside = ["lock", "turn"].map(|end| path.with_extension(format!("json.{end}")));
    for path in beside.iter().map(PathBuf::as_path).chain([path]) {
        // What is gone already need not go.
        let _ = std::fs::remove_file(path);
    }
}

/// How old a file is, unless that is too old; one from the future is as old as can be.
fn age_of(path: &Path) -> Option<Duration> {
    let modified = std::fs::symlink_metadata(path).ok()?.modified().ok()?;
    let age = modified.elapsed().ok()?;
    (age <= BELIEVED_FOR).then_some(age)
}

/// What is kept of these lists; nothing while one of them could not be read.
fn record(lists: &ServerLists) -> Option<String> {
    let label = lists.label.as_ref()?;
    let failed = [
        lists.tools.failed,
        lists.prompts.failed,
        lists.resources.failed,
        lists.templates.failed,
    ];
    if failed.contains(&true) {
        return None;
    }
    let mut record = FileBuilder {
        text: "{\"version\":1".to_owned(),
        redactor: &label.redactor,
    };
    let tools = lists.tools.items.iter().map(|it| &*it.raw).collect();
    let prompts = lists.prompts.items.iter().map(|it| &*it.raw).collect();
    let templates = lists.templates.items.iter().map(|it| &*it.raw).collect();
    let resources = lists.resources.items.iter().map(|it| &*it.raw).collect();
    record.add(&[("tools", tools)]);
    record.add(&[("prompts", prompts)]);
    // One without the other says nothing about what there is to read.
    record.add(&[("resourceTemplates", templates), ("resources", resources)]);
    record.text.push('}');
    Some(record.text)
}

/// The text of a file as it grows.
struct FileBuilder<'a> {
    text: String,
    redactor: &'a Redactor,
}

impl FileBuilder<'_> {
    /// An item without the values that are known, however its strings are written; nothing where
    /// taking one out left no JSON.
    fn without_secrets(&self, item: &str) -> Option<String> {
        let text = self.redactor.values(item);
        // Only what is escaped can hide a value from a look at the letters.
        if text == item && !item.contains('\\') {
            return Some(text);
        }
        let mut value: Value = serde_json::from_str(&text).ok()?;
        Some(if self.redact(&mut value) {
            value.to_string()
        } else {
            text
        })
    }

    /// Takes the values out of every string. True where one was.
    fn redact(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let shown = self.redactor.values(text);
                let is_changed = shown != *text;
                *text = shown;
                is_changed
            }
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |is_changed, item| self.redact(item) | is_changed),
            Value::Object(members) => {
                let mut is_changed = false;
                let shown = std::mem::take(members).into_iter().map(|(key, mut item)| {
                    let name = self.redactor.values(&key);
                    is_changed |= name != key;
                    is_changed |= self.redact(&mut item);
                    (name, item)
                });
                *members = shown.collect();
                is_changed
            }
            _ => false,
        }
    }

    /// Adds lists if all of them fit.
    fn add(&mut self, lists: &[(&str, Vec<&RawValue>)]) {
        let mut added = String::new();
        for (name, items) in lists {
            added.extend([",\"", *name, "\":["]);
            let mut is_first = true;
            for item in items {
                let Some(text) = self.without_secrets(item.get()) else {
                    continue;
                };
                if !std::mem::take(&mut is_first) {
                    added.push(',');
                }
                added.push_str(&text);
                if self.text.len() + added.len() > MAX_SERVER {
                    return;
                }
            }
            added.push(']');
        }
        self.text.push_str(&added);
    }
}

/// Forgets what a definition offered, in the folder that [`HostOptions`](crate::HostOptions) names.
pub fn forget_catalog(folder: &Path, spec: &ServerSpec) {
    if let Some(key) = CatalogKey::of_spec(spec) {
        remove(&folder.join(key.file()));
    }
}

/// The lock of a process that asks a server anew so that its catalogue is fresh; held until the
/// file is dropped. `None` where nothing is kept of such a server.
pub fn refresh_turn(folder: &Path, spec: &ServerSpec) -> io::Result<Option<std::fs::File>> {
    let Some(key) = CatalogKey::of_spec(spec) else {
        return Ok(None);
    };
    let folder = state_file::private_folder(folder)?;
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE;
    let name = format!("{}.turn", key.file());
    toolway_files::private_file::open_file(&folder, &name, flags).map(Some)
}

#[cfg(test)]
mod tests;
