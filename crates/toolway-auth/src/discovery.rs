//! From a server's address to its authorization server.
//!
//! Owns the order in which documents are looked for (RFC 9728, then RFC 8414 and OIDC discovery,
//! then what 2025-03-26 did without), and two checks: `resource` must be this server, and `issuer`
//! the string that the document was looked up with (SEC-18), but for the slash URL types add to an
//! origin.
//! Does not own: fetching (`web.rs`), reading documents (`metadata.rs`), or who we are there
//! (`registration.rs`).

mod places;

use toolway_types::request_url;
use url::Url;

use crate::challenge::BearerChallenge;
use crate::metadata::{MetadataError, ResourceMetadata, ServerMetadata, shown};
use crate::web::{self, NetworkReach, WebClient, WebError};

pub use places::{canonical, covers};
pub(crate) use places::{of_issuer, well_known};

/// What is known beforehand.
#[derive(Debug, Clone, Default)]
pub struct DiscoveryOptions {
    /// Where the authorization server's metadata is (`authServerMetadataUrl`), written by the user
    /// or the administrator.
    pub metadata_url: Option<Url>,
    /// The issuer of an earlier login. Of several authorization servers it is the one to take.
    pub known_issuer: Option<String>,
}

/// Where to log in.
#[derive(Debug, Clone)]
pub struct DiscoveredServer {
    /// The resource that tokens are asked for: as its metadata writes it, else the server's
    /// address in its canonical form.
    pub resource: String,
    /// What the resource says of itself; old servers say nothing.
    pub resource_metadata: Option<ResourceMetadata>,
    /// The authorization server.
    pub server: ServerMetadata,
    /// What asks its endpoints: an authorization server that the user named may be anywhere.
    pub web: WebClient,
}

/// Why it is not known where to log in.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The metadata is for another resource, and so would be its tokens.
    #[error(
        "the metadata at {url} is for {named}, not for this server ({server}): nothing was sent there"
    )]
    OtherResource {
        /// Where it stands.
        url: String,
        /// The resource it is for.
        named: String,
        /// The resource it should be for.
        server: String,
    },
    /// The resource names no authorization server.
    #[error(
        "{server} wants a login but names no authorization server; set `oauth.authServerMetadataUrl` if you know it"
    )]
    NoServers {
        /// Who.
        server: String,
    },
    /// An issuer that is no address.
    #[error("{server} names the authorization server {issuer}, which is not usable: {why}")]
    BadIssuer {
        /// Who named it.
        server: String,
        /// The issuer.
        issuer: String,
        /// The rule.
        why: &'static str,
    },
    /// A document's `issuer` is not the string that it was looked up with.
    #[error(
        "the metadata at {url} is that of {named}, not of {expected}: somebody could be in between, so nothing was sent"
    )]
    IssuerMismatch {
        /// Where it stands.
        url: String,
        /// Who it says it is.
        named: String,
        /// Who it should be.
        expected: String,
    },
    /// A document redirects to another origin.
    #[error("the metadata at {url} is kept by somebody else ({by}), who cannot speak for it")]
    Elsewhere {
        /// Where it should stand.
        url: String,
        /// Where it does.
        by: String,
    },
    /// A document says something that is not taken.
    #[error("the metadata at {url} is not usable: {fault}")]
    Metadata {
        /// Where it stands.
        url: String,
        /// What is wrong.
        #[source]
        fault: MetadataError,
    },
    /// There is no document at any of its places.
    #[error(
        "no metadata was found for the authorization server {issuer}; set `oauth.authServerMetadataUrl` if it is elsewhere"
    )]
    NoMetadata {
        /// Whose.
        issuer: String,
    },
    /// A document could not be had.
    #[error("the authorization server's metadata could not be had: {0}")]
    Web(#[from] WebError),
}

/// Finds the authorization server of a server.
pub async fn discover(
    web: &WebClient,
    server: &Url,
    challenge: Option<&BearerChallenge>,
    options: &DiscoveryOptions,
) -> Result<DiscoveredServer, DiscoveryError> {
    let server = &request_url(server);
    // Where the user named the authorization server, the reach is theirs and not the server's.
    let web = &match options.metadata_url {
        Some(_) => web.clone(),
        None => web.pinned(server),
    };
    let found = resource(web, server, challenge).await;
    if let Some(url) = &options.metadata_url {
        let resource_metadata = match found {
            Ok(found) => found,
            // The user named the authorization server of this resource, not of another one.
            Err(error @ DiscoveryError::OtherResource { .. }) => return Err(error),
            Err(_) => None,
        };
        let web = web.trusting();
        let metadata = named(&web, url).await?;
        return Ok(DiscoveredServer {
            resource: resource_metadata
                .as_ref()
                .map_or_else(|| canonical(server), |metadata| metadata.resource.clone()),
            resource_metadata,
            server: metadata,
            web,
        });
    }
    let without = |metadata| DiscoveredServer {
        resource: canonical(server),
        resource_metadata: None,
        server: metadata,
        web: web.clone(),
    };
    let metadata = match found {
        Ok(Some(metadata)) => metadata,
        Ok(None) => {
            let own = own(web, server).await?;
            return Ok(without(own.unwrap_or_else(|| assumed(server))));
        }
        // Many sites answer every address with their page. Their documents count, but nothing is
        // assumed: the page may be that of a network's login (REL-27).
        Err(DiscoveryError::Web(error @ WebError::NotJson { .. })) => {
            let own = own(web, server).await.ok().flatten();
            return own.map(without).ok_or(DiscoveryError::Web(error));
        }
        Err(error) => return Err(error),
    };
    let issuer = options
        .known_issuer
        .as_ref()
        .and_then(|known| {
            let mut listed = metadata.authorization_servers.iter();
            listed.find(|listed| places::lists(listed, known))
        })
        .or(metadata.authorization_servers.first())
        .ok_or_else(|| DiscoveryError::NoServers {
            server: web::shown(server),
        })?;
    let places =
        places::of_issuer(issuer, web.reach()).map_err(|why| DiscoveryError::BadIssuer {
            server: web::shown(server),
            issuer: shown(issuer),
            why,
        })?;
    let is_issuer = |named: &str| places::lists(issuer, named);
    let found = authority(web, &places, is_issuer, issuer).await?;
    Ok(DiscoveredServer {
        resource: metadata.resource.clone(),
        server: found.ok_or_else(|| DiscoveryError::NoMetadata {
            issuer: shown(issuer),
        })?,
        resource_metadata: Some(metadata),
        web: web.clone(),
    })
}

/// Whether a server says of itself where logins to it are made. Asks no other server.
pub async fn describes_itself(web: &WebClient, server: &Url) -> bool {
    let server = request_url(server);
    let found = resource(&web.pinned(&server), &server, None).await;
    matches!(found, Ok(Some(_)))
}

/// The resource's own document; `None` when every place says that there is none.
async fn resource(
    web: &WebClient,
    server: &Url,
    challenge: Option<&BearerChallenge>,
) -> Result<Option<ResourceMetadata>, DiscoveryError> {
    // The challenge chooses the URL, as the specification says. So it is checked like every URL
    // that a server names, and must use `https` unless it has the server's origin or all is on this
    // machine.
    let told = challenge
        .and_then(|challenge| challenge.resource_metadata.clone())
        .filter(|url| {
            let is_safe = url.scheme() == "https" || web.reach() == NetworkReach::Loopback;
            url.origin() == server.origin() || is_safe
        });
    let mut fault = None;
    for url in places::of_resource(server, told) {
        let reply = match look(web, &url).await {
            Ok(DocumentLookup::Found(reply)) => reply,
            Ok(DocumentLookup::Missing) => continue,
            Ok(DocumentLookup::Failed(error)) => {
                fault.get_or_insert(error.into());
                continue;
            }
            // Servers behind a proxy may name addresses that are unreachable from here; the
            // document at their own origin is as good.
            Err(error) if url.origin() != server.origin() => {
                fault.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let metadata = ResourceMetadata::read(&reply).map_err(unusable(&url))?;
        if !covers(&metadata.resource, server) {
            return Err(DiscoveryError::OtherResource {
                url: web::shown(&url),
                named: shown(&metadata.resource),
                server: web::shown(server),
            });
        }
        return Ok(Some(metadata));
    }
    // A place that failed may have had it: to go on without would be to guess.
    fault.map_or(Ok(None), Err)
}

/// The metadata that a server of 2025-03-26 has at its own origin.
async fn own(web: &WebClient, server: &Url) -> Result<Option<ServerMetadata>, DiscoveryError> {
    let origin = server.origin().ascii_serialization();
    let places =
        places::of_issuer(&origin, web.reach()).map_err(|why| DiscoveryError::BadIssuer {
            server: web::shown(server),
            issuer: origin.clone(),
            why,
        })?;
    // The issuer is not configured, so both spellings of an origin are accepted here.
    let is_own = |named: &str| named.strip_suffix('/').unwrap_or(named) == origin;
    authority(web, &places, is_own, &origin).await
}

/// The endpoints of a server of 2025-03-26 that has no metadata: where they always were.
fn assumed(server: &Url) -> ServerMetadata {
    let at = |path| Some(places::at(server, path));
    ServerMetadata {
        issuer: server.origin().ascii_serialization(),
        authorization_endpoint: at("/authorize"),
        token_endpoint: at("/token"),
        registration_endpoint: at("/register"),
        // That revision requires PKCE.
        challenge_methods: Some(vec!["S256".to_owned()]),
        is_assumed: true,
        ..ServerMetadata::default()
    }
}

/// The metadata at the place that the user wrote.
async fn named(web: &WebClient, url: &Url) -> Result<ServerMetadata, DiscoveryError> {
    match look(web, url).await? {
        DocumentLookup::Found(document) => {
            ServerMetadata::read(&document, web.reach()).map_err(unusable(url))
        }
        DocumentLookup::Missing => Err(DiscoveryError::NoMetadata {
            issuer: web::shown(url),
        }),
        DocumentLookup::Failed(error) => Err(error.into()),
    }
}

/// An authorization server's document; `None` when every place says that there is none.
pub(crate) async fn authority(
    web: &WebClient,
    places: &[Url],
    is_issuer: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<Option<ServerMetadata>, DiscoveryError> {
    let mut fault = None;
    for url in places {
        let document = match look(web, url).await? {
            DocumentLookup::Found(document) => document,
            DocumentLookup::Missing => continue,
            DocumentLookup::Failed(error) => {
                fault.get_or_insert(error);
                continue;
            }
        };
        // Checked first: the document of another issuer is not read further.
        let named = document.get("issuer").and_then(|issuer| issuer.as_str());
        if let Some(named) = named.filter(|named| !is_issuer(named)) {
            return Err(DiscoveryError::IssuerMismatch {
                url: web::shown(url),
                named: shown(named),
                expected: shown(expected),
            });
        }
        let read = ServerMetadata::read(&document, web.reach());
        return read.map(Some).map_err(unusable(url));
    }
    fault.map_or(Ok(None), |fault| Err(fault.into()))
}

/// The error of a document that stands there.
fn unusable(url: &Url) -> impl FnOnce(MetadataError) -> DiscoveryError {
    let url = web::shown(url);
    |fault| DiscoveryError::Metadata { url, fault }
}

/// What one place gave.
enum DocumentLookup {
    Found(serde_json::Map<String, serde_json::Value>),
    /// It says that there is nothing.
    Missing,
    /// It did not say.
    Failed(WebError),
}

async fn look(web: &WebClient, url: &Url) -> Result<DocumentLookup, DiscoveryError> {
    let reply = match web.get(url).await {
        Ok(reply) => reply,
        // The next place would lead to the same address.
        Err(error @ WebError::Forbidden { .. }) => return Err(error.into()),
        Err(error) => return Ok(DocumentLookup::Failed(error)),
    };
    if reply.url.origin() != url.origin() {
        return Err(DiscoveryError::Elsewhere {
            url: web::shown(url),
            by: reply.url.origin().ascii_serialization(),
        });
    }
    if (400..500).contains(&reply.status) && !matches!(reply.status, 408 | 425 | 429) {
        return Ok(DocumentLookup::Missing);
    }
    if !reply.is_success() {
        return Ok(DocumentLookup::Failed(WebError::Status {
            url: web::shown(url),
            status: reply.status,
        }));
    }
    Ok(reply
        .object()
        .map_or_else(DocumentLookup::Failed, DocumentLookup::Found))
}
