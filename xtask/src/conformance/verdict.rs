//! When a scenario counts as passed, which is stricter than what the suite calls passed.
//!
//! Owns the rule: the suite ended well, the client ended well, nothing failed, nothing warned,
//! and every check that a real run shows was shown. The last is what keeps a client that did
//! nothing from passing.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitStatus;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// How the clients that are judged begin when they say what went wrong.
const COMPLAINTS: &[&str] = &["toolway-conformance: ", "sdk-client: "];

/// One finding of the suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    id: String,
    /// Several checks share an id: one for each header, say.
    name: String,
    status: String,
    message: Option<String>,
    /// What the suite saw, as JSON; empty where it does not say.
    details: String,
}

impl Check {
    /// Reads a `checks.json`.
    pub(super) fn read_all(text: &str) -> Result<Vec<Self>> {
        let values: Vec<Value> = serde_json::from_str(text).context("is not a list of checks")?;
        values.iter().map(Self::read).collect()
    }

    fn is_bad(&self) -> bool {
        ["FAILURE", "WARNING"].contains(&self.status.as_str())
    }

    fn read(value: &Value) -> Result<Self> {
        let word = |key: &str| value[key].as_str().map(str::to_owned);
        Ok(Self {
            id: word("id").context("has a check without an id")?,
            name: word("name").context("has a check without a name")?,
            status: word("status").context("has a check without a status")?,
            message: word("errorMessage").or_else(|| word("description")),
            details: value
                .get("details")
                .map(Value::to_string)
                .unwrap_or_default(),
        })
    }
}

/// What one run of a scenario left behind.
pub(super) struct Seen {
    /// None when the suite had to be ended.
    pub(super) status: Option<ExitStatus>,
    /// What the suite printed.
    pub(super) said: String,
    /// None when it wrote no findings at all.
    pub(super) checks: Option<Vec<Check>>,
}

impl Seen {
    /// What the suite saw where it was content.
    pub(super) fn findings(&self) -> Vec<&str> {
        let checks = self.checks.iter().flatten();
        checks
            .filter(|check| check.status == "SUCCESS")
            .map(|check| check.details.as_str())
            .collect()
    }
}

/// By id, the names of the checks that must be seen to succeed.
pub(super) type Wanted = BTreeMap<String, BTreeSet<String>>;

/// Whether it passed, or every reason why not.
pub(super) fn judge(seen: &Seen, wanted: Option<&Wanted>) -> Result<(), Vec<String>> {
    let mut reasons = Vec::new();
    match seen.status {
        None => reasons.push("the suite hung and was ended".to_owned()),
        Some(status) if !status.success() => {
            reasons.push(format!("the suite says no: {}", command::describe(status)));
        }
        Some(_) => {}
    }
    reasons.extend(ending_of_client(&seen.said));
    let checks = seen.checks.as_deref().unwrap_or_default();
    if seen.checks.is_none() {
        reasons.push("the suite wrote no findings".to_owned());
    }
    for check in checks {
        if check.is_bad() {
            let message = check.message.as_deref().unwrap_or("no reason given");
            reasons.push(format!("{} `{}`: {message}", check.status, check.id));
        }
    }
    match wanted {
        None => reasons.push(
            "expected-checks.json has nothing to hold it against, and doing nothing is no pass"
                .to_owned(),
        ),
        Some(wanted) => reasons.extend(missing(checks, wanted)),
    }
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(reasons)
    }
}

/// Some scenarios forgive a client that ends with an error. We do not.
fn ending_of_client(said: &str) -> Option<String> {
    let code = said
        .lines()
        .find_map(|line| line.strip_prefix("Client exited with code "))?;
    let complaint = said
        .lines()
        .find(|line| COMPLAINTS.iter().any(|name| line.starts_with(name)))
        .unwrap_or("it said nothing");
    Some(format!("the client ended with {code}: {complaint}"))
}

fn missing(checks: &[Check], wanted: &Wanted) -> Vec<String> {
    let succeeded = |id: &str, name: &str| {
        checks
            .iter()
            .any(|check| check.id == id && check.name == name && check.status == "SUCCESS")
    };
    // One that failed is named already.
    let failed = |id: &str| checks.iter().any(|check| check.id == id && check.is_bad());
    wanted
        .iter()
        .flat_map(|(id, names)| names.iter().map(move |name| (id, name)))
        .filter(|(id, name)| !succeeded(id, name) && !failed(id))
        .map(|(id, name)| format!("`{id}` ({name}) did not succeed, as it does in a real run"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn seen(checks: &[(&str, &str)]) -> Seen {
        Seen {
            status: Some(ExitStatus::from_raw(0)),
            said: String::new(),
            checks: Some(
                checks
                    .iter()
                    .map(|(id, status)| Check {
                        id: (*id).to_owned(),
                        name: id.to_uppercase(),
                        status: (*status).to_owned(),
                        message: None,
                        details: String::new(),
                    })
                    .collect(),
            ),
        }
    }

    fn wanted(names: &[(&str, &[&str])]) -> Wanted {
        names
            .iter()
            .map(|(id, names)| {
                let names = names.iter().map(|name| (*name).to_owned());
                ((*id).to_owned(), names.collect())
            })
            .collect()
    }

    #[test]
    fn a_run_that_shows_every_check_passes() {
        let run = seen(&[("a", "SUCCESS"), ("b", "INFO"), ("c", "SKIPPED")]);
        assert_eq!(judge(&run, Some(&wanted(&[("a", &["A"])]))), Ok(()));
    }

    #[test]
    fn a_run_that_shows_too_little_does_not_pass_though_the_suite_is_content() {
        let one = wanted(&[("a", &["A"])]);
        assert!(judge(&seen(&[]), Some(&one)).is_err());
        assert!(judge(&seen(&[("a", "SKIPPED")]), Some(&one)).is_err());
        let two = wanted(&[("a", &["A", "B"])]);
        assert_eq!(
            judge(&seen(&[("a", "SUCCESS")]), Some(&two)),
            Err(vec![
                "`a` (B) did not succeed, as it does in a real run".to_owned()
            ])
        );
    }

    #[test]
    fn a_scenario_that_nobody_recorded_does_not_pass() {
        assert!(judge(&seen(&[("a", "SUCCESS")]), None).is_err());
    }

    #[test]
    fn a_failure_or_a_warning_beside_the_wanted_checks_does_not_pass() {
        for status in ["FAILURE", "WARNING"] {
            let run = seen(&[("a", "SUCCESS"), ("b", status)]);
            let reasons = judge(&run, Some(&wanted(&[("a", &["A"])]))).unwrap_err();
            assert_eq!(reasons, [format!("{status} `b`: no reason given")]);
        }
    }

    #[test]
    fn an_unhappy_suite_or_client_does_not_pass() {
        let wanted = wanted(&[("a", &["A"])]);
        let mut run = seen(&[("a", "SUCCESS")]);
        run.status = Some(ExitStatus::from_raw(1 << 8));
        assert!(judge(&run, Some(&wanted)).is_err());
        run.status = None;
        assert!(judge(&run, Some(&wanted)).is_err());
        run.status = Some(ExitStatus::from_raw(0));
        run.said = "\nClient exited with code 1\n\nStderr:\ntoolway-conformance: no\n".to_owned();
        let reasons = judge(&run, Some(&wanted)).unwrap_err();
        assert_eq!(
            reasons,
            ["the client ended with 1: toolway-conformance: no"]
        );
        run.said.clear();
        run.checks = None;
        assert!(judge(&run, Some(&wanted)).is_err());
    }

    #[test]
    fn findings_are_read_and_half_a_finding_is_an_error() {
        let read =
            Check::read_all(r#"[{"id":"a","name":"A","status":"FAILURE","errorMessage":"no"}]"#);
        assert_eq!(
            read.unwrap(),
            [Check {
                id: "a".into(),
                name: "A".into(),
                status: "FAILURE".into(),
                message: Some("no".into()),
                details: String::new(),
            }]
        );
        assert!(Check::read_all(r#"[{"id":"a"}]"#).is_err());
        assert!(Check::read_all("{}").is_err());
    }
}
