//! The whole command line as types.
//!
//! Owns global flags and the list of commands; each command's own flags stand in its file below
//! `commands/`. The doc comments here *are* the help text.

mod dashes;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use toolway_config::Flags;

pub(crate) use self::dashes::with_dashes;
use crate::commands::{
    account, add, add_json, approvals, approve, audit, auth, call, complete, completions, connect,
    control, daemon, demo, doctor, endpoint, explain, generate, generate_docs, get, idp, import,
    list, login, logout, logs, man, permissions, policy, prompt, prompts, read, reconnect, record,
    refresh, remove, replay, resources, run, serve, skills, state, status, switch, tokens, tools,
    vault,
};
use crate::connect::memory;
use crate::output::Errors;
use crate::{exit, groups};

/// Every MCP server you use, in one program.
///
/// Toolway reads which Model Context Protocol servers you have configured, connects to them and
/// offers their tools, resources and prompts in one place.
#[derive(Debug, Parser)]
#[command(
    name = "toolway",
    version,
    after_help = exit::TABLE,
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads what was typed, and how errors are to be told: a command that prints JSON tells them as
    /// JSON too.
    pub(crate) fn read(words: Vec<OsString>) -> Result<(Self, Errors), clap::Error> {
        let matches = match Self::command().try_get_matches_from(&words) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayVersion => return Err(error),
            // Help and advice speak of the other commands too.
            Err(_) => groups::whole(Self::command()).try_get_matches_from(words)?,
        };
        let cli = Self::from_arg_matches(&matches)?;
        let errors = if wants_json(&matches) {
            Errors::Json
        } else {
            Errors::Text
        };
        Ok((cli, errors))
    }
}

/// Whether `--json` was given to the command that was typed. One may have an argument of that name
/// that is no flag.
fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, below)) if wants_json(below) => true,
        _ => matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))),
    }
}

/// Flags that every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Servers for this run only: a file, or JSON itself. Repeatable
    #[arg(
        long,
        global = true,
        value_name = "FILE|JSON",
        help_heading = "Configuration"
    )]
    mcp_config: Vec<String>,

    /// One server for this run only. Repeatable
    #[arg(
        long,
        global = true,
        value_name = "NAME=COMMAND|URL",
        help_heading = "Configuration"
    )]
    mcp_server: Vec<String>,

    /// Use only what `--mcp-config` and `--mcp-server` say
    #[arg(long, global = true, help_heading = "Configuration")]
    strict_mcp_config: bool,

    /// Let this run use the repository's servers although nobody approved them
    #[arg(long, global = true, help_heading = "Configuration")]
    approve_project_servers: bool,

    /// Also connect to the editor that has this directory open, as the server `ide`
    #[arg(long, global = true, help_heading = "Configuration")]
    ide: bool,

    /// Start what is needed in this process, whether or not a daemon runs
    #[arg(long, global = true, display_order = 901)]
    no_daemon: bool,

    /// Say more on stderr; twice for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 900)]
    pub(crate) verbose: u8,
}

impl Global {
    /// Whether the daemon is left out of it: what is said with `--verbose` is said by this process.
    pub(crate) fn runs_alone(&self) -> bool {
        self.no_daemon || self.verbose > 0
    }

    /// The flags by which it is left out.
    pub(crate) fn alone(&self) -> Vec<&'static str> {
        let mut flags = vec!["--verbose"; usize::from(self.verbose)];
        if self.no_daemon {
            flags.push("--no-daemon");
        }
        flags
    }

    /// The part that configuration needs to know.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            mcp_config: self.mcp_config.clone(),
            mcp_server: self.mcp_server.clone(),
            strict: self.strict_mcp_config,
            approve_project_servers: self.approve_project_servers,
            ide: self.ide,
            ..Flags::default()
        }
    }
}

/// The commands. Each is built when it was typed: to build all takes longer than to run most.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Add(add::AddArgs),
    AddJson(add_json::AddJsonArgs),
    #[command(visible_alias = "rm")]
    Remove(remove::RemoveArgs),
    #[command(visible_alias = "show")]
    Get(get::GetArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Switch servers on, in this project or everywhere
    ///
    /// The word nearest to the project wins: what is said of this project before what is said of
    /// every project. `-s user` takes back what was said of this project.
    Enable(switch::SwitchArgs),
    /// Switch servers off, in this project or everywhere
    ///
    /// The word nearest to the project wins: what is said of this project before what is said of
    /// every project. `-s user` takes back what was said of this project.
    Disable(switch::SwitchArgs),
    Approve(approve::ApproveArgs),
    Reject(approve::RejectArgs),
    ResetApprovals(approve::ResetArgs),
    Import(import::ImportArgs),
    Explain(explain::ExplainArgs),
    Permissions(permissions::PermissionsArgs),
    Policy(policy::PolicyArgs),
    Doctor(doctor::DoctorArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
    Auth(auth::AuthArgs),
    Idp(idp::IdpArgs),
    Account(account::AccountArgs),
    Logs(logs::LogsArgs),
    Audit(audit::AuditArgs),
    Vault(vault::VaultArgs),
    Reconnect(reconnect::ReconnectArgs),
    Tokens(tokens::TokensArgs),
    Tools(tools::ToolsArgs),
    Call(call::CallArgs),
    Generate(generate::GenerateArgs),
    Resources(resources::ResourcesArgs),
    Read(read::ReadArgs),
    Prompts(prompts::PromptsArgs),
    Prompt(prompt::PromptArgs),
    Skills(skills::SkillsArgs),
    Skill(skills::SkillArgs),
    State(state::StateArgs),
    Record(record::RecordArgs),
    Replay(replay::ReplayArgs),
    Serve(serve::ServeArgs),
    Control(control::ControlArgs),
    Run(run::RunArgs),
    Endpoint(endpoint::EndpointArgs),
    /// What serves the endpoint of `run`.
    #[command(hide = true, name = run::HOSTING)]
    RunHost(run::RunHostArgs),
    Status(status::StatusArgs),
    Approvals(approvals::ApprovalsArgs),
    Daemon(daemon::DaemonArgs),
    Connect(connect::ConnectArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Demo(demo::DemoArgs),
    /// The demo's server as a stdio child.
    #[command(hide = true)]
    DemoServer(demo::DemoServerArgs),
    /// What could come next on a command line, for shells.
    #[command(hide = true, name = "__complete")]
    Complete(complete::CompleteArgs),
    /// What servers offer, asked for behind a completion.
    #[command(hide = true, name = memory::REFRESH)]
    Refresh(refresh::RefreshArgs),
    /// Writes the reference documentation.
    #[command(hide = true)]
    GenerateDocs(generate_docs::GenerateDocsArgs),
}

impl Command {
    /// Whether what it saves is to lie there in plain text.
    pub(crate) fn insecure_storage(&self) -> bool {
        match self {
            Self::Login(args) => args.insecure_storage(),
            Self::Account(args) => args.insecure_storage(),
            Self::Vault(args) => args.insecure_storage(),
            _ => false,
        }
    }

    /// Whether most runs of it start servers.
    pub(crate) fn starts_servers(&self) -> bool {
        match self {
            Self::List(args) => args.connects(),
            Self::Tools(args) => args.connects(),
            Self::State(args) => args.connects(),
            Self::Generate(args) => args.connects(),
            Self::Call(_)
            | Self::Reconnect(_)
            | Self::Resources(_)
            | Self::Read(_)
            | Self::Prompts(_)
            | Self::Prompt(_)
            | Self::Skills(_)
            | Self::Skill(_)
            | Self::Serve(_)
            | Self::Record(_)
            | Self::Control(_)
            | Self::RunHost(_) => true,
            Self::Daemon(args) => args.is_daemon(),
            _ => false,
        }
    }

    /// Whether the daemon can run it: it talks to servers. One that watches goes by rules of its own
    /// about when servers are tried again, and so has its own.
    pub(crate) fn may_attach(&self) -> bool {
        match self {
            Self::List(args) => args.connects() && !args.watches(),
            Self::Tools(args) => args.connects(),
            Self::State(args) => args.connects(),
            Self::Serve(args) => args.is_pipe(),
            Self::Call(_)
            | Self::Complete(_)
            | Self::Prompt(_)
            | Self::Prompts(_)
            | Self::Read(_)
            | Self::Reconnect(_)
            | Self::Refresh(_)
            | Self::Resources(_)
            | Self::RunHost(_)
            | Self::Skill(_)
            | Self::Skills(_) => true,
            _ => false,
        }
    }

    /// Whether it goes on until it is ended, and may begin anew at any time.
    pub(crate) fn follows(&self) -> bool {
        matches!(self, Self::Read(args) if args.follows())
    }

    /// Whether it ends with its client only, who is told when the daemon goes.
    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::RunHost(_))
    }

    /// Whether it asks a server to do something.
    pub(crate) fn acts(&self) -> bool {
        matches!(self, Self::Call(_))
    }

    /// What is typed for it, for those that the daemon can run.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Tools(_) => "tools",
            Self::Read(_) => "read",
            Self::Call(_) => "call",
            Self::Resources(_) => "resources",
            Self::Prompts(_) => "prompts",
            Self::Prompt(_) => "prompt",
            Self::Skills(_) => "skills",
            Self::Skill(_) => "skill",
            Self::State(_) => "state",
            Self::Reconnect(_) => "reconnect",
            Self::Refresh(_) => memory::REFRESH,
            Self::Complete(_) => "__complete",
            Self::Serve(_) => "serve",
            Self::Control(_) => "control",
            Self::RunHost(_) => "run",
            _ => "toolway",
        }
    }
}
