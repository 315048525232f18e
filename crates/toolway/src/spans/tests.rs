//! Which spans are kept, and what is said of a trace where they are not.

use super::*;

const TRACE: [u8; 16] = [7; 16];

fn parent(flags: u8) -> TraceParent {
    TraceParent {
        trace: TRACE,
        span: [9; 8],
        flags,
    }
}

fn tracer(sampling: TraceSampling, room: usize) -> (Tracer, mpsc::Receiver<Box<SpanRecord>>) {
    let (queue, spans) = mpsc::channel(room);
    let shared = TracerShared {
        queue,
        full: Notify::new(),
        sampling,
        counts: SpanCounters::default(),
    };
    (Tracer(Arc::new(shared)), spans)
}

fn within(parent: TraceParent) -> TraceContext {
    TraceContext::of_texts(Some(&parent.to_string()), Some("a=1"), None)
}

#[test]
fn who_began_a_trace_decides_unless_the_sampler_says_otherwise() {
    let by_parent = TraceSampling::default();
    assert!(is_kept(by_parent, Some(parent(1)), TRACE));
    assert!(!is_kept(by_parent, Some(parent(0)), TRACE));
    assert!(is_kept(by_parent, None, TRACE));
    let always = TraceSampling {
        by_parent: false,
        ..by_parent
    };
    assert!(is_kept(always, Some(parent(0)), TRACE));
    let part = |part| TraceSampling {
        by_parent: false,
        share: SampledShare::Part(part),
    };
    let kept = |share| {
        let ids = (0..1000).map(|_| random::<16>());
        ids.filter(|id| is_kept(part(share), None, *id)).count()
    };
    assert_eq!((kept(0.0), kept(1.0)), (0, 1000));
    assert!((150..350).contains(&kept(0.25)));
}

#[test]
fn a_trace_that_is_not_kept_goes_on_unchanged_and_one_that_begins_here_says_so() {
    let (tracer, mut spans) = tracer(TraceSampling::default(), 4);
    let (span, trace) = tracer.answer(within(parent(0)), None, "tools/call");
    assert!(span.is_none());
    assert_eq!(trace.context(), &within(parent(0)));
    assert!(trace.ask("tools/call").is_none());
    let off = TraceSampling {
        by_parent: true,
        share: SampledShare::None,
    };
    let (tracer, _spans) = self::tracer(off, 4);
    let (span, trace) = tracer.answer(TraceContext::default(), None, "tools/call");
    assert!(span.is_none());
    assert_eq!(trace.context().parent().map(|it| it.flags), Some(0));
    assert!(spans.try_recv().is_err());
}

#[test]
fn spans_of_one_request_are_parent_and_child_in_the_clients_trace() {
    let (tracer, mut spans) = tracer(TraceSampling::default(), 4);
    let (answering, trace) = tracer.answer(within(parent(1)), None, "tools/call");
    let asking = trace.ask("tools/call").expect("a span");
    let told = asking.context().clone();
    asking.succeeded();
    drop(answering);
    let asked = spans.try_recv().expect("a span");
    let answered = spans.try_recv().expect("a span");
    assert_eq!(answered.parent, Some(parent(1)));
    assert_eq!(asked.parent, Some(answered.own));
    assert_eq!(told.parent(), Some(asked.own));
    assert_eq!(told.state(), Some("a=1"));
    assert_eq!(
        (asked.side, answered.side),
        (SpanSide::Client, SpanSide::Server)
    );
    assert!(
        [asked.own, answered.own]
            .iter()
            .all(|own| own.trace == TRACE)
    );
    assert_eq!((asked.failed, answered.failed), (false, true));
    let cancelled = ("error.type", SpanValue::from("cancelled"));
    assert!(answered.attributes.contains(&cancelled));
}

#[test]
fn rel_29_spans_that_find_no_room_are_dropped_and_counted() {
    let (tracer, _spans) = tracer(TraceSampling::default(), 2);
    for _ in 0..5 {
        let (span, _) = tracer.answer(TraceContext::default(), None, "ping");
        span.expect("a span").succeeded();
    }
    assert_eq!(
        tracer.counts(),
        SpanCounts {
            exported: 0,
            dropped: 3
        }
    );
}

#[test]
fn names_in_spans_are_short_and_of_one_line() {
    let (tracer, mut spans) = tracer(TraceSampling::default(), 2);
    let (span, _) = tracer.answer(TraceContext::default(), None, "tools/call");
    let mut span = span.expect("a span");
    span.target(
        "gen_ai.tool.name",
        &format!("a\nb\u{1b}[31m{}", "x".repeat(900)),
    );
    span.succeeded();
    let target = spans.try_recv().expect("a span").target.expect("a name");
    assert!(target.starts_with("a b"), "{target}");
    assert!(!target.contains(['\n', '\u{1b}']));
    assert!(target.chars().count() <= limits::spans::NAME);
}
