//! A server's definition, ready to connect: typed, with every variable expanded.
//!
//! Owns the shape of a definition. Reading and checking one is `toolway-config`'s work; opening
//! one is `toolway-transport`'s.

mod secrets;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::{
    ProtocolMode, RemoteKind, Secret, SecretReference, ServerName, ServerShare, ShieldMode,
    TransportKind, UrlRules, VoucherSpec,
};

/// Everything needed to connect to one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The name it was configured under.
    pub name: ServerName,
    /// How to reach it.
    pub transport: TransportSpec,
    /// The longest a tool call may take, where the entry says so.
    pub timeout: Option<Duration>,
    /// How long the answer to an HTTP request may take to begin, where the entry says so.
    pub request_timeout: Option<Duration>,
    /// Which era to speak.
    pub protocol: ProtocolMode,
    /// With whom an instance of it is shared.
    pub share: ServerShare,
    /// The directories that it is told of, in place of those of the host.
    pub roots: Vec<PathBuf>,
    /// The secrets that are looked up when a connection is made. Until then a word stands for
    /// each: [`SecretReference::placeholder`].
    pub references: Vec<SecretReference>,
}

/// The ways to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportSpec {
    /// A child process.
    Stdio(StdioSpec),
    /// A server object inside the embedding program.
    Sdk,
    /// A server across a network.
    Remote(RemoteKind, RemoteSpec),
}

/// A child process to start. No shell is ever involved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioSpec {
    /// The program, looked up in `PATH` when it has no slash. It is what the program is told
    /// about its own name.
    pub command: String,
    /// The file to execute, links followed, where a policy was asked about it: what was checked
    /// is what is started, whatever `command` leads to by then.
    pub program: Option<PathBuf>,
    /// Its arguments.
    pub args: Vec<String>,
    /// What every child gets: the allow-list of the host's own environment, shared by all.
    pub inherited: Arc<BTreeMap<String, Secret>>,
    /// What the entry declares; it wins over what is inherited. There is nothing else.
    pub env: BTreeMap<String, Secret>,
    /// Where it is started. Never, without the entry's word, in the directory that a user happens
    /// to stand in: programs run what they find there.
    pub cwd: WorkingDirectory,
    /// Whether it is kept from writing Toolway's own files.
    pub shield: ShieldMode,
    /// What is taken from the mode of files that it makes, where that is not this process's own:
    /// it was asked for in another.
    pub umask: Option<u32>,
}

/// Where a process is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkingDirectory {
    /// A directory that the entry names, or that it came with.
    At(PathBuf),
    /// A private directory of its own, made when the process starts.
    Private(PathBuf),
}

impl WorkingDirectory {
    /// Which directory that is.
    pub fn path(&self) -> &Path {
        match self {
            Self::At(path) | Self::Private(path) => path,
        }
    }
}

impl From<PathBuf> for WorkingDirectory {
    fn from(path: PathBuf) -> Self {
        Self::At(path)
    }
}

impl Default for WorkingDirectory {
    /// The root: nothing that runs is found there, and only the system's owner can change that.
    fn default() -> Self {
        Self::At(PathBuf::from("/"))
    }
}

impl StdioSpec {
    /// The file to execute.
    pub fn file(&self) -> &OsStr {
        match &self.program {
            Some(program) => program.as_os_str(),
            None => OsStr::new(&self.command),
        }
    }

    /// One variable of the child's environment.
    pub fn variable(&self, name: &str) -> Option<&Secret> {
        self.env.get(name).or_else(|| self.inherited.get(name))
    }

    /// The child's whole environment.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.inherited
            .iter()
            .filter(|(name, _)| !self.env.contains_key(*name))
            .chain(&self.env)
            .map(|(name, value)| (name.as_str(), value))
    }
}

/// A server reached over the network. Its `Debug` says which host that is and nothing else of the
/// URL, which may hold a secret anywhere behind it.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// The endpoint.
    pub url: Url,
    /// Headers sent with every request, in the order written.
    pub headers: Vec<(String, Secret)>,
    /// A program that prints more headers.
    pub headers_helper: Option<Box<HeadersHelper>>,
    /// OAuth settings.
    pub oauth: Option<Box<OauthSpec>>,
    /// What policy says about addresses that the server leads to.
    pub rules: Arc<UrlRules>,
}

impl fmt::Debug for RemoteSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        formatter
            .debug_struct("RemoteSpec")
            .field("url", &format_args!("{origin}/…"))
            .field("headers", &self.headers)
            .field("headers_helper", &self.headers_helper)
            .field("oauth", &self.oauth)
            .field("rules", &self.rules)
            .finish()
    }
}

/// A program that prints a JSON object of headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadersHelper {
    /// The command line as written, with no variable expanded.
    pub command: String,
    /// The program, with what it is started with.
    pub process: StdioSpec,
}

/// The `oauth` object of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OauthSpec {
    /// A client id registered beforehand.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
    /// The fixed port of the loopback callback.
    pub callback_port: Option<u16>,
    /// Where the authorization server's metadata lies, when discovery cannot find it.
    pub auth_server_metadata_url: Option<Url>,
    /// The scopes to ask for.
    pub scopes: Option<Vec<String>>,
    /// Whether to log in by cross-app access.
    pub xaa: CrossApp,
    /// The user's word for the account whose login is used.
    pub account: Option<String>,
    /// Another party whose word is the login.
    pub voucher: Option<VoucherSpec>,
    /// What is done where an authorization server does not say that it knows PKCE.
    pub unannounced_pkce: UnannouncedPkce,
    /// The secrets that are looked up when a login is made or renewed.
    pub references: Vec<SecretReference>,
}

/// What is done where an authorization server does not say that it knows PKCE (RFC 7636): it may
/// check the proof all the same, or give tokens to a thief of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnannouncedPkce {
    /// There is no login.
    #[default]
    Refused,
    /// The login is made as if it were announced, and says that it is not.
    Allowed,
}

/// Whether a server is logged in to by cross-app access: the user's organisation vouches, and the
/// server has no login page of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CrossApp {
    /// It is not.
    #[default]
    Off,
    /// It is, where its authorization server takes that.
    Preferred,
    /// It is, and in no other way.
    Only {
        /// Where the policy stands that says so.
        policy: String,
    },
}

impl TransportSpec {
    /// The settings of logins, where the entry has some.
    pub fn oauth_mut(&mut self) -> Option<&mut OauthSpec> {
        self.remote_mut()?.oauth.as_deref_mut()
    }

    /// What a server across a network is reached by.
    pub fn remote(&self) -> Option<&RemoteSpec> {
        match self {
            Self::Remote(_, remote) => Some(remote),
            Self::Stdio(_) | Self::Sdk => None,
        }
    }

    /// The same, to change it.
    pub fn remote_mut(&mut self) -> Option<&mut RemoteSpec> {
        match self {
            Self::Remote(_, remote) => Some(remote),
            Self::Stdio(_) | Self::Sdk => None,
        }
    }

    /// The same, where an authorization server could speak for it.
    pub fn open_to_logins(&self) -> Option<&RemoteSpec> {
        self.remote().filter(|_| self.kind().logs_in())
    }

    /// Which kind this is.
    pub fn kind(&self) -> TransportKind {
        match self {
            Self::Stdio(_) => TransportKind::Stdio,
            Self::Sdk => TransportKind::Sdk,
            Self::Remote(kind, _) => TransportKind::Remote(*kind),
        }
    }
}
