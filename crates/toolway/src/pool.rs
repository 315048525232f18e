//! The pool: which tools one model session has loaded.
//!
//! Owns the value a session holds. The list that follows from it is `catalog/pool.rs`, which tools
//! are deferred `catalog/deferral.rs`. There is no global pool: two sessions of one host load
//! apart.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use toolway_types::ToolKey;

use crate::lock::lock;

/// What a server's entry says about when its tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loading {
    /// Nothing: its tools and the host's setting decide.
    #[default]
    Usual,
    /// `alwaysLoad`: its tools are never deferred.
    Always,
    /// `deferTools`: its tools are deferred, whatever they say of themselves.
    Deferred,
}

impl Loading {
    /// Reads an entry.
    pub fn of(definition: &serde_json::Map<String, serde_json::Value>) -> Self {
        let is_on = |key| definition.get(key) == Some(&serde_json::Value::Bool(true));
        if is_on("alwaysLoad") {
            Self::Always
        } else if is_on("deferTools") {
            Self::Deferred
        } else {
            Self::Usual
        }
    }
}

/// The tools one model session has loaded. Clones are one pool. It holds identities, so it
/// outlives catalogues: a tool that goes and comes back is still loaded.
#[derive(Clone, Default)]
pub struct ToolPool {
    loaded: Arc<Mutex<BTreeSet<ToolKey>>>,
}

impl ToolPool {
    /// A session that has loaded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads tools; gives those that were not loaded before.
    pub fn load(&self, keys: impl IntoIterator<Item = ToolKey>) -> Vec<ToolKey> {
        let mut loaded = lock(&self.loaded);
        keys.into_iter()
            .filter(|key| loaded.insert(key.clone()))
            .collect()
    }

    /// Takes tools out again; they stay callable.
    pub fn unload(&self, keys: &[ToolKey]) {
        let mut loaded = lock(&self.loaded);
        for key in keys {
            loaded.remove(key);
        }
    }

    /// Whether this tool was loaded.
    pub fn has(&self, key: &ToolKey) -> bool {
        lock(&self.loaded).contains(key)
    }

    /// What was loaded, in order, whether it is on offer now or not.
    pub fn loaded(&self) -> Vec<ToolKey> {
        lock(&self.loaded).iter().cloned().collect()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeSet<ToolKey>> {
        lock(&self.loaded)
    }
}

impl fmt::Debug for ToolPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(lock(&self.loaded).iter())
            .finish()
    }
}
