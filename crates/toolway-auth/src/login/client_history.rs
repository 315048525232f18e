//! What the outcome of a login says about the client registration it used.
//!
//! Owns when a registration is used again and when the next login makes another one. A server that
//! forgot a client shows the user a page and us nothing, so a registration is suspect from before
//! the user is sent off until an answer arrives: that outlasts a Ctrl-C or a crash.
//! Does not own: keeping registrations (`logins.rs`), or choosing one (`registration.rs`).

use crate::authorize::AuthorizationResponseError;
use crate::callback::CallbackError;
use crate::device::DeviceError;
use crate::registration::{ClientHistory, ClientSource, RegisteredClient};
use crate::token::{OauthClient, TokenError, Tokens};

use super::{LoginFault, LoginRun};

/// Where the client of a login is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientOrigin {
    /// It was there before.
    AtHand,
    /// It was registered for this login: no server forgets that fast.
    Registered,
}

/// The client of a login.
pub(super) struct LoginClient {
    pub(super) registered: RegisteredClient,
    origin: ClientOrigin,
}

impl LoginClient {
    pub(super) fn of(registered: RegisteredClient, origin: ClientOrigin) -> Self {
        Self { registered, origin }
    }

    fn may_be_forgotten(&self) -> bool {
        self.registered.source == ClientSource::Dynamic && self.origin == ClientOrigin::AtHand
    }
}

impl LoginRun<'_> {
    /// The user is about to log in with this client.
    pub(super) async fn set_out(
        &self,
        chosen: &LoginClient,
        issuer: &str,
    ) -> Result<(), LoginFault> {
        if !chosen.may_be_forgotten() {
            return Ok(());
        }
        let history = ClientHistory {
            is_unanswered: true,
            ..chosen.registered.history
        };
        let suspect = RegisteredClient {
            history,
            ..chosen.registered.clone()
        };
        self.note(&suspect, issuer).await
    }

    /// A login ended, well or badly; what that says about its client is kept. `client` is how it
    /// asked.
    pub(super) async fn concluded(
        &self,
        chosen: LoginClient,
        client: &OauthClient,
        result: Result<Tokens, LoginFault>,
        issuer: &str,
    ) -> Result<(RegisteredClient, Tokens), LoginFault> {
        let may_be_forgotten = chosen.may_be_forgotten();
        let mut registered = chosen.registered;
        registered.learn(client);
        let fault = match result {
            Ok(tokens) => {
                registered.history = ClientHistory::default();
                self.note(&registered, issuer).await?;
                return Ok((registered, tokens));
            }
            Err(fault) => fault,
        };
        match fault.about_client() {
            // It stays suspect, if it was before.
            ClientFailure::Unanswered => {}
            ClientFailure::Unknown if may_be_forgotten => self.forget(&registered, issuer).await?,
            // A server that let the user in knows the client. Where that never got a token, the way
            // in which it asks is at fault, and another one would ask in the same way.
            ClientFailure::Refused if may_be_forgotten && !registered.history.is_untried => {
                self.forget(&registered, issuer).await?;
            }
            ClientFailure::Unknown | ClientFailure::Refused | ClientFailure::SomethingElse => {
                self.note(&registered, issuer).await?;
            }
        }
        Err(fault)
    }

    /// Writes down what is known of a registration, unless another took its place.
    async fn note(&self, registered: &RegisteredClient, issuer: &str) -> Result<(), LoginFault> {
        let logins = self.context.logins;
        let kept = logins.client(issuer).await?;
        let is_news =
            kept.is_some_and(|kept| kept.client_id == registered.client_id && kept != *registered);
        if registered.source == ClientSource::Dynamic && is_news {
            logins.save_client(issuer, registered).await?;
        }
        Ok(())
    }

    async fn forget(&self, registered: &RegisteredClient, issuer: &str) -> Result<(), LoginFault> {
        let id = &registered.client_id;
        Ok(self.context.logins.remove_client(issuer, id).await?)
    }
}

/// What a failure says about the client.
enum ClientFailure {
    /// The server does not know it.
    Unknown,
    /// The server let the user in, and then did not recognise it.
    Refused,
    /// No answer arrived.
    Unanswered,
    SomethingElse,
}

impl LoginFault {
    fn about_client(&self) -> ClientFailure {
        let is_about = |code: &str| matches!(code, "invalid_client" | "unauthorized_client");
        let refused = |error: &TokenError| match error {
            TokenError::Refused { code, .. } => is_about(code),
            _ => false,
        };
        match self {
            LoginFault::Callback(CallbackError::TimedOut) => ClientFailure::Unanswered,
            LoginFault::Token(error) if refused(error) => ClientFailure::Refused,
            LoginFault::Device(DeviceError::Token(error)) if refused(error) => {
                ClientFailure::Unknown
            }
            LoginFault::Answer(AuthorizationResponseError::Refused { code, .. })
            | LoginFault::Callback(CallbackError::Answer(AuthorizationResponseError::Refused {
                code,
                ..
            })) if is_about(code.as_received()) => ClientFailure::Unknown,
            _ => ClientFailure::SomethingElse,
        }
    }
}
