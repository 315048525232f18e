//! Proof of possession of a key (RFC 9449).

use super::answer::refuse;
use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::settings::DpopMode;
use super::state::AuthorityState;
use super::{Switch, jwt};

/// How far a proof's time may be off, in seconds.
const SKEW: u64 = 300;

/// A nonce that the next proof must hold.
pub(super) fn nonce(state: &AuthorityState) -> String {
    let nonce = jwt::random(8);
    state.memory().nonces.insert(nonce.clone());
    nonce
}

/// The name of the key that a request proves to have; none when no proof came and none is needed.
/// `token` is the access token that a request to the resource carries.
pub(super) fn proof(
    state: &AuthorityState,
    seen: &RecordedRequest,
    token: Option<&str>,
) -> Result<Option<String>, AuthorityReply> {
    let wanted = state.settings.dpop;
    if wanted == DpopMode::Off {
        return Ok(None);
    }
    let refused = |why: &str| refuse(state, 400, "invalid_dpop_proof", why);
    let Some(proof) = seen.header("dpop") else {
        return if wanted == DpopMode::Accepted {
            Ok(None)
        } else {
            Err(refused("a proof is required"))
        };
    };
    let header = jwt::look(proof)
        .ok_or_else(|| refused("the proof is no token"))?
        .header;
    let jwk = &header["jwk"];
    let keys = serde_json::json!({ "keys": [jwk] });
    let claims = jwt::verify(proof, &keys)
        .ok_or_else(|| refused("the signature does not fit"))?
        .claims;
    let origin = match seen.party {
        RequestedParty::Resource => state.places.resource_origin.as_str(),
        RequestedParty::Issuer => origin_of(&state.places.issuer),
        RequestedParty::Attacker => state.places.attacker.as_str(),
    };
    let here = format!("{origin}{}", seen.path);
    let now = state.memory().now() / 1000;
    if header["typ"] != "dpop+jwt"
        || claims["htm"] != seen.method.as_str()
        || claims["htu"] != here.as_str()
        || claims["iat"]
            .as_u64()
            .is_none_or(|at| at.abs_diff(now) > SKEW)
        || token.is_some_and(|token| claims["ath"] != jwt::digest(token).as_str())
    {
        return Err(refused("the proof is for something else"));
    }
    let name = claims["jti"].as_str().unwrap_or_default();
    if !state.memory().used.insert(format!("dpop {name}")) {
        return Err(refused("the proof was used before"));
    }
    let given = claims["nonce"].as_str().unwrap_or_default();
    let known = state.memory().nonces.contains(given);
    if state.on(Switch::DpopNonceLoop) || wanted == DpopMode::RequiredWithNonce && !known {
        let reply = refuse(state, 400, "use_dpop_nonce", "the proof needs a nonce");
        return Err(reply.with("dpop-nonce", nonce(state)));
    }
    Ok(Some(jwt::thumbprint(jwk)))
}

/// Scheme and host of an address.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    match url[start..].find('/') {
        Some(at) => &url[..start + at],
        None => url,
    }
}
