//! The audit on disk: what is written, by many at once, on a bad disk, and read again.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Map, Value, json};
use toolway_testkit::ScannedFolder;
use toolway_testkit::marked;
use toolway_testkit::marked::MARK;
use toolway_types::{ServerName, ToolKey};

use super::*;
use crate::call::{Caller, CallerKind, ToolTarget};

fn request(tool: &str, arguments: &Value) -> ToolRequest {
    ToolRequest::new(
        ToolTarget::Key(ToolKey::new(ServerName::new("s").unwrap(), tool)),
        arguments.as_object().cloned().unwrap_or_default(),
    )
}

fn tests() -> CallerSide {
    let caller = Caller::new(CallerKind::Person, "tests");
    CallerSide::new(caller, None, Vec::new())
}

fn unknown(tool: &str) -> Result<ToolOutcome, CallError> {
    Err(CallError::Unknown {
        target: request(tool, &Value::Null).target,
        suggestions: Vec::new(),
    })
}

async fn note(audit: &Audit, tool: &str) {
    let request = request(tool, &json!({ "secret": MARK }));
    let mut entry = AuditEntry::begin(Some(audit), &request, &tests());
    entry.awaited(&request.arguments);
    entry.finish(&unknown(tool)).await;
}

fn lines(directory: &Path) -> Vec<AuditLine> {
    let read = read_last(directory, usize::MAX, |_| true).unwrap();
    read.map(|(lines, _)| lines).unwrap_or_default()
}

fn calls(directory: &Path) -> Vec<CallRecord> {
    let lines = lines(directory).into_iter();
    lines
        .map(|line| match line {
            AuditLine::Call(record) => *record,
            AuditLine::Lost { .. } => panic!("{line:?}"),
        })
        .collect()
}

#[tokio::test]
async fn a_call_is_one_private_line_without_its_arguments() {
    let place = ScannedFolder::new();
    let directory = place.path().join("audit");
    let audit = Audit::in_directory(directory.clone());
    note(&audit, "delete\u{1b}[31m").await;
    audit.flush().await;
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains(MARK), "{text}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join(FILE)), 0o600);
    let [record] = calls(&directory).try_into().unwrap();
    assert_eq!(record.who.as_deref(), Some("tests"));
    assert_eq!(record.server.as_deref(), Some("s"));
    assert!(!record.tool.contains('\u{1b}'), "{}", record.tool);
    assert_eq!(record.outcome, CallEnd::Unknown);
    assert_eq!(record.sent, marked!(r#"{"secret":""#, r#""}"#).len());
    assert!(record.decision.is_none());
}

#[tokio::test]
async fn arguments_stand_in_it_when_asked_for() {
    let place = ScannedFolder::new();
    place.may_keep_secrets("audit");
    let audit = Audit::in_directory(place.path().join("audit")).with_arguments();
    note(&audit, "t").await;
    audit.flush().await;
    let [record] = calls(audit.directory()).try_into().unwrap();
    assert_eq!(
        record.arguments.unwrap().get(),
        marked!(r#"{"secret":""#, r#""}"#)
    );
}

#[tokio::test]
async fn the_arguments_are_those_that_were_sent() {
    let place = tempfile::tempdir().unwrap();
    let audit = Audit::in_directory(place.path().join("audit")).with_arguments();
    let asked = request("t", &json!({ "n": 1 }));
    let sent = r#"{"n": 123456789012345678901234567890}"#;
    let mut entry = AuditEntry::begin(Some(&audit), &asked, &tests());
    entry.awaited(&asked.arguments);
    entry.sent(|| sent);
    // Too late to be of interest.
    entry.awaited(&asked.arguments);
    entry.finish(&unknown("t")).await;
    audit.flush().await;
    let [record] = calls(audit.directory()).try_into().unwrap();
    assert_eq!(record.arguments.unwrap().get(), sent);
    assert_eq!(record.sent, sent.len());
}

#[tokio::test]
async fn a_caller_that_goes_away_is_written_down() {
    let place = tempfile::tempdir().unwrap();
    let audit = Audit::in_directory(place.path().join("audit"));
    drop(AuditEntry::begin(
        Some(&audit),
        &request("t", &json!({})),
        &tests(),
    ));
    audit.flush().await;
    let [record] = calls(audit.directory()).try_into().unwrap();
    assert_eq!(record.outcome, CallEnd::Cancelled);
}

#[tokio::test]
async fn many_calls_at_once_are_all_written_down() {
    let place = tempfile::tempdir().unwrap();
    let audit = Audit::in_directory(place.path().join("audit"));
    let count = QUEUE_LINES * 3;
    let all = (0..count).map(|_| note(&audit, "t"));
    futures_util::future::join_all(all).await;
    audit.flush().await;
    assert_eq!(calls(audit.directory()).len(), count);
}

#[tokio::test]
async fn lines_stand_in_the_order_in_which_calls_ended_however_they_gathered() {
    let place = tempfile::tempdir().unwrap();
    let audit = Audit::in_directory(place.path().join("audit"));
    let count = QUEUE_LINES + 500;
    for number in 0..count {
        note(&audit, &format!("t{number}")).await;
        if number % 400 == 0 {
            // The thread is somewhere between sleep and work; whatever it does, this is written.
            audit.flush().await;
            assert_eq!(calls(audit.directory()).len(), number + 1);
        }
    }
    audit.flush().await;
    let tools = calls(audit.directory()).into_iter();
    let expected = (0..count).map(|number| format!("t{number}"));
    assert!(tools.map(|record| record.tool).eq(expected));
}

#[tokio::test]
async fn the_last_handle_leaves_nothing_unwritten() {
    let place = tempfile::tempdir().unwrap();
    let audit = Audit::in_directory(place.path().join("audit"));
    let directory = audit.directory().to_owned();
    for number in 0..100 {
        note(&audit, &format!("t{number}")).await;
    }
    drop(audit);
    // The product does not wait for the thread, so the test does.
    while calls(&directory).len() < 100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_costs_no_call() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    std::fs::write(&directory, "a file in its place").unwrap();
    let audit = Audit::in_directory(directory.clone());
    note(&audit, "t").await;
    audit.flush().await;
    let text = std::fs::read_to_string(&directory).unwrap();
    assert_eq!(text, "a file in its place");
    // A person can be told.
    assert!(audit.trouble().is_some());
    let fine = Audit::in_directory(place.path().join("fine"));
    note(&fine, "t").await;
    fine.flush().await;
    assert!(fine.trouble().is_none());
}

#[test]
fn lines_that_are_not_ours_are_passed_over_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let record =
        CallFacts::of(&request("t", &Value::Object(Map::new())), Caller::default()).into_record(1);
    let ours = serde_json::to_string(&AuditLine::Call(Box::new(record))).unwrap();
    let lost = r#"{"time":"2026-01-01T00:00:00.000Z","lost":3}"#;
    let text = format!("{ours}\nnonsense\n{{\"time\":\n{lost}\n{ours}");
    std::fs::write(place.path().join(FILE), text).unwrap();
    let (_, follower) = read_last(place.path(), 1, |_| true).unwrap().unwrap();
    assert_eq!(follower.unreadable(), 2);
    // The last line has no end: it is still being written.
    let [first, second] = lines(place.path()).try_into().unwrap();
    assert!(matches!(first, AuditLine::Call(_)));
    assert!(matches!(second, AuditLine::Lost { lost: 3, .. }));
}

#[test]
fn every_end_is_spelled_as_it_is_written() {
    for end in CallEnd::ALL {
        let written = serde_json::to_value(end).unwrap();
        assert_eq!(written, end.as_str());
    }
}
