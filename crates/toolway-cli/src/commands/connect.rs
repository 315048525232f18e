//! `toolway connect`: puts other clients behind Toolway, and takes that back.
//!
//! Owns the flags, the order of preview, questions and writing. The list of clients is
//! `connect/listing.rs`, the servers that move `connect/moving.rs`, how the client reaches Toolway
//! `connect/reach.rs`, taking it back `connect/undoing.rs`. Formats, and writing, are
//! `toolway-config`'s.

mod listing;
mod moving;
mod reach;
mod undoing;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use toolway_config::connect::{
    self, ClientReading, ClientScope, ClientTarget, GatewayEntry, MovedServer,
};
use toolway_config::import::ImportClient;
use toolway_types::name::shell_word;
use toolway_types::text::{TextKind, legible};
use toolway_types::{Diagnosis, Severity};

use self::moving::MovingServers;
use crate::commands::add::say_written;
use crate::commands::import::clients;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::screen::Sheet;

/// The name of the entry, unless another one is chosen.
const NAME: &str = "toolway";

/// Connect a client to Toolway
///
/// Writes one entry into the settings of Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini
/// CLI, Windsurf, Zed, opencode or Goose, which starts `toolway serve`: all your servers reach the
/// client through it. Shows the change first and asks; comments and everything else in the file stay.
/// Servers that the client has by itself can be moved behind Toolway in the same step. `--undo` takes
/// it all back. Without a client, the clients that are found are listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway connect
  toolway connect cursor
  toolway connect claude-code --move
  toolway connect vscode --scope project --profile work
  toolway connect codex --url http://127.0.0.1:7777/mcp --token-file ~/.config/toolway/token
  toolway connect cursor --undo")]
pub(crate) struct ConnectArgs {
    /// The client; those that are found are listed when absent
    #[arg(value_parser = clients())]
    client: Option<ImportClient>,

    /// The name of the entry in the client's settings; `toolway` when absent
    #[arg(long, requires = "client")]
    name: Option<String>,

    /// Have the client get this profile, not everything
    #[arg(long, value_name = "NAME", requires = "client", conflicts_with = "url")]
    profile: Option<String>,

    /// Connect to a gateway that runs at this address, instead of starting one
    #[arg(long, requires = "client")]
    url: Option<String>,

    /// The file with that gateway's token. The client is told where it is, in its own way
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,

    /// Whose settings to write
    #[arg(short, long, value_enum, default_value = "user", requires = "client")]
    scope: SettingsScope,

    /// Move the servers that are configured there behind Toolway
    #[arg(long = "move", requires = "client", conflicts_with = "keep")]
    move_servers: bool,

    /// Leave the servers that are configured there where they are
    #[arg(long, alias = "servers-stay", requires = "client")]
    keep: bool,

    /// Take back what this command wrote
    #[arg(
        long,
        requires = "client",
        conflicts_with_all = ["profile", "url", "move_servers", "keep"]
    )]
    undo: bool,

    /// Only show what would be changed
    #[arg(long, requires = "client")]
    dry_run: bool,

    /// Do not ask; servers stay where they are unless `--move` is given
    #[arg(short, long, requires = "client")]
    yes: bool,

    /// Print the list of clients as JSON
    #[arg(long, conflicts_with = "client")]
    json: bool,
}

/// Whose settings of a client are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SettingsScope {
    /// Yours, everywhere
    User,
    /// Those of everyone in this project
    Project,
}

impl SettingsScope {
    fn scope(self) -> ClientScope {
        match self {
            Self::User => ClientScope::User,
            Self::Project => ClientScope::Project,
        }
    }
}

impl ConnectArgs {
    /// The command that is about the same entry, with other words behind it.
    fn about(&self, client: ImportClient, last: &str) -> String {
        let mut words = format!("toolway connect {}", client.id());
        if self.scope == SettingsScope::Project {
            words.push_str(" --scope project");
        }
        if let Some(name) = &self.name {
            words.push_str(" --name ");
            words.push_str(&shell_word(name));
        }
        format!("{words} {last}")
    }

    /// The command that was typed, with other words behind it.
    fn again(&self, client: ImportClient, last: &str) -> String {
        let file = self.token_file.as_ref().map(|file| file.to_string_lossy());
        let mut words = String::new();
        for (flag, value) in [
            ("--profile", self.profile.as_deref()),
            ("--url", self.url.as_deref()),
            ("--token-file", file.as_deref()),
        ] {
            if let Some(value) = value {
                words.extend([flag, " ", &shell_word(value), " "]);
            }
        }
        if self.move_servers {
            words.push_str("--move ");
        }
        self.about(client, &format!("{words}{last}"))
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ConnectArgs) -> Outcome {
    match args.client {
        None => listing::run(context, args.json),
        Some(client) if args.undo => undoing::run(context, args, client),
        Some(client) => connect(context, args, client),
    }
}

fn connect(context: &Context, args: &ConnectArgs, client: ImportClient) -> Outcome {
    let environment = context.environment();
    let records = context.setup.files().clients();
    let target = ClientTarget::find(environment, client, args.scope.scope())?;
    let reading = ClientReading::of(environment, &target, &records)?;
    let name = entry_name(args, &reading)?;
    let reach = reach::of(context, args, &target)?;
    let entry = GatewayEntry::new(&target, &name, &reach)?;
    let moving = MovingServers::of(context, &target, &reading);
    let decided = args.move_servers || args.keep || args.yes;
    let asks = !args.yes && !args.dry_run && context.output.can_ask();

    let mut moved: Vec<MovedServer> = Vec::new();
    if args.move_servers {
        say_strange(context, &reading);
        moved = moving.taken(&reading);
    }
    let mut change = reading.difference(&entry, &moved)?;
    let offers = !decided && moving.any();
    let mut seen = true;
    if change.is_empty() {
        context.say(format!(
            "{} is connected already, as `{name}`: {}",
            client.title(),
            target.path.display()
        ));
        if !(offers && asks) {
            say_staying(context, args, client, &moving, &moved);
            return Ok(Exit::Success);
        }
    } else {
        let mut sheet = change_sheet(context, &target, &change);
        if !moved.is_empty() {
            sheet.row(&moving.heading(moved.len()));
            moving.rows(&mut sheet);
        }
        seen = show(context, asks, &sheet.finish())?;
    }
    if args.dry_run {
        say_staying(context, args, client, &moving, &moved);
        return Ok(Exit::Success);
    }
    if !args.yes && !asks {
        say_staying(context, args, client, &moving, &moved);
        return Err(
            Report::refused("nothing was changed: nobody is there to confirm this").hint(format!(
                "read the above, then run `{}`",
                args.again(client, "--yes")
            )),
        );
    }
    if seen && offers {
        say_strange(context, &reading);
        if moving.ask(context, client)? {
            moved = moving.taken(&reading);
            change = reading.difference(&entry, &moved)?;
            let sheet = change_sheet(context, &target, &change);
            seen = show(context, asks, &sheet.finish())?;
        }
    }
    if change.is_empty() {
        context.say("nothing was changed");
        return Ok(Exit::Success);
    }
    let question = format!("Write this to the settings of {}?", client.title());
    let agreed = args.yes || seen && context.output.confirm(&question)?;
    if !agreed {
        return Err(Report::refused("nothing was changed").hint(format!(
            "to look at it again: `{}`",
            args.again(client, "--dry-run")
        )));
    }
    // First there, then not here any more: whatever happens between, no server is lost.
    if !moved.is_empty() {
        moving.import(context)?;
    }
    let edited = connect::connect(environment, &records, &target, &entry, &moved)?;
    say_written(context, &format!("connected {}", client.title()), &edited);
    if let Some(backup) = &edited.backup {
        context.say(format!("the file as it was: {}", backup.display()));
    }
    for note in &entry.notes {
        context.say(format!("note: {note}"));
    }
    say_staying(context, args, client, &moving, &moved);
    context.hint(format!(
        "restart {} to use it; take it back with `{}`",
        client.title(),
        args.about(client, "--undo")
    ));
    Ok(Exit::Success)
}

/// The name that was chosen, else that of the entry that is there, else the usual one. It must not
/// be another server's.
fn entry_name(args: &ConnectArgs, reading: &ClientReading) -> Result<String, Report> {
    let name = match (&args.name, reading.gateways.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [only]) => only.clone(),
        (None, _) => NAME.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(
            Report::usage("a name here has letters, digits, `-` and `_` only")
                .hint("e.g. `--name toolway-work`"),
        );
    }
    if reading.is_taken(&name) {
        return Err(Report::configuration(format!(
            "`{name}` is another server in `{}`",
            reading.file.path.display()
        ))
        .hint(format!(
            "choose a name that is free: `--name {name}-gateway`"
        )));
    }
    Ok(name)
}

/// The change of a file, line by line.
fn change_sheet(context: &Context, target: &ClientTarget, change: &str) -> Sheet {
    let mut sheet = context.output.result_screen().sheet();
    let path = target.path.display().to_string();
    sheet.row(&format!(
        "{} ({})",
        target.client.title(),
        legible(&path, TextKind::Code)
    ));
    for line in change.lines() {
        let mut rest = line.chars();
        let sign = rest.next().unwrap_or(' ');
        let rest = legible(rest.as_str(), TextKind::Source);
        sheet.row(&format!("  {sign}{rest}"));
    }
    sheet
}

/// Shows what would be done: page by page where the user is asked about it next. False when they
/// stopped before its end.
fn show(context: &Context, asks: bool, preview: &str) -> std::io::Result<bool> {
    if asks && context.output.stdout_is_terminal() {
        context.output.lay_before(preview)
    } else {
        context.output.result(preview).map(|()| true)
    }
}

/// Says how servers that could move, and did not, can be moved.
fn say_staying(
    context: &Context,
    args: &ConnectArgs,
    client: ImportClient,
    moving: &MovingServers<'_>,
    moved: &[MovedServer],
) {
    if moved.is_empty() && moving.any() && !args.keep {
        let command = args.again(client, "--move");
        context.say(format!("note: {}", moving.staying(&command)));
    }
}

/// Says what is no server that could move.
fn say_strange(context: &Context, reading: &ClientReading) {
    let found = reading.file.diagnoses.iter().cloned();
    let found = found.map(|finding| Diagnosis {
        severity: Severity::Warning,
        ..finding
    });
    context.say_findings(&found.collect::<Vec<_>>());
}
