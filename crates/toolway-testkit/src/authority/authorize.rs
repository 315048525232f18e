//! The authorization endpoint: a user says yes, and a code goes to the client.

use super::answer::description;
use super::client::{find, may_redirect};
use super::http::AuthorityReply;
use super::metadata::with_query;
use super::record::{RecordedRequest, RequestedParty};
use super::settings::ConsentMode;
use super::state::{AuthorityState, IssuedCode, IssuedGrant, secret};
use super::{Switch, form};

/// What a client asked for, as far as it can be answered by redirect.
struct AuthorizeParams<'a> {
    client: &'a str,
    redirect_uri: &'a str,
    seen: &'a RecordedRequest,
}

/// Answers a request for a code.
pub(super) fn authorize(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    state.memory().report.authorizations += 1;
    let id = seen.param("client_id").unwrap_or_default();
    let redirect_uri = seen.param("redirect_uri").unwrap_or_default();
    // Where the client itself is in doubt, nothing goes to its address (RFC 6749 4.1.2.1).
    let Some(client) = find(state, seen.party, id) else {
        return AuthorityReply::html(400, "<!doctype html><title>Error</title><p>unknown client");
    };
    if !may_redirect(&client, redirect_uri) {
        return AuthorityReply::html(
            400,
            "<!doctype html><title>Error</title><p>wrong redirect_uri",
        );
    }
    let asked = AuthorizeParams {
        client: id,
        redirect_uri,
        seen,
    };
    if let Err((error, why)) = check(state, seen) {
        return back(
            state,
            &asked,
            &[
                ("error", error),
                ("error_description", &description(state, why)),
            ],
        );
    }
    if state.on(Switch::ErrorIssWrong) {
        let why = description(state, "a message of the attacker");
        return back(
            state,
            &asked,
            &[("error", "access_denied"), ("error_description", &why)],
        );
    }
    let decision = seen.param("decision");
    if decision.is_none() && state.settings.consent == ConsentMode::Page {
        return page(state, seen);
    }
    if decision == Some("deny") || state.on(Switch::AuthorizationDenied) {
        let why = description(state, "the person said no");
        return back(
            state,
            &asked,
            &[("error", "access_denied"), ("error_description", &why)],
        );
    }
    let code = remember(state, &asked);
    if state.on(Switch::CodeMissing) {
        return back(state, &asked, &[]);
    }
    back(state, &asked, &[("code", &code)])
}

fn check(
    state: &AuthorityState,
    seen: &RecordedRequest,
) -> Result<(), (&'static str, &'static str)> {
    if seen.param("response_type") != Some("code") {
        return Err((
            "unsupported_response_type",
            "`response_type` must be `code`",
        ));
    }
    let challenge = seen.param("code_challenge").unwrap_or_default();
    if challenge.len() != 43 || seen.param("code_challenge_method") != Some("S256") {
        return Err((
            "invalid_request",
            "a `code_challenge` with `S256` is required",
        ));
    }
    check_resource(state, seen.param("resource"))?;
    Ok(())
}

/// Whether a token for this resource can be had here.
pub(super) fn check_resource(
    state: &AuthorityState,
    resource: Option<&str>,
) -> Result<(), (&'static str, &'static str)> {
    let Some(resource) = resource else {
        return if state.settings.demand_resource {
            Err(("invalid_target", "`resource` is required"))
        } else {
            Ok(())
        };
    };
    let places = &state.places;
    let known = resource == places.resource
        || resource == places.resource_origin
        || (state.settings.resources.iter()).any(|known| known == resource)
        || state.settings.account.is_some() && resource.starts_with(&places.issuer);
    if known {
        Ok(())
    } else {
        Err(("invalid_target", "unknown `resource`"))
    }
}

/// The scopes of a request that there are; all that the resource asks for when it names none.
pub(super) fn scope_of(state: &AuthorityState, seen: &RecordedRequest) -> String {
    let asked = seen.param("scope").unwrap_or_default();
    let grown = state.on(Switch::ScopeGrowing) || state.on(Switch::ScopeNever);
    let known: Vec<&str> = asked
        .split(' ')
        .filter(|scope| grown || state.settings.scopes.iter().any(|known| known == scope))
        .collect();
    known.join(" ")
}

fn remember(state: &AuthorityState, asked: &AuthorizeParams<'_>) -> String {
    let seen = asked.seen;
    let padding = "x".repeat(state.settings.code_padding);
    let code = format!("{}{padding}", secret("code"));
    let scope = scope_of(state, seen);
    let mut memory = state.memory();
    memory.report.codes += 1;
    let family = memory.fresh();
    let kept = IssuedCode {
        grant: IssuedGrant {
            party: seen.party,
            client: asked.client.to_owned(),
            subject: state.settings.subject.clone(),
            scope,
            resource: seen.param("resource").map(str::to_owned),
            nonce: seen.param("nonce").map(str::to_owned),
            jkt: seen.param("dpop_jkt").map(str::to_owned),
            family,
        },
        redirect_uri: asked.redirect_uri.to_owned(),
        challenge: seen.param("code_challenge").unwrap_or_default().to_owned(),
        ends: memory.now() + state.settings.code_ms,
        used: false,
    };
    memory.codes.insert(code.clone(), kept);
    code
}

/// Back to the client with this.
fn back(
    state: &AuthorityState,
    asked: &AuthorizeParams<'_>,
    what: &[(&str, &str)],
) -> AuthorityReply {
    let mut pairs = what.to_vec();
    let honest = state.issuer(asked.seen.party);
    let party = asked.seen.party;
    let given = asked.seen.param("state");
    let wrong_state = "another-state";
    match given {
        _ if state.on(Switch::StateMissing) => {}
        Some(_) if state.on(Switch::StateWrong) => pairs.push(("state", wrong_state)),
        Some(given) => pairs.push(("state", given)),
        None => {}
    }
    let wrong = state.on(Switch::IssWrong) || state.on(Switch::ErrorIssWrong);
    if wrong && party == RequestedParty::Issuer {
        pairs.push(("iss", &state.places.attacker));
    } else if !(state.on(Switch::IssMissing) || state.on(Switch::IssUnsaid)) {
        pairs.push(("iss", honest));
    }
    if state.on(Switch::CallbackOpenRedirect) {
        let attacker = state.places.attacker.as_str();
        for name in ["next", "redirect", "redirect_uri", "return_to", "url"] {
            pairs.push((name, attacker));
        }
        pairs.push(("message", "<script>location='//attacker'</script>"));
    }
    AuthorityReply::redirect(302, &with_query(asked.redirect_uri, &pairs))
}

/// The page on which a user decides: every parameter comes back with the decision.
fn page(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    let mut hidden = String::new();
    for (name, value) in seen.query.iter().chain(&seen.form) {
        for part in [
            "<input type=\"hidden\" name=\"",
            &escape(name),
            "\" value=\"",
        ] {
            hidden.push_str(part);
        }
        hidden.push_str(&escape(value));
        hidden.push_str("\">");
    }
    let action = format!("{}/authorize", state.issuer(seen.party));
    AuthorityReply::html(
        200,
        &format!(
            "<!doctype html><title>Consent</title><h1>Let this client in?</h1>\
             <form method=\"post\" action=\"{}\">{hidden}\
             <button name=\"decision\" value=\"allow\">Allow</button>\
             <button name=\"decision\" value=\"deny\">Deny</button></form>",
            escape(&action)
        ),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// The address of the page for a device.
pub(super) fn device_page(issuer: &str, user_code: &str) -> String {
    format!("{issuer}/device?user_code={}", form::encode(user_code))
}
