//! Connections that a pool keeps for a while when nobody claims them any more.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolway::{CallOptions, ConnectionPool, Consent, Host, HostOptions, InProcessServer};
use toolway_testkit::{Script, ScriptedServer};

use crate::resting::{Starts, counted};
use crate::support::*;

/// How long connections of these tests are kept.
const KEPT: Duration = Duration::from_mins(15);
const LITTLE: Duration = Duration::from_secs(1);
/// That little less.
const NEARLY_KEPT: Duration = Duration::from_secs(15 * 60 - 1);

/// A pool, and how a host of it is made.
struct Scene {
    home: Home,
    pool: ConnectionPool,
    server: InProcessServer,
    starts: Starts,
}

impl Scene {
    fn new(server: InProcessServer) -> Self {
        let (server, starts) = counted(server);
        Self {
            home: Home::new(),
            pool: ConnectionPool::keeping(KEPT),
            server,
            starts,
        }
    }

    async fn host(&self) -> Host {
        let options = HostOptions {
            in_process: vec![(name("s"), Arc::clone(&self.server))],
            connections: self.pool.clone(),
            ..self.home.options()
        };
        let host = Host::start(self.home.plan(&json!({})), options);
        host.settled().await;
        host
    }

    /// A host that calls, and ends.
    async fn uses(&self) {
        let host = self.host().await;
        let options = CallOptions::new(Consent::Typed);
        let answer = host.call(request("s", "echo", "x"), options).await;
        answer.expect("an answer");
        host.shutdown().await;
    }

    fn counts(&self) -> (usize, usize) {
        (self.starts.all(), self.starts.running())
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_one_after_the_other_find_one_process_and_it_ends_when_nobody_came() {
    let scene = Scene::new(legacy_server());
    for _ in 0..5 {
        scene.uses().await;
        tokio::time::sleep(NEARLY_KEPT).await;
    }
    assert_eq!(scene.counts(), (1, 1));
    let kept = scene.pool.connections();
    assert_eq!((kept.len(), kept[0].claims), (1, 0));
    tokio::time::sleep(2 * LITTLE).await;
    assert!(scene.pool.is_empty());
    assert_eq!(scene.counts(), (1, 0));
    scene.uses().await;
    assert_eq!(scene.counts(), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_the_middle_begins_the_time_anew() {
    let scene = Scene::new(legacy_server());
    scene.uses().await;
    tokio::time::sleep(KEPT / 2).await;
    let host = scene.host().await;
    assert_eq!(scene.pool.connections()[0].claims, 1);
    tokio::time::sleep(2 * KEPT).await;
    assert_eq!(scene.counts(), (1, 1), "it is in use");
    host.shutdown().await;
    tokio::time::sleep(NEARLY_KEPT).await;
    assert_eq!(scene.counts(), (1, 1));
    tokio::time::sleep(2 * LITTLE).await;
    assert_eq!(scene.counts(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_did_not_connect_is_not_kept() {
    let scene = Scene::new(hung_server());
    scene.host().await.shutdown().await;
    assert!(scene.pool.is_empty());
    assert_eq!(scene.starts.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_claims_can_be_ended_at_once_and_what_is_claimed_stays() {
    let scene = Scene::new(legacy_server());
    let host = scene.host().await;
    scene.pool.end_unclaimed().await;
    assert_eq!(scene.counts(), (1, 1), "it is in use");
    host.shutdown().await;
    scene
        .pool
        .end_unclaimed_of(|server| *server != name("s"))
        .await;
    assert_eq!(scene.counts(), (1, 1), "it is another server's end");
    scene.pool.end_unclaimed().await;
    assert_eq!(scene.counts(), (1, 0));
    assert!(scene.pool.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_keeps_nothing() {
    let scene = Scene::new(legacy_server());
    scene.uses().await;
    let Scene { pool, starts, .. } = scene;
    drop(pool);
    tokio::time::sleep(LITTLE).await;
    assert_eq!(starts.running(), 0);
}

#[tokio::test]
async fn an_entry_says_how_long_its_server_is_kept() {
    let home = Home::new();
    let pool = ConnectionPool::keeping(KEPT);
    let entry = |idle: serde_json::Value| {
        let mut entry = ScriptedServer::new(Script::default()).entry();
        entry["idle"] = idle;
        entry
    };
    let servers = json!({ "short": entry(json!(60)), "always": entry(json!("never")) });
    let options = HostOptions {
        connections: pool.clone(),
        ..home.options()
    };
    let host = Host::start(home.plan(&servers), options);
    host.settled().await;
    host.shutdown().await;
    assert_eq!(pool.len(), 2);
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(61)).await;
    let kept = || {
        let kept = pool.connections().into_iter();
        kept.map(|it| it.server.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(kept(), ["always"]);
    tokio::time::sleep(10 * KEPT).await;
    assert_eq!(kept(), ["always"]);
    tokio::time::resume();
    pool.end_unclaimed().await;
    assert!(pool.is_empty());
}
