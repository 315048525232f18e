//! The commands by what people want: the groups of `toolway --help` and of the manual page.
//!
//! Owns one table and what is made of it. What a command says of itself stands in its own file.

use std::fmt::Write as _;

use clap::builder::{StyledStr, Styles};

/// What people want, and the commands for it, in the order in which they are shown.
const GROUPS: [(&str, &str); 7] = [
    (
        "Servers",
        "add add-json import list get remove enable disable reconnect",
    ),
    (
        "Calling",
        "tools call resources read prompts prompt skills skill generate",
    ),
    (
        "Permissions",
        "permissions approve reject reset-approvals policy",
    ),
    ("Logins", "login logout auth account idp vault"),
    ("Looking", "explain doctor logs audit state record replay"),
    (
        "Serving",
        "serve run endpoint control status approvals tokens daemon",
    ),
    ("Setting up", "connect demo completions man help"),
];

/// The command that clap adds when it is run.
const HELP: &str = "help";

/// A command line with every command built, shown in groups.
pub(crate) fn whole(mut cli: clap::Command) -> clap::Command {
    cli.build();
    let template = template(&cli);
    cli.help_template(template)
}

/// Puts the commands in the order of the groups, for a manual page.
pub(crate) fn ordered(mut cli: clap::Command) -> clap::Command {
    for (place, name) in names().enumerate() {
        if cli.find_subcommand(name).is_some() {
            cli = cli.mut_subcommand(name, |command| command.display_order(place));
        }
    }
    cli
}

/// Puts headings into a manual page whose commands already stand in the order of the groups.
pub(crate) fn head(page: &str) -> String {
    let mut headed = page.to_owned();
    for (title, commands) in GROUPS {
        let first = commands.split(' ').next().unwrap_or_default();
        let item = format!(".TP\ntoolway\\-{}(1)\n", first.replace('-', "\\-"));
        headed = headed.replacen(&item, &format!(".SS \"{title}\"\n{item}"), 1);
    }
    headed
}

fn names() -> impl Iterator<Item = &'static str> {
    let groups = GROUPS.into_iter();
    groups.flat_map(|(_, commands)| commands.split(' '))
}

/// clap's own, with groups in the place of one list of commands.
fn template(cli: &clap::Command) -> StyledStr {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let width = names().map(str::len).max().unwrap_or_default();
    let mut text = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for name in commands.split(' ') {
            let _ = writeln!(
                text,
                "  {literal}{name}{literal:#}{:gap$}  {}",
                "",
                said(cli, name),
                gap = width - name.len()
            );
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    StyledStr::from(text)
}

/// What a command says of itself on one row.
fn said(cli: &clap::Command, name: &str) -> String {
    if name == HELP {
        return "Show the help of a command".to_owned();
    }
    let Some(command) = cli.find_subcommand(name) else {
        return String::new();
    };
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    match aliases.join(", ") {
        none if none.is_empty() => about,
        aliases => format!("{about} [alias: {aliases}]"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_stands_in_exactly_one_group() {
        let cli = Cli::command();
        let shown = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let mut shown: Vec<&str> = shown.map(clap::Command::get_name).collect();
        shown.push(HELP);
        shown.sort_unstable();
        let mut grouped: Vec<&str> = names().collect();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn every_row_fits_a_narrow_terminal() {
        let help = whole(Cli::command()).render_help().to_string();
        let commands = help.split("Options:").next().unwrap_or_default();
        for row in commands.lines().filter(|row| row.starts_with("  ")) {
            assert!(row.chars().count() < 80, "{row}");
        }
    }
}
