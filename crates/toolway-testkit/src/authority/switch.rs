//! The ways in which the authority can misbehave, one for each rule a client must hold.
//!
//! Owns the list and the clause that each breaks. What a switch does is where the honest answer
//! is made: `metadata.rs`, `authorize.rs`, `token.rs`, `answer.rs`, `device.rs`, `resource.rs`.

use serde::{Deserialize, Serialize};

macro_rules! switches {
    ($($(#[doc = $doc:literal])+ $name:ident => $clause:literal,)+) => {
        /// One misbehaviour. Any number of them hold at once, from the start or from some moment
        /// on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Switch {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Switch {
            /// Every switch there is.
            pub const ALL: &[Switch] = &[$(Switch::$name,)+];

            /// The clause that it breaks, or tests that a client holds.
            pub fn clause(self) -> &'static str {
                match self {
                    $(Switch::$name => $clause,)+
                }
            }
        }
    };
}

switches! {
    // Who the metadata says it is.
    /// The server's metadata names the attacker as `issuer`.
    IssuerOther => "RFC 8414 3.3: the issuer must be identical",
    /// `issuer` ends with one slash more.
    IssuerTrailingSlash => "RFC 8414 3.3: identical, not equivalent",
    /// `issuer` has its scheme in capitals.
    IssuerCase => "RFC 8414 3.3: identical, not equal without case",
    /// `issuer` spells its port with a leading zero, which a URL type takes for the same.
    IssuerPort => "RFC 8414 3.3: compared as a string, not as a URL",
    /// `issuer` spells one character of its host as a percent escape.
    IssuerPercent => "RFC 8414 3.3: compared as a string, not as a URL",
    /// The metadata has no `issuer`.
    IssuerMissing => "RFC 8414 2: issuer is required",
    // What the protected resource says of itself.
    /// The resource's metadata is for another origin.
    ResourceOther => "RFC 9728 3.3: resource must be the one asked for",
    /// The resource's metadata has no `resource`.
    ResourceMissing => "RFC 9728 2: resource is required",
    /// The resource names no authorization server.
    NoServers => "MCP authorization: at least one authorization server",
    /// The resource's metadata is nowhere, and the challenge names no place.
    NoResourceMetadata => "RFC 9728 3: metadata is required",
    /// The resource names an identity provider of its own choice.
    ResourceNamesProvider => "SEP-990: the identity provider comes from managed configuration only",
    /// The challenge's `resource_metadata` is a cloud's metadata address.
    ChallengeLinkLocal => "SSRF: link-local addresses are never asked",
    /// The challenge's `resource_metadata` lies at the attacker's origin.
    ChallengeOther => "RFC 9728 3.3: a place that has no metadata of this resource decides nothing",
    /// The authorization server is `169.254.169.254`.
    ServerLinkLocal => "SSRF: link-local addresses are never asked",
    /// The authorization server is `[::ffff:169.254.169.254]`.
    ServerMappedLinkLocal => "SSRF: mapped addresses count as what they map",
    /// The authorization server is written `0x7f.1`.
    ServerHex => "SSRF: every spelling of an address counts",
    /// The authorization server is written `2130706433`.
    ServerDecimal => "SSRF: every spelling of an address counts",
    /// The authorization server is `localhost.`, with its dot.
    ServerLocalhostDot => "SSRF: the filter looks at the address connected to",
    // How metadata is sent.
    /// Metadata redirects to a cloud's metadata address.
    MetadataRedirectPrivate => "SSRF: every hop of a redirect is checked",
    /// Metadata redirects to the attacker's origin.
    MetadataRedirectOther => "SSRF: metadata of another origin is not this server's",
    /// Metadata redirects to itself, forever.
    MetadataRedirectEndless => "a client bounds redirects",
    /// Metadata has 64 MiB.
    MetadataGigantic => "a client bounds bodies",
    /// Metadata comes a byte at a time and never ends.
    MetadataTrickle => "a client bounds time",
    /// Metadata is an array in an array, 200 000 deep.
    MetadataNested => "a client bounds depth",
    /// Metadata is a page of HTML with 200.
    MetadataHtml => "a captive portal's page is never taken for an answer",
    /// Metadata breaks off in the middle of its JSON.
    MetadataBroken => "RFC 8414 3.2: a JSON object",
    // What the server says it can do.
    /// The metadata does not say which PKCE methods there are.
    PkceUnsaid => "MCP authorization: refuse when code_challenge_methods_supported is absent",
    /// The metadata has only the method `plain`.
    PkcePlain => "MCP authorization: S256 is required",
    /// The metadata does not say that `iss` is returned.
    IssUnsaid => "RFC 9207 2.4: compared when present, not missed when unsaid",
    // Endpoints.
    /// The authorization endpoint is a `javascript:` URL.
    EndpointJavascript => "MCP security: only https, or http on loopback, is opened",
    /// The authorization endpoint is a `data:` URL.
    EndpointData => "MCP security: only https, or http on loopback, is opened",
    /// The authorization endpoint is a `file:` URL.
    EndpointFile => "MCP security: only https, or http on loopback, is opened",
    /// The authorization endpoint is plain HTTP somewhere else.
    EndpointPlain => "RFC 6749 3.1: TLS is required",
    /// The authorization endpoint begins like a flag of a program.
    EndpointDash => "CVE-2025-6514: nothing that an opener takes for a flag",
    /// The authorization endpoint holds what a shell would run.
    EndpointShell => "CVE-2025-6514: no shell ever sees it",
    /// The authorization endpoint holds control characters.
    EndpointControl => "MCP security: control characters are refused",
    /// The authorization endpoint has 64 KiB.
    EndpointHuge => "a client bounds URLs",
    /// The token endpoint is plain HTTP somewhere else.
    TokenEndpointPlain => "RFC 6749 3.2: TLS is required",
    /// The token endpoint is a cloud's metadata address.
    TokenEndpointLinkLocal => "SSRF: link-local addresses are never asked",
    /// The honest metadata has the attacker's token endpoint.
    TokenEndpointOther => "a code goes only where its issuer said, and the test sees where",
    // The answer to an authorization.
    /// The answer has no `iss` though it was promised.
    IssMissing => "RFC 9207 2.4: reject when promised and missing",
    /// The answer's `iss` is the attacker's.
    IssWrong => "RFC 9207 2.4: reject when it differs",
    /// Every authorization is refused, in the name of the attacker.
    ErrorIssWrong => "RFC 9207 2.4: errors too; their text is not shown",
    /// Every authorization is refused.
    AuthorizationDenied => "RFC 6749 4.1.2.1: access_denied",
    /// The answer has another `state`.
    StateWrong => "RFC 6749 10.12: state must match",
    /// The answer has no `state`.
    StateMissing => "RFC 6749 10.12: state must be there",
    /// The answer has no `code`.
    CodeMissing => "RFC 6749 4.1.2: code is required",
    /// The answer holds markup and further addresses for the callback's page to follow or show.
    CallbackOpenRedirect => "OAuth BCP 4.11: the callback neither redirects nor reflects",
    /// The resource names the attacker, whose authorization endpoint is the honest one.
    MixUp => "OAuth BCP 4.4: a code is never sent to another issuer",
    /// The resource moved to the attacker's authorization server.
    Migrated => "SEP-2352: credentials belong to one issuer",
    // The token endpoint's answer.
    /// No `expires_in`.
    ExpiryMissing => "RFC 6749 5.1: only recommended",
    /// `expires_in` is 0.
    ExpiryZero => "RFC 6749 5.1: no refresh loop",
    /// `expires_in` is negative.
    ExpiryNegative => "RFC 6749 5.1: no underflow",
    /// `expires_in` is a string.
    ExpiryString => "RFC 6749 5.1: a number, in practice often not",
    /// `expires_in` is beyond every calendar.
    ExpiryHuge => "RFC 6749 5.1: no overflow",
    /// No `token_type`.
    TypeMissing => "RFC 6749 5.1: token_type is required",
    /// `token_type` is `mac`.
    TypeMac => "RFC 6749 7.1: never use a type that is not understood",
    /// No `access_token`.
    AccessMissing => "RFC 6749 5.1: access_token is required",
    /// Keys twice, the second time with the attacker's values.
    DuplicateKeys => "RFC 8259 4: names should be unique",
    /// A page of HTML with 200.
    TokenHtml => "a captive portal's page is never taken for an answer",
    /// 64 MiB.
    TokenGigantic => "a client bounds bodies",
    /// The first token request is answered 429 with `Retry-After: 1`.
    TokenBusyOnce => "RFC 6585 4: wait as told",
    /// Every token request is answered 503 with `Retry-After: 2`.
    TokenUnavailable => "RFC 9110 15.6.4: wait as told, and keep what you have",
    /// The token endpoint redirects to the attacker.
    TokenRedirect => "OAuth BCP 4.12: a form with secrets never follows a redirect",
    /// Every description of an error steers a terminal.
    ErrorEscapes => "text of a server is never printed raw",
    // Refreshing.
    /// A refresh answers without a new refresh token; the old one stays.
    RefreshKept => "RFC 6749 6: the old one is kept then",
    /// The answer to the first refresh is lost after the rotation.
    RefreshLostOnce => "a lost answer is not a lost login",
    /// The answer to every refresh is lost after the rotation.
    RefreshLost => "a client gives up and asks the person",
    /// The first refresh is refused for no reason.
    InvalidGrantOnce => "look again before clearing what is kept",
    // The resource.
    /// Every request is answered 403 `insufficient_scope`.
    ScopeNever => "MCP authorization: few attempts at a step-up",
    /// Every request is answered 403 with one scope more than before.
    ScopeGrowing => "MCP authorization: few attempts at a step-up",
    /// 401 without a challenge.
    ChallengeMissing => "RFC 9110 11.6.1: a challenge is required; well-known places remain",
    /// 401 whatever the token.
    Storm => "one retry for a 401",
    /// 403 without a challenge.
    ForbiddenBare => "no login helps where no scope is asked for",
    /// The resource redirects a POST to the attacker, 307.
    McpRedirect307 => "a token and its headers belong to one origin",
    /// The resource redirects a POST to the attacker, 302.
    McpRedirect302 => "a token and its headers belong to one origin",
    // Registration.
    /// Registration is refused.
    RegistrationRefused => "RFC 7591 3.2.2",
    /// Registration answers without a `client_id`.
    RegistrationNoId => "RFC 7591 3.2.1: client_id is required",
    /// Registration gives a secret that expires in a second.
    RegistrationExpires => "RFC 7591 3.2.1: client_secret_expires_at is heeded",
    /// There is no registration, and metadata documents are not taken.
    RegistrationNone => "MCP authorization: ask the person for a client",
    // Revocation.
    /// Revocation answers 503.
    RevocationFails => "RFC 7009 2.2.1: logging out here must not depend on it",
    /// There is no revocation endpoint.
    RevocationNone => "RFC 7009: optional",
    // Devices.
    /// A device is never granted.
    DeviceNever => "RFC 8628 3.5: polling ends with the code",
    /// The interval is 0.
    DeviceIntervalZero => "RFC 8628 3.2: no hammering",
    /// The interval is a year.
    DeviceIntervalHuge => "RFC 8628 3.2: bounded by the code's own lifetime",
    /// The first poll is answered `slow_down`.
    DeviceSlowDownOnce => "RFC 8628 3.5: five seconds more from then on",
    /// The user refuses.
    DeviceDenied => "RFC 8628 3.5: access_denied",
    /// The code expires before the first poll.
    DeviceExpired => "RFC 8628 3.5: expired_token",
    /// The address to show is a `javascript:` URL.
    DeviceJavascript => "MCP security: only https, or http on loopback, is opened",
    // Identity.
    /// An id token without a signature.
    IdTokenUnsigned => "OpenID Connect 3.1.3.7: alg none is refused",
    /// An id token of another issuer.
    IdTokenIssuer => "OpenID Connect 3.1.3.7: iss must match",
    /// An id token for another client.
    IdTokenAudience => "OpenID Connect 3.1.3.7: aud must hold the client",
    /// An id token with another nonce.
    IdTokenNonce => "OpenID Connect 3.1.3.7: nonce must match",
    /// An id token that has expired.
    IdTokenExpired => "OpenID Connect 3.1.3.7: exp must lie ahead",
    /// The exchange answers with a plain access token.
    ExchangeType => "RFC 8693 2.2.1: issued_token_type must be the one asked for",
    /// The exchange answers with an assertion for the attacker.
    ExchangeAudience => "ID-JAG: the audience must be the validated issuer",
    /// A nonce is demanded again and again, whatever proof comes.
    DpopNonceLoop => "RFC 9449 8: a bounded number of attempts",
    // Clocks.
    /// `Date` is an hour ahead.
    DateAheadHour => "expiry does not depend on a wrong clock",
    /// `Date` is an hour behind.
    DateBehindHour => "expiry does not depend on a wrong clock",
    /// `Date` is a year ahead.
    DateAheadYear => "expiry does not depend on a wrong clock",
    /// `Date` is a year behind.
    DateBehindYear => "expiry does not depend on a wrong clock",
    /// There is no `Date`.
    DateMissing => "RFC 9110 6.6.1: a server without a clock sends none",
}
