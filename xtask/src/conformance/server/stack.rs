//! What one worker judges: the processes of a column, put together, and the address that the suite
//! is sent to.
//!
//! Owns the order of beginning and ending, and waiting until everything behind a gateway is there.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::http;
use super::process::{Gateway, Kind, Process, Programs};
use super::shim::{Names, Shim};
use super::target::{Between, Eras, Target};

/// What servers are called in the gateway's configuration.
const FIXTURE: &str = "fixture";
const DECOY: &str = "decoy";

/// How long a gateway may take to show what its servers have.
const PATIENCE: Duration = Duration::from_secs(30);

/// In the order in which they are taken down.
pub(super) struct Stack {
    pub(super) url: String,
    shim: Option<Shim>,
    gateway: Option<Gateway>,
    servers: Vec<Process>,
}

impl Stack {
    /// A server that has nothing, for itself.
    pub(super) fn empty(programs: &Programs, logs: &Path) -> Result<Self> {
        let server = programs.listen(Kind::Empty, Eras::Both, &logs.join("empty.txt"))?;
        Ok(Self {
            url: server.url.clone(),
            shim: None,
            gateway: None,
            servers: vec![server],
        })
    }

    pub(super) fn start(target: &Target, programs: &Programs, logs: &Path) -> Result<Self> {
        let log = |name: &str| logs.join(format!("{name}.txt"));
        let mut servers = Vec::new();
        let mut entries = Map::new();
        if target.between == Between::GatewayStdio {
            entries.insert(FIXTURE.into(), programs.entry(Kind::Fixture, target.eras));
        } else {
            let fixture = programs.listen(Kind::Fixture, target.eras, &log(FIXTURE))?;
            entries.insert(
                FIXTURE.into(),
                json!({ "type": "http", "url": fixture.url }),
            );
            servers.push(fixture);
        }
        if target.between == Between::Merged {
            entries.insert(DECOY.into(), programs.entry(Kind::Decoy, Eras::Both));
        }
        let mut stack = Self {
            url: servers
                .first()
                .map(|server| server.url.clone())
                .unwrap_or_default(),
            shim: None,
            gateway: None,
            servers,
        };
        if target.is_direct() {
            return Ok(stack);
        }
        let gateway = stack
            .gateway
            .insert(programs.serve(&entries, &log("gateway"))?);
        if target.between == Between::Merged {
            let view = gateway.url().to_owned();
            wait_for(&view, &["fixture__test_simple_text", "decoy__weather"])?;
            let names = names(&stack.url, &view)?;
            let shim = stack.shim.insert(Shim::start(&view, names)?);
            stack.url = shim.url();
        } else {
            stack.url = format!("{}/{FIXTURE}", gateway.url());
            wait_for(&stack.url, &["test_simple_text"])?;
        }
        Ok(stack)
    }

    /// Takes it down; what cannot end by itself is an error.
    pub(super) fn end(self) -> Result<()> {
        drop(self.shim);
        self.gateway.map_or(Ok(()), Gateway::end)?;
        self.servers.into_iter().try_for_each(Process::end)
    }
}

/// A gateway shows a server's tools once it is connected, which takes a moment.
fn wait_for(url: &str, tools: &[&str]) -> Result<()> {
    let started = Instant::now();
    loop {
        let shown = http::ask(url, "tools/list");
        let has = |tool: &str| {
            let listed = shown
                .as_ref()
                .ok()
                .and_then(|list| list["tools"].as_array());
            listed.is_some_and(|listed| listed.iter().any(|item| item["name"] == tool))
        };
        let Some(missing) = tools.iter().find(|tool| !has(tool)) else {
            return Ok(());
        };
        if started.elapsed() > PATIENCE {
            let said = shown.map_or_else(|error| format!("{error:#}"), |list| list.to_string());
            return Err(anyhow::anyhow!("{url} shows no `{missing}`: {said}"));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// How the fixture is called in the view. Which addresses were changed, because another server has
/// them too, is read from both lists: it is the gateway's choice into what.
fn names(fixture: &str, view: &str) -> Result<Names> {
    let own = resources(fixture)?;
    let shown = resources(view)?;
    let mut names = Names {
        prefix: format!("{FIXTURE}__"),
        others: format!("{DECOY}__"),
        ..Names::default()
    };
    for resource in own {
        let uri = text(&resource, "uri");
        let same = shown
            .iter()
            .find(|other| other["description"] == resource["description"])
            .with_context(|| format!("the merged view does not show the fixture's `{uri}`"))?;
        if same["uri"] != resource["uri"] {
            names.addresses.insert(uri, text(same, "uri"));
        }
    }
    Ok(names)
}

fn resources(url: &str) -> Result<Vec<Value>> {
    let result = http::ask(url, "resources/list")?;
    let list = result["resources"].as_array().cloned();
    list.with_context(|| format!("{url} lists no resources"))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
