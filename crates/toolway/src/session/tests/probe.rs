//! Each row of the probe's table, over a stream and over HTTP.

use toolway_types::Era;

use super::*;

/// Greets, while `script` plays the server.
async fn meet<F>(
    mode: ProtocolMode,
    delivery: MessageDelivery,
    script: impl FnOnce(Peer) -> F,
) -> Result<Session, ConnectError>
where
    F: Future<Output = Peer>,
{
    let (correlator, _pump, peer) = open();
    let greeting = greeting(mode, delivery);
    let (outcome, _peer) = tokio::join!(greet(&correlator, &greeting), script(peer));
    outcome
}

async fn auto<F: Future<Output = Peer>>(script: impl FnOnce(Peer) -> F) -> Session {
    meet(ProtocolMode::Auto, MessageDelivery::Stream, script)
        .await
        .expect("it connects")
}

pub(super) fn status(status: u16, body: &str) -> SendFailure {
    let body = Bytes::copy_from_slice(body.as_bytes());
    SendFailure::Status {
        status,
        www_authenticate: None,
        body,
        had_session: false,
        retry_after: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_discover_result_with_a_shared_version_is_modern() {
    let session = auto(async |mut peer: Peer| {
        let probe = peer.expect("server/discover").await;
        let meta = &probe.body["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "tests");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        peer.answer(&probe, discover_result(&["2026-07-28", "2025-11-25"]))
            .await;
        peer
    })
    .await;
    assert_eq!(session.facts().era, Era::Modern);
    assert_eq!(session.facts().protocol_version, "2026-07-28");
    assert_eq!(session.facts().server_info["name"], "scripted");
    assert!(session.offers(ListKind::Tools) && !session.offers(ListKind::Prompts));
}

#[tokio::test(start_paused = true)]
async fn any_other_answer_on_a_stream_means_legacy() {
    let results = [
        json!({}),
        json!({ "supportedVersions": [] }),
        json!({ "supportedVersions": "2026-07-28" }),
        json!([]),
        discover_result(&["2025-11-25"]),
        discover_result(&["2099-01-01"]),
    ];
    for result in results {
        let session = auto(async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.answer(&probe, result.clone()).await;
            peer.greet_legacy("2025-06-18").await;
            peer
        })
        .await;
        assert_eq!(session.facts().era, Era::Legacy, "after {result}");
        assert_eq!(session.facts().protocol_version, "2025-06-18");
    }
    for code in [-32601, -32600, -32000, -32001, -32020, -32021, -32602, 0] {
        let session = auto(async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, code, Value::Null).await;
            peer.greet_legacy("2025-11-25").await;
            peer
        })
        .await;
        assert_eq!(session.facts().era, Era::Legacy, "after error {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_answers_the_probe() {
    let session = auto(async |mut peer: Peer| {
        peer.expect("server/discover").await;
        let error = json!({ "code": -32600, "message": "initialize first" });
        peer.say(json!({ "jsonrpc": "2.0", "id": null, "error": error }))
            .await;
        peer.greet_legacy("2025-11-25").await;
        peer
    })
    .await;
    assert_eq!(session.facts().era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn a_refused_version_with_a_shared_one_is_probed_once_more() {
    for (second_answer, era) in [(true, Era::Modern), (false, Era::Legacy)] {
        let session = auto(async |mut peer: Peer| {
            let supported = json!({ "supported": ["2026-07-28"], "requested": "?" });
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, -32022, supported.clone()).await;
            let again = peer.expect("server/discover").await;
            assert_ne!(
                again.body["id"], probe.body["id"],
                "a new request has a new id"
            );
            if second_answer {
                peer.answer(&again, discover_result(&["2026-07-28"])).await;
            } else {
                peer.refuse(&again, -32022, supported).await;
                peer.greet_legacy("2025-11-25").await;
            }
            peer
        })
        .await;
        assert_eq!(session.facts().era, era);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_only_foreign_versions_is_explained() {
    let error = meet(
        ProtocolMode::Auto,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, -32022, json!({ "supported": ["2099-01-01"] }))
                .await;
            let initialize = peer.expect("initialize").await;
            peer.refuse(&initialize, -32601, Value::Null).await;
            peer
        },
    )
    .await
    .err()
    .expect("no version is shared");
    assert!(error.to_string().contains("`2099-01-01`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_gets_initialize_on_the_same_stream() {
    let session = auto(async |mut peer: Peer| {
        let started = tokio::time::Instant::now();
        let probe = peer.expect("server/discover").await;
        let initialize = peer.expect("initialize").await;
        assert_eq!(
            started.elapsed(),
            Duration::from_secs(2),
            "and nothing in between"
        );
        // The probe is refused late: that is not news.
        peer.refuse(&probe, -32601, Value::Null).await;
        peer.answer(&initialize, initialize_result("2024-11-05"))
            .await;
        peer.expect("notifications/initialized").await;
        peer
    })
    .await;
    assert_eq!(session.facts().protocol_version, "2024-11-05");
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_still_modern() {
    let session = auto(async |mut peer: Peer| {
        let probe = peer.expect("server/discover").await;
        let initialize = peer.expect("initialize").await;
        tokio::time::sleep(Duration::from_secs(7)).await;
        peer.refuse(&initialize, -32601, Value::Null).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        peer.answer(&probe, discover_result(&["2026-07-28"])).await;
        peer
    })
    .await;
    assert_eq!(session.facts().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_both_is_an_error() {
    let error = meet(
        ProtocolMode::Auto,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            let initialize = peer.expect("initialize").await;
            peer.refuse(&initialize, -32603, Value::Null).await;
            peer.refuse(&probe, -32601, Value::Null).await;
            peer
        },
    )
    .await
    .err();
    assert!(
        matches!(
            &error,
            Some(ConnectError::Request { method: "initialize", source: RequestError::Rpc(rpc) })
                if rpc.code == -32603
        ),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_during_the_probe_is_reported_as_ended() {
    let gone = || CloseReason::Exited {
        status: "exit status: 1".to_owned(),
        stderr: Vec::new(),
    };
    for silent_first in [false, true] {
        let error = meet(
            ProtocolMode::Auto,
            MessageDelivery::Stream,
            async |mut peer: Peer| {
                peer.expect("server/discover").await;
                if silent_first {
                    peer.expect("initialize").await;
                }
                peer.close(gone()).await;
                peer
            },
        )
        .await
        .err()
        .expect("it is gone");
        let closed = matches!(
            &error,
            ConnectError::Request {
                source: RequestError::Closed(_),
                ..
            }
        );
        assert!(closed, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pinned_era_is_never_probed() {
    let session = meet(
        ProtocolMode::Legacy,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            peer.greet_legacy("2025-03-26").await;
            peer
        },
    )
    .await
    .expect("it connects");
    assert_eq!(session.facts().era, Era::Legacy);
    assert_eq!(
        session
            .facts()
            .instructions
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("be kind")
    );

    let error = meet(
        ProtocolMode::Modern,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.refuse(&probe, -32601, Value::Null).await;
            assert!(peer.commands.try_recv().is_err(), "no initialize follows");
            peer
        },
    )
    .await
    .err();
    assert!(matches!(
        error,
        Some(ConnectError::Request {
            method: "server/discover",
            ..
        })
    ));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_legacy_version_is_a_clear_error() {
    let error = meet(
        ProtocolMode::Legacy,
        MessageDelivery::Stream,
        async |mut peer: Peer| {
            let request = peer.expect("initialize").await;
            assert_eq!(request.body["params"]["protocolVersion"], "2025-11-25");
            peer.answer(&request, initialize_result("1999-12-31")).await;
            peer
        },
    )
    .await
    .err()
    .expect("we do not speak it");
    assert_eq!(
        error.to_string(),
        "the server speaks protocol `1999-12-31`, which is not supported"
    );
}

#[tokio::test(start_paused = true)]
async fn over_http_other_client_errors_mean_legacy() {
    let not_found = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let failures = [
        status(400, "Bad Request: no valid session ID provided"),
        status(
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}"#,
        ),
        status(404, not_found),
        status(405, ""),
        status(406, ""),
        status(422, "{}"),
        SendFailure::NotMcp {
            content_type: "text/html".to_owned(),
        },
    ];
    for failure in failures {
        let session = meet(
            ProtocolMode::Auto,
            MessageDelivery::PerRequest,
            async |mut peer: Peer| {
                let probe = peer.expect("server/discover").await;
                assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
                assert_eq!(probe.header("mcp-method"), Some("server/discover"));
                peer.fail(&probe, failure.clone()).await;
                let request = peer.expect("initialize").await;
                assert_eq!(
                    request.header("mcp-method"),
                    None,
                    "legacy has no such header"
                );
                peer.answer(&request, initialize_result("2025-06-18")).await;
                let initialized = peer.expect("notifications/initialized").await;
                assert_eq!(
                    initialized.header("mcp-protocol-version"),
                    Some("2025-06-18")
                );
                peer
            },
        )
        .await
        .expect("it connects");
        assert_eq!(session.facts().era, Era::Legacy, "after {failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_a_login_a_server_error_and_silence_are_no_evidence() {
    let failures = [
        status(403, ""),
        status(500, ""),
        status(503, ""),
        SendFailure::TimedOut { after: LIMIT },
        SendFailure::Unreachable {
            refused: true,
            message: "refused".to_owned(),
        },
        SendFailure::Redirected {
            location: "https://elsewhere.test/".to_owned(),
        },
    ];
    for failure in failures {
        let error = meet(
            ProtocolMode::Auto,
            MessageDelivery::PerRequest,
            async |mut peer: Peer| {
                let probe = peer.expect("server/discover").await;
                peer.fail(&probe, failure.clone()).await;
                peer
            },
        )
        .await
        .err()
        .expect("nothing was settled");
        let ConnectError::Request {
            method,
            source: RequestError::Send(kept),
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!((method, kept), ("server/discover", failure));
    }
    let silence = meet(
        ProtocolMode::Auto,
        MessageDelivery::PerRequest,
        async |mut peer: Peer| {
            peer.expect("server/discover").await;
            assert!(
                matches!(peer.command().await, ChannelCommand::Abandon(_)),
                "and no initialize"
            );
            peer
        },
    );
    assert!(matches!(
        silence.await.err(),
        Some(ConnectError::Request {
            source: RequestError::TimedOut,
            ..
        })
    ));
}

#[tokio::test(start_paused = true)]
async fn over_http_401_asks_for_a_login_with_the_challenge() {
    let login = r#"Bearer resource_metadata="https://a.test/.well-known/x""#;
    let wider = r#"Bearer error="insufficient_scope", scope="files""#;
    for (mode, status, challenge) in [
        (ProtocolMode::Auto, 401, login),
        (ProtocolMode::Legacy, 401, login),
        (ProtocolMode::Modern, 401, login),
        (ProtocolMode::Auto, 403, wider),
    ] {
        let error = meet(mode, MessageDelivery::PerRequest, async |mut peer: Peer| {
            let first = peer.next().await;
            let failure = SendFailure::Status {
                status,
                www_authenticate: Some(challenge.to_owned()),
                body: Bytes::new(),
                had_session: false,
                retry_after: None,
            };
            peer.fail(&first, failure).await;
            peer
        })
        .await
        .err()
        .expect("a login is needed");
        let ConnectError::NeedsAuth {
            challenge: Some(kept),
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!(kept.as_received(), challenge);
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_a_refused_version_in_a_400_is_probed_once_more() {
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"v",
        "data":{"supported":["2026-07-28"],"requested":"?"}}}"#;
    let session = meet(
        ProtocolMode::Auto,
        MessageDelivery::PerRequest,
        async |mut peer: Peer| {
            let probe = peer.expect("server/discover").await;
            peer.fail(&probe, status(400, body)).await;
            let again = peer.expect("server/discover").await;
            peer.answer(&again, discover_result(&["2026-07-28"])).await;
            peer
        },
    )
    .await
    .expect("it connects");
    assert_eq!(session.facts().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn over_http_an_answer_that_breaks_off_is_asked_for_again() {
    let cut = || SendFailure::Cut("the stream ended before the answer".to_owned());
    for (twice, era) in [(false, Era::Modern), (true, Era::Legacy)] {
        let session = meet(
            ProtocolMode::Auto,
            MessageDelivery::PerRequest,
            async |mut peer: Peer| {
                let probe = peer.expect("server/discover").await;
                peer.fail(&probe, cut()).await;
                let probe = peer.expect("server/discover").await;
                if twice {
                    peer.fail(&probe, cut()).await;
                    peer.greet_legacy("2025-11-25").await;
                } else {
                    peer.answer(&probe, discover_result(&["2026-07-28"])).await;
                }
                peer
            },
        )
        .await
        .expect("it connects");
        assert_eq!(session.facts().era, era);
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_a_server_that_knows_neither_era_is_told_from_one_that_refuses() {
    for code in [400, 404, 405] {
        let error = meet(
            ProtocolMode::Auto,
            MessageDelivery::PerRequest,
            async |mut peer: Peer| {
                let probe = peer.expect("server/discover").await;
                peer.fail(&probe, status(code, "Cannot POST /sse")).await;
                let request = peer.expect("initialize").await;
                peer.fail(&request, status(code, "Cannot POST /sse")).await;
                peer
            },
        )
        .await
        .err()
        .expect("it is not Streamable HTTP");
        let text = error.to_string();
        let said = format!("answers HTTP {code} to `initialize`");
        assert!(text.contains(&said), "{text}");
    }
    let refusal = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no licence"}}"#;
    let error = meet(
        ProtocolMode::Legacy,
        MessageDelivery::PerRequest,
        async |mut peer: Peer| {
            let request = peer.expect("initialize").await;
            peer.fail(&request, status(400, refusal)).await;
            peer
        },
    )
    .await
    .err()
    .expect("it refuses");
    assert!(error.to_string().contains("no licence"), "{error}");
}
