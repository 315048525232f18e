//! What servers announce, and how often they are asked for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolway::{Host, InProcessServer, ServerEnd};

use crate::support::*;

/// How often something happened.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn changed(list: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed") })
}

/// Waits until the server shows exactly these tools.
async fn shows(host: &Host, server: &str, tools: &[&str]) {
    let server = name(server);
    let wanted = |snapshot: &Arc<toolway::HostSnapshot>| {
        let tools_of = snapshot.catalog.tools_of(&server);
        let names: Vec<&str> = tools_of.iter().map(|tool| &*tool.key.tool).collect();
        names == tools
    };
    host.watch().wait_for(wanted).await.expect("the host lives");
}

fn tools(names: &[String]) -> Reply {
    let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    Reply::Result(json!({ "resultType": "complete", "tools": tools }))
}

#[tokio::test(start_paused = true)]
async fn rel_21_a_server_that_announces_a_change_after_every_list_is_asked_ever_more_rarely() {
    let lists = Count::default();
    let counted = lists.clone();
    let server = scripted(move |message, speaker| match message["method"].as_str() {
        Some("tools/list") => {
            let number = counted.up();
            speaker.say(&changed("tools"));
            tools(&[format!("t{number}")])
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("livelock", server)]);
    host.settled().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    // The first, one at once, then after 1, 1, 1, 1, 2, 4, 8, 16, 30, 30 seconds.
    assert!((11..=13).contains(&lists.get()), "{} lists", lists.get());
    let last = format!("t{}", lists.get());
    shows(&host, "livelock", &[&last]).await;
    host.shutdown().await;
}

/// A legacy server whose tools are a counter; each call announces that many changes.
fn flooding(lists: Count, version: Count) -> InProcessServer {
    Arc::new(move |end: ServerEnd| {
        let (lists, version) = (lists.clone(), version.clone());
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            while let Some(bytes) = incoming.recv().await {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                let reply = match message["method"].as_str() {
                    Some("tools/list") => {
                        lists.up();
                        tools(&["echo".to_owned(), format!("v{}", version.get())])
                    }
                    Some("tools/call") => {
                        for _ in 0..100_000 {
                            version.up();
                            let news = changed("tools").to_string().into();
                            outgoing.send(news).await.expect("the host reads");
                        }
                        legacy(&message)
                    }
                    _ => legacy(&message),
                };
                let id = &message["id"];
                let answer = match reply {
                    Reply::Result(result) => {
                        json!({ "jsonrpc": "2.0", "id": id, "result": result })
                    }
                    Reply::Error(code) => {
                        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "" } })
                    }
                    Reply::Silence | Reply::Gone => continue,
                };
                let sent = outgoing.send(answer.to_string().into()).await;
                sent.expect("the host reads");
            }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn rel_21_a_hundred_thousand_changes_are_a_few_lists_and_the_last_is_not_lost() {
    let (lists, version) = (Count::default(), Count::default());
    let home = Home::new();
    let host = home.host([("storm", flooding(lists.clone(), version))]);
    host.settled().await;
    echo(&host, "storm", "go").await.expect("calls go on");
    shows(&host, "storm", &["echo", "v100000"]).await;
    assert!(lists.get() <= 5, "{} lists", lists.get());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_21_a_list_slower_than_the_interval_is_never_fetched_twice_at_once() {
    let (version, most) = (Count::default(), Count::default());
    let (known, seen) = (version.clone(), most.clone());
    let server: InProcessServer = Arc::new(move |end: ServerEnd| {
        let (known, seen) = (known.clone(), seen.clone());
        Box::pin(async move {
            let ServerEnd {
                mut incoming,
                outgoing,
            } = end;
            let under_way = Count::default();
            while let Some(bytes) = incoming.recv().await {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                let id = message["id"].clone();
                if message["method"] == "tools/list" {
                    seen.0.fetch_max(under_way.up(), Ordering::SeqCst);
                    let (outgoing, known) = (outgoing.clone(), known.clone());
                    let under_way = under_way.clone();
                    tokio::spawn(async move {
                        let listed = tool(&format!("v{}", known.get()));
                        tokio::time::sleep(Duration::from_secs(10)).await;
                        under_way.0.fetch_sub(1, Ordering::SeqCst);
                        let result = json!({ "tools": [listed] });
                        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                        let _ = outgoing.send(answer.to_string().into()).await;
                        if known.get() < 4 {
                            known.up();
                            let _ = outgoing.send(changed("tools").to_string().into()).await;
                        }
                    });
                    continue;
                }
                let answer = match legacy(&message) {
                    Reply::Result(result) => {
                        json!({ "jsonrpc": "2.0", "id": id, "result": result })
                    }
                    _ => {
                        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "" } })
                    }
                };
                if !id.is_null() {
                    let _ = outgoing.send(answer.to_string().into()).await;
                }
            }
        })
    });
    let home = Home::new();
    let host = home.host([("slow", server)]);
    host.settled().await;
    shows(&host, "slow", &["v4"]).await;
    assert_eq!(most.get(), 1);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rel_21_a_tool_is_removed_while_another_list_hangs() {
    let (counted, removed) = (Count::default(), Count::default());
    let gone = removed.clone();
    let server = scripted(move |message, speaker| match message["method"].as_str() {
        Some("initialize") => {
            let Reply::Result(mut result) = legacy(message) else {
                panic!("it greets")
            };
            result["capabilities"]["prompts"] = json!({ "listChanged": true });
            Reply::Result(result)
        }
        Some("prompts/list") if counted.up() == 1 => Reply::Result(json!({ "prompts": [] })),
        Some("prompts/list") => Reply::Silence,
        Some("tools/call") => {
            speaker.say(&changed("prompts"));
            speaker.say(&changed("tools"));
            legacy(message)
        }
        Some("tools/list") if gone.get() > 0 => tools(&["echo".to_owned()]),
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("half", server)]);
    host.settled().await;
    shows(&host, "half", &["echo", "mute"]).await;
    removed.up();
    let begun = Instant::now();
    echo(&host, "half", "remove").await.expect("an answer");
    shows(&host, "half", &["echo"]).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_keeps_the_old_list_says_so_and_heals() {
    let lists = Count::default();
    let counted = lists.clone();
    let server = scripted(move |message, speaker| match message["method"].as_str() {
        Some("tools/list") => match counted.up() {
            1 => legacy(message),
            2..=3 => Reply::Error(-32603),
            _ => tools(&["healed".to_owned()]),
        },
        Some("tools/call") => {
            speaker.say(&changed("tools"));
            legacy(message)
        }
        _ => legacy(message),
    });
    let home = Home::new();
    let host = home.host([("ill", server)]);
    host.settled().await;
    echo(&host, "ill", "go").await.expect("an answer");
    let mut snapshots = host.watch();
    let warned = snapshots.wait_for(|snapshot| {
        snapshot
            .server("ill")
            .is_some_and(|server| !server.warnings.is_empty())
    });
    let warned = warned.await.expect("the host lives").clone();
    let server = warned.server("ill").expect("it is known");
    assert!(
        server.warnings[0].contains("its tools"),
        "{:?}",
        server.warnings
    );
    assert_eq!(
        server.counts.map(|counts| counts.tools),
        Some(2),
        "the old list"
    );
    shows(&host, "ill", &["healed"]).await;
    assert_eq!(shown(&host, "ill").warnings, Vec::<String>::new());
    host.shutdown().await;
}

/// A modern server that announces changes of its tools; `version` names the tool it has.
fn announcing(
    version: Count,
    listening: impl Fn(&Value, &Speaker) + Send + Sync + 'static,
) -> InProcessServer {
    scripted(move |message, speaker| match message["method"].as_str() {
        Some("server/discover") => {
            let Reply::Result(mut result) = modern(message) else {
                return Reply::Error(-32602);
            };
            result["capabilities"]["tools"] = json!({ "listChanged": true });
            Reply::Result(result)
        }
        Some("tools/list") => tools(&[format!("v{}", version.get()), "echo".to_owned()]),
        Some("subscriptions/listen") => {
            listening(&message["id"], speaker);
            Reply::Silence
        }
        _ => modern(message),
    })
}

fn acknowledgement(id: &Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": { "_meta": meta, "notifications": { "toolsListChanged": true } },
    })
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_subscribed_to_and_its_changes_arrive() {
    let version = Count::default();
    let line: Arc<Mutex<Option<(Value, Speaker)>>> = Arc::default();
    let kept = Arc::clone(&line);
    let server = announcing(version.clone(), move |id, speaker| {
        speaker.say(&acknowledgement(id));
        *kept.lock().expect("no panic") = Some((id.clone(), speaker.clone()));
    });
    let home = Home::new();
    let host = home.host([("news", server)]);
    host.settled().await;
    shows(&host, "news", &["echo", "v0"]).await;
    let (id, speaker) = loop {
        if let Some(line) = line.lock().expect("no panic").clone() {
            break line;
        }
        tokio::task::yield_now().await;
    };
    // Long after any time limit of a request the subscription is still the same.
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    version.up();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let mut news = changed("tools");
    news["params"] = json!({ "_meta": meta });
    speaker.say(&news);
    shows(&host, "news", &["echo", "v1"]).await;
    echo(&host, "news", "hi").await.expect("calls go on");

    let ended = Instant::now();
    host.shutdown().await;
    assert_eq!(
        ended.elapsed(),
        Duration::ZERO,
        "it does not hold up the end"
    );
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_no_subscription_is_open_is_not_lost() {
    let version = Count::default();
    let openings = Count::default();
    let (known, counted) = (version.clone(), openings.clone());
    let server = announcing(version.clone(), move |id, speaker| {
        speaker.say(&acknowledgement(id));
        if counted.up() <= 3 {
            // It ends at once, and then something changes that nobody hears of.
            speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
            known.up();
        }
    });
    let home = Home::new();
    let host = home.host([("forgetful", server)]);
    host.settled().await;
    shows(&host, "forgetful", &["echo", "v3"]).await;
    let mut waited = 0;
    while openings.get() < 4 && waited < 100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        waited += 1;
    }
    assert_eq!(openings.get(), 4);
    assert_eq!(shown(&host, "forgetful").warnings, Vec::<String>::new());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_its_own_subscription_is_said_to_and_works() {
    let server = scripted(|message, _| match message["method"].as_str() {
        Some("server/discover") => {
            let Reply::Result(mut result) = modern(message) else {
                return Reply::Error(-32602);
            };
            result["capabilities"]["tools"] = json!({ "listChanged": true });
            Reply::Result(result)
        }
        _ => modern(message),
    });
    let home = Home::new();
    let host = home.host([("boaster", server)]);
    host.settled().await;
    let mut snapshots = host.watch();
    let warned = snapshots.wait_for(|snapshot| {
        snapshot
            .server("boaster")
            .is_some_and(|server| !server.warnings.is_empty())
    });
    let warned = warned.await.expect("the host lives").clone();
    let warnings = &warned.server("boaster").expect("it is known").warnings;
    assert!(
        warnings[0].contains("`subscriptions/listen`"),
        "{warnings:?}"
    );
    echo(&host, "boaster", "hi").await.expect("an answer");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_announces_is_fetched_again_when_it_has_expired() {
    let lists = Count::default();
    let counted = lists.clone();
    let server = scripted(move |message, _| match message["method"].as_str() {
        Some("tools/list") => {
            let number = counted.up();
            let tools = [tool(&format!("t{number}"))];
            let result = json!({ "resultType": "complete", "tools": tools, "ttlMs": 40_000 });
            Reply::Result(result)
        }
        _ => modern(message),
    });
    let home = Home::new();
    let host = home.host([("aging", server)]);
    host.settled().await;
    let begun = Instant::now();
    shows(&host, "aging", &["t2"]).await;
    let waited = begun.elapsed().as_secs_f32();
    assert!((40.0..=50.1).contains(&waited), "{waited}");
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_always_stale_is_not_polled() {
    let lists = Count::default();
    let counted = lists.clone();
    let server = scripted(move |message, _| {
        if message["method"] == "tools/list" {
            counted.up();
        }
        modern(message)
    });
    let home = Home::new();
    let host = home.host([("stale", server)]);
    host.settled().await;
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    assert_eq!(lists.get(), 1);
    host.shutdown().await;
}
