//! `toolway generate`: typed modules of servers' tools, for programs that call them.
//!
//! Owns which servers are asked and where modules go. What a module says is `toolway_bindings`'; how
//! files are held against what servers offer now, `check.rs`; which files there are, `target.rs`.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use toolway::HostSnapshot;
use toolway_bindings::{Language, ModuleStamp, ServerTools, ToolDefinition, module};
use toolway_config::Plan;
use toolway_types::ServerName;
use toolway_types::name::as_word;

use self::target::{Target, TargetFile};
use super::admitted::require_admitted;
use super::read::file;
use super::tools::require_connected;
use crate::connect::memory::{ago, refresh_old};
use crate::connect::{self, Wanted};
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

mod check;
mod target;

/// Write typed modules of servers' tools, for programs
///
/// A module has a function for each tool, with types for what it takes and gives. It calls through
/// the package `toolway` of its language. The same tools give the same file, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway generate typescript github
  toolway generate python github -o github.py
  toolway generate python github files -o tools/
  toolway generate python github files -o tools/ --check
  toolway generate typescript github --cached

--check writes nothing, and exits with 3 when a server offers something else than its file says.")]
pub(crate) struct GenerateArgs {
    /// The language
    #[arg(value_enum)]
    language: LanguageWord,

    /// The servers
    #[arg(required = true)]
    servers: Vec<String>,

    /// Where to write it: a file, or a directory for a file of each server and, for several, an
    /// index; without it, a single module is printed
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<PathBuf>,

    /// Write nothing; fail when a server offers something else than its file says
    #[arg(long, requires = "output", conflicts_with = "force")]
    check: bool,

    /// Use what the servers offered before: start nothing, wait for nothing
    #[arg(long)]
    cached: bool,

    /// Replace files that were not made by this command
    #[arg(long)]
    force: bool,
}

impl GenerateArgs {
    /// Whether it asks servers, rather than the memory.
    pub(crate) fn connects(&self) -> bool {
        !self.cached
    }

    /// What is typed to write the files that were checked.
    fn again(&self) -> String {
        let servers: Vec<String> = self
            .servers
            .iter()
            .map(|name| as_word(name).to_string())
            .collect();
        let output = self.output.as_ref().map(|path| path.display().to_string());
        format!(
            "toolway generate {} {} -o {}",
            Language::from(self.language).word(),
            servers.join(" "),
            as_word(&output.unwrap_or_default())
        )
    }
}

/// The languages, as they are typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LanguageWord {
    #[value(alias = "ts")]
    Typescript,
    #[value(alias = "py")]
    Python,
    #[value(alias = "rs")]
    Rust,
}

impl From<LanguageWord> for Language {
    fn from(word: LanguageWord) -> Self {
        match word {
            LanguageWord::Typescript => Self::TypeScript,
            LanguageWord::Python => Self::Python,
            LanguageWord::Rust => Self::Rust,
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &GenerateArgs) -> Outcome {
    let plan = context.plan();
    require_flags_only(plan)?;
    let mut names = Vec::new();
    for word in &args.servers {
        let name = require_admitted(context, plan, word)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    let language = Language::from(args.language);
    let path = args.output.as_ref().map(|path| context.path(path));
    // Before anything is started.
    let target = Target::of(language, &names, path.as_deref())?;
    let offered = if args.cached {
        recalled(context, plan, &names)?
    } else {
        asked(context, plan, &names)?
    };
    let mut files = target.files(language, &offered);
    if args.check {
        return check::run(context, args, &files, &offered);
    }
    for server in offered.iter().filter(|server| server.tools.is_empty()) {
        context.warn(format!("server `{}` offers no tools", server.server));
    }
    if let (Target::Stdout, [server]) = (&target, offered.as_slice()) {
        context.output.verbatim(&module(language, server))?;
        return Ok(Exit::Success);
    }
    for file in &files {
        may_replace(args, file)?;
    }
    for file in &mut files {
        write(context, file)?;
    }
    Ok(Exit::Success)
}

/// What servers offer now.
fn asked(context: &Context, plan: &Plan, names: &[ServerName]) -> Result<Vec<ServerTools>, Report> {
    let wanted = Wanted::Some(names.to_vec());
    let snapshot = connect::with_host(context, plan.clone(), wanted, async |host| {
        connect::settle(context, host).await;
        Ok(host.snapshot())
    })?;
    for name in names {
        require_connected(&snapshot, name.as_str(), None)?;
    }
    Ok(offered(&snapshot, names))
}

/// What servers offered before.
fn recalled(
    context: &Context,
    plan: &Plan,
    names: &[ServerName],
) -> Result<Vec<ServerTools>, Report> {
    let mut plan = plan.clone();
    plan.servers.retain(|server| names.contains(&server.name));
    let recalled = context.setup.recall(&plan);
    for name in names {
        if !recalled.known.get(name).is_some_and(|it| it.lists.tools) {
            let message = format!("nothing is kept of server `{name}` yet");
            let word = as_word(name.as_str());
            return Err(Report::new(Exit::Connection, message)
                .hint(format!("ask it with `toolway tools {word}`")));
        }
    }
    if let Some(oldest) = recalled.known.values().map(|known| known.age).max() {
        context.say(format!(
            "as of {}; without `--cached` the servers are asked",
            ago(oldest)
        ));
    }
    let offered = offered(&recalled.snapshot, names);
    refresh_old(context, &recalled);
    Ok(offered)
}

fn offered(snapshot: &HostSnapshot, names: &[ServerName]) -> Vec<ServerTools> {
    let of = |name: &ServerName| {
        let tools = snapshot.catalog.tools();
        let tools = tools.filter(|tool| tool.key.server == *name && !tool.is_built_in());
        let tools = tools.map(|tool| ToolDefinition {
            name: tool.key.tool.clone(),
            description: tool.description.clone(),
            // Both were parsed when they were cleaned.
            input: serde_json::from_str(tool.input_schema.get()).unwrap_or_default(),
            output: tool
                .output_schema
                .as_ref()
                .and_then(|schema| serde_json::from_str(schema.get()).ok()),
        });
        ServerTools {
            server: name.to_string(),
            tools: tools.collect(),
        }
    };
    names.iter().map(of).collect()
}

/// Refuses to take somebody's work away.
fn may_replace(args: &GenerateArgs, file: &TargetFile) -> Result<(), Report> {
    let Some(old) = old(&file.path)? else {
        return Ok(());
    };
    if args.force || old.is_empty() || ModuleStamp::is_ours(&old) {
        return Ok(());
    }
    let shown = file.path.display();
    Err(
        Report::configuration(format!("`{shown}` was not made by `toolway generate`"))
            .hint("write elsewhere with `-o`, or replace it with `--force`"),
    )
}

/// What a file holds; nothing where there is none.
fn old(path: &Path) -> Result<Option<String>, Report> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable("read", path, &error)),
    }
}

/// Writes a file, where it says something else.
fn write(context: &Context, made: &TargetFile) -> Result<(), Report> {
    let shown = made.path.display();
    if old(&made.path)?.as_deref() == Some(&made.text) {
        context.say(format!("`{shown}` is as it was"));
        return Ok(());
    }
    if let Some(folder) = made.path.parent() {
        fs::create_dir_all(folder).map_err(|error| unusable("make", folder, &error))?;
    }
    file::write(&made.path, made.text.as_bytes(), true, None)
        .map_err(|error| unusable("write", &made.path, &error))?;
    context.say(format!("wrote `{shown}`"));
    Ok(())
}

fn unusable(what: &str, path: &Path, error: &io::Error) -> Report {
    Report::configuration(format!("cannot {what} `{}`: {error}", path.display()))
        .hint("choose another place with `-o`")
}
