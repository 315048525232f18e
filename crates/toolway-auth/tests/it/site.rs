//! A web server on loopback that answers as a test says and remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use url::Url;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Clone)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<Asked>>,
}

/// The server. What it has no answer for is not found.
#[derive(Clone)]
pub(crate) struct Site {
    port: u16,
    script: Arc<Script>,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Script::default());
        let routes = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { port, script }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("{}{path}", self.origin())).unwrap()
    }

    /// Answers a path with a JSON document.
    pub(crate) fn put(&self, path: &str, document: &Value) {
        self.answer(
            path,
            200,
            &[("content-type", "application/json")],
            &document.to_string(),
        );
    }

    /// Answers a path.
    pub(crate) fn answer(&self, path: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        let answer = Answer {
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: body.to_owned(),
        };
        let mut answers = self.script.answers.lock().unwrap();
        answers.insert(path.to_owned(), answer);
    }

    /// What it was asked, as `GET /path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = head.uri.path().to_owned();
    script.asked.lock().unwrap().push(Asked {
        line: format!("{} {path}", head.method),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let known = script.answers.lock().unwrap().get(&path).cloned();
    let Some(known) = known else {
        let missing = Response::builder().status(404);
        return missing.body(Body::from("nothing here")).unwrap();
    };
    let mut answer = Response::builder().status(known.status);
    for (name, value) in known.headers {
        answer = answer.header(name, value);
    }
    answer.body(Body::from(known.body)).unwrap()
}
