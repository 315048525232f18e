//! Why there is no login, and what may mend that.
//!
//! Owns the one mapping from what can go wrong with a login to message, hint and exit code. Which
//! remedy a fault has is the library's word.

use toolway::auth::LoginProblem;
use toolway_auth::login::{LoginMethod, LoginRemedy};
use toolway_auth::scopes::LoginAttemptError;
use toolway_types::ServerName;
use toolway_types::name::as_word;

use super::CLIENT_SECRET;
use crate::exit::Exit;
use crate::report::Report;

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
            let again = Again { word: &word, way };
            Report::new(Exit::NeedsLogin, message).hint(again.mended(error.remedy()))
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
}

impl Again<'_> {
    fn command(&self) -> String {
        format!("toolway login {}{}", self.word, self.way.flag())
    }

    fn start(&self) -> String {
        format!("start it again: `{}`", self.command())
    }

    /// What may mend a login that failed.
    fn mended(&self, remedy: LoginRemedy) -> String {
        let (word, command) = (self.word, self.command());
        match remedy {
            LoginRemedy::Again => self.start(),
            LoginRemedy::AgainWithoutReturn => format!(
                "{}; if the browser cannot come back here, add `--no-browser`, or `--device`",
                self.start()
            ),
            LoginRemedy::WithoutReturn => {
                format!("try another way: `toolway login {word} --no-browser`, or `--device`")
            }
            LoginRemedy::Browser => {
                format!("log in with a browser: `toolway login {word}`, or `--no-browser`")
            }
            LoginRemedy::Later => format!("try again in a while: `{command}`"),
            LoginRemedy::EndOther => "finish that one, or give it up with Ctrl-C".to_owned(),
            LoginRemedy::OwnClient => {
                format!("name a client of your own: `{command} --client-id <id>`")
            }
            LoginRemedy::OwnClientOrOperator => format!(
                "it does not take this program as a client: ask whoever runs it, or name a client \
                 of your own with `{command} --client-id <id>`"
            ),
            LoginRemedy::Credentials => {
                format!("name the client with `--client-id`, and its secret in `{CLIENT_SECRET}`")
            }
            LoginRemedy::CheckClient => format!(
                "check the client: its id (`--client-id`, or `oauth.clientId` in the entry) and \
                 its secret (`{CLIENT_SECRET}`, or `oauth.clientSecret`)"
            ),
            LoginRemedy::OtherScopes => {
                format!("ask for what it offers: `{command} --scopes <scopes>`")
            }
            LoginRemedy::Entry => format!("see its entry with `toolway get {word}`"),
            LoginRemedy::Storage => format!(
                "check where logins are kept with `toolway doctor`, then start it again: `{command}`"
            ),
            LoginRemedy::Operator => {
                "ask whoever runs it: another try would end the same way".to_owned()
            }
            LoginRemedy::NoSafeWay => {
                "ask whoever runs it: no other way to log in is safe there".to_owned()
            }
            LoginRemedy::UnannouncedPkce => format!(
                "ask whoever runs it; if they say that it checks PKCE and only does not announce \
                 it, set `oauth.allowUnannouncedPkce` to `true` in the entry: `toolway get {word}`"
            ),
        }
    }
}
