//! `toolway man`: a manual page as roff, for `man -l -`.

use clap::{Args, Command};
use toolway_types::nearest;

use crate::context::Context;
use crate::exit::Exit;
use crate::groups;
use crate::report::{Outcome, Report};

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "Example:
  toolway man call | man -l -")]
pub(crate) struct ManArgs {
    /// The command; the program itself when absent
    command: Option<String>,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &ManArgs, cli: &Command) -> Outcome {
    let (_, page) = pages(cli.clone())?
        .into_iter()
        .find(|(name, _)| match &args.command {
            Some(command) => *name == format!("toolway-{command}"),
            None => name == "toolway",
        })
        .ok_or_else(|| {
            let command = args.command.as_deref().unwrap_or_default();
            let report = Report::usage(format!("there is no command `{command}`"));
            let names = cli.get_subcommands().filter(|command| is_shown(command));
            let near = nearest(command, names.map(Command::get_name));
            match near {
                Some(near) => report.hint(format!("did you mean `toolway man {near}`?")),
                None => report.hint("see the commands with `toolway --help`"),
            }
        })?;
    context.output.verbatim(&page)?;
    Ok(Exit::Success)
}

/// Whether a command has a page: `help` only repeats the others.
pub(crate) fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// Every page: its name without the section, and its text.
pub(crate) fn pages(mut root: Command) -> Result<Vec<(String, String)>, Report> {
    root.build();
    let root = groups::ordered(root.mut_subcommand("help", |help| help.hide(true)));
    let page = groups::head(&render(root.clone())?);
    let mut pages = vec![("toolway".to_owned(), page)];
    for command in root.get_subcommands().filter(|command| is_shown(command)) {
        let name = format!("toolway-{}", command.get_name());
        pages.push((name.clone(), render(command.clone().name(name.clone()))?));
    }
    Ok(pages)
}

fn render(command: Command) -> Result<String, Report> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
