//! What the commands about resources, prompts and skills share: which servers are asked, and
//! the words behind a name.
//!
//! Owns no request; those are the host's.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolway::{HostSnapshot, Offering};
use toolway_config::Plan;
use toolway_types::ServerName;

use crate::commands::admitted::require_admitted;
use crate::commands::list::say_warnings;
use crate::commands::tools::{require_connected, say_missing};
use crate::connect::{self, CommandHost, Typed, TypedCommand, Wanted};
use crate::context::{Context, require_flags_only};
use crate::report::Report;

/// The servers that a command asks.
pub(super) struct Servers {
    pub(super) plan: Plan,
    /// The one that was named, if one was.
    pub(super) only: Option<ServerName>,
    typed: Option<Typed>,
}

impl Servers {
    /// Those that were meant by a name, a URL or a command; all of them where nothing was typed.
    pub(super) fn find(
        context: &Context,
        server: Option<&str>,
        command: &TypedCommand,
    ) -> Result<Self, Report> {
        let typed = Typed::either(context, server, command)?;
        let plan = match &typed {
            Some(typed) => context.plan_with(&typed.flags),
            None => context.plan().clone(),
        };
        // Of one server, what is wrong with others is beside the point.
        if typed.is_none() && server.is_some() {
            require_flags_only(&plan)?;
        } else {
            context.require_flags(&plan)?;
        }
        let name = typed.as_ref().map(|typed| typed.name.as_str()).or(server);
        let only = name
            .map(|name| require_admitted(context, &plan, name))
            .transpose()?;
        Ok(Self { plan, only, typed })
    }

    /// Who is to be connected.
    pub(super) fn wanted(&self) -> Wanted {
        match &self.only {
            Some(name) => Wanted::Only(name.clone()),
            None => Wanted::All,
        }
    }

    /// Waits for them, and says what is wrong with them. The failure of the only one is an error,
    /// and so is a rule that denies what is wanted of it.
    pub(super) async fn settle(
        &self,
        context: &Context,
        host: &CommandHost<'_>,
        wanted: Offering,
    ) -> Result<Arc<HostSnapshot>, Report> {
        // A server may ask something as soon as it is there.
        context
            .turns
            .beside(|| connect::settle(context, host))
            .await;
        let snapshot = host.snapshot();
        let only = self.only.as_ref();
        if let Some(refused) = only.and_then(|only| snapshot.refusal(only, wanted)) {
            return Err(Report::from(refused));
        }
        say_warnings(context, &snapshot);
        match &self.only {
            Some(name) => require_connected(&snapshot, name.as_str(), self.typed.as_ref())?,
            None => say_missing(context, &snapshot),
        }
        Ok(snapshot)
    }
}

/// What all of them offer, for a command that only lists. The connections end with the list.
pub(super) fn listed(
    context: &Context,
    server: Option<&str>,
    command: &TypedCommand,
    wanted: Offering,
) -> Result<Arc<HostSnapshot>, Report> {
    let servers = Servers::find(context, server, command)?;
    let (plan, who) = (servers.plan.clone(), servers.wanted());
    connect::with_host(context, plan, who, async |host| {
        servers.settle(context, host, wanted).await
    })
}

/// `key=value` words; a key again makes a list. `key=@file` reads a file.
pub(super) fn pairs(
    context: &Context,
    words: &[String],
) -> Result<BTreeMap<String, Vec<String>>, Report> {
    let mut pairs = BTreeMap::<String, Vec<String>>::new();
    for word in words {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        let Some((key, value)) = pair else {
            return Err(Report::usage(format!(
                "`{word}` is not an argument of the form `key=value`"
            ))
            .hint("use `key=value`, or `key=@file` to read a file"));
        };
        let value = match value.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(context.path(path)).map_err(|error| {
                Report::usage(format!("cannot read `{path}`: {error}"))
                    .hint(format!("give the value itself: `{key}=…`"))
            })?,
            None => value.to_owned(),
        };
        pairs.entry(key.to_owned()).or_default().push(value);
    }
    Ok(pairs)
}
