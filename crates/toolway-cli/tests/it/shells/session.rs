//! A person at bash, zsh or fish, on a terminal of their own.
//!
//! Owns starting each shell with its completions and noting what a line ran `toolway` with. The
//! completions are those of the program; only what a person would run with them is written down
//! instead.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolway_testkit::TempHome;

use crate::support::{program, toolway};
use crate::terminal::TerminalProgram;

/// A shell that the program has completions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub(super) fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }

    /// Whether it can be run; else a word about it.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    pub(super) fn is_there(self) -> bool {
        for name in [self.name(), "setsid"] {
            if Command::new(name).arg("--version").output().is_err() {
                eprintln!("skipped: {name} is not installed");
                return false;
            }
        }
        true
    }
}

/// A shell that waits for a line.
pub(super) struct Session<'a> {
    home: &'a TempHome,
    terminal: TerminalProgram,
}

impl<'a> Session<'a> {
    /// Starts a shell in the project.
    pub(super) fn start(home: &'a TempHome, shell: Shell) -> Self {
        let folder = home.home().join("bin");
        note_what_is_run(home, &folder.join("toolway"));
        let completions = toolway(home, &["completions", shell.name()])
            .expect_code(0)
            .stdout;
        // A session of its own, so that the shell has its terminal to itself.
        let mut command = home.command("setsid");
        command.args(["--ctty", shell.name()]);
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        command.env("TERM", "dumb");
        match shell {
            Shell::Bash => {
                let start = format!(
                    "{completions}\nPS1='ready> '\nbind 'set bell-style none'\n\
                     bind '\"\\C-o\": menu-complete'\n{}\nbind -x '\"\\C-g\": show'\n",
                    "show() { printf '%s' \"$READLINE_LINE\" > \"$HOME/line\"; echo '<shown>' >&2; }"
                );
                let file = home.write(home.home().join("bashrc"), start);
                command
                    .args(["--noprofile", "--rcfile"])
                    .arg(file)
                    .arg("-i");
            }
            Shell::Zsh => {
                let functions = home.home().join("functions");
                home.write(functions.join("_toolway"), completions);
                let start = format!(
                    "PS1='ready> '\nfpath=({} $fpath)\nautoload -Uz compinit && compinit -u -D\n\
                     unsetopt beep prompt_sp\nsetopt extended_glob magic_equal_subst\n\
                     bindkey -e\nbindkey '^O' menu-complete\n\
                     show() {{ print -rn -- \"$BUFFER\" > $HOME/line; print '<shown>' >&2 }}\n\
                     zle -N show\nbindkey '^G' show\n",
                    functions.display()
                );
                home.write(home.home().join(".zshrc"), start);
                command.args(["--no-globalrcs", "-i"]);
            }
            Shell::Fish => {
                let start = "function fish_prompt; echo -n 'ready> '; end\n\
                             function fish_greeting; end\n\
                             function show; printf '%s' (commandline | string collect) > $HOME/line; \
                             echo '<shown>' >&2; end\nbind \\cg show\nbind \\co complete\n";
                let file = home.write(
                    home.home().join("start.fish"),
                    format!("{start}{completions}"),
                );
                command.args(["--no-config", "--init-command"]);
                command.arg(format!("source {}", file.display())).arg("-i");
                command.env("TERM", "xterm");
            }
        }
        let mut terminal = TerminalProgram::take_with_stdout(&mut command);
        terminal.expect("ready> ");
        Self { home, terminal }
    }

    /// Types this, and gives the line as the shell has it then; the line goes on.
    pub(super) fn shown(&mut self, keys: &str) -> String {
        self.terminal.type_keys(&format!("{keys}\u{7}"));
        self.terminal.expect("<shown>");
        fs::read_to_string(self.home.home().join("line")).unwrap()
    }

    /// Takes the line away again.
    pub(super) fn forget_line(&mut self) {
        self.terminal.type_keys("\u{5}\u{15}");
    }

    /// Types this line to its end: what `toolway` was run with, once everything on it has run.
    pub(super) fn run(&mut self, keys: &str) -> Vec<String> {
        self.terminal.type_keys(&format!("{keys}\r"));
        self.terminal.expect("<ran>");
        self.terminal.expect("ready> ");
        let noted = fs::read(self.arguments()).unwrap();
        let words = noted.split_inclusive(|byte| *byte == 0);
        words
            .map(|word| String::from_utf8(word[..word.len() - 1].to_vec()).unwrap())
            .collect()
    }

    fn arguments(&self) -> PathBuf {
        self.home.home().join("arguments")
    }

    /// Ends it.
    pub(super) fn end(self) {
        self.terminal.end();
    }
}

/// A `toolway` that completes, and notes what else it is asked to do.
fn note_what_is_run(home: &TempHome, path: &Path) {
    let script = format!(
        "#!/bin/sh\n\
         case \"$1\" in __complete) exec '{}' \"$@\" ;; esac\n\
         printf '%s\\0' \"$@\" > \"$HOME/arguments\"\nprintf '<ran>' >&2\n",
        program()
    );
    home.write(path, script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
