//! What is taken for a trace context, and what it becomes.

use bytes::Bytes;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn json(text: &'static str) -> RawJson {
    RawJson::read(&Bytes::from_static(text.as_bytes())).expect("JSON")
}

fn header_map(headers: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).expect("a value"));
    }
    map
}

#[test]
fn a_span_is_read_and_written_again() {
    let parent = TraceParent::read(PARENT).expect("a parent");
    assert_eq!(parent.trace[..2], [0x0a, 0xf7]);
    assert_eq!(parent.span[7], 0x31);
    assert!(parent.is_sampled());
    assert_eq!(parent.to_string(), PARENT);
    let off = TraceParent::read(&PARENT.replace("-01", "-00")).expect("a parent");
    assert!(!off.is_sampled());
}

#[test]
fn a_version_to_come_is_read_as_far_as_it_is_known_and_passed_on_unchanged() {
    let text = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes";
    let context = TraceContext::of_texts(Some(text), None, None);
    assert_eq!(context.parent(), TraceParent::read(PARENT));
    assert_eq!(
        context.members().collect::<Vec<_>>(),
        [("traceparent", text)]
    );
}

#[test]
fn sec_22_what_is_no_traceparent_is_none() {
    for text in [
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx: y",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-\r\nx: y",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b7169203331-01",
    ] {
        assert_eq!(TraceParent::read(text), None, "{text:?}");
    }
    let long = format!("01-{}-{}", &PARENT[3..], "x".repeat(300));
    assert_eq!(TraceParent::read(&long), None);
}

#[test]
fn sec_22_lists_that_cannot_stand_in_a_header_are_dropped() {
    let read = |state: &str, baggage: &str| {
        let context = TraceContext::of_texts(Some(PARENT), Some(state), Some(baggage));
        let keys: Vec<_> = context.members().map(|(key, _)| key).collect();
        assert_eq!(context.headers().count(), keys.len());
        keys
    };
    assert_eq!(
        read("a=1, b@c=2,,", "user=alice,n=DF%2028;p=1;q"),
        ["traceparent", "tracestate", "baggage"]
    );
    for (state, baggage) in [
        ("", ""),
        ("no member", "none"),
        ("a=1\r\nx: y", "a=1\r\nx: y"),
        ("a=\u{e9}", "a=\u{e9}"),
        ("=1", "=1"),
        (
            &*format!("a={}", "x".repeat(600)),
            &*format!("a={}", "x".repeat(9000)),
        ),
    ] {
        assert_eq!(read(state, baggage), ["traceparent"], "{state:?}");
    }
    let many = (0..33)
        .map(|n| format!("k{n}=v"))
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(read(&many, "a=1"), ["traceparent", "baggage"]);
    let alone = TraceContext::of_texts(None, Some("a=1"), Some("b=2"));
    assert_eq!(alone.members().collect::<Vec<_>>(), [("baggage", "b=2")]);
}

#[test]
fn headers_say_it_once_and_lists_in_parts() {
    let map = header_map(&[
        ("traceparent", PARENT),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("baggage", "c=3"),
    ]);
    let context = TraceContext::of_headers(&map);
    assert_eq!(context.state(), Some("a=1,b=2"));
    assert_eq!(context.headers().count(), 3);
    let twice = header_map(&[("traceparent", PARENT), ("traceparent", PARENT)]);
    assert!(TraceContext::of_headers(&twice).is_empty());
}

#[test]
fn meta_comes_before_headers_and_baggage_from_either() {
    let params = json(
        r#"{"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}"#,
    );
    let meta = TraceContext::of_head(&RequestHead::read(Some(&params)).expect("an object"));
    let other = PARENT.replace("b7ad", "aaaa");
    let headers = TraceContext::of_texts(Some(&other), Some("a=1"), Some("b=2"));
    let both = meta.or(headers.clone());
    let members: Vec<_> = both.members().collect();
    assert_eq!(members, [("traceparent", PARENT), ("baggage", "b=2")]);
    assert_eq!(TraceContext::default().or(headers.clone()), headers);
}

#[test]
fn meta_says_the_new_context_and_keeps_the_rest() {
    let context = TraceContext::of_texts(Some(PARENT), None, Some("a=1"));
    let meta = json(r#"{"x":[ 1 ],"traceparent":"bad","tracestate":"old=1","y":"z"}"#);
    assert_eq!(
        context.in_meta(Some(&meta)).expect("some").get(),
        format!(r#"{{"x":[ 1 ],"traceparent":"{PARENT}","y":"z","baggage":"a=1"}}"#)
    );
    let nothing = TraceContext::default();
    assert_eq!(
        nothing.in_meta(Some(&json(r#"{"traceparent":"bad"}"#))),
        None
    );
    assert_eq!(nothing.in_meta(None), None);
    assert_eq!(
        context
            .in_params(r#"{"uri":"a:b","_meta":{"x":1},"n": 1.0}"#)
            .expect("an object"),
        format!(
            r#"{{"uri":"a:b","_meta":{{"x":1,"traceparent":"{PARENT}","baggage":"a=1"}},"n":1.0}}"#
        )
    );
    assert_eq!(nothing.in_params("{}").as_deref(), Some("{}"));
    assert_eq!(nothing.in_params("[]"), None);
}
