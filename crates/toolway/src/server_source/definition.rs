//! The digests by which a definition of a server is known.
//!
//! Owns both: of what a definition leads to, which logins, pins and eras are kept under and a new
//! value of a variable does not change; and of all that decides what the server offers. A connection
//! is known by neither, but by the definition itself (`connection/pool.rs`).

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolway_types::{RemoteSpec, ServerName, ServerSpec, StdioSpec, TransportSpec};

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

/// The digest of what a definition leads to, by which files know it.
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

/// The digest of all that decides what a server offers, values of variables and headers included; none
/// for an object of this program.
pub(crate) fn whole_digest(spec: &ServerSpec) -> Option<String> {
    let place = match &spec.transport {
        TransportSpec::Stdio(process) => of_process(process),
        TransportSpec::Remote(_, remote) => of_remote(remote),
        TransportSpec::Sdk => return None,
    };
    let kind = spec.transport.kind().as_str();
    let protocol = format!("{:?}", spec.protocol);
    let text = json!(["catalogue", kind, place, protocol, spec.roots]).to_string();
    Some(hex::encode(Sha256::digest(text)))
}

fn of_process(process: &StdioSpec) -> Value {
    let env = process.env.iter();
    let env: Vec<_> = env.map(|(name, value)| [name, value.expose()]).collect();
    json!([
        process.command,
        process.program,
        process.args,
        env,
        process.cwd.path()
    ])
}

fn of_remote(remote: &RemoteSpec) -> Value {
    let headers = remote.headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| [name, value.expose()])
        .collect();
    let helper = remote.headers_helper.as_ref();
    let helper = helper.map(|helper| json!([helper.command, of_process(&helper.process)]));
    let oauth = remote.oauth.as_ref();
    let oauth = oauth.map(|oauth| json!([oauth.account, oauth.client_id, oauth.scopes]));
    json!([remote.url.as_str(), headers, helper, oauth])
}
