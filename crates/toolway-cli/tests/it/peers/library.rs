//! The servers that the command line is tried on, through the library: what it gives is the same.

use std::process::Command;

use serde_json::{Value, json};
use toolway::{
    CallOptions, Consent, Host, ModelBlock, ResultDelivery, ToolOutcome, ToolRequest, ToolTarget,
    Treatment,
};
use toolway_testkit::TempHome;

use super::embedded::host;
use super::listening::Peer;
use super::{call as typed, home_with, node, python};
use crate::support::servers;

async fn call(host: &Host, name: &str, arguments: &Value) -> ToolOutcome {
    host.settled().await;
    let request = ToolRequest::new(
        ToolTarget::Exposed(name.to_owned()),
        arguments.as_object().cloned().unwrap(),
    );
    let options = CallOptions {
        delivery: ResultDelivery::Bounded,
        ..CallOptions::new(Consent::Typed)
    };
    host.call(request, options).await.unwrap()
}

#[tokio::test]
async fn git_through_the_library() {
    let home = TempHome::new();
    let path = home.project().join("repository").display().to_string();
    let made = Command::new("git")
        .args(["init", "--quiet", &path])
        .status();
    assert!(made.unwrap().success());
    let entry = python("mcp-server-git", &["--repository", &path]);
    home.write_settings(servers(&[("git", entry)]));
    let host = host(&home);
    let outcome = call(&host, "mcp__git__git_status", &json!({ "repo_path": path })).await;
    let bounded = outcome.bounded.as_ref().unwrap();
    assert_eq!(bounded.treatment, Treatment::Passed);
    let text = bounded.blocks[0].text();
    assert!(text.starts_with("Repository status:"), "{text}");
    host.shutdown().await;
}

#[tokio::test]
async fn structured_output_of_fastmcp_through_the_library_and_chosen_at_the_command_line() {
    let peer = Peer::FastMcp.start();
    let home = home_with("fast", peer.entry());
    let host = host(&home);
    let outcome = call(&host, "mcp__fast__forecast", &json!({ "city": "Rome" })).await;
    // It is what its schema says, or there would be a warning.
    assert_eq!(outcome.warnings, Vec::<String>::new());
    let chosen = outcome.select(&".celsius".parse().unwrap()).unwrap();
    assert_eq!(chosen, [json!(21.5)]);
    host.shutdown().await;
    let words = ["fast", "forecast", "city=Rome", "--select", ".celsius"];
    assert_eq!(typed(&home, &words).stdout, "21.5\n");
}

#[tokio::test]
async fn pictures_of_everything_reach_a_model_through_the_library() {
    let home = home_with("everything", node("server-everything", &["stdio"]));
    let host = host(&home);
    let outcome = call(&host, "mcp__everything__get-tiny-image", &json!({})).await;
    let blocks = &outcome.bounded.as_ref().unwrap().blocks;
    let pictures = blocks
        .iter()
        .filter(|block| matches!(block, ModelBlock::Image { .. }));
    assert_eq!(pictures.count(), 1, "{blocks:?}");
    host.shutdown().await;
}
