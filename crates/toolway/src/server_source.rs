//! Where a connection's channel comes from.
//!
//! Owns the choice between a definition, which the transport opens, and a server object of the
//! embedding program, which is linked up here.

pub(crate) mod definition;
pub(crate) mod patience;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolway_transport::in_process::{self, ServerEnd};
use toolway_transport::{Channel, OpenOptions};
use toolway_types::{
    CrossApp, Era, MessageDelivery, ProtocolMode, Secret, ServerName, ServerShare, ServerSpec,
    TransportKind, TransportSpec,
};

use crate::error::ConnectError;
use crate::journal::{JournalName, secrets_of};
use crate::server_source::patience::patience_for;
use crate::tasks::{self, Task};

/// A server inside the embedding program: given its end of a channel, it serves until the
/// channel closes. Called once for each connection.
pub type InProcessServer = Arc<dyn Fn(ServerEnd) -> BoxFuture<'static, ()> + Send + Sync>;

/// What to connect to.
#[derive(Clone)]
pub(crate) enum ServerSource {
    /// A definition.
    Spec(Box<ServerSpec>),
    /// An object of the embedding program, with the entry that names it, if there is one.
    Object {
        /// The object.
        server: InProcessServer,
        /// The longest a call may take.
        timeout: Option<Duration>,
        /// Which era to speak.
        protocol: ProtocolMode,
    },
}

impl fmt::Debug for ServerSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerSource::Spec(spec) => formatter.debug_tuple("Spec").field(spec).finish(),
            ServerSource::Object { .. } => formatter.write_str("Object"),
        }
    }
}

/// Two sources are one when they lead to the same server in the same way. Where the entry stands
/// is no part of it.
impl PartialEq for ServerSource {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ServerSource::Spec(one), ServerSource::Spec(other)) => one == other,
            (
                ServerSource::Object {
                    server,
                    timeout,
                    protocol,
                },
                ServerSource::Object {
                    server: other,
                    timeout: other_timeout,
                    protocol: other_protocol,
                },
            ) => {
                Arc::ptr_eq(server, other) && timeout == other_timeout && protocol == other_protocol
            }
            (ServerSource::Spec(_), ServerSource::Object { .. })
            | (ServerSource::Object { .. }, ServerSource::Spec(_)) => false,
        }
    }
}

/// A channel, and the server behind it when that runs in this program.
pub(crate) struct OpenedSource {
    /// The channel.
    pub channel: Channel,
    /// The server's task.
    pub server: Option<Task<()>>,
}

/// The two groups that connect side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectGroup {
    /// Processes and objects on this machine.
    Local,
    /// Servers across a network.
    Remote,
}

impl ServerSource {
    /// Opens a fresh channel.
    pub(crate) async fn open(&self, options: &OpenOptions) -> Result<OpenedSource, ConnectError> {
        match self {
            ServerSource::Spec(spec) if spec.transport == TransportSpec::Sdk => {
                Err(ConnectError::NoServerObject)
            }
            ServerSource::Spec(spec) => {
                let channel = toolway_transport::open(spec, options).await?;
                Ok(OpenedSource {
                    channel,
                    server: None,
                })
            }
            ServerSource::Object { server, .. } => {
                let (channel, end) = in_process::pair();
                let server = tasks::spawn("in-process server", server(end));
                Ok(OpenedSource {
                    channel,
                    server: Some(server),
                })
            }
        }
    }

    /// Its definition; an object of this program has none.
    pub(crate) fn spec(&self) -> Option<&ServerSpec> {
        match self {
            ServerSource::Spec(spec) => Some(spec),
            ServerSource::Object { .. } => None,
        }
    }

    fn transport(&self) -> TransportKind {
        self.spec()
            .map_or(TransportKind::Sdk, |spec| spec.transport.kind())
    }

    /// The directories that it is told of, where its entry says so.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        self.spec().map_or(&[], |spec| &spec.roots)
    }

    /// Which era its entry asks for, where its transport leaves the choice.
    pub(crate) fn protocol(&self) -> ProtocolMode {
        let asked_for = match self {
            ServerSource::Spec(spec) => spec.protocol,
            ServerSource::Object { protocol, .. } => *protocol,
        };
        match (asked_for, self.transport().facts().only_era) {
            (ProtocolMode::Auto, Some(Era::Legacy)) => ProtocolMode::Legacy,
            (ProtocolMode::Auto, Some(Era::Modern)) => ProtocolMode::Modern,
            _ => asked_for,
        }
    }

    /// The longest that this attempt to connect may take, counted from 1, where most servers
    /// have `limit`.
    pub(crate) fn patience(&self, limit: Duration, attempt: u32) -> Duration {
        self.spec()
            .map_or(limit, |spec| patience_for(&spec.transport, limit, attempt))
    }

    /// How long the answer to an HTTP request may take to begin, by its entry.
    pub(crate) fn request_timeout(&self) -> Option<Duration> {
        self.spec()?.request_timeout
    }

    /// Where it is written down what happens to it.
    pub(crate) fn journal(&self, server: &ServerName) -> JournalName {
        let share = self.spec().map(|spec| &spec.share);
        JournalName::of(server, share.unwrap_or(&ServerShare::User))
    }

    /// What must not be written down.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.spec().map(secrets_of).unwrap_or_default()
    }

    /// The longest a call may take by its entry.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match self {
            ServerSource::Spec(spec) => spec.timeout,
            ServerSource::Object { timeout, .. } => *timeout,
        }
    }

    /// How its messages travel.
    pub(crate) fn delivery(&self) -> MessageDelivery {
        self.transport().facts().delivery
    }

    /// Whether the organisation's word may count there.
    pub(crate) fn takes_federated_login(&self) -> bool {
        let remote = self.spec().and_then(|spec| spec.transport.open_to_logins());
        let oauth = remote.and_then(|remote| remote.oauth.as_ref());
        oauth.is_some_and(|oauth| oauth.xaa != CrossApp::Off)
    }

    /// The account whose login it is shown, where its entry names one.
    pub(crate) fn account(&self) -> Option<&str> {
        let remote = self.spec()?.transport.remote()?;
        remote.oauth.as_ref()?.account.as_deref()
    }

    /// The same with the login of this account.
    pub(crate) fn as_account(&self, account: &str) -> Self {
        let mut source = self.clone();
        if let ServerSource::Spec(spec) = &mut source
            && let Some(remote) = spec.transport.remote_mut()
        {
            let oauth = remote.oauth.get_or_insert_default();
            oauth.account = Some(account.to_owned());
        }
        source
    }

    /// Whether it is reached by the account's token.
    pub(crate) fn is_connector(&self) -> bool {
        self.transport().is_connector()
    }

    /// Whether an editor is at the other end.
    pub(crate) fn is_editor(&self) -> bool {
        self.transport().is_editor()
    }

    /// Whose slots it takes while it connects.
    pub(crate) fn group(&self) -> ConnectGroup {
        if self.transport().is_remote() {
            ConnectGroup::Remote
        } else {
            ConnectGroup::Local
        }
    }
}
