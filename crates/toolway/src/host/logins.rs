//! Logging in and out of the servers of a running host.
//!
//! Owns the way in for front-ends. What a login needs to know of a server is learnt by connecting
//! to it; the work is `auth/login.rs`'s.

use std::sync::Arc;

use toolway_types::{ConnectionState, ServerName};

use super::Host;
use crate::auth::{Auth, Kept, LoggedOut, LoginHandle, LoginOptions, LoginProblem, Organisation};
use crate::event::UnknownServer;
use crate::supervisor::{Request, Unless};

impl Host {
    /// Begins a login, or joins the one under way. A server that has not said what it wants is
    /// asked first. When the login is done the server connects anew by itself, here and in every
    /// running process.
    pub async fn login(
        &self,
        server: &str,
        options: LoginOptions,
    ) -> Result<LoginHandle, LoginProblem> {
        let auth = self.auth()?;
        let name = self.known(server)?;
        self.ready(server).await;
        let mut state = self.state(server)?;
        if !matches!(&state, ConnectionState::NeedsAuth { detail } if !detail.as_received().is_empty())
            && !matches!(state, ConnectionState::Connected(_))
        {
            state = self.reconnect(server).await?;
        }
        let challenge = match &state {
            ConnectionState::NeedsAuth { detail } => Some(detail),
            _ => None,
        };
        auth.begin(&name, challenge, options)
    }

    /// Gives up the logins of a server, of one account or of all, here and at the authorization
    /// server, and connects anew without them.
    pub async fn logout(
        &self,
        server: &str,
        account: Option<&str>,
    ) -> Result<Vec<LoggedOut>, LoginProblem> {
        let auth = self.auth()?;
        self.known(server)?;
        let out = auth.log_out(server, account).await?;
        if !out.is_empty() {
            let server = server.to_owned();
            self.reach
                .ask(|done| Request::Reconnect {
                    server,
                    unless: Unless::Never,
                    done,
                })
                .await;
        }
        Ok(out)
    }

    /// The organisation that vouches for the person, where the plan of this moment names one.
    pub fn organisation(&self) -> Option<Organisation> {
        self.auth.as_ref()?.organisation()
    }

    /// What keeps a server that takes cross-app access from being logged in to by itself, and
    /// what to do about it.
    pub fn login_advice(&self, server: &str) -> Option<String> {
        self.auth.as_ref()?.advice(server)
    }

    /// Every login that is kept, of servers that are configured and of others.
    pub async fn logins(&self) -> Result<Vec<Kept>, LoginProblem> {
        self.auth()?.logins().await
    }

    fn auth(&self) -> Result<&Arc<Auth>, LoginProblem> {
        self.auth.as_ref().ok_or(LoginProblem::NoVault)
    }

    fn known(&self, server: &str) -> Result<ServerName, UnknownServer> {
        let picture = self.snapshot();
        let known = picture.server(server).map(|server| server.name.clone());
        known.ok_or_else(|| UnknownServer(server.to_owned()))
    }

    fn state(&self, server: &str) -> Result<ConnectionState, UnknownServer> {
        let picture = self.snapshot();
        let known = picture.server(server).map(|server| server.state.clone());
        known.ok_or_else(|| UnknownServer(server.to_owned()))
    }
}
