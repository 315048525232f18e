//! What is said about a server that wants a login.
//!
//! Owns the words for a login that is missing, or does not reach far enough. Why a login that was
//! tried failed is `commands/login/report.rs`.

use toolway::rows::UNNAMED_SCOPES;
use toolway_types::name::{as_word, shell_word};

use super::{About, Report};
use crate::exit::Exit;

/// The words behind `toolway login` that log in to what an entry uses.
pub(crate) fn login_words(server: &str, account: Option<&str>) -> String {
    let word = as_word(server);
    match account {
        Some(account) => format!("{word} --account {}", shell_word(account)),
        None => word.into_owned(),
    }
}

impl Report {
    /// A server that wants a login, or one that reaches further.
    pub(crate) fn needs_login(server: &str, scopes: &[String]) -> Self {
        let word = as_word(server);
        if scopes.is_empty() {
            let message = format!("server `{server}` wants a login first");
            let mut report = Report::new(Exit::NeedsLogin, message)
                .hint(format!("log in with `toolway login {word}`"));
            report.about = Some(About::WantsLogin(server.to_owned()));
            return report;
        }
        let scopes = scopes.join(" ");
        let message = format!("server `{server}` wants a login that reaches `{scopes}` first");
        Report::new(Exit::NeedsLogin, message).hint(format!(
            "log in with `toolway login {word} --scopes {}`",
            shell_word(&scopes)
        ))
    }

    /// A server that wants a login which reaches further, and keeps to itself how far: one like the
    /// last would change nothing.
    pub(crate) fn unnamed_scopes(server: &str) -> Self {
        let message = format!("server `{server}` {UNNAMED_SCOPES}");
        Report::new(Exit::NeedsLogin, message).hint(format!(
            "ask whoever runs it which scopes it takes, then log in with \
             `toolway login {} --scopes <scopes>`",
            as_word(server)
        ))
    }
}
