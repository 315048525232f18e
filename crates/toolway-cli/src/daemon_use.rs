//! Whether commands use the daemon.
//!
//! Owns what the variable says about it. What follows from that is `crate::attach`'s.

use toolway_config::Environment;

use crate::report::Report;

/// What says whether the daemon is used.
pub(crate) const VARIABLE: &str = "TOOLWAY_DAEMON";

/// Whether commands use the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonUse {
    /// Never.
    Off,
    /// Where one runs.
    Attach,
    /// Always: one that does not run is started.
    Start,
}

impl DaemonUse {
    /// What the variable says; nothing where it does not say it in a way that is known.
    pub(crate) fn said(environment: &Environment) -> Result<Option<Self>, String> {
        match environment.var(VARIABLE) {
            None | Some("") => Ok(None),
            Some("off") => Ok(Some(Self::Off)),
            Some("attach") => Ok(Some(Self::Attach)),
            Some("auto") => Ok(Some(Self::Start)),
            Some(other) => Err(other.to_owned()),
        }
    }
}

/// What the variable says, or what is usual.
pub(crate) fn use_of_daemon(
    environment: &Environment,
    usual: DaemonUse,
) -> Result<DaemonUse, Report> {
    let said = DaemonUse::said(environment).map_err(|other| {
        Report::usage(format!(
            "`{VARIABLE}` is `{other}`, which is none of off, attach and auto"
        ))
        .hint(format!(
            "unset `{VARIABLE}`, or give it one of these values"
        ))
    })?;
    Ok(said.unwrap_or(usual))
}
