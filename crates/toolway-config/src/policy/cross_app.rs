//! Which servers are logged in to by cross-app access, and whether in any other way.
//!
//! Owns the switch that an entry's `oauth.xaa` needs, and the organisation's requirement, which
//! needs no switch and no entry: a variable must not be a way around it.
//! Does not own: the logins (`toolway-auth`), or where the identity provider is (`identity`).

use toolway_types::{CrossApp, Diagnosis, ServerSpec};

use super::Policy;
use crate::Environment;
use crate::json::EntryMembers as _;
use crate::policy_rule::{PolicySubject, PolicyTarget};
use crate::raw::RawServer;
use crate::source::TextSource;

/// The variable that switches cross-app access on.
const ENABLE: &str = "TOOLWAY_ENABLE_XAA";

/// The key of the organisation's requirement.
const KEY: &str = "requireCrossAppAccess";

/// Whether entries can ask for cross-app access.
pub fn cross_app_enabled(environment: &Environment) -> bool {
    let word = environment.var(ENABLE).unwrap_or_default().trim();
    matches!(
        word.to_ascii_lowercase().as_str(),
        "1" | "true" | "yes" | "on"
    )
}

impl Policy {
    /// Has a server logged in to by cross-app access alone, where the organisation says so.
    pub(crate) fn require_cross_app(&self, spec: &mut ServerSpec) {
        if !spec.transport.kind().logs_in() {
            return;
        }
        let Some(remote) = spec.transport.remote_mut() else {
            return;
        };
        let subject = PolicySubject {
            name: spec.name.as_str(),
            target: PolicyTarget::Remote(&remote.url),
        };
        let mut required = self.cross_app.iter();
        let Some(origin) = required.find_map(|requirement| requirement.speaks_of(&subject)) else {
            return;
        };
        let policy = format!("`{KEY}` ({origin})");
        remote.oauth.get_or_insert_default().xaa = CrossApp::Only { policy };
    }
}

/// What is said of an entry that asks for it where it is switched off.
pub(crate) fn ignored(raw: &RawServer, spec: &ServerSpec) -> Option<Diagnosis> {
    let oauth = raw.definition.member("oauth")?;
    if oauth.get("xaa")?.as_bool() != Some(true) {
        return None;
    }
    let remote = spec.transport.open_to_logins()?;
    if remote.oauth.as_ref()?.xaa != CrossApp::Off {
        return None;
    }
    let line = raw.lines.line_of(&raw.definition, "oauth");
    let origin = TextSource::of(&raw.origin).origin(line);
    let message = "`oauth.xaa` does not count: cross-app access is switched off";
    Some(
        Diagnosis::warning(message)
            .of(&raw.name)
            .at(origin)
            .hint(format!("set `{ENABLE}=1`, or take `xaa` out")),
    )
}
