//! A home that has a server that wants a login, a person with a browser, and who gives the login.

use std::fs;
use std::ops::Deref;
use std::process::Command;

use serde_json::Value;
use toolway_testkit::browser::BrowserPage;
use toolway_testkit::peers::{ProtectedKind, ProtectedPeer, ProviderKind, ProviderPeer};
use toolway_testkit::{CommandOutput, TempHome, TestBrowser};

use crate::visiting::{opened, visit, with_browser};

/// A person whose home has one server, called `peer`.
pub(super) struct User {
    pub(super) home: TempHome,
}

impl User {
    pub(super) fn of(url: &str) -> Self {
        let user = Self {
            home: TempHome::new(),
        };
        user.run(&["add", "peer", url]).expect_code(0);
        user
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

    /// The same with somebody who logs in there and consents, whatever the pages call that; the
    /// last page, too.
    pub(super) fn log_in(&self, words: &[&str], who: &str) -> (CommandOutput, BrowserPage) {
        let fields = [
            ("login", who),
            ("username", who),
            ("password", "any"),
            ("allow", "yes"),
            ("action", "approve"),
        ];
        let (output, page) = self.visit(words, |url| TestBrowser::new().log_in(url, &fields));
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

    /// What a tool without arguments answers.
    pub(super) fn says(&self, tool: &str) -> String {
        let said = self.run(&["call", "peer", tool]).expect_code(0).stdout;
        said.trim_end().to_owned()
    }

    pub(super) fn whoami(&self) -> String {
        self.says("whoami")
    }

    /// A new file with everything that the vault has.
    pub(super) fn export(&self) -> String {
        let file = self.home.home().join("export.json");
        let name = file.display().to_string();
        self.run(&["vault", "export", &name, "--show-secrets"])
            .expect_code(0);
        name
    }

    /// The login of this account, as the vault has it.
    pub(super) fn kept(&self, account: &str) -> Value {
        let file = self.export();
        let content: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        let mut secrets = content["secrets"].as_array().unwrap().iter();
        let login = secrets
            .find(|item| item["kind"] == "login" && item["account"] == account)
            .unwrap();
        serde_json::from_str(login["secret"].as_str().unwrap()).unwrap()
    }
}

/// A user of a server that wants the tokens of a provider.
pub(super) struct Scene {
    user: User,
    pub(super) provider: ProviderPeer,
    pub(super) peer: ProtectedPeer,
}

impl Scene {
    /// With oidc-provider and its options.
    pub(super) fn new(which: ProtectedKind, options: &Value) -> Self {
        Self::at(ProviderKind::Oidc, which, options)
    }

    /// With another provider and the options of its script in `tests/peers`.
    pub(super) fn at(provider: ProviderKind, which: ProtectedKind, options: &Value) -> Self {
        let provider = ProviderPeer::start(provider, options);
        let peer = ProtectedPeer::start(which, provider.issuer());
        Self {
            user: User::of(peer.url()),
            provider,
            peer,
        }
    }
}

impl Deref for Scene {
    type Target = User;

    fn deref(&self) -> &User {
        &self.user
    }
}
