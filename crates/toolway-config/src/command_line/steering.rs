//! Variables that decide what code a program runs.
//!
//! Owns the table. It cannot be complete: it has what loaders, shells, interpreters and package
//! runners are known to read, so that the entry's `env` does not undo a rule about a command. An
//! organisation that needs one of them permits it in its rule.

/// Whole names.
const NAMES: &[&str] = &[
    // Where programs and personal settings are found.
    "PATH",
    "HOME",
    "USERPROFILE",
    "ZDOTDIR",
    "CDPATH",
    "FPATH",
    "PREFIX",
    "DESTDIR",
    // The system's library and its loader; `LD_` and `DYLD_` are below.
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "LOCPATH",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "GIO_EXTRA_MODULES",
    "GIO_MODULE_DIR",
    "GTK_MODULES",
    "GTK_PATH",
    "QT_PLUGIN_PATH",
    // Certificates that downloads are checked against. A proxy alone changes nothing that comes
    // over TLS.
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Shells, and programs that others start for the user.
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
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
    "MANPAGER",
    "RSYNC_RSH",
    "CVS_RSH",
    "SVN_SSH",
    "SUDO_ASKPASS",
    "EXINIT",
    "VIMINIT",
    "INPUTRC",
    "GNUPGHOME",
    "HGRCPATH",
    // Options and libraries of common tools, and what they compile with.
    "AWKPATH",
    "AWKLIBPATH",
    "TAR_OPTIONS",
    "MAKEFILES",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MFLAGS",
    "CC",
    "CXX",
    "LD",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    // Settings of cloud tools that name programs to run for credentials.
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "AZURE_EXTENSION_DIR",
    "KUBECONFIG",
    "CONTAINER_HOST",
    "CONTAINER_SSHKEY",
    // Interpreters.
    "CLASSPATH",
    "JAVA_HOME",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JRE_HOME",
    "JRUBY_OPTS",
    "ELIXIR_ERL_OPTIONS",
    "_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5SHELL",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_HOME",
    "R_LIBS",
    "R_LIBS_SITE",
    "R_LIBS_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "VIRTUAL_ENV",
    "GOFLAGS",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GOBIN",
    "GOENV",
    "GOSUMDB",
    "GONOSUMDB",
    "M2_HOME",
    "SBT_OPTS",
    "PSMODULEPATH",
    "TCLLIBPATH",
    "GUILE_LOAD_PATH",
    "GUILE_LOAD_COMPILED_PATH",
    "CHROME_PATH",
    "ELECTRON_RUN_AS_NODE",
    "ESBUILD_BINARY_PATH",
    "NVM_DIR",
    "NIX_PATH",
];

/// How names begin.
const PREFIXES: &[&str] = &[
    // Where settings, caches, data and sockets of the user are.
    "XDG_",
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
    // The programs and compilers that packages for Node start.
    "PLAYWRIGHT_",
    "PUPPETEER_",
    "TS_NODE_",
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
    "VOLTA_",
    "FNM_",
    "MAVEN_",
    "GRADLE_",
    // Where containers run, and what cloud tools run with.
    "DOCKER_",
    "CONTAINERS_",
    "CLOUDSDK_",
    "HELM_",
];

/// Harmless names with such a prefix.
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
pub(crate) fn decides_what_runs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    !HARMLESS.contains(&name.as_str())
        && (NAMES.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_53_what_decides_which_code_runs_is_in_the_table() {
        for name in [
            "PATH",
            "HOME",
            "PREFIX",
            "prefix",
            "KUBECONFIG",
            "FPATH",
            "CDPATH",
            "CLOUDSDK_PYTHON",
            "CLOUDSDK_CONFIG",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "AWS_CONFIG_FILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AZURE_CONFIG_DIR",
            "TAR_OPTIONS",
            "MAKEFLAGS",
            "MAKEFILES",
            "AWKPATH",
            "GIO_EXTRA_MODULES",
            "GTK_MODULES",
            "CONTAINERS_CONF",
            "CONTAINER_HOST",
            "DOCKER_HOST",
            "DOCKER_CONFIG",
            "RSYNC_RSH",
            "HGRCPATH",
            "MAVEN_OPTS",
            "GRADLE_OPTS",
            "CC",
            "NODE_EXTRA_CA_CERTS",
            "SSL_CERT_FILE",
            "PUPPETEER_EXECUTABLE_PATH",
            "ESBUILD_BINARY_PATH",
            "TS_NODE_COMPILER",
            "BASH_LOADABLES_PATH",
            "R_LIBS",
            "npm_config_prefix",
            "LD_PRELOAD",
        ] {
            assert!(decides_what_runs(name), "{name}");
        }
    }

    #[test]
    fn what_most_entries_set_is_in_nobodys_way() {
        for name in [
            "API_KEY",
            "GITHUB_TOKEN",
            "AWS_REGION",
            "AWS_PROFILE",
            "AWS_ACCESS_KEY_ID",
            "AZURE_TENANT_ID",
            "TMPDIR",
            "LANG",
            "TZ",
            "DEBUG",
            "LOG_LEVEL",
            "DATABASE_URL",
            "PYTHONUNBUFFERED",
        ] {
            assert!(!decides_what_runs(name), "{name}");
        }
    }
}
