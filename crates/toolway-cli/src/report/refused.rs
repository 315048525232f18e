//! What helps against a refusal.
//!
//! Owns the one table from who refused a call to its `hint:`.

use toolway::{Against, RefusedBy};
use toolway_config::permission::rule_for_tool;
use toolway_types::ToolKey;
use toolway_types::name::{as_word, shell_word};

/// What the caller can do.
pub(super) fn refused_hint(key: &ToolKey, by: &RefusedBy) -> String {
    match by {
        RefusedBy::Rule { origin, .. } => {
            format!("if it should run, take the rule out of `permissions.deny` at {origin}")
        }
        RefusedBy::Unreadable { origin } => {
            format!("mend the file at {origin}; `toolway doctor` says what is wrong there")
        }
        RefusedBy::Hook { origin, .. } => {
            format!("mend the hook at {origin}, or take it out; `toolway doctor` lists all hooks")
        }
        RefusedBy::NobodyForHook { origin, .. } => format!(
            "run it on a terminal, where you are asked, or let the hook at {origin} answer \
             `allow` for it"
        ),
        RefusedBy::Classifier { .. } => match rule_for_tool(key) {
            Some(rule) => format!(
                "if it should run, allow it with `toolway permissions allow {}`: the classifier is \
                 not asked about what a rule allows",
                shell_word(&rule)
            ),
            None => "if it should run, type the call yourself".to_owned(),
        },
        RefusedBy::NobodyForClassifier {
            failed: true,
            origin,
            ..
        } => {
            format!("mend the classifier at {origin}, or run it on a terminal, where you are asked")
        }
        RefusedBy::NobodyForClassifier { .. } => {
            "run it on a terminal, where you are asked".to_owned()
        }
        RefusedBy::Person { .. } | RefusedBy::NobodyAnswered | RefusedBy::Withdrawn => {
            "nothing was sent".to_owned()
        }
        RefusedBy::Changed { difference } => match difference.against {
            Against::Nothing => "mend the file, or run it this once with `--accept-change`",
            Against::Permitted | Against::Namesake => {
                "if that is as it should be, run it again with `--accept-change`"
            }
        }
        .to_owned(),
        RefusedBy::NobodyToAsk {
            rule: Some((_, origin)),
        } => format!("run it on a terminal, or take the rule out of `permissions.ask` at {origin}"),
        RefusedBy::NobodyForBrought { rule: None, .. } => {
            "run it on a terminal, where you can allow it for this server".to_owned()
        }
        RefusedBy::NobodyForBrought {
            server,
            rule: Some(_),
        } => format!(
            "run it on a terminal, or let your rules count for it as it is now with `toolway \
             approve {} --with-rules`",
            as_word(server.server.as_str())
        ),
        RefusedBy::NobodyToAsk { rule: None } => match rule_for_tool(key) {
            Some(rule) => format!(
                "run it on a terminal, or allow it with `toolway permissions allow {}`",
                shell_word(&rule)
            ),
            None => "run it on a terminal".to_owned(),
        },
    }
}
