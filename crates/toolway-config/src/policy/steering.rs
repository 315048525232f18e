//! Variables that decide what code a program runs, whatever its name and its arguments are.
//!
//! Owns the table. It is no complete one, and cannot be: it has what loaders, shells, interpreters
//! and package runners are known to follow, so that a rule about a command is not undone by the
//! entry's `env`. An organisation that needs one of them says so in its rule.

/// Whole names.
const NAMES: [&str; 56] = [
    // Where programs and personal settings are found.
    "PATH",
    "HOME",
    "USERPROFILE",
    "ZDOTDIR",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    // The system's library and its loader; `LD_` and `DYLD_` are below.
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "LOCPATH",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    // Shells, and what programs start for a person.
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "BROWSER",
    "EDITOR",
    "LESSCLOSE",
    "LESSOPEN",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
    // Interpreters.
    "CLASSPATH",
    "JAVA_HOME",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_HOME",
    "R_PROFILE",
    "R_PROFILE_USER",
    "VIRTUAL_ENV",
    "GOFLAGS",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "ERL_LIBS",
];

/// How names begin.
const PREFIXES: [&str; 33] = [
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "PYTHON",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "LUA_",
    "JULIA_",
    "ERL_",
    "DOTNET_",
    "CORECLR_",
    "COMPLUS_",
    "GIT_",
    // Package runners: where packages come from, and what runs when one is installed.
    "NPM_CONFIG_",
    "YARN_",
    "PNPM_",
    "COREPACK_",
    "BUN_",
    "DENO_",
    "UV_",
    "PIP_",
    "PIPX_",
    "PIPENV_",
    "POETRY_",
    "PYENV_",
    "CONDA_",
    "CARGO_",
    "RUSTUP_",
    "RUSTC",
    "MISE_",
    "ASDF_",
    // Where containers run.
    "DOCKER_",
];

/// What begins so and decides nothing.
const HARMLESS: [&str; 13] = [
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONFAULTHANDLER",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_TERMINAL_PROMPT",
];

/// Whether a variable can decide what code runs. Some programs read such names in any case.
pub(super) fn steers(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    !HARMLESS.contains(&name.as_str())
        && (NAMES.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}
