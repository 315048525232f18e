//! Five hundred servers in twenty files: everything is there, each with its own line.

use std::fmt::Write as _;

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

/// Plans for a repository with this `.mcp.json`; says how long that took.
fn time_of(text: &str) -> (std::time::Duration, usize) {
    let stage = Stage::new();
    stage.project(text);
    let started = std::time::Instant::now();
    let findings = stage.plan().all_diagnoses().count();
    (started.elapsed(), findings)
}

#[test]
fn sec_01_a_repository_cannot_keep_a_command_busy_or_flood_its_output() {
    let many = |one: &dyn Fn(usize) -> String| (0..60_000).map(one).collect::<Vec<_>>().join(",");
    let unique = many(&|i| format!(r#""k{i}": 1"#));
    let same = many(&|_| r#""k59999": 1"#.to_owned());
    let entry =
        |inside: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "x", {inside}}}}}}}"#);
    for (what, text) in [
        ("keys of the root", format!("{{{unique}}}")),
        ("doubled keys of the root", format!("{{{unique}, {same}}}")),
        (
            "doubled variables",
            entry(&format!(r#""env": {{{unique}, {same}}}"#)),
        ),
        (
            "wrong headers",
            entry(&format!(r#""headers": {{{unique}}}"#)),
        ),
        (
            "a long key",
            entry(&format!(r#""{}": 1"#, "k".repeat(4_000_000))),
        ),
    ] {
        let (time, findings) = time_of(&text);
        // Seconds, where the square of the number would take minutes.
        assert!(time.as_secs() < 20, "{what} took {time:?}");
        assert!(findings < 100, "{what} led to {findings} findings");
    }
}
