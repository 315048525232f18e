//! Logging in and out of a server of a running host.
//!
//! Owns what a login is begun with (the server's address, settings and challenge), what the person
//! is invited to do, and keeping the outcome. One login for each server at a time: who asks while
//! one to the same account is under way gets the same invitation.
//! Does not own: the steps of a login (`toolway-auth`, `login.rs`). What a person is invited to is
//! `login/invitation.rs`, why there is no login `login/problem.rs`.

mod invitation;
mod problem;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use toolway_auth::assertion::ClientKey;
use toolway_auth::challenge;
use toolway_auth::jwt::{KeyError, SigningKey};
use toolway_auth::login::{
    AccountChoice, LoginContext, LoginMethod, LoginProgress, LoginRequest, LoginUi, obtain,
};
use toolway_auth::logins::{DEFAULT_ACCOUNT, Login, LoginGrant};
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::web::SlowListener;
use toolway_types::{Secret, ServerName, Untrusted};

pub(crate) use self::invitation::InvitationRelay;
use self::invitation::NoUser;
use super::Auth;
use crate::auth::access_token::LoginTarget;
use crate::event::{LoginChange, UnknownServer};
use crate::lock::lock;
use crate::server_source::definition::ServerIdentity;
use crate::tasks::{self, Task};

pub use self::invitation::Invitation;
pub use self::problem::{LoginProblem, NoFederatedLogin, NoFederatedLoginReason};

/// How to log in.
#[derive(Clone, Default)]
pub struct LoginOptions {
    /// How.
    pub way: LoginMethod,
    /// The person's word for the account; that of the server's entry without one, else `default`.
    pub account: Option<String>,
    /// Whether the page is to ask who logs in.
    pub whom: AccountChoice,
    /// What the login has to reach, beside what an earlier one reached.
    pub scopes: Vec<String>,
    /// A client id in place of the entry's.
    pub client_id: Option<String>,
    /// The secret of the configured client.
    pub client_secret: Option<Secret>,
    /// The private key of the configured client in PEM, in place of a secret. It is kept with the
    /// login, which is renewed by it.
    pub client_key: Option<Secret>,
    /// Who is in front of the screen. Without one nothing is opened: the invitation says where to
    /// go.
    pub person: Option<Arc<dyn LoginUi>>,
}

impl LoginOptions {
    fn account_at(&self, target: &LoginTarget) -> Option<String> {
        self.account
            .as_ref()
            .or(target.oauth.account.as_ref())
            .cloned()
    }
}

impl fmt::Debug for LoginOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoginOptions")
            .field("way", &self.way)
            .field("account", &self.account)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A login that came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// The server.
    pub server: ServerName,
    /// The person's word for the account.
    pub account: String,
    /// The authorization server.
    pub issuer: String,
    /// What was granted, as far as is known.
    pub scopes: Vec<String>,
    /// Until when the first token is good, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// Whether it renews itself.
    pub renews: bool,
}

/// How a login ended.
pub(super) type LoginResult = Result<LoggedIn, LoginProblem>;

/// A login under way. Dropping it does not end the login; the host's end does.
#[derive(Debug)]
pub struct LoginHandle {
    invited: watch::Receiver<Option<Invitation>>,
    outcome: Option<oneshot::Receiver<LoginResult>>,
}

impl LoginHandle {
    /// What the user is to do, as soon as it is known; `None` when the login ended before, or needs
    /// no user.
    pub async fn invitation(&mut self) -> Option<Invitation> {
        let invited = self.invited.wait_for(Option::is_some).await;
        invited.ok().and_then(|invited| invited.clone())
    }

    /// Where its end is told; `None` where another caller began it.
    pub(super) fn take_outcome(&mut self) -> Option<oneshot::Receiver<LoginResult>> {
        self.outcome.take()
    }

    /// How it ended. A login that another caller began is told to that caller alone.
    pub async fn outcome(self) -> Option<Result<LoggedIn, LoginProblem>> {
        let outcome = self.outcome?.await;
        Some(outcome.unwrap_or(Err(LoginProblem::Ended)))
    }
}

/// A login under way, as the host holds it.
#[derive(Debug)]
pub(super) struct RunningLogin {
    account: Option<String>,
    invited: watch::Receiver<Option<Invitation>>,
    task: Task<()>,
    /// Whether it is no longer wanted, and about to end.
    is_given_up: bool,
    /// Where its end is told, if its first caller does not wait for that.
    left: Option<oneshot::Receiver<LoginResult>>,
}

impl RunningLogin {
    fn is_under_way(&self) -> bool {
        !self.is_given_up && !self.task.is_finished()
    }
}

impl Auth {
    /// Begins a login, or joins the one under way. `challenge` is what the server said when it
    /// refused to connect; without one it is what it said to a request that needed more.
    pub(crate) fn begin(
        self: &Arc<Self>,
        server: &ServerIdentity,
        challenge: Option<&Untrusted>,
        options: LoginOptions,
    ) -> Result<LoginHandle, LoginProblem> {
        if self.store.is_none() {
            return Err(LoginProblem::NoVault);
        }
        let known = lock(&self.known).get(server).cloned();
        let known = known.ok_or_else(|| UnknownServer(server.to_string()))?;
        let Some(target) = known.login else {
            return Err(if known.is_remote {
                LoginProblem::Written(server.name.clone())
            } else {
                LoginProblem::NotRemote(server.name.clone())
            });
        };
        let mut running = lock(&self.running);
        let account = options.account_at(&target);
        // One to another account takes its place: the person changed their mind.
        if let Some(running) = running.get(server)
            && running.is_under_way()
            && running.account == account
        {
            return Ok(LoginHandle {
                invited: running.invited.clone(),
                outcome: None,
            });
        }
        let (invite, invited) = watch::channel(None);
        let (done, outcome) = oneshot::channel();
        let auth = Arc::clone(self);
        let short = lock(&self.short).remove(server);
        let challenge = challenge.map(|challenge| challenge.as_received().to_owned());
        let challenge = challenge.or(short);
        let mut former = running.remove(server);
        let work = async move {
            // It has the server's one window, until it is gone.
            if let Some(former) = &mut former {
                let _ = former.task.end_within(Duration::ZERO).await;
            }
            let relay = InvitationRelay {
                invite,
                person: options.person.clone(),
            };
            let outcome = auth
                .log_in(target, challenge.as_deref(), &options, &relay)
                .await;
            if let Ok(login) = &outcome {
                auth.tell(&login.server, LoginChange::LoggedIn);
            }
            // The receiver may be gone.
            let _ = done.send(outcome);
        };
        let task = tasks::spawn("login", work);
        let began = RunningLogin {
            account,
            invited: invited.clone(),
            task,
            is_given_up: false,
            left: None,
        };
        running.insert(server.clone(), began);
        Ok(LoginHandle {
            invited,
            outcome: Some(outcome),
        })
    }

    /// Leaves a login to any caller that waits for its end.
    pub(crate) fn leave(&self, server: &ServerIdentity, mut login: LoginHandle) {
        let mut running = lock(&self.running);
        if let Some(running) = running.get_mut(server)
            && running.invited.same_channel(&login.invited)
        {
            running.left = login.take_outcome();
        }
    }

    /// The logins that were left.
    pub(crate) fn left(&self) -> Vec<(ServerName, LoginHandle)> {
        let mut running = lock(&self.running);
        let left = running.iter_mut().filter_map(|(server, running)| {
            let login = LoginHandle {
                invited: running.invited.clone(),
                outcome: Some(running.left.take()?),
            };
            Some((server.name.clone(), login))
        });
        left.collect()
    }

    /// Ends a login that no caller wants any more.
    pub(super) fn give_up(&self, server: &ServerIdentity, login: &LoginHandle) {
        let mut running = lock(&self.running);
        if let Some(running) = running.get_mut(server)
            && running.invited.same_channel(&login.invited)
        {
            running.is_given_up = true;
            running.task.abort();
        }
    }

    /// Whether a login to a server is under way.
    pub(super) fn is_logging_in(&self, server: &ServerIdentity) -> bool {
        let running = lock(&self.running);
        let running = running.get(server);
        running.is_some_and(RunningLogin::is_under_way)
    }

    async fn log_in(
        &self,
        target: LoginTarget,
        challenge: Option<&str>,
        options: &LoginOptions,
        person: &dyn LoginUi,
    ) -> Result<LoggedIn, LoginProblem> {
        // It is large, and lies in a task that is small until then.
        let obtained = Box::pin(self.obtained(&target, challenge, options, Some(person)));
        // A person was there, so that there is a login or a problem.
        let login = obtained.await?.ok_or(LoginProblem::Ended)?;
        Ok(LoggedIn {
            server: target.server,
            renews: login.renews(),
            account: login.account,
            issuer: login.issuer,
            scopes: login.tokens.scopes,
            expires_at: login.tokens.expires_at,
        })
    }

    /// Gets a login and keeps it: a federated one where possible, else by the user. `None` where
    /// there is no user.
    pub(super) async fn obtained(
        &self,
        target: &LoginTarget,
        challenge: Option<&str>,
        options: &LoginOptions,
        person: Option<&dyn LoginUi>,
    ) -> Result<Option<Login>, LoginProblem> {
        let store = self.store.as_ref().ok_or(LoginProblem::NoVault)?;
        let spec = store.filled(target.oauth.clone()).await;
        let mut spec = spec.map_err(|why| LoginProblem::Secret {
            server: target.server.clone(),
            why: Box::new(why),
        })?;
        let account = options.account_at(target);
        let account = account.unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
        let server = target.server.as_str();
        let before = store
            .logins
            .find(server, &target.definition, Some(&account))
            .await?;
        if let Some(id) = &options.client_id {
            spec.client_id = Some(id.clone());
        }
        let bearer = challenge.and_then(challenge::bearer);
        let wider = self.wider(target, before.as_ref(), bearer.as_ref(), options)?;
        let wants_dpop = challenge.is_some_and(|text| {
            let challenges = challenge::parse(text);
            let has = |scheme: &str| challenges.iter().any(|it| it.scheme == scheme);
            has("dpop") && !has("bearer")
        });
        let given = options.client_secret.as_ref();
        let given = given.or(store.client_identities.secret(server));
        let mut secret = given.or(spec.client_secret.as_ref()).cloned();
        if secret.is_none()
            && target.takes_federated_login()
            && let Some(id) = &spec.client_id
        {
            secret = store.client_secret(target, id).await;
        }
        let key = options.client_key.as_ref().map(signing).transpose()?;
        let request = LoginRequest {
            server,
            definition: &target.definition,
            account: &account,
            url: &target.url,
            challenge: bearer.as_ref(),
            spec: &spec,
            scopes: wider.as_deref(),
            method: options.way,
            account_choice: options.whom,
            client_secret: secret.as_ref(),
            client_key: key.as_ref().or(store.client_identities.key(server)),
            document: self.document.as_ref(),
            known_issuer: before.as_ref().map(|login| login.issuer.as_str()),
            wants_dpop,
        };
        let tell = options.person.clone().map(|person| -> SlowListener {
            Arc::new(move |place| person.say(LoginProgress::Slow(place.to_owned())))
        });
        let web = store.web(target).await.telling(tell);
        let federated = store.federated_login(&web, target, &request, person).await;
        let vouched = federated.map_err(|why| target.no_federated_login(why))?;
        let login = match (vouched, person) {
            (Some(login), _) => login,
            (None, None) if options.way.grant().needs_user() => return Ok(None),
            (None, person) => {
                let context = LoginContext {
                    web: &web,
                    logins: &store.logins,
                    attempts: &self.attempts,
                    ui: person.unwrap_or(&NoUser),
                };
                Login {
                    client_key: options.client_key.clone(),
                    ..obtain(context, &request).await?
                }
            }
        };
        self.forget(target).await;
        store.logins.save(&login).await?;
        if login.how == LoginGrant::CrossApp
            && let (Some(id), Some(secret)) = (&spec.client_id, &options.client_secret)
        {
            store.keep_client_secret(target, id, secret).await?;
        }
        Ok(Some(login))
    }

    /// The scopes of a login that has to reach further than the one before (REL-26).
    fn wider(
        &self,
        target: &LoginTarget,
        before: Option<&Login>,
        bearer: Option<&challenge::BearerChallenge>,
        options: &LoginOptions,
    ) -> Result<Option<Vec<String>>, LoginProblem> {
        let requested = before.map(|login| login.requested.as_slice());
        let requested = requested.unwrap_or_default();
        if !options.scopes.is_empty() {
            // The user asked for it, so it does not count as an attempt.
            let mut scopes = requested.to_vec();
            for scope in &options.scopes {
                if !scopes.contains(scope) {
                    scopes.push(scope.clone());
                }
            }
            return Ok(Some(scopes));
        }
        let is_short = |bearer: &&challenge::BearerChallenge| {
            bearer.error == Some(challenge::BearerError::InsufficientScope)
        };
        let Some(bearer) = bearer.filter(is_short) else {
            return Ok(None);
        };
        if bearer.scopes.is_empty() {
            // Who never logged in may get them all the same; another login like the last may not.
            return match before {
                None => Ok(None),
                Some(_) => Err(LoginProblem::Spent {
                    server: target.server.clone(),
                    why: LoginAttemptError::Unnamed,
                }),
            };
        }
        let server = target.identity().to_key();
        let scopes = self.attempts.step_up(&server, requested, &bearer.scopes);
        scopes.map(Some).map_err(|why| LoginProblem::Spent {
            server: target.server.clone(),
            why,
        })
    }
}

fn signing(pem: &Secret) -> Result<Arc<ClientKey>, KeyError> {
    let key = SigningKey::from_pem(pem, None)?;
    Ok(Arc::new(ClientKey { key, id: None }))
}
