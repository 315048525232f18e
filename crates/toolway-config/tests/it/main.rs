//! The configuration as a whole: files in a temporary home, in; a plan, out.
//!
//! Owns the stage that every behaviour below plays on. Nothing here touches the real home.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says so by failing"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolway_config::{Environment, Flags, Plan, PlannedServer};
use toolway_testkit::ScannedFolder;
use toolway_testkit::marked::MARK;
use toolway_types::ServerSpec;

mod account;
mod agents;
mod approval;
mod authors;
mod binding;
mod bypasses;
mod expansion;
mod flags;
mod hostile;
mod ide;
mod identity;
mod limits;
mod local;
mod planner;
mod policy;
mod profiles;
mod programs;
mod references;
mod rules;
mod scopes;
mod size;
mod token;

/// A home with a repository in it, and a system directory.
struct Stage {
    /// No secret may be left in it, but in what a test wrote.
    folder: ScannedFolder,
    root: PathBuf,
    vars: BTreeMap<String, String>,
    cwd: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let folder = ScannedFolder::new();
        let root = folder.path().to_path_buf();
        for folder in ["home/repo/.git", "home/repo/deep", "system"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let home = root.join("home").display().to_string();
        let vars = [
            ("HOME", home.as_str()),
            ("PATH", "/usr/bin:/bin"),
            ("SECRET", MARK),
        ];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let cwd = root.join("home/repo");
        Self {
            folder,
            vars: vars.into(),
            cwd,
            root,
        }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        self.folder.write(path, text)
    }

    fn user(&self, text: &str) -> PathBuf {
        self.write("home/.config/toolway/settings.json", text)
    }

    fn project(&self, text: &str) -> PathBuf {
        self.write("home/repo/.mcp.json", text)
    }

    fn local(&self, text: &str) -> PathBuf {
        self.write("home/repo/.toolway/settings.local.json", text)
    }

    fn managed(&self, text: &str) -> PathBuf {
        self.write("system/managed-settings.json", text)
    }

    fn enterprise(&self, text: &str) -> PathBuf {
        self.write("system/managed-mcp.json", text)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    fn environment(&self) -> Environment {
        Environment::new(self.vars.clone(), self.cwd.clone())
            .with_system_dir(self.root.join("system"))
    }

    fn plan(&self) -> Plan {
        self.plan_with(&Flags::default())
    }

    fn plan_with(&self, flags: &Flags) -> Plan {
        toolway_config::plan(&self.environment(), flags)
    }

    fn approve(&self, name: &str, allow_env: &[&str]) {
        let plan = self.plan();
        let allow_env: Vec<_> = allow_env.iter().map(|name| (*name).to_owned()).collect();
        let server = waiting(&plan, name).unwrap_or_else(|| server(&plan, name));
        let files = toolway_config::repository_files(&self.environment(), server);
        toolway_config::approve(&self.environment(), server, &allow_env, &files.bound).unwrap();
    }
}

/// A definition from a `json!` object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("`{other}` is no object"),
    }
}

/// One line per mention: name, scope, verdict and reason, with paths made short.
fn table(stage: &Stage, plan: &Plan) -> String {
    let root = format!("{}/", stage.root.display());
    let lines = plan.servers.iter().map(|server| {
        let reason = server
            .verdict
            .reason()
            .map_or_else(String::new, |why| format!(": {why}"));
        format!(
            "{} [{}] {}{reason}\n",
            server.name,
            server.scope,
            server.verdict.word()
        )
    });
    lines.collect::<String>().replace(&root, "")
}

/// Every finding, one line each, with paths made short.
fn findings(stage: &Stage, plan: &Plan) -> String {
    let root = format!("{}/", stage.root.display());
    let lines = plan.all_diagnoses().map(|found| {
        let place = found
            .origin
            .as_ref()
            .map_or_else(String::new, |origin| format!("{origin} "));
        let column = found
            .column
            .map_or_else(String::new, |column| format!("(column {column}) "));
        let hint = found
            .hint
            .as_ref()
            .map_or_else(String::new, |hint| format!(" | {hint}"));
        format!("{place}{column}{}{hint}\n", found.message)
    });
    lines.collect::<String>().replace(&root, "")
}

fn server<'a>(plan: &'a Plan, name: &str) -> &'a PlannedServer {
    plan.winner(name)
        .unwrap_or_else(|| panic!("no server `{name}`"))
}

/// The entry of a name that waits for approval.
fn waiting<'a>(plan: &'a Plan, name: &str) -> Option<&'a PlannedServer> {
    let waits = |server: &&PlannedServer| {
        server.name.as_str() == name && server.verdict.word() == "pending-approval"
    };
    plan.servers.iter().find(waits)
}

fn word(plan: &Plan, name: &str) -> &'static str {
    server(plan, name).verdict.word()
}

fn spec<'a>(plan: &'a Plan, name: &str) -> &'a ServerSpec {
    let found = plan
        .admitted()
        .find(|(server, _)| server.name.as_str() == name);
    found
        .unwrap_or_else(|| panic!("`{name}` is {:?}", server(plan, name).verdict))
        .1
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
