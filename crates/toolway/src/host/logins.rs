//! Logging in and out of the servers of a running host.
//!
//! Owns the way in for front-ends. What a login needs to know of a server is learnt by connecting
//! to it; the work is `auth/login.rs`'s.

use std::sync::Arc;

use toolway_types::{ConnectionState, ServerName};

use super::{Host, View};
use crate::auth::{
    Auth, LoginHandle, LoginOptions, LoginProblem, Organisation, RemovedLogin, StoredLogin,
};
use crate::event::{self, HostEvent, LoginChange, UnknownServer};
use crate::reconnect::Unless;
use crate::snapshot::ServerSnapshot;

impl Host {
    /// Begins a login, or joins the one under way. A server that has not said what it wants is
    /// asked first. When the login is done the server connects anew by itself, here and in every
    /// running process.
    pub async fn login(
        &self,
        server: &str,
        options: LoginOptions,
    ) -> Result<LoginHandle, LoginProblem> {
        self.login_in(self.own.view(), server, options).await
    }

    /// The same of a server that a view shows, which may be another than the owner's of that name.
    pub async fn login_in(
        &self,
        view: &View,
        server: &str,
        options: LoginOptions,
    ) -> Result<LoginHandle, LoginProblem> {
        let auth = self.auth()?;
        known(view, server)?;
        view.ready(server).await;
        let ServerSnapshot {
            name, mut state, ..
        } = known(view, server)?;
        if !matches!(&state, ConnectionState::NeedsAuth { detail, .. } if !detail.as_received().is_empty())
            && !matches!(state, ConnectionState::Connected(_))
        {
            if let Some(identity) = view.snapshot().identity(server) {
                auth.forget_server(&identity).await;
            }
            state = view.reconnect(server).await?;
        }
        let challenge = match &state {
            ConnectionState::NeedsAuth { detail, .. } => Some(detail),
            _ => None,
        };
        let identity = view.snapshot().identity(name.as_str());
        let identity = identity.ok_or_else(|| UnknownServer(server.to_owned()))?;
        auth.begin(&identity, challenge, options)
    }

    /// The logins that a call of `mcp__<server>__authenticate` began and that are not waited for.
    /// They end with this host, so a program that is about to end it waits for them.
    pub fn unattended_logins(&self) -> Vec<(ServerName, LoginHandle)> {
        self.auth.as_ref().map_or_else(Vec::new, |auth| auth.left())
    }

    /// The same for the account: how its login ends; nothing where none is under way.
    pub fn unattended_account_login(
        &self,
    ) -> Option<impl Future<Output = Result<(), String>> + use<>> {
        let mut login = self.reload.account.connectors()?.login_runner.under_way()?;
        Some(async move {
            let ended = login.outcome().await;
            ended.unwrap_or_else(|| Err("the login was given up".to_owned()))
        })
    }

    /// Gives up the logins of a server, of one account or of all, here and at the authorization
    /// server, and connects anew without them.
    pub async fn logout(
        &self,
        server: &str,
        account: Option<&str>,
    ) -> Result<Vec<RemovedLogin>, LoginProblem> {
        self.logout_in(self.own.view(), server, account).await
    }

    /// The same of a server that a view shows.
    pub async fn logout_in(
        &self,
        view: &View,
        server: &str,
        account: Option<&str>,
    ) -> Result<Vec<RemovedLogin>, LoginProblem> {
        let auth = self.auth()?;
        let ServerSnapshot { name, .. } = known(view, server)?;
        let out = auth.log_out(server, account).await?;
        if !out.is_empty() {
            event::tell(&self.core.events, || HostEvent::LoginChanged {
                server: name,
                login: LoginChange::LoggedOut,
            });
            view.orders().reconnect(server, Unless::Never).await;
        }
        Ok(out)
    }

    /// The organisation of federated logins, where the plan of this moment names one.
    pub fn organisation(&self) -> Option<Organisation> {
        self.auth.as_ref()?.organisation()
    }

    /// What keeps a server that takes cross-app access from being logged in to by itself, and
    /// what to do about it.
    pub fn login_advice(&self, server: &str) -> Option<String> {
        let identity = self.snapshot().identity(server)?;
        self.auth.as_ref()?.advice(&identity)
    }

    /// Every login that is kept, of servers that are configured and of others.
    pub async fn logins(&self) -> Result<Vec<StoredLogin>, LoginProblem> {
        self.auth()?.logins().await
    }

    fn auth(&self) -> Result<&Arc<Auth>, LoginProblem> {
        self.auth.as_ref().ok_or(LoginProblem::NoVault)
    }
}

fn known(view: &View, server: &str) -> Result<ServerSnapshot, UnknownServer> {
    let known = view.snapshot().server(server).cloned();
    known.ok_or_else(|| UnknownServer(server.to_owned()))
}
