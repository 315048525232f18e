//! Where the files lie that several runs of one person share.
//!
//! Owns their names. What is in each is the affair of the module that reads it.

use std::path::PathBuf;

use toolway_config::Environment;

/// The files and folders that several runs share.
#[derive(Debug, Clone, Copy)]
pub struct StateFiles<'a>(pub(super) &'a Environment);

impl<'a> StateFiles<'a> {
    /// Those of whoever has this environment.
    pub fn of(environment: &'a Environment) -> Self {
        Self(environment)
    }

    /// What servers logged and what was said to them.
    pub fn logs(self) -> PathBuf {
        self.state("logs")
    }

    /// Every call that was asked for.
    pub fn audit(self) -> PathBuf {
        self.state("audit")
    }

    /// Which era each server spoke last time.
    pub fn eras(self) -> PathBuf {
        self.state("eras.json")
    }

    /// What servers offered when they were last connected.
    pub fn catalogs(self) -> PathBuf {
        self.state("catalogue")
    }

    /// How tools were defined when they were first permitted.
    pub fn pins(self) -> PathBuf {
        self.state("pins.json")
    }

    /// Which tools were ever pinned. Beside the settings, so that it stays when the state is
    /// thrown away.
    pub fn pinned(self) -> PathBuf {
        self.0.config_home().join("pinned.json")
    }

    /// Files of results.
    pub fn results(self) -> PathBuf {
        self.state("results")
    }

    /// What was changed in the files of other clients.
    pub fn clients(self) -> PathBuf {
        self.state("clients.json")
    }

    /// Which servers wanted a login a moment ago.
    pub fn needs(self) -> PathBuf {
        self.state("needs-auth.json")
    }

    /// Requests to running processes to connect anew.
    pub fn reconnects(self) -> PathBuf {
        self.state("reconnect")
    }

    /// The owner's sockets of the gateways that run.
    pub fn gateways(self) -> PathBuf {
        self.state("gateways")
    }

    /// The folders of programs that are run with an endpoint.
    pub fn runs(self) -> PathBuf {
        self.state("runs")
    }

    /// The daemon's socket, its lock and its log.
    pub fn daemon(self) -> PathBuf {
        self.state("daemon")
    }

    /// The digests of the tokens that clients show to the gateway.
    pub fn tokens(self) -> PathBuf {
        self.state("tokens.json")
    }

    /// The gateway's own token.
    pub fn gateway_token(self) -> PathBuf {
        self.state("gateway-token")
    }

    /// The files of the vault: beside the settings, and no shielded server looks into it.
    pub fn vault(self) -> PathBuf {
        self.0.config_home().join("vault")
    }

    fn state(self, name: &str) -> PathBuf {
        self.0.state_home().join(name)
    }
}
