//! What helps against the failure of a connection, and a call that took too long.
//!
//! Owns the one table from a failure to its `hint:`.

use toolway::TimeLimit;
use toolway_types::name::as_word;
use toolway_types::{CertificateFault, Failure, FailureKind, ReferenceKind};

/// What helps whichever server it is: the fault lies between this machine and the server.
pub(crate) fn network_hint(failure: &Failure) -> Option<&'static str> {
    // The reason is a sentence by now; these are the ones whose cure is a variable.
    [
        (
            "proxy",
            "check `HTTPS_PROXY` and `HTTP_PROXY`; hosts in `NO_PROXY` are reached without one",
        ),
        (
            "cannot read certificates",
            "mend that file, or the variable that names it",
        ),
    ]
    .into_iter()
    .find(|(words, _)| failure.kind == FailureKind::Unreachable && failure.message.contains(words))
    .map(|(_, hint)| hint)
}

/// What helps against the failure of a configured server.
pub(crate) fn failure_hint(server: &str, failure: &Failure) -> String {
    if let Some(hint) = network_hint(failure) {
        return hint.to_owned();
    }
    let server = as_word(server);
    match failure.kind {
        FailureKind::Spawn => {
            format!("check the program with `toolway get {server}` and `toolway doctor`")
        }
        FailureKind::Secret(kind) => match kind {
            ReferenceKind::Keychain => {
                "see what there is with `toolway vault list`, and whether it can be read with \
                 `toolway doctor`"
                    .to_owned()
            }
            ReferenceKind::File => {
                format!("check the file; `toolway get {server}` shows where it is named")
            }
            ReferenceKind::Command => {
                format!("run the command yourself; `toolway get {server}` shows where it stands")
            }
        },
        FailureKind::Credentials => credentials_hint(&server, &failure.message),
        FailureKind::Unreachable => {
            format!("is it up? check its address with `toolway get {server}`")
        }
        FailureKind::Certificate(fault) => match fault {
            CertificateFault::Untrusted => {
                "if you trust it, name a PEM file of its authority in the variable `NODE_EXTRA_CA_CERTS`".to_owned()
            }
            CertificateFault::Expired => {
                "it has to be renewed at the server; check this machine's date as well".to_owned()
            }
            CertificateFault::NotYet => "check this machine's date".to_owned(),
            CertificateFault::OtherName => {
                format!("use the name that the certificate is for: `toolway get {server}`")
            }
            CertificateFault::Unusable => "it has to be replaced at the server".to_owned(),
            CertificateFault::Ours => {
                "name a PEM file with your certificate in the variable `TOOLWAY_CLIENT_CERT`"
                    .to_owned()
            }
        },
        FailureKind::TimedOut => {
            "give it longer with the variable `MCP_TIMEOUT` (milliseconds)".to_owned()
        }
        FailureKind::Closed => {
            format!(
                "see what it wrote with `toolway logs {server}`, its command with `toolway get {server}`"
            )
        }
        FailureKind::Forbidden => {
            "ask the administrator of this machine to allow it, or the server not to lead there"
                .to_owned()
        }
        FailureKind::Protocol => format!("check that it is an MCP server: `toolway get {server}`"),
    }
}

/// What gives a call longer.
pub(super) fn time_hint(limit: TimeLimit) -> &'static str {
    match limit {
        TimeLimit::Beginning => {
            "give it longer with `--timeout <seconds>`, or always with `requestTimeout` \
             (milliseconds) in its entry"
        }
        TimeLimit::Whole | TimeLimit::Idle => "give it longer with `--timeout <seconds>`",
    }
}

/// What helps where requests have nothing to carry: a login, or what a helper would say.
fn credentials_hint(server: &str, message: &str) -> String {
    // The reason is a sentence by now.
    if message.starts_with("the server refuses") {
        return format!(
            "change it in its entry (`toolway get {server}` says where); without it, the server can be logged in to"
        );
    }
    if message.contains("; it may refuse ") {
        return format!(
            "check that it is good for this server: `toolway get {server}` says where it is written"
        );
    }
    if message.contains("headers helper") {
        return format!("run it yourself; `toolway get {server}` shows where it is named");
    }
    if message.contains("cannot be renewed now") {
        return format!(
            "the login is kept: try again in a while, or log in anew with `toolway login {server}`"
        );
    }
    format!(
        "check where logins are kept with `toolway doctor`; log in anew with `toolway login {server}`"
    )
}
