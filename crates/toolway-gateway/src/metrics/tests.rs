//! What stands on the page, as a reader of the text format sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use toolway::{HostSnapshot, ServerSnapshot, SpanCounts};
use toolway_types::{ConnectionState, Origin, Scope};

use super::*;

/// A sample: its name and labels.
type Series = (String, BTreeMap<String, String>);

/// A reader of the text format that takes nothing that the format does not allow.
#[derive(Debug, Default)]
struct ReadPage {
    types: BTreeMap<String, String>,
    /// As written.
    samples: BTreeMap<Series, String>,
}

impl ReadPage {
    fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'));
        let mut page = Self::default();
        let mut family = String::new();
        let mut finished = BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty(), "{line}");
                assert!(finished.insert(name.to_owned()), "{name} comes twice");
                name.clone_into(&mut family);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family, "a type follows its help");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                page.types.insert(name.to_owned(), kind.to_owned());
            } else {
                let (series, value) = sample(line);
                let suffixes: &[&str] = match page.types[&family].as_str() {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                let is_of = |suffix: &&str| format!("{family}{suffix}") == series.0;
                assert!(suffixes.iter().any(is_of), "{line} is not of {family}");
                assert_eq!(
                    page.samples.insert(series, value),
                    None,
                    "{line} comes twice"
                );
            }
        }
        page.check_histograms();
        page
    }

    /// Buckets grow, and the last one is the count.
    fn check_histograms(&self) {
        for (name, kind) in &self.types {
            if kind != "histogram" {
                continue;
            }
            let of = |suffix: &str| {
                let name = format!("{name}{suffix}");
                self.samples.iter().filter(move |((of, _), _)| *of == name)
            };
            for ((_, labels), count) in of("_count") {
                let mut buckets: Vec<(f64, usize)> = of("_bucket")
                    .filter(|((_, bucket), _)| bucket["server"] == labels["server"])
                    .map(|((_, bucket), value)| (bound(&bucket["le"]), value.parse().unwrap()))
                    .collect();
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert_eq!(buckets.len(), BUCKETS);
                assert!(
                    buckets.is_sorted_by(|one, other| one.1 <= other.1),
                    "{buckets:?}"
                );
                assert_eq!(
                    buckets.last(),
                    Some(&(f64::INFINITY, count.parse().unwrap()))
                );
            }
        }
    }

    fn count(&self, name: &str, labels: &[(&str, &str)]) -> usize {
        self.value(name, labels).parse().unwrap()
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> &str {
        let labels = labels
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let series = (name.to_owned(), labels.collect());
        self.samples
            .get(&series)
            .unwrap_or_else(|| panic!("no {series:?}"))
    }
}

fn bound(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        text => text.parse().unwrap(),
    }
}

fn sample(line: &str) -> (Series, String) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
        "{line}"
    );
    let mut labels = BTreeMap::new();
    while let Some(behind) = rest.strip_prefix(['{', ',']) {
        let (label, quoted) = behind.split_once("=\"").unwrap();
        assert!(
            label.bytes().all(|byte| byte.is_ascii_lowercase()),
            "{line}"
        );
        let mut text = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => text.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} in {line}"),
                }),
                (_, c) => text.push(c),
            }
        };
        assert_eq!(labels.insert(label.to_owned(), text), None, "{line}");
        rest = &quoted[end + 1..];
        rest = rest.strip_prefix('}').unwrap_or(rest);
    }
    let value = rest.strip_prefix(' ').unwrap();
    assert!(
        value.parse::<f64>().is_ok_and(|value| value >= 0.0),
        "{line}"
    );
    ((name.to_owned(), labels), value.to_owned())
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn page(metrics: &Metrics) -> ReadPage {
    ReadPage::read(&metrics.render(&HostSnapshot::default(), GatewayGauges::default(), None))
}

#[test]
fn calls_are_counted_by_server_and_by_how_they_ended() {
    let metrics = Metrics::new();
    let (files, search) = (
        metrics.server(&name("files")),
        metrics.server(&name("search")),
    );
    for end in CallEnd::ALL {
        files.begin().finish(end);
    }
    files.begin().finish(CallEnd::Answered);
    drop(search.begin());
    let under_way = search.begin();
    let page = page(&metrics);
    let calls = |server, outcome| {
        page.count(
            "toolway_calls_total",
            &[("server", server), ("outcome", outcome)],
        )
    };
    assert_eq!(calls("files", "answered"), 2);
    assert_eq!(calls("files", "tool-error"), 1);
    assert_eq!(calls("files", "cancelled"), 1);
    assert_eq!(calls("search", "cancelled"), 1);
    assert_eq!(calls("search", "answered"), 0);
    let in_flight = |server| page.count("toolway_calls_in_flight", &[("server", server)]);
    assert_eq!((in_flight("files"), in_flight("search")), (0, 1));
    let count = page.count(
        "toolway_call_duration_seconds_count",
        &[("server", "files")],
    );
    assert_eq!(count, 11);
    drop(under_way);
}

#[test]
fn a_duration_stands_in_the_buckets_from_its_own_on() {
    let metrics = Metrics::new();
    let server = metrics.server(&name("files"));
    for micros in [0, 500, 501, 1_000_000, 300_000_001] {
        server.ended(CallEnd::Answered, Duration::from_micros(micros));
    }
    let page = page(&metrics);
    let labels = |le| [("server", "files"), ("le", le)];
    let bucket = |le| page.count("toolway_call_duration_seconds_bucket", &labels(le));
    assert_eq!(bucket("0.0005"), 2);
    assert_eq!(bucket("0.001"), 3);
    assert_eq!(bucket("0.5"), 3);
    assert_eq!(bucket("1"), 4);
    assert_eq!(bucket("300"), 4);
    assert_eq!(bucket("+Inf"), 5);
    let sum = page.value("toolway_call_duration_seconds_sum", &[("server", "files")]);
    assert_eq!(sum, "301.001002");
}

#[test]
fn names_of_servers_cannot_break_or_flood_the_page() {
    let metrics = Metrics::new();
    let odd = "a \"quoted\\name\", le=\"1\"} 5";
    metrics.server(&name(odd)).begin().finish(CallEnd::Answered);
    for number in 0..MAX_SERVERS * 3 {
        let server = metrics.server(&name(&format!("server-{number}")));
        server.begin().finish(CallEnd::Answered);
        // The same name always leads to the same counters.
        assert!(Arc::ptr_eq(
            &server,
            &metrics.server(&name(&format!("server-{number}")))
        ));
    }
    let page = page(&metrics);
    let answered = |server| [("server", server), ("outcome", "answered")];
    assert_eq!(page.count("toolway_calls_total", &answered(odd)), 1);
    assert_eq!(
        page.count("toolway_calls_total", &answered("server-253")),
        1
    );
    let rest = page.count("toolway_calls_total", &answered(OTHER));
    assert_eq!(rest, MAX_SERVERS * 3 - 254);
    let servers: BTreeSet<_> = page
        .samples
        .keys()
        .filter_map(|(_, labels)| labels.get("server"))
        .collect();
    assert_eq!(servers.len(), MAX_SERVERS);
}

#[test]
fn what_happens_beside_calls_is_counted_too() {
    let metrics = Metrics::new();
    metrics.list_changed(ListKind::Prompts);
    let gauges = GatewayGauges {
        clients: 3,
        legacy_sessions: 2,
        modern_sessions: 1,
        parked_calls: 4,
        open_questions: 5,
        ended_questions: QuestionCounts {
            expired: 1,
            ..QuestionCounts::default()
        },
    };
    let spans = SpanCounts {
        exported: 8,
        dropped: 9,
    };
    let text = metrics.render(&HostSnapshot::default(), gauges, Some(spans));
    let page = ReadPage::read(&text);
    let spans = |outcome| page.count("toolway_spans_total", &[("outcome", outcome)]);
    assert_eq!((spans("exported"), spans("dropped")), (8, 9));
    assert_eq!(
        page.count("toolway_questions_total", &[("outcome", "expired")]),
        1
    );
    assert_eq!(
        page.count("toolway_list_changes_total", &[("list", "prompts")]),
        1
    );
    assert_eq!(page.count("toolway_sessions", &[("era", "legacy")]), 2);
    assert_eq!(page.count("toolway_sessions", &[("era", "modern")]), 1);
    assert_eq!(page.count("toolway_clients", &[]), 3);
    assert_eq!(page.count("toolway_parked_calls", &[]), 4);
    assert_eq!(page.count("toolway_open_questions", &[]), 5);
    for state in ["pending", "connected", "needs-auth", "failed", "disabled"] {
        assert_eq!(page.count("toolway_servers", &[("state", state)]), 0);
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(page.count("toolway_build_info", &version), 1);
}

#[test]
fn a_page_agrees_with_itself_while_calls_run() {
    let metrics = Metrics::new();
    thread::scope(|scope| {
        for worker in 0..4 {
            let server = metrics.server(&name(["one", "two"][worker % 2]));
            scope.spawn(move || {
                for number in 0..5_000 {
                    server
                        .begin()
                        .finish(CallEnd::ALL[number % CallEnd::ALL.len()]);
                }
            });
        }
        for _ in 0..50 {
            page(&metrics);
        }
    });
    let page = page(&metrics);
    for server in ["one", "two"] {
        let labels = [("server", server)];
        assert_eq!(
            page.count("toolway_call_duration_seconds_count", &labels),
            10_000
        );
        assert_eq!(page.count("toolway_calls_in_flight", &labels), 0);
    }
}

#[test]
fn servers_are_counted_by_the_state_of_their_connection() {
    let server = |name: &str, state: ConnectionState| {
        Arc::new(ServerSnapshot {
            name: self::name(name),
            scope: Scope::User,
            origin: Origin::Program,
            transport: None,
            state,
            verdict_word: "admitted",
            reason: None,
            counts: None,
            warnings: Vec::new(),
            rest: None,
        })
    };
    let off = || ConnectionState::Disabled {
        reason: "switched off".to_owned(),
    };
    let mut snapshot = HostSnapshot::default();
    snapshot.servers = vec![
        server("one", ConnectionState::Pending { attempt: 1 }),
        server("two", off()),
        server("three", off()),
    ];
    snapshot.panics = 6;
    let text = Metrics::new().render(&snapshot, GatewayGauges::default(), None);
    let page = ReadPage::read(&text);
    let states = |state| page.count("toolway_servers", &[("state", state)]);
    assert_eq!(
        (states("pending"), states("disabled"), states("connected")),
        (1, 2, 0)
    );
    assert_eq!(page.count("toolway_connection_panics_total", &[]), 6);
}
