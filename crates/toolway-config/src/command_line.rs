//! Command lines: their words, and what a shell would run of them.
//!
//! Owns telling a line of plain words from one that needs a shell, and finding the commands in the
//! latter. No shell is run; a line whose program is computed counts as hiding it.

mod split;
mod steering;

pub use split::split_command;
pub(crate) use steering::decides_what_runs;

/// The shell that reads them.
pub(crate) const SHELL: &str = "/bin/sh";

/// What only a shell understands.
const SPECIAL: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', ']', '{', '}', '!', '#',
];

/// What ends one command and may begin another.
const BETWEEN: &[char] = &['|', '&', ';', '(', ')', '`', '{', '}', '\n', '\r'];

/// Words of the language that may stand before a command.
pub(crate) const KEYWORDS: [&str; 9] = [
    "!", "if", "then", "elif", "else", "while", "until", "do", "{",
];

/// Programs that read commands.
const SHELLS: [&str; 7] = ["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Programs whose arguments are a command, beside the shells.
const WRAPPERS: [&str; 47] = [
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dbus-run-session",
    "doas",
    "env",
    "eval",
    "exec",
    "find",
    "flatpak-spawn",
    "flock",
    "ionice",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "prlimit",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "ssh-agent",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
];

/// A line for a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellLine {
    /// Its words, when it needs no shell.
    pub(crate) words: Option<Vec<String>>,
    /// The words between separators, without their quotes.
    pub(crate) parts: Vec<PossibleCommands>,
    /// Whether the name of a program in it is computed.
    pub(crate) hides: bool,
}

/// Words that have a command in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PossibleCommands {
    words: Vec<String>,
    begins: CommandStart,
}

/// Where in the words a command can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandStart {
    AtFirst,
    /// Keywords, assignments, redirections, options or other programs may come before it.
    Anywhere,
}

impl PossibleCommands {
    /// A command, whose arguments may be another one.
    pub(crate) fn command(words: Vec<String>) -> Self {
        let begins = match words.first() {
            Some(first) if is_wrapper(first) => CommandStart::Anywhere,
            _ => CommandStart::AtFirst,
        };
        Self { words, begins }
    }

    /// Words that may be a command from any of them on.
    pub(crate) fn anywhere(words: Vec<String>) -> Self {
        Self {
            words,
            begins: CommandStart::Anywhere,
        }
    }

    /// Everything in it that may be a command.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &[String]> {
        let count = match self.begins {
            CommandStart::AtFirst => self.words.len().min(1),
            CommandStart::Anywhere => self.words.len(),
        };
        (0..count).map(|at| &self.words[at..])
    }
}

impl ShellLine {
    pub(crate) fn read(line: &str) -> Self {
        let odd =
            |c: char| SPECIAL.contains(&c) || (c != ' ' && (c.is_whitespace() || c.is_control()));
        let words = split_command(line)
            .ok()
            .filter(|words| !line.contains(odd) && words.first().is_some_and(|w| !w.contains('=')));
        let mut read = Self {
            words,
            ..Self::default()
        };
        // `env -S` has its own blanks, and braces make several words of one.
        let blanks = line.contains('\\').then(|| with_env_blanks(line));
        let braces = line.contains('{').then(|| line.replace(',', " "));
        for text in [Some(line.to_owned()), blanks, braces]
            .into_iter()
            .flatten()
        {
            read.add(&marked(&text));
        }
        read
    }

    fn add(&mut self, text: &str) {
        for part in text.split(BETWEEN) {
            let words: Vec<String> = part
                .split_whitespace()
                .map(|word| word.replace(['\'', '"', '\\'], ""))
                .collect();
            if words.is_empty() {
                continue;
            }
            // An alias is run by its name, elsewhere on the line.
            if words.iter().any(|word| word == "alias") {
                let meant = |word: &String| word.split_once('=').map(|it| it.1.to_owned());
                let words = words.iter().map(|word| meant(word).unwrap_or(word.clone()));
                self.parts.push(PossibleCommands::anywhere(words.collect()));
            }
            self.hides |= hides(&words) || (self.words.is_none() && reads_commands(&words));
            self.parts.push(match self.words {
                Some(_) => PossibleCommands::command(words),
                None => PossibleCommands::anywhere(words),
            });
        }
    }
}

/// A line in which a `$` stands wherever something is computed, and `&` only between commands.
fn marked(line: &str) -> String {
    let line = line
        .replace("\\\n", "")
        .replace(">&", "> ")
        .replace("<&", "< ")
        .replace("&>", "> ")
        .replace(">|", "> ");
    // Without quotes, every second backtick closes what another opened.
    let is_quoted = line.contains(['\'', '"', '\\']);
    let mut is_open = false;
    let mut marked = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let is_computed = match c {
            '`' => {
                is_open = !is_open;
                is_open || is_quoted
            }
            // A group has a blank after its brace.
            '{' => rest.peek().is_some_and(|next| !next.is_whitespace()),
            _ => false,
        };
        if is_computed {
            marked.push('$');
        }
        marked.push(c);
    }
    marked
}

fn with_env_blanks(line: &str) -> String {
    ["\\_", "\\t", "\\n", "\\r", "\\f", "\\v"]
        .iter()
        .fold(line.to_owned(), |line, blank| line.replace(blank, " "))
}

/// Whether a word that may name a program is computed: the first, but for what the language has
/// before it, and each after a wrapper.
fn hides(words: &[String]) -> bool {
    let (mut may_name, mut is_wrapped, mut is_file) = (true, false, false);
    for word in words {
        if std::mem::take(&mut is_file) {
            continue;
        }
        let head = word.split(['<', '>']).next().unwrap_or_default();
        is_file = word.ends_with(['<', '>']);
        if head.len() < word.len() && head.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        if is_assignment(head) || KEYWORDS.contains(&head) {
            continue;
        }
        let is_computed = head.contains(['$', '*', '?', '[', '~']) && !matches!(head, "[" | "[[");
        if (may_name || is_wrapped) && is_computed {
            return true;
        }
        is_wrapped |= is_wrapper(head);
        may_name = false;
    }
    false
}

/// Whether a line for a shell runs a program whose name is computed.
pub(crate) fn hides_program(line: &str) -> bool {
    ShellLine::read(line).hides
}

/// Whether a shell is run without a line or a file: then it reads its commands from elsewhere.
fn reads_commands(words: &[String]) -> bool {
    let is_before = |word: &&String| is_assignment(word) || KEYWORDS.contains(&word.as_str());
    let mut words = words.iter().skip_while(is_before);
    words.next().is_some_and(|first| is_shell(first))
        && words
            .all(|word| word.contains(['<', '>']) || (word.starts_with('-') && !word.contains('c')))
}

/// The name of a program in a path to it, without its version.
pub(crate) fn program_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or_default();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    // In `linux32` the number is part of the name.
    let is_known = WRAPPERS.contains(&name);
    (if is_known { name } else { bare }).to_lowercase()
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program_name(program).as_str())
}

/// Whether the arguments of a program may be a command. Those of the system's loader are.
pub(crate) fn is_wrapper(program: &str) -> bool {
    let name = program_name(program);
    let is_loader = ["ld-", "ld.so", "ld64.so"]
        .iter()
        .any(|loader| name.starts_with(loader));
    is_loader || WRAPPERS.contains(&name.as_str()) || is_shell(program)
}

pub(crate) fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(line: &str, command: &[&str]) -> bool {
        let read = ShellLine::read(line);
        read.parts
            .iter()
            .flat_map(PossibleCommands::commands)
            .any(|words| words == command)
    }

    #[test]
    fn sec_53_what_another_name_stands_for_is_seen() {
        for line in [
            "alias q=evil; q x",
            "alias q='evil x'\nshopt -s expand_aliases\nq",
            "sg root -c 'evil x'",
            "tmux -c \"evil x\"",
        ] {
            let read = ShellLine::read(line);
            let mut commands = read.parts.iter().flat_map(PossibleCommands::commands);
            assert!(commands.any(|words| words[0] == "evil"), "{line}");
        }
    }

    #[test]
    fn a_line_is_plain_when_it_needs_no_shell() {
        let words = |line: &str| ShellLine::read(line).words;
        assert_eq!(
            words("op read 'op://a/b c' --x=1").unwrap(),
            ["op", "read", "op://a/b c", "--x=1"]
        );
        for line in [
            "op read $X",
            "a; b",
            "a | b",
            "a && b",
            "a `b`",
            "X=1 a",
            "a > b",
            "a *",
            "a\nb",
            "a 'b",
            "",
            "a\u{a0}b",
        ] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }

    #[test]
    fn sec_53_what_a_line_runs_is_seen_behind_separators_quotes_and_wrappers() {
        for line in [
            "evil x",
            "'ev'il \"x\"",
            "e\\vil x",
            "true; evil x",
            "true|evil x",
            "true &&evil x",
            "echo $(evil x)",
            "echo `evil x`",
            "A=1 B= evil x",
            "nice evil x",
            "/usr/bin/env A=1 evil x",
            "sh -c 'evil x'",
            "{ evil x; }",
            "true\nevil x",
            "if evil x; then echo 1; fi",
            "! evil x",
            "</dev/null evil x",
            "< /dev/null evil x",
            "2>&1 evil x",
            "for i in 1; do evil x; done",
            "while evil x; do :; done",
            "ev\\\nil x",
            "coproc evil x",
            "{evil,x}",
            "env -S 'evil\\_x'",
            "/lib64/ld-linux-x86-64.so.2 evil x",
            "bash-5.2 -c 'evil x'",
        ] {
            assert!(runs(line, &["evil", "x"]), "{line:?}");
        }
        assert!(!runs("pass show evil x", &["evil", "x"]));
        for line in [
            "$X y",
            "true; $(echo evil)",
            "~/x",
            "/bin/ev*",
            "X=evil; command $X y",
            "! $X y",
            "if $X y; then :; fi",
            "</dev/null $X",
            "> /dev/null $X",
            "2>&1 $X",
            "`printf evil` x",
            "e`printf vil` x",
            "{e,}vil x",
            "e{vi,}l x",
            "echo a | sh",
            "base64 -d x | /bin/bash -s",
            "set -- evil; \"$@\"",
        ] {
            assert!(ShellLine::read(line).hides, "{line:?}");
        }
        for line in [
            "op read \"$ITEM\"",
            "X=$Y op read z",
            "[ -f x ] && op read $X",
            "op read $X 2>/dev/null",
            "echo `date`",
            "echo {a,b} | tr a b",
            "{ op read x; }",
            "for i in $X; do op read $i; done",
            "sh -c 'op read x'",
        ] {
            assert!(!ShellLine::read(line).hides, "{line:?}");
        }
    }
}
