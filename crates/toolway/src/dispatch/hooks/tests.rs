//! Hooks around whole calls over a scripted route: functions and tools here, programs in
//! `tests/programs.rs`, what they print in `tests/replies.rs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolway_config::HookEvent;
use toolway_types::Origin;

use super::{HookInput, HookReply, LibraryHook};
use crate::call::{
    CallError, CallFault, CallOptions, Consent, PermissionAnswer, PermissionQuestion, Prompter,
    RefusedBy, ToolOutcome,
};
use crate::dispatch::tests::scene::{Scene, settings};
use crate::error::RequestError;

mod programs;
mod replies;

pub(super) fn typed() -> CallOptions {
    CallOptions::new(Consent::Typed)
}

fn asked() -> CallOptions {
    CallOptions::new(Consent::Prompt)
}

pub(super) fn hello() -> Value {
    json!({"content": [{"type": "text", "text": "hello"}]})
}

/// A function hook that always says the same.
fn says(name: &str, event: HookEvent, reply: HookReply) -> LibraryHook {
    LibraryHook::new(name, event, "", move |_| {
        std::future::ready(Ok(reply.clone()))
    })
    .unwrap()
}

fn before(name: &str, reply: HookReply) -> LibraryHook {
    says(name, HookEvent::PreToolUse, reply)
}

fn after(name: &str, reply: HookReply) -> LibraryHook {
    says(name, HookEvent::PostToolUse, reply)
}

pub(super) fn refusal(result: Result<ToolOutcome, CallError>) -> RefusedBy {
    match result {
        Err(CallError::Failed(_, CallFault::Refused(by))) => by,
        other => panic!("{other:?}"),
    }
}

fn by_function(name: &str, reason: &str) -> RefusedBy {
    RefusedBy::Hook {
        origin: Origin::Program,
        title: name.into(),
        reason: reason.into(),
    }
}

#[tokio::test]
async fn deny_beats_ask_beats_allow_whatever_the_order() {
    let (allow, ask, deny) = (
        || before("a", HookReply::allow()),
        || before("b", HookReply::ask("sure?")),
        || before("c", HookReply::deny("never")),
    );
    let no = by_function("c", "never");
    for hooks in [
        vec![allow(), ask(), deny()],
        vec![deny(), ask(), allow()],
        vec![ask(), deny()],
    ] {
        let scene = Scene::answering(hello()).library(hooks);
        // Not even for what a person typed, and in no mode.
        let scene = scene.permissions(&json!({"defaultMode": "bypass", "allow": ["mcp__s"]}));
        assert_eq!(refusal(scene.call("do.it", typed()).await), no);
        assert_eq!(scene.sent(), []);
    }
    for hooks in [vec![allow(), ask()], vec![ask(), allow()]] {
        let scene = Scene::answering(hello()).library(hooks);
        // The user who typed the call could not know what the hook has against it.
        for options in [asked(), typed()] {
            assert_eq!(
                refusal(scene.call("do.it", options).await),
                RefusedBy::NobodyForHook {
                    origin: Origin::Program,
                    title: "b".into(),
                    reason: Some("sure?".into()),
                }
            );
        }
    }
    let scene = Scene::answering(hello()).library(vec![allow()]);
    scene.call("do.it", asked()).await.unwrap();
}

#[tokio::test]
async fn rules_and_hooks_are_weighed_together() {
    let with = |rules: Value, hook| {
        Scene::answering(hello())
            .library(vec![before("h", hook)])
            .permissions(&rules)
    };
    let rule = |word: &str| {
        let rule = "mcp__s".to_owned();
        match word {
            "deny" => RefusedBy::Rule {
                rule,
                origin: settings(),
            },
            _ => RefusedBy::NobodyToAsk {
                rule: Some((rule, settings())),
            },
        }
    };
    // A hook's yes beats neither a deny nor an ask rule.
    for word in ["deny", "ask"] {
        let scene = with(json!({ word: ["mcp__s"] }), HookReply::allow());
        assert_eq!(refusal(scene.call("do.it", asked()).await), rule(word));
    }
    // A deny rule is named before a hook's no, a hook's no before an ask rule.
    let scene = with(json!({"deny": ["mcp__s"]}), HookReply::deny("x"));
    assert_eq!(refusal(scene.call("do.it", typed()).await), rule("deny"));
    let scene = with(json!({"ask": ["mcp__s"]}), HookReply::deny("x"));
    assert_eq!(
        refusal(scene.call("do.it", typed()).await),
        by_function("h", "x")
    );
    // A hook that wants a person asked beats an allow rule and the mode.
    for rules in [
        json!({"allow": ["mcp__s"]}),
        json!({"defaultMode": "bypass"}),
    ] {
        let scene = with(rules, HookReply::ask("look"));
        assert!(matches!(
            refusal(scene.call("do.it", asked()).await),
            RefusedBy::NobodyForHook { .. }
        ));
    }
}

struct Person;

impl Prompter for Person {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        assert_eq!(question.hook, Some("the hook `h` in (program): look at it"));
        assert_eq!(question.arguments.get("n"), Some(&json!(7)));
        Box::pin(std::future::ready(PermissionAnswer::Yes))
    }
}

#[tokio::test]
async fn a_person_sees_the_hook_that_asks_and_the_arguments_it_wrote() {
    let reply = HookReply {
        updated_input: json!({"n": 7}).as_object().cloned(),
        ..HookReply::ask("look\nat it")
    };
    let mut scene = Scene::answering(hello()).library(vec![before("h", reply)]);
    scene.prompter = Some(Box::new(Person));
    scene.call("do.it", asked()).await.unwrap();
    assert_eq!(
        scene.sent()[0].params,
        r#"{"name":"do.it","arguments":{"n":7}}"#
    );
}

fn rewriting(name: &str, arguments: &Value) -> LibraryHook {
    let reply = HookReply {
        updated_input: arguments.as_object().cloned(),
        ..HookReply::default()
    };
    before(name, reply)
}

#[tokio::test]
async fn rewritten_arguments_are_validated_and_judged_like_any_others() {
    let wrong = rewriting("w", &json!({"n": "many"}));
    let scene = Scene::answering(hello()).library(vec![wrong]);
    let reason =
        "the arguments it wrote do not fit the tool: `/n`: value is not of type \"integer\"";
    assert_eq!(
        refusal(scene.call("do.it", typed()).await),
        by_function("w", reason)
    );
    assert_eq!(scene.sent(), []);
    // The rules see what will be sent.
    let scene = Scene::answering(hello())
        .library(vec![rewriting("w", &json!({"text": "secret"}))])
        .permissions(&json!({"deny": ["mcp__s__do.it(text:secret)"]}));
    assert!(matches!(
        refusal(scene.call("do.it", typed()).await),
        RefusedBy::Rule { .. }
    ));
}

#[tokio::test]
async fn of_two_that_rewrite_the_last_counts_and_it_is_said() {
    let hooks = vec![
        rewriting("one", &json!({"n": 1})),
        rewriting("two", &json!({"n": 2})),
    ];
    let scene = Scene::answering(hello()).library(hooks);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(
        scene.sent()[0].params,
        r#"{"name":"do.it","arguments":{"n":2}}"#
    );
    assert_eq!(
        outcome.warnings,
        [
            "the hook `one` in (program) rewrote the arguments, and so did the hook `two` in \
             (program): the latter's were sent"
        ]
    );
}

#[tokio::test]
async fn hooks_run_side_by_side() {
    let barrier = Arc::new(Barrier::new(3));
    let hooks = (0..3)
        .map(|number| {
            let barrier = Arc::clone(&barrier);
            LibraryHook::new(format!("{number}"), HookEvent::PreToolUse, "", move |_| {
                let barrier = Arc::clone(&barrier);
                async move {
                    // None passes before all are there.
                    barrier.wait().await;
                    Ok(HookReply {
                        additional_context: Some(format!("hook {number}")),
                        ..HookReply::default()
                    })
                }
            })
            .unwrap()
        })
        .collect();
    let scene = Scene::answering(hello()).library(hooks);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    // In their order, whichever was first.
    assert_eq!(outcome.context, ["hook 0", "hook 1", "hook 2"]);
}

#[tokio::test(start_paused = true)]
async fn rel_30_a_function_that_hangs_fails_or_panics_refuses_the_call() {
    type Bad = fn(HookInput) -> BoxFuture<'static, Result<HookReply, String>>;
    let bad: [(Bad, &str); 3] = [
        (
            |_| Box::pin(std::future::pending()),
            "it did not end within 3s",
        ),
        (
            |_| Box::pin(std::future::ready(Err("no\nidea".to_owned()))),
            "no idea",
        ),
        (|_| panic!("on purpose"), "it panicked"),
    ];
    for (function, reason) in bad {
        let hook = |event| {
            LibraryHook::new("h", event, "*", function)
                .unwrap()
                .timeout(Duration::from_secs(3))
        };
        let scene = Scene::answering(hello()).library(vec![hook(HookEvent::PreToolUse)]);
        assert_eq!(
            refusal(scene.call("do.it", typed()).await),
            by_function("h", reason)
        );
        assert_eq!(scene.sent(), []);
        // After a call there is nothing left to refuse.
        let scene = Scene::answering(hello()).library(vec![hook(HookEvent::PostToolUse)]);
        let outcome = scene.call("do.it", typed()).await.unwrap();
        let warning = format!("the hook `h` in (program) failed: {reason}");
        assert_eq!(outcome.warnings, [warning]);
    }
}

#[tokio::test]
async fn a_matcher_takes_names_lists_and_expressions_in_any_spelling() {
    let concerned = |matcher: &str| {
        let deny = |_| std::future::ready(Ok(HookReply::deny("x")));
        let hook = LibraryHook::new("h", HookEvent::PreToolUse, matcher, deny).unwrap();
        let scene = Scene::answering(hello()).library(vec![hook]);
        async move { scene.call("do.it", typed()).await.is_err() }
    };
    for matcher in [
        "",
        "*",
        "mcp__s__do_it",
        "mcp__s__do.it",
        "mcp__x | mcp__s__do_it",
        "mcp__s__.*",
        "mcp__(s|t)__do.+",
        "mcp__s",
        "mcp__s__*",
        "MCP__S__Do_It",
    ] {
        assert!(concerned(matcher).await, "{matcher}");
    }
    for matcher in ["mcp__t__.*", "do_it", "mcp__t", "mcp__s__do"] {
        assert!(!concerned(matcher).await, "{matcher}");
    }
    let bad = LibraryHook::new("h", HookEvent::PreToolUse, "(", |_| {
        std::future::ready(Ok(HookReply::default()))
    });
    assert!(bad.unwrap_err().to_string().starts_with("the matcher `(`"));
}

#[tokio::test]
async fn what_hooks_say_after_a_call_comes_with_the_outcome() {
    let hooks = vec![
        before(
            "b",
            HookReply {
                additional_context: Some("before\u{1b}[31m".to_owned()),
                ..HookReply::default()
            },
        ),
        after(
            "c",
            HookReply {
                additional_context: Some("after".to_owned()),
                system_message: Some("to the person".to_owned()),
                ..HookReply::deny("looks odd")
            },
        ),
    ];
    let scene = Scene::answering(hello()).library(hooks);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(
        outcome.context,
        [
            "before",
            "after",
            "the hook `c` in (program) objects: looks odd"
        ]
    );
    assert_eq!(
        outcome.warnings,
        ["the hook `c` in (program) says: to the person"]
    );
    assert_eq!(outcome.replaced_by, None);
}

#[tokio::test]
async fn output_in_the_place_of_the_result_is_shown_and_the_raw_result_stays() {
    let cases = [
        (json!("clean"), "clean"),
        (json!([{"type": "text", "text": "blocks"}]), "blocks"),
        (
            json!({"content": [{"type": "text", "text": "whole"}]}),
            "whole",
        ),
        (json!({"a": 1}), r#"{"a":1}"#),
    ];
    for (output, shown) in cases {
        let reply = HookReply {
            updated_tool_output: Some(output),
            ..HookReply::default()
        };
        let scene = Scene::answering(hello()).library(vec![after("r", reply)]);
        let outcome = scene.call("do.it", typed()).await.unwrap();
        assert_eq!(outcome.raw.get(), hello().to_string());
        let by = outcome.replaced_by.as_deref();
        assert_eq!(by, Some("the hook `r` in (program)"));
        match &outcome.result().content[..] {
            [toolway_wire::view::ContentBlock::Text { text }] => assert_eq!(text, shown),
            other => panic!("{other:?}"),
        }
    }
    let reply = HookReply {
        updated_tool_output: Some(json!({"content": 3})),
        ..HookReply::default()
    };
    let scene = Scene::answering(hello()).library(vec![after("r", reply)]);
    let outcome = scene.call("do.it", typed()).await.unwrap();
    assert_eq!(outcome.replaced_by, None);
    assert_eq!(
        outcome.warnings,
        ["the output that the hook `r` in (program) gave is no result"]
    );
}

/// Hooks that write down what they are told.
fn listening(events: &[HookEvent]) -> (Vec<LibraryHook>, Arc<std::sync::Mutex<Vec<Value>>>) {
    let told: Arc<std::sync::Mutex<Vec<Value>>> = Arc::default();
    let hooks = events
        .iter()
        .map(|event| {
            let told = Arc::clone(&told);
            LibraryHook::new("listener", *event, "", move |input| {
                let mut value = serde_json::to_value(&input).unwrap();
                value.as_object_mut().unwrap().remove("session_id");
                let caller = value.as_object_mut().unwrap().remove("caller").unwrap();
                assert_eq!(
                    caller,
                    json!({ "id": "owner", "kind": "person", "principal": "owner", "shown": "owner" })
                );
                told.lock().unwrap().push(value);
                std::future::ready(Ok(HookReply::default()))
            })
            .unwrap()
        })
        .collect();
    (hooks, told)
}

#[tokio::test]
async fn each_event_is_told_what_it_is_about() {
    let events = [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostToolUseFailure,
    ];
    let told_of = async |scene: Scene| {
        let (hooks, told) = listening(&events);
        let scene = scene.library(hooks);
        let _ = scene.call("do.it", typed()).await;
        std::mem::take(&mut *told.lock().unwrap())
    };
    let call = json!({
        "cwd": "", "tool_input": {"n": 1, "text": "x"}, "server": "s", "tool": "do.it",
        "tool_name": told_of(Scene::answering(hello())).await[0]["tool_name"],
    });
    let with = |more: Value| {
        let mut all = call.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::Object(all)
    };
    let pre = with(json!({"hook_event_name": "PreToolUse"}));
    assert_eq!(
        told_of(Scene::answering(hello())).await,
        [
            pre.clone(),
            with(json!({"hook_event_name": "PostToolUse", "tool_response": hello()}))
        ]
    );
    let error = json!({"content": [], "isError": true});
    assert_eq!(
        told_of(Scene::answering(error.clone())).await,
        [
            pre.clone(),
            with(json!({
                "hook_event_name": "PostToolUseFailure", "tool_response": error,
                "error": "the tool answered an error",
            }))
        ]
    );
    for (scene, message) in [
        (
            Scene::failing(|| RequestError::TimedOut),
            "`do.it` of server `s` did not answer within 100s",
        ),
        (
            Scene::answering(json!("no result")),
            "server `s` answered `do.it` with something that is no result: ",
        ),
    ] {
        let told = told_of(scene).await;
        assert_eq!(told[0], pre);
        assert_eq!(told.len(), 2);
        assert_eq!(told[1]["hook_event_name"], "PostToolUseFailure");
        let error = told[1]["error"].as_str().unwrap();
        assert!(error.starts_with(message), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_is_refused_is_no_failed_call() {
    let (mut hooks, told) = listening(&[HookEvent::PostToolUseFailure]);
    hooks.push(before("no", HookReply::deny("x")));
    let scene = Scene::answering(hello()).library(hooks);
    refusal(scene.call("do.it", typed()).await);
    assert_eq!(*told.lock().unwrap(), [] as [Value; 0]);
}

fn tool_hook(tool: &str, input: &Value) -> Value {
    json!({"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "mcp_tool", "server": "s", "tool": tool, "input": input},
    ]}]})
}

fn answers(text: &'static str) -> Scene {
    Scene::by_tool(move |tool| match tool {
        "guard" => json!({"content": [{"type": "text", "text": text}]}),
        _ => hello(),
    })
}

#[tokio::test]
async fn a_tool_is_asked_with_its_input_filled_in_and_is_no_matter_for_hooks_itself() {
    let input = json!({
        "whole": "${tool_input}", "n": "${tool_input.n}", "says": "${tool_name}: ${tool_input.n}!",
        "plain": "$n {x} ${", "list": ["${server}"],
    });
    let scene = answers("").hooks(&tool_hook("guard", &input));
    scene.call("do.it", typed()).await.unwrap();
    let sent = scene.sent();
    // Once for the hook, once for the call: the hook on everything did not see its own tool.
    assert_eq!(sent.len(), 2);
    let guard: Value = serde_json::from_str(&sent[0].params).unwrap();
    let arguments = &guard["arguments"];
    assert_eq!(guard["name"], "guard");
    assert_eq!(arguments["whole"], json!({"n": 1, "text": "x"}));
    assert_eq!(arguments["n"], 1);
    let says = arguments["says"].as_str().unwrap();
    assert!(
        says.starts_with("mcp__s__do_it") && says.ends_with(": 1!"),
        "{says}"
    );
    assert_eq!(arguments["plain"], "$n {x} ${");
    assert_eq!(arguments["list"], json!(["s"]));
}

#[tokio::test]
async fn a_tool_decides_as_a_program_would() {
    let deny = r#"{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not now"}}"#;
    let scene = answers(deny).hooks(&tool_hook("guard", &json!({})));
    assert_eq!(
        refusal(scene.call("do.it", typed()).await),
        RefusedBy::Hook {
            origin: settings(),
            title: "s.guard".into(),
            reason: "not now".into(),
        }
    );
}

#[tokio::test]
async fn rel_30_a_tool_that_cannot_be_asked_refuses_the_call() {
    let reason = async |scene: Scene, tool: &str, input: Value| {
        let scene = scene.hooks(&tool_hook(tool, &input));
        match refusal(scene.call("do.it", typed()).await) {
            RefusedBy::Hook { reason, .. } => reason.into_string(),
            other => panic!("{other:?}"),
        }
    };
    let none = json!({});
    assert_eq!(
        reason(answers("all is well"), "guard", none.clone()).await,
        "it printed something that is not one JSON object"
    );
    assert_eq!(
        reason(answers(""), "missing", none.clone()).await,
        "no tool `s.missing`"
    );
    assert_eq!(
        reason(answers(""), "guard", json!({"x": "${tool_input.absent}"})).await,
        "there is no `tool_input.absent` for its `input`"
    );
    let denied = answers("").permissions(&json!({"deny": ["mcp__s__guard"]}));
    assert_eq!(
        reason(denied, "guard", none.clone()).await,
        "`guard` of server `s` was refused by the rule `mcp__s__guard` in /home/u/settings.json:4"
    );
    let failing = Scene::by_tool(
        |_| json!({"isError": true, "content": [{"type": "text", "text": "broken"}]}),
    );
    assert_eq!(
        reason(failing, "guard", none).await,
        "it answered an error: broken"
    );
}

/// A person who must not be asked.
struct Undisturbed;

impl Prompter for Undisturbed {
    fn ask<'a>(&'a self, question: &'a PermissionQuestion<'a>) -> BoxFuture<'a, PermissionAnswer> {
        panic!("{question:?}");
    }
}

#[tokio::test]
async fn sec_33_a_hooks_tool_that_changed_asks_nobody_and_says_how_it_is_accepted() {
    let mut scene = Scene::by_tool(|tool| match tool {
        "do.it" => json!({"content": []}),
        _ => hello(),
    });
    scene.prompter = Some(Box::new(Undisturbed));
    let scene = scene.hooks(&tool_hook("do.it", &json!({})));
    scene.call("guard", typed()).await.unwrap();
    "changed".clone_into(&mut scene.described.lock().unwrap());
    assert_eq!(
        refusal(scene.call("guard", typed()).await),
        RefusedBy::Hook {
            origin: settings(),
            title: "s.do.it".into(),
            reason: "its tool `do.it` of server `s` is not defined any more as it was when it was \
                     permitted (+ description: changed); once you have read that, accept it with \
                     `toolway call s do.it … --accept-change`"
                .into(),
        }
    );
    assert_eq!(scene.sent().len(), 2);
}
