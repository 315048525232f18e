//! Addresses: where documents are looked for, and which resource a server belongs to.

use toolway_types::request_url;
use url::Url;

use crate::metadata;
use crate::web::NetworkReach;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Where a resource's document is: where the challenge says, then at the well-known place for its
/// path, then at the one for its whole origin.
pub(super) fn of_resource(server: &Url, told: Option<Url>) -> Vec<Url> {
    let mut places = Vec::new();
    let known = [well_known(server), at(server, RESOURCE)];
    for url in told.into_iter().chain(known) {
        if !places.contains(&url) {
            places.push(url);
        }
    }
    places
}

/// The well-known place for a resource's path.
pub(crate) fn well_known(server: &Url) -> Url {
    let path = server.path().trim_end_matches('/');
    at(server, &format!("{RESOURCE}{path}"))
}

/// Where an issuer's document is, in the specification's order.
pub(crate) fn of_issuer(issuer: &str, reach: NetworkReach) -> Result<Vec<Url>, &'static str> {
    let url = metadata::endpoint(issuer, reach)?;
    if url.query().is_some() {
        return Err("it holds a query");
    }
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        at(&url, &format!("{OAUTH}{path}")),
        at(&url, &format!("{OPENID}{path}")),
    ];
    if !path.is_empty() {
        places.push(at(&url, &format!("{path}{OPENID}")));
    }
    Ok(places)
}

/// Whether a resource's listing names this issuer: byte for byte, or but for the one slash that
/// URL types put after an origin without a path, on either side. Nothing else is forgiven, nor
/// this anywhere else.
pub(super) fn lists(listed: &str, issuer: &str) -> bool {
    let is_origin = |text: &str| {
        let rest = text.split_once("://").map(|(_, rest)| rest);
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#']))
    };
    let adds_slash =
        |long: &str, short: &str| long.strip_suffix('/') == Some(short) && is_origin(short);
    listed == issuer || adds_slash(listed, issuer) || adds_slash(issuer, listed)
}

/// A path at an origin, without anything else.
pub(super) fn at(origin: &Url, path: &str) -> Url {
    let mut url = origin.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    // Neither fails for an address with a host, and others have no login.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// The canonical form of a server's address (RFC 8707): no query, which may hold a key, no
/// fragment, no login, and no slash alone.
pub fn canonical(server: &Url) -> String {
    let url = at(&request_url(server), server.path());
    let text = url.to_string();
    match (url.path(), text.strip_suffix('/')) {
        ("/", Some(bare)) => bare.to_owned(),
        _ => text,
    }
}

/// Whether a resource's metadata speaks for a server: the same origin, and a path that is the
/// server's or lies above it.
pub fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let (resource, server) = (request_url(&resource), request_url(server));
    let path = resource.path().trim_end_matches('/');
    resource.origin().is_tuple()
        && resource.origin() == server.origin()
        && resource.username().is_empty()
        && resource.fragment().is_none()
        && resource
            .query()
            .is_none_or(|query| server.query() == Some(query))
        && server
            .path()
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
