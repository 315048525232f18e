//! Servers on the official SDKs through the library: progress as it comes, a person's answer, and
//! a server that dies in the middle of a call and is there again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use toolway::config::{Environment, Flags, plan};
use toolway::types::{ConnectionState, ServerName, ToolKey};
use toolway::{
    CallError, CallOptions, ClientHandler, ClientOffers, Consent, Elicitation, ElicitationAnswer,
    Host, HostOptions, Progress, ProgressSink, RpcError, ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_testkit::TempHome;

use super::home_with;
use super::listening::{Listening, Peer};

/// More than a loaded machine needs; a test that takes it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn host(home: &TempHome) -> Host {
    host_with(home, HostOptions::default())
}

pub(super) fn host_with(home: &TempHome, options: HostOptions) -> Host {
    let path = |path: &std::path::Path| path.display().to_string();
    let variables = BTreeMap::from([
        ("HOME".to_owned(), path(home.home())),
        ("TOOLWAY_HOME".to_owned(), path(&home.config_home())),
    ]);
    let environment = Environment::new(variables, home.project().to_path_buf())
        .with_system_dir(home.system().to_path_buf());
    let options = HostOptions {
        output_dir: home.home().join("results"),
        ..options
    };
    Host::start(plan(&environment, &Flags::default()), options)
}

async fn call(
    host: &Host,
    tool: &str,
    arguments: Value,
    progress: Option<ProgressSink>,
) -> Result<ToolOutcome, CallError> {
    let request = ToolRequest::new(
        ToolTarget::Key(ToolKey::new(ServerName::new("peer").unwrap(), tool)),
        match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        },
    );
    let options = CallOptions {
        progress,
        ..CallOptions::new(Consent::Typed)
    };
    host.call(request, options).await
}

async fn text_of(host: &Host, tool: &str, arguments: Value) -> Result<String, CallError> {
    let outcome = call(host, tool, arguments, None).await?;
    let result: Value = serde_json::from_str(outcome.raw.get()).unwrap();
    Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
}

/// Every step is heard of, in order, before the result.
async fn counts_aloud(host: &Host) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink: ProgressSink = {
        let heard = Arc::clone(&heard);
        Arc::new(move |news: Progress| heard.lock().unwrap().push((news.progress, news.total)))
    };
    let arguments = json!({ "steps": 3, "milliseconds": 20 });
    call(host, "count", arguments, Some(sink)).await.unwrap();
    let steps = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0)));
    assert_eq!(*heard.lock().unwrap(), steps);
}

/// Killed in the middle of a call, which fails; started again, and the same host calls it.
async fn dies_and_returns(host: &Host, server: &mut Listening) {
    assert_eq!(
        text_of(host, "process", json!({})).await.unwrap(),
        server.process()
    );
    let under_way = Arc::new(Notify::new());
    let sink: ProgressSink = {
        let under_way = Arc::clone(&under_way);
        Arc::new(move |_| under_way.notify_one())
    };
    let long = json!({ "steps": 10_000, "milliseconds": 50 });
    let (cut, ()) = tokio::join!(call(host, "count", long, Some(sink)), async {
        under_way.notified().await;
        server.kill();
    });
    cut.unwrap_err();
    server.start_again();
    assert_eq!(answer_again(host).await, server.process());
}

/// The first answer after a loss. A call that comes before the host has noticed fails; after that
/// the state changes, and calls wait for the connection.
async fn answer_again(host: &Host) -> String {
    let mut pictures = host.watch();
    loop {
        pictures.mark_unchanged();
        match text_of(host, "process", json!({})).await {
            Ok(process) => return process,
            Err(_) => pictures.changed().await.unwrap(),
        }
    }
}

async fn through_the_library(peer: Peer) {
    let mut server = peer.start();
    let home = home_with("peer", server.entry());
    let host = host(&home);
    let story = async {
        host.settled().await;
        let state = host.snapshot().server("peer").unwrap().state.clone();
        assert!(
            matches!(state, ConnectionState::Connected { .. }),
            "{peer:?}: {state:?}"
        );
        counts_aloud(&host).await;
        dies_and_returns(&host, &mut server).await;
        counts_aloud(&host).await;
    };
    tokio::time::timeout(PATIENCE, story)
        .await
        .unwrap_or_else(|_| panic!("{peer:?}: stuck"));
    host.shutdown().await;
}

#[tokio::test]
async fn python_sdk_1_over_http_dies_in_a_call_and_returns() {
    through_the_library(Peer::PythonSdk1("http")).await;
}

#[tokio::test]
async fn python_sdk_1_over_sse_dies_in_a_call_and_returns() {
    through_the_library(Peer::PythonSdk1("sse")).await;
}

#[tokio::test]
async fn python_sdk_1_over_websocket_dies_in_a_call_and_returns() {
    through_the_library(Peer::PythonSdk1("ws")).await;
}

#[tokio::test]
async fn python_sdk_2_dies_in_a_call_and_returns() {
    through_the_library(Peer::PythonSdk2).await;
}

#[tokio::test]
async fn typescript_sdk_2_dies_in_a_call_and_returns() {
    through_the_library(Peer::TypeScriptSdk2("modern")).await;
}

/// Somebody who says yes to the one form that is asked here, and notes the question.
#[derive(Default)]
struct Agreeable {
    asked: Mutex<Vec<String>>,
}

impl ClientHandler for Agreeable {
    fn offers(&self) -> ClientOffers {
        ClientOffers {
            form: true,
            ..ClientOffers::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        request: Elicitation,
    ) -> BoxFuture<'a, ElicitationAnswer> {
        let Elicitation::Form { message, .. } = request else {
            panic!("only forms are offered");
        };
        self.asked.lock().unwrap().push(message.to_string());
        let yes = Map::from_iter([("confirmed".to_owned(), json!(true))]);
        std::future::ready(ElicitationAnswer::Accept(Some(yes))).boxed()
    }

    fn sample<'a>(
        &'a self,
        _server: &'a ServerName,
        _request: Box<RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, RpcError>> {
        panic!("no model is offered");
    }
}

#[tokio::test]
async fn typescript_sdk_2_hears_a_persons_yes_in_a_second_round() {
    let server = Peer::TypeScriptSdk2("modern").start();
    let home = home_with("peer", server.entry());
    let person = Arc::new(Agreeable::default());
    let options = HostOptions {
        client_handler: Some(Arc::clone(&person) as Arc<dyn ClientHandler>),
        ..HostOptions::default()
    };
    let host = host_with(&home, options);
    let done = text_of(&host, "confirm", json!({ "what": "eat it" })).await;
    assert_eq!(done.unwrap(), "did eat it");
    assert_eq!(*person.asked.lock().unwrap(), ["Really eat it?"]);
    host.shutdown().await;
}
