//! Logins that need no login page of the server: by the organisation's word, or by that of another
//! party whom the entry names.
//!
//! Owns which servers that is for, trying it first, and what follows where it fails: nothing where
//! policy says so, and the ordinary login only where the server's authorization server does not
//! take assertions at all (SEC-45).
//! Does not own: the steps (`toolway-auth`), or keeping the outcome (`login.rs`).

use std::sync::Arc;

use toolway_auth::federated;
use toolway_auth::idp::{IdpError, IdpLoginMethod};
use toolway_auth::login::{LoginRequest, LoginUi};
use toolway_auth::logins::{Login, LoginGrant};
use toolway_auth::voucher::Voucher;
use toolway_auth::voucher::xaa::CrossAppRule;
use toolway_auth::web::WebClient;
use toolway_types::CrossApp;
use tracing::{debug, info};

use crate::auth::Auth;
use crate::auth::access_token::LoginTarget;
use crate::auth::login::{LoginOptions, LoginProblem, NoFederatedLogin, NoFederatedLoginReason};
use crate::auth::organisation::OrganisationError;
use crate::auth::store::LoginStore;
use crate::lock::lock;
use crate::server_source::definition::ServerIdentity;

/// What kept a server from being logged in to, for messages.
#[derive(Debug, Clone)]
pub(super) struct LoginObstacle {
    advice: String,
    pub(super) lacks_identity: bool,
}

impl LoginTarget {
    /// Whether the organisation's word counts there.
    pub(super) fn takes_federated_login(&self) -> bool {
        self.oauth.xaa != CrossApp::Off
    }

    /// Whether a login that came about in this way may be used.
    pub(super) fn allows(&self, how: LoginGrant) -> bool {
        match self.oauth.xaa {
            CrossApp::Off => how != LoginGrant::CrossApp,
            CrossApp::Preferred => true,
            CrossApp::Only { .. } => how == LoginGrant::CrossApp,
        }
    }

    pub(super) fn rule(&self) -> CrossAppRule {
        match self.oauth.xaa {
            CrossApp::Only { .. } => CrossAppRule::Only,
            CrossApp::Off | CrossApp::Preferred => CrossAppRule::Preferred,
        }
    }

    pub(super) fn no_federated_login(&self, fault: NoFederatedLoginReason) -> LoginProblem {
        LoginProblem::NoFederatedLogin(Box::new(NoFederatedLogin {
            server: self.server.clone(),
            fault,
            policy: match &self.oauth.xaa {
                CrossApp::Only { policy } => Some(policy.clone()),
                CrossApp::Off | CrossApp::Preferred => None,
            },
        }))
    }
}

impl LoginStore {
    /// The organisation's word.
    pub(super) async fn organisation_voucher(
        &self,
        target: &LoginTarget,
    ) -> Result<Voucher, NoFederatedLoginReason> {
        let organisation = self.organisation.get();
        let organisation = organisation.ok_or(NoFederatedLoginReason::NoProvider)?;
        Ok(Voucher::Organisation {
            provider: organisation.provider().await?.clone(),
            rule: target.rule(),
        })
    }

    /// Logs in by the word of whoever vouches for the client, else by the organisation's, with the
    /// user at the page of its provider where there is one; `None` where another way is left.
    pub(super) async fn federated_login(
        &self,
        web: &WebClient,
        target: &LoginTarget,
        request: &LoginRequest<'_>,
        person: Option<&dyn LoginUi>,
    ) -> Result<Option<Login>, NoFederatedLoginReason> {
        let way = request.method;
        let voucher = match self.voucher(target) {
            Some(voucher) => voucher,
            None if !target.takes_federated_login() => return Ok(None),
            None if way.grant().needs_user() => self.organisation_voucher(target).await?,
            None if target.rule() == CrossAppRule::Only => {
                return Err(NoFederatedLoginReason::OtherWay);
            }
            None => return Ok(None),
        };
        let method = person.map_or(IdpLoginMethod::StoredOnly, |person| {
            IdpLoginMethod::of(way, person)
        });
        let entered = federated::log_in(web, &self.logins, request, &voucher, method).await;
        entered.map_err(NoFederatedLoginReason::Login)
    }
}

impl Auth {
    /// Whether a federated login can be used at a server, so that no user is needed.
    pub(super) fn takes_federated_login(&self, target: &LoginTarget) -> bool {
        let store = self.store.as_ref();
        let voucher = store.and_then(|store| store.voucher(target));
        target.takes_federated_login() || voucher.is_some()
    }

    /// A server wants a login, and a federated one may do. No user is asked.
    pub(super) async fn enter(
        self: &Arc<Self>,
        target: &LoginTarget,
        challenge: Option<&str>,
    ) -> Option<Login> {
        let options = self.again(target).await;
        // It is large, and lies in every request.
        let entered = Box::pin(self.obtained(target, challenge, &options, None)).await;
        match entered {
            // Without one the ordinary login is what is left.
            Ok(login) => {
                if login.is_some() {
                    info!(server = %target.server, "logged in by somebody else's word");
                }
                lock(&self.troubles).remove(&target.identity());
                login
            }
            Err(problem) => {
                debug!(server = %target.server, %problem, "not logged in by somebody else's word");
                self.trouble(target, &problem);
                None
            }
        }
    }

    /// How a login is made once more without a user: a client that logged in for itself does so
    /// again in the same way.
    async fn again(&self, target: &LoginTarget) -> LoginOptions {
        let login = self.kept_login(target).await;
        match login.and_then(|login| Some((login.how.without_user()?, login))) {
            Some((way, login)) => LoginOptions {
                way,
                account: Some(login.account),
                client_id: Some(login.client.client_id),
                client_secret: login.client.client_secret,
                client_key: login.client_key,
                ..LoginOptions::default()
            },
            None => LoginOptions {
                account: target.oauth.account.clone(),
                ..LoginOptions::default()
            },
        }
    }

    /// Whether a login can get more scopes without a user: by a federated login, or because the
    /// client logged in for itself.
    pub(super) async fn widens_itself(&self, target: &LoginTarget) -> bool {
        if self.takes_federated_login(target) {
            return true;
        }
        let login = self.kept_login(target).await;
        login.is_some_and(|login| login.how.without_user().is_some())
    }

    fn trouble(&self, target: &LoginTarget, problem: &LoginProblem) {
        let lacks_identity =
            matches!(problem, LoginProblem::NoFederatedLogin(problem) if problem.lacks_identity());
        let trouble = LoginObstacle {
            advice: problem.to_string(),
            lacks_identity,
        };
        lock(&self.troubles).insert(target.identity(), trouble);
    }

    /// What keeps a server from being logged in to by itself.
    pub(crate) fn advice(&self, server: &ServerIdentity) -> Option<String> {
        let troubles = lock(&self.troubles);
        Some(troubles.get(server)?.advice.clone())
    }

    /// Whether a server that wanted a login a moment ago may get one without a user: by who vouches
    /// for the client, or by a login at the organisation.
    pub(super) async fn may_enter(&self, target: &LoginTarget) -> bool {
        let store = self.store.as_ref();
        // Who vouches for a client can always be asked.
        if store.is_some_and(|store| store.voucher(target).is_some()) {
            return true;
        }
        if !target.takes_federated_login() {
            return false;
        }
        let fault = match store.and_then(|store| store.organisation.get()) {
            Some(organisation) if organisation.knows_somebody().await => return true,
            Some(organisation) => {
                let issuer = organisation.settings().issuer.clone();
                OrganisationError::from(IdpError::NeedsLogin { issuer }).into()
            }
            None => NoFederatedLoginReason::NoProvider,
        };
        self.trouble(target, &target.no_federated_login(fault));
        false
    }
}
