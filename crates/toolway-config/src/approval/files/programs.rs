//! What programs do with their arguments, and which files they look for.
//!
//! Owns the table. It is not complete: it has the interpreters, runners of packages and tasks, and
//! builders that servers are started with. Of other programs only what their arguments name is
//! known.

use crate::command_line::program_name;

/// What a program takes among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramTakes {
    /// A file to run: the first word that is no flag.
    Script,
    /// Code, behind a flag with one of these letters.
    Code(&'static str),
    /// A line for a shell, behind `-c`.
    Line,
    /// Names of scripts in a manifest.
    Tasks,
    /// Names of packages, which may be installed in the repository.
    Packages,
    /// Directories that it shows to a container.
    Mounts,
    /// Another program with its words.
    Program,
}

/// A program, or several that are alike.
#[derive(Debug)]
pub(super) struct KnownProgram {
    names: &'static [&'static str],
    pub(super) takes: &'static [ProgramTakes],
    /// The files that it looks for where it works, and above.
    pub(super) looks_for: &'static [&'static str],
    /// Why what it runs cannot be bound.
    pub(super) hidden: Option<&'static str>,
}

const BUILDS: Option<&str> = Some("builds and runs whatever sources are there");
const INSTALLED: Option<&str> = Some("runs what is installed in the project's environment");

/// Settings of package runners that name code, or where packages come from.
const PACKAGES: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
];

use ProgramTakes::{Code, Line, Mounts, Packages, Program as Other, Script, Tasks};

const fn row(names: &'static [&'static str], takes: &'static [ProgramTakes]) -> KnownProgram {
    looking(names, takes, &[])
}

const fn looking(
    names: &'static [&'static str],
    takes: &'static [ProgramTakes],
    looks_for: &'static [&'static str],
) -> KnownProgram {
    hiding(names, takes, looks_for, None)
}

const fn hiding(
    names: &'static [&'static str],
    takes: &'static [ProgramTakes],
    looks_for: &'static [&'static str],
    hidden: Option<&'static str>,
) -> KnownProgram {
    KnownProgram {
        names,
        takes,
        looks_for,
        hidden,
    }
}

const PROGRAMS: &[KnownProgram] = &[
    row(
        &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"],
        &[Script, Line],
    ),
    row(&["source"], &[Script]),
    row(&["env"], &[Other]),
    row(
        &["python", "pythonw", "pypy", "ipython", "uwsgi"],
        &[Script, Code("c")],
    ),
    row(&["node", "nodejs"], &[Script, Code("ep")]),
    row(
        &["tsx", "ts-node", "esno", "jiti", "nodemon", "babel-node"],
        &[Script, Code("ep"), Other],
    ),
    row(
        &[
            "perl",
            "ruby",
            "jruby",
            "lua",
            "luajit",
            "julia",
            "rscript",
            "elixir",
            "groovy",
            "osascript",
            "racket",
            "guile",
            "clojure",
            "clj",
            "bb",
            "scala",
            "ghc",
            "runghc",
        ],
        &[Script, Code("eE")],
    ),
    row(&["php"], &[Script, Code("rBRE")]),
    row(
        &[
            "awk",
            "gawk",
            "mawk",
            "nawk",
            "tclsh",
            "wish",
            "expect",
            "java",
            "kotlin",
            "dart",
            "pwsh",
            "powershell",
            "nu",
            "ocaml",
            "sbcl",
            "wasmtime",
            "wasmer",
            "xonsh",
        ],
        &[Script],
    ),
    row(
        &[
            "fastmcp",
            "mcp",
            "uvicorn",
            "gunicorn",
            "hypercorn",
            "granian",
            "flask",
            "streamlit",
            "watchmedo",
            "pm2",
            "forever",
        ],
        &[Script],
    ),
    looking(&["npx", "pnpx", "bunx"], &[Packages, Other], PACKAGES),
    looking(
        &["npm", "pnpm", "yarn", "yarnpkg", "corepack"],
        &[Tasks, Packages, Other],
        PACKAGES,
    ),
    looking(&["bun"], &[Script, Code("ep"), Tasks, Packages], PACKAGES),
    looking(&["deno"], &[Script, Tasks], &["deno.json", "deno.jsonc"]),
    // Local settings do not count for `uvx`, but they did once.
    looking(&["uvx", "pipx"], &[Other], &["uv.toml"]),
    hiding(
        &["uv", "poetry", "pdm", "hatch", "rye", "pipenv", "pixi"],
        &[Script, Tasks, Other],
        &[
            "pyproject.toml",
            "uv.toml",
            "Pipfile",
            "hatch.toml",
            "pixi.toml",
        ],
        INSTALLED,
    ),
    hiding(
        &["bundle", "composer"],
        &[Tasks, Other],
        &["Gemfile", ".bundle/config", "composer.json"],
        INSTALLED,
    ),
    looking(
        &["make", "gmake"],
        &[],
        &["GNUmakefile", "makefile", "Makefile"],
    ),
    looking(
        &["just"],
        &[],
        &["justfile", ".justfile", "Justfile", "JUSTFILE"],
    ),
    looking(
        &["task", "go-task"],
        &[],
        &[
            "Taskfile.yml",
            "taskfile.yml",
            "Taskfile.yaml",
            "taskfile.yaml",
            "Taskfile.dist.yml",
            "Taskfile.dist.yaml",
        ],
    ),
    looking(
        &["rake", "invoke", "inv", "fab", "nox", "tox"],
        &[],
        &[
            "Rakefile",
            "rakefile",
            "Rakefile.rb",
            "tasks.py",
            "fabfile.py",
            "noxfile.py",
            "tox.ini",
        ],
    ),
    looking(
        &["mise", "direnv", "asdf", "devbox", "nix", "nix-shell"],
        &[Other],
        &[
            "mise.toml",
            ".mise.toml",
            ".tool-versions",
            ".envrc",
            "devbox.json",
            "flake.nix",
            "shell.nix",
            "default.nix",
        ],
    ),
    hiding(
        &["cargo"],
        &[],
        &[
            "Cargo.toml",
            "build.rs",
            "src/main.rs",
            ".cargo/config.toml",
            "rust-toolchain.toml",
        ],
        BUILDS,
    ),
    hiding(&["go"], &[Script], &["go.mod", "go.work"], BUILDS),
    hiding(
        &[
            "gradle", "gradlew", "mvn", "mvnw", "sbt", "dotnet", "swift", "zig", "mix", "stack",
        ],
        &[Script],
        &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradle.properties",
            "gradle/wrapper/gradle-wrapper.properties",
            "pom.xml",
            ".mvn/jvm.config",
            "build.sbt",
            "Package.swift",
            "build.zig",
            "mix.exs",
            "stack.yaml",
        ],
        BUILDS,
    ),
    looking(&["docker", "podman", "nerdctl"], &[Mounts, Other], &[]),
    looking(
        &["compose", "docker-compose", "podman-compose"],
        &[Mounts],
        &[
            "compose.yaml",
            "compose.yml",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.override.yaml",
            "docker-compose.override.yml",
            "Dockerfile",
        ],
    ),
];

/// Words that stand between a program and what it runs.
pub(super) const SUBCOMMANDS: [&str; 14] = [
    "--",
    "dev",
    "dlx",
    "exec",
    "run",
    "run-script",
    "serve",
    "start",
    "task",
    "test",
    "tool",
    "watch",
    "with",
    "x",
];

/// Flags that tell a program where to work, or what to take its code from.
const PLACES: [&str; 14] = [
    "--app-dir",
    "--chdir",
    "--cwd",
    "--dir",
    "--directory",
    "--editable",
    "--from",
    "--prefix",
    "--project",
    "--project-directory",
    "--root",
    "--with-editable",
    "--workdir",
    "-C",
];

/// Flags that name a file of rules or code to follow.
const FILES: [&str; 5] = ["--file", "--justfile", "--makefile", "--taskfile", "-f"];

/// Letters of flags that have no value behind them, in most interpreters and shells.
const ALONE: &str = "ABEIOSTadhilnqsuvwxy";
const ALONE_LONG: [&str; 8] = [
    "--allow",
    "--deny",
    "--enable",
    "--experimental",
    "--inspect",
    "--no",
    "--silent",
    "--yes",
];

/// The program of a word.
pub(super) fn program(word: &str) -> Option<&'static KnownProgram> {
    let name = program_name(word);
    PROGRAMS
        .iter()
        .find(|program| program.names.contains(&name.as_str()))
}

impl KnownProgram {
    pub(super) fn takes(&self, what: ProgramTakes) -> bool {
        self.takes.contains(&what)
    }

    /// Whether a word is a flag behind which code stands.
    pub(super) fn has_code_behind(&self, word: &str) -> bool {
        self.takes.iter().any(|takes| match takes {
            ProgramTakes::Code(letters) => is_short_flag(word, letters) || is_long_code(word),
            ProgramTakes::Line => is_short_flag(word, "c"),
            _ => false,
        })
    }

    /// Whether the words behind the first that is no flag are not for it.
    pub(super) fn ends_at_a_word(&self) -> bool {
        self.takes(ProgramTakes::Script) || matches!(self.names[0], "npx" | "uvx")
    }
}

/// Whether a word is a flag of which these letters are one, with or without a value.
fn is_short_flag(word: &str, letters: &str) -> bool {
    let Some(flags) = word.strip_prefix('-') else {
        return false;
    };
    let is_one = |c: Option<char>| c.is_some_and(|c| letters.contains(c));
    let is_row = flags.len() <= 5 && flags.chars().all(|c| c.is_ascii_alphabetic());
    is_one(flags.chars().next()) || (is_row && is_one(flags.chars().last()))
}

fn is_long_code(word: &str) -> bool {
    let flag = word.split('=').next().unwrap_or_default();
    matches!(flag, "--eval" | "--print" | "--command")
}

/// Whether a flag has no value behind it.
pub(super) fn stands_alone(flag: &str) -> bool {
    flag.contains('=')
        || ALONE_LONG.iter().any(|start| flag.starts_with(start))
        || flag
            .strip_prefix('-')
            .is_some_and(|letters| letters.chars().all(|c| ALONE.contains(c)))
}

/// The directory that a flag names, in its own word or in the next.
pub(super) fn place<'a>(flag: &'a str, next: Option<&'a String>) -> Option<&'a str> {
    value(flag, next, &PLACES).or_else(|| flag.strip_prefix("-C"))
}

/// The file that a flag names, in its own word or in the next.
pub(super) fn file<'a>(flag: &'a str, next: Option<&'a String>) -> Option<&'a str> {
    value(flag, next, &FILES).or_else(|| flag.strip_prefix("-f"))
}

fn value<'a>(word: &'a str, next: Option<&'a String>, flags: &[&str]) -> Option<&'a str> {
    if flags.contains(&word) {
        return next.map(String::as_str);
    }
    let (flag, value) = word.split_once('=')?;
    flags.contains(&flag).then_some(value)
}
