//! `toolway`: the command line.
//!
//! Owns turning what was typed into one call of one command, and its outcome into an exit code.
//! What the commands do lives below `commands/`; what an error looks like, in `report.rs`.

mod age;
mod args;
mod attach;
mod commands;
mod connect;
mod context;
mod daemon;
mod daemon_use;
mod demo;
mod elicit;
mod exit;
mod gateways;
mod groups;
mod kept_hosts;
mod log;
mod output;
mod prompt;
mod report;
mod screen;
mod signals;
mod streams;
mod terminal;
mod terminal_turns;
mod typed;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use toolway::Recorder;
use toolway_config::{Environment, Switch};

use crate::args::{Cli, Command, with_dashes};
use crate::attach::AttachEnd;
use crate::context::Context;
use crate::daemon::runs::ReadCommand;
use crate::exit::Exit;
use crate::output::{Errors, Output};
use crate::report::{Outcome, Report};
use crate::typed::typed_words;

fn main() -> ExitCode {
    // First of all: the process that outlives this one must have nothing of it.
    toolway::launcher::run_if_requested();
    // Before any secret is read.
    let closed = toolway::forbid_inspection();
    let words = match with_dashes(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(report) => {
            Output::new(&Environment::capture()).say(&report.render());
            return ExitCode::from(report.exit.code());
        }
    };
    let (cli, errors) = match Cli::read(words) {
        Ok(read) => read,
        Err(error) => return usage(&error),
    };
    let environment = Environment::capture();
    if matches!(cli.command, Command::Refresh(_)) {
        commands::refresh::leave_terminal();
    }
    match attach::attach(&cli, &environment) {
        Ok(AttachEnd::Here) => {}
        Ok(AttachEnd::Ended(end)) => {
            if let Some(signal) = end.signal {
                signals::end_by(signal);
            }
            return ExitCode::from(end.exit);
        }
        Err(report) => {
            Output::new(&environment).telling(errors).report(&report);
            return ExitCode::from(report.exit.code());
        }
    }
    if cli.command.starts_servers() {
        // Before the environment and the files are read, and before there are threads.
        toolway::launcher::fork_early();
    }
    start_logging(cli.global.verbose);
    if let Err(error) = closed {
        tracing::warn!(%error, "other processes of this user may look into this one");
    }
    let mut context = Context::new(environment, cli.global.flags(), errors);
    context.note_alone(cli.global.alone());
    let exit = run_reporting(&mut context, cli.command);
    toolway::launcher::end_unused();
    if let Some(signal) = context.ended_by(exit) {
        signals::end_by(signal);
    }
    // Not by returning: the plan need not be taken apart piece by piece just to end.
    std::process::exit(i32::from(exit.code()))
}

/// Reads words that were typed elsewhere, for the daemon to run.
fn read_for_daemon(words: Vec<OsString>) -> Option<ReadCommand> {
    let (cli, errors) = Cli::read(with_dashes(words).ok()?).ok()?;
    let command = cli.command;
    command.may_attach().then(|| ReadCommand {
        word: command.word(),
        is_pipe: command.is_pipe(),
        follows: command.follows(),
        flags: cli.global.flags(),
        errors,
        run: Box::new(|context| run_reporting(context, command)),
    })
}

/// Runs words as if they were typed, and records what is said to servers.
fn run_recorded(context: &Context, words: Vec<OsString>, recorder: Recorder) -> Outcome {
    let (cli, errors) = match with_dashes(words).map(Cli::read) {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => {
            let message = error.render().to_string();
            let message = message.split("\n\n").next().unwrap_or_default().trim_end();
            let message = message.strip_prefix("error: ").unwrap_or(message);
            return Err(Report::usage(message).hint("behind `--` stands what is typed without it"));
        }
        Err(report) => return Err(report),
    };
    let mut flags = context.flags().clone();
    let own = cli.global.flags();
    flags.mcp_config.extend(own.mcp_config);
    flags.mcp_server.extend(own.mcp_server);
    flags.strict |= own.strict;
    flags.approve_project_servers |= own.approve_project_servers;
    flags.ide |= own.ide;
    let mut inner = Context::new(context.environment().clone(), flags, errors);
    inner.record(recorder);
    Ok(run_reporting(&mut inner, cli.command))
}

/// Runs a command and says what went wrong.
fn run_reporting(context: &mut Context, command: Command) -> Exit {
    match run(context, command) {
        Ok(exit) => exit,
        Err(report) => {
            context.output.report(&report);
            report.exit
        }
    }
}

/// One line per command; each stands in the file of its name.
fn run(context: &mut Context, command: Command) -> Outcome {
    if command.insecure_storage() {
        context.keep_in_plain_text()?;
    }
    let context = &*context;
    let outcome = match command {
        Command::Add(args) => commands::add::run(context, &args),
        Command::AddJson(args) => commands::add_json::run(context, &args),
        Command::Remove(args) => commands::remove::run(context, &args),
        Command::Get(args) => commands::get::run(context, &args),
        Command::List(args) => commands::list::run(context, &args),
        Command::Enable(args) => commands::switch::run(context, &args, Switch::On),
        Command::Disable(args) => commands::switch::run(context, &args, Switch::Off),
        Command::Approve(args) => commands::approve::approve(context, &args),
        Command::Reject(args) => commands::approve::reject(context, &args),
        Command::ResetApprovals(args) => commands::approve::reset(context, &args),
        Command::Import(args) => commands::import::run(context, &args),
        Command::Connect(args) => commands::connect::run(context, &args),
        Command::Explain(args) => commands::explain::run(context, &args),
        Command::Permissions(args) => commands::permissions::run(context, &args),
        Command::Policy(args) => commands::policy::run(context, &args),
        Command::Doctor(args) => commands::doctor::run(context, &args),
        Command::Login(args) => commands::login::run(context, &args),
        Command::Logout(args) => commands::logout::run(context, &args),
        Command::Auth(args) => commands::auth::run(context, &args),
        Command::Idp(args) => commands::idp::run(context, &args),
        Command::Account(args) => commands::account::run(context, &args),
        Command::Logs(args) => commands::logs::run(context, &args),
        Command::Audit(args) => commands::audit::run(context, &args),
        Command::Vault(args) => commands::vault::run(context, &args),
        Command::Reconnect(args) => commands::reconnect::run(context, &args),
        Command::Tokens(args) => commands::tokens::run(context, &args),
        Command::Tools(args) => commands::tools::run(context, &args),
        Command::Generate(args) => commands::generate::run(context, &args),
        Command::Call(args) => commands::call::run(context, &args),
        Command::Resources(args) => commands::resources::run(context, &args),
        Command::Read(args) => commands::read::run(context, &args),
        Command::Prompts(args) => commands::prompts::run(context, &args),
        Command::Prompt(args) => commands::prompt::run(context, &args),
        Command::Skills(args) => commands::skills::run(context, &args),
        Command::Skill(args) => commands::skills::show(context, &args),
        Command::Serve(args) => commands::serve::run(context, &args),
        Command::Control(args) => commands::control::run(context, &args),
        Command::Run(args) => commands::run::run(context, &args),
        Command::Endpoint(args) => commands::endpoint::run(context, &args),
        Command::RunHost(args) => commands::run::host(context, &args),
        Command::Status(args) => commands::status::run(context, &args),
        Command::Approvals(args) => commands::approvals::run(context, &args),
        Command::Daemon(args) => commands::daemon::run(context, &args, read_for_daemon),
        Command::Record(args) => {
            commands::record::run(context, &args, &Cli::command(), run_recorded)
        }
        Command::Replay(args) => commands::replay::run(context, &args),
        Command::State(args) => commands::state::run(context, &args),
        Command::Complete(args) => commands::complete::run(context, &args, Cli::command()),
        Command::Refresh(args) => commands::refresh::run(context, &args),
        Command::Completions(args) => commands::completions::run(context, &args, &Cli::command()),
        Command::Man(args) => commands::man::run(context, &args, &Cli::command()),
        Command::Demo(args) => commands::demo::run(context, &args),
        Command::DemoServer(args) => commands::demo::serve(&args),
        Command::GenerateDocs(args) => commands::generate_docs::run(&args, Cli::command()),
    };
    outcome
        .map_err(|report| context.advised(report))
        .or_else(forgive_closed_stdout)
}

/// `toolway list | head -1` is not an error.
fn forgive_closed_stdout(report: Report) -> Outcome {
    if report.stdout_closed {
        Ok(Exit::Success)
    } else {
        Err(report)
    }
}

/// clap's message and usage line, with one hint of ours in place of its advice.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // All there is to say has been said by the help itself.
        let _ = error.print();
        return ExitCode::from(Exit::Usage.code());
    }
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or(&text).trim_end();
    let unreadable = unreadable_word().filter(|_| error.kind() == ErrorKind::InvalidUtf8);
    let message = unreadable.as_deref().unwrap_or(message);
    let output = Output::new(&Environment::capture());
    let mut flags = typed_words().take_while(|word| word != "--");
    if flags.any(|word| word == "--json") {
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let usage = error.get(ContextKind::Usage).map(ToString::to_string);
        let report = Report::usage(message)
            .details(usage)
            .hint(usage_hint(error));
        output.telling(Errors::Json).report(&report);
        return ExitCode::from(Exit::Usage.code());
    }
    output.say(message);
    if let Some(usage) = error.get(ContextKind::Usage) {
        output.say(&format!("\n{usage}\n"));
    }
    output.say(&format!("hint: {}", usage_hint(error)));
    ExitCode::from(Exit::Usage.code())
}

/// What to say of the first word that is no text.
fn unreadable_word() -> Option<String> {
    let mut words = std::env::args_os().skip(1);
    let word = words.find(|word| word.to_str().is_none())?;
    let shown = word.as_encoded_bytes().escape_ascii();
    Some(format!("error: the argument '{shown}' is not valid UTF-8"))
}

fn usage_hint(error: &clap::Error) -> String {
    let cli = Cli::command();
    let command = typed_words().find(|word| cli.find_subcommand(word).is_some());
    let near = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ]
    .iter()
    .find_map(|kind| match error.get(*kind) {
        Some(ContextValue::String(near)) => Some(near.clone()),
        Some(ContextValue::Strings(several)) => several.last().cloned(),
        _ => None,
    });
    match (near, command.as_deref(), error.kind()) {
        (Some(near), None, ErrorKind::InvalidSubcommand) => {
            format!("did you mean `toolway {near}`?")
        }
        (Some(near), Some("add"), ErrorKind::UnknownArgument) => {
            format!("did you mean `{near}`? if it is the command's, put `--` before the command")
        }
        (Some(near), ..) => format!("did you mean `{near}`?"),
        (None, Some("record"), ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument) => {
            "what is recorded goes behind `--`: `toolway record <file> -- call <server> <tool>`"
                .to_owned()
        }
        (None, Some("call"), ErrorKind::UnknownArgument) => {
            "a tool's arguments are written `key=value`: \
             `toolway call <server> <tool> key=value`"
                .to_owned()
        }
        (None, Some("add"), ErrorKind::UnknownArgument) => {
            "flags of a server's own command go behind `--`: \
             `toolway add <name> -- <command> <flags>`"
                .to_owned()
        }
        (None, Some(_), _) => format!("see `toolway {} --help`", typed_commands().join(" ")),
        (None, None, _) => "see `toolway --help`".to_owned(),
    }
}

/// The commands that were typed: `vault set` has a help of its own.
fn typed_commands() -> Vec<String> {
    let mut cli = Cli::command();
    cli.build();
    let mut typed = Vec::new();
    let mut command = &cli;
    for word in typed_words().filter(|word| word != "help") {
        if let Some(found) = command.find_subcommand(&word) {
            command = found;
            typed.push(word);
        }
    }
    typed
}

/// Logs go to stderr, and only when asked for.
fn start_logging(verbosity: u8) {
    let level = match verbosity {
        0 => return,
        1 => tracing::Level::INFO,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    log::start(level);
}
