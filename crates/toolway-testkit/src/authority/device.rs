//! Logins of devices without a browser (RFC 8628).

use serde_json::json;

use super::answer::refuse;
use super::authorize::{check_resource, device_page, scope_of};
use super::client::authenticate;
use super::http::AuthorityReply;
use super::record::RecordedRequest;
use super::state::{
    AuthorityClient, AuthorityState, DeviceDecision, IssuedGrant, PendingDevice, secret,
};
use super::token::finish;
use super::{Switch, jwt};

/// Begins a login.
pub(super) fn begin(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    let client = match authenticate(state, seen) {
        Ok(client) => client,
        Err(refused) => return refused,
    };
    if let Err((error, why)) = check_resource(state, seen.param("resource")) {
        return refuse(state, 400, error, why);
    }
    let scope = scope_of(state, seen);
    let (device_code, user_code) = (secret("device"), jwt::random(4).to_uppercase());
    let seconds = state.settings.device_seconds;
    let mut interval = state.settings.device_interval;
    if state.on(Switch::DeviceIntervalZero) {
        interval = 0;
    }
    if state.on(Switch::DeviceIntervalHuge) {
        interval = 365 * 24 * 60 * 60;
    }
    let mut memory = state.memory();
    memory.report.devices += 1;
    let lasts = if state.on(Switch::DeviceExpired) {
        0
    } else {
        seconds * 1000
    };
    let kept = PendingDevice {
        grant: IssuedGrant {
            party: seen.party,
            client: client.id,
            subject: state.settings.subject.clone(),
            scope,
            resource: seen.param("resource").map(str::to_owned),
            nonce: None,
            jkt: None,
            family: memory.fresh(),
        },
        user_code: user_code.clone(),
        ends: memory.now() + lasts,
        interval_ms: interval * 1000,
        polls: 0,
        last_poll: None,
        decision: DeviceDecision::Open,
    };
    memory.devices.insert(device_code.clone(), kept);
    let issuer = state.issuer(seen.party);
    let mut answer = json!({
        "device_code": device_code,
        "user_code": user_code,
        "verification_uri": format!("{issuer}/device"),
        "verification_uri_complete": device_page(issuer, &user_code),
        "expires_in": seconds,
        "interval": interval,
    });
    if state.on(Switch::DeviceJavascript) {
        for name in ["verification_uri", "verification_uri_complete"] {
            answer[name] = json!("javascript:alert(1)");
        }
    }
    AuthorityReply::json(200, &answer)
}

/// Gives tokens for a device's code once a user said yes.
pub(super) fn redeem(
    state: &AuthorityState,
    seen: &RecordedRequest,
    client: &AuthorityClient,
    key: Option<&str>,
) -> AuthorityReply {
    let name = seen.param("device_code").unwrap_or_default();
    let slow = state.once(Switch::DeviceSlowDownOnce);
    let never = state.on(Switch::DeviceNever);
    let denied = state.on(Switch::DeviceDenied);
    let refused = |error: &str| refuse(state, 400, error, "the device has to wait, or to stop");
    let mut memory = state.memory();
    let now = memory.now();
    let Some(device) = memory.devices.get_mut(name) else {
        return refused("invalid_grant");
    };
    if device.grant.client != client.id || device.grant.party != seen.party {
        return refused("invalid_grant");
    }
    if device.ends <= now {
        return refused("expired_token");
    }
    let last = device.last_poll.replace(now);
    let hasty = last.is_some_and(|last| now < last + device.interval_ms);
    if slow || state.settings.device_strict && hasty {
        device.interval_ms += 5000;
        return refused("slow_down");
    }
    device.polls += 1;
    let by_itself = state
        .settings
        .device_polls
        .is_some_and(|polls| device.polls > polls);
    if by_itself && device.decision == DeviceDecision::Open && !never {
        device.decision = DeviceDecision::Allowed;
    }
    match device.decision {
        _ if denied => refused("access_denied"),
        DeviceDecision::Denied => refused("access_denied"),
        DeviceDecision::Allowed if !never => {
            let mut grant = device.grant.clone();
            grant.jkt = key.map(str::to_owned);
            memory.devices.remove(name);
            finish(state, &mut memory, &grant)
        }
        _ => refused("authorization_pending"),
    }
}

/// What the user says; whether there is such a code.
pub(super) fn decide(state: &AuthorityState, user_code: &str, allow: bool) -> bool {
    let mut memory = state.memory();
    let waiting = memory
        .devices
        .values_mut()
        .find(|device| device.user_code == user_code);
    let Some(device) = waiting else {
        return false;
    };
    device.decision = if allow {
        DeviceDecision::Allowed
    } else {
        DeviceDecision::Denied
    };
    true
}

/// The page on which a user types the code, and decides.
pub(super) fn page(state: &AuthorityState, seen: &RecordedRequest) -> AuthorityReply {
    let code = seen.param("user_code").unwrap_or_default();
    let Some(decision) = seen.param("decision") else {
        let shown: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        return AuthorityReply::html(
            200,
            &format!(
                "<!doctype html><title>Device</title><h1>Connect a device</h1>\
                 <form method=\"post\"><input name=\"user_code\" value=\"{shown}\">\
                 <button name=\"decision\" value=\"allow\">Allow</button>\
                 <button name=\"decision\" value=\"deny\">Deny</button></form>"
            ),
        );
    };
    if decide(state, code, decision == "allow") {
        AuthorityReply::html(
            200,
            "<!doctype html><title>Device</title><p>You can go back to it.",
        )
    } else {
        AuthorityReply::html(404, "<!doctype html><title>Device</title><p>Unknown code.")
    }
}
