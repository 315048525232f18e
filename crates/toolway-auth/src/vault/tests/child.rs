//! A process of its own that does something with a vault: this test program, started again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::login;
use crate::vault::{StorageChoice, Vault, VaultOptions};

/// The folder of the child's vault.
const FOLDER: &str = "TOOLWAY_VAULT_TEST_FOLDER";
/// What the child does, in steps divided by `;`.
const STEPS: &str = "TOOLWAY_VAULT_TEST_STEPS";

/// Starts a child. Its environment is empty but for the session bus, when there is one.
pub(super) fn start(folder: &Path, bus: Option<&str>, steps: &str) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "vault::tests::child::child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env_clear()
        .env(FOLDER, folder)
        .env(STEPS, steps)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if let Some(bus) = bus {
        command.env("DBUS_SESSION_BUS_ADDRESS", bus);
    }
    let mut command = tokio::process::Command::from(command);
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Running { child, lines }
}

pub(super) struct Running {
    pub(super) child: Child,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The next thing it says.
    pub(super) async fn says(&mut self) -> Option<String> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            // The test harness may have begun the line.
            if let Some((_, said)) = line.split_once("SAYS ") {
                return Some(said.to_owned());
            }
        }
        None
    }

    /// Everything it says, to its end.
    pub(super) async fn until_its_end(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(said) = self.says().await {
            all.push(said);
        }
        assert!(self.child.wait().await.unwrap().success());
        all
    }
}

#[test]
#[ignore = "the process that other tests start"]
#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other way to take arguments"
)]
fn child() {
    let (Ok(folder), Ok(steps)) = (std::env::var(FOLDER), std::env::var(STEPS)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(act(PathBuf::from(folder), &steps));
    // A keychain that hangs keeps a thread, which is not joined.
    std::process::exit(0);
}

async fn act(folder: PathBuf, steps: &str) {
    let storage = if steps.starts_with("file;") {
        StorageChoice::File
    } else if steps.starts_with("only;") {
        StorageChoice::Keychain
    } else {
        StorageChoice::Any
    };
    let vault = Vault::open(VaultOptions {
        storage,
        insecure: steps.starts_with("plain;"),
        ..VaultOptions::new(folder)
    });
    for step in steps.split(';') {
        let words: Vec<&str> = step.split(' ').collect();
        match words[..] {
            ["file" | "only" | "plain"] => {}
            ["backend"] => println!("SAYS {}", vault.backend().await.as_str()),
            ["trouble"] => match vault.keychain_trouble().await {
                Some(trouble) => println!("SAYS {trouble:?}"),
                None => println!("SAYS none"),
            },
            ["write", key, secret] => match vault.write(&login(key), &secret.into()).await {
                Ok(()) => println!("SAYS written"),
                Err(error) => println!("SAYS {error}"),
            },
            ["read", key] => match vault.read(&login(key)).await {
                Ok(Some(secret)) => println!("SAYS {}", secret.expose()),
                Ok(None) => println!("SAYS nothing"),
                Err(error) => println!("SAYS {error}"),
            },
            ["remove", key] => match vault.remove(&login(key)).await {
                Ok(removed) => println!("SAYS {removed}"),
                Err(error) => println!("SAYS {error}"),
            },
            ["hold", key] => {
                let guard = vault.lock(&login(key)).await.unwrap();
                println!("SAYS held");
                std::future::pending::<()>().await;
                drop(guard);
            }
            // Adds one, many times, each time under the lock.
            ["count", key, times] => {
                for _ in 0..times.parse::<u32>().unwrap() {
                    let _guard = vault.lock(&login(key)).await.unwrap();
                    let read = vault.read(&login(key)).await.unwrap();
                    let count = read.map_or(0, |count| count.expose().parse().unwrap());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let more = format!("{}", count + 1_u32);
                    vault
                        .write(&login(key), &more.as_str().into())
                        .await
                        .unwrap();
                }
                println!("SAYS counted");
            }
            _ => panic!("`{step}` is no step"),
        }
    }
}
