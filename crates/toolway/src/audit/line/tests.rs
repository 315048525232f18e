//! Lines of calls: what is kept of one for the next changes nothing in what they say.

use std::time::{Duration, SystemTime};

use toolway_config::permission::CitedRule;
use toolway_types::{Origin, ToolKey};

use super::*;
use crate::audit::CallEnd;
use crate::call::{CallerKind, ToolRequest, ToolTarget};

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn facts(caller: &Caller, tool: &(ServerName, Arc<str>), grant: &PermittedBy) -> CallFacts {
    let target = ToolTarget::Key(ToolKey::new(tool.0.clone(), &*tool.1));
    let request = ToolRequest::new(target, serde_json::Map::new());
    CallFacts::ran(&request, caller.clone(), tool.clone(), grant.clone())
}

fn in_full(facts: CallFacts) -> String {
    let record = facts.into_record(std::process::id());
    let mut line = serde_json::to_string(&AuditLine::Call(Box::new(record))).unwrap();
    line.push('\n');
    line
}

/// Callers, tools and grants of all kinds, more than are kept, again and again.
#[test]
fn a_line_says_the_same_whether_or_not_its_words_were_kept() {
    let rule = |rule: &str| {
        PermittedBy::Rule(Arc::new(CitedRule {
            rule: rule.to_owned(),
            origin: Origin::Flag {
                flag: "--allow",
                line: 1,
            },
        }))
    };
    let grants = [
        rule("mcp__s__*"),
        rule("\",\"milliseconds\":7,\"who\":\"x"),
        PermittedBy::Mode,
        PermittedBy::Typed,
        PermittedBy::Caller,
        PermittedBy::Person,
        PermittedBy::Session,
        PermittedBy::BuiltIn,
    ];
    let callers: Vec<Caller> = [
        (CallerKind::Person, "owner"),
        (CallerKind::Client, "a \"quoted\"\u{1b}[31m client"),
        (CallerKind::Client, "\"who\":"),
    ]
    .map(|(kind, name)| Caller::new(kind, name))
    .into();
    let tools = [
        (server("s"), Arc::from("plain")),
        (server("s"), Arc::from(",\"milliseconds\":")),
    ];
    let mut writer = LineWriter::new();
    let mut hits = 0;
    for round in 0..3_u64 {
        for caller in &callers {
            for tool in &tools {
                for grant in &grants {
                    for outcome in [CallEnd::ALL[0], CallEnd::ALL[1]] {
                        let make = || {
                            let mut facts = facts(caller, tool, grant);
                            facts.took = Duration::from_millis(round * 1001);
                            facts.end_as(outcome, (round > 0).then_some(40));
                            facts
                        };
                        let (one, mut other) = (make(), make());
                        other.asked_at(one.plain().unwrap().asked);
                        let is_kept = |it: &CommonPart| it.is_of(&one.plain().unwrap());
                        hits += usize::from(writer.kept.iter().any(is_kept));
                        let mut line = Vec::new();
                        writer.add(one, &mut line).unwrap();
                        assert_eq!(String::from_utf8(line).unwrap(), in_full(other));
                    }
                }
            }
        }
    }
    assert!(writer.kept.len() == KEPT && hits >= 144, "{hits}");
}

#[test]
fn every_end_is_written_in_its_own_word() {
    let caller = Caller::new(CallerKind::Client, "c");
    let tool = (server("s"), Arc::from("t"));
    let mut writer = LineWriter::new();
    for outcome in CallEnd::ALL {
        for _ in 0..2 {
            let mut facts = facts(&caller, &tool, &PermittedBy::Mode);
            facts.asked_at(SystemTime::UNIX_EPOCH);
            facts.end_as(outcome, None);
            let mut line = Vec::new();
            writer.add(facts, &mut line).unwrap();
            let word = serde_json::to_string(&outcome).unwrap();
            let line = String::from_utf8(line).unwrap();
            assert!(line.contains(&format!("\"outcome\":{word}}}")), "{line}");
        }
    }
    assert_eq!(writer.kept.len(), 1);
}
