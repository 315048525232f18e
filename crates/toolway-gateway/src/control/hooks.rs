//! Hooks that live in the program.
//!
//! Owns making hooks of the host of them. Which are concerned, how long each may take and that one
//! which fails refuses, is the host's (`dispatch/hooks`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use toolway::config::HookEvent;
use toolway::{HookReply, LibraryHook};

use super::brought::ResidentLink;
use super::error::ControlError;
use super::messages::{HookCall, ProgramHook};
use super::methods::HOOK;

/// The most hooks of one program.
const MOST: usize = 256;

/// The longest that one may take that does not say so, in seconds.
pub(super) const USUAL_SECONDS: f64 = 10.0;

/// The hooks of a program.
pub(super) fn hooks(
    wanted: &[ProgramHook],
    link: &ResidentLink,
) -> Result<Vec<LibraryHook>, ControlError> {
    if wanted.len() > MOST {
        let message = format!("a program has {MOST} hooks at most");
        return Err(ControlError::invalid(message));
    }
    wanted.iter().map(|hook| made(hook, link)).collect()
}

fn made(wanted: &ProgramHook, link: &ResidentLink) -> Result<LibraryHook, ControlError> {
    let event = HookEvent::ALL
        .into_iter()
        .find(|event| event.as_str() == wanted.event);
    let event = event.ok_or_else(|| {
        let known: Vec<_> = HookEvent::ALL.iter().map(|event| event.as_str()).collect();
        let message = format!(
            "`{}` is no event of hooks; there are {}",
            toolway::types::text::clean_line(&wanted.event),
            known.join(", ")
        );
        ControlError::invalid(message)
    })?;
    let callback: Arc<str> = wanted.callback.as_str().into();
    let link = link.clone();
    let hook = LibraryHook::new(&*callback.clone(), event, &wanted.matcher, move |input| {
        let (callback, link) = (Arc::clone(&callback), link.clone());
        async move {
            let params = HookCall {
                callback: &callback,
                event: event.as_str(),
                input: &input,
            };
            let params = to_raw_value(&params).map_err(|error| error.to_string())?;
            let asked = link.questions.ask(&link.outlet, HOOK, &params).await;
            let answer = asked.map_err(|error| error.message)?;
            HookReply::parse(event, answer.get())
        }
    });
    let hook = hook.map_err(|error| ControlError::invalid(error.to_string()))?;
    let Some(seconds) = wanted.timeout else {
        return Ok(hook);
    };
    let limit = Duration::try_from_secs_f64(seconds);
    let limit = limit.ok().filter(|limit| !limit.is_zero());
    let limit = limit.ok_or_else(|| ControlError::invalid("`timeout` is a number of seconds"))?;
    Ok(hook.timeout(limit))
}
