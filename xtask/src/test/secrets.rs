//! Looks for secrets in everything that the tests printed (SEC-47).
//!
//! Every secret that a test makes carries one mark (`marked.rs` of the testkit). The runner keeps
//! what each test printed, also of those that passed; a mark in it fails the run and names the
//! test. Owns the looking only; the texts that it looks for are the testkit's.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What the runner keeps, by its profile in `.config/nextest.toml`.
pub(super) const REPORT: &str = "target/nextest/default/junit.xml";

/// The mark as it is, in hexadecimal digits, and in base64 at each place in a group of three
/// bytes. Tests here and there hold them against the testkit's.
const FORMS: &[&str] = &[
    "canary7Kq2Zt9wXo",
    "63616e617279374b71325a743977586f",
    "63616E617279374B71325A743977586F",
    "Y2FuYXJ5N0txMlp0OXdY",
    "bmFyeTdLcTJadDl3",
    "YW5hcnk3S3EyWnQ5d1hv",
];

/// Fails when a test printed a secret, by the runner's report, where there must be one, and by
/// what the runner printed itself.
pub(super) fn check(report: Option<&Path>, lines: &[String]) -> Result<()> {
    let mut places = Vec::new();
    if let Some(report) = report {
        let text = fs::read_to_string(report)
            .with_context(|| format!("`{}` cannot be read", report.display()))?;
        places.extend(tests_with_secrets(&text));
    }
    if places.is_empty() && lines.iter().any(|line| holds_secret(line)) {
        places.push("the log of the run".to_owned());
    }
    if !places.is_empty() {
        bail!("a secret was printed by: {}", places.join(", "));
    }
    Ok(())
}

fn holds_secret(text: &str) -> bool {
    FORMS.iter().any(|form| text.contains(form))
}

/// The names of the tests whose output holds a secret.
fn tests_with_secrets(report: &str) -> Vec<String> {
    let mut cases = report.split("<testcase ");
    // What stands before the first test belongs to none.
    let head = cases.next().filter(|head| holds_secret(head));
    let named = cases.filter(|case| holds_secret(case)).map(|case| {
        format!(
            "{} {}",
            attribute(case, "classname"),
            attribute(case, "name")
        )
    });
    head.map(|_| "the report".to_owned())
        .into_iter()
        .chain(named)
        .collect()
}

fn attribute<'a>(case: &'a str, name: &str) -> &'a str {
    let head = case.split('>').next().unwrap_or_default();
    let start = format!("{name}=\"");
    let mut words = head.split_inclusive('"');
    // `classname="` ends in `name="` too.
    let is_it = |word: &&str| word.trim_start() == start;
    match words.find(is_it) {
        Some(_) => words.next().unwrap_or_default().trim_end_matches('"'),
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTKIT: &str = include_str!("../../../crates/toolway-testkit/src/marked.rs");
    const PROFILE: &str = include_str!("../../../.config/nextest.toml");

    fn report(output: &str) -> String {
        format!(
            "<testsuites><testsuite name=\"a::it\">\
             <testcase name=\"quiet\" classname=\"a::it\"><system-out>fine</system-out></testcase>\
             <testcase name=\"loud &gt; one\" classname=\"a::it\" time=\"1\">\
             <system-err>{output}</system-err></testcase></testsuite></testsuites>"
        )
    }

    #[test]
    fn the_mark_is_the_testkits() {
        assert!(TESTKIT.contains(&format!("MARK: &str = \"{}\"", FORMS[0])));
        let digits = FORMS[0].bytes().map(|byte| format!("{byte:02x}"));
        let digits = digits.collect::<Vec<_>>().concat();
        assert_eq!(FORMS[1], digits);
        assert_eq!(FORMS[2], digits.to_uppercase());
    }

    #[test]
    fn the_runner_keeps_what_tests_print() {
        let profile: toml::Table = toml::from_str(PROFILE).unwrap();
        let junit = &profile["profile"]["default"]["junit"];
        assert!(REPORT.ends_with(junit["path"].as_str().unwrap()));
        for stored in ["store-success-output", "store-failure-output"] {
            assert_eq!(junit[stored].as_bool(), Some(true), "{stored}");
        }
    }

    #[test]
    fn a_planted_secret_is_found_in_every_form_and_its_test_is_named() {
        assert!(tests_with_secrets(&report("nothing")).is_empty());
        for form in FORMS {
            let found = tests_with_secrets(&report(&format!("token: at-{form}-12")));
            assert_eq!(found, ["a::it loud &gt; one"], "{form}");
        }
    }

    #[test]
    fn a_planted_secret_fails_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("junit.xml");
        // Without a report, as when `cargo test` ran, there is still the log.
        check(None, &["fine".to_owned()]).unwrap();
        let line = format!("thread panicked: {}", FORMS[0]);
        let error = check(None, &[line]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a secret was printed by: the log of the run"
        );
        check(Some(&place), &[]).unwrap_err();
        fs::write(&place, report("fine")).unwrap();
        check(Some(&place), &[]).unwrap();
        fs::write(&place, report(FORMS[3])).unwrap();
        let error = check(Some(&place), &[]).unwrap_err().to_string();
        assert_eq!(error, "a secret was printed by: a::it loud &gt; one");
    }
}
