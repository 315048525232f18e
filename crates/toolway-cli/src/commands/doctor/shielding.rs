//! What `toolway doctor` says of the shield: what is behind it, and of every server whether it is.
//!
//! Owns the words. Whether the system can raise one is found out by `toolway_transport`; whether
//! a server wants one is decided with its definition.

use std::fmt::Write as _;
use std::path::PathBuf;

use toolway::ShieldState;
use toolway::launcher::Launcher;
use toolway_config::{Plan, ServerVerdict};
use toolway_rows::{ShieldRow, ShieldedRow};
use toolway_types::{ShieldMode, TransportSpec};

use crate::context::Context;

/// How wide the labels of `doctor` are.
const MARGIN: &str = "              ";

/// The shield, as it would be raised now.
pub(super) struct Shielding {
    /// What servers behind it cannot write and cannot look into, or why there is none.
    reach: Result<Reach, String>,
    /// Every server that is a process.
    servers: Vec<(String, ShieldMode)>,
}

struct Reach {
    protects: Vec<String>,
    hides: Vec<String>,
    /// What cannot be protected, and why.
    gaps: Vec<String>,
}

/// What a shield means for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShieldedStart {
    Behind,
    Outside,
    /// It does not start.
    Stopped,
}

impl Shielding {
    pub(super) fn of(context: &Context, plan: &Plan) -> Self {
        let servers: Vec<_> = plan
            .servers
            .iter()
            .filter_map(|server| match &server.verdict {
                ServerVerdict::Admitted(spec) => match &spec.transport {
                    TransportSpec::Stdio(stdio) => Some((server.name.to_string(), stdio.shield)),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        let wanted = servers.iter().any(|(_, mode)| *mode != ShieldMode::Off);
        let switched_off = context.environment().shield_mode() == Some(ShieldMode::Off);
        let shown = |paths: Vec<PathBuf>| {
            let paths = paths.iter().map(|path| path.display().to_string());
            paths.collect::<Vec<_>>()
        };
        let reach = match context
            .setup
            .shield()
            .state(Launcher::same_program().file().as_deref())
        {
            // An entry's own word counts for more.
            _ if switched_off && !wanted => Err("`TOOLWAY_SHIELD` is `off`".to_owned()),
            ShieldState::On {
                protected,
                hidden,
                gaps,
            } => Ok(Reach {
                protects: shown(protected),
                hides: shown(hidden),
                gaps: gaps.iter().map(ToString::to_string).collect(),
            }),
            ShieldState::Unwanted => Err("there is nothing to protect".to_owned()),
            ShieldState::Unavailable(error) => Err(error.to_string()),
        };
        Self { reach, servers }
    }

    fn start(&self, mode: ShieldMode) -> ShieldedStart {
        match (mode, &self.reach) {
            (ShieldMode::Off, _) | (ShieldMode::BestEffort, Err(_)) => ShieldedStart::Outside,
            (ShieldMode::Required, Err(_)) => ShieldedStart::Stopped,
            (ShieldMode::Required, Ok(reach)) if !reach.gaps.is_empty() => ShieldedStart::Stopped,
            (ShieldMode::BestEffort | ShieldMode::Required, Ok(_)) => ShieldedStart::Behind,
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> String {
        let mut text = match &self.reach {
            Ok(reach) => format!(
                "shield        servers behind it cannot write {}\n{MARGIN}nor look into {}\n",
                reach.protects.join(", "),
                reach.hides.join(", ")
            ),
            Err(reason) => format!("shield        off: {reason}\n"),
        };
        for gap in self.reach.iter().flat_map(|reach| &reach.gaps) {
            let _ = writeln!(text, "{MARGIN}it {gap}");
        }
        for (start, words) in [
            (ShieldedStart::Behind, "behind it"),
            (ShieldedStart::Outside, "not behind it"),
            (ShieldedStart::Stopped, "do not start without all of it"),
        ] {
            let names: Vec<&str> = self
                .servers
                .iter()
                .filter(|(_, mode)| self.start(*mode) == start)
                .map(|(name, _)| name.as_str())
                .collect();
            if !names.is_empty() {
                let _ = writeln!(text, "{MARGIN}{words}: {}", names.join(", "));
            }
        }
        text
    }

    pub(super) fn row(&self) -> ShieldRow {
        let servers = self.servers.iter().map(|(name, mode)| ShieldedRow {
            name: name.clone(),
            mode: mode.as_str().into(),
            shielded: self.start(*mode) == ShieldedStart::Behind,
        });
        let reach = self.reach.as_ref();
        ShieldRow {
            on: reach.is_ok(),
            reason: reach.err().cloned(),
            protects: reach.ok().map(|reach| reach.protects.clone()),
            hides: reach.ok().map(|reach| reach.hides.clone()),
            gaps: reach.ok().map(|reach| reach.gaps.clone()),
            servers: servers.collect(),
        }
    }
}
