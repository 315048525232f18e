//! What is typed for a server: a command, an address, or a typing error.
//!
//! Owns telling them apart: a command in one word, a host without a scheme and a missing program are
//! asked about on a terminal, and elsewhere refused with the command that was probably meant.

use std::path::Path;

use toolway_config::{address_without_secrets, split_command};
use toolway_types::{TransportKind, nearest};

use super::AddArgs;
use crate::commands::admitted::require_known_scheme;
use crate::commands::doctor::is_program;
use crate::context::Context;
use crate::report::Report;
use crate::typed::{as_address, is_url, shown_line, typed_words};

/// Programs that start most servers, to see slips in their names.
const RUNNERS: [&str; 12] = [
    "npx", "uvx", "node", "python3", "python", "docker", "podman", "deno", "bunx", "bun", "uv",
    "pipx",
];

/// The words for the server, after a look at them.
pub(super) fn settled(context: &Context, args: &AddArgs) -> Result<Vec<String>, Report> {
    let words = &args.target;
    let Some(first) = words.first() else {
        return Err(Report::usage("a command or a URL is missing"));
    };
    require_known_scheme(first)?;
    let is_remote = args.transport.is_some_and(TransportKind::is_remote);
    // What a variable stands for is not known yet.
    if is_url(first) || first.contains("${") || (!is_remote && is_there(context, args, first)) {
        return Ok(words.clone());
    }
    if let [word] = words.as_slice()
        && let Some(meant) = meant(word, is_remote)
    {
        let said = if is_url(&meant[0]) {
            let shown = address_without_secrets(&meant[0]);
            let bare = shown.split_once("://").map_or("", |(_, bare)| bare);
            format!("`{bare}` has no scheme")
        } else {
            format!(
                "{} is one word, and no program has that name",
                shown_line(words)
            )
        };
        let question = format!("Add `{}` in its place?", shown_line(&meant));
        let hint = format!("did you mean `{}`?", corrected(word, &meant));
        return match asked(context, &said, &question)? {
            Some(true) => Ok(meant),
            Some(false) => Err(Report::usage("nothing was added").hint(hint)),
            None => Err(Report::usage(said).hint(hint)),
        };
    }
    if is_remote || args.writing.force {
        return Ok(words.clone());
    }
    let said = if first.contains('/') {
        format!("there is no program at `{first}`")
    } else {
        format!("no program `{first}` is found in `PATH`")
    };
    let message = match asked(context, &said, "Add it all the same?")? {
        Some(true) => return Ok(words.clone()),
        Some(false) => "nothing was added".to_owned(),
        None => said,
    };
    let there = RUNNERS.iter().filter(|name| is_there(context, args, name));
    let near = nearest(first, there.copied());
    Err(Report::usage(message).hint(match near {
        Some(near) => {
            let mut typed: Vec<String> = typed_words().collect();
            // The name may be the same word, and stands before it.
            let same = usize::from(args.name == *first);
            let mut places = typed.iter_mut().filter(|word| *word == first);
            if let Some(place) = places.nth(same) {
                near.clone_into(place);
            }
            format!("did you mean `toolway {}`?", shown_line(&typed))
        }
        None => "install it first, or add it all the same with `--force`".to_owned(),
    }))
}

/// What the user answers to a question about this; none without a terminal.
fn asked(context: &Context, said: &str, question: &str) -> Result<Option<bool>, Report> {
    if !context.output.can_ask() {
        return Ok(None);
    }
    context.say(said);
    Ok(Some(context.output.confirm(question)?))
}

/// Whether the program is there for the server, as far as that can be seen from here.
fn is_there(context: &Context, args: &AddArgs, program: &str) -> bool {
    if args.env.iter().any(|pair| pair.starts_with("PATH=")) {
        return true;
    }
    let cwd = context.environment().cwd();
    let base = match &args.cwd {
        Some(named) if !named.contains("${") => cwd.join(Path::new(named)),
        _ => cwd.to_path_buf(),
    };
    let path = context.environment().var("PATH").unwrap_or_default();
    is_program(&base, program, path)
}

/// What one word that is no program was probably meant for.
fn meant(word: &str, is_remote: bool) -> Option<Vec<String>> {
    if let Some(address) = as_address(word) {
        return Some(vec![address]);
    }
    let words = split_command(word).ok().filter(|_| !is_remote)?;
    (words.len() > 1).then_some(words)
}

/// The command line with the right words for the server, without secrets.
fn corrected(word: &str, meant: &[String]) -> String {
    let mut typed: Vec<String> = typed_words().filter(|typed| typed != "--").collect();
    if let Some(place) = typed.iter().rposition(|typed| typed == word) {
        typed.remove(place);
    }
    if !is_url(&meant[0]) {
        typed.push("--".to_owned());
    }
    typed.extend_from_slice(meant);
    format!("toolway {}", shown_line(&typed))
}
