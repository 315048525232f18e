//! The callback, visited over real connections by browsers and others (SEC-44).

use std::collections::HashMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use url::Url;

use super::{Callback, CallbackAddress, CallbackError};
use crate::authorize::{
    AuthorizationCode, AuthorizationOptions, AuthorizationResponseError, PendingAuthorization,
};

const ISSUER: &str = "https://as.example";

fn attempt(callback: &Callback) -> PendingAuthorization {
    let endpoint = Url::parse("https://as.example/authorize").expect("a URL");
    PendingAuthorization::new(&AuthorizationOptions {
        issuer: ISSUER,
        endpoint: &endpoint,
        challenge_methods: Some(&["S256".to_owned()]),
        promises_issuer: false,
        client_id: "c",
        redirect_uri: callback.redirect_uri(),
        resource: None,
        scopes: &[],
        extra: &[],
    })
    .expect("an attempt")
}

fn state(attempt: &PendingAuthorization) -> String {
    let pairs: HashMap<_, _> = attempt.url().query_pairs().into_owned().collect();
    pairs["state"].clone()
}

async fn callback() -> (Callback, PendingAuthorization, String) {
    let callback = Callback::bind("git <b>hub</b>", CallbackAddress::Free)
        .await
        .expect("bound");
    let attempt = attempt(&callback);
    let good = format!("?code=the-code-{MARK}&state={}", state(&attempt));
    (callback, attempt, good)
}

/// A browser's request: a raw one, so that a test can lie in it.
struct Browser {
    address: String,
    host: String,
    path: String,
}

impl Browser {
    fn at(redirect_uri: &str) -> Self {
        let url = Url::parse(redirect_uri).expect("a URL");
        let host = format!(
            "{}:{}",
            url.host_str().expect("a host"),
            url.port().expect("a port")
        );
        Self {
            address: format!("127.0.0.1:{}", url.port().expect("a port")),
            host,
            path: url.path().to_owned(),
        }
    }

    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        // A server may reset a connection whose request it did not read to the end.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    async fn get(&self, query: &str) -> String {
        let (path, host) = (&self.path, &self.host);
        self.raw(&format!(
            "GET {path}{query} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ))
        .await
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

/// Waits for the login, while the browser does something that must not end it, and then what does.
async fn login(
    callback: Callback,
    attempt: &PendingAuthorization,
    browser: impl Future<Output = String>,
) -> (Result<AuthorizationCode, CallbackError>, String) {
    tokio::join!(callback.wait(attempt), browser)
}

#[tokio::test]
async fn sec_44_the_address_is_this_machine_and_cannot_be_guessed() {
    let one = Callback::bind("s", CallbackAddress::Free)
        .await
        .expect("bound");
    let other = Callback::bind("s", CallbackAddress::Free)
        .await
        .expect("bound");
    for callback in [&one, &other] {
        let url = Url::parse(callback.redirect_uri()).expect("a URL");
        assert_eq!(url.host_str(), Some("127.0.0.1"));
        assert_eq!(url.path().len(), 23, "128 random bits: {url}");
        for listener in &callback.listeners {
            assert!(listener.local_addr().expect("bound").ip().is_loopback());
        }
    }
    assert_ne!(
        Url::parse(one.redirect_uri()).expect("a URL").path(),
        Url::parse(other.redirect_uri()).expect("a URL").path()
    );
}

#[tokio::test]
async fn sec_44_the_code_comes_through_and_the_page_says_so() {
    let (callback, attempt, good) = callback().await;
    let browser = Browser::at(callback.redirect_uri());
    let (code, page) = login(callback, &attempt, browser.get(&good)).await;
    assert_eq!(code.expect("a code").code.expose(), marked!("the-code-"));
    assert_eq!(status(&page), "200");
    assert!(page.contains("You are logged in"));
    assert!(
        page.contains("git &lt;b&gt;hub&lt;/b&gt;"),
        "the name is text"
    );
    assert!(!page.contains(marked!("the-code-")) && !page.contains(&state(&attempt)));
    let lower = page.to_lowercase();
    assert!(lower.contains("content-security-policy: default-src 'none'; style-src 'sha256-"));
    assert!(lower.contains("cache-control: no-store"));
    assert!(lower.contains("referrer-policy: no-referrer"));
    assert!(!lower.contains("<script") && !lower.contains("src="));
    // Nothing listens any more.
    assert!(TcpStream::connect(&browser.address).await.is_err());
}

#[tokio::test]
async fn sec_44_what_does_not_belong_to_the_login_is_turned_away_and_changes_nothing() {
    let (callback, attempt, good) = callback().await;
    let browser = Browser::at(callback.redirect_uri());
    let (path, host) = (browser.path.clone(), browser.host.clone());
    let port = browser
        .address
        .rsplit(':')
        .next()
        .expect("a port")
        .to_owned();
    let state = state(&attempt);
    let steps = async {
        for query in [
            String::new(),
            marked!("?code=").to_owned(),
            marked!("?code=", "&state=").to_owned(),
            marked!("?code=", "&state=wrong").to_owned(),
            format!("?code={MARK}&state={state}x"),
            format!("?code={MARK}&state={state}&state={state}"),
            format!("?code={MARK}&code={MARK}&state={state}"),
            "?error=access_denied".to_owned(),
            marked!(
                "?error=access_denied&error_description=%3Cscript%3E",
                "&state=wrong"
            )
            .to_owned(),
        ] {
            let answer = browser.get(&query).await;
            assert_eq!(status(&answer), "400", "{query}");
            assert!(!answer.contains(MARK), "nothing is repeated: {answer}");
        }
        // A name that was made to lead here, several names, and none.
        for hosts in [
            format!("Host: evil.example:{port}\r\n"),
            format!("Host: localhost:{port}\r\n"),
            "Host: 127.0.0.1\r\n".to_owned(),
            "Host: 127.0.0.1:1\r\n".to_owned(),
            format!("Host: {host}\r\nHost: evil.example\r\n"),
            String::new(),
        ] {
            let answer = browser
                .raw(&format!("GET {path}{good} HTTP/1.1\r\n{hosts}\r\n"))
                .await;
            assert_eq!(
                status(&answer).chars().next(),
                Some('4'),
                "{hosts}: {answer}"
            );
        }
        let absolute =
            format!("GET http://evil.example{path}{good} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(status(&browser.raw(&absolute).await), "421");
        for method in ["POST", "HEAD", "OPTIONS", "PUT"] {
            let request = format!(
                "{method} {path}{good} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"
            );
            assert_eq!(status(&browser.raw(&request).await), "405", "{method}");
        }
        for wrong in [
            "/",
            "/callback",
            "/favicon.ico",
            &format!("{path}/"),
            &path.to_uppercase(),
        ] {
            if *wrong != path {
                let request = format!("GET {wrong}{good} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                assert_eq!(status(&browser.raw(&request).await), "404", "{wrong}");
            }
        }
        let long = "x".repeat(64 * 1024);
        let answer = browser.get(&format!("{good}&pad={long}")).await;
        assert_ne!(status(&answer), "200");
        assert!(
            !browser
                .raw("\u{16}\u{3}\u{1} no http at all\r\n\r\n")
                .await
                .contains(" 200 ")
        );
        // The login is still waiting.
        browser.get(&good).await
    };
    let (code, page) = login(callback, &attempt, steps).await;
    assert_eq!(code.expect("a code").code.expose(), marked!("the-code-"));
    assert_eq!(status(&page), "200");
}

#[tokio::test]
async fn sec_44_a_login_is_answered_once() {
    let (callback, attempt, good) = callback().await;
    let browser = Browser::at(callback.redirect_uri());
    let mut times = 0;
    let (begun, begins) = tokio::sync::oneshot::channel::<()>();
    let (done, finished) = tokio::sync::oneshot::channel::<()>();
    let spend = async |code: AuthorizationCode| {
        times += 1;
        begun.send(()).expect("the other requests wait");
        finished.await.expect("the other request was answered");
        Ok::<_, ()>(code)
    };
    let requests = async {
        // The first request is waiting for its page while the second and third come.
        let first = browser.get(&good);
        let later = async {
            begins.await.expect("the first request is the login's");
            let mut answers = Vec::new();
            while answers.len() < 2 {
                let answer = browser.get(&good).await;
                answers.push(status(&answer).to_owned());
            }
            done.send(()).expect("the login waits");
            answers
        };
        tokio::join!(first, later)
    };
    let (result, (first, later)) = tokio::join!(callback.finish(&attempt, spend), requests);
    assert!(result.expect("answered").is_ok());
    assert_eq!(times, 1);
    assert_eq!(status(&first), "200");
    assert_eq!(later, ["410", "410"]);
}

#[tokio::test]
async fn a_refused_or_foreign_answer_ends_the_login_with_a_page_that_says_so() {
    let cases = [
        ("error=access_denied", "You declined the login"),
        (
            marked!("error=server_error&error_description="),
            "The login did not work",
        ),
        (
            marked!("code=", "&iss=https://evil.example"),
            "The login did not work",
        ),
        ("nothing=here", "The login did not work"),
    ];
    for (query, headline) in cases {
        let (callback, attempt, _) = callback().await;
        let browser = Browser::at(callback.redirect_uri());
        let query = format!("?{query}&state={}", state(&attempt));
        let (code, page) = login(callback, &attempt, browser.get(&query)).await;
        let error = code.expect_err("no code");
        assert!(matches!(error, CallbackError::Answer(_)), "{error}");
        if query.contains("evil") {
            assert!(matches!(
                error,
                CallbackError::Answer(AuthorizationResponseError::IssuerMismatch { .. })
            ));
        }
        assert!(page.contains(headline), "{query}: {page}");
        assert!(!page.contains(MARK));
    }
}

#[tokio::test]
async fn a_code_that_could_not_be_spent_is_told_to_the_browser() {
    let (callback, attempt, good) = callback().await;
    let browser = Browser::at(callback.redirect_uri());
    let spend = async |_| Err::<(), _>("the token endpoint is down");
    let (result, page) = tokio::join!(callback.finish(&attempt, spend), browser.get(&good));
    assert_eq!(result.expect("answered"), Err("the token endpoint is down"));
    assert!(page.contains("The login did not work"));
}

#[tokio::test]
async fn a_browser_that_leaves_does_not_stop_the_login() {
    let (callback, attempt, good) = callback().await;
    let browser = Browser::at(callback.redirect_uri());
    let (gone, left) = tokio::sync::oneshot::channel::<()>();
    let spend = async |code| {
        left.await.expect("the browser leaves");
        Ok::<AuthorizationCode, ()>(code)
    };
    let visit = async {
        let mut stream = TcpStream::connect(&browser.address)
            .await
            .expect("connected");
        let request = format!(
            "GET {}{good} HTTP/1.1\r\nHost: {}\r\n\r\n",
            browser.path, browser.host
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        drop(stream);
        gone.send(()).expect("the login waits");
    };
    let (result, ()) = tokio::join!(callback.finish(&attempt, spend), visit);
    assert_eq!(
        result.expect("answered").expect("spent").code.expose(),
        marked!("the-code-")
    );
}

#[tokio::test(start_paused = true)]
async fn sec_44_nobody_is_waited_for_longer_than_five_minutes() {
    let (callback, attempt, _) = callback().await;
    let begun = tokio::time::Instant::now();
    let error = callback.wait(&attempt).await.expect_err("nobody came");
    assert!(matches!(error, CallbackError::TimedOut));
    assert_eq!(begun.elapsed().as_secs(), 300);
}

#[tokio::test]
async fn a_fixed_port_has_the_address_that_people_register() {
    // A port that is free now: bind, note, let go.
    let port = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("bound");
        free.local_addr().expect("bound").port()
    };
    let callback = match Callback::bind("s", CallbackAddress::Port(port)).await {
        Ok(callback) => callback,
        // Another program took the port; that is what the message is for.
        Err(error) => return assert!(error.to_string().contains("callbackPort")),
    };
    assert_eq!(
        callback.redirect_uri(),
        format!("http://localhost:{port}/callback")
    );
    let taken = Callback::bind("s", CallbackAddress::Port(port))
        .await
        .expect_err("taken");
    assert!(matches!(taken, CallbackError::PortTaken { port: named } if named == port));
    let attempt = attempt(&callback);
    let browser = Browser::at(callback.redirect_uri());
    let query = format!("?code=c&state={}", state(&attempt));
    let (code, page) = login(callback, &attempt, browser.get(&query)).await;
    assert!(code.is_ok(), "{page}");
}

#[tokio::test]
async fn a_registered_address_is_used_again_with_another_port_if_need_be() {
    let first = Callback::bind("s", CallbackAddress::Free)
        .await
        .expect("bound");
    let known = first.redirect_uri().to_owned();
    let second = Callback::bind("s", CallbackAddress::Known(&known))
        .await
        .expect("bound");
    let path = |uri: &str| Url::parse(uri).expect("a URL").path().to_owned();
    assert_ne!(second.redirect_uri(), known, "the port is taken");
    assert_eq!(path(second.redirect_uri()), path(&known));
    for (given, host) in [
        ("http://127.0.0.1/cb", "127.0.0.1"),
        ("http://localhost/cb", "localhost"),
    ] {
        let callback = Callback::bind("s", CallbackAddress::Known(given))
            .await
            .expect("bound");
        let url = Url::parse(callback.redirect_uri()).expect("a URL");
        assert_eq!((url.host_str(), url.path()), (Some(host), "/cb"));
        let ports: Vec<u16> = callback
            .listeners
            .iter()
            .map(|listener| listener.local_addr().expect("bound").port())
            .collect();
        assert!(
            ports.iter().all(|port| Some(*port) == url.port()),
            "{ports:?}"
        );
    }
    for elsewhere in [
        "https://127.0.0.1/cb",
        "http://example.com/cb",
        "http://0.0.0.0/cb",
        "cb",
        "http://127.0.0.1/?x",
    ] {
        let error = Callback::bind("s", CallbackAddress::Known(elsewhere))
            .await
            .expect_err(elsewhere);
        assert!(matches!(error, CallbackError::NotLoopback));
    }
}
