//! What is recorded in the repository: the checks that a real run shows, and the cases that are
//! known to fail.
//!
//! Owns the reading of both files and the rule that the second may only shrink: a line about a
//! case that does not exist, or that passes, is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::verdict::Wanted;

/// By suite, revision and scenario: the checks that succeed in a real run.
pub(super) struct ExpectedChecks(BTreeMap<String, BTreeMap<String, BTreeMap<String, Wanted>>>);

impl ExpectedChecks {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let checks = Self::parse(&read(path)?).with_context(|| format!("`{}`", path.display()))?;
        Ok(checks)
    }

    fn parse(text: &str) -> Result<Self> {
        let checks = Self(serde_json::from_str(text)?);
        for (scenario, wanted) in checks.0.values().flat_map(BTreeMap::values).flatten() {
            // An empty record would be a pass for nothing.
            if wanted.values().flatten().next().is_none() {
                bail!("`{scenario}` records no check");
            }
        }
        Ok(checks)
    }

    pub(super) fn of(&self, case: &CaseKey) -> Option<&Wanted> {
        self.find(&case.suite, &case.revision, &case.scenario)
    }

    fn find(&self, suite: &str, revision: &str, scenario: &str) -> Option<&Wanted> {
        self.0.get(suite)?.get(revision)?.get(scenario)
    }
}

/// Lines of `suite  scenario  revisions  modes  reason`; lists are written with commas.
#[derive(Default)]
pub(super) struct ExpectedFailures(Vec<Line>);

struct Line {
    number: usize,
    suite: String,
    scenario: String,
    revisions: Vec<String>,
    modes: Vec<String>,
}

impl ExpectedFailures {
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(&read(path)?).with_context(|| format!("`{}`", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [suite, scenario, revisions, modes, _reason, ..] = words[..] else {
                bail!(
                    "line {}: wants `suite scenario revisions modes reason`",
                    index + 1
                );
            };
            let list = |words: &str| words.split(',').map(str::to_owned).collect();
            lines.push(Line {
                number: index + 1,
                suite: suite.to_owned(),
                scenario: scenario.to_owned(),
                revisions: list(revisions),
                modes: list(modes),
            });
        }
        Ok(Self(lines))
    }

    /// The line that expects this case to fail.
    pub(super) fn line_of(&self, key: &CaseKey) -> Option<usize> {
        self.0
            .iter()
            .find(|line| line.keys().contains(key))
            .map(|line| line.number)
    }

    /// A line that fits nothing would otherwise stand there for ever.
    pub(super) fn all_name_a_case(&self, known: &[CaseKey]) -> Result<()> {
        for line in &self.0 {
            if let Some(stranger) = line.keys().iter().find(|key| !known.contains(key)) {
                bail!(
                    "line {} of expected-failures.txt names a case that does not exist: {} at \
                     {} in mode {}",
                    line.number,
                    stranger.scenario,
                    stranger.revision,
                    stranger.mode
                );
            }
        }
        Ok(())
    }
}

impl Line {
    fn keys(&self) -> Vec<CaseKey> {
        let mut keys = Vec::new();
        for revision in &self.revisions {
            for mode in &self.modes {
                keys.push(CaseKey {
                    suite: self.suite.clone(),
                    scenario: self.scenario.clone(),
                    revision: revision.clone(),
                    mode: mode.clone(),
                });
            }
        }
        keys
    }
}

/// What a case is called in both files. Its mode is how a client finds the revision, or how a server
/// is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CaseKey {
    pub(super) suite: String,
    pub(super) scenario: String,
    pub(super) revision: String,
    pub(super) mode: String,
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scenario: &str, revision: &str, mode: &str) -> CaseKey {
        CaseKey {
            suite: "1.0".into(),
            scenario: scenario.into(),
            revision: revision.into(),
            mode: mode.into(),
        }
    }

    #[test]
    fn checks_are_found_by_suite_revision_and_scenario() {
        let text = r#"{"1.0": {"any": {"tools_call": {"tool-add-numbers": ["Add"]}}}}"#;
        let checks = ExpectedChecks::parse(text).unwrap();
        let wanted = checks.find("1.0", "any", "tools_call").unwrap();
        assert!(wanted["tool-add-numbers"].contains("Add"));
        assert!(checks.find("1.0", "any", "initialize").is_none());
        assert!(checks.find("2.0", "any", "tools_call").is_none());
    }

    #[test]
    fn a_record_without_checks_is_refused() {
        assert!(ExpectedChecks::parse(r#"{"1.0": {"any": {"tools_call": {}}}}"#).is_err());
        assert!(ExpectedChecks::parse(r#"{"1.0": {"any": {"x": {"a": []}}}}"#).is_err());
    }

    #[test]
    fn one_line_may_stand_for_several_revisions_and_modes() {
        let text = "# why\n\n1.0 auth/x 2025-11-25,2026-07-28 pinned,auto no logins yet\n";
        let failures = ExpectedFailures::parse(text).unwrap();
        assert_eq!(
            failures.line_of(&key("auth/x", "2026-07-28", "auto")),
            Some(3)
        );
        assert_eq!(failures.line_of(&key("auth/x", "2025-06-18", "auto")), None);
        assert_eq!(failures.line_of(&key("auth/y", "2026-07-28", "auto")), None);
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        assert!(ExpectedFailures::parse("1.0 auth/x any pinned\n").is_err());
    }

    #[test]
    fn a_line_about_a_case_that_does_not_exist_is_refused() {
        let failures = ExpectedFailures::parse("1.0 auth/x any pinned,auto why\n").unwrap();
        let both = [key("auth/x", "any", "pinned"), key("auth/x", "any", "auto")];
        assert!(failures.all_name_a_case(&both).is_ok());
        let error = failures
            .all_name_a_case(&both[..1])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 1") && error.contains("mode auto"),
            "{error}"
        );
    }
}
