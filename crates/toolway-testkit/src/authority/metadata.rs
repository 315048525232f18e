//! What the resource and the servers say of themselves.
//!
//! Owns the documents below `/.well-known/` and the switches that spoil them.

use serde_json::{Value, json};

use super::http::{AuthorityReply, ReplyBody};
use super::record::RequestedParty;
use super::settings::{DpopMode, ResourceMetadataPlace, ServerMetadataPlace};
use super::state::AuthorityState;
use super::{Switch, form};

const DPOP_ALGORITHMS: [&str; 3] = ["ES256", "RS256", "EdDSA"];
pub(super) const LINK_LOCAL: &str = "http://169.254.169.254/latest/meta-data";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The document at this path, if there is one.
pub(super) fn answer(
    state: &AuthorityState,
    party: RequestedParty,
    path: &str,
) -> Option<AuthorityReply> {
    let document = match party {
        RequestedParty::Resource => resource(state, path)?,
        RequestedParty::Issuer | RequestedParty::Attacker => server(state, party, path)?,
    };
    if party == RequestedParty::Attacker {
        return Some(AuthorityReply::json(200, &document));
    }
    Some(sent(state, path, &document))
}

/// The document as the switches let it through.
fn sent(state: &AuthorityState, path: &str, document: &Value) -> AuthorityReply {
    let own = |party: &str| format!("{party}{path}");
    if state.on(Switch::MetadataRedirectPrivate) {
        AuthorityReply::redirect(302, LINK_LOCAL)
    } else if state.on(Switch::MetadataRedirectOther) {
        AuthorityReply::redirect(302, &own(&state.places.attacker))
    } else if state.on(Switch::MetadataRedirectEndless) {
        AuthorityReply::redirect(302, path)
    } else if state.on(Switch::MetadataGigantic) {
        AuthorityReply::gigantic()
    } else if state.on(Switch::MetadataTrickle) {
        AuthorityReply::trickle()
    } else if state.on(Switch::MetadataNested) {
        AuthorityReply::new(200, "application/json", vec![b'['; 200_000])
    } else if state.on(Switch::MetadataHtml) {
        AuthorityReply::portal()
    } else {
        let mut reply = AuthorityReply::json(200, document);
        if state.on(Switch::MetadataBroken)
            && let ReplyBody::Whole(bytes) = &mut reply.body
        {
            bytes.truncate(bytes.len() / 2);
        }
        reply
    }
}

fn resource(state: &AuthorityState, path: &str) -> Option<Value> {
    let places = &state.settings.resource_places;
    let own_path = &state.settings.resource_path;
    let inserted = format!("{RESOURCE}{own_path}");
    if state.on(Switch::NoResourceMetadata) {
        return None;
    }
    let resource = if path == challenge_path() && places.contains(&ResourceMetadataPlace::Challenge)
        || path == inserted && places.contains(&ResourceMetadataPlace::Path)
    {
        state.places.resource.clone()
    } else if path == RESOURCE && places.contains(&ResourceMetadataPlace::Root) {
        // What stands at the root speaks for the whole origin (RFC 9728 3.3).
        state.places.resource_origin.clone()
    } else {
        return None;
    };
    let mut document = described(state, &resource);
    if matches!(
        state.settings.dpop,
        DpopMode::Required | DpopMode::RequiredWithNonce
    ) {
        document["dpop_bound_access_tokens_required"] = json!(true);
        document["dpop_signing_alg_values_supported"] = json!(DPOP_ALGORITHMS);
    }
    Some(document)
}

/// Where the challenge says that the metadata is: a path that cannot be guessed.
fn challenge_path() -> &'static str {
    "/.well-known/oauth-protected-resource/from-the-challenge"
}

/// The address of the metadata for a challenge; none when it is not to be named.
pub(super) fn challenge(state: &AuthorityState) -> Option<String> {
    if state.on(Switch::ChallengeLinkLocal) {
        return Some(LINK_LOCAL.to_owned());
    }
    if state.on(Switch::ChallengeOther) {
        return Some(format!("{}{RESOURCE}", state.places.attacker));
    }
    let named = state
        .settings
        .resource_places
        .contains(&ResourceMetadataPlace::Challenge);
    (named && !state.on(Switch::NoResourceMetadata))
        .then(|| format!("{}{}", state.places.resource_origin, challenge_path()))
}

fn described(state: &AuthorityState, resource: &str) -> Value {
    let port = state.places.attacker.rsplit(':').next().unwrap_or("80");
    let spelled = [
        (Switch::ServerLinkLocal, "169.254.169.254"),
        (Switch::ServerMappedLinkLocal, "[::ffff:169.254.169.254]"),
        (Switch::ServerHex, "0x7f.1"),
        (Switch::ServerDecimal, "2130706433"),
        (Switch::ServerLocalhostDot, "localhost."),
    ];
    let server = match state.first_on(&spelled) {
        Some(host) if host.contains("169.254") => format!("http://{host}"),
        Some(host) => format!("http://{host}:{port}"),
        None => state.issuer(state.believed()).to_owned(),
    };
    let mut document = json!({
        "resource": resource,
        "authorization_servers": [server],
        "scopes_supported": state.settings.scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "whoami",
    });
    if state.on(Switch::ResourceOther) {
        document["resource"] = json!(format!("{}/mcp", state.places.attacker));
    }
    if state.on(Switch::ResourceMissing) {
        remove(&mut document, "resource");
    }
    if state.on(Switch::NoServers) {
        document["authorization_servers"] = json!([]);
    }
    if state.on(Switch::ResourceNamesProvider) {
        for name in [
            "identity_provider",
            "idp_issuer",
            "authorization_servers_idp",
        ] {
            document[name] = json!(state.places.attacker);
        }
    }
    document
}

fn server(state: &AuthorityState, party: RequestedParty, path: &str) -> Option<Value> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let own = match party {
        RequestedParty::Attacker => "",
        RequestedParty::Issuer | RequestedParty::Resource => state.settings.issuer_path.as_str(),
    };
    let places = &state.settings.places;
    let here = path == format!("{OAUTH}{own}") && places.contains(&ServerMetadataPlace::Oauth)
        || path == format!("{OPENID}{own}")
            && places.contains(&ServerMetadataPlace::OpenidInserted)
        || path == format!("{own}{OPENID}")
            && places.contains(&ServerMetadataPlace::OpenidAppended);
    here.then(|| {
        let mut document = honest(state, party);
        if party == RequestedParty::Issuer {
            spoil(state, &mut document);
        } else if state.on(Switch::MixUp) {
            let endpoint = format!("{}/authorize", state.places.issuer);
            document["authorization_endpoint"] = json!(endpoint);
        }
        document
    })
}

fn honest(state: &AuthorityState, party: RequestedParty) -> Value {
    let issuer = state.issuer(party);
    let at = |path: &str| json!(format!("{issuer}{path}"));
    let urn = "urn:ietf:params:oauth:grant-type";
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/jwks"),
        "device_authorization_endpoint": at("/device_authorization"),
        "scopes_supported": state.settings.scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials",
            format!("{urn}:device_code"), format!("{urn}:token-exchange"),
            format!("{urn}:jwt-bearer")],
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        "token_endpoint_auth_methods_supported": state.settings.auth_methods,
        "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256", "EdDSA"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    if state.settings.one_grant {
        remove(&mut document, "device_authorization_endpoint");
    }
    if !state.settings.assertions {
        if let Some(grants) = document["grant_types_supported"].as_array_mut() {
            grants.retain(|grant| *grant != json!(format!("{urn}:jwt-bearer")));
        }
        document["authorization_grant_profiles_supported"] = json!([]);
    }
    if !state.on(Switch::RegistrationNone) {
        if state.settings.registration {
            document["registration_endpoint"] = at("/register");
        }
        if state.settings.documents {
            document["client_id_metadata_document_supported"] = json!(true);
        }
    }
    if !state.on(Switch::RevocationNone) {
        document["revocation_endpoint"] = at("/revoke");
    }
    if state.settings.dpop != DpopMode::Off {
        document["dpop_signing_alg_values_supported"] = json!(DPOP_ALGORITHMS);
    }
    document
}

fn spoil(state: &AuthorityState, document: &mut Value) {
    let issuer = state.places.issuer.as_str();
    let (scheme, rest) = issuer.split_once("://").unwrap_or(("http", issuer));
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) => (host, format!("/{path}")),
        None => (rest, String::new()),
    };
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let (start, last) = name.split_at(name.len() - 1);
    let escape = last.bytes().next().unwrap_or(b'1');
    for (switch, spelled) in [
        (Switch::IssuerOther, state.places.attacker.clone()),
        (Switch::IssuerTrailingSlash, format!("{issuer}/")),
        (
            Switch::IssuerCase,
            format!("{}://{rest}", scheme.to_uppercase()),
        ),
        (
            Switch::IssuerPort,
            format!("{scheme}://{name}:0{port}{path}"),
        ),
        (
            Switch::IssuerPercent,
            format!("{scheme}://{start}%{escape:02x}:{port}{path}"),
        ),
    ] {
        if state.on(switch) {
            document["issuer"] = json!(spelled);
        }
    }
    let endpoint = "authorization_endpoint";
    let honest = format!("{issuer}/authorize");
    for (switch, spelled) in [
        (
            Switch::EndpointJavascript,
            "javascript:alert(1)//".to_owned(),
        ),
        (
            Switch::EndpointData,
            "data:text/html,<script>alert(1)</script>".to_owned(),
        ),
        (Switch::EndpointFile, "file:///etc/passwd".to_owned()),
        (
            Switch::EndpointPlain,
            "http://login.example.com/authorize".to_owned(),
        ),
        (Switch::EndpointDash, "--load-extension=/tmp/x".to_owned()),
        (
            Switch::EndpointShell,
            format!("{honest}?x=$(id)`id`;id|id&y="),
        ),
        (
            Switch::EndpointControl,
            format!("{honest}\u{1b}[2J\r\nx: y\u{7f}"),
        ),
        (
            Switch::EndpointHuge,
            format!("{honest}?x={}", "a".repeat(64 << 10)),
        ),
    ] {
        if state.on(switch) {
            document[endpoint] = json!(spelled);
        }
    }
    for (switch, spelled) in [
        (
            Switch::TokenEndpointPlain,
            "http://login.example.com/token".to_owned(),
        ),
        (Switch::TokenEndpointLinkLocal, LINK_LOCAL.to_owned()),
        (
            Switch::TokenEndpointOther,
            format!("{}/token", state.places.attacker),
        ),
    ] {
        if state.on(switch) {
            document["token_endpoint"] = json!(spelled);
        }
    }
    if state.on(Switch::IssuerMissing) {
        remove(document, "issuer");
    }
    if state.on(Switch::PkceUnsaid) {
        remove(document, "code_challenge_methods_supported");
    }
    if state.on(Switch::PkcePlain) {
        document["code_challenge_methods_supported"] = json!(["plain"]);
    }
    if state.on(Switch::IssUnsaid) {
        remove(document, "authorization_response_iss_parameter_supported");
    }
}

pub(super) fn remove(document: &mut Value, name: &str) {
    if let Some(object) = document.as_object_mut() {
        // Keeps the order of the rest.
        object.shift_remove(name);
    }
}

/// A query behind an address that may have one already.
pub(super) fn with_query(url: &str, pairs: &[(&str, &str)]) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{}", form::write(pairs))
}
