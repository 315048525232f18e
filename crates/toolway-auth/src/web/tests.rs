//! Requests against real servers on loopback, with names that lead where a test says.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::any;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{UrlList, UrlPattern};

use super::*;

/// Answers a name with one list of addresses after the other; the last one stays.
struct Names(Mutex<VecDeque<Vec<IpAddr>>>);

impl Names {
    fn to(addresses: &[&str]) -> Arc<Self> {
        Self::turning(&[addresses])
    }

    fn turning(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl NameLookup for Names {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

#[tokio::test]
async fn sec_53_nobody_who_is_denied_is_asked_about_a_login() {
    let routes = Router::new()
        .route("/start", any(|| async { redirect_to("/admin/token") }))
        .route("/admin/token", any(|| async { "{}" }));
    let site = Site::new(routes).await;
    let rules = UrlRules {
        denied: vec![UrlList {
            patterns: vec![UrlPattern::parse("http://localhost:*/admin/*").unwrap()],
            reason: "denied by a rule".to_owned(),
        }],
        // What is allowed is about servers.
        allowed: vec![UrlList {
            patterns: vec![UrlPattern::parse("https://mcp.example/*").unwrap()],
            reason: "not allowed".to_owned(),
        }],
    };
    let web = WebClient::trusted(HttpClient::default()).within(&Arc::new(rules));
    let url = |path: &str| Url::parse(&format!("http://127.0.0.1:{}{path}", site.port)).unwrap();
    let start = url("/start");
    for web in [web.clone(), web.trusting(), web.pinned(&start)] {
        for path in ["/start", "/admin/token", "/x/..%2fadmin/token"] {
            let asked = web.get(&url(path)).await;
            assert!(
                matches!(&asked, Err(WebError::Forbidden { why, .. }) if why == "it is denied by a rule"),
                "{path}: {asked:?}"
            );
        }
    }
    assert_eq!(site.connects.load(Ordering::SeqCst), 3, "the redirect only");
}

#[tokio::test]
async fn sec_53_a_name_gives_a_login_no_way_to_a_denied_address() {
    let routes = Router::new()
        .route("/start", any(|| async { redirect_to("/admin/token") }))
        .route("/open", any(|| async { "{}" }))
        .route("/admin/token", any(|| async { "{}" }));
    let site = Site::new(routes).await;
    let rules = UrlRules {
        denied: vec![UrlList {
            patterns: vec![UrlPattern::parse("*://localhost:*/admin/*").unwrap()],
            reason: "denied by a rule".to_owned(),
        }],
        allowed: Vec::new(),
    };
    let web = named(NetworkReach::Loopback, &Names::to(&["127.0.0.1"])).within(&Arc::new(rules));
    let start = site.url("inside.test", "/start");
    for web in [web.clone(), web.trusting(), web.pinned(&start)] {
        web.get(&site.url("inside.test", "/open")).await.unwrap();
        for path in ["/start", "/admin/token"] {
            let why = forbidden(web.get(&site.url("inside.test", path)).await, path);
            assert_eq!(
                why, "it leads to 127.0.0.1, which is denied by a rule",
                "{path}"
            );
        }
    }
}

fn redirect_to(path: &str) -> impl IntoResponse {
    (http::StatusCode::FOUND, [("location", path.to_owned())])
}

/// A server that counts who connects.
struct Site {
    port: u16,
    connects: Arc<AtomicUsize>,
}

impl Site {
    async fn new(routes: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connects = Arc::new(AtomicUsize::new(0));
        let counted = Counted(listener, Arc::clone(&connects));
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(counted, routes).await });
        Self { port, connects }
    }

    fn url(&self, host: &str, path: &str) -> Url {
        Url::parse(&format!("http://{host}:{}{path}", self.port)).unwrap()
    }

    fn connects(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }
}

struct Counted(TcpListener, Arc<AtomicUsize>);

impl axum::serve::Listener for Counted {
    type Io = tokio::net::TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let accepted = axum::serve::Listener::accept(&mut self.0).await;
        self.1.fetch_add(1, Ordering::SeqCst);
        accepted
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

fn answering(body: &'static str) -> Router {
    Router::new().route("/", any(move || async move { body }))
}

fn redirecting(to: String) -> Router {
    let answer = move || async move { (http::StatusCode::FOUND, [("location", to)]) };
    Router::new().route("/", any(answer))
}

fn web(reach: NetworkReach) -> WebClient {
    WebClient::new(HttpClient::default(), reach)
}

fn named(reach: NetworkReach, names: &Arc<Names>) -> WebClient {
    let names: Arc<dyn NameLookup> = Arc::<Names>::clone(names);
    WebClient::resolving(HttpClient::default(), reach, names)
}

fn forbidden(result: Result<WebReply, WebError>, what: &str) -> String {
    match result {
        Err(WebError::Forbidden { why, .. }) => why,
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn sec_17_addresses_are_what_they_lead_to() {
    for (text, class) in [
        ("8.8.8.8", AddressClass::Public),
        ("2606:4700::1111", AddressClass::Public),
        ("127.0.0.1", AddressClass::Loopback),
        ("127.8.9.10", AddressClass::Loopback),
        ("::1", AddressClass::Loopback),
        ("::ffff:127.0.0.1", AddressClass::Loopback),
        ("::127.0.0.1", AddressClass::Loopback),
        ("64:ff9b::7f00:1", AddressClass::Loopback),
        ("2002:7f00:1::", AddressClass::Loopback),
        ("2001:0:1::80ff:fffe", AddressClass::Loopback),
        ("10.1.2.3", AddressClass::Private),
        ("172.16.0.1", AddressClass::Private),
        ("172.32.0.1", AddressClass::Public),
        ("192.168.1.1", AddressClass::Private),
        ("100.64.0.1", AddressClass::Private),
        ("fd12::1", AddressClass::Private),
        ("::ffff:10.0.0.1", AddressClass::Private),
        ("64:ff9b::a00:1", AddressClass::Private),
        ("2002:a00:1::1", AddressClass::Private),
        ("169.254.169.254", AddressClass::Never),
        ("::ffff:169.254.169.254", AddressClass::Never),
        ("64:ff9b::a9fe:a9fe", AddressClass::Never),
        ("64:ff9b:1::a9fe:a9fe", AddressClass::Never),
        ("64:ff9b:1:a9fe:a9:fe00::", AddressClass::Never),
        ("2002:a9fe:a9fe::1", AddressClass::Never),
        ("2001:0:1::5601:5601", AddressClass::Never),
        ("fe80::1", AddressClass::Never),
        ("fd00:ec2::254", AddressClass::Never),
        ("100.100.100.200", AddressClass::Never),
        ("::ffff:100.100.100.200", AddressClass::Never),
        ("0.0.0.0", AddressClass::Never),
        ("::", AddressClass::Never),
        ("::ffff:0:0", AddressClass::Never),
        ("224.0.0.1", AddressClass::Never),
        ("255.255.255.255", AddressClass::Never),
        ("ff02::1", AddressClass::Never),
    ] {
        assert_eq!(classify(text.parse().unwrap()), class, "{text}");
    }
}

#[tokio::test]
async fn sec_17_no_spelling_of_this_machine_is_reached_for_a_public_server() {
    let site = Site::new(answering("{}")).await;
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::]",
        "localhost",
        "localhost.",
        "LOCALHOST",
    ] {
        let url = site.url(host, "/");
        for reach in [NetworkReach::Public, NetworkReach::Private] {
            forbidden(web(reach).get(&url).await, host);
            let posted = web(reach).post_form(&url, &[], HeaderMap::new()).await;
            forbidden(posted, host);
            let mut secure = url.clone();
            secure.set_scheme("https").unwrap();
            forbidden(web(reach).get(&secure).await, host);
        }
    }
    assert_eq!(site.connects(), 0);
}

#[tokio::test]
async fn sec_17_a_name_that_leads_in_is_not_connected_to() {
    let site = Site::new(answering("{}")).await;
    let url = site.url("idp.example.com", "/");
    let loopback = Names::to(&["127.0.0.1"]);
    let why = forbidden(
        named(NetworkReach::Public, &loopback).get(&url).await,
        "public",
    );
    assert_eq!(why, "the address is on this machine");
    forbidden(
        named(NetworkReach::Private, &loopback).get(&url).await,
        "private",
    );
    let link = Names::to(&["169.254.169.254", "fe80::1"]);
    let why = forbidden(
        named(NetworkReach::Loopback, &link).get(&url).await,
        "link-local",
    );
    assert_eq!(why, "this address is never asked");
    assert_eq!(site.connects(), 0);
    let reply = named(NetworkReach::Loopback, &loopback)
        .get(&url)
        .await
        .unwrap();
    assert_eq!(reply.object().unwrap().len(), 0);
    assert_eq!(site.connects(), 1);
}

#[tokio::test]
async fn sec_17_a_name_that_moves_after_its_first_lookup_is_not_connected_to() {
    let site = Site::new(answering("{}")).await;
    let url = site.url("idp.example.com", "/");
    // What a check before the connection would have seen, then what the connection sees.
    let names = Names::turning(&[&["93.184.216.34"], &["127.0.0.1"]]);
    assert_eq!(NetworkReach::by(&url, &*names).await, NetworkReach::Public);
    forbidden(
        named(NetworkReach::Public, &names).get(&url).await,
        "rebound",
    );
    assert_eq!(site.connects(), 0);
}

#[tokio::test]
async fn sec_17_a_server_that_seems_to_be_inside_for_a_moment_gets_no_further_in() {
    let site = Site::new(answering("{}")).await;
    let url = site.url("mcp.example.com", "/");
    let inside = Names::turning(&[&["127.0.0.1"], &["93.184.216.34"]]);
    let reach = NetworkReach::by(&url, &*inside).await;
    assert_eq!(reach, NetworkReach::Loopback);
    let web = named(reach, &inside).pinned(&url);
    let mut secure = url.clone();
    secure.set_scheme("https").unwrap();
    for url in [&url, &secure] {
        let why = forbidden(web.get(url).await, "moved out");
        assert_eq!(why, "the server's name leads elsewhere than a moment ago");
    }
    // One that stays where it was is asked.
    let staying = named(reach, &Names::to(&["127.0.0.1"])).pinned(&url);
    assert_eq!(staying.get(&url).await.unwrap().status, 200);
}

#[tokio::test]
async fn sec_17_each_hop_of_a_redirect_is_checked() {
    let inner = Site::new(answering("{}")).await;
    let names = Names::to(&["127.0.0.1"]);
    for target in [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[::ffff:169.254.169.254]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
        "http://user:word@127.0.0.1/".to_owned(),
        "http://8.8.8.8/".to_owned(),
    ] {
        let outer = Site::new(redirecting(target.clone())).await;
        let web = named(NetworkReach::Loopback, &names);
        forbidden(web.get(&outer.url("127.0.0.1", "/")).await, &target);
        assert_eq!(outer.connects(), 1);
    }
    // A server in this network may not send us to this machine.
    let forward = redirecting(inner.url("127.0.0.1", "/").to_string());
    let outer = Site::new(forward).await;
    let reply = web(NetworkReach::Loopback)
        .get(&outer.url("127.0.0.1", "/"))
        .await;
    assert_eq!(reply.unwrap().url, inner.url("127.0.0.1", "/"));
    assert_eq!(inner.connects(), 1);
}

#[tokio::test]
async fn sec_20_redirects_end_after_three_and_posts_follow_none() {
    let hop = |step: usize| {
        let answer = move || async move {
            match step {
                0 => "{}".into_response(),
                _ => redirect(&format!("/{}", step - 1)).into_response(),
            }
        };
        (format!("/{step}"), any(answer))
    };
    let mut routes = Router::new();
    for step in 0..=4 {
        let (path, route) = hop(step);
        routes = routes.route(&path, route);
    }
    let site = Site::new(routes).await;
    let web = web(NetworkReach::Loopback);
    assert!(web.get(&site.url("127.0.0.1", "/3")).await.is_ok());
    let far = web.get(&site.url("127.0.0.1", "/4")).await;
    assert!(matches!(far, Err(WebError::Redirected { .. })), "{far:?}");
    let before = site.connects();
    let url = site.url("127.0.0.1", "/1");
    let posted = web
        .post_form(&url, &[("code", MARK)], HeaderMap::new())
        .await;
    assert!(
        matches!(posted, Err(WebError::Redirected { .. })),
        "{posted:?}"
    );
    let posted = web.post_json(&url, &json!({}), HeaderMap::new()).await;
    assert!(
        matches!(posted, Err(WebError::Redirected { .. })),
        "{posted:?}"
    );
    assert_eq!(site.connects(), before + 2);
    // Nor to another origin, with whatever status: what is posted belongs to one address.
    let other = Site::new(answering("{}")).await;
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", MARK.parse().unwrap());
    for status in [301, 302, 303, 307, 308] {
        let location = other.url("localhost", "/").to_string();
        let answer = move || async move {
            let status = http::StatusCode::from_u16(status).unwrap();
            (status, [("location", location)])
        };
        let site = Site::new(Router::new().route("/", any(answer))).await;
        let url = site.url("127.0.0.1", "/");
        let posted = web.post_form(&url, &[("code", MARK)], headers.clone());
        let posted = posted.await;
        assert!(
            matches!(posted, Err(WebError::Redirected { .. })),
            "{status}: {posted:?}"
        );
    }
    assert_eq!(other.connects(), 0);
}

fn redirect(to: &str) -> impl IntoResponse {
    (
        http::StatusCode::TEMPORARY_REDIRECT,
        [("location", to.to_owned())],
    )
}

#[tokio::test]
async fn sec_17_a_body_over_the_cap_is_dropped_with_and_without_its_length() {
    let large = || async { vec![b' '; MAX_BODY + 1] };
    let endless = || async {
        let chunk = Bytes::from(vec![b' '; 64 * 1024]);
        Body::from_stream(stream::repeat_with(move || {
            Ok::<_, io::Error>(chunk.clone())
        }))
    };
    let full = || async {
        let mut text = vec![b' '; MAX_BODY - 2];
        text.extend_from_slice(b"{}");
        text
    };
    let routes = Router::new()
        .route("/large", any(large))
        .route("/endless", any(endless))
        .route("/full", any(full));
    let site = Site::new(routes).await;
    for path in ["/large", "/endless"] {
        let got = web(NetworkReach::Loopback)
            .get(&site.url("127.0.0.1", path))
            .await;
        assert!(
            matches!(got, Err(WebError::TooLarge { .. })),
            "{path}: {got:?}"
        );
    }
    let full = web(NetworkReach::Loopback)
        .get(&site.url("127.0.0.1", "/full"))
        .await;
    assert!(full.unwrap().object().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn sec_17_a_slow_body_ends_after_ten_seconds() {
    let slow = || async {
        Body::from_stream(stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((Ok::<_, io::Error>(Bytes::from_static(b" ")), ()))
        }))
    };
    let site = Site::new(Router::new().route("/", any(slow))).await;
    let got = web(NetworkReach::Loopback)
        .get(&site.url("127.0.0.1", "/"))
        .await;
    assert!(matches!(got, Err(WebError::TimedOut { .. })), "{got:?}");
}

#[tokio::test]
async fn what_was_sent_is_told_from_what_was_not() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Url::parse(&format!("http://{}/", gone.local_addr().unwrap())).unwrap();
    drop(gone);
    let form = [("refresh_token", MARK)];
    let web = web(NetworkReach::Loopback);
    let failed = web.post_form(&nobody, &form, HeaderMap::new()).await;
    assert!(
        matches!(failed, Err(WebError::Unreachable { .. })),
        "{failed:?}"
    );
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"acc"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let serve = async {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut seen = vec![0; 4096];
            let _ = peer.read(&mut seen).await.unwrap();
            peer.write_all(answer.as_bytes()).await.unwrap();
            peer.shutdown().await.unwrap();
        };
        let ((), lost) = tokio::join!(serve, web.post_form(&url, &form, HeaderMap::new()));
        assert!(matches!(lost, Err(WebError::Lost { .. })), "{lost:?}");
        assert!(!format!("{lost:?}").contains(MARK));
    }
}

#[tokio::test]
async fn a_server_reaches_no_further_in_than_it_is() {
    let of = async |url: &str, names: &[&str]| {
        let names = Names::to(names);
        NetworkReach::by(&Url::parse(url).unwrap(), &*names).await
    };
    assert_eq!(
        of("http://127.0.0.1:1/mcp", &[]).await,
        NetworkReach::Loopback
    );
    assert_eq!(of("http://[::1]/mcp", &[]).await, NetworkReach::Loopback);
    assert_eq!(of("http://10.0.0.1/mcp", &[]).await, NetworkReach::Private);
    assert_eq!(of("https://1.1.1.1/mcp", &[]).await, NetworkReach::Public);
    assert_eq!(
        of("https://169.254.1.1/mcp", &[]).await,
        NetworkReach::Public
    );
    let name = "https://mcp.example.com/";
    assert_eq!(
        of(name, &["127.0.0.1", "::1"]).await,
        NetworkReach::Loopback
    );
    assert_eq!(of(name, &["10.0.0.1"]).await, NetworkReach::Private);
    assert_eq!(
        of(name, &["10.0.0.1", "127.0.0.1"]).await,
        NetworkReach::Private
    );
    assert_eq!(
        of(name, &["10.0.0.1", "1.1.1.1"]).await,
        NetworkReach::Public
    );
    assert_eq!(of(name, &[]).await, NetworkReach::Public);
    assert_eq!(
        NetworkReach::of(&Url::parse("http://localhost:1/").unwrap()).await,
        NetworkReach::Loopback
    );
}

#[test]
fn an_address_is_refused_by_what_it_shows() {
    let long = format!("https://example.com/{}", "a".repeat(MAX_URL));
    for (text, why) in [
        ("javascript:alert(1)", "`javascript:` is not `https:`"),
        ("data:text/html,x", "`data:` is not `https:`"),
        ("http://8.8.8.8/", "only `https` leaves this network"),
        (
            "https://user:word@example.com/",
            "the address holds a login",
        ),
        (long.as_str(), "the address is too long"),
    ] {
        let url = Url::parse(text).unwrap();
        match web(NetworkReach::Loopback).check(&url) {
            Err(WebError::Forbidden { why: said, url }) => {
                assert_eq!(said, why);
                assert!(!url.contains("word"), "{url}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_proxy_is_used_as_configured_and_guards_nothing_open() {
    let proxy = Site::new(answering("{}")).await;
    let mut options = toolway_transport::client::HttpClientOptions::default();
    options.http_proxy = Some(format!("http://127.0.0.1:{}", proxy.port));
    options.https_proxy = options.http_proxy.clone();
    let web = WebClient::new(HttpClient::new(options), NetworkReach::Private);
    let url = |text: &str| Url::parse(text).unwrap();
    // Where a name leads is the proxy's to know, so a plain request for one is not made.
    forbidden(web.get(&url("http://intranet.example/")).await, "name");
    forbidden(web.get(&url("https://169.254.169.254/")).await, "metadata");
    assert_eq!(proxy.connects(), 0);
    let reply = web.get(&url("http://10.0.0.7/")).await;
    assert_eq!(reply.unwrap().status, 200);
    let tunnelled = web.get(&url("https://idp.example.com/")).await;
    assert!(tunnelled.is_err());
    assert_eq!(proxy.connects(), 2);
}

fn reply(kind: &str, body: &str) -> WebReply {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
    WebReply {
        status: 200,
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
        url: Url::parse("https://idp.example.com/token?secret=canary7Kq2Zt9wXo").unwrap(),
    }
}

#[test]
fn rel_27_an_answer_that_is_no_object_is_named() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(70), "]".repeat(70));
    for (kind, body, why) in [
        (
            "text/html",
            "<!doctype html><title>Hotel",
            "it is a web page",
        ),
        ("application/json", "<html>", "it is a web page"),
        ("text/html", "please log in", "it is a web page"),
        ("application/json", "", "it is empty"),
        ("application/json", "[]", "it is another kind of JSON"),
        (
            "application/json",
            marked!("{\"token\":\"", "\""),
            "it is not JSON (line 1, column 27)",
        ),
        (
            "application/json",
            marked!("{\"issuer\":\"", "\",\"\\u0069ssuer\":\"b\"}"),
            "\"issuer\" stands in it twice",
        ),
        ("application/json", &deep, "it nests too deeply"),
    ] {
        let error = reply(kind, body).object().unwrap_err().to_string();
        assert!(error.contains(why), "{body}: {error}");
        assert!(error.starts_with("the answer of https://idp.example.com/token (HTTP 200)"));
        assert!(!error.contains(MARK), "{error}");
    }
    assert_eq!(
        reply("text/html", "\u{feff}{\"a\":1}").object().unwrap()["a"],
        1
    );
    assert!(!format!("{:?}", reply("a/b", MARK)).contains(MARK));
}

#[test]
fn rel_27_the_wait_a_server_asks_for_is_read_in_both_forms() {
    let mut answer = reply("text/plain", "");
    assert_eq!(answer.retry_after(), None);
    answer.headers.insert("retry-after", "120".parse().unwrap());
    assert_eq!(answer.retry_after(), Some(Duration::from_mins(2)));
    answer
        .headers
        .insert("date", "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
    answer.headers.insert(
        "retry-after",
        "Sun, 06 Nov 1994 08:50:07 GMT".parse().unwrap(),
    );
    assert_eq!(answer.retry_after(), Some(Duration::from_secs(30)));
    assert!(answer.date().is_some());
    answer
        .headers
        .insert("retry-after", "soon".parse().unwrap());
    assert_eq!(answer.retry_after(), None);
}
