//! Eras that are remembered, and channels that went silent or ended before this one.

use toolway_types::Era;

use super::probe::status;
use super::*;

/// Greets a server that is remembered, while `script` plays it.
async fn remembered<F>(
    era: Era,
    delivery: MessageDelivery,
    script: impl FnOnce(Peer) -> F,
) -> Result<Session, ConnectError>
where
    F: Future<Output = Peer>,
{
    let (correlator, _pump, peer) = open();
    let greeting = Greeting {
        remembered: Some(era),
        ..greeting(ProtocolMode::Auto, delivery)
    };
    let (outcome, _peer) = tokio::join!(greet(&correlator, &greeting), script(peer));
    outcome
}

const BOTH: [MessageDelivery; 2] = [MessageDelivery::Stream, MessageDelivery::PerRequest];

#[tokio::test(start_paused = true)]
async fn a_remembered_legacy_server_gets_initialize_at_once() {
    for delivery in BOTH {
        let session = remembered(Era::Legacy, delivery, async |mut peer: Peer| {
            peer.greet_legacy("2025-11-25").await;
            peer
        })
        .await
        .expect("it connects");
        assert_eq!(session.facts().era, Era::Legacy);
    }
}

#[tokio::test(start_paused = true)]
async fn a_remembered_modern_server_is_not_sent_initialize_while_it_starts() {
    let session = remembered(
        Era::Modern,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert!(peer.commands.try_recv().is_err(), "nothing but the probe");
            peer.answer(&probe, discover_result(&["2026-07-28"])).await;
            peer
        },
    )
    .await
    .expect("it connects");
    assert_eq!(session.facts().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_remembered_era_that_is_refused_is_probed_over_the_same_channel() {
    for delivery in BOTH {
        let session = remembered(Era::Legacy, delivery, async |mut peer: Peer| {
            let request = peer.expect("initialize").await;
            peer.refuse(&request, -32601, Value::Null).await;
            let probe = peer.expect("server/discover").await;
            peer.answer(&probe, discover_result(&["2026-07-28"])).await;
            peer
        })
        .await
        .expect("it connects");
        assert_eq!(session.facts().era, Era::Modern);

        let session = remembered(Era::Modern, delivery, async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, -32601, Value::Null).await;
            peer.greet_legacy("2025-11-25").await;
            peer
        })
        .await
        .expect("it connects");
        assert_eq!(session.facts().era, Era::Legacy);
    }
}

#[tokio::test(start_paused = true)]
async fn a_remembered_legacy_server_that_refuses_both_is_explained_by_its_first_answer() {
    let error = remembered(
        Era::Legacy,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let request = peer.expect("initialize").await;
            peer.refuse(&request, -32603, Value::Null).await;
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, -32601, Value::Null).await;
            peer
        },
    )
    .await
    .err()
    .expect("it refuses");
    assert!(error.to_string().contains("-32603"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_login_wall_an_overload_or_a_broken_line_does_not_doubt_a_remembered_era() {
    for failure in [
        status(401, ""),
        status(403, ""),
        status(500, ""),
        SendFailure::TimedOut { after: LIMIT },
        SendFailure::Cut("reset".to_owned()),
    ] {
        let outcome = remembered(
            Era::Legacy,
            MessageDelivery::PerRequest,
            async |mut peer: Peer| {
                let request = peer.expect("initialize").await;
                peer.fail(&request, failure.clone()).await;
                peer
            },
        )
        .await;
        let error = outcome.err().expect("it is not connected");
        assert!(!is_era_evidence(&error), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_to_both_questions_ends_early_so_that_a_fresh_process_has_a_chance() {
    let started = tokio::time::Instant::now();
    let (correlator, _pump, mut peer) = open();
    let first = greeting(ProtocolMode::Auto, MessageDelivery::Stream);
    let error = greet(&correlator, &first).await.err().expect("silence");
    assert_eq!(started.elapsed(), Duration::from_secs(10));
    peer.expect("server/discover").await;
    peer.expect("initialize").await;
    let second = first.after(&error).expect("a fresh channel");
    assert!(second.again && second.remembered == Some(Era::Legacy));

    // The fresh one hears `initialize` alone, and may use up the time.
    let (correlator, _pump, mut peer) = open();
    let script = async {
        let request = peer.expect("initialize").await;
        tokio::time::sleep(Duration::from_secs(19)).await;
        peer.answer(&request, initialize_result("2025-11-25")).await;
        peer.expect("notifications/initialized").await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &second), script);
    assert_eq!(session.expect("it connects").facts().era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_found_by_the_fresh_process_too() {
    let second = Greeting {
        remembered: Some(Era::Legacy),
        again: true,
        ..greeting(ProtocolMode::Auto, MessageDelivery::Stream)
    };
    let (correlator, _pump, mut peer) = open();
    let script = async {
        let request = peer.expect("initialize").await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        peer.refuse(&request, -32601, Value::Null).await;
        let probe = peer.expect("server/discover").await;
        peer.answer(&probe, discover_result(&["2026-07-28"])).await;
    };
    let (session, ()) = tokio::join!(greet(&correlator, &second), script);
    assert_eq!(session.expect("it connects").facts().era, Era::Modern);
}

#[test]
fn a_fresh_channel_is_tried_once_and_only_after_an_end_or_silence() {
    let exited = || {
        let reason = CloseReason::Exited {
            status: "exit status: 1".to_owned(),
            stderr: Vec::new(),
        };
        ConnectError::request("server/discover", RequestError::Closed(reason))
    };
    let auto = greeting(ProtocolMode::Auto, MessageDelivery::Stream);
    let next = |remembered| {
        let greeting = Greeting {
            remembered,
            ..auto.clone()
        };
        greeting.after(&exited()).map(|next| next.remembered)
    };
    assert_eq!(next(None), Some(Some(Era::Legacy)));
    assert_eq!(next(Some(Era::Modern)), Some(Some(Era::Legacy)));
    assert_eq!(next(Some(Era::Legacy)), Some(None), "everything is asked");

    let second = auto.after(&exited()).expect("one more");
    assert!(second.after(&exited()).is_none(), "and no third");
    let asked = ConnectError::request("x", RequestError::Closed(CloseReason::Asked));
    assert!(auto.after(&asked).is_none(), "we ended it ourselves");
    assert!(auto.after(&ConnectError::Stopped).is_none());
    for (mode, delivery) in [
        (ProtocolMode::Legacy, MessageDelivery::Stream),
        (ProtocolMode::Modern, MessageDelivery::Stream),
        (ProtocolMode::Auto, MessageDelivery::PerRequest),
    ] {
        assert!(greeting(mode, delivery).after(&exited()).is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_package_runner_that_installs_for_a_minute_connects_on_its_first_channel() {
    for era in [Era::Legacy, Era::Modern] {
        let (correlator, _pump, mut peer) = open();
        let greeting = Greeting {
            timeout: Duration::from_secs(90),
            ..greeting(ProtocolMode::Auto, MessageDelivery::Stream)
        };
        let script = async {
            // Both questions wait in the pipe until they are read.
            tokio::time::sleep(Duration::from_mins(1)).await;
            let probe = peer.expect("server/discover").await;
            let initialize = peer.expect("initialize").await;
            if era == Era::Modern {
                peer.answer(&probe, discover_result(&["2026-07-28"])).await;
                peer.refuse(&initialize, -32601, Value::Null).await;
            } else {
                peer.refuse(&probe, -32601, Value::Null).await;
                peer.answer(&initialize, initialize_result("2025-11-25"))
                    .await;
            }
        };
        let (session, ()) = tokio::join!(greet(&correlator, &greeting), script);
        assert_eq!(session.expect("it connects").facts().era, era);
    }
}
