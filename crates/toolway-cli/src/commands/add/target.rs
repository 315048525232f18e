//! What is typed for a server: a command, an address, or a slip.
//!
//! Owns telling them apart before anything is written: a command in one word, a host without a
//! scheme and a program that is not there are asked about on a terminal, and elsewhere refused with
//! the command that was probably meant. The entry itself is made in `add.rs`.

use std::net::Ipv4Addr;
use std::path::Path;

use toolway_config::{address_without_secrets, split_command, words_without_secrets};
use toolway_types::name::shell_word;
use toolway_types::{TransportKind, nearest};

use super::AddArgs;
use crate::args::typed_words;
use crate::commands::doctor::is_program;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Report;

/// Programs that start most servers, to see slips in their names.
const RUNNERS: [&str; 12] = [
    "npx", "uvx", "node", "python3", "python", "docker", "podman", "deno", "bunx", "bun", "uv",
    "pipx",
];

/// Last parts of a name that are a file's rather than a host's.
const FILES: [&str; 14] = [
    "py", "js", "ts", "mjs", "cjs", "sh", "rb", "pl", "php", "jar", "exe", "go", "rs", "json",
];

/// Whether a word is a URL rather than a command.
pub(crate) fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    scheme.and_then(TransportKind::of_scheme).is_some()
}

/// Refuses an address that is neither a URL we know nor a command: mostly a slip.
pub(crate) fn require_known_scheme(word: &str) -> Result<(), Report> {
    match word.split_once(":/") {
        Some((scheme, rest))
            if !is_url(word)
                // One letter is a drive.
                && scheme.len() > 1
                && scheme
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric()) =>
        {
            let rest = rest.trim_start_matches('/');
            // What stands behind it may hold a secret.
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            Err(Report::new(
                Exit::Usage,
                format!("`{scheme}:/…` is not an address that Toolway can reach"),
            )
            .hint(format!("did you mean `https://{host}…`?")))
        }
        _ => Ok(()),
    }
}

/// The words for the server, after a look at them.
pub(super) fn settled(context: &Context, args: &AddArgs) -> Result<Vec<String>, Report> {
    let words = &args.target;
    let Some(first) = words.first() else {
        return Err(Report::new(Exit::Usage, "a command or a URL is missing"));
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
        let shown = line(&meant);
        let said = if is_url(&meant[0]) {
            let shown = address_without_secrets(&meant[0]);
            let bare = shown.split_once("://").map_or("", |(_, bare)| bare);
            format!("`{bare}` has no scheme")
        } else {
            format!("{} is one word, and no program has that name", line(words))
        };
        let question = format!("Add `{shown}` in its place?");
        let hint = format!("did you mean `{}`?", corrected(word, &meant));
        return match asked(context, &said, &question)? {
            Some(true) => Ok(meant),
            Some(false) => Err(Report::new(Exit::Usage, "nothing was added").hint(hint)),
            None => Err(Report::new(Exit::Usage, said).hint(hint)),
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
    Err(Report::new(Exit::Usage, message).hint(match near {
        Some(near) => {
            let mut typed: Vec<String> = typed_words().collect();
            // The name may be the same word, and stands before it.
            let same = usize::from(args.name == *first);
            let mut places = typed.iter_mut().filter(|word| *word == first);
            if let Some(place) = places.nth(same) {
                near.clone_into(place);
            }
            format!("did you mean `toolway {}`?", line(&typed))
        }
        None => "install it first, or add it all the same with `--force`".to_owned(),
    }))
}

/// What a person answers to a question about this; none where nobody is there to ask.
fn asked(context: &Context, said: &str, question: &str) -> Result<Option<bool>, Report> {
    if !context.output.can_ask() {
        return Ok(None);
    }
    context.output.say(said);
    Ok(Some(context.output.confirm(question)?))
}

/// Whether the program is there for the server, as far as that can be seen from here.
fn is_there(context: &Context, args: &AddArgs, program: &str) -> bool {
    if args.env.iter().any(|pair| pair.starts_with("PATH=")) {
        return true;
    }
    let cwd = context.environment.cwd();
    let base = match &args.cwd {
        Some(named) if !named.contains("${") => cwd.join(Path::new(named)),
        _ => cwd.to_path_buf(),
    };
    let path = context.environment.var("PATH").unwrap_or_default();
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

/// The address that a host without a scheme was meant for.
pub(crate) fn as_address(word: &str) -> Option<String> {
    let authority = word.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_name = |label: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty() && !label.starts_with('-') && label.chars().all(is_plain)
    };
    if !host.split('.').all(is_name) || !port.is_none_or(is_port) {
        return None;
    }
    let is_bare = authority == word && port.is_none();
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_address = host.parse::<Ipv4Addr>().is_ok();
    let is_local = host == "localhost" || is_address;
    let is_domain = host.contains('.')
        && last.len() > 1
        && last.chars().all(|c| c.is_ascii_alphabetic())
        && !(is_bare && FILES.contains(&last));
    let scheme = match () {
        () if is_local && !is_bare => "http",
        () if is_address => "http",
        () if is_domain => "https",
        () => return None,
    };
    Some(format!("{scheme}://{word}"))
}

/// Words as they are typed, without secrets.
fn line(words: &[String]) -> String {
    let shown = words_without_secrets(words.iter().map(String::as_str));
    let shown: Vec<_> = shown.iter().map(|word| shell_word(word)).collect();
    shown.join(" ")
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
    format!("toolway {}", line(&typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_is_told_from_a_program() {
        for (word, address) in [
            ("mcp.example.com/mcp", Some("https://mcp.example.com/mcp")),
            ("mcp.example.com", Some("https://mcp.example.com")),
            ("localhost:3000/mcp", Some("http://localhost:3000/mcp")),
            ("127.0.0.1:9", Some("http://127.0.0.1:9")),
            ("10.0.0.1", Some("http://10.0.0.1")),
            ("localhost", None),
            ("server.py", None),
            ("./a.example/x", None),
            ("/usr/bin/a.b", None),
            ("npx", None),
            ("C:/server.exe", None),
            ("@scope/pkg", None),
            ("a b.example/x", None),
            ("", None),
        ] {
            assert_eq!(as_address(word).as_deref(), address, "{word}");
        }
    }
}
