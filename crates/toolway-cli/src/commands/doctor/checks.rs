//! What `toolway doctor` looks at beside the configuration: the machine that logins depend on.
//!
//! Owns the checks and what each says; one line each, with how to mend it. None waits for
//! the user, and only the clock needs the network, when that is asked for.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::Access;
use rustix::io::Errno;
use toolway_auth::vault::{KeychainError, VaultBackend, VaultEntry};
use toolway_auth::web::WebClient;
use toolway_config::Plan;
use toolway_rows::CheckRow;
use toolway_transport::client::HttpClient;
use toolway_types::{RemoteSpec, request_url};
use url::Url;

use super::LABEL;
use crate::connect;
use crate::context::Context;
use crate::report::Report;

/// Tokens are renewed this long before they expire; a clock that is further off breaks them.
const OFF: Duration = Duration::from_mins(1);
/// No server accepts what was signed this far in the past or the future.
const FAR_OFF: Duration = Duration::from_mins(5);

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Ok,
    Warn,
    Fail,
}

impl Health {
    fn as_str(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Warn => "warn",
            Health::Fail => "fail",
        }
    }
}

/// One line.
#[derive(Debug)]
pub(super) struct Check {
    name: &'static str,
    pub(super) health: Health,
    message: String,
    hint: Option<String>,
}

impl Check {
    fn new(name: &'static str, health: Health, message: impl Into<String>) -> Self {
        Self {
            name,
            health,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{:<LABEL$}{}: {}\n",
            self.name,
            self.health.as_str(),
            self.message
        );
        if let Some(hint) = &self.hint {
            // Writing into a string cannot fail.
            let _ = writeln!(line, "{:<LABEL$}hint: {hint}", "");
        }
        line
    }

    pub(super) fn row(&self) -> CheckRow {
        CheckRow {
            name: self.name.into(),
            state: self.health.as_str().into(),
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

/// All of them, in order.
pub(super) fn all(context: &Context, plan: &Plan, network: bool) -> Vec<Check> {
    let client = context.setup.http_client();
    let mut checks = Vec::new();
    checks.push(keychain(context));
    checks.push(vault(context));
    checks.push(clock(plan, &client, network));
    checks.extend(callback(plan));
    checks.push(proxy(context));
    checks.push(certificates(context, &client));
    checks
}

fn remotes(plan: &Plan) -> impl Iterator<Item = (&str, &RemoteSpec)> {
    plan.admitted().filter_map(|(server, spec)| {
        let remote = spec.transport.remote()?;
        if spec.transport.kind().is_editor() {
            return None;
        }
        Some((server.name.as_str(), remote))
    })
}

/// Whether everything that was saved can be read.
fn vault(context: &Context) -> Check {
    const NAME: &str = "vault";
    let failed = |report: Report, more: usize| {
        let message = match more {
            0 => report.message,
            more => format!("{}; and {more} more cannot be read", report.message),
        };
        let check = Check::new(NAME, Health::Fail, message);
        match report.hint {
            Some(hint) => check.hint(hint),
            None => check,
        }
    };
    let asked = connect::block_on(async {
        let vault = connect::vault(context);
        let (mut count, mut faults) = (0, Vec::new());
        for listed in vault.list().await? {
            count += 1;
            if let Err(error) = vault.read(&listed.key).await {
                faults.push(error);
            }
        }
        Ok((count, faults))
    });
    let folder = connect::vault(context).folder().to_owned();
    let may_write = |path: &Path| match rustix::fs::access(path, Access::WRITE_OK) {
        Err(errno) => errno == Errno::NOENT,
        Ok(()) => true,
    };
    let closed = [folder.join("secrets"), folder];
    let closed = closed.iter().find(|path| !may_write(path));
    match asked {
        Err(report) => failed(report, 0),
        Ok((_, mut faults)) if !faults.is_empty() => {
            let more = faults.len() - 1;
            failed(Report::from(faults.swap_remove(0)), more)
        }
        Ok(_) if closed.is_some() => {
            let path = closed.map(|path| path.display().to_string());
            let path = path.unwrap_or_default();
            let message = format!("nothing can be saved or renewed: `{path}` cannot be written");
            Check::new(NAME, Health::Fail, message).hint(format!("check the rights on `{path}`"))
        }
        Ok((0, _)) => Check::new(NAME, Health::Ok, "empty"),
        Ok((1, _)) => Check::new(NAME, Health::Ok, "1 secret, which can be read"),
        Ok((count, _)) => Check::new(
            NAME,
            Health::Ok,
            format!("{count} secrets, which can all be read"),
        ),
    }
}

/// Where logins are kept, why not in the keychain, and what lies there unprotected.
fn keychain(context: &Context) -> Check {
    const NAME: &str = "keychain";
    let asked = connect::block_on(async {
        let vault = connect::vault(context);
        // A list that cannot be read is said by the check of the vault.
        let listed = vault.list().await.unwrap_or_default();
        let plain = |listed: &&VaultEntry| listed.backend == VaultBackend::PlainFile;
        let plain = listed.iter().filter(plain).count();
        let trouble = vault.keychain_trouble().await;
        Ok((vault.backend().await, trouble, plain))
    });
    let (backend, trouble, plain) = match asked {
        Ok(asked) => asked,
        Err(report) => return Check::new(NAME, Health::Fail, report.message),
    };
    let check = match trouble {
        None => Check::new(NAME, Health::Ok, backend.protects()),
        Some(trouble) if backend == VaultBackend::Keychain => {
            let message = format!("{trouble}; `TOOLWAY_VAULT` allows nothing else");
            Check::new(NAME, Health::Fail, message)
                .hint("start and unlock a keychain, or set `TOOLWAY_VAULT` to `any`")
        }
        Some(trouble) => {
            let message = format!("{trouble}; logins are kept in {}", backend.protects());
            if let KeychainError::Absent { .. } = trouble {
                // Usual on servers, and nothing to mend.
                Check::new(NAME, Health::Ok, message)
            } else {
                Check::new(NAME, Health::Warn, message)
                    .hint("start and unlock a keychain, or set a passphrase in `TOOLWAY_VAULT_KEY`")
            }
        }
    };
    if plain == 0 {
        return check;
    }
    let lie = if plain == 1 {
        "secret lies"
    } else {
        "secrets lie"
    };
    let message = format!(
        "{}; {plain} {lie} in {}",
        check.message,
        VaultBackend::PlainFile.protects()
    );
    Check::new(NAME, Health::Warn, message).hint(
        "see which with `toolway vault list`, and log in or set them again without \
         `--insecure-storage`",
    )
}

/// Whether this machine knows the time, by the word of the first server that says one.
fn clock(plan: &Plan, client: &HttpClient, network: bool) -> Check {
    const NAME: &str = "clock";
    if !network {
        let message = "not compared with a server's: nothing is asked without `--network`";
        return Check::new(NAME, Health::Ok, message);
    }
    let web = WebClient::trusted(client.clone());
    let mut asked = false;
    for (server, remote) in remotes(plan) {
        let Some(url) = root(&remote.url) else {
            continue;
        };
        asked = true;
        let asking = async { Ok(web.get(&url).await) };
        let reply = connect::block_on(asking).ok().and_then(Result::ok);
        if let Some(date) = reply.and_then(|reply| reply.date()) {
            return compared(server, date, SystemTime::now());
        }
    }
    let message = if asked {
        "no configured server says what time it is"
    } else {
        "no server is configured that could say what time it is"
    };
    Check::new(NAME, Health::Ok, message)
}

/// The root of a server's origin: its endpoint may keep a request open for ever.
fn root(url: &Url) -> Option<Url> {
    let mut url = request_url(url).join("/").ok()?;
    // What is asked here needs no credentials.
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url)
}

fn compared(server: &str, theirs: SystemTime, ours: SystemTime) -> Check {
    let (off, word) = match ours.duration_since(theirs) {
        Ok(off) => (off, "ahead of"),
        Err(error) => (error.duration(), "behind"),
    };
    if off < OFF {
        let message = format!("as the one of server `{server}`");
        return Check::new("clock", Health::Ok, message);
    }
    let health = if off < FAR_OFF {
        Health::Warn
    } else {
        Health::Fail
    };
    let message = format!("{} s {word} the one of server `{server}`", off.as_secs());
    Check::new("clock", health, message)
        .hint("set this machine's clock, best from the network: logins depend on it")
}

/// Whether a browser can come back: on any port, and on those that entries name.
fn callback(plan: &Plan) -> Vec<Check> {
    const NAME: &str = "callback";
    let listens = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    if let Err(error) = listens(0) {
        let message = format!("nothing can listen on this machine: {error}");
        let hint = "log in with `--no-browser` or `--device`";
        return vec![Check::new(NAME, Health::Fail, message).hint(hint)];
    }
    let mut checks = Vec::new();
    for (server, remote) in remotes(plan) {
        let port = remote.oauth.as_ref().and_then(|oauth| oauth.callback_port);
        let Some(port) = port else { continue };
        if let Err(error) = listens(port) {
            let message = format!("port {port}, which server `{server}` names, is taken: {error}");
            let hint = "end what uses it before a login, or name another `callbackPort`";
            checks.push(Check::new(NAME, Health::Warn, message).hint(hint));
        }
    }
    if checks.is_empty() {
        let message = "a browser can come back to this machine";
        checks.push(Check::new(NAME, Health::Ok, message));
    }
    checks
}

/// Which proxies are used, without who logs in there.
fn proxy(context: &Context) -> Check {
    const NAME: &str = "proxy";
    let mut used = Vec::new();
    for names in [["HTTPS_PROXY", "https_proxy"], ["HTTP_PROXY", "http_proxy"]] {
        let variable = names.iter().find_map(|name| {
            let value = context.environment().var(name)?;
            (!value.is_empty()).then_some((*name, value))
        });
        let Some((name, value)) = variable else {
            continue;
        };
        // `host:port` is as good as a URL.
        let full = if value.contains("://") {
            value.to_owned()
        } else {
            format!("http://{value}")
        };
        let place = full.parse::<Url>().ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            Some(match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host,
            })
        });
        match place {
            Some(place) => used.push(format!("{place} (`{name}`)")),
            None => {
                return Check::new(NAME, Health::Fail, format!("`{name}` is not a URL"))
                    .hint(format!("write it as `http://host:port`, or unset `{name}`"));
            }
        }
    }
    if used.is_empty() {
        return Check::new(NAME, Health::Ok, "none");
    }
    Check::new(NAME, Health::Ok, used.join(", "))
}

/// Whether the certificates that are to be trusted, and our own, can be read.
fn certificates(context: &Context, client: &HttpClient) -> Check {
    const NAME: &str = "certificates";
    let variables: Vec<&str> = [
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "TOOLWAY_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_CERT",
    ]
    .into_iter()
    .filter(|name| {
        context
            .environment()
            .var(name)
            .is_some_and(|it| !it.is_empty())
    })
    .collect();
    // Any address over TLS: nothing is asked.
    let loaded = Url::parse("https://localhost/").map(|url| client.for_url(&url));
    if let Ok(Err(error)) = loaded {
        let hint = match variables.as_slice() {
            [] => "install the certificates of your system (often the package `ca-certificates`)"
                .to_owned(),
            names => format!("mend the file, or unset `{}`", names.join("`, `")),
        };
        return Check::new(NAME, Health::Fail, error.to_string()).hint(hint);
    }
    let message = match variables.as_slice() {
        [] => "the system's".to_owned(),
        names => format!("the system's and those of `{}`", names.join("`, `")),
    };
    Check::new(NAME, Health::Ok, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rel_16_a_clock_that_is_off_is_told_with_how_far() {
        let theirs = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (seconds, health, words) in [
            (0, Health::Ok, "as the one of server `s`"),
            (-59, Health::Ok, "as the one of server `s`"),
            (61, Health::Warn, "61 s ahead of the one of server `s`"),
            (-3600, Health::Fail, "3600 s behind the one of server `s`"),
        ] {
            let by = Duration::from_secs(i64::unsigned_abs(seconds));
            let ours = if seconds < 0 {
                theirs - by
            } else {
                theirs + by
            };
            let check = compared("s", theirs, ours);
            assert_eq!((check.health, check.message.as_str()), (health, words));
            assert_eq!(check.hint.is_some(), health != Health::Ok);
        }
    }

    #[test]
    fn the_time_is_asked_of_the_root_without_a_password() {
        let root = |url: &str| root(&url.parse().unwrap()).unwrap().to_string();
        assert_eq!(
            root("https://u:p@a.example:8443/mcp?k=v"),
            "https://a.example:8443/"
        );
        assert_eq!(root("ws://a.example/socket"), "http://a.example/");
    }
}
