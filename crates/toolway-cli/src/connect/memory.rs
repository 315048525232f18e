//! What servers offered before, for commands that need not ask them now.
//!
//! Owns how old that may be, and starting the process that refreshes it in the background
//! (`commands/refresh.rs`). What is kept is the library's.

use std::process::{Command, Stdio};
use std::time::Duration;

use toolway::{Offering, Recalled, RecalledServer};
use toolway_config::{Flags, Plan};
use toolway_types::name::as_word;
use toolway_types::{ServerName, ToolKey, Untrusted, several_nearest};

use crate::context::Context;
use crate::report::did_you_mean;

/// The command that asks servers again.
pub(crate) const REFRESH: &str = "__refresh";

/// From this age on servers are asked again. Nearly all offer the same for weeks, and every run
/// that connects to one makes it new.
const OLD: Duration = Duration::from_hours(1);

/// Says so where a server did not offer such a tool when it was last asked: it is not asked now, and
/// a typing error would be answered as if it were a tool.
pub(crate) fn say_if_absent(context: &Context, plan: &Plan, key: &ToolKey) {
    let recalled = context.setup.recall(plan);
    let known = recalled.known.get(&key.server);
    if !known.is_some_and(|known| known.lists.tools) {
        return;
    }
    let catalog = &recalled.snapshot.catalog;
    let offered = catalog.tools().map(|tool| &tool.key);
    let left_out = catalog.left_out().map(|tool| &tool.key);
    let names: Vec<&str> = offered
        .chain(left_out)
        .filter(|other| other.server == key.server)
        .map(|other| other.tool.as_str())
        .collect();
    let is_offering = Offering::named(&key.tool).is_some();
    if is_offering || names.contains(&key.tool.as_str()) {
        return;
    }
    let near = several_nearest(&key.tool, names, 3);
    let near: Vec<String> = near
        .into_iter()
        .map(|name| Untrusted::new(name).line().into_owned())
        .collect();
    let server = as_word(key.server.as_str());
    let hint =
        did_you_mean(&near).unwrap_or(format!("see its tools with `toolway tools {server}`"));
    context.warn(format!(
        "server `{}` offered no tool `{}` when it was last asked\nhint: {hint}",
        key.server,
        Untrusted::new(&key.tool).line()
    ));
}

/// Has those asked again that were asked long ago.
pub(crate) fn refresh_old(context: &Context, recalled: &Recalled) {
    let is_old = |(_, known): &(&ServerName, &RecalledServer)| known.age > OLD;
    let old = recalled.known.iter().filter(is_old);
    refresh(context, old.map(|(name, _)| name));
}

/// Has servers asked again by a process in the background; none that flags gave to this run.
pub(crate) fn refresh<'a>(context: &Context, servers: impl Iterator<Item = &'a ServerName>) {
    let names: Vec<&str> = servers.map(ServerName::as_str).collect();
    if names.is_empty() || !is_plain(context.flags()) {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut command = Command::new(program);
    command.args([REFRESH, "--"]).args(names);
    // In the daemon, too, it is whoever typed this that asks.
    command
        .env_clear()
        .envs(context.environment().variables())
        .current_dir(context.environment().cwd());
    // A shell reads what a completion prints until every process has closed it.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Where no process can be started, old answers go on to be used.
    let Ok(mut asking) = command.spawn() else {
        return;
    };
    if context.daemon().is_some() {
        // This process goes on, and has to see it off.
        let waiting = std::thread::Builder::new().name("refresh".to_owned());
        drop(waiting.spawn(move || asking.wait()));
    }
}

fn is_plain(flags: &Flags) -> bool {
    flags.mcp_config.is_empty()
        && flags.mcp_server.is_empty()
        && !flags.strict
        && !flags.approve_project_servers
        && !flags.ide
}

/// How long ago, in words.
pub(crate) fn ago(age: Duration) -> String {
    let (count, unit) = match age.as_secs() {
        ..60 => return "less than a minute ago".to_owned(),
        seconds @ 60..3_600 => (seconds / 60, "minute"),
        seconds @ 3_600..86_400 => (seconds / 3_600, "hour"),
        seconds => (seconds / 86_400, "day"),
    };
    match (count, unit) {
        (1, "hour") => "an hour ago".to_owned(),
        (1, unit) => format!("a {unit} ago"),
        (count, unit) => format!("{count} {unit}s ago"),
    }
}
