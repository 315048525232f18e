//! Servers that are fetched at every start and may be another program tomorrow.
//!
//! Owns reading the command lines of common runners (`npx`, `uvx`, `docker` and the like), from the
//! entry alone: no registry is asked. Reports a diagnosis with the way to pin a version; nothing is
//! refused for it (SEC-43).

use serde_json::{Map, Value};
use toolway_types::{Diagnosis, ServerName};

use self::PackageRunner::{Image, Npm, Python};

/// A program that fetches what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageRunner {
    /// From the npm registry: `name@1.2.3`.
    Npm,
    /// From PyPI: `name==1.2.3`, and `name@1.2.3`.
    Python,
    /// An image: `name:tag`, `name@sha256:…`.
    Image,
}

/// How a runner is called.
struct RunnerCall {
    program: &'static str,
    /// What stands before the options.
    words: &'static [&'static str],
    runner: PackageRunner,
    /// The options that name what is run, in the place of the first word that is none.
    naming: &'static [&'static str],
    /// Options whose value is the next word. For images it is the other way round: those that
    /// have none, as there are fewer.
    listed: &'static [&'static str],
}

const NPM: &[&str] = &[
    "-c",
    "--call",
    "-w",
    "--workspace",
    "--registry",
    "--prefix",
    "--cache",
];
const UV: &[&str] = &[
    "-p",
    "--python",
    "-w",
    "--with",
    "--with-editable",
    "--with-requirements",
    "-c",
    "--constraints",
    "--index",
    "--default-index",
    "-i",
    "--index-url",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--directory",
    "--project",
    "--config-file",
    "--cache-dir",
    "--env-file",
];
const PIPX: &[&str] = &["--python", "--index-url", "-i"];
const IMAGE: &[&str] = &[
    "--rm",
    "--init",
    "--interactive",
    "--tty",
    "--detach",
    "--privileged",
    "--read-only",
    "--publish-all",
    "--quiet",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--replace",
    "--tls-verify",
];
/// Flags of one letter that take no value, alone or together (`-it`).
const IMAGE_LETTERS: &str = "itdPq";

/// The options of npm's kin that name what is run.
const PACKAGE: &[&str] = &["-p", "--package"];

const CALLINGS: [RunnerCall; 13] = [
    calling("npx", &[], Npm, PACKAGE, NPM),
    calling("npm", &["exec"], Npm, PACKAGE, NPM),
    calling("npm", &["x"], Npm, PACKAGE, NPM),
    calling("pnpx", &[], Npm, PACKAGE, NPM),
    calling("pnpm", &["dlx"], Npm, PACKAGE, NPM),
    calling("yarn", &["dlx"], Npm, PACKAGE, NPM),
    calling("bunx", &[], Npm, PACKAGE, NPM),
    calling("bun", &["x"], Npm, PACKAGE, NPM),
    calling("uvx", &[], Python, &["--from"], UV),
    calling("uv", &["tool", "run"], Python, &["--from"], UV),
    calling("pipx", &["run"], Python, &["--spec"], PIPX),
    calling("docker", &["run"], Image, &[], IMAGE),
    calling("podman", &["run"], Image, &[], IMAGE),
];

const fn calling(
    program: &'static str,
    words: &'static [&'static str],
    runner: PackageRunner,
    naming: &'static [&'static str],
    listed: &'static [&'static str],
) -> RunnerCall {
    RunnerCall {
        program,
        words,
        runner,
        naming,
        listed,
    }
}

/// The diagnosis of an entry that may start another program at every start.
pub fn unpinned(server: &ServerName, definition: &Map<String, Value>) -> Option<Diagnosis> {
    let command = definition.get("command")?.as_str()?;
    let program = command.rsplit(['/', '\\']).next()?;
    let program = program.trim_end_matches(".cmd").trim_end_matches(".exe");
    let args: Vec<&str> = match definition.get("args") {
        Some(Value::Array(args)) => args.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let (calling, rest) = CALLINGS.iter().find_map(|calling| {
        let rest = args.strip_prefix(calling.words)?;
        (calling.program == program).then_some((calling, rest))
    })?;
    let named = calling.named(rest)?;
    if calling.runner.is_pinned(named) {
        return None;
    }
    let bare = calling.runner.bare(named);
    let (message, hint) = match calling.runner {
        Npm => (
            format!("`{named}` has no exact version: each start may run a newer one"),
            format!("write `{bare}@<version>`; `npm view {bare} version` says the newest"),
        ),
        Python => (
            format!("`{named}` has no exact version: each start may run a newer one"),
            format!("write `{bare}==<version>`; `pip index versions {bare}` says which there are"),
        ),
        Image => (
            format!("the image `{named}` has no fixed tag: each start may run a newer one"),
            format!(
                "write `{bare}@sha256:<digest>`; `{program} image inspect --format '{{{{index \
                 .RepoDigests 0}}}}' {named}` says the digest of the one you have"
            ),
        ),
    };
    Some(Diagnosis::warning(message).of(server).hint(hint))
}

impl RunnerCall {
    /// What is fetched and run, as it is written.
    fn named<'a>(&self, args: &[&'a str]) -> Option<&'a str> {
        let mut args = args.iter().copied();
        while let Some(word) = args.next() {
            if word == "--" {
                return args.next();
            }
            if !word.starts_with('-') {
                return Some(word);
            }
            if let Some((option, value)) = word.split_once('=') {
                if self.naming.contains(&option) {
                    return Some(value);
                }
                continue;
            }
            if self.naming.contains(&word) {
                return args.next();
            }
            if self.takes_next(word) {
                args.next();
            }
        }
        None
    }

    fn takes_next(&self, option: &str) -> bool {
        let is_listed = self.listed.contains(&option);
        match self.runner {
            Npm | Python => is_listed,
            Image => {
                let letters = option.strip_prefix('-').unwrap_or_default();
                let is_flags = letters.chars().all(|c| IMAGE_LETTERS.contains(c));
                !is_listed && !is_flags
            }
        }
    }
}

impl PackageRunner {
    fn is_pinned(self, named: &str) -> bool {
        // The value of a variable is the user's business, and a path is not fetched.
        if named.contains('$') || named.starts_with(['.', '/', '~']) {
            return true;
        }
        let is_repository = named.contains("://") || named.starts_with("git+");
        match self {
            Npm if is_repository || is_shorthand(named) => named
                .rsplit_once('#')
                .is_some_and(|(_, mark)| is_commit(mark)),
            Python if is_repository => named
                .rsplit_once('@')
                .is_some_and(|(_, mark)| is_commit(mark)),
            Npm => version_of(named).is_some_and(is_exact),
            Python => {
                let equal = named.split_once("==").map(|(_, version)| version);
                equal.or_else(|| version_of(named)).is_some_and(is_exact)
            }
            Image => named.contains("@sha256:") || tag_of(named).is_some_and(|tag| tag != "latest"),
        }
    }

    /// Without a version.
    fn bare(self, named: &str) -> &str {
        let end = match self {
            Npm if is_shorthand(named) || named.contains("://") => named.rfind('#'),
            Python if named.contains("://") => None,
            Npm => version_of(named).map(|version| named.len() - version.len() - 1),
            Python => named.find(['=', '<', '>', '~', '!', '@', '[']),
            Image => tag_of(named).map(|tag| named.len() - tag.len() - 1),
        };
        &named[..end.unwrap_or(named.len())]
    }
}

/// `user/repository` and `github:user/repository`, which are no packages of a registry.
fn is_shorthand(named: &str) -> bool {
    named.contains(':') || (named.contains('/') && !named.starts_with('@'))
}

/// What stands behind the `@` that is no scope's.
fn version_of(named: &str) -> Option<&str> {
    let (name, version) = named.rsplit_once('@')?;
    (!name.is_empty()).then_some(version)
}

/// What stands behind the `:` that is no port's.
fn tag_of(image: &str) -> Option<&str> {
    let last = image.rsplit('/').next()?;
    last.split_once(':').map(|(_, tag)| tag)
}

/// One version, not a range of them: at least two numbers, and none left open.
fn is_exact(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = numbers.split('.');
    version.contains('.')
        && parts.all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        && !version.contains(".x")
}

fn is_commit(mark: &str) -> bool {
    mark.len() == 40 && mark.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn said(line: &str) -> Option<(String, String)> {
        let mut words = line.split(' ');
        let mut definition = Map::new();
        definition.insert("command".to_owned(), json!(words.next()));
        definition.insert("args".to_owned(), json!(words.collect::<Vec<_>>()));
        let server = ServerName::new("s").unwrap();
        let said = unpinned(&server, &definition)?;
        Some((said.message, said.hint.unwrap_or_default()))
    }

    #[test]
    fn sec_43_what_may_be_another_program_tomorrow_is_said() {
        for (line, named, bare) in [
            ("npx -y pkg", "`pkg`", "`pkg@<version>`"),
            (
                "/usr/bin/npx -y @a/pkg@latest --flag",
                "`@a/pkg@latest`",
                "`@a/pkg@<version>`",
            ),
            ("npx -y pkg@^1.2.3", "`pkg@^1.2.3`", "`pkg@<version>`"),
            ("npx -y pkg@1", "`pkg@1`", "`pkg@<version>`"),
            ("npx -y pkg@1.x", "`pkg@1.x`", "`pkg@<version>`"),
            ("npx --package=pkg -c run", "`pkg`", "`pkg@<version>`"),
            ("npx -p pkg program", "`pkg`", "`pkg@<version>`"),
            (
                "npx --registry https://r.example pkg",
                "`pkg`",
                "`pkg@<version>`",
            ),
            (
                "npx -y user/repository",
                "`user/repository`",
                "`user/repository@<version>`",
            ),
            ("npm exec -- pkg", "`pkg`", "`pkg@<version>`"),
            ("pnpm dlx pkg", "`pkg`", "`pkg@<version>`"),
            ("bunx pkg", "`pkg`", "`pkg@<version>`"),
            ("uvx pkg", "`pkg`", "`pkg==<version>`"),
            ("uvx pkg@latest", "`pkg@latest`", "`pkg==<version>`"),
            (
                "uvx --python 3.12 --from pkg[cli]>=1 run",
                "`pkg[cli]>=1`",
                "`pkg==<version>`",
            ),
            ("uv tool run pkg", "`pkg`", "`pkg==<version>`"),
            ("pipx run pkg", "`pkg`", "`pkg==<version>`"),
            (
                "docker run -i --rm a/image",
                "`a/image`",
                "`a/image@sha256:<digest>`",
            ),
            (
                "docker run --rm -it -e KEY a/image:latest x",
                "`a/image:latest`",
                "`a/image@sha256:<digest>`",
            ),
            (
                "podman run -v a:b --name n host:5000/image",
                "`host:5000/image`",
                "`host:5000/image@sha256:<digest>`",
            ),
        ] {
            let (message, hint) = said(line).unwrap_or_default();
            assert!(message.contains(named), "{line}: {message}");
            assert!(hint.contains(bare), "{line}: {hint}");
        }
    }

    #[test]
    fn sec_43_what_is_pinned_or_fetched_from_nowhere_is_fine() {
        let commit = format!("npx -y github:a/b#{COMMIT}");
        let python = format!("uvx --from git+https://git.example/a@{COMMIT} run");
        for line in [
            "npx -y pkg@1.2.3",
            "npx -y @a/pkg@1.2.3-beta.1 latest",
            "npx -y pkg@${VERSION}",
            "npx ./server.js",
            "uvx pkg==1.2.3",
            "uvx pkg@2025.1.2",
            "uvx --from pkg[cli]==1.2 run",
            "docker run -i --rm a/image:1.2.3",
            "docker run -i a/image@sha256:0123",
            "docker compose up",
            "npm run start",
            "node server.js",
            "npx",
            "npx --version",
            &commit,
            &python,
        ] {
            assert_eq!(said(line), None, "{line}");
        }
        let server = ServerName::new("s").unwrap();
        assert_eq!(unpinned(&server, &Map::new()), None);
    }
}
