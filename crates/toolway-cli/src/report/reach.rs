//! Commands in hints, as they work for servers that no file of the user's names.
//!
//! Owns turning `toolway get far` into a command that finds `far` again: with the flags that gave
//! the server to this run, or with what was typed in its place. Secrets in flags are not repeated.

use toolway_config::{Flags, words_without_secrets};
use toolway_types::name::{as_word, shell_word};

use crate::typed::TypedTarget;

/// The command that finds a log by the name alone.
const BY_NAME: &str = "logs";

/// Whether a command takes an address, or a command behind `--`, in place of a name.
fn is_ad_hoc(command: &str) -> bool {
    matches!(
        command,
        "tools" | "call" | "resources" | "read" | "prompts" | "prompt" | "skills"
    )
}

/// A hint about servers that flags gave to this run.
pub(crate) fn by_flags(hint: &str, servers: &[&str], flags: &Flags) -> String {
    let given = given(flags);
    if given.is_empty() {
        return hint.to_owned();
    }
    let names: Vec<_> = servers.iter().map(|name| as_word(name)).collect();
    each_command(hint, |words| {
        let rest = words.strip_prefix("toolway ")?;
        let verb = rest.split(' ').next().unwrap_or_default();
        let is_meant = rest
            .split(' ')
            .any(|word| names.iter().any(|name| name == word));
        // It looks at all servers, so at these too.
        let is_about_all = verb == "doctor" && rest == verb;
        let is_lost = (is_meant || is_about_all) && verb != BY_NAME;
        let is_lost = is_lost && !verb.starts_with('-');
        is_lost.then(|| format!("toolway {given} {rest}"))
    })
}

/// A hint about a server that was typed in place of a configured one. `None` when none of its
/// commands can be typed for it.
pub(crate) fn ad_hoc(hint: &str, server: &str, what: &TypedTarget) -> Option<String> {
    let name = as_word(server);
    let mut is_lost = false;
    let said = each_command(hint, |words| {
        let rest = words.strip_prefix("toolway ")?;
        let (verb, others) = rest.split_once(' ')?;
        let mut others: Vec<&str> = others.split(' ').collect();
        let place = others.iter().position(|word| *word == name)?;
        if verb == BY_NAME {
            return None;
        }
        if !is_ad_hoc(verb) {
            is_lost = true;
            return None;
        }
        let shown = what.shown();
        match what {
            TypedTarget::Url(_) => others[place] = &shown,
            TypedTarget::Command(_) => {
                others.remove(place);
                others.extend(["--", &shown]);
            }
        }
        Some(format!("toolway {verb} {}", others.join(" ")))
    });
    (!is_lost).then_some(said)
}

/// The text with another wording of each command in it, where there is one.
fn each_command(text: &str, mut reworded: impl FnMut(&str) -> Option<String>) -> String {
    let mut said = String::with_capacity(text.len());
    for (place, part) in text.split('`').enumerate() {
        if place > 0 {
            said.push('`');
        }
        let is_quoted = place % 2 == 1;
        match is_quoted.then(|| reworded(part)).flatten() {
            Some(reworded) => said.push_str(&reworded),
            None => said.push_str(part),
        }
    }
    said
}

/// The flags that gave servers to this run, as words.
fn given(flags: &Flags) -> String {
    let mut words = Vec::new();
    for file in &flags.mcp_config {
        words.push("--mcp-config".to_owned());
        let is_inline = file.trim_start().starts_with('{');
        words.push(if is_inline {
            "'{…}'".to_owned()
        } else {
            shell_word(file).into_owned()
        });
    }
    for server in &flags.mcp_server {
        words.push("--mcp-server".to_owned());
        let (name, target) = server.split_once('=').unwrap_or((server, ""));
        let plain: Vec<&str> = target.split(' ').collect();
        let is_plain = words_without_secrets(plain.iter().copied()) == plain;
        words.push(if is_plain {
            shell_word(server).into_owned()
        } else {
            format!("'{name}=…'")
        });
    }
    if flags.strict && !words.is_empty() {
        words.push("--strict-mcp-config".to_owned());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(file: &str, server: &str) -> Flags {
        Flags {
            mcp_config: vec![file.to_owned()],
            mcp_server: vec![server.to_owned()],
            ..Flags::default()
        }
    }

    #[test]
    fn a_command_about_a_server_of_a_flag_repeats_the_flag() {
        let flags = flags("a b.json", "q=npx x");
        let hint =
            "see `toolway logs far`, `toolway get far`, `toolway get near`, `toolway doctor`";
        assert_eq!(
            by_flags(hint, &["far"], &flags),
            "see `toolway logs far`, \
             `toolway --mcp-config 'a b.json' --mcp-server 'q=npx x' get far`, \
             `toolway get near`, \
             `toolway --mcp-config 'a b.json' --mcp-server 'q=npx x' doctor`"
        );
    }

    #[test]
    fn what_may_be_a_secret_in_a_flag_is_not_repeated() {
        let flags = flags("{\"mcpServers\":{}}", "q=npx --token X");
        assert_eq!(
            by_flags("`toolway get q`", &["q"], &flags),
            "`toolway --mcp-config '{…}' --mcp-server 'q=…' get q`"
        );
    }

    #[test]
    fn a_command_about_a_typed_server_repeats_what_was_typed() {
        let url = TypedTarget::Url("http://h/mcp".to_owned());
        let line = TypedTarget::Command(vec!["npx".to_owned(), "a b".to_owned()]);
        let hint = "see `toolway tools h --json`";
        assert_eq!(
            ad_hoc(hint, "h", &url).unwrap(),
            "see `toolway tools http://h/mcp --json`"
        );
        assert_eq!(
            ad_hoc(hint, "h", &line).unwrap(),
            "see `toolway tools --json -- npx 'a b'`"
        );
        assert_eq!(
            ad_hoc("see `toolway logs h`", "h", &url).unwrap(),
            "see `toolway logs h`"
        );
        assert_eq!(ad_hoc("check `toolway get h`", "h", &url), None);
    }
}
