//! What the authority saw, and what a test may ask about it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedParty {
    /// The authorization server.
    Issuer,
    /// The protected resource.
    Resource,
    /// The one who must never get anything.
    Attacker,
}

/// One request, as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// Who was asked.
    pub party: RequestedParty,
    /// The method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query's pairs.
    pub query: Vec<(String, String)>,
    /// The headers, in order and as they were written.
    pub headers: Vec<(String, String)>,
    /// The pairs of a form; empty when the body is none.
    pub form: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl RecordedRequest {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// A value of the form, or else of the query.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.form
            .iter()
            .chain(&self.query)
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// Everything that was said, as one text to search for secrets in.
    pub fn text(&self) -> String {
        let mut text = format!("{} {} {:?}\n", self.method, self.path, self.query);
        for (name, value) in &self.headers {
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push_str(&self.body);
        text
    }
}

/// What happened so far, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuthorityReport {
    /// Requests for any metadata, the resource's or the server's.
    pub metadata: u64,
    /// Requests at the authorization endpoint.
    pub authorizations: u64,
    /// Codes given out.
    pub codes: u64,
    /// Requests at the token endpoint, by grant: `authorization_code`, `refresh_token`,
    /// `client_credentials`, `device_code`, `token-exchange`, `jwt-bearer`.
    pub token_requests: BTreeMap<String, u64>,
    /// Requests at the token endpoint that were granted, by grant.
    pub granted: BTreeMap<String, u64>,
    /// Clients registered.
    pub registrations: u64,
    /// Metadata documents of clients that were fetched.
    pub documents: u64,
    /// Devices that began a login.
    pub devices: u64,
    /// Requests at the revocation endpoint.
    pub revocations: u64,
    /// Families revoked because a refresh token or a code was used twice.
    pub families_revoked: u64,
    /// Requests at the protected resource, and how many of them were let in.
    pub mcp_requests: u64,
    /// Requests at the protected resource that were let in.
    pub mcp_allowed: u64,
    /// 401 answers of the protected resource.
    pub unauthorized: u64,
    /// 403 answers of the protected resource.
    pub forbidden: u64,
    /// Requests at the connectors of an account.
    pub connector_requests: u64,
    /// Requests that reached the attacker.
    pub attacker_requests: u64,
}

impl AuthorityReport {
    /// Requests of this grant.
    pub fn token_requests(&self, grant: &str) -> u64 {
        self.token_requests.get(grant).copied().unwrap_or_default()
    }

    /// Granted requests of this grant.
    pub fn granted(&self, grant: &str) -> u64 {
        self.granted.get(grant).copied().unwrap_or_default()
    }
}
