//! The token endpoint: who gets tokens for what.
//!
//! Owns the grants but for devices (`device.rs`) and assertions (`exchange.rs`). The shape of the
//! answer is `answer.rs`.

use std::time::Duration;

use super::answer::{IssuedTokens, granted, id_token, make, refuse};
use super::authorize::{check_resource, scope_of};
use super::client::authenticate;
use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::settings::DpopMode;
use super::state::{AuthorityClient, AuthorityMemory, AuthorityState, IssuedGrant};
use super::{Switch, device, dpop, exchange, jwt};

/// Answers a request for tokens.
pub(super) fn token(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    let kind = seen.param("grant_type").unwrap_or_default().to_owned();
    let grant = kind.rsplit(':').next().unwrap_or_default().to_owned();
    *state
        .memory()
        .report
        .token_requests
        .entry(grant.clone())
        .or_default() += 1;
    let delay = state.settings.token_delay_ms;
    if delay > 0 {
        state.pause(Duration::from_millis(delay));
    }
    if let Some(reply) = disturbed(state, seen) {
        return reply;
    }
    let key = match dpop::proof(state, seen, None) {
        Ok(key) => key,
        Err(reply) => return reply,
    };
    let reply = match authenticate(state, seen) {
        Ok(client) => answer(state, seen, &kind, &client, key.as_deref()),
        Err(refused) => refused,
    };
    if reply.status == 200 {
        *state.memory().report.granted.entry(grant).or_default() += 1;
    }
    let nonce = state.settings.dpop == DpopMode::RequiredWithNonce;
    if nonce && !reply.headers.iter().any(|(name, _)| *name == "dpop-nonce") {
        return reply.with("dpop-nonce", dpop::nonce(state));
    }
    reply
}

/// What comes instead of any answer.
fn disturbed(state: &AuthorityState, seen: &RecordedRequest) -> Option<AuthorityReply> {
    if seen.party != RequestedParty::Issuer {
        return None;
    }
    if state.once(Switch::TokenBusyOnce) {
        let reply = refuse(state, 429, "temporarily_unavailable", "too many requests");
        return Some(reply.with("retry-after", "1".to_owned()));
    }
    if state.on(Switch::TokenUnavailable) {
        let reply = refuse(state, 503, "temporarily_unavailable", "not now");
        let after = state.settings.retry_after.to_string();
        return Some(reply.with("retry-after", after));
    }
    if state.on(Switch::TokenRedirect) {
        let to = format!("{}/token", state.places.attacker);
        return Some(AuthorityReply::redirect(307, &to));
    }
    if state.on(Switch::TokenHtml) {
        return Some(AuthorityReply::portal());
    }
    state
        .on(Switch::TokenGigantic)
        .then(AuthorityReply::gigantic)
}

fn answer(
    state: &AuthorityState,
    seen: &RecordedRequest,
    kind: &str,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    const URN: &str = "urn:ietf:params:oauth:grant-type:";
    match kind.strip_prefix(URN).unwrap_or(kind) {
        "authorization_code" => code(state, seen, client, key),
        "refresh_token" => refresh(state, seen, client, key),
        "client_credentials" => credentials(state, seen, client, key),
        "device_code" => device::redeem(state, seen, client, key),
        "token-exchange" => exchange::exchange(state, seen, client),
        "jwt-bearer" => exchange::bearer(state, seen, client, key),
        _ => refuse(state, 400, "unsupported_grant_type", "unknown grant"),
    }
}

fn invalid(state: &AuthorityState, why: &str) -> AuthorityReply {
    refuse(state, 400, "invalid_grant", why)
}

fn code(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    let name = seen.param("code").unwrap_or_default();
    let verifier = seen.param("code_verifier").unwrap_or_default();
    let mut memory = state.memory();
    let now = memory.now();
    let Some(kept) = memory.codes.get_mut(name) else {
        return invalid(state, "unknown code");
    };
    if kept.used {
        let family = kept.grant.family;
        memory.revoke(family);
        return invalid(state, "the code was used before");
    }
    let mut grant = kept.grant.clone();
    let wrong = if grant.party != seen.party {
        Some("the code is of another server")
    } else if grant.client != client.id {
        Some("the code is another client's")
    } else if seen.param("redirect_uri") != Some(&kept.redirect_uri) {
        Some("`redirect_uri` is not the one of the request")
    } else if kept.ends <= now {
        Some("the code has expired")
    } else if verifier.len() < 43 || jwt::digest(verifier) != kept.challenge {
        Some("`code_verifier` does not fit")
    } else if grant.jkt.is_some() && grant.jkt.as_deref() != key {
        Some("the code is bound to another key")
    } else {
        None
    };
    if let Some(why) = wrong {
        return invalid(state, why);
    }
    if let Some(refusal) = other_resource(state, seen, &grant) {
        return refusal;
    }
    kept.used = true;
    grant.jkt = key.map(str::to_owned);
    finish(state, &mut memory, &grant)
}

/// Tokens for a user, with what they asked for.
pub(super) fn finish(
    state: &AuthorityState,
    memory: &mut AuthorityMemory,
    grant: &IssuedGrant,
) -> AuthorityReply {
    let tokens = make(state, memory, grant, state.settings.refresh_tokens);
    let openid = grant.scope.split(' ').any(|scope| scope == "openid");
    let id = openid.then(|| id_token(state, memory, grant));
    granted(state, grant, &tokens, id.as_deref())
}

/// The refusal of a token request whose resource is not the one of the grant.
fn other_resource(
    state: &AuthorityState,
    seen: &RecordedRequest,
    grant: &IssuedGrant,
) -> Option<AuthorityReply> {
    let asked = seen.param("resource");
    if asked.is_none() && !state.settings.demand_resource {
        return None;
    }
    (asked != grant.resource.as_deref()).then(|| {
        let why = "`resource` is not the one that was granted";
        refuse(state, 400, "invalid_target", why)
    })
}

fn refresh(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    let name = seen.param("refresh_token").unwrap_or_default();
    if state.once(Switch::InvalidGrantOnce) {
        return invalid(state, "for no reason");
    }
    let mut memory = state.memory();
    let now = memory.now();
    let Some(kept) = memory.refresh.get(name).cloned() else {
        return invalid(state, "unknown refresh token");
    };
    let family = kept.grant.family;
    if kept.grant.client != client.id || kept.grant.party != seen.party {
        return invalid(state, "the refresh token is another client's");
    }
    if memory.revoked.contains(&family) {
        return invalid(state, "the refresh token was revoked");
    }
    let grace = state.settings.grace_ms;
    if kept.used_at.is_some_and(|used| now >= used + grace) {
        memory.revoke(family);
        return invalid(state, "the refresh token was used before");
    }
    if kept.ends <= now {
        return invalid(state, "the refresh token has expired");
    }
    if kept.grant.jkt.is_some() && kept.grant.jkt.as_deref() != key {
        return invalid(state, "the refresh token is bound to another key");
    }
    if let Some(refusal) = other_resource(state, seen, &kept.grant) {
        return refusal;
    }
    let mut grant = kept.grant.clone();
    if let Some(asked) = seen.param("scope") {
        let had: Vec<&str> = grant.scope.split(' ').collect();
        if asked.split(' ').any(|scope| !had.contains(&scope)) {
            return refuse(state, 400, "invalid_scope", "more than was granted");
        }
        asked.clone_into(&mut grant.scope);
    }
    let tokens = if state.on(Switch::RefreshKept) {
        make(state, &mut memory, &grant, false)
    } else {
        if let Some(used) = memory.refresh.get_mut(name) {
            used.used_at.get_or_insert(now);
        }
        let access = make(state, &mut memory, &grant, false).access;
        // The whole scope stays with the refresh token, whatever was asked for now.
        let refresh = make(state, &mut memory, &kept.grant, true);
        memory.access.remove(&refresh.access);
        IssuedTokens {
            access,
            refresh: refresh.refresh,
        }
    };
    if state.on(Switch::RefreshLost) || state.once(Switch::RefreshLostOnce) {
        return AuthorityReply::lost();
    }
    let openid = grant.scope.split(' ').any(|scope| scope == "openid");
    let id = (openid && state.settings.refresh_id_tokens).then(|| {
        // The nonce belongs to the login.
        let grant = IssuedGrant {
            nonce: None,
            ..grant.clone()
        };
        id_token(state, &memory, &grant)
    });
    granted(state, &grant, &tokens, id.as_deref())
}

fn credentials(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    if client.secret.is_none() && client.jwks.is_none() {
        return refuse(
            state,
            400,
            "unauthorized_client",
            "a public client has no credentials",
        );
    }
    if let Err((error, why)) = check_resource(state, seen.param("resource")) {
        return refuse(state, 400, error, why);
    }
    let scope = scope_of(state, seen);
    let mut memory = state.memory();
    let grant = IssuedGrant {
        party: seen.party,
        client: client.id.clone(),
        subject: client.id.clone(),
        scope,
        resource: seen.param("resource").map(str::to_owned),
        nonce: None,
        jkt: key.map(str::to_owned),
        family: memory.fresh(),
    };
    let tokens = make(state, &mut memory, &grant, false);
    granted(state, &grant, &tokens, None)
}

/// Takes a token back (RFC 7009).
pub(super) fn revoke(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    state.memory().report.revocations += 1;
    if state.on(Switch::RevocationNone) {
        return AuthorityReply::empty(404);
    }
    if state.on(Switch::RevocationFails) {
        return refuse(state, 503, "temporarily_unavailable", "not now");
    }
    if state.settings.secret_in_revocation && seen.param("client_secret").is_none() {
        return refuse(
            state,
            400,
            "invalid_request",
            "client_secret: Field required",
        );
    }
    let client = match authenticate(state, seen) {
        Ok(client) => client,
        Err(refused) => return refused,
    };
    let name = seen.param("token").unwrap_or_default();
    let mut memory = state.memory();
    let refresh = memory.refresh.get(name).map(|kept| kept.grant.clone());
    if let Some(grant) = refresh.filter(|grant| grant.client == client.id) {
        // Not counted among the families that fell: this is what a logout wants.
        memory.revoked.insert(grant.family);
    } else if memory
        .access
        .get(name)
        .is_some_and(|kept| kept.grant.client == client.id)
    {
        memory.access.remove(name);
    }
    AuthorityReply::empty(200)
}
