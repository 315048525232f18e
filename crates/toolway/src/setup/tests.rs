//! What variables and settings make of a host, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::Path;

use toolway_config::{Environment, Flags};
use toolway_types::Severity;

use super::{PlainTextRefused, UserSetup};

fn setup(home: &Path, variables: &[(&str, &str)]) -> UserSetup {
    let mut vars: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    vars.insert("HOME".to_owned(), home.display().to_string());
    let environment = Environment::new(vars, home.to_owned());
    UserSetup::new(
        environment.with_system_dir(home.join("etc")),
        Flags::default(),
    )
}

#[test]
fn every_file_of_a_host_lies_in_the_homes_of_its_user() {
    let home = tempfile::tempdir().unwrap();
    let setup = setup(home.path(), &[]);
    let (options, findings) = setup.host_options();
    assert_eq!(findings, []);
    let state = setup.environment().state_home();
    assert!(options.output_dir.starts_with(state));
    assert!(options.catalog_memory.unwrap().starts_with(state));
    assert!(options.audit.unwrap().directory().starts_with(state));
    assert!(options.connectors.is_some());
    let config = setup.environment().config_home();
    assert!(options.pinned.unwrap().starts_with(config));
    assert!(setup.vault().folder().starts_with(config));
}

#[test]
fn what_a_variable_says_wrongly_is_returned_and_the_host_has_options_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let variables = [("TOOLWAY_AUDIT", "much"), ("TOOLWAY_VAULT", "safe")];
    let (options, findings) = setup(home.path(), &variables).host_options();
    assert!(options.audit.is_some());
    let named = |name: &str| findings.iter().any(|it| it.message.contains(name));
    assert!(named("`TOOLWAY_AUDIT` is `much`") && named("`TOOLWAY_VAULT` is `safe`"));
    let is_warning = |it: &toolway_types::Diagnosis| it.severity == Severity::Warning;
    assert!(findings.iter().all(is_warning));
}

#[test]
fn calls_are_not_written_down_where_the_audit_is_off() {
    let home = tempfile::tempdir().unwrap();
    let (options, findings) = setup(home.path(), &[("TOOLWAY_AUDIT", "off")]).host_options();
    assert!(options.audit.is_none());
    assert_eq!(findings, []);
}

#[test]
fn secrets_lie_in_plain_text_only_where_nothing_speaks_against_it() {
    let home = tempfile::tempdir().unwrap();
    let mut free = setup(home.path(), &[]);
    let plan = free.plan();
    assert!(!free.keeps_in_plain_text());
    free.keep_in_plain_text(&plan).unwrap();
    assert!(free.keeps_in_plain_text());

    let mut keychain = setup(home.path(), &[("TOOLWAY_VAULT", "keychain")]);
    let refused = keychain.keep_in_plain_text(&plan).unwrap_err();
    assert!(matches!(refused, PlainTextRefused::KeychainOnly));
    assert!(!keychain.keeps_in_plain_text());
}
