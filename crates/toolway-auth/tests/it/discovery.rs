//! Where to log in: the order of places, and what is not believed.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolway_auth::challenge::bearer;
use toolway_auth::discovery::{
    DiscoveredServer, DiscoveryError, DiscoveryOptions, canonical, covers, discover,
};
use toolway_auth::web::{NameLookup, NetworkReach, WebClient};
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_transport::client::HttpClient;
use url::Url;

use crate::site::Site;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

fn web() -> WebClient {
    WebClient::new(HttpClient::default(), NetworkReach::Loopback)
}

fn resource(resource: &str, issuer: &str) -> Value {
    json!({"resource": resource, "authorization_servers": [issuer]})
}

fn server(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "code_challenge_methods_supported": ["S256"],
    })
}

async fn found(site: &Site) -> Result<DiscoveredServer, DiscoveryError> {
    discover(
        &web(),
        &site.url("/mcp"),
        None,
        &DiscoveryOptions::default(),
    )
    .await
}

/// An MCP server that is honest about its authorization server.
async fn honest(issuer_path: &str) -> (Site, Site, String) {
    let (mcp, idp) = (Site::new().await, Site::new().await);
    let issuer = format!("{}{issuer_path}", idp.origin());
    let name = mcp.url("/mcp").to_string();
    mcp.put(&format!("{RESOURCE}/mcp"), &resource(&name, &issuer));
    (mcp, idp, issuer)
}

#[tokio::test]
async fn the_place_that_the_challenge_names_comes_first() {
    let (mcp, idp, issuer) = honest("").await;
    let name = mcp.url("/mcp").to_string();
    mcp.put("/custom/place.json", &resource(&name, &issuer));
    idp.put(OAUTH, &server(&issuer));
    let header = format!(
        "Bearer resource_metadata=\"{}/custom/place.json\"",
        mcp.origin()
    );
    let challenge = bearer(&header).unwrap();
    let options = DiscoveryOptions::default();
    let found = discover(&web(), &mcp.url("/mcp"), Some(&challenge), &options)
        .await
        .unwrap();
    assert_eq!(mcp.lines(), ["GET /custom/place.json"]);
    assert_eq!(idp.lines(), [format!("GET {OAUTH}")]);
    assert_eq!(found.resource, name);
    assert_eq!(found.server.issuer, issuer);
}

#[tokio::test]
async fn then_the_place_of_the_path_and_then_the_root() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    assert_eq!(
        found(&mcp).await.unwrap().resource,
        mcp.url("/mcp").to_string()
    );
    assert_eq!(mcp.lines(), [format!("GET {RESOURCE}/mcp")]);

    let root = Site::new().await;
    root.put(RESOURCE, &resource(&root.origin(), &issuer));
    assert_eq!(found(&root).await.unwrap().resource, root.origin());
    assert_eq!(
        root.lines(),
        [format!("GET {RESOURCE}/mcp"), format!("GET {RESOURCE}")]
    );
}

#[tokio::test]
async fn an_issuer_with_a_path_has_three_places() {
    let (mcp, idp, issuer) = honest("/tenant1").await;
    let places = [
        format!("{OAUTH}/tenant1"),
        format!("{OPENID}/tenant1"),
        format!("/tenant1{OPENID}"),
    ];
    let lines: Vec<String> = places.iter().map(|place| format!("GET {place}")).collect();
    // Traps: what stands at the root is another issuer's.
    idp.put(OAUTH, &server(&idp.origin()));
    idp.put(OPENID, &server(&idp.origin()));
    let missing = found(&mcp).await;
    assert!(
        matches!(missing, Err(DiscoveryError::NoMetadata { .. })),
        "{missing:?}"
    );
    assert_eq!(idp.lines(), lines);
    for count in (1..=3).rev() {
        let before = idp.lines().len();
        idp.put(&places[count - 1], &server(&issuer));
        assert_eq!(found(&mcp).await.unwrap().server.issuer, issuer);
        assert_eq!(idp.lines()[before..], lines[..count]);
    }
}

#[tokio::test]
async fn sec_18_an_issuer_that_is_not_byte_for_byte_the_same_is_refused() {
    let (mcp, idp, issuer) = honest("/a").await;
    let port = idp.url("/").port().unwrap();
    for named in [
        format!("{issuer}/"),
        idp.origin(),
        format!("HTTP://127.0.0.1:{port}/a"),
        format!("http://127.0.0.1:0{port}/a"),
        format!("http://127.0.0.%31:{port}/a"),
        format!("http://127.0.0.1:{port}/%61"),
        format!("http://127.0.0.1:{port}/A"),
        format!("http://127.0.0.1:{port}/./a"),
        format!(" {issuer}"),
        "https://attacker.example.com".to_owned(),
    ] {
        idp.put(&format!("{OAUTH}/a"), &server(&named));
        let refused = found(&mcp).await.unwrap_err();
        let DiscoveryError::IssuerMismatch { expected, .. } = &refused else {
            panic!("{named}: {refused:?}");
        };
        assert_eq!(*expected, issuer);
    }
    let mut unnamed = server(&issuer);
    unnamed.as_object_mut().unwrap().remove("issuer");
    idp.put(&format!("{OAUTH}/a"), &unnamed);
    let refused = found(&mcp).await.unwrap_err().to_string();
    assert!(refused.ends_with("it has no `issuer`"), "{refused}");
}

/// What URL types make of an origin when a resource lists it.
#[tokio::test]
async fn a_listing_and_an_issuer_may_differ_by_the_slash_of_an_origin_and_the_issuer_keeps_its_own()
{
    let (mcp, idp) = (Site::new().await, Site::new().await);
    let name = mcp.url("/mcp").to_string();
    let listed = format!("{}/", idp.origin());
    mcp.put(&format!("{RESOURCE}/mcp"), &resource(&name, &listed));
    idp.put(OAUTH, &server(&idp.origin()));
    assert_eq!(found(&mcp).await.unwrap().server.issuer, idp.origin());
    // An issuer that writes the slash itself is that issuer, whether or not it is listed so.
    idp.put(OAUTH, &server(&listed));
    assert_eq!(found(&mcp).await.unwrap().server.issuer, listed);
    mcp.put(&format!("{RESOURCE}/mcp"), &resource(&name, &idp.origin()));
    assert_eq!(found(&mcp).await.unwrap().server.issuer, listed);
    // The issuer of an earlier login is found by its own spelling.
    let first = Site::new().await;
    first.put(OAUTH, &server(&first.origin()));
    idp.put(OAUTH, &server(&idp.origin()));
    let both = json!({
        "resource": name,
        "authorization_servers": [format!("{}/", first.origin()), listed],
    });
    mcp.put(&format!("{RESOURCE}/mcp"), &both);
    let options = DiscoveryOptions {
        known_issuer: Some(idp.origin()),
        ..DiscoveryOptions::default()
    };
    let known = discover(&web(), &mcp.url("/mcp"), None, &options).await;
    assert_eq!(known.unwrap().server.issuer, idp.origin());
}

#[tokio::test]
async fn sec_18_no_other_slash_is_forgiven() {
    let idp = Site::new().await;
    let origin = idp.origin();
    let port = idp.url("/").port().unwrap();
    for (listed, named) in [
        (format!("{origin}//"), origin.clone()),
        (origin.clone(), format!("{origin}//")),
        (format!("{origin}//"), format!("{origin}/")),
        (format!("{origin}/a/"), format!("{origin}/a")),
        (format!("{origin}/a"), format!("{origin}/a/")),
        (format!("{origin}/"), format!("HTTP://127.0.0.1:{port}")),
        (format!("{origin}/"), format!("http://127.0.0.1:0{port}")),
        (format!("HTTP://127.0.0.1:{port}/"), origin.clone()),
        (format!("{origin}/"), format!("{origin} ")),
    ] {
        let mcp = Site::new().await;
        mcp.put(RESOURCE, &resource(&mcp.origin(), &listed));
        for place in [OAUTH.to_owned(), format!("{OAUTH}/a")] {
            idp.put(&place, &server(&named));
        }
        let refused = found(&mcp).await;
        assert!(
            matches!(refused, Err(DiscoveryError::IssuerMismatch { .. })),
            "{listed} and {named}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn an_issuer_that_is_no_plain_address_is_named() {
    let (mcp, _, _) = honest("").await;
    let name = mcp.url("/mcp").to_string();
    for issuer in [
        "https://user:word@idp.example.com",
        "https://idp.example.com?x",
        "idp",
        "",
    ] {
        mcp.put(&format!("{RESOURCE}/mcp"), &resource(&name, issuer));
        let refused = found(&mcp).await.unwrap_err();
        assert!(
            matches!(refused, DiscoveryError::BadIssuer { .. }),
            "{issuer}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn metadata_of_another_resource_ends_the_search() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    // The root would be believed if it were looked at.
    mcp.put(RESOURCE, &resource(&mcp.origin(), &issuer));
    for other in [
        "https://evil.example.com/mcp".to_owned(),
        format!("{}/mc", mcp.origin()),
        format!("{}/mcp/inner", mcp.origin()),
        idp.url("/mcp").to_string(),
        "mcp".to_owned(),
    ] {
        mcp.put(&format!("{RESOURCE}/mcp"), &resource(&other, &issuer));
        let refused = found(&mcp).await.unwrap_err();
        assert!(
            matches!(refused, DiscoveryError::OtherResource { .. }),
            "{other}: {refused:?}"
        );
        assert!(refused.to_string().contains(mcp.url("/mcp").as_str()));
    }
    assert_eq!(idp.lines(), [""; 0]);
}

#[test]
fn a_resource_covers_what_lies_below_it() {
    let server = Url::parse("https://mcp.example.com/a/b").unwrap();
    for (resource, expected) in [
        ("https://mcp.example.com", true),
        ("https://mcp.example.com/", true),
        ("https://MCP.example.com:443/a", true),
        ("https://mcp.example.com/a/b", true),
        ("https://mcp.example.com/a/b/", true),
        ("https://mcp.example.com/a/bc", false),
        ("https://mcp.example.com/a/b/c", false),
        ("https://mcp.example.com/a/b?x=1", false),
        ("https://mcp.example.com/a/b#x", false),
        ("https://mcp.example.com:8443/a/b", false),
        ("http://mcp.example.com/a/b", false),
        ("https://x@mcp.example.com/a/b", false),
        ("data:text/plain,x", false),
    ] {
        assert_eq!(covers(resource, &server), expected, "{resource}");
    }
}

#[test]
fn the_canonical_form_holds_no_key() {
    for (url, text) in [
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        (
            "https://mcp.example.com/mcp/",
            "https://mcp.example.com/mcp/",
        ),
        (
            marked!("https://u:w@mcp.example.com:8443/mcp?api_key=", "#x"),
            "https://mcp.example.com:8443/mcp",
        ),
    ] {
        assert_eq!(canonical(&Url::parse(url).unwrap()), text);
    }
}

#[tokio::test]
async fn a_websocket_server_has_its_documents_where_it_begins() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    let mut url = mcp.url("/mcp");
    url.set_scheme("ws").unwrap();
    let found = discover(&web(), &url, None, &DiscoveryOptions::default()).await;
    assert_eq!(found.unwrap().resource, mcp.url("/mcp").to_string());
    mcp.put(&format!("{RESOURCE}/mcp"), &resource(url.as_str(), &issuer));
    let found = discover(&web(), &url, None, &DiscoveryOptions::default()).await;
    assert_eq!(found.unwrap().resource, url.to_string());
    let secure = Url::parse("wss://mcp.example.com/mcp").unwrap();
    assert_eq!(canonical(&secure), "https://mcp.example.com/mcp");
    assert!(!covers("ws://mcp.example.com/mcp", &secure));
}

/// Discovery after a challenge that names this place.
async fn told(
    web: &WebClient,
    server: &Url,
    place: &str,
) -> Result<DiscoveredServer, DiscoveryError> {
    let challenge = bearer(&format!("Bearer resource_metadata=\"{place}\"")).unwrap();
    let options = DiscoveryOptions::default();
    discover(web, server, Some(&challenge), &options).await
}

#[tokio::test]
async fn a_challenge_may_point_to_another_origin() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    let other = Site::new().await;
    let name = mcp.url("/mcp").to_string();
    let mut document = resource(&name, &issuer);
    document["scopes_supported"] = json!(["from the other origin"]);
    other.put("/place.json", &document);
    let place = other.url("/place.json");
    let found = told(&web(), &mcp.url("/mcp"), place.as_str())
        .await
        .unwrap();
    assert_eq!(found.resource_metadata.unwrap().scopes.len(), 1);
    assert_eq!(mcp.lines(), [""; 0]);
    // It must name this server.
    let foreign = resource(other.url("/mcp").as_str(), &issuer);
    other.put("/place.json", &foreign);
    let refused = told(&web(), &mcp.url("/mcp"), place.as_str()).await;
    assert!(
        matches!(refused, Err(DiscoveryError::OtherResource { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn where_a_challenge_points_to_nothing_the_well_known_places_count() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    let other = Site::new().await;
    other.answer("/busy", 503, &[], "later");
    other.answer("/page", 200, &[("content-type", "text/html")], "<html>");
    let away = mcp.url("/away").to_string();
    other.answer("/away", 302, &[("location", &away)], "");
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/gone", listener.local_addr().unwrap())
    };
    for place in [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "https://[::ffff:169.254.169.254]/latest".to_owned(),
        other.url("/busy").to_string(),
        other.url("/page").to_string(),
        other.url("/away").to_string(),
        other.url("/missing").to_string(),
        gone,
    ] {
        let found = told(&web(), &mcp.url("/mcp"), &place).await;
        assert_eq!(found.unwrap().server.issuer, issuer, "{place}");
    }
    // Without those, what it pointed to is what is missing, and nothing is assumed.
    let bare = Site::new().await;
    let refused = told(&web(), &bare.url("/mcp"), other.url("/busy").as_str()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("/busy answered with HTTP 503"),
        "{refused}"
    );
}

#[tokio::test]
async fn sec_17_a_challenge_leads_a_public_server_to_nothing_in_here() {
    let inside = Site::new().await;
    inside.put(
        "/",
        &resource("https://mcp.example.com/mcp", &inside.origin()),
    );
    let port = inside.url("/").port().unwrap();
    let public = WebClient::resolving(
        HttpClient::default(),
        NetworkReach::Public,
        Arc::new(Inward),
    );
    let server = Url::parse("https://mcp.example.com/mcp").unwrap();
    for place in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://name.example.com:{port}/"),
        "https://10.0.0.1/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "https://169.254.169.254/".to_owned(),
    ] {
        let refused = told(&public, &server, &place).await;
        assert!(
            matches!(&refused, Err(DiscoveryError::Web(error)) if error.to_string().contains("is not asked")),
            "{place}: {refused:?}"
        );
    }
    assert_eq!(inside.lines(), [""; 0]);
}

/// Every name leads to this machine.
struct Inward;

impl NameLookup for Inward {
    fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[tokio::test]
async fn sec_17_discovery_carries_no_credential() {
    let (mcp, idp, issuer) = honest("").await;
    idp.put(OAUTH, &server(&issuer));
    let mut url = mcp.url(marked!("/mcp?api_key="));
    url.set_username(MARK).unwrap();
    url.set_password(Some(MARK)).unwrap();
    let refused = discover(&web(), &url, None, &DiscoveryOptions::default()).await;
    found(&mcp).await.unwrap();
    for asked in mcp.asked().into_iter().chain(idp.asked()) {
        for name in ["authorization", "cookie", "referer", "proxy-authorization"] {
            assert!(!asked.headers.contains_key(name), "{asked:?}");
        }
        assert_eq!(asked.body, "");
        assert!(!format!("{asked:?}").contains(MARK), "{asked:?}");
    }
    assert!(!format!("{refused:?}").contains(MARK), "{refused:?}");
}

#[tokio::test]
async fn sec_17_a_public_server_leads_to_nothing_on_this_machine() {
    let idp = Site::new().await;
    idp.put(OAUTH, &server(&idp.origin()));
    let mcp = Site::new().await;
    let public = WebClient::new(HttpClient::default(), NetworkReach::Public);
    let options = DiscoveryOptions::default();
    let refused = discover(&public, &mcp.url("/mcp"), None, &options).await;
    assert!(
        matches!(&refused, Err(DiscoveryError::Web(error)) if error.to_string().contains("is not asked")),
        "{refused:?}"
    );
    assert_eq!(mcp.lines(), [""; 0]);
    assert_eq!(idp.lines(), [""; 0]);
}

#[tokio::test]
async fn metadata_that_somebody_else_keeps_is_not_taken() {
    let (mcp, idp, issuer) = honest("").await;
    let other = Site::new().await;
    other.put("/copy", &server(&issuer));
    let location = other.url("/copy").to_string();
    idp.answer(OAUTH, 302, &[("location", &location)], "");
    let refused = found(&mcp).await;
    assert!(
        matches!(refused, Err(DiscoveryError::Elsewhere { .. })),
        "{refused:?}"
    );
    idp.put("/copy", &server(&issuer));
    idp.answer(OAUTH, 302, &[("location", "/copy")], "");
    assert_eq!(found(&mcp).await.unwrap().server.issuer, issuer);
}

#[tokio::test]
async fn a_server_of_2025_03_26_has_its_metadata_at_its_own_origin() {
    let mcp = Site::new().await;
    mcp.put(OAUTH, &server(&mcp.origin()));
    let found = found(&mcp).await.unwrap();
    assert_eq!(found.server.issuer, mcp.origin());
    assert_eq!(found.resource_metadata, None);
    assert_eq!(found.resource, mcp.url("/mcp").to_string());
    assert!(!found.server.is_assumed);
}

#[tokio::test]
async fn a_server_of_2025_03_26_without_metadata_has_its_endpoints_where_they_always_were() {
    let mcp = Site::new().await;
    let found = found(&mcp).await.unwrap().server;
    assert!(found.is_assumed);
    assert_eq!(found.issuer, mcp.origin());
    assert_eq!(found.authorization_endpoint, Some(mcp.url("/authorize")));
    assert_eq!(found.token_endpoint, Some(mcp.url("/token")));
    assert_eq!(found.registration_endpoint, Some(mcp.url("/register")));
}

#[tokio::test]
async fn rel_27_nothing_is_assumed_where_a_page_or_a_fault_answers() {
    let mcp = Site::new().await;
    mcp.answer(RESOURCE, 503, &[], "later");
    let busy = found(&mcp).await.unwrap_err().to_string();
    assert!(busy.contains("HTTP 503"), "{busy}");
    mcp.answer(RESOURCE, 429, &[("retry-after", "1")], "later");
    let busy = found(&mcp).await.unwrap_err().to_string();
    assert!(busy.contains("HTTP 429"), "{busy}");
    let page = [("content-type", "text/html")];
    mcp.answer(RESOURCE, 200, &page, "<html>Welcome to the hotel");
    let portal = found(&mcp).await.unwrap_err().to_string();
    assert!(portal.contains("it is a web page"), "{portal}");
    // A site that answers everything with its page may still have a document.
    mcp.put(OAUTH, &server(&mcp.origin()));
    assert_eq!(found(&mcp).await.unwrap().server.issuer, mcp.origin());
}

#[tokio::test]
async fn a_resource_without_a_server_is_named() {
    let mcp = Site::new().await;
    let document = json!({"resource": mcp.origin(), "authorization_servers": []});
    mcp.put(RESOURCE, &document);
    let refused = found(&mcp).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        format!(
            "{} wants a login but names no authorization server; set \
             `oauth.authServerMetadataUrl` if you know it",
            mcp.url("/mcp")
        )
    );
}

#[tokio::test]
async fn of_several_servers_the_one_of_the_earlier_login_is_taken() {
    let (first, second) = (Site::new().await, Site::new().await);
    for idp in [&first, &second] {
        idp.put(OAUTH, &server(&idp.origin()));
    }
    let mcp = Site::new().await;
    let document = json!({
        "resource": mcp.origin(),
        "authorization_servers": [first.origin(), second.origin()],
    });
    mcp.put(RESOURCE, &document);
    assert_eq!(found(&mcp).await.unwrap().server.issuer, first.origin());
    for (known, expected) in [(second.origin(), &second), ("https://gone".into(), &first)] {
        let options = DiscoveryOptions {
            known_issuer: Some(known),
            ..DiscoveryOptions::default()
        };
        let found = discover(&web(), &mcp.url("/mcp"), None, &options).await;
        assert_eq!(found.unwrap().server.issuer, expected.origin());
    }
}

#[tokio::test]
async fn the_place_that_the_person_wrote_is_believed() {
    let (mcp, idp) = (Site::new().await, Site::new().await);
    idp.put("/meta.json", &server("https://login.example.com"));
    let options = DiscoveryOptions {
        metadata_url: Some(idp.url("/meta.json")),
        ..DiscoveryOptions::default()
    };
    // The MCP server is somewhere else entirely and says nothing of use.
    mcp.answer(RESOURCE, 500, &[], "");
    let found = discover(&web(), &mcp.url("/mcp"), None, &options)
        .await
        .unwrap();
    assert_eq!(found.server.issuer, "https://login.example.com");
    assert_eq!(found.resource, mcp.url("/mcp").to_string());
    assert_eq!(found.web.reach(), NetworkReach::Loopback);
    // Its own claims count; a foreign issuer still ends it.
    mcp.put(
        RESOURCE,
        &resource(&mcp.origin(), "https://other.example.com"),
    );
    let found = discover(&web(), &mcp.url("/mcp"), None, &options).await;
    assert_eq!(found.unwrap().resource, mcp.origin());
    mcp.put(RESOURCE, &resource("https://evil.example.com", "https://x"));
    let refused = discover(&web(), &mcp.url("/mcp"), None, &options).await;
    assert!(
        matches!(refused, Err(DiscoveryError::OtherResource { .. })),
        "{refused:?}"
    );
}
