//! The authority in a process of its own: `toolway-authority`, for tests that outlive their own
//! process or must not share it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::control::ask;
use super::{AuthorityReport, AuthoritySettings, IssuedTokens, RecordedRequest, Switch};

/// An authority in a process of its own; ends when dropped.
#[derive(Debug)]
pub struct AuthorityProcess {
    child: Child,
    /// The program ends with its input.
    stdin: Option<ChildStdin>,
    places: Value,
}

impl AuthorityProcess {
    /// The program, built when it is missing or older than its source.
    pub fn program() -> &'static Path {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        PROGRAM.get_or_init(|| crate::scripted::find_or_build("toolway-authority"))
    }

    /// Starts it on free ports.
    pub fn start(settings: &AuthoritySettings) -> Self {
        let settings = serde_json::to_string(settings).expect("settings are plain data");
        let mut child = Command::new(Self::program())
            .args(["--settings", &settings])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the authority starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the authority says where it is");
        let places = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the authority printed `{line}`: {error}"));
        Self {
            stdin: child.stdin.take(),
            child,
            places,
        }
    }

    /// The issuer's name.
    pub fn issuer(&self) -> &str {
        self.place("issuer")
    }

    /// The address of the protected MCP server.
    pub fn resource(&self) -> &str {
        self.place("resource")
    }

    /// The origin that nothing secret must ever reach.
    pub fn attacker(&self) -> &str {
        self.place("attacker")
    }

    /// The certificate to trust, in PEM; none without TLS.
    pub fn certificate(&self) -> Option<&str> {
        self.places["certificate"].as_str()
    }

    fn place(&self, name: &str) -> &str {
        self.places[name].as_str().expect("the program names it")
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        ask(self.place("control"), path, body)
    }

    /// From now on it misbehaves in these ways and no other.
    pub fn set(&self, switches: &[Switch]) {
        self.ask("/switches", &json!(switches));
    }

    /// Moves the clock by which it judges its tokens.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).expect("a time that fits");
        self.ask("/advance", &json!(ms));
    }

    /// Every access token so far is bad from now on.
    pub fn expire_access_tokens(&self) {
        self.ask("/expire", &Value::Null);
    }

    /// Tokens for this client without a login.
    pub fn issue(&self, client: &str, scope: &str) -> IssuedTokens {
        let tokens = self.ask("/issue", &json!({ "client": client, "scope": scope }));
        IssuedTokens {
            access: tokens["access"].as_str().unwrap_or_default().to_owned(),
            refresh: tokens["refresh"].as_str().map(str::to_owned),
        }
    }

    /// What a user says to the code that a device shows; whether there is such a code.
    pub fn decide_device(&self, user_code: &str, allow: bool) -> bool {
        let decided = self.ask(
            "/decide",
            &json!({ "user_code": user_code, "allow": allow }),
        );
        decided == true
    }

    /// What happened so far, in numbers.
    pub fn report(&self) -> AuthorityReport {
        serde_json::from_value(self.ask("/report", &Value::Null)).expect("a report is plain data")
    }

    /// Every request so far, in order.
    pub fn seen(&self) -> Vec<RecordedRequest> {
        serde_json::from_value(self.ask("/seen", &Value::Null)).expect("requests are plain data")
    }

    /// The tokens that are good now: access tokens, and refresh tokens.
    pub fn valid_tokens(&self) -> (Vec<String>, Vec<String>) {
        let tokens = self.ask("/tokens", &Value::Null);
        let list = |name: &str| serde_json::from_value(tokens[name].clone());
        (
            list("access").expect("a list of tokens"),
            list("refresh").expect("a list of tokens"),
        )
    }
}

impl Drop for AuthorityProcess {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.child.wait());
    }
}
