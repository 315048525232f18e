//! What hooks print, read.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolway_config::HookEvent;

use crate::dispatch::hooks::{HookDecision, HookReply};
use crate::respondent::ElicitationAnswer;

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
