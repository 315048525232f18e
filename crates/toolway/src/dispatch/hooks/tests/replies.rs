//! What hooks print, read.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolway_config::HookEvent;

use crate::client_handler::ElicitationAnswer;
use crate::dispatch::hooks::{HookDecision, HookReply};

fn read(said: &Value) -> Result<HookReply, String> {
    HookReply::parse(HookEvent::PreToolUse, &said.to_string())
}

#[test]
fn nothing_and_nothing_of_interest_are_no_opinion() {
    for text in [
        "",
        " \n",
        "{}",
        r#"{"suppressOutput": true, "continue": true, "x": [1]}"#,
    ] {
        let said = HookReply::parse(HookEvent::PreToolUse, text);
        assert_eq!(said, Ok(HookReply::default()), "{text}");
    }
    let nulls = json!({"decision": null, "continue": null, "hookSpecificOutput": {
        "permissionDecision": null, "updatedInput": null, "updatedToolOutput": null,
    }});
    assert_eq!(read(&nulls), Ok(HookReply::default()));
}

#[test]
fn everything_that_can_be_said_is_heard() {
    let said = json!({"systemMessage": "m", "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "permissionDecisionReason": "r", "updatedInput": {"a": 1}, "additionalContext": "c",
        "updatedToolOutput": [1], "action": "accept", "content": {"name": "x"},
    }});
    let fields = json!({"name": "x"}).as_object().cloned();
    assert_eq!(
        read(&said),
        Ok(HookReply {
            decision: Some(HookDecision::Allow),
            reason: Some("r".to_owned()),
            updated_input: json!({"a": 1}).as_object().cloned(),
            additional_context: Some("c".to_owned()),
            updated_tool_output: Some(json!([1])),
            answer: Some(ElicitationAnswer::Accept(fields)),
            system_message: Some("m".to_owned()),
        })
    );
    let answered = read(&json!({"action": "decline"})).unwrap();
    assert_eq!(answered.answer, Some(ElicitationAnswer::Decline));
}

#[test]
fn the_strictest_of_its_words_counts() {
    let allowed = json!({"permissionDecision": "allow"});
    for (said, reason) in [
        (json!({"continue": false, "stopReason": "s"}), "s"),
        (json!({"decision": "block", "reason": "b"}), "b"),
    ] {
        let mut said = said;
        said["hookSpecificOutput"] = allowed.clone();
        assert_eq!(read(&said), Ok(HookReply::deny(reason)));
    }
    let approved = read(&json!({"decision": "approve"})).unwrap();
    assert_eq!(approved.decision, Some(HookDecision::Allow));
}

#[test]
fn what_cannot_be_understood_is_a_failure() {
    for text in ["no", "[]", "{", "{}{}", "\"deny\"", "null", "\u{0}"] {
        let problem = HookReply::parse(HookEvent::PreToolUse, text).unwrap_err();
        assert!(problem.contains("not one JSON object"), "{text}: {problem}");
    }
    for (said, problem) in [
        (
            json!({"continue": "no"}),
            "its `continue` must be true or false",
        ),
        (
            json!({"decision": "deny"}),
            "its `decision` must be `block` or `approve`",
        ),
        (
            json!({"hookSpecificOutput": []}),
            "its `hookSpecificOutput` must be an object",
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "DENY"}}),
            "its `permissionDecision` must be `allow`, `ask` or `deny`",
        ),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse"}}),
            "it answers for the event `PostToolUse`",
        ),
        (
            json!({"hookSpecificOutput": {"updatedInput": "x"}}),
            "its `updatedInput` must be an object",
        ),
        (
            json!({"hookSpecificOutput": {"additionalContext": 1}}),
            "its `additionalContext` must be a string",
        ),
        (
            json!({"action": "perhaps"}),
            "its `action` must be `accept`, `decline` or `cancel`",
        ),
    ] {
        assert_eq!(read(&said), Err(problem.to_owned()), "{said}");
    }
}

#[test]
fn rel_30_a_word_counts_in_either_place() {
    let denied = Ok(HookReply::deny("r"));
    let words = json!({"permissionDecision": "deny", "permissionDecisionReason": "r"});
    assert_eq!(read(&words), denied);
    assert_eq!(read(&json!({"hookSpecificOutput": words})), denied);
    let mut both = words.clone();
    both["hookSpecificOutput"] = words;
    assert_eq!(read(&both), denied);
    let blocked = json!({"hookSpecificOutput": {"decision": "block", "reason": "r"}});
    assert_eq!(read(&blocked), denied);
    let stopped = json!({"hookSpecificOutput": {"continue": false, "stopReason": "r"}});
    assert_eq!(read(&stopped), denied);
    let rewritten = read(&json!({"updatedInput": {"a": 1}})).unwrap();
    assert_eq!(
        rewritten.updated_input,
        json!({"a": 1}).as_object().cloned()
    );
    let said = json!({
        "permissionDecision": "allow", "hookSpecificOutput": {"permissionDecision": "deny"},
    });
    let problem = "it says two different things with `permissionDecision`";
    assert_eq!(read(&said), Err(problem.to_owned()));
}

#[test]
fn rel_30_a_word_that_is_nearly_known_or_said_twice_is_a_failure() {
    for (word, meant) in [
        ("permisionDecision", "permissionDecision"),
        ("permission_decision", "permissionDecision"),
        ("PermissionDecision", "permissionDecision"),
        ("permission-decison", "permissionDecision"),
        ("updated_input", "updatedInput"),
        ("updateInput", "updatedInput"),
        ("desicion", "decision"),
        ("Continue", "continue"),
        ("contiune", "continue"),
        ("hook_specific_output", "hookSpecificOutput"),
        ("hookSpecificOuput", "hookSpecificOutput"),
        ("updatedMcpToolOutput", "updatedMCPToolOutput"),
    ] {
        let problem = Err(format!("it says `{word}`, which may mean `{meant}`"));
        assert_eq!(read(&json!({word: "deny"})), problem);
        assert_eq!(
            read(&json!({"hookSpecificOutput": {word: "deny"}})),
            problem
        );
    }
    for (text, word) in [
        (
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecision":"allow"}}"#,
            "permissionDecision",
        ),
        (r#"{"decision":"block","decision":"approve"}"#, "decision"),
        (r#"{"continue":false,"continue":null}"#, "continue"),
        (
            r#"{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":{}}"#,
            "hookSpecificOutput",
        ),
    ] {
        let said = HookReply::parse(HookEvent::PreToolUse, text);
        assert_eq!(said, Err(format!("it says `{word}` twice")), "{text}");
    }
    let nested = json!({"hookSpecificOutput": {"hookSpecificOutput": {}}});
    let problem = "its `hookSpecificOutput` stands in itself".to_owned();
    assert_eq!(read(&nested), Err(problem));
    let said = HookReply::parse(HookEvent::Elicitation, r#"{"Action":"decline"}"#);
    let problem = "it says `Action`, which may mean `action`".to_owned();
    assert_eq!(said, Err(problem));
}

#[test]
fn words_of_other_hosts_and_of_nobody_are_ignored() {
    let said = json!({
        "suppressOutput": true, "async": true, "asyncTimeout": 5, "context": "c", "comment": "c",
        "version": 2, "option": "o", "region": "r", "hook_event_name": "PreToolUse",
        "session_id": "s", "cwd": "/", "tool_name": "t", "tool_input": {}, "message": "m",
        "Action": "x", "contents": [], "retry": true, "x".repeat(5000): 1,
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "updatedPermissions": [], "watchPaths": [],
            "sessionTitle": "t", "interrupt": false, "hits": [1],
        },
    });
    assert_eq!(read(&said), Ok(HookReply::default()));
}

proptest! {
    /// Whatever is printed is read or refused, never a panic; and nothing but a reply that holds
    /// the word `allow` or `approve` can ever allow.
    #[test]
    fn no_output_allows_by_accident(text in any::<String>()) {
        let said = HookReply::parse(HookEvent::PreToolUse, &text);
        prop_assert!(said.map_or(true, |said| said.decision != Some(HookDecision::Allow)));
    }

    #[test]
    fn no_other_word_is_a_decision(word in "[a-zA-Z]{0,8}") {
        prop_assume!(!["allow", "ask", "deny"].contains(&word.as_str()));
        let said = json!({"hookSpecificOutput": {"permissionDecision": word}});
        prop_assert!(read(&said).is_err());
    }
}
