//! `cargo xtask tidy`: the rules of the house that no compiler knows.
//!
//! Owns the list of rules. Each is a plain function from the files in memory to findings, so that
//! its tests show it failing on a bad example.

mod architecture;
mod direction;
mod leak;
mod lock;
mod marks;
mod modules;
mod names;
mod prose;
mod source;

use std::fmt;

use anyhow::{Result, bail};

use crate::shape::{Shape, Unreadable};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    severity: Severity,
    path: String,
    line: Option<usize>,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

impl Finding {
    fn error(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        let (line, message) = (line.into(), message.into());
        Self {
            severity: Severity::Error,
            path: path.to_owned(),
            line,
            message,
        }
    }

    fn warning(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, line, message)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    println!("\n$ cargo xtask tidy");
    let tree = Tree::read(workspace)?;
    let findings = check(&tree, &leak::machine_paths(workspace.root()));
    for finding in &findings {
        eprintln!("{finding}");
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    if errors > 0 {
        bail!(
            "{errors} broken {}",
            if errors == 1 { "rule" } else { "rules" }
        );
    }
    println!("tidy: {} files, {} warnings", tree.len(), findings.len());
    Ok(())
}

fn check(tree: &Tree, machine_paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(direction::dependencies_follow_the_direction(tree));
    findings.extend(source::files_open_with_their_purpose(tree));
    findings.extend(source::files_stay_short(tree));
    findings.extend(source::nothing_is_left_undone(tree));
    findings.extend(architecture::named_paths_exist(tree));
    findings.extend(architecture::it_stays_short(tree));
    findings.extend(prose::decisions_are_numbered_without_gaps(tree));
    findings.extend(prose::the_changelog_has_an_unreleased_section(tree));
    findings.extend(leak::no_registry_hosts(tree));
    findings.extend(leak::no_machine_paths(tree, machine_paths));
    findings.extend(lock::fuzz_targets_lock_every_dependency(tree));
    findings.extend(marks::secrets_of_tests_are_marked(tree));
    match Shape::read(tree) {
        Ok(shape) => {
            findings.extend(modules::modules_form_no_cycle(&shape));
            findings.extend(names::public_names_stand_for_one_type(&shape));
            findings.extend(names::few_names_are_ambiguous(&shape));
        }
        Err(Unreadable {
            file,
            line,
            problem,
        }) => findings.push(Finding::error(&file, line, problem)),
    }
    findings
}
