//! The digest by which a definition of a server is known.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use toolway_types::{ServerName, ServerSpec, TransportSpec};

use crate::server_source::ServerSource;

/// A server as far as anything is remembered of it: another definition under the same name is another
/// server, whether in the next plan or in another project at the same time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerIdentity {
    pub(crate) name: ServerName,
    /// The digest of its definition.
    pub(crate) definition: Arc<str>,
    /// The account that its entry names; another one is another login.
    pub(crate) account: Option<Arc<str>>,
}

impl ServerIdentity {
    pub(crate) fn of(name: &ServerName, source: &ServerSource) -> Self {
        Self {
            name: name.clone(),
            definition: definition(name, source).into(),
            account: source.account().map(Into::into),
        }
    }

    /// The same as one text.
    pub(crate) fn to_key(&self) -> String {
        let account = self.account.as_deref().unwrap_or_default();
        format!("{} {:?} {account}", self.definition, self.name.as_str())
    }
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(formatter)
    }
}

/// The digest of a definition, whichever era it speaks; an object of this program is known by
/// its name alone.
pub(crate) fn definition(name: &ServerName, source: &ServerSource) -> String {
    match source {
        ServerSource::Spec(spec) => digest(spec),
        ServerSource::Object { .. } => {
            hex::encode(Sha256::digest(json!(["object", name.as_str()]).to_string()))
        }
    }
}

/// The digest of a definition, by which files know it.
pub(crate) fn digest(spec: &ServerSpec) -> String {
    let place = match &spec.transport {
        TransportSpec::Stdio(process) => json!({
            "command": process.command,
            "args": process.args,
            "env": process.env.keys().collect::<Vec<_>>(),
            "cwd": process.cwd.path(),
        }),
        TransportSpec::Remote(_, remote) => json!({ "url": remote.url.as_str() }),
        TransportSpec::Sdk => json!({ "name": spec.name.as_str() }),
    };
    let text = json!([spec.transport.kind().as_str(), place]).to_string();
    hex::encode(Sha256::digest(text))
}
