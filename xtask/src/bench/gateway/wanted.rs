//! Which figures of the gateways are shown, and what is wanted of each.

/// What is wanted of a figure.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// At most so many times the floor.
    AtMost(f64),
    /// At least so many times the floor.
    AtLeast(f64),
    /// At most so much, whatever the floor.
    Below(f64),
    /// Shown, and not judged.
    None,
}

/// One figure of Toolway: what it is, its name in the samples, its unit, what is wanted.
pub(super) const FIGURES: &[(&str, &str, &str, Target)] = &[
    ("a call, one CPU, p50", "one p50", "µs", Target::AtMost(1.5)),
    ("a call, two CPUs, p50", "two p50", "µs", Target::None),
    ("calls/s, 1 in flight", "two rate 1", "", Target::None),
    (
        "calls/s, 16 in flight",
        "two rate 16",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "calls/s, 64 in flight",
        "two rate 64",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "CPU of a call, one CPU",
        "one cpu 1",
        "µs",
        Target::AtMost(1.5),
    ),
    (
        "CPU of a call, 16 in flight",
        "two cpu 16",
        "µs",
        Target::None,
    ),
    ("a result of 10 MB", "big ms", "ms", Target::AtMost(1.5)),
    (
        "a list of 2,000 tools, CPU",
        "list cpu ms",
        "ms",
        Target::Below(1.0),
    ),
    ("idle memory, 1 server", "idle 1", "MB", Target::Below(12.0)),
    (
        "idle memory, 20 servers",
        "idle 20",
        "MB",
        Target::Below(14.0),
    ),
    (
        "idle memory, 100 servers",
        "idle 100",
        "MB",
        Target::Below(20.0),
    ),
    (
        "the same with 1 server, without pages of the program's file",
        "idle 1, own",
        "MB",
        Target::None,
    ),
    (
        "the same with 100 servers",
        "idle 100, own",
        "MB",
        Target::None,
    ),
    (
        "with 100 servers and helper processes, PSS",
        "idle 100, helpers too",
        "MB",
        Target::None,
    ),
    (
        "all of 100 servers listed after",
        "ready 100",
        "ms",
        Target::None,
    ),
    ("an idle session", "session KB", "KB", Target::Below(20.0)),
];

/// A figure of Toolway beside another of its own: what, the two names, the unit, what is wanted.
pub(super) const OWN: &[(&str, &str, &str, &str, Target)] = &[
    (
        "memory after 10 MB, beside before",
        "memory after big",
        "memory before big",
        "MB",
        Target::AtMost(1.25),
    ),
    (
        "a call through 2,000 tools, beside 10",
        "p50 2000 tools",
        "p50 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "a call through 20,000 tools, beside 10",
        "p50 20000 tools",
        "p50 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "its CPU through 20,000 tools, beside 10",
        "cpu 20000 tools",
        "cpu 10 tools",
        "µs",
        Target::AtMost(1.1),
    ),
    (
        "p99 beside clients that never read, beside alone",
        "p99 beside clients that never read",
        "p99 before clients that never read",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside a slow client, beside alone",
        "p99 beside a slow client",
        "p99 before a slow client",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside 10,000 junk connections, beside alone",
        "p99 beside junk connections",
        "p99 before junk connections",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "p99 beside reloads and list changes, beside alone",
        "p99 beside reloads",
        "p99 before reloads",
        "µs",
        Target::AtMost(2.0),
    ),
    (
        "a call beside the idle sessions",
        "p50 beside sessions",
        "two p50",
        "µs",
        Target::None,
    ),
];

/// Figures of both eras that also stand beside the floor of one message at a time: what, its name in
/// the samples, its unit, what is wanted.
pub(super) const STEPWISE: &[(&str, &str, &str, Target)] = &[
    ("a call, one CPU, p50", "one p50", "µs", Target::AtMost(1.5)),
    (
        "CPU of a call, one CPU",
        "one cpu 1",
        "µs",
        Target::AtMost(1.5),
    ),
    (
        "CPU of a call, 16 in flight",
        "two cpu 16",
        "µs",
        Target::None,
    ),
    (
        "calls/s, 16 in flight",
        "two rate 16",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "calls/s, 64 in flight",
        "two rate 64",
        "",
        Target::AtLeast(0.7),
    ),
    (
        "calls/s, 16 in flight, one CPU",
        "one rate 16",
        "",
        Target::None,
    ),
];

/// The columns of the last table.
pub(super) const COLUMNS: &[(&str, &str)] = &[
    ("one CPU: p50 µs", "one p50"),
    ("two CPUs: p50 µs", "two p50"),
    ("calls/s c=1", "two rate 1"),
    ("c=16", "two rate 16"),
    ("c=64", "two rate 64"),
    ("one CPU: c=16", "one rate 16"),
    ("CPU µs/call", "one cpu 1"),
    ("c=16", "two cpu 16"),
    ("10 MB ms", "big ms"),
    ("list of 2,000: CPU ms", "list cpu ms"),
    ("MB idle", "idle 1"),
    ("after 10 MB", "memory after big"),
    ("most", "memory peak"),
    ("KB a session", "session KB"),
];
