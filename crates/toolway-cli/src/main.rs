//! `toolway`: the command line.
//!
//! Owns turning what was typed into one call of one command, and its outcome into an exit code.
//! What the commands do lives below `commands/`; what an error looks like, in `report.rs`.

mod args;
mod commands;
mod connect;
mod context;
mod demo;
mod exit;
mod output;
mod report;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    start_logging(cli.global.verbose);
    let context = Context::new(cli.global.flags());
    let exit = match run(&context, cli.command) {
        Ok(exit) => exit,
        Err(report) => {
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(report.render().as_bytes());
            report.exit
        }
    };
    // Not by returning: the plan need not be taken apart piece by piece just to end.
    std::process::exit(i32::from(exit.code()))
}

/// One line per command; each stands in the file of its name.
fn run(context: &Context, command: Command) -> Outcome {
    let outcome = match command {
        Command::Add(args) => commands::add::run(context, &args),
        Command::AddJson(args) => commands::add_json::run(context, &args),
        Command::Remove(args) => commands::remove::run(context, &args),
        Command::Get(args) => commands::get::run(context, &args),
        Command::List(args) => commands::list::run(context, &args),
        Command::Enable(args) => commands::switch::enable(context, &args),
        Command::Disable(args) => commands::switch::disable(context, &args),
        Command::Approve(args) => commands::approve::approve(context, &args),
        Command::Reject(args) => commands::approve::reject(context, &args),
        Command::ResetApprovals(args) => commands::approve::reset(context, &args),
        Command::Import(args) => commands::import::run(context, &args),
        Command::Explain(args) => commands::explain::run(context, &args),
        Command::Doctor(args) => commands::doctor::run(context, &args),
        Command::Tools(args) => commands::tools::run(context, &args),
        Command::Call(args) => commands::call::run(context, &args),
        Command::Completions(args) => commands::completions::run(context, &args),
        Command::Man(args) => commands::man::run(context, &args),
        Command::Demo(args) => commands::demo::run(context, &args),
        Command::DemoServer(args) => commands::demo::serve(&args),
        Command::GenerateDocs(args) => commands::generate_docs::run(&args),
    };
    outcome.or_else(forgive_closed_stdout)
}

/// `toolway list | head -1` is not an error.
fn forgive_closed_stdout(report: Report) -> Outcome {
    if report.stdout_closed {
        Ok(Exit::Success)
    } else {
        Err(report)
    }
}

/// clap's own message, with the hint people need most: `--` before a server's own flags.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let mut stderr = io::stderr().lock();
    let _ = match error.kind() {
        ErrorKind::UnknownArgument => writeln!(
            stderr,
            "hint: flags of a server's own command go behind `--`: \
             `toolway add <name> -- <command> <flags>`"
        ),
        _ => writeln!(stderr, "hint: see `toolway --help`"),
    };
    ExitCode::from(Exit::Usage.code())
}

/// Logs go to stderr, and only when asked for.
fn start_logging(verbosity: u8) {
    let level = match verbosity {
        0 => return,
        1 => tracing::Level::INFO,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .without_time()
        .init();
}
