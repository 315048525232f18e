//! Writing permission rules: what `toolway permissions allow|ask|deny|remove` and the answer
//! "always" do to the files.
//!
//! Owns in which list of which file a rule is written. What a rule means is `permission.rs`; `edit`
//! changes files safely.

use serde_json::Value;
use toolway_types::Scope;

use crate::Environment;
use crate::approval::{LocalTrust, local_settings_text, local_trust};
use crate::edit::{Document, EditError, Edited};
use crate::entries::{edit_settings, file_of};
use crate::permission::PermissionList;

/// Adds a rule to a list of a scope, unless it is there already, and removes it from the others.
/// Returns the lists that it was removed from.
pub fn write_rule(
    environment: &Environment,
    scope: Scope,
    list: PermissionList,
    rule: &str,
) -> Result<Edited<Vec<PermissionList>>, EditError> {
    if (scope, list) == (Scope::Local, PermissionList::Allow) {
        counts_locally(environment)?;
    }
    change(environment, scope, |lists| {
        let left = lists.take_out(rule, |other| other != list)?;
        lists.add(list, rule)?;
        Ok(left)
    })
}

/// Refuses to allow something in local settings that a repository brought: it would not count, and
/// the user would be asked again.
fn counts_locally(environment: &Environment) -> Result<(), EditError> {
    let text = local_settings_text(environment).ok().flatten();
    match text.map(|text| local_trust(environment, &text)) {
        Some(LocalTrust::Untrusted) => Err(EditError::Refused(format!(
            "`{}` has what you did not approve, so no rule that allows counts there; look at it \
             with `toolway approve --local-settings`, or keep the rule in the user scope",
            file_of(environment, Scope::Local)?.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes a rule from every list of a scope. Returns the lists that it was in.
pub fn remove_rule(
    environment: &Environment,
    scope: Scope,
    rule: &str,
) -> Result<Edited<Vec<PermissionList>>, EditError> {
    change(environment, scope, |lists| lists.take_out(rule, |_| true))
}

fn change<T>(
    environment: &Environment,
    scope: Scope,
    change: impl FnOnce(&mut RuleListsOfFile<'_>) -> Result<T, EditError>,
) -> Result<Edited<T>, EditError> {
    let path = file_of(environment, scope)?;
    edit_settings(environment, scope, &path, |document| {
        change(&mut RuleListsOfFile {
            document,
            path: &path,
        })
    })
}

/// The lists of one file.
struct RuleListsOfFile<'d> {
    document: &'d mut Document,
    path: &'d std::path::Path,
}

impl RuleListsOfFile<'_> {
    fn add(&mut self, list: PermissionList, rule: &str) -> Result<(), EditError> {
        let mut rules = self.of(list)?;
        if !rules.iter().any(|written| written == rule) {
            rules.push(Value::from(rule));
        }
        self.document.set(&key(list), &Value::Array(rules))
    }

    fn take_out(
        &mut self,
        rule: &str,
        of: impl Fn(PermissionList) -> bool,
    ) -> Result<Vec<PermissionList>, EditError> {
        let mut left = Vec::new();
        for list in PermissionList::ALL.into_iter().filter(|list| of(*list)) {
            let mut rules = self.of(list)?;
            let before = rules.len();
            rules.retain(|written| written != rule);
            if rules.len() < before {
                self.document.set(&key(list), &Value::Array(rules))?;
                left.push(list);
            }
        }
        Ok(left)
    }

    fn of(&self, list: PermissionList) -> Result<Vec<Value>, EditError> {
        match self.document.get(&key(list)) {
            None => Ok(Vec::new()),
            Some(Value::Array(rules)) => Ok(rules),
            Some(_) => Err(EditError::Refused(format!(
                "`permissions.{}` in `{}` is not an array; it was left as it is",
                list.as_str(),
                self.path.display()
            ))),
        }
    }
}

fn key(list: PermissionList) -> [&'static str; 2] {
    ["permissions", list.as_str()]
}
