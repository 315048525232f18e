//! The ways a server is judged: which fixture, and what stands between it and the suite.

use anyhow::{Result, bail};

use super::super::suite::EXTENSION;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Which eras a fixture serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eras {
    Both,
    Legacy,
    Modern,
}

impl Eras {
    /// The word by which the fixture is told.
    pub(super) fn word(self) -> &'static str {
        match self {
            Eras::Both => "both",
            Eras::Legacy => "legacy",
            Eras::Modern => "modern",
        }
    }
}

/// What stands between the fixture and the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Nothing,
    /// `toolway serve`, which reaches the fixture over HTTP and shows it under its own names.
    GatewayHttp,
    /// The same, which starts the fixture as a process.
    GatewayStdio,
    /// The merged view of fixture and decoy, under names that a shim maps back.
    Merged,
}

/// A column of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) eras: Eras,
    pub(super) between: Between,
    /// The revisions it is judged at.
    pub(super) revisions: &'static [&'static str],
}

impl Target {
    const fn new(
        name: &'static str,
        eras: Eras,
        between: Between,
        revisions: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            eras,
            between,
            revisions,
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        self.between == Between::Nothing
    }
}

const EVERY: &[&str] = &[LEGACY, MODERN, EXTENSION];
const BOTH: &[&str] = &[LEGACY, MODERN];

/// All columns. A fixture of one era is judged directly at its own revision only: what it offers
/// there is what it has to offer through the gateway at the other.
pub(super) const TARGETS: &[Target] = &[
    Target::new("direct", Eras::Both, Between::Nothing, EVERY),
    Target::new("direct-legacy", Eras::Legacy, Between::Nothing, &[LEGACY]),
    Target::new(
        "direct-modern",
        Eras::Modern,
        Between::Nothing,
        &[MODERN, EXTENSION],
    ),
    Target::new("http", Eras::Both, Between::GatewayHttp, EVERY),
    Target::new("stdio", Eras::Both, Between::GatewayStdio, EVERY),
    Target::new("merged", Eras::Both, Between::Merged, EVERY),
    Target::new("legacy-http", Eras::Legacy, Between::GatewayHttp, BOTH),
    Target::new("legacy-stdio", Eras::Legacy, Between::GatewayStdio, BOTH),
    Target::new("modern-http", Eras::Modern, Between::GatewayHttp, &[LEGACY]),
];

/// The columns that were named; `all` names every one, nothing the direct ones.
pub(super) fn named(words: &[String]) -> Result<Vec<&'static Target>> {
    if let Some(stranger) = words
        .iter()
        .find(|word| *word != "all" && TARGETS.iter().all(|target| target.name != **word))
    {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        bail!(
            "`--through` knows no `{stranger}`: it knows all, {}",
            names.join(", ")
        );
    }
    let is_named = |target: &Target| {
        words.is_empty()
            || words
                .iter()
                .any(|word| word == "all" || word == target.name)
    };
    Ok(TARGETS.iter().filter(|target| is_named(target)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let targets = named(&words).unwrap();
        targets.iter().map(|target| target.name).collect()
    }

    #[test]
    fn columns_are_chosen_by_name() {
        assert_eq!(names(&["merged", "http"]), ["http", "merged"]);
        assert_eq!(names(&["all"]).len(), TARGETS.len());
        assert_eq!(names(&[]).len(), TARGETS.len());
        assert!(named(&["sideways".to_owned()]).is_err());
    }
}
