//! `toolway completions`: the completion script of a shell.

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = "Example:
  toolway completions bash > ~/.local/share/bash-completion/completions/toolway")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toolway", &mut script);
    context.output.verbatim(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
