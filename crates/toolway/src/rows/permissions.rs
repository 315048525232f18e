//! Rules, what the organisation sets, and what lies in the vault.

use toolway_auth::vault::{SecretKind, VaultEntry};
use toolway_config::permission::Permissions;
use toolway_config::{ManagedVariable, UnheededRule};
use toolway_rows::{
    ClassifierRow, DiagnosisRow, RuleListing, RuleRow, SecretRow, UnheededRow, VariableRow,
};
use toolway_types::Diagnosis;

use super::shown_time;

/// All rules, with remarks about them.
pub fn rule_listing(permissions: &Permissions, remarks: &[Diagnosis]) -> RuleListing {
    let rules = permissions
        .rules()
        .map(|(list, rule, scope, origin)| RuleRow {
            list: list.as_str().into(),
            rule: rule.to_owned(),
            scope,
            source: origin.into(),
        });
    let classifier = permissions.classifier().map(|classifier| ClassifierRow {
        title: classifier.action.title(),
        source: (&classifier.origin).into(),
        decides: permissions.classifier_displaced_by().is_none(),
    });
    let remarks = remarks.iter().chain(permissions.faults());
    let unheeded = permissions.all_unheeded();
    let unheeded = unheeded.iter().map(|unheeded| UnheededRow {
        server: Some(unheeded.server.server.clone()),
        ..unheeded_row(unheeded)
    });
    RuleListing {
        mode: permissions.mode().as_str().into(),
        bypass_forbidden: permissions.bypass_forbidden_by().is_some(),
        pins: permissions.pins().as_str().into(),
        classifier,
        rules: rules.collect(),
        remarks: remarks.map(DiagnosisRow::from).collect(),
        unheeded: unheeded.collect(),
    }
}

/// A rule that does not count, without the server's name, for rows that have it.
pub fn unheeded_row(UnheededRule { rule, server }: &UnheededRule) -> UnheededRow {
    UnheededRow {
        rule: rule.rule.clone(),
        source: (&rule.origin).into(),
        server: None,
        entry: (&server.origin).into(),
    }
}

/// A variable that the organisation sets, without its value.
pub fn variable_row(variable: &ManagedVariable) -> VariableRow {
    VariableRow {
        name: variable.name.clone(),
        state: variable.state.word().into(),
        source: (&variable.origin).into(),
    }
}

/// Something that lies in the vault, without the secret.
pub fn secret_row(entry: &VaultEntry) -> SecretRow {
    let key = &entry.key;
    let row = SecretRow {
        kind: key.kind.as_str().into(),
        name: None,
        server: None,
        account: None,
        issuer: None,
        resource: None,
        saved_at: shown_time(entry.saved_at),
        kept_in: entry.backend.as_str().into(),
    };
    if key.kind == SecretKind::Named {
        return SecretRow {
            name: Some(key.account.clone()),
            ..row
        };
    }
    SecretRow {
        server: Some(key.server.clone()),
        account: Some(key.account.clone()),
        issuer: Some(key.issuer.clone()),
        resource: Some(key.resource.clone()),
        ..row
    }
}
