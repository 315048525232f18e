//! Five hundred servers in twenty files: everything is there, each with its own line.

use std::fmt::Write as _;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use toolway_config::Flags;

use crate::Stage;

fn many(stage: &Stage) -> Flags {
    let mut mcp_config = Vec::new();
    for file in 0..20 {
        let mut text = "{\n  \"mcpServers\": {\n".to_owned();
        for entry in 0..25 {
            let _ = writeln!(
                text,
                "    \"s{file}-{entry}\": {{\"command\": \"npx\", \"args\": [\"-y\", \"server-{entry}\"], \"env\": {{\"TOKEN\": \"${{SECRET}}\"}}}},",
            );
        }
        text.push_str("  }\n}\n");
        let path = stage.write(&format!("many/{file}.json"), &text);
        mcp_config.push(path.display().to_string());
    }
    Flags {
        mcp_config,
        ..Flags::default()
    }
}

#[test]
fn five_hundred_servers_in_twenty_files_are_all_admitted() {
    let stage = Stage::new();
    let flags = many(&stage);
    let plan = stage.plan_with(&flags);
    assert_eq!(plan.admitted().count(), 500);
    for (server, _) in plan.admitted() {
        let (_, entry) = server.name.as_str().split_once('-').unwrap();
        let entry: u32 = entry.parse().unwrap();
        assert_eq!(server.origin.line(), Some(entry + 3));
    }
}

/// Plans for a repository with this `.mcp.json`; says how much of a processor that took, which
/// does not depend on what else the machine does, and how much there was to say.
fn work_of(text: &str) -> (Duration, usize) {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(now).unwrap()
    };
    let stage = Stage::new();
    stage.project(text);
    let before = now();
    let findings = stage.plan().all_diagnoses().count();
    (now().saturating_sub(before), findings)
}

type Case<'a> = (&'a str, &'a dyn Fn(usize) -> String);

#[test]
fn sec_01_a_repository_cannot_keep_a_command_busy_or_flood_its_output() {
    let many = |count: usize, one: &dyn Fn(usize) -> String| {
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    let unique = |count| many(count, &|i| format!(r#""k{i}": 1"#));
    let same = |count: usize| many(count, &|_| format!(r#""k{}": 1"#, count - 1));
    let entry =
        |inside: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "x", {inside}}}}}}}"#);
    let cases: [Case<'_>; 5] = [
        ("keys of the root", &|count| {
            format!("{{{}}}", unique(count))
        }),
        ("doubled keys of the root", &|count| {
            format!("{{{}, {}}}", unique(count), same(count))
        }),
        ("doubled variables", &|count| {
            entry(&format!(r#""env": {{{}, {}}}"#, unique(count), same(count)))
        }),
        ("wrong headers", &|count| {
            entry(&format!(r#""headers": {{{}}}"#, unique(count)))
        }),
        ("a long key", &|count| {
            entry(&format!(r#""{}": 1"#, "k".repeat(count * 100)))
        }),
    ];
    for (what, text) in cases {
        let (little, _) = work_of(&text(5_000));
        let (much, findings) = work_of(&text(30_000));
        // Six times as much is six times the work, and thirty-six times where it grows as the
        // square.
        let ratio = much.as_secs_f64() / little.as_secs_f64().max(0.001);
        assert!(ratio < 18.0, "{what}: {little:?}, then {much:?}");
        assert!(findings < 100, "{what} led to {findings} findings");
    }
}
