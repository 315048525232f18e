//! The subscription of a modern server: what is asked for, whose a notification is, how it ends
//! and when it is opened again.

use toolway_types::Era;

use super::*;
use crate::session::subscription::{SubscriptionFilter, SubscriptionState};

/// A modern server that announces these changes, and the state of its subscription.
struct Scene {
    peer: Peer,
    session: Session,
    state: watch::Receiver<SubscriptionState>,
    failures: Arc<Mutex<Vec<String>>>,
    _pump: Task<()>,
    _task: Task<()>,
}

impl Scene {
    async fn new(delivery: MessageDelivery, capabilities: &Value) -> Self {
        let (correlator, pump, mut peer) = open();
        let greeting = greeting(ProtocolMode::Modern, delivery);
        let script = async {
            let probe = peer.expect("server/discover").await;
            let mut result = discover_result(&["2026-07-28"]);
            result["capabilities"] = capabilities.clone();
            peer.answer(&probe, result).await;
        };
        let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
        let session = session.expect("the handshake succeeds");
        let (report, state) = watch::channel(SubscriptionState::default());
        let failures: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&failures);
        let failed = move |error: &RequestError| {
            heard.lock().expect("one thread").push(error.to_string());
        };
        let task = tasks::spawn("subscription", session.clone().subscribe(report, failed));
        Self {
            peer,
            session,
            state,
            failures,
            _pump: pump,
            _task: task,
        }
    }

    /// The next request to listen, and how long it took to come.
    async fn asked(&mut self) -> (Received, Duration) {
        let before = tokio::time::Instant::now();
        loop {
            let received = self.peer.next().await;
            if received.method() == "subscriptions/listen" {
                return (received, before.elapsed());
            }
            assert_eq!(received.method(), "notifications/cancelled");
        }
    }

    async fn acknowledge(&self, request: &Received, notifications: Value) {
        self.tagged(
            "notifications/subscriptions/acknowledged",
            &request.body["id"],
            json!({ "notifications": notifications }),
        )
        .await;
    }

    async fn tagged(&self, method: &str, id: &Value, mut params: Value) {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        self.peer
            .say(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    async fn until(&mut self, wanted: impl Fn(&SubscriptionState) -> bool) -> SubscriptionState {
        let state = self.state.wait_for(|state| wanted(state)).await;
        state.expect("it is still told").clone()
    }
}

fn all() -> Value {
    let announced = json!({ "listChanged": true });
    json!({ "tools": announced, "resources": announced, "prompts": announced })
}

#[tokio::test(start_paused = true)]
async fn what_the_server_offers_to_announce_is_asked_for_and_nothing_else() {
    for delivery in [MessageDelivery::Stream, MessageDelivery::PerRequest] {
        let capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": false },
            "prompts": {},
        });
        let mut scene = Scene::new(delivery, &capabilities).await;
        let (request, _) = scene.asked().await;
        assert_eq!(
            request.body["params"]["notifications"],
            json!({ "toolsListChanged": true })
        );
        assert!(request.body["params"]["_meta"].is_object());
        if delivery == MessageDelivery::PerRequest {
            assert_eq!(request.header("mcp-method"), Some("subscriptions/listen"));
        }
        scene
            .acknowledge(&request, json!({ "toolsListChanged": true }))
            .await;
        let state = scene.until(|state| state.openings == 1).await;
        assert!(state.acknowledged.covers(ListKind::Tools));
        assert!(!state.acknowledged.covers(ListKind::Prompts));
        assert_eq!(state.trouble, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_nothing_to_announce_is_not_asked() {
    let (session, _pump, mut peer) = settled(ProtocolMode::Modern, MessageDelivery::Stream).await;
    assert_eq!(session.facts().era, Era::Modern);
    let (report, _standing) = watch::channel(SubscriptionState::default());
    session.subscribe(report, |_| ()).await;
    assert!(peer.commands.try_recv().is_err());

    let (session, _pump, _peer) = legacy().await;
    assert_eq!(
        session.announces(),
        SubscriptionFilter::default(),
        "it speaks unasked"
    );
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_of_less_than_was_asked_for_is_said() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    let (request, _) = scene.asked().await;
    scene
        .acknowledge(&request, json!({ "toolsListChanged": true }))
        .await;
    let state = scene.until(|state| state.openings == 1).await;
    let trouble = state.trouble.expect("something is missing");
    assert!(trouble.contains("resources and prompts"), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn only_our_own_subscription_is_listened_to() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    let (request, _) = scene.asked().await;
    let change = "notifications/tools/list_changed";
    // An acknowledgement and changes of another subscription, and an acknowledgement without an id.
    scene
        .tagged(
            "notifications/subscriptions/acknowledged",
            &json!(4711),
            json!({}),
        )
        .await;
    scene.tagged(change, &json!(4711), json!({})).await;
    scene.tagged(change, &json!("listen:1"), json!({})).await;
    scene
        .acknowledge(&request, json!({ "toolsListChanged": true }))
        .await;
    scene.until(|state| state.openings == 1).await;
    assert_eq!(scene.session.changes().borrow().of(ListKind::Tools), 0);

    // Ours, the id spelt as numbers sometimes are; and one without a tag at all.
    let id = request.body["id"].as_u64().expect("a number");
    scene.tagged(change, &json!(id), json!({})).await;
    scene
        .tagged(change, &json!(id.to_string()), json!({}))
        .await;
    scene
        .peer
        .say(json!({ "jsonrpc": "2.0", "method": change }))
        .await;
    let mut changes = scene.session.changes();
    changes
        .wait_for(|changes| changes.of(ListKind::Tools) == 3)
        .await
        .expect("the session lives");
}

#[tokio::test(start_paused = true)]
async fn each_way_of_ending_a_subscription_opens_it_again() {
    for end in ["result", "cancelled", "error", "cut"] {
        let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
        let (request, _) = scene.asked().await;
        scene.acknowledge(&request, json!({})).await;
        scene.until(|state| state.openings == 1).await;
        match end {
            "result" => {
                scene
                    .peer
                    .answer(&request, json!({ "resultType": "complete" }))
                    .await;
            }
            "cancelled" => {
                let id = &request.body["id"];
                let params = json!({ "requestId": id });
                scene
                    .peer
                    .say(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                    .await;
            }
            "error" => scene.peer.refuse(&request, -32603, Value::Null).await,
            _ => {
                let cut = SendFailure::Cut("the stream ended".to_owned());
                scene.peer.fail(&request, cut).await;
            }
        }
        let (again, after) = scene.asked().await;
        assert_ne!(again.body["id"], request.body["id"], "{end}");
        assert!(
            (1.0..=1.25).contains(&after.as_secs_f32()),
            "{end}: {after:?}"
        );
        scene
            .acknowledge(&again, json!({ "toolsListChanged": true }))
            .await;
        scene.until(|state| state.openings == 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn short_subscriptions_are_opened_ever_more_slowly_and_a_long_one_resets_that() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    let mut waits = Vec::new();
    for opening in 1..=8 {
        let (request, waited) = scene.asked().await;
        waits.push(waited.as_secs_f32());
        scene.acknowledge(&request, json!({})).await;
        scene.until(|state| state.openings == opening).await;
        if opening == 7 {
            tokio::time::sleep(Duration::from_secs(61)).await;
        }
        scene.peer.answer(&request, json!({})).await;
    }
    let expected = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 1.0];
    for (wait, least) in std::iter::zip(&waits, expected) {
        assert!((least..=least * 1.25 + 0.01).contains(wait), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_acknowledges_is_given_up_after_five_times() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    for attempt in 0..5 {
        let (request, _) = scene.asked().await;
        match attempt {
            // Silence; an end before the acknowledgement; a refusal that may pass.
            0 => {}
            1 => scene.peer.answer(&request, json!({})).await,
            _ => scene.peer.refuse(&request, -32000, Value::Null).await,
        }
    }
    let trouble = scene.until(|now| now.trouble.is_some()).await.trouble;
    let trouble = trouble.unwrap_or_default();
    assert!(trouble.contains("`subscriptions/listen`"), "{trouble}");
    assert!(trouble.contains("-32000"), "{trouble}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    while let Ok(command) = scene.peer.commands.try_recv() {
        let ChannelCommand::Send(OutgoingMessage { bytes, .. }) = command else {
            continue;
        };
        let body: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_ne!(body["method"], "subscriptions/listen", "it is left alone");
    }
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_renews_the_budget() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    for attempt in 1..=12 {
        let (request, _) = scene.asked().await;
        if attempt % 4 == 0 {
            scene.acknowledge(&request, json!({})).await;
            scene.until(|state| state.openings == attempt / 4).await;
        }
        scene.peer.refuse(&request, -32000, Value::Null).await;
    }
    let (_, _) = scene.asked().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_method_is_not_asked_twice() {
    let mut scene = Scene::new(MessageDelivery::PerRequest, &all()).await;
    let (request, _) = scene.asked().await;
    let body = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no such method"}}"#;
    let failure = SendFailure::Status {
        status: 404,
        www_authenticate: None,
        body: Bytes::from_static(body.as_bytes()),
        had_session: false,
        retry_after: None,
    };
    scene.peer.fail(&request, failure).await;
    let state = scene.until(|state| state.trouble.is_some()).await;
    assert!(state.trouble.unwrap_or_default().contains("no such method"));
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(scene.peer.commands.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_open_subscription_does_not_hold_up_the_end() {
    let mut scene = Scene::new(MessageDelivery::Stream, &all()).await;
    let (request, _) = scene.asked().await;
    scene.acknowledge(&request, json!({})).await;
    scene.until(|state| state.openings == 1).await;
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    assert_eq!(scene.state.borrow().openings, 1, "there is no time limit");

    let ended = tokio::time::Instant::now();
    scene.session.inner.correlator.close();
    scene.session.closed().await;
    let Scene { _task: task, .. } = scene;
    task.join().await.expect("it ends with the channel");
    assert_eq!(ended.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_told_of_and_tried_until_it_can_be() {
    let mut scene = Scene::new(MessageDelivery::PerRequest, &all()).await;
    for _ in 0..20 {
        let (request, waited) = scene.asked().await;
        assert!(waited <= Duration::from_secs(38), "{waited:?}");
        let failure = SendFailure::Unreachable {
            refused: false,
            message: "nobody home".to_owned(),
        };
        scene.peer.fail(&request, failure).await;
    }
    let (request, _) = scene.asked().await;
    assert_eq!(scene.failures.lock().expect("one thread").len(), 20);
    scene.acknowledge(&request, json!({})).await;
    scene.until(|state| state.openings == 1).await;
}
