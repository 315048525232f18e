//! Showing a user a page: a URL handed to the program they browse with.
//!
//! Owns how that program is found and started: without a shell, with an explicit environment, and
//! never ended by us. The user's yes is up to the caller; nothing is fetched here (SEC-36).

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;
use toolway_types::text::cut;
use toolway_types::{Secret, may_be_opened};
use url::Url;

use crate::stdio::descriptors;

/// How long a program is watched: one that fails does so at once, one that browses stays.
const WATCHED: Duration = Duration::from_secs(2);

/// The longest address that is opened.
const MAX_PAGE: usize = 32 * 1024;

/// What opens a page when `BROWSER` is not set.
const USUAL: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open"]
};

/// The programs that can show pages, in the order they are tried.
#[derive(Debug, Clone)]
pub struct Browser {
    commands: Vec<Vec<String>>,
    environment: BTreeMap<String, Secret>,
}

/// Why no page was shown.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// Only `https`, and `http` on this machine, without user info and not too long. The message
    /// does not repeat what follows the host.
    #[error("`{0}` is not an address that is opened")]
    Unfit(String),
    /// None of the programs opened it.
    #[error("no program opened it ({})", .0.join("; "))]
    Nobody(Vec<String>),
}

impl Browser {
    /// The programs of the variable `BROWSER`, which are words and never a shell's line, and
    /// after them what is usual on this system.
    pub fn new(variable: Option<&str>, environment: BTreeMap<String, Secret>) -> Self {
        let named = variable.unwrap_or_default().split(':').map(words);
        let usual = USUAL.iter().map(|program| words(program));
        Self {
            commands: named
                .chain(usual)
                .filter(|words| !words.is_empty())
                .collect(),
            environment,
        }
    }

    /// Hands a page to the first program that takes it.
    pub async fn show(&self, page: &Url) -> Result<(), BrowserError> {
        if !may_be_opened(page) || page.as_str().len() > MAX_PAGE {
            let host = page.host_str().unwrap_or_default();
            let place = format!("{}:{host}", page.scheme());
            return Err(BrowserError::Unfit(cut(&place, 100).into_owned()));
        }
        let mut tried = Vec::new();
        for command in &self.commands {
            match self.hand_over(command, page).await {
                Ok(()) => return Ok(()),
                Err(error) => tried.push(format!("`{}`: {error}", command[0])),
            }
        }
        Err(BrowserError::Nobody(tried))
    }

    async fn hand_over(&self, command: &[String], page: &Url) -> io::Result<()> {
        let mut child = self.start(command, page)?;
        match timeout(WATCHED, child.wait()).await {
            Ok(Ok(status)) if !status.success() => Err(io::Error::other(status.to_string())),
            Ok(Err(error)) => Err(error),
            // It is done, or it is the browser itself and goes on.
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    fn start(&self, command: &[String], page: &Url) -> io::Result<Child> {
        let names_place = command.iter().any(|word| word.contains("%s"));
        let mut words = command
            .iter()
            .map(|word| word.replace("%s", page.as_str()))
            .chain((!names_place).then(|| page.as_str().to_owned()));
        let mut starting = Command::new(words.next().unwrap_or_default());
        starting
            .args(words)
            // Not in the current directory, which may belong to another user.
            .current_dir("/")
            .env_clear()
            .envs(
                self.environment
                    .iter()
                    .map(|(name, value)| (name, value.expose())),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C on our terminal is not meant for it.
            .process_group(0)
            .kill_on_drop(false);
        descriptors::close_on_exec_all()?;
        starting.spawn()
    }
}

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}
