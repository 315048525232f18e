//! Allow rules that permit more than they seem to.
//!
//! Owns finding rules for commands that let any program run, and the warnings about them. Does not
//! refuse anything: such a rule counts as written.

use toolway_types::{Diagnosis, Scope};

use crate::plan::Plan;
use crate::policy_rule::PolicyRule;

/// Programs that run what their arguments say. Versions at the end (`python3.12`) do not matter.
const LAUNCHERS: [&str; 40] = [
    "ash", "bash", "bun", "bunx", "busybox", "cargo", "corepack", "dash", "deno", "docker",
    "dotnet", "env", "fish", "go", "java", "ksh", "lua", "make", "node", "nodejs", "npm", "npx",
    "nix", "perl", "php", "pipx", "pnpm", "podman", "pypy", "python", "ruby", "sh", "ssh", "sudo",
    "tsx", "uv", "uvx", "xargs", "yarn", "zsh",
];

impl Plan {
    /// Warnings about the organisation's own rules, for its administrator.
    pub fn weak_rules(&self) -> Vec<Diagnosis> {
        let rules = self.policy.servers.allow_rules();
        rules.filter_map(weakness).chain(self.exclusion()).collect()
    }

    /// A warning when the organisation's own file excludes every server or none, perhaps by
    /// mistake.
    fn exclusion(&self) -> Option<Diagnosis> {
        if let Some(origin) = &self.policy.lists_only {
            let message = "the file has lists and no `mcpServers`, so it excludes only what they \
                           say; servers of other scopes connect";
            let hint = "write `\"mcpServers\": {}` too if no other server may";
            return Some(Diagnosis::warning(message).at(origin.clone()).hint(hint));
        }
        let origin = self.policy.exclusive.as_ref()?;
        if (self.servers.iter()).any(|server| server.scope == Scope::Enterprise) {
            return None;
        }
        let message = "the file excludes every server that it does not name, and names none: \
                       nothing can connect";
        let hint = "leave `mcpServers` out and write `allowedMcpServers` or `deniedMcpServers` if \
                    only some are to be excluded";
        Some(Diagnosis::warning(message).at(origin.clone()).hint(hint))
    }
}

fn weakness(rule: &PolicyRule) -> Option<Diagnosis> {
    let words = &rule.command()?.words;
    let (first, rest) = words.split_first()?;
    let why = if first.starts_with('*') {
        "allows any program".to_owned()
    } else {
        let name = first.rsplit('/').next().unwrap_or_default();
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '*');
        let is_launcher = LAUNCHERS.contains(&name) || LAUNCHERS.contains(&bare);
        if !is_launcher || !rest.iter().any(|word| word.contains('*')) {
            return None;
        }
        format!("is no boundary: `{name}` runs whatever the words under its `*` say")
    };
    let PolicyRule { text, origin, .. } = rule;
    let told = Diagnosis::warning(format!("`{text}` in `allowedMcpServers` {why}"));
    Some(told.at(origin.clone()).hint(
        "write every word of the servers you mean, with their versions, or a program of your own",
    ))
}
