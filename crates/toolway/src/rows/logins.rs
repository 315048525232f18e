//! Who is logged in where, and which servers an identity provider's login serves.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolway_config::Plan;
use toolway_rows::{LoginRow, ServedRow};
use toolway_types::CrossApp;

use crate::auth::{StoredLogin, used};
use crate::journal::timestamp;

/// The logins that are kept, each with whether the plan's server of that name uses it.
pub fn login_rows(plan: &Plan, kept: Vec<StoredLogin>) -> Vec<LoginRow> {
    let specs = plan.admitted().map(|(_, spec)| spec);
    let used: Vec<StoredLogin> = specs
        .filter_map(|spec| used(&kept, spec).cloned())
        .collect();
    let row = |login: StoredLogin| LoginRow {
        in_use: used.contains(&login),
        account: login.account,
        issuer: login.issuer,
        scopes: login.scopes,
        expires_at: login.expires_at.map(shown_time),
        renews: login.renews,
        how: login.how.as_str().into(),
        kept_in: login.backend.as_str().into(),
        server: Some(login.server),
    };
    kept.into_iter().map(row).collect()
}

/// The servers that the login at the identity provider serves.
pub fn served_rows(plan: &Plan) -> Vec<ServedRow> {
    let admitted = plan.admitted();
    admitted
        .filter_map(|(server, spec)| {
            let remote = spec.transport.open_to_logins()?;
            let required_by = match &remote.oauth.as_ref()?.xaa {
                CrossApp::Off => return None,
                CrossApp::Preferred => None,
                CrossApp::Only { policy } => Some(policy.clone()),
            };
            Some(ServedRow {
                name: server.name.as_str().to_owned(),
                required_by,
            })
        })
        .collect()
}

/// A moment in seconds since 1970, as rows spell it.
pub fn shown_time(seconds: u64) -> String {
    // A token for ever ends with the largest time that can be shown.
    const YEAR_9999: u64 = 253_402_300_799;
    let instant: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds.min(YEAR_9999));
    timestamp(instant)
}
