//! One suite for every transport: what a session may rely on wherever its bytes go.

mod behaviour;
mod places;

use std::sync::Arc;

use serde_json::json;
use toolway_transport::{
    ChannelCommand, ChannelEvent, ChannelLimits, CloseReason, RequestTag, SendFailure, in_process,
};
use toolway_types::{RemoteKind, TransportSpec};
use toolway_wire::Id;

use crate::peer::{Peer, at, bytes, within_patience};
use crate::server::{Server, reply};
use places::{CAP, Subject};

async fn a_request_is_answered(Subject { mut peer, .. }: Subject) {
    let text = "grüße\n\u{1F600}";
    peer.request(1, "echo", json!({ "text": text })).await;
    let expected = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": text}});
    assert_eq!(peer.message().await, expected);
}

async fn a_large_message_passes_both_ways(Subject { mut peer, .. }: Subject) {
    let text = "x".repeat(CAP - 1000);
    peer.request(1, "echo", json!({"text": text})).await;
    let answer = peer.message().await;
    assert_eq!(
        answer["result"]["text"].as_str().map(str::len),
        Some(text.len())
    );
}

async fn many_requests_get_one_answer_each(Subject { mut peer, .. }: Subject) {
    // More than the queues hold, so that both sides must keep moving.
    let sender = peer.commands.clone().expect("not ended");
    let sending = tokio::spawn(async move {
        for id in 0..300 {
            let outgoing = crate::peer::request(id, "echo", json!(id));
            let command = ChannelCommand::Send(outgoing);
            sender.send(command).await.expect("the driver runs");
        }
    });
    let mut answered = Vec::new();
    for _ in 0..300 {
        let answer = peer.message().await;
        assert_eq!(answer["id"], answer["result"]);
        answered.push(answer["id"].as_u64().expect("a number"));
    }
    sending.await.expect("no panic");
    answered.sort_unstable();
    assert_eq!(answered, (0..300).collect::<Vec<u64>>());
}

async fn notifications_arrive_in_order_and_before_what_follows(Subject { mut peer, .. }: Subject) {
    for number in 0..50 {
        peer.notify("note", json!(number)).await;
    }
    peer.request(1, "notes", json!({})).await;
    let expected = json!((0..50).collect::<Vec<u32>>());
    assert_eq!(peer.message().await["result"], expected);
}

async fn progress_arrives_in_order_before_its_answer(Subject { mut peer, .. }: Subject) {
    // More than the queues hold.
    peer.request(1, "progress", json!(200)).await;
    for number in 0..200 {
        assert_eq!(peer.message().await["params"], number);
    }
    assert_eq!(peer.message().await["id"], 1);
}

async fn the_server_may_ask_while_it_is_asked(subject: Subject) {
    let Subject {
        mut peer,
        listening,
        ..
    } = subject;
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    peer.notify("notifications/initialized", json!({})).await;
    if let Some(listening) = &listening {
        within_patience(listening.notified()).await;
    }
    peer.request(2, "ask", json!({})).await;
    let question = peer.message().await;
    assert_eq!(
        (&question["id"], &question["method"]),
        (&json!("s-1"), &json!("ping"))
    );
    peer.answer(&question["id"]).await;
    let answer = peer.message().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["answered"]),
        (&json!(2), &json!("s-1"))
    );
}

async fn nobody_minds_a_request_that_is_given_up(Subject { mut peer, .. }: Subject) {
    peer.request(1, "never", json!({})).await;
    peer.request(2, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 2);
    peer.command(ChannelCommand::Abandon(RequestTag(1))).await;
    peer.command(ChannelCommand::Abandon(RequestTag(1))).await;
    peer.command(ChannelCommand::Abandon(RequestTag(99))).await;
    peer.request(3, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 3, "and no failure before it");
    let last = peer.end().await;
    assert!(
        matches!(&last[..], [ChannelEvent::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
}

async fn rel_11_an_oversized_answer_fails_its_call_and_nothing_else(
    Subject { mut peer, .. }: Subject,
) {
    peer.request(1, "large", json!(CAP + 1)).await;
    match peer.event().await {
        ChannelEvent::Oversized { id_hint, limit } => {
            assert_eq!((id_hint, limit), (Some(Id::Number(1)), CAP));
        }
        ChannelEvent::Failed { tag, failure } => {
            assert_eq!(
                (tag, failure),
                (RequestTag(1), SendFailure::TooLarge { limit: CAP })
            );
        }
        other => panic!("{other:?}"),
    }
    peer.request(2, "echo", json!({})).await;
    assert_eq!(peer.message().await["id"], 2);
}

async fn the_end_that_was_asked_for_is_reported_once_and_leaves_nothing(
    Subject {
        mut peer, census, ..
    }: Subject,
) {
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    peer.request(2, "never", json!({})).await;
    let last = peer.end().await;
    assert!(
        matches!(&last[..], [ChannelEvent::Closed(CloseReason::Asked)]),
        "{last:?}"
    );
    census.until_empty().await;
}

async fn a_server_that_goes_away_is_reported(subject: Subject) {
    let Subject {
        mut peer,
        is_per_request,
        ..
    } = subject;
    peer.request(7, "quit", json!({})).await;
    loop {
        match peer.event().await {
            ChannelEvent::Closed(CloseReason::Exited { status, .. }) => {
                assert_eq!(status, "exit status: 3");
            }
            ChannelEvent::Closed(
                CloseReason::EndOfStream { .. }
                | CloseReason::Failed(SendFailure::Unreachable { refused: false, .. }),
            ) => {}
            ChannelEvent::Failed { tag, failure } => {
                assert_eq!(tag, RequestTag(7));
                assert!(matches!(failure, SendFailure::Cut(_)), "{failure:?}");
                if is_per_request {
                    // There is no connection to lose: this request failed, the next may not.
                    peer.end().await;
                    return;
                }
                continue;
            }
            other => panic!("{other:?}"),
        }
        break;
    }
    let after = within_patience(peer.events.recv()).await;
    assert!(after.is_none(), "nothing follows the end: {after:?}");
    within_patience(peer.driver).await.expect("no panic");
}

async fn a_server_that_says_it_is_done_is_believed(subject: Subject) {
    let Subject {
        mut peer,
        census,
        is_per_request,
        ..
    } = subject;
    peer.request(7, "leave", json!({})).await;
    match peer.event().await {
        ChannelEvent::Closed(CloseReason::EndOfStream { .. }) => {
            let after = within_patience(peer.events.recv()).await;
            assert!(after.is_none(), "nothing follows the end: {after:?}");
            within_patience(peer.driver).await.expect("no panic");
        }
        ChannelEvent::Failed {
            tag: RequestTag(7),
            failure: SendFailure::Cut(_),
        } if is_per_request => {
            peer.end().await;
        }
        other => panic!("{other:?}"),
    }
    census.until_empty().await;
}

async fn dropping_the_driver_ends_the_channel(
    Subject {
        mut peer, census, ..
    }: Subject,
) {
    peer.request(1, "echo", json!({})).await;
    peer.message().await;
    peer.driver.abort();
    let ended = within_patience(&mut peer.driver).await;
    assert!(ended.expect_err("aborted").is_cancelled());
    assert!(within_patience(peer.events.recv()).await.is_none());
    let commands = peer.commands.as_ref().expect("not ended");
    assert!(commands.is_closed());
    census.until_empty().await;
}

/// Every case that holds everywhere, and those named for one place.
macro_rules! contract {
    ($place:ident + $($more:ident),* $(,)?) => {
        contract!(@ $place:
            a_request_is_answered,
            a_large_message_passes_both_ways,
            many_requests_get_one_answer_each,
            notifications_arrive_in_order_and_before_what_follows,
            nobody_minds_a_request_that_is_given_up,
            the_end_that_was_asked_for_is_reported_once_and_leaves_nothing,
            a_server_that_goes_away_is_reported,
            a_server_that_says_it_is_done_is_believed,
            dropping_the_driver_ends_the_channel,
            $($more),*
        );
    };
    (@ $place:ident: $($case:ident),*) => {
        mod $place {
            $(#[tokio::test] async fn $case() { super::$case(super::places::$place().await).await; })*
        }
    };
}

macro_rules! streams {
    ($($place:ident)*) => { $(contract!(
        $place +
        progress_arrives_in_order_before_its_answer,
        the_server_may_ask_while_it_is_asked,
        rel_11_an_oversized_answer_fails_its_call_and_nothing_else,
    );)* };
}

streams!(stdio http_stream modern_stream sse sse_ide ws wss ws_ide);

// Inside one program there is nothing to cap: the message is in memory before it is sent.
contract!(
    in_program + progress_arrives_in_order_before_its_answer,
    the_server_may_ask_while_it_is_asked,
);

// A JSON answer has no room for anything else; a legacy server may speak on its own stream.
contract!(
    http_json + the_server_may_ask_while_it_is_asked,
    rel_11_an_oversized_answer_fails_its_call_and_nothing_else,
);

contract!(modern_json + rel_11_an_oversized_answer_fails_its_call_and_nothing_else);

#[tokio::test]
async fn the_server_inside_the_program_sees_the_end_once() {
    let (channel, mut end) = in_process::pair();
    let mut peer = Peer::new(channel);
    let outgoing = Arc::new(end.outgoing.clone());
    peer.end().await;
    assert_eq!(within_patience(end.incoming.recv()).await, None);
    assert!(outgoing.send(bytes(&json!({}))).await.is_err());
}

#[tokio::test]
async fn an_object_of_the_program_cannot_be_opened_from_its_entry() {
    let spec = crate::peer::spec(TransportSpec::Sdk);
    let error = toolway_transport::open(&spec, &toolway_transport::OpenOptions::default()).await;
    let error = error.err().expect("refused").to_string();
    assert!(error.contains("embedding program"), "{error}");
}

#[tokio::test]
async fn a_login_wall_is_told_with_its_challenge_over_every_transport_that_can_have_one() {
    let challenge = [("www-authenticate", "Bearer realm=\"x\"")];
    let server = Server::start(move |_| reply("401 Unauthorized", &challenge, b"log in")).await;
    let socket = server.url.replace("http:", "ws:");
    for transport in [
        TransportSpec::Remote(RemoteKind::Http, at(&server.url, &[])),
        TransportSpec::Remote(RemoteKind::Connector, at(&server.url, &[])),
        TransportSpec::Remote(RemoteKind::Sse, at(&server.url, &[])),
        TransportSpec::Remote(RemoteKind::SseIde, at(&server.url, &[])),
        TransportSpec::Remote(RemoteKind::Ws, at(&socket, &[])),
        TransportSpec::Remote(RemoteKind::WsIde, at(&socket, &[])),
    ] {
        let kind = transport.kind();
        let mut peer = Peer::open(transport, ChannelLimits::default()).await;
        peer.request(1, "initialize", json!({})).await;
        let told = match peer.event().await {
            ChannelEvent::Failed {
                tag: RequestTag(1),
                failure:
                    SendFailure::Status {
                        status,
                        www_authenticate,
                        body,
                        ..
                    },
            }
            | ChannelEvent::Closed(CloseReason::Failed(SendFailure::Status {
                status,
                www_authenticate,
                body,
                ..
            })) => (status, www_authenticate, body),
            other => panic!("{kind:?}: {other:?}"),
        };
        let realm = "Bearer realm=\"x\"".to_owned();
        assert_eq!(told, (401, Some(realm), "log in".into()), "{kind:?}");
    }
}

#[tokio::test]
async fn an_editors_token_never_leaves_this_machine() {
    for url in [
        "ws://localhost:1/",
        "ws://192.0.2.1:1/",
        "ws://127.0.0.2:1/",
    ] {
        for spec in [
            TransportSpec::Remote(RemoteKind::WsIde, at(url, &[])),
            TransportSpec::Remote(RemoteKind::SseIde, at(&url.replace("ws:", "http:"), &[])),
        ] {
            let spec = crate::peer::spec(spec);
            let options = toolway_transport::OpenOptions::default();
            let opened = toolway_transport::open(&spec, &options).await;
            let error = opened.err().expect("refused").to_string();
            assert!(error.contains("must be on 127.0.0.1"), "{error}");
        }
    }
}
