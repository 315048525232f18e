//! A provider, a server that wants its tokens, a home that has it configured, and a person.

use std::fs;
use std::process::Command;

use serde_json::Value;
use toolway_testkit::browser::Page;
use toolway_testkit::peers::{OidcProvider, Protected, ProtectedPeer};
use toolway_testkit::{Browser, CommandOutput, TempHome};

use crate::visiting::{opened, visit, with_browser};

pub(super) struct Scene {
    pub(super) home: TempHome,
    pub(super) provider: OidcProvider,
    pub(super) peer: ProtectedPeer,
}

impl Scene {
    /// With the options of `tests/peers/oidc_provider.mjs`. The server is called `peer`.
    pub(super) fn new(which: Protected, options: &Value) -> Self {
        let provider = OidcProvider::start(options);
        let peer = ProtectedPeer::start(which, provider.issuer());
        let home = TempHome::new();
        let scene = Self {
            home,
            provider,
            peer,
        };
        scene.run(&["add", "peer", scene.peer.url()]).expect_code(0);
        scene
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        with_browser(&self.home, words)
    }

    pub(super) fn run(&self, words: &[&str]) -> CommandOutput {
        self.home.run(&mut self.command(words))
    }

    /// The page that a command opens, once it does.
    pub(super) fn opened(&self) -> String {
        opened(&self.home)
    }

    /// The next page is the one that is opened from now on.
    pub(super) fn forget_opened(&self) {
        let _ = fs::remove_file(self.home.home().join("page"));
    }

    /// Runs a command that opens a page; somebody goes there.
    pub(super) fn visit<T: Send>(
        &self,
        words: &[&str],
        person: impl FnOnce(&str) -> T + Send,
    ) -> (CommandOutput, T) {
        self.forget_opened();
        visit(&self.home, &mut self.command(words), person)
    }

    /// The same with somebody who logs in there and consents; the last page, too.
    pub(super) fn log_in(&self, words: &[&str], who: &str) -> (CommandOutput, Page) {
        let (output, page) = self.visit(words, |url| {
            Browser::new().log_in(url, &[("login", who), ("password", "any")])
        });
        let page = page.unwrap_or_else(|| panic!("the browser got nowhere: {output}"));
        (output, page)
    }

    /// The server's state in `list --json`.
    pub(super) fn state(&self) -> String {
        let output = self.run(&["list", "--json"]).expect_code(0);
        let servers = output.json()["servers"].clone();
        let mut servers = servers.as_array().unwrap().iter();
        let peer = servers.find(|server| server["name"] == "peer").unwrap();
        peer["state"].as_str().unwrap().to_owned()
    }

    pub(super) fn whoami(&self) -> String {
        self.run(&["call", "peer", "whoami"]).expect_code(0).stdout
    }

    /// The login of this account, as the vault has it.
    pub(super) fn kept(&self, account: &str) -> Value {
        let file = self.home.home().join("export.json");
        let name = file.display().to_string();
        self.run(&["vault", "export", &name, "--show-secrets"])
            .expect_code(0);
        let content: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        let mut secrets = content["secrets"].as_array().unwrap().iter();
        let login = secrets
            .find(|item| item["kind"] == "login" && item["account"] == account)
            .unwrap();
        serde_json::from_str(login["secret"].as_str().unwrap()).unwrap()
    }
}
