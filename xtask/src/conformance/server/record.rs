//! What a real server shows in each scenario, as the repository records it.
//!
//! Owns the reading of `tests/conformance/server/expected-checks.json`. The suite compares little of
//! what comes back, so beside the checks that succeed a record can say which words the findings hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::verdict::{self, Seen, Wanted};

/// What one scenario shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    checks: Wanted,
    /// What only the fixture itself shows, because a gateway has a choice.
    direct: Wanted,
    /// What stands in the findings.
    words: Vec<String>,
    /// A server with nothing to offer passes too, because the scenario is about the protocol.
    is_protocol: bool,
}

impl Shown {
    fn parse(value: &Value) -> Result<Self> {
        let checks = |key: &str| -> Result<Wanted> {
            match value.get(key) {
                None => Ok(Wanted::new()),
                Some(value) => {
                    serde_json::from_value(value.clone()).with_context(|| key.to_owned())
                }
            }
        };
        let known = ["checks", "direct", "words", "protocol"];
        let keys = value.as_object().context("is no object")?.keys();
        if let Some(stranger) = keys.into_iter().find(|key| !known.contains(&key.as_str())) {
            bail!("has the unknown key `{stranger}`");
        }
        let shown = Self {
            checks: checks("checks")?,
            direct: checks("direct")?,
            words: value.get("words").map_or_else(
                || Ok(Vec::new()),
                |words| serde_json::from_value(words.clone()),
            )?,
            is_protocol: value.get("protocol").is_some_and(|value| *value == true),
        };
        // An empty record would be a pass for nothing.
        if shown.checks.values().flatten().next().is_none() {
            bail!("records no check");
        }
        Ok(shown)
    }

    /// Whether a server with nothing to offer may pass.
    pub(super) fn is_protocol(&self) -> bool {
        self.is_protocol
    }
}

/// By revision and scenario.
pub(super) struct ExpectedShown(BTreeMap<String, BTreeMap<String, Shown>>);

impl ExpectedShown {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let named = || format!("`{}`", path.display());
        Self::parse(&fs::read_to_string(path).with_context(named)?).with_context(named)
    }

    fn parse(text: &str) -> Result<Self> {
        let raw: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(text)?;
        let mut parsed = BTreeMap::new();
        for (revision, scenarios) in raw {
            let mut all = BTreeMap::new();
            for (scenario, value) in scenarios {
                let shown = Shown::parse(&value).with_context(|| format!("`{scenario}`"))?;
                all.insert(scenario, shown);
            }
            parsed.insert(revision, all);
        }
        Ok(Self(parsed))
    }

    pub(super) fn of(&self, revision: &str, scenario: &str) -> Option<&Shown> {
        self.0.get(revision)?.get(scenario)
    }
}

/// Whether it passed, or every reason why not.
pub(super) fn judge(
    seen: &Seen,
    shown: Option<&Shown>,
    is_direct: bool,
) -> Result<(), Vec<String>> {
    let wanted = shown.map(|shown| {
        let mut wanted = shown.checks.clone();
        if is_direct {
            wanted.extend(shown.direct.clone());
        }
        wanted
    });
    let mut reasons = verdict::judge(seen, wanted.as_ref())
        .err()
        .unwrap_or_default();
    let findings = seen.findings();
    let words = shown.map_or(&[][..], |shown| &shown.words);
    reasons.extend(
        words
            .iter()
            .filter(|words| {
                !findings
                    .iter()
                    .any(|finding| finding.contains(words.as_str()))
            })
            .map(|words| format!("`{words}` did not come back, as it does in a real run")),
    );
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_is_shown() {
        let text = r#"{"2026-07-28": {"ping": {"checks": {"ping": ["Ping"]}, "protocol": true,
            "words": ["pong"], "direct": {"x": ["X"]}}}}"#;
        let records = ExpectedShown::parse(text).unwrap();
        let shown = records.of("2026-07-28", "ping").unwrap();
        assert!(shown.is_protocol() && shown.checks["ping"].contains("Ping"));
        assert_eq!(shown.words, ["pong"]);
        assert!(records.of("2025-11-25", "ping").is_none());
    }

    #[test]
    fn a_record_without_checks_or_with_a_slip_is_refused() {
        for record in [
            r"{}",
            r#"{"checks": {"a": []}}"#,
            r#"{"checks": {"a": ["A"]}, "word": []}"#,
            r#"{"checks": {"a": ["A"]}, "words": "one"}"#,
        ] {
            let text = format!(r#"{{"2026-07-28": {{"ping": {record}}}}}"#);
            assert!(ExpectedShown::parse(&text).is_err(), "{record}");
        }
    }
}
