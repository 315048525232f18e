//! Why there is no login, and what may mend that.
//!
//! Owns the one mapping from what can go wrong with a login to message, hint and exit code. A fault
//! that stays the same however often one tries is never to be tried again.

use toolway::auth::LoginProblem;
use toolway_auth::authorize::{AuthorizationResponseError, AuthorizationStartError};
use toolway_auth::callback::CallbackError;
use toolway_auth::device::DeviceError;
use toolway_auth::login::{LoginFault, LoginMethod};
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::token::TokenError;
use toolway_types::ServerName;
use toolway_types::name::as_word;

use super::CLIENT_SECRET;
use crate::exit::Exit;
use crate::report::Report;

/// Who can do something about a fault that stays.
const OPERATOR: &str = "ask whoever runs it: another try would end the same way";

/// Why there is no login to this server.
pub(in crate::commands) fn report(
    server: &ServerName,
    problem: &LoginProblem,
    way: LoginMethod,
) -> Report {
    let word = as_word(server.as_str());
    let message = problem.to_string();
    match problem {
        LoginProblem::Unknown(_) => Report::configuration(message)
            .hint("see what is configured with `toolway list --no-connect`"),
        LoginProblem::NotRemote(_) | LoginProblem::NoVault => {
            Report::usage(message).hint(format!("see its entry with `toolway get {word}`"))
        }
        LoginProblem::Written(_) | LoginProblem::Secret { .. } => {
            Report::configuration(message).hint(format!("see its entry with `toolway get {word}`"))
        }
        LoginProblem::Key(_) => {
            Report::configuration(message).hint("name another file with `--key`")
        }
        LoginProblem::Spent {
            why: LoginAttemptError::Unnamed,
            ..
        } => Report::unnamed_scopes(server.as_str()),
        LoginProblem::Spent { .. } => Report::new(Exit::NeedsLogin, message)
            .hint("ask the server's operator which scopes it really needs"),
        LoginProblem::NoFederatedLogin(problem) if problem.lacks_identity() => {
            Report::new(Exit::NeedsLogin, message).hint("log in once with `toolway idp login`")
        }
        LoginProblem::NoFederatedLogin(_) => Report::new(Exit::NeedsLogin, message)
            .hint("see where you stand with `toolway idp status`"),
        LoginProblem::Failed(error) => {
            let again = Again {
                word: &word,
                way,
                is_configured: error.is_configured,
            };
            Report::new(Exit::NeedsLogin, message).hint(again.mended(&error.fault))
        }
        LoginProblem::NotKept(error) => Report {
            message,
            ..Report::from(error)
        },
        LoginProblem::Ended => Report::new(Exit::TimedOut, message)
            .hint(format!("start it again: `toolway login {word}`")),
    }
}

/// The command that was given.
struct Again<'a> {
    word: &'a str,
    way: LoginMethod,
    /// Whether the client is the user's own.
    is_configured: bool,
}

impl Again<'_> {
    fn command(&self) -> String {
        let way = match self.way {
            LoginMethod::Browser => "",
            LoginMethod::Paste => " --no-browser",
            LoginMethod::Device => " --device",
            LoginMethod::ClientCredentials => " --client-credentials",
        };
        format!("toolway login {}{way}", self.word)
    }

    fn start(&self) -> String {
        format!("start it again: `{}`", self.command())
    }

    /// What may mend a login that failed.
    fn mended(&self, fault: &LoginFault) -> String {
        let word = self.word;
        match fault {
            LoginFault::Answer(error) | LoginFault::Callback(CallbackError::Answer(error)) => {
                self.answered(error)
            }
            LoginFault::Callback(CallbackError::TimedOut) => format!(
                "{}; if the browser cannot come back here, add `--no-browser`, or `--device`",
                self.start()
            ),
            // The browser, or its way back to here, is what does not work.
            LoginFault::Callback(_) => {
                format!("try another way: `toolway login {word} --no-browser`, or `--device`")
            }
            LoginFault::NoEndpoint { .. } if self.way == LoginMethod::Device => {
                format!("log in with a browser: `toolway login {word}`, or `--no-browser`")
            }
            LoginFault::NoCredentials => {
                format!("name the client with `--client-id`, and its secret in `{CLIENT_SECRET}`")
            }
            LoginFault::Registration(_) => format!(
                "name a client of your own: `{} --client-id <id>`",
                self.command()
            ),
            LoginFault::Discovery(_)
            | LoginFault::Web(_)
            | LoginFault::NoEndpoint { .. }
            | LoginFault::Moved { .. } => format!("see its entry with `toolway get {word}`"),
            LoginFault::Keep(_) => format!(
                "check where logins are kept with `toolway doctor`, then start it again: `{}`",
                self.command()
            ),
            LoginFault::Attempt(AuthorizationStartError::NoPkce {
                is_announced: true, ..
            }) => "ask whoever runs it: no other way to log in is safe there".to_owned(),
            LoginFault::Attempt(AuthorizationStartError::NoPkce { .. }) => format!(
                "ask whoever runs it; if they say that it checks PKCE and only does not announce \
                 it, set `oauth.allowUnannouncedPkce` to `true` in the entry: `toolway get {word}`"
            ),
            LoginFault::Token(error) | LoginFault::Device(DeviceError::Token(error)) => {
                self.refused(error)
            }
            LoginFault::Device(DeviceError::Malformed(_)) => OPERATOR.to_owned(),
            LoginFault::Spent(_) => "finish that one, or give it up with Ctrl-C".to_owned(),
            LoginFault::Device(_) | LoginFault::Attempt(AuthorizationStartError::Random(_)) => {
                self.start()
            }
        }
    }

    /// The browser came back without a code.
    fn answered(&self, error: &AuthorizationResponseError) -> String {
        match error {
            AuthorizationResponseError::Refused { code, .. } => match code.as_received() {
                "invalid_scope" => self.other_scopes(),
                "server_error"
                | "temporarily_unavailable"
                | "login_required"
                | "interaction_required"
                // The next one registers anew.
                | "invalid_client"
                | "unauthorized_client" => self.start(),
                _ => OPERATOR.to_owned(),
            },
            AuthorizationResponseError::Declined { .. }
            | AuthorizationResponseError::State
            | AuthorizationResponseError::Repeated(_) => self.start(),
            AuthorizationResponseError::IssuerMissing { .. }
            | AuthorizationResponseError::IssuerMismatch { .. }
            | AuthorizationResponseError::NoCode { .. } => OPERATOR.to_owned(),
        }
    }

    /// The token endpoint gave nothing.
    fn refused(&self, error: &TokenError) -> String {
        let code = match error {
            TokenError::Refused { code, .. } => code.as_str(),
            TokenError::Lost | TokenError::Busy { .. } | TokenError::Failed { .. } => {
                return format!("try again in a while: `{}`", self.command());
            }
            TokenError::Web(_) => {
                return format!("see its entry with `toolway get {}`", self.word);
            }
            TokenError::Malformed(_)
            | TokenError::NotAsked(_)
            | TokenError::Assertion(_)
            | TokenError::Proof(_) => return OPERATOR.to_owned(),
        };
        match code {
            "invalid_grant" => self.start(),
            "invalid_scope" => self.other_scopes(),
            "invalid_client" | "unauthorized_client" | "http_401" if !self.is_configured => {
                format!(
                    "it does not take this program as a client: ask whoever runs it, or name a client \
                 of your own with `{} --client-id <id>`",
                    self.command()
                )
            }
            "invalid_client" | "unauthorized_client" | "http_401" => format!(
                "check the client: its id (`--client-id`, or `oauth.clientId` in the entry) and \
                 its secret (`{CLIENT_SECRET}`, or `oauth.clientSecret`)"
            ),
            _ => OPERATOR.to_owned(),
        }
    }

    fn other_scopes(&self) -> String {
        format!(
            "ask for what it offers: `{} --scopes <scopes>`",
            self.command()
        )
    }
}
