//! Routes requests to their handlers.

use super::authorize::authorize;
use super::http::AuthorityReply;
use super::record::{RecordedRequest, RequestedParty};
use super::state::AuthorityState;
use super::{client, device, metadata, resource, token};

/// The answer to a request.
pub(super) fn answer(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    if let Some(document) = metadata::answer(state, seen.party, &seen.path) {
        return document;
    }
    if seen.party == RequestedParty::Resource {
        return if seen.path == state.settings.resource_path {
            resource::answer(state, seen)
        } else {
            AuthorityReply::empty(404)
        };
    }
    let own = match seen.party {
        RequestedParty::Issuer => state.settings.issuer_path.as_str(),
        RequestedParty::Attacker | RequestedParty::Resource => "",
    };
    let Some(path) = seen.path.strip_prefix(own) else {
        return AuthorityReply::empty(404);
    };
    match (seen.method.as_str(), path) {
        ("GET" | "POST", "/authorize") => authorize(state, seen),
        ("GET" | "POST", "/device") => device::page(state, seen),
        ("POST", "/token") => token::token(state, seen),
        ("POST", "/register") => client::register(state, seen),
        ("POST", "/device_authorization") => device::begin(state, seen),
        ("POST", "/revoke") => token::revoke(state, seen),
        ("GET", "/jwks") => AuthorityReply::json(200, &state.key.jwks()),
        _ => resource::account(state, seen, path).unwrap_or_else(|| AuthorityReply::empty(404)),
    }
}
