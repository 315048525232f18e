//! Several calls at once: what runs beside what, and whose outcome is whose.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;
use toolway::{
    BatchOrder, CallError, CallOptions, Consent, Host, HostOptions, InProcessServer,
    PermissionAnswer, PermissionQuestion, Prompter, ToolOutcome,
};

use crate::support::*;

/// What a server did, in order.
#[derive(Clone, Default)]
pub(crate) struct Deeds(Arc<Mutex<Vec<String>>>);

impl Deeds {
    fn add(&self, deed: String) {
        self.0.lock().expect("no panic").push(deed);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    /// The most that were begun and not ended.
    fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for deed in self.all() {
            match deed.split_once(' ').map(|(what, _)| what) {
                Some("begin") => now += 1,
                Some("end") => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        most
    }
}

/// A server whose `read` and `write` take as long as their text says: `name:milliseconds`.
pub(crate) fn worker(deeds: &Deeds) -> InProcessServer {
    let deeds = deeds.clone();
    scripted(move |message, speaker| match message["method"].as_str() {
        Some("tools/list") => {
            let mut read = tool("read");
            read["annotations"] = json!({ "readOnlyHint": true });
            Reply::Result(json!({ "tools": [read, tool("write")] }))
        }
        Some("notifications/cancelled") => {
            deeds.add("cancelled".to_owned());
            Reply::Silence
        }
        Some("tools/call") => {
            let text = message["params"]["arguments"]["text"].as_str();
            let (name, time) = text.and_then(|text| text.split_once(':')).expect("a plan");
            let (name, time) = (name.to_owned(), time.parse().expect("a time"));
            let (deeds, speaker, id) = (deeds.clone(), speaker.clone(), message["id"].clone());
            tokio::spawn(async move {
                deeds.add(format!("begin {name}"));
                tokio::time::sleep(Duration::from_millis(time)).await;
                deeds.add(format!("end {name}"));
                let content = json!([{ "type": "text", "text": name }]);
                let result = json!({ "content": content });
                speaker.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            });
            Reply::Silence
        }
        _ => legacy(message),
    })
}

fn texts(outcomes: &[Result<ToolOutcome, CallError>]) -> Vec<String> {
    outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(outcome) => text_of(outcome),
            Err(error) => error.to_string(),
        })
        .collect()
}

fn typed() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

async fn ready(home: &Home, deeds: &Deeds) -> Host {
    let host = home.host([("works", worker(deeds))]);
    host.settled().await;
    host
}

#[tokio::test(start_paused = true)]
async fn what_only_reads_runs_beside_the_like_and_never_overtakes_a_write() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let begun = Instant::now();
    let outcomes = host
        .call_all(
            vec![
                request("works", "read", "a:50"),
                request("works", "read", "b:30"),
                request("works", "write", "c:100"),
                request("works", "read", "d:50"),
                request("works", "read", "e:20"),
                request("works", "write", "f:10"),
            ],
            typed(),
        )
        .await;
    assert_eq!(texts(&outcomes), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(begun.elapsed().as_millis(), 210, "{:?}", deeds.all());
    assert_eq!(
        deeds.all(),
        [
            "begin a", "begin b", "end b", "end a", "begin c", "end c", "begin d", "begin e",
            "end e", "end d", "begin f", "end f",
        ]
    );
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_it_has_writes_beside_each_other_too() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let requests = (0..4)
        .map(|number| request("works", "write", &format!("{number}:100")))
        .collect();
    let options = CallOptions {
        order: BatchOrder::Parallel,
        ..typed()
    };
    let begun = Instant::now();
    let outcomes = host.call_all(requests, options).await;
    assert_eq!(texts(&outcomes), ["0", "1", "2", "3"]);
    assert_eq!(begun.elapsed().as_millis(), 100, "{:?}", deeds.all());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_call_has_an_outcome_of_its_own_in_the_order_asked() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = home.host([
        ("works", worker(&deeds)),
        ("dead", scripted(|_, _| Reply::Gone)),
    ]);
    let outcomes = host
        .call_all(
            vec![
                request("dead", "x", "x"),
                request("works", "read", "a:30"),
                request("works", "raed", "b:30"),
                request("nobody", "x", "x"),
                request("works", "write", "c:10"),
            ],
            typed(),
        )
        .await;
    assert!(matches!(outcomes[0], Err(CallError::Unavailable { .. })));
    assert!(matches!(outcomes[2], Err(CallError::Unknown { .. })));
    assert!(outcomes[3].is_err());
    let texts = texts(&outcomes);
    assert_eq!((texts[1].as_str(), texts[4].as_str()), ("a", "c"));
    assert!(host.call_all(Vec::new(), typed()).await.is_empty());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_than_ten_are_under_way() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let requests = (0..35)
        .map(|number| request("works", "read", &format!("{number}:100")))
        .collect();
    let begun = Instant::now();
    let outcomes = host.call_all(requests, typed()).await;
    assert_eq!(outcomes.len(), 35);
    assert_eq!(deeds.most_at_once(), 10);
    assert_eq!(begun.elapsed().as_millis(), 400);
    host.shutdown().await;
}

/// Takes its time, and knows how often it was asked at once.
#[derive(Default)]
struct Slow {
    now: AtomicUsize,
    most: AtomicUsize,
    asked: AtomicUsize,
}

impl Prompter for Slow {
    fn ask<'a>(&'a self, _question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(3)).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            PermissionAnswer::Yes
        })
    }
}

#[tokio::test(start_paused = true)]
async fn sec_34_a_tool_that_says_it_only_reads_is_asked_about_and_one_question_at_a_time() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let slow = Arc::new(Slow::default());
    let host = Host::start(
        home.plan(&json!({})),
        HostOptions {
            in_process: vec![(name("works"), worker(&deeds))],
            prompter: Some(Arc::clone(&slow) as Arc<dyn Prompter>),
            ..home.options()
        },
    );
    host.settled().await;
    let requests = (0..4)
        .map(|number| request("works", "read", &format!("{number}:10")))
        .collect();
    let outcomes = host
        .call_all(requests, CallOptions::new(Consent::Prompt))
        .await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(slow.asked.load(Ordering::Relaxed), 4);
    assert_eq!(slow.most.load(Ordering::Relaxed), 1);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_batch_cancels_what_runs_and_never_starts_the_rest() {
    let (home, deeds) = (Home::new(), Deeds::default());
    let host = ready(&home, &deeds).await;
    let requests = vec![
        request("works", "read", "a:60000"),
        request("works", "write", "b:60000"),
        request("works", "write", "c:60000"),
    ];
    let batch = host.call_all(requests, typed());
    let limit = Duration::from_millis(50);
    assert!(tokio::time::timeout(limit, batch).await.is_err());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut seen = deeds.all();
    seen.sort_unstable();
    assert_eq!(seen, ["begin a", "cancelled"]);
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_a_server_that_connects_and_holds_up_nobody_where_order_is_of_no_matter()
{
    let (home, deeds) = (Home::new(), Deeds::default());
    let late = {
        let inner = worker(&deeds);
        let late: InProcessServer = Arc::new(move |end| {
            let inner = Arc::clone(&inner);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                inner(end).await;
            })
        });
        late
    };
    let host = home.host([("works", worker(&deeds)), ("late", late)]);
    host.ready("works").await;
    let options = CallOptions {
        order: BatchOrder::Parallel,
        ..typed()
    };
    let requests = vec![
        request("late", "read", "first:10"),
        request("works", "read", "second:10"),
    ];
    let outcomes = host.call_all(requests, options).await;
    assert_eq!(texts(&outcomes), ["first", "second"]);
    assert_eq!(deeds.all()[0], "begin second");
    host.shutdown().await;
}
