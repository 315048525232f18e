//! A page that a server wants the user to visit.
//!
//! Owns what they see before they decide, and that nothing is opened without their yes (SEC-36).
//! The page itself is never fetched here.

use std::collections::BTreeMap;

use toolway::{ElicitationAnswer, MoreRights};
use toolway_config::Environment;
use toolway_transport::browser::Browser;
use toolway_types::{Secret, Untrusted};
use url::Url;

use super::{End, MESSAGE, Talk};
use crate::screen::{disguise, name, words};

/// What a browser needs to find the user's screen, session and profile.
const VARIABLES: &[&str] = &[
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "HOME",
    "KDE_FULL_SESSION",
    "KDE_SESSION_VERSION",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
    "WSL_DISTRO_NAME",
    "WSL_INTEROP",
    "XAUTHORITY",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
];

/// How pages are opened.
pub(super) struct Pages {
    pub(super) browser: Browser,
}

impl Pages {
    pub(super) fn new(environment: &Environment) -> Self {
        let variables: BTreeMap<String, Secret> = VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Secret::new(environment.var(name)?))))
            .collect();
        Self {
            browser: Browser::new(environment.var("BROWSER"), variables),
        }
    }
}

/// Shows where the page is, and opens it after a yes.
pub(super) async fn ask(
    talk: &Talk<'_>,
    message: &Untrusted,
    page: &Url,
    pages: &Pages,
) -> Result<ElicitationAnswer, End> {
    talk.introduce("asks you to visit a page:", message);
    agree(talk, page, "Open it in your browser?").await?;
    open(talk, page, pages).await;
    Ok(ElicitationAnswer::Accept(None))
}

/// Shows what a login has and would get, and opens its page after a yes. No server can have this
/// asked about a page of its choice, so the first line is one that none can have shown.
pub(super) async fn log_in(
    talk: &Talk<'_>,
    rights: &MoreRights,
    page: &Url,
    pages: &Pages,
) -> Result<ElicitationAnswer, End> {
    talk.say(&format!(
        "your login to {} does not reach far enough for this:",
        talk.server()
    ));
    let listed = |scopes: &[String]| match scopes {
        [] => "(nothing that is known)".to_owned(),
        scopes => words(&scopes.join(" "), MESSAGE),
    };
    talk.say_row(&format!("  has: {}", listed(&rights.has)));
    talk.say_row(&format!("  wants: {}", listed(&rights.wants)));
    if let Some(code) = &rights.code {
        talk.say_row(&format!("  code to type there: {}", name(code.expose())));
    }
    let question = "Open the login page in your browser?";
    agree(talk, page, question).await?;
    // Before it opens: who is quick there is done before the browser has started.
    talk.say("waiting until you are done there");
    open(talk, page, pages).await;
    Ok(ElicitationAnswer::Accept(None))
}

/// Shows where a page leads, and asks.
async fn agree(talk: &Talk<'_>, page: &Url, question: &str) -> Result<(), End> {
    // Nothing of it is cut: the end decides as much as the beginning. It is not broken into rows
    // either, so that it can be copied; an address has no blank with which it could imitate one.
    talk.say(&format!("  page: {}", page.as_str()));
    talk.say_row(&format!("  host: {}", host(page)));
    talk.say("(what you enter there goes to that host; `/cancel` or Ctrl-C puts this away)");
    if talk.confirm(question).await? {
        Ok(())
    } else {
        Err(End::Declined)
    }
}

async fn open(talk: &Talk<'_>, page: &Url, pages: &Pages) {
    if let Err(error) = pages.browser.show(page).await {
        talk.say(&format!("warning: {error}"));
        talk.say("hint: open the page above yourself, or name a program in the variable `BROWSER`");
    }
}

/// The host as it is looked up, and what a browser may show in its place.
fn host(page: &Url) -> String {
    let host = page.host_str().unwrap_or_default();
    let port = page
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    format!("{host}{port}{}", disguise(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_36_a_host_is_shown_in_the_letters_that_are_looked_up() {
        let shown = |text: &str| host(&Url::parse(text).unwrap());
        assert_eq!(shown("https://example.com/x"), "example.com");
        assert_eq!(shown("http://127.0.0.1:9/x"), "127.0.0.1:9");
        assert_eq!(
            shown("https://\u{430}pple.com:8443/"),
            "xn--pple-43d.com:8443 (may be shown as `⟨Cyrillic \u{430}⟩pple.com`: letters that \
             look alike are not the same)"
        );
    }
}
