//! What the token endpoint answers with: tokens, or a refusal.
//!
//! Owns making tokens and the switches that spoil the answer. Who gets them is `token.rs`.

use serde_json::{Value, json};

use super::http::{AuthorityReply, ReplyBody};
use super::metadata::remove;
use super::state::{
    AccessToken, AuthorityMemory, AuthorityState, IssuedGrant, RefreshToken, secret,
};
use super::{Switch, jwt};

/// An error in OAuth's shape.
pub(super) fn refuse(
    state: &AuthorityState,
    status: u16,
    error: &str,
    why: &str,
) -> AuthorityReply {
    AuthorityReply::json(
        status,
        &json!({ "error": error, "error_description": description(state, why) }),
    )
}

/// The words of an error, which may steer a terminal.
pub(super) fn description(state: &AuthorityState, why: &str) -> String {
    if state.on(Switch::ErrorEscapes) {
        format!("\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31m{why}\u{202e}\u{8}\r\nlogged in\u{9b}K")
    } else {
        why.to_owned()
    }
}

/// The issued tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedTokens {
    /// The access token.
    pub access: String,
    /// The refresh token.
    pub refresh: Option<String>,
}

/// Makes an access token, and a refresh token when asked to.
pub(super) fn make(
    state: &AuthorityState,
    memory: &mut AuthorityMemory,
    grant: &IssuedGrant,
    refresh: bool,
) -> IssuedTokens {
    let ends = memory.now() + state.settings.access_ms;
    let access = if state.settings.signed_access {
        let claims = json!({ "iss": state.issuer(grant.party), "sub": grant.subject,
            "aud": grant.resource, "client_id": grant.client, "scope": grant.scope,
            "iat": memory.now() / 1000, "exp": ends / 1000, "jti": jwt::random(8) });
        state.key.sign("at+jwt", &claims)
    } else {
        secret("at")
    };
    let kept = AccessToken {
        grant: grant.clone(),
        ends,
    };
    memory.access.insert(access.clone(), kept);
    let refresh = refresh.then(|| {
        let token = secret("rt");
        let kept = RefreshToken {
            grant: grant.clone(),
            ends: memory.now() + state.settings.refresh_ms,
            used_at: None,
        };
        memory.refresh.insert(token.clone(), kept);
        token
    });
    IssuedTokens { access, refresh }
}

/// An id token, if `openid` was requested.
pub(super) fn id_token(
    state: &AuthorityState,
    memory: &AuthorityMemory,
    grant: &IssuedGrant,
) -> String {
    let now = memory.now() / 1000;
    let mut claims = json!({ "iss": state.issuer(grant.party), "sub": grant.subject,
        "aud": grant.client, "iat": now, "exp": now + 3600,
        "email": format!("{}@example.com", grant.subject) });
    if let Some(nonce) = &grant.nonce {
        claims["nonce"] = json!(nonce);
    }
    if state.on(Switch::IdTokenIssuer) {
        claims["iss"] = json!(state.places.attacker);
    }
    if state.on(Switch::IdTokenAudience) {
        claims["aud"] = json!("somebody-else");
    }
    if state.on(Switch::IdTokenNonce) {
        claims["nonce"] = json!("another");
    }
    if state.on(Switch::IdTokenExpired) {
        claims["exp"] = json!(now - 3600);
    }
    let signed = state.key.sign("JWT", &claims);
    if state.on(Switch::IdTokenUnsigned) {
        let (_, rest) = signed.split_once('.').unwrap_or(("", &signed));
        let (claims, _) = rest.split_once('.').unwrap_or((rest, ""));
        let header = json!({ "canary": super::CANARY, "alg": "none" }).to_string();
        return format!("{}.{claims}.", jwt::encode(header.as_bytes()));
    }
    signed
}

/// The answer that carries tokens.
pub(super) fn granted(
    state: &AuthorityState,
    grant: &IssuedGrant,
    tokens: &IssuedTokens,
    id: Option<&str>,
) -> AuthorityReply {
    let kind = if grant.jkt.is_some() {
        "DPoP"
    } else {
        "Bearer"
    };
    let mut body = json!({
        "access_token": tokens.access,
        "token_type": kind,
        "expires_in": state.settings.access_ms / 1000,
        "scope": grant.scope,
    });
    if let Some(refresh) = &tokens.refresh {
        body["refresh_token"] = json!(refresh);
    }
    if let Some(id) = id {
        body["id_token"] = json!(id);
    }
    spoil(state, &mut body);
    if state.on(Switch::DuplicateKeys) {
        let text = body.to_string();
        let twice = r#","access_token":"attacker","refresh_token":"attacker","expires_in":1}"#;
        let text = format!("{}{twice}", text.strip_suffix('}').unwrap_or(&text));
        return AuthorityReply {
            body: ReplyBody::Whole(text.into_bytes()),
            ..AuthorityReply::json(200, &Value::Null)
        };
    }
    AuthorityReply::json(200, &body)
}

fn spoil(state: &AuthorityState, body: &mut Value) {
    for (switch, name) in [
        (Switch::ExpiryMissing, "expires_in"),
        (Switch::TypeMissing, "token_type"),
        (Switch::AccessMissing, "access_token"),
    ] {
        if state.on(switch) {
            remove(body, name);
        }
    }
    for (switch, value) in [
        (Switch::ExpiryZero, json!(0)),
        (Switch::ExpiryNegative, json!(-1)),
        (
            Switch::ExpiryString,
            json!((state.settings.access_ms / 1000).to_string()),
        ),
        (Switch::ExpiryHuge, json!(u64::MAX)),
    ] {
        if state.on(switch) {
            body["expires_in"] = value;
        }
    }
    if state.on(Switch::TypeMac) {
        body["token_type"] = json!("mac");
    }
}
