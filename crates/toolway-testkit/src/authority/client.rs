//! Who a client is: registered, known by its document or from the start; and whether it is the
//! one it says.

use serde_json::{Value, json};

use super::answer::refuse;
use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::state::{AuthorityClient, AuthorityState, secret};
use super::{Switch, form, jwt, metadata};
use crate::browser;

/// Registers a client (RFC 7591).
pub(super) fn register(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    if !state.settings.registration || state.on(Switch::RegistrationNone) {
        return AuthorityReply::empty(404);
    }
    let asked: Value = serde_json::from_str(&seen.body).unwrap_or_default();
    let redirect_uris = strings(&asked["redirect_uris"]);
    let grants = strings(&asked["grant_types"]);
    let needs_redirect =
        grants.is_empty() || grants.iter().any(|grant| grant == "authorization_code");
    if state.on(Switch::RegistrationRefused) {
        return refuse(state, 403, "access_denied", "registration is closed");
    }
    if needs_redirect && redirect_uris.is_empty() {
        return refuse(
            state,
            400,
            "invalid_redirect_uri",
            "`redirect_uris` is empty",
        );
    }
    let kinds = grants.iter().filter(|grant| *grant != "refresh_token");
    if state.settings.one_grant && kinds.count() > 1 {
        return refuse(
            state,
            400,
            "invalid_client_metadata",
            "only one grant type per application",
        );
    }
    let native = match asked["application_type"].as_str() {
        Some("native") => true,
        Some("web") | None => false,
        Some(_) => {
            return refuse(
                state,
                400,
                "invalid_client_metadata",
                "unknown application_type",
            );
        }
    };
    // A `web` client, which is what saying nothing means, cannot have plain loopback.
    if !native && redirect_uris.iter().any(|uri| uri.starts_with("http://")) {
        return refuse(
            state,
            400,
            "invalid_redirect_uri",
            "only a native client may redirect to loopback: send application_type",
        );
    }
    let mut method = asked["token_endpoint_auth_method"]
        .as_str()
        .unwrap_or("client_secret_basic");
    if method == "none" && state.on(Switch::RegistrationExpires) {
        method = "client_secret_post";
    }
    let given = method.starts_with("client_secret").then(|| secret("cs"));
    let mut memory = state.memory();
    memory.report.registrations += 1;
    let ends = state
        .on(Switch::RegistrationExpires)
        .then(|| memory.now() + 1000);
    let id = format!("client-{}", memory.fresh());
    let mut answer = asked.clone();
    answer["client_id"] = json!(id);
    answer["client_id_issued_at"] = json!(memory.now() / 1000);
    answer["token_endpoint_auth_method"] = json!(method);
    if let Some(secret) = &given {
        answer["client_secret"] = json!(secret);
        answer["client_secret_expires_at"] = json!(ends.map_or(0, |ends| ends / 1000));
    }
    let client = AuthorityClient {
        id: id.clone(),
        secret: given,
        secret_ends: ends,
        method: Some(method.to_owned()),
        jwks: asked.get("jwks").cloned(),
        redirect_uris,
    };
    if seen.party == RequestedParty::Attacker && state.on(Switch::MixUp) {
        // It registers the client at the honest server, and passes the answer on.
        let honest = (RequestedParty::Issuer, id.clone());
        memory.clients.insert(honest, client.clone());
    }
    memory.clients.insert((seen.party, id), client);
    if state.on(Switch::RegistrationNoId) {
        metadata::remove(&mut answer, "client_id");
    }
    AuthorityReply::json(201, &answer)
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The client of this id.
pub(super) fn find(
    state: &AuthorityState,
    party: RequestedParty,
    id: &str,
) -> Option<AuthorityClient> {
    let known = state.memory().clients.get(&(party, id.to_owned())).cloned();
    if known.is_some() || !id.contains("://") {
        return known;
    }
    let taken = state.settings.documents && !state.on(Switch::RegistrationNone);
    taken.then(|| document(state, id)).flatten()
}

/// The client that the document at this address describes.
fn document(state: &AuthorityState, url: &str) -> Option<AuthorityClient> {
    let document = if let Some(known) = state.settings.known_documents.get(url) {
        known.clone()
    } else {
        let page = browser::fetch(url)?;
        serde_json::from_str(&page.body).ok()?
    };
    state.memory().report.documents += 1;
    if document["client_id"] != url || document.get("client_secret").is_some() {
        return None;
    }
    Some(AuthorityClient {
        id: url.to_owned(),
        secret: None,
        secret_ends: None,
        method: document["token_endpoint_auth_method"]
            .as_str()
            .map(str::to_owned),
        jwks: document.get("jwks").cloned(),
        redirect_uris: strings(&document["redirect_uris"]),
    })
}

/// Whether a code of this client may go there. On loopback the port is free (RFC 8252 7.3).
pub(super) fn may_redirect(client: &AuthorityClient, uri: &str) -> bool {
    let allowed = &client.redirect_uris;
    if allowed.is_empty() {
        return portless(uri).is_some();
    }
    allowed.iter().any(|allowed| {
        allowed == uri || portless(uri).is_some_and(|bare| portless(allowed) == Some(bare))
    })
}

fn portless(uri: &str) -> Option<(String, String)> {
    let rest = uri.strip_prefix("http://")?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    };
    let loopback = ["127.0.0.1", "localhost", "[::1]"];
    loopback
        .contains(&host)
        .then(|| (host.to_owned(), path.to_owned()))
}

/// The client that sent this, when it proves who it is.
pub(super) fn authenticate(
    state: &AuthorityState,
    seen: &RecordedRequest,
) -> Result<AuthorityClient, AuthorityReply> {
    let refused = |why: &str| {
        refuse(state, 401, "invalid_client", why)
            .with("www-authenticate", "Basic realm=\"token\"".to_owned())
    };
    if state.settings.client_in_form && seen.param("client_id").is_none() {
        return Err(refuse(
            state,
            401,
            "unauthorized_client",
            "Missing client_id",
        ));
    }
    let basic = seen
        .header("authorization")
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(jwt::decode_basic);
    let (id, secret, method) = if let Some(pair) = basic {
        let (id, secret) = pair.split_once(':').unwrap_or((&pair, ""));
        let (id, secret) = (form::decode(id), form::decode(secret));
        (id, Some(secret), "client_secret_basic")
    } else if let Some(assertion) = seen.param("client_assertion") {
        return asserted(state, seen, assertion).ok_or_else(|| refused("the assertion is no good"));
    } else {
        let id = seen.param("client_id").unwrap_or_default().to_owned();
        // An empty one says as much as none (RFC 6749 section 2.3.1).
        match seen
            .param("client_secret")
            .filter(|secret| !secret.is_empty())
        {
            Some(secret) => (id, Some(secret.to_owned()), "client_secret_post"),
            None => (id, None, "none"),
        }
    };
    let client = find(state, seen.party, &id).ok_or_else(|| refused("unknown client"))?;
    if client.secret != secret {
        return Err(refused("wrong client secret"));
    }
    if secret.is_none() && client.jwks.is_some() && client.method.as_deref() != Some("none") {
        return Err(refused("this client signs"));
    }
    let expected = client.method.as_deref().unwrap_or(method);
    if expected != method {
        return Err(refused(&format!("this client uses {expected}")));
    }
    let now = state.memory().now();
    if client.secret_ends.is_some_and(|ends| ends <= now) {
        return Err(refused("the client secret has expired"));
    }
    Ok(client)
}

/// The client that signed this assertion (RFC 7523 2.2).
fn asserted(
    state: &AuthorityState,
    seen: &RecordedRequest,
    assertion: &str,
) -> Option<AuthorityClient> {
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let id = jwt::look(assertion)?.claims["sub"].as_str()?.to_owned();
    let client = find(state, seen.party, &id)?;
    let claims = jwt::verify(assertion, client.jwks.as_ref()?)?.claims;
    let issuer = state.issuer(seen.party);
    let meant = [issuer.to_owned(), format!("{issuer}/token")];
    let mut memory = state.memory();
    let jti = format!("assertion {}", claims["jti"].as_str()?);
    let good = seen.param("client_assertion_type") == Some(kind)
        && seen.param("client_id").is_none_or(|named| named == id)
        && claims["iss"] == claims["sub"]
        && audience(&claims).iter().any(|aud| meant.contains(aud))
        && claims["exp"].as_u64()? > memory.now() / 1000
        && memory.used.insert(jti);
    good.then_some(client)
}

/// The audience of a token.
pub(super) fn audience(claims: &Value) -> Vec<String> {
    match &claims["aud"] {
        Value::String(one) => vec![one.clone()],
        several => strings(several),
    }
}
