//! Tokens that are revoked, or end, while something that they opened is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolway_gateway::http::access::{AccessCheck, AccessLease};
use toolway_gateway::http::{Access, AccessRefusal, Authenticator, HttpOptions, Identity};
use toolway_testkit::marked;

use crate::http_stage::{
    LEGACY, MODERN, OnStage, RawConnection, Stage, initialize, modern, raw, until,
};
use crate::{exchange, request, with_options};

/// Takes every token until it is told otherwise.
#[derive(Clone, Default)]
struct Revocable(Arc<AtomicBool>);

impl Authenticator for Revocable {
    fn check<'a>(&'a self, _token: Option<&'a str>) -> AccessCheck<'a> {
        let revoked = Arc::clone(&self.0);
        let checked = if revoked.load(Ordering::SeqCst) {
            Err(AccessRefusal::unknown_token())
        } else {
            Ok(Arc::new(Identity {
                lease: AccessLease::lasting(move || !revoked.load(Ordering::SeqCst)),
                ..Identity::anybody()
            }))
        };
        Box::pin(std::future::ready(checked))
    }
}

/// The number of the next news.
async fn news(stream: &mut RawConnection) -> u64 {
    loop {
        let event = stream.event().await.unwrap();
        if !event.data.is_empty() {
            return event.json()["params"]["n"].as_u64().unwrap();
        }
    }
}

const TOKEN: (&str, &str) = ("authorization", marked!("Bearer "));

#[tokio::test(start_paused = true)]
async fn sec_27_a_revoked_token_ends_what_it_opened() {
    let revocable = Revocable::default();
    let stage = Arc::new(Stage::default());
    let options = HttpOptions {
        access: Access::Checked(Arc::new(revocable.clone())),
        old_transport: true,
        ..HttpOptions::default()
    };
    let service = Arc::new(OnStage(Arc::clone(&stage)));
    with_options(service, &options, async |address| {
        let id = initialize(address, "/mcp", &[TOKEN]).await;
        let session = ("mcp-session-id", id.as_str());
        let listen = raw("GET /mcp", address, &[TOKEN, session, LEGACY], None);
        let mut listening = RawConnection::open(address, &listen).await;
        let old = raw("GET /sse", address, &[TOKEN], None);
        let mut old = RawConnection::open(address, &old).await;
        assert_eq!(old.event().await.unwrap().kind, "endpoint");
        let hang = request(7, "hang", &modern(json!({ "say": 1 })));
        let headers = [TOKEN, MODERN, ("mcp-method", "hang")];
        let hang = raw("POST /mcp", address, &headers, Some(&hang));
        let mut exchange_stream = RawConnection::open(address, &hang).await;
        assert_eq!(news(&mut exchange_stream).await, 0);
        let wait = request(8, "hang", &json!({ "say": 1 }));
        let wait = raw("POST /mcp", address, &[TOKEN, session, LEGACY], Some(&wait));
        let mut in_session = RawConnection::open(address, &wait).await;
        assert_eq!(news(&mut in_session).await, 0);
        stage.tell(0, 1);
        assert_eq!(news(&mut listening).await, 1);

        revocable.0.store(true, Ordering::SeqCst);
        for stream in [
            &mut listening,
            &mut old,
            &mut exchange_stream,
            &mut in_session,
        ] {
            assert_eq!(stream.event().await, None);
        }
        // The calls end too, and the session with them.
        until(|| stage.dropped() == 2).await;
        let call = request(9, "whoami", &json!({}));
        let call = raw("POST /mcp", address, &[TOKEN, session, LEGACY], Some(&call));
        assert_eq!(exchange(address, &call).await.status, 401);
        revocable.0.store(false, Ordering::SeqCst);
        assert_eq!(exchange(address, &call).await.status, 404);
    })
    .await;
}
