//! Hooks that are real programs: what they get, how they decide, and every way they go wrong.

use std::time::Duration;

use serde_json::{Value, json};
use toolway_testkit::Canary;

use super::{hello, refusal, typed};
use crate::call::RefusedBy;
use crate::dispatch::tests::scene::{Scene, settings};

fn command(event: &str, line: &str) -> Value {
    json!({ event: [{"matcher": "mcp__s__.*", "hooks": [
        {"type": "command", "command": line, "timeout": 20},
    ]}] })
}

/// A scene with this hook before every call, and a mark on every process it starts.
fn guarded(line: &str, canary: &Canary) -> Scene {
    Scene::answering(hello())
        .hooks(&command("PreToolUse", line))
        .hooks_in(&[(canary.name(), canary.value())])
}

async fn reason(scene: &Scene) -> String {
    match refusal(scene.call("do.it", typed()).await) {
        RefusedBy::Hook { reason, origin, .. } => {
            assert_eq!(origin, settings());
            assert_eq!(scene.sent(), [], "a refused call was sent");
            reason.into_string()
        }
        other => panic!("{other:?}"),
    }
}

/// A process that was killed may take a moment to be gone.
async fn until_gone(canary: &Canary) {
    let gone = async {
        while !canary.processes().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_silent_program_has_no_opinion_and_gets_the_call_on_its_stdin() {
    let canary = Canary::new();
    let scene = guarded("cat > told.json; pwd > place", &canary);
    scene.call("do.it", typed()).await.unwrap();
    let told = std::fs::read_to_string(scene.output.path().join("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "PreToolUse");
    assert_eq!(told["tool_input"], json!({"n": 1, "text": "x"}));
    assert_eq!(
        (&told["server"], &told["tool"]),
        (&json!("s"), &json!("do.it"))
    );
    assert_ne!(told["session_id"], "");
    let place = std::fs::read_to_string(scene.output.path().join("place")).unwrap();
    assert_eq!(told["cwd"], place.trim());
}

#[tokio::test]
async fn exit_code_2_blocks_with_stderr_as_the_reason() {
    let canary = Canary::new();
    let scene = guarded("echo ignored; echo 'not on\nFridays' >&2; exit 2", &canary);
    assert_eq!(reason(&scene).await, "not on Fridays");
    assert_eq!(
        reason(&guarded("exit 2", &canary)).await,
        "it gives no reason"
    );
    let scene = guarded("exit 2", &canary);
    let message = scene.call("do.it", typed()).await.unwrap_err().to_string();
    assert_eq!(
        message,
        "`do.it` of server `s` was refused by the hook `exit 2` in /home/u/settings.json:4: \
         it gives no reason"
    );
}

#[tokio::test]
async fn a_program_rewrites_the_arguments() {
    let line = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"n": 9}}}'"#;
    let scene = guarded(line, &Canary::new());
    scene.call("do.it", typed()).await.unwrap();
    assert_eq!(
        scene.sent()[0].params,
        r#"{"name":"do.it","arguments":{"n":9}}"#
    );
}

#[tokio::test]
async fn words_given_apart_meet_no_shell() {
    let hooks = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "sh", "args": ["-c", "echo \"$1\" >&2; exit 2", "sh", "$(id)"]},
    ]}]});
    let scene = Scene::answering(hello()).hooks(&hooks).hooks_in(&[]);
    assert_eq!(reason(&scene).await, "$(id)");
}

#[tokio::test]
async fn rel_30_a_hook_that_hangs_is_killed_and_the_call_refused() {
    let canary = Canary::new();
    let hooks = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "setsid sleep 1000 & sleep 1000", "timeout": 0.2},
    ]}]});
    let scene = Scene::answering(hello())
        .hooks(&hooks)
        .hooks_in(&[(canary.name(), canary.value())]);
    assert_eq!(
        reason(&scene).await,
        "it did not end within 200ms and was killed"
    );
    until_gone(&canary).await;
}

#[tokio::test]
async fn rel_30_every_other_failure_refuses_too_and_names_itself() {
    let canary = Canary::new();
    for (line, expected) in [
        ("exit 1", "it failed (exit status: 1)"),
        (
            "echo 'no route' >&2; exit 7",
            "it failed (exit status: 7): no route",
        ),
        ("kill -9 $$", "it failed (signal: 9 (SIGKILL))"),
        (
            "echo all is well",
            "it printed something that is not one JSON object",
        ),
        (
            "printf '\\377\\376'",
            "it printed something that is not text",
        ),
        (
            "yes '{}'",
            "it printed more than 1048576 bytes and was killed",
        ),
        (
            "head -c 1073741824 /dev/zero",
            "it printed more than 1048576 bytes and was killed",
        ),
        (
            "exec /nonexistent/guard 2>/dev/null",
            "it failed (exit status: 127)",
        ),
    ] {
        assert_eq!(reason(&guarded(line, &canary)).await, expected, "{line}");
    }
    until_gone(&canary).await;
    let missing = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "/nonexistent/guard", "args": []},
    ]}]});
    let scene = Scene::answering(hello()).hooks(&missing).hooks_in(&[]);
    assert_eq!(
        reason(&scene).await,
        "cannot start `/nonexistent/guard`: no such program, or its interpreter is missing"
    );
}

#[tokio::test]
async fn rel_30_a_hook_whose_children_hold_its_output_open_is_believed_and_swept() {
    let canary = Canary::new();
    let scene = guarded("setsid sleep 1000 & sleep 1000 & echo '{}'", &canary);
    scene.call("do.it", typed()).await.unwrap();
    until_gone(&canary).await;
}

#[tokio::test]
async fn rel_30_a_call_that_is_dropped_takes_its_hooks_along() {
    let canary = Canary::new();
    let scene = guarded("setsid sleep 1000 & sleep 1000", &canary);
    let seen = async {
        while canary.processes().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = scene.call("do.it", typed()) => panic!("{outcome:?}"),
        seen = tokio::time::timeout(Duration::from_mins(1), seen) => seen.unwrap(),
    }
    until_gone(&canary).await;
}

#[tokio::test]
async fn a_hook_that_could_not_be_read_refuses_what_it_may_concern() {
    let origin = settings();
    let value =
        json!({"PreToolUse": [{"matcher": "mcp__s__.*", "hooks": [{"type": "telepathy"}]}]});
    let scope = toolway_types::Scope::User;
    let (hooks, _) = toolway_config::Hooks::parse(&value, &origin, scope);
    let scene = Scene::answering(hello()).with_hooks(hooks);
    assert_eq!(
        reason(&scene).await,
        "the hook type `telepathy` is neither `command` nor `mcp_tool`"
    );
}

#[tokio::test]
async fn programs_run_side_by_side() {
    // Each waits for the other's sign of life: one after the other, neither would ever end.
    let meet = |mine: &str, theirs: &str| {
        let line = format!(": > {mine}; until [ -e {theirs} ]; do :; done");
        json!({"type": "command", "command": line, "timeout": 60})
    };
    let hooks = json!({"PreToolUse": [{"hooks": [meet("a", "b"), meet("b", "a")]}]});
    let scene = Scene::answering(hello()).hooks(&hooks).hooks_in(&[]);
    scene.call("do.it", typed()).await.unwrap();
}

#[tokio::test]
async fn after_a_call_a_program_may_replace_its_output_and_its_failure_is_a_warning() {
    let line = r#"sed 's/.*"text":"\([a-z]*\)".*/\1/' | tr a-z A-Z | sed 's/.*/{"hookSpecificOutput": {"updatedToolOutput": "&"}}/'"#;
    let scene = Scene::answering(json!({"content": [{"type": "text", "text": "hello"}]}))
        .hooks(&command("PostToolUse", line))
        .hooks_in(&[]);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    match &outcome.result().content[..] {
        [toolway_wire::view::ContentBlock::Text { text }] => assert_eq!(text, "HELLO"),
        other => panic!("{other:?}"),
    }
    let scene = Scene::answering(hello())
        .hooks(&command("PostToolUse", "exit 1"))
        .hooks_in(&[]);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    let warning = "the hook `exit 1` in /home/u/settings.json:4 failed: it failed (exit status: 1)";
    assert_eq!(outcome.warnings, [warning]);
    let scene = Scene::answering(hello())
        .hooks(&command("PostToolUse", "echo unusual >&2; exit 2"))
        .hooks_in(&[]);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(outcome.context.len(), 1);
    assert!(
        outcome.context[0].ends_with("objects: unusual"),
        "{:?}",
        outcome.context
    );
}
