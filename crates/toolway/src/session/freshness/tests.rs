//! The cache alone: what it keeps, for how long, and what it lets go.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON")
}

fn read(uri: &str) -> Box<RawValue> {
    raw(&json!({ "uri": uri }))
}

fn result(ttl_ms: &Value) -> RawJson {
    raw(&json!({ "contents": [], "ttlMs": ttl_ms, "cacheScope": "private" })).into()
}

const READ: &str = "resources/read";

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_again_exactly_while_it_is_fresh() {
    let cache = Freshness::default();
    cache.put(READ, &read("a"), &result(&json!(5000)));
    assert!(cache.get(READ, &read("a")).is_some());
    assert!(cache.get(READ, &read("b")).is_none(), "other params");
    cache.put("prompts/get", &read("b"), &result(&json!(5000)));
    assert!(cache.get("prompts/get", &read("b")).is_none(), "never kept");
    tokio::time::advance(Duration::from_millis(4999)).await;
    assert!(cache.get(READ, &read("a")).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(cache.get(READ, &read("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_or_nonsense_about_time_is_not_kept() {
    for ttl in [json!(0), json!(null), json!(-5), json!("soon"), json!([])] {
        let cache = Freshness::default();
        cache.put(READ, &read("a"), &result(&ttl));
        assert!(cache.get(READ, &read("a")).is_none(), "{ttl}");
    }
    let cache = Freshness::default();
    cache.put(READ, &read("a"), &result(&json!(u64::MAX)));
    tokio::time::advance(LONGEST).await;
    assert!(cache.get(READ, &read("a")).is_none(), "nothing is for ever");
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_of_twenty_answers_goes_first() {
    let cache = Freshness::default();
    let uri = |number: usize| read(&format!("r{number}"));
    for number in 0..KEPT.items {
        cache.put(READ, &uri(number), &result(&json!(60_000)));
    }
    assert!(cache.get(READ, &uri(0)).is_some(), "used again");
    cache.put(READ, &uri(KEPT.items), &result(&json!(60_000)));
    assert!(cache.get(READ, &uri(0)).is_some());
    assert!(cache.get(READ, &uri(1)).is_none());
    assert_eq!(lock(&cache.0).len(), KEPT.items);
    cache.put(READ, &uri(0), &result(&json!(60_000)));
    assert_eq!(
        lock(&cache.0).len(),
        KEPT.items,
        "a newer answer replaces the old"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_changed_and_a_huge_answer_are_not_kept() {
    let cache = Freshness::default();
    for uri in ["a", "b"] {
        cache.put(READ, &read(uri), &result(&json!(60_000)));
    }
    cache.forget_resource("a");
    assert!(cache.get(READ, &read("a")).is_none());
    assert!(cache.get(READ, &read("b")).is_some());

    let huge = raw(&json!({ "ttlMs": 60_000, "text": "x".repeat(LARGEST) }));
    cache.put(READ, &read("a"), &huge.into());
    assert!(cache.get(READ, &read("a")).is_none());
}
