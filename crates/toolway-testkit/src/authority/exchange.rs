//! Assertions of an identity provider: RFC 8693 makes one, RFC 7523 takes one.

use serde_json::{Value, json};

use super::answer::{granted, make, refuse};
use super::authorize::scope_of;
use super::client::audience;
use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::state::{AuthorityClient, AuthorityState, IssuedGrant};
use super::{Switch, jwt};
use crate::browser;

const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// As an identity provider: an assertion for another server, in exchange for an id token.
pub(super) fn exchange(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
) -> AuthorityReply {
    let refused = |error: &str, why: &str| refuse(state, 400, error, why);
    if seen.param("requested_token_type") != Some(ID_JAG)
        || seen.param("subject_token_type") != Some(ID_TOKEN)
    {
        return refused("invalid_request", "only an id token for an ID-JAG");
    }
    let Some(meant) = seen.param("audience") else {
        return refused("invalid_request", "`audience` is required");
    };
    let Some(resource) = seen.param("resource") else {
        return refused("invalid_target", "`resource` is required");
    };
    let subject = seen.param("subject_token").unwrap_or_default();
    let Some(token) = jwt::verify(subject, &state.key.jwks()) else {
        return refused("invalid_grant", "the id token is not ours");
    };
    let now = state.memory().now() / 1000;
    let claims = token.claims;
    if claims["iss"] != state.issuer(seen.party)
        || claims["exp"].as_u64().is_none_or(|ends| ends <= now)
        || !audience(&claims).contains(&client.id)
    {
        return refused("invalid_grant", "the id token is not good");
    }
    let at_home = state.settings.assertion_client.as_ref();
    let meant = if state.on(Switch::ExchangeAudience) {
        &state.places.attacker
    } else {
        meant
    };
    let scope = seen.param("scope").unwrap_or_default();
    let assertion = state.key.sign(
        "oauth-id-jag+jwt",
        &json!({ "iss": state.issuer(seen.party), "sub": claims["sub"], "aud": meant,
            "resource": resource, "client_id": at_home.unwrap_or(&client.id), "scope": scope,
            "jti": jwt::random(8), "iat": now, "exp": now + 300 }),
    );
    let issued = if state.on(Switch::ExchangeType) {
        ACCESS_TOKEN
    } else {
        ID_JAG
    };
    AuthorityReply::json(
        200,
        &json!({ "issued_token_type": issued, "access_token": assertion, "token_type": "N_A",
            "scope": scope, "expires_in": 300 }),
    )
}

/// As the resource's server: tokens for such an assertion.
pub(super) fn bearer(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    let assertion = seen.param("assertion").unwrap_or_default();
    let issuer = jwt::look(assertion).and_then(|it| it.claims["iss"].as_str().map(str::to_owned));
    let platform = issuer.and_then(|issuer| state.settings.platforms.get(&issuer));
    let claims = match platform {
        Some(keys) => of_platform(state, seen, assertion, keys),
        None => believed(state, seen, client, assertion),
    };
    let claims = match claims {
        Ok(claims) => claims,
        Err(why) => return refuse(state, 400, "invalid_grant", why),
    };
    let allowed = claims["scope"].as_str().unwrap_or_default();
    let scope = match seen.param("scope") {
        Some(_) => scope_of(state, seen),
        None => allowed.to_owned(),
    };
    let mut memory = state.memory();
    let grant = IssuedGrant {
        party: seen.party,
        client: client.id.clone(),
        subject: claims["sub"].as_str().unwrap_or_default().to_owned(),
        scope,
        resource: claims["resource"].as_str().map(str::to_owned),
        nonce: None,
        jkt: key.map(str::to_owned),
        family: memory.fresh(),
    };
    let tokens = make(state, &mut memory, &grant, false);
    granted(state, &grant, &tokens, None)
}

/// What a platform says of what runs on it. Such a token is shown until it expires.
fn of_platform(
    state: &AuthorityState,
    seen: &RecordedRequest,
    assertion: &str,
    keys: &Value,
) -> Result<Value, &'static str> {
    let token = jwt::verify(assertion, keys).ok_or("the signature does not fit")?;
    let now = state.memory().now() / 1000;
    if audience(&token.claims) != [state.issuer(seen.party)] {
        return Err("the token is for another server");
    }
    if token.claims["exp"].as_u64().is_none_or(|ends| ends <= now) {
        return Err("the token has expired");
    }
    Ok(token.claims)
}

fn believed(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    assertion: &str,
) -> Result<Value, &'static str> {
    let issuer = jwt::look(assertion)
        .and_then(|token| token.claims["iss"].as_str().map(str::to_owned))
        .ok_or("the assertion is no token")?;
    let keys = keys(state, seen.party, &issuer).ok_or("nobody trusts that issuer")?;
    let token = jwt::verify(assertion, &keys).ok_or("the signature does not fit")?;
    let (header, claims) = (token.header, token.claims);
    let mut memory = state.memory();
    let now = memory.now() / 1000;
    let places = &state.places;
    let resource = claims["resource"].as_str().unwrap_or_default();
    if header["typ"] != "oauth-id-jag+jwt" {
        return Err("the assertion is of another type");
    }
    if audience(&claims) != [state.issuer(seen.party)] {
        return Err("the assertion is for another server");
    }
    if claims["client_id"] != client.id.as_str() {
        return Err("the assertion is another client's");
    }
    if ![places.resource.as_str(), &places.resource_origin].contains(&resource) {
        return Err("the assertion is for another resource");
    }
    if claims["exp"].as_u64().is_none_or(|ends| ends <= now) {
        return Err("the assertion has expired");
    }
    let name = claims["jti"].as_str().ok_or("the assertion has no `jti`")?;
    if !memory.used.insert(format!("jag {issuer} {name}")) {
        return Err("the assertion was used before");
    }
    Ok(claims)
}

/// The keys of an issuer that counts here.
fn keys(state: &AuthorityState, party: RequestedParty, issuer: &str) -> Option<Value> {
    if issuer == state.issuer(party) {
        return Some(state.key.jwks());
    }
    if !state.settings.trusted.iter().any(|known| known == issuer) {
        return None;
    }
    let page = browser::fetch(&format!("{issuer}/jwks"))?;
    serde_json::from_str(&page.body).ok()
}
