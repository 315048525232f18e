//! What the user reads when the browser comes back.
//!
//! Owns the words and the look. A page is made of fixed text and of the name that the user gave the
//! server; nothing of the request is ever repeated. No script, nothing fetched, and a policy that
//! would forbid both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::Full;
use sha2::{Digest as _, Sha256};
use toolway_types::text;

const STYLE: &str = include_str!("page.css");

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackPage {
    /// Everything went well, tokens and all.
    LoggedIn,
    /// The user said no.
    Declined,
    /// The authorization server would not, or the code could not be spent.
    Failed,
    /// The request belongs to no login here.
    NotYours,
    /// The login was answered before.
    TooLate,
    /// Not the path.
    NotFound,
    /// Not a GET.
    WrongMethod,
    /// Asked for under another host's name.
    Misdirected,
}

impl CallbackPage {
    /// Its status.
    pub fn status(self) -> StatusCode {
        match self {
            CallbackPage::LoggedIn | CallbackPage::Declined | CallbackPage::Failed => {
                StatusCode::OK
            }
            CallbackPage::NotYours => StatusCode::BAD_REQUEST,
            CallbackPage::TooLate => StatusCode::GONE,
            CallbackPage::NotFound => StatusCode::NOT_FOUND,
            CallbackPage::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            CallbackPage::Misdirected => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    /// Headline and text; `{server}` is the server's name.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            CallbackPage::LoggedIn => (
                "You are logged in",
                "Toolway can now use {server} with your account. You can close this window.",
            ),
            CallbackPage::Declined => (
                "You declined the login",
                "Nothing was changed: Toolway has no access to {server} through this login. You \
                 can close this window, and start the login again whenever you like.",
            ),
            CallbackPage::Failed => (
                "The login did not work",
                "Toolway has no access to {server} through this login. Where you started it, it \
                 says what went wrong and how to try again.",
            ),
            CallbackPage::NotYours => (
                "This does not belong to the login",
                "The request was ignored, and the login to {server} is still waiting. If you came \
                 here by logging in, start again from the address that Toolway showed you.",
            ),
            CallbackPage::TooLate => (
                "This login was answered already",
                "Each login is answered once. Where you started it, it says how it ended.",
            ),
            CallbackPage::NotFound => (
                "There is nothing here",
                "Toolway waits for a login elsewhere.",
            ),
            CallbackPage::WrongMethod | CallbackPage::Misdirected => (
                "This request was not understood",
                "It was ignored. A login that is under way is still waiting.",
            ),
        }
    }

    fn tone(self) -> &'static str {
        match self {
            CallbackPage::LoggedIn => "good",
            CallbackPage::Declined | CallbackPage::TooLate => "calm",
            _ => "bad",
        }
    }

    fn html(self, server: &str) -> String {
        let (headline, text) = self.words();
        let name = format!("<strong>{}</strong>", escape(&text::clean_line(server)));
        let text = text.replace("{server}", &name);
        let tone = self.tone();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{headline} · Toolway</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <main class=\"{tone}\">\n<p class=\"who\">Toolway</p>\n<h1>{headline}</h1>\n\
             <p>{text}</p>\n</main>\n</body>\n</html>\n"
        )
    }

    pub(super) fn response(self, server: &str) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.html(server))));
        *response.status_mut() = self.status();
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            STANDARD.encode(Sha256::digest(STYLE))
        );
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            // The address has the code in it: it must not be cached, nor sent as a referrer.
            (CACHE_CONTROL, "no-store"),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (CONNECTION, "close"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(policy) = HeaderValue::try_from(policy) {
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        if self == CallbackPage::WrongMethod {
            headers.insert(ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
