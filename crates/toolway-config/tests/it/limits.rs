//! The numbers that limit a run, and who may set them.

use std::time::Duration;

use insta::assert_snapshot;
use toolway_config::{ResultText, RunLimits, ToolSearch};

use crate::{Stage, findings};

#[test]
fn the_limit_on_silence_may_be_nought_and_our_spelling_wins() {
    let mut stage = Stage::new();
    assert_eq!(stage.plan().limits.tool_idle_timeout, None);
    stage.set("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "90000");
    let idle = |stage: &Stage| stage.plan().limits.tool_idle_timeout;
    assert_eq!(idle(&stage), Some(Duration::from_secs(90)));
    stage.set("MCP_TOOL_IDLE_TIMEOUT", "0");
    assert_eq!(idle(&stage), Some(Duration::ZERO));
    stage.set("MCP_TOOL_IDLE_TIMEOUT", "never");
    let plan = stage.plan();
    assert_eq!(plan.limits.tool_idle_timeout, Some(Duration::from_secs(90)));
    assert_snapshot!(findings(&stage, &plan), @"`MCP_TOOL_IDLE_TIMEOUT` is `never`, which is not a whole number; the default is kept");
}

#[test]
fn limits_come_from_the_environment_and_managed_settings_win() {
    let mut stage = Stage::new();
    assert_eq!(stage.plan().limits, RunLimits::default());
    stage.set("MCP_TIMEOUT", "5000");
    stage.set("MCP_TOOL_TIMEOUT", "7000");
    stage.set("MCP_REQUEST_TIMEOUT_MS", "8000");
    stage.set("MCP_SERVER_CONNECTION_BATCH_SIZE", "0");
    stage.set("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE", "9");
    stage.set("MAX_MCP_OUTPUT_TOKENS", "many");
    stage.managed(
        r#"{"env": {"MCP_TIMEOUT": "6000", "MCP_TOOL_TIMEOUT": "soon", "HTTPS_PROXY": "http://p"}}"#,
    );
    let plan = stage.plan();
    let expected = RunLimits {
        connect_timeout: Some(Duration::from_secs(6)),
        tool_timeout: Some(Duration::from_secs(7)),
        request_timeout: Some(Duration::from_secs(8)),
        remote_batch: 9,
        ..RunLimits::default()
    };
    assert_eq!(plan.limits, expected);
    assert_snapshot!(findings(&stage, &plan), @"
    `MCP_SERVER_CONNECTION_BATCH_SIZE` is `0`, which is not a whole number above zero; the default is kept
    `MAX_MCP_OUTPUT_TOKENS` is `many`, which is not a whole number above zero; the default is kept
    system/managed-settings.json:1 `MCP_TOOL_TIMEOUT` is `soon`, which is not a whole number above zero; the default is kept
    system/managed-settings.json:1 `env.HTTPS_PROXY` is not applied until you confirm it | look at it with `toolway policy confirm`
    ");
}

#[test]
fn what_becomes_of_hidden_characters_is_read_from_the_environment() {
    let mut stage = Stage::new();
    assert_eq!(stage.plan().limits.result_text, ResultText::Clean);
    stage.set("TOOLWAY_RESULT_TEXT", " Keep ");
    assert_eq!(stage.plan().limits.result_text, ResultText::Keep);
    stage.set("TOOLWAY_RESULT_TEXT", "raw");
    let plan = stage.plan();
    assert_eq!(plan.limits.result_text, ResultText::Clean);
    assert_snapshot!(findings(&stage, &plan), @"`TOOLWAY_RESULT_TEXT` is neither `clean` nor `keep`; it is not applied | `clean` removes hidden characters from what a model gets, and is the default");
}

#[test]
fn tool_search_is_read_from_the_environment_and_our_spelling_wins() {
    let mut stage = Stage::new();
    let search = |stage: &Stage| stage.plan().limits.tool_search;
    assert_eq!(search(&stage), ToolSearch::Auto { percent: 10 });
    stage.set("ENABLE_TOOL_SEARCH", "true");
    assert_eq!(search(&stage), ToolSearch::On);
    stage.set("TOOLWAY_TOOL_SEARCH", "auto:3");
    assert_eq!(search(&stage), ToolSearch::Auto { percent: 3 });
    stage.set("TOOLWAY_TOOL_SEARCH", "auto:lots");
    stage.set("TOOLWAY_CONTEXT_TOKENS", "1000000");
    let plan = stage.plan();
    assert_eq!(plan.limits.tool_search, ToolSearch::On);
    assert_eq!(plan.limits.context_tokens, 1_000_000);
    assert_snapshot!(findings(&stage, &plan), @"`TOOLWAY_TOOL_SEARCH` is none of `true`, `false`, `auto` and `auto:N`; it is not applied | N is the share of the context that tools may take, from 0 to 100");
}
