//! Every misbehaviour of the testkit's authority, and what our login makes of it.
//!
//! The table in [`expected`] has a row for every switch: the compiler sees to that. After each
//! login, whatever came of it, no secret has reached the attacker, and no message holds one.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::join_all;
use toolway_auth::challenge::AuthNeed;
use toolway_auth::clock::unix_now;
use toolway_auth::login::{LoginError, LoginMethod};
use toolway_auth::logins::Login;
use toolway_auth::registration::ClientDocument;
use toolway_auth::revoke::{Revocation, RevokeError};
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::token::{TokenError, TokenGrant, TokenRequest, Tokens};
use toolway_testkit::authority::{
    AuthoritySettings, DpopMode, RequestedParty, Switch, holds_secret,
};
use url::Url;

use crate::case::{Case, NAME};

/// The safe outcome.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Nothing was opened or registered; the message has this part.
    Unopened(&'static str),
    /// The user was sent there, but no code was ever sent to a token endpoint.
    Unspent(&'static str),
    /// The code was sent to its issuer, once, and what came back was not taken.
    Untaken(&'static str),
    /// The login succeeds, because what is wrong is not believed or does no harm.
    LogsIn,
}

use Expected::{LogsIn, Unopened, Unspent, Untaken};

/// What a switch is about, and so which test looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Metadata,
    Endpoints,
    Answer,
    Tokens,
    Later,
    Client,
    Device,
}

fn expected(switch: Switch) -> (About, Expected) {
    use Switch as S;
    let (metadata, endpoint) = (About::Metadata, About::Endpoints);
    let other_issuer = Unopened("somebody could be in between, so nothing was sent");
    let bad_page = Unopened("its `authorization_endpoint` is no usable address");
    let bad_token_endpoint = Unopened("its `token_endpoint` is no usable address");
    match switch {
        S::IssuerOther
        | S::IssuerCase
        | S::IssuerPort
        | S::IssuerPercent
        | S::ServerHex
        | S::ServerDecimal => (metadata, other_issuer),
        S::IssuerMissing => (metadata, Unopened("it has no `issuer`")),
        S::ResourceOther => (metadata, Unopened("not for this server")),
        S::ResourceMissing => (metadata, Unopened("it has no `resource`")),
        S::NoServers => (metadata, Unopened("names no authorization server")),
        S::NoResourceMetadata => (metadata, Unopened("registers no clients by itself")),
        S::ServerLinkLocal | S::ServerMappedLinkLocal => {
            (metadata, Unopened("only `https` addresses are used"))
        }
        // Some resolvers know the name and some do not; it is no issuer either way.
        S::ServerLocalhostDot => (metadata, Unopened("")),
        S::MetadataRedirectPrivate => (metadata, Unopened("this address is never asked")),
        S::MetadataRedirectOther => (metadata, Unopened("is kept by somebody else")),
        S::MetadataRedirectEndless => (metadata, Unopened("redirects elsewhere")),
        S::MetadataGigantic => (metadata, Unopened("is larger than 1024 KiB")),
        S::MetadataTrickle => (metadata, Unopened("did not answer within 10 s")),
        S::MetadataNested => (metadata, Unopened("it nests too deeply")),
        S::MetadataHtml => (metadata, Unopened("it is a web page")),
        S::MetadataBroken => (metadata, Unopened("it is not JSON")),
        S::ResourceNamesProvider | S::ChallengeLinkLocal | S::ChallengeOther | S::IssUnsaid => {
            (metadata, LogsIn)
        }
        S::ChallengeMissing | S::McpRedirect307 | S::McpRedirect302 => (metadata, LogsIn),
        S::PkceUnsaid | S::PkcePlain => (metadata, Unopened("does not offer PKCE with S256")),

        S::EndpointJavascript
        | S::EndpointData
        | S::EndpointFile
        | S::EndpointPlain
        | S::EndpointDash
        | S::EndpointControl
        | S::EndpointHuge => (endpoint, bad_page),
        S::TokenEndpointPlain | S::TokenEndpointLinkLocal => (endpoint, bad_token_endpoint),
        S::EndpointShell => (endpoint, LogsIn),
        // The endpoint that the verified issuer names gets the code; this looks like an issuer with
        // two hosts. What is seen here is that it goes there and nowhere else.
        S::TokenEndpointOther => (endpoint, Untaken("refused")),

        S::IssMissing => (
            About::Answer,
            Unspent("does not say which authorization server"),
        ),
        // The slash of an origin is forgiven in the metadata, and nowhere else.
        S::IssWrong | S::ErrorIssWrong | S::MixUp | S::IssuerTrailingSlash => (
            About::Answer,
            Unspent("comes from another authorization server"),
        ),
        S::AuthorizationDenied => (About::Answer, Unspent("was declined at")),
        S::StateWrong | S::StateMissing => (About::Answer, Unspent("nobody finished the login")),
        S::CodeMissing => (About::Answer, Unspent("answered without a code")),
        S::CallbackOpenRedirect => (About::Answer, LogsIn),

        S::TypeMac => (About::Tokens, Untaken("neither Bearer nor DPoP")),
        S::AccessMissing => (About::Tokens, Untaken("it has no `access_token`")),
        S::DuplicateKeys => (About::Tokens, Untaken("stands in it twice")),
        S::TokenHtml => (About::Tokens, Untaken("it is a web page")),
        S::TokenGigantic => (About::Tokens, Untaken("answer was lost")),
        S::TokenRedirect => (About::Tokens, Untaken("redirects elsewhere")),
        S::TokenUnavailable => (About::Tokens, Untaken("is busy")),
        S::DpopNonceLoop => (About::Tokens, Untaken("refused: use_dpop_nonce")),
        S::TypeMissing
        | S::TokenBusyOnce
        | S::ExpiryMissing
        | S::ExpiryZero
        | S::ExpiryNegative
        | S::ExpiryString
        | S::ExpiryHuge
        | S::DateAheadHour
        | S::DateBehindHour
        | S::DateAheadYear
        | S::DateBehindYear
        | S::DateMissing
        // A login for a server asks for no identity: what is said about one is not believed, and
        // not used. Those who use it have tests of their own.
        | S::IdTokenUnsigned
        | S::IdTokenIssuer
        | S::IdTokenAudience
        | S::IdTokenNonce
        | S::IdTokenExpired
        | S::ExchangeType
        | S::ExchangeAudience => (About::Tokens, LogsIn),

        S::Migrated
        | S::RefreshKept
        | S::RefreshLostOnce
        | S::RefreshLost
        | S::InvalidGrantOnce
        | S::ScopeNever
        | S::ScopeGrowing
        | S::Storm
        | S::ForbiddenBare
        | S::RevocationFails
        | S::RevocationNone => (About::Later, LogsIn),

        // The two together: a refusal whose text steers a terminal.
        S::RegistrationRefused | S::ErrorEscapes => {
            (About::Client, Unopened("refused to register this program"))
        }
        S::RegistrationNoId => (About::Client, Unopened("without a usable `client_id`")),
        S::RegistrationNone => (About::Client, Unopened("set `oauth.clientId`")),
        S::RegistrationExpires => (About::Client, LogsIn),

        S::DeviceNever | S::DeviceIntervalHuge | S::DeviceExpired => {
            (About::Device, Untaken("nobody entered the code in time"))
        }
        S::DeviceDenied => (About::Device, Untaken("the login was declined")),
        S::DeviceJavascript => (About::Device, Unspent("no `verification_uri`")),
        S::DeviceIntervalZero | S::DeviceSlowDownOnce => (About::Device, LogsIn),
    }
}

fn case(switch: Switch, about: About) -> Case {
    let address = "https://toolway.example/client.json";
    let redirect_uri = "http://localhost/callback";
    let mut settings = AuthoritySettings {
        device_interval: 1,
        ..AuthoritySettings::with(&[switch])
    };
    match switch {
        Switch::DeviceNever | Switch::DeviceIntervalHuge => settings.device_seconds = 3,
        Switch::DpopNonceLoop => settings.dpop = DpopMode::RequiredWithNonce,
        Switch::ErrorEscapes => settings.switches.push(Switch::RegistrationRefused),
        // Both servers know this client, so that the user really logs in at the honest one.
        Switch::MixUp => {
            let document = serde_json::json!({
                "client_id": address, "redirect_uris": [redirect_uri],
            });
            let documents = &mut settings.known_documents;
            documents.insert(address.to_owned(), document);
        }
        Switch::Migrated => settings.switches.clear(),
        _ => {}
    }
    let document = (switch == Switch::MixUp).then(|| ClientDocument {
        url: Url::parse(address).unwrap(),
        redirect_uri: redirect_uri.to_owned(),
    });
    Case {
        way: match about {
            About::Device => LoginMethod::Device,
            _ => LoginMethod::Browser,
        },
        wants_dpop: switch == Switch::DpopNonceLoop,
        document,
        ..Case::new(settings)
    }
}

/// Logs in. Where nothing will come of it but the end of patience, patience ends as soon as the
/// browser is done.
async fn log_in(switch: Switch, case: &Case) -> Result<Login, LoginError> {
    let is_stuck = || match switch {
        // Nothing here ever comes to an end but by the clock.
        Switch::MetadataTrickle => case.authority.report().metadata > 0,
        Switch::StateWrong | Switch::StateMissing => !case.person.is_walking(),
        _ => false,
    };
    let is_paused = Cell::new(false);
    let watch = async {
        while !is_stuck() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // From now on time passes as soon as all tasks wait.
        tokio::time::pause();
        is_paused.set(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = case.log_in() => {
            if is_paused.get() {
                tokio::time::resume();
            }
            result
        }
        () = watch => unreachable!("a watch has no end"),
    }
}

async fn check(about: About) {
    let switches = Switch::ALL.iter().copied();
    let switches: Vec<_> = switches
        .filter(|switch| expected(*switch).0 == about)
        .collect();
    assert!(!switches.is_empty(), "{about:?}");
    match about {
        // They wait by the clock, and so wait together.
        About::Device | About::Tokens => {
            join_all(switches.into_iter().map(one)).await;
        }
        _ => {
            for switch in switches {
                one(switch).await;
            }
        }
    }
}

async fn one(switch: Switch) {
    let (about, expected) = expected(switch);
    let case = case(switch, about);
    let result = log_in(switch, &case).await;
    let report = case.authority.report();
    let opened = case.person.opened.lock().unwrap().clone();
    let spent = report.token_requests("authorization_code");
    match (&result, expected) {
        (Ok(_), LogsIn) => {}
        (Err(error), Unopened(part) | Unspent(part) | Untaken(part)) => {
            let said = error.to_string();
            let start = format!("cannot log in to `{NAME}`: ");
            assert!(said.starts_with(&start), "{switch:?}: {said}");
            assert!(said.contains(part), "{switch:?}: {said}");
            assert!(!said.chars().any(char::is_control), "{switch:?}: {said}");
            assert!(!holds_secret(&format!("{error:?} {said}")), "{switch:?}");
            assert!(!said.contains("of the attacker"), "{switch:?}: {said}");
        }
        (other, _) => panic!("{switch:?}: {expected:?} but {other:?}"),
    }
    match expected {
        Unopened(_) => {
            assert_eq!(opened, [""; 0], "{switch:?}");
            assert_eq!((report.codes, spent), (0, 0), "{switch:?}");
            if about != About::Client {
                assert_eq!(report.registrations, 0, "{switch:?}");
            }
        }
        Unspent(_) => assert_eq!(spent, 0, "{switch:?}"),
        Untaken(_) | LogsIn => {}
    }
    let at_attacker = case.authority.seen_at(RequestedParty::Attacker, "");
    if switch == Switch::TokenEndpointOther {
        let lines: Vec<_> = at_attacker.iter().map(|seen| seen.path.as_str()).collect();
        assert_eq!(lines, ["/token"]);
    } else {
        assert_eq!(case.authority.stolen(), None, "{switch:?}");
        let posted = at_attacker.iter().find(|seen| seen.path == "/token");
        assert_eq!(posted, None, "{switch:?}");
    }
    closer(switch, &case, result.ok()).await;
}

/// What only one switch can show.
async fn closer(switch: Switch, case: &Case, got: Option<Login>) {
    let report = case.authority.report();
    match switch {
        Switch::ResourceNamesProvider
        | Switch::ChallengeLinkLocal
        | Switch::McpRedirect307
        | Switch::McpRedirect302
        | Switch::TokenRedirect => {
            assert_eq!(report.attacker_requests, 0, "{switch:?}");
        }
        // It is asked for its document, which it does not have, and for nothing else.
        Switch::ChallengeOther => {
            let seen = case.authority.seen_at(RequestedParty::Attacker, "");
            let asked: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
            assert_eq!(asked, ["/.well-known/oauth-protected-resource"]);
        }
        Switch::MetadataTrickle => assert!(report.metadata > 0, "{switch:?}"),
        Switch::MixUp => {
            assert_eq!(
                report.codes, 1,
                "{switch:?}: the honest server was really asked"
            );
        }
        Switch::EndpointShell => {
            let opened = case.person.opened.lock().unwrap();
            assert!(opened[0].starts_with("http://127.0.0.1:"), "{switch:?}");
        }
        Switch::CallbackOpenRedirect => {
            let pages = case.person.walked().await;
            let last = pages.last().unwrap();
            assert_eq!((last.status, &last.location), (200, &None), "{switch:?}");
            assert!(!last.body.contains(case.authority.attacker()), "{switch:?}");
            assert!(!last.body.contains("<script>"), "{switch:?}");
        }
        Switch::TokenBusyOnce => {
            assert_eq!(report.token_requests("authorization_code"), 2, "{switch:?}");
        }
        Switch::TokenUnavailable => {
            assert_eq!(report.token_requests("authorization_code"), 3, "{switch:?}");
        }
        Switch::DpopNonceLoop => {
            assert!(
                report.token_requests("authorization_code") <= 2,
                "{switch:?}"
            );
        }
        Switch::DeviceIntervalZero | Switch::DeviceSlowDownOnce | Switch::DeviceNever => {
            assert!(
                report.token_requests("device_code") <= 3,
                "{switch:?}: {report:?}"
            );
        }
        Switch::RegistrationExpires => {
            case.log_in().await.unwrap();
            assert_eq!(case.authority.report().registrations, 2, "{switch:?}");
        }
        _ => {}
    }
    if let Some(got) = got {
        expiry(switch, &got.tokens);
        later(switch, case, &got).await;
    }
}

/// No clock and no number makes a token that is renewed forever, or never.
fn expiry(switch: Switch, tokens: &Tokens) {
    let now = unix_now();
    match switch {
        Switch::ExpiryMissing | Switch::ExpiryNegative | Switch::ExpiryZero => {
            assert_eq!(tokens.expires_at, None, "{switch:?}");
        }
        Switch::ExpiryHuge => {
            let end = tokens.expires_at.unwrap_or(now);
            assert!(end < now + 100 * 365 * 24 * 3600, "{switch:?}: {end}");
        }
        _ => {
            let end = tokens.expires_at.unwrap();
            assert!(end.abs_diff(now + 3600) < 120, "{switch:?}: {end} at {now}");
        }
    }
    assert!(!tokens.is_due(now), "{switch:?}");
}

/// What happens after the login.
async fn later(switch: Switch, case: &Case, got: &Login) {
    match switch {
        Switch::RefreshKept => {
            let new = refresh(case, got).await.unwrap();
            let new = new.succeeding(&got.tokens);
            assert_eq!(new.refresh, got.tokens.refresh, "{switch:?}");
        }
        Switch::RefreshLost | Switch::RefreshLostOnce => {
            let lost = refresh(case, got).await;
            assert!(
                matches!(lost, Err(TokenError::Lost)),
                "{switch:?}: {lost:?}"
            );
        }
        Switch::InvalidGrantOnce => {
            let refused = refresh(case, got).await.unwrap_err();
            assert!(
                refused.is_refusal("invalid_grant"),
                "{switch:?}: {refused:?}"
            );
            refresh(case, got).await.unwrap();
        }
        Switch::ScopeNever | Switch::ScopeGrowing => {
            let spent = step_up(case, got).await;
            assert!(
                matches!(
                    spent,
                    LoginAttemptError::NothingNew | LoginAttemptError::TooOften
                ),
                "{switch:?}: {spent:?}"
            );
            let count = case.authority.report().authorizations;
            assert!((2..=3).contains(&count), "REL-26 {switch:?}: {count}");
        }
        Switch::Storm => {
            let (status, need) = case.refusal(Some(&got.tokens.access)).await;
            assert_eq!(status, 401);
            assert!(matches!(need, Some(AuthNeed::Login(_))), "{switch:?}");
            assert_eq!(case.authority.report().authorizations, 1, "{switch:?}");
        }
        Switch::ForbiddenBare => {
            let refused = case.refusal(Some(&got.tokens.access)).await;
            assert_eq!(refused, (403, None), "{switch:?}: no login helps");
        }
        Switch::RevocationNone => assert_eq!(got.revocation_endpoint, None, "{switch:?}"),
        Switch::RevocationFails => {
            let client = got.client.client(None);
            let revocation = Revocation {
                endpoint: got.revocation_endpoint.as_ref().unwrap(),
                issuer: &got.issuer,
                client: &client,
            };
            let failed = revocation.send(&case.web().await, &got.tokens).await;
            let failed = failed.unwrap_err();
            assert!(
                matches!(failed, RevokeError::Refused { status: 503, .. }),
                "{switch:?}: {failed:?}"
            );
            assert!(!holds_secret(&format!("{failed:?} {failed}")), "{switch:?}");
            assert_eq!(
                case.authority.report().revocations,
                2,
                "{switch:?}: both tried"
            );
        }
        Switch::Migrated => {
            case.authority.turn_on(switch);
            let moved = case.log_in().await.unwrap();
            assert_eq!(moved.issuer, case.authority.attacker(), "{switch:?}");
            assert_ne!(moved.client.client_id, got.client.client_id, "SEC-19");
            let old = [
                got.client.client_id.as_str(),
                got.tokens.access.expose(),
                got.tokens.refresh.as_ref().unwrap().expose(),
            ];
            for seen in case.authority.seen_at(RequestedParty::Attacker, "") {
                let text = seen.text();
                assert!(
                    !old.iter().any(|old| text.contains(old)),
                    "{switch:?}: {text}"
                );
            }
        }
        _ => {
            let (status, _) = case.refusal(Some(&got.tokens.access)).await;
            let redirects = matches!(switch, Switch::McpRedirect302 | Switch::McpRedirect307);
            assert!(redirects || status == 200, "{switch:?}: {status}");
        }
    }
}

async fn refresh(case: &Case, got: &Login) -> Result<Tokens, TokenError> {
    let client = got.client.client(None);
    let request = TokenRequest {
        endpoint: &got.token_endpoint,
        issuer: &got.issuer,
        client: &client,
        resource: Some(&got.resource),
        scopes: &got.requested,
        dpop: None,
    };
    let token = got.tokens.refresh.as_ref().unwrap();
    request
        .send(&case.web().await, &TokenGrant::refresh(token))
        .await
}

/// Asks for more scopes for as long as the server wants them and we let it.
async fn step_up(case: &Case, got: &Login) -> LoginAttemptError {
    let (mut access, mut requested) = (got.tokens.access.clone(), got.requested.clone());
    for _ in 0..20 {
        let (_, need) = case.refusal(Some(&access)).await;
        let Some(AuthNeed::Scopes(challenge)) = need else {
            panic!("{need:?}");
        };
        match case.attempts.step_up(NAME, &requested, &challenge.scopes) {
            Err(spent) => return spent,
            Ok(scopes) => {
                assert!(requested.iter().all(|scope| scopes.contains(scope)));
                let got = case.log_in_for(Some(&scopes)).await.unwrap();
                access = got.tokens.access;
                requested = got.requested;
            }
        }
    }
    panic!("it goes on for ever");
}

#[tokio::test]
async fn sec_17_sec_18_metadata_that_lies_opens_nothing() {
    check(About::Metadata).await;
}

#[tokio::test]
async fn sec_16_endpoints_that_are_no_pages_are_not_opened() {
    check(About::Endpoints).await;
}

#[tokio::test]
async fn sec_18_answers_that_are_not_this_logins_spend_no_code() {
    check(About::Answer).await;
}

#[tokio::test]
async fn rel_16_rel_27_odd_token_answers_are_read_or_refused() {
    check(About::Tokens).await;
}

#[tokio::test]
async fn sec_19_rel_26_what_comes_after_a_login_leaks_nothing_and_ends() {
    check(About::Later).await;
}

#[tokio::test]
async fn registrations_that_fail_are_named_and_those_that_end_are_renewed() {
    check(About::Client).await;
}

#[tokio::test]
async fn devices_are_asked_for_at_a_pace_and_not_for_ever() {
    check(About::Device).await;
}
