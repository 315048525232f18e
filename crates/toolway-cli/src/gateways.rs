//! The gateways of this user that run, as the command line asks them.
//!
//! Owns finding and asking all of them at once: one that does not answer is named and holds up none
//! of the others. The socket and its folder are `toolway_gateway::owner_socket`'s.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use toolway_gateway::owner_socket::{OwnerCallError, OwnerClient, SocketFolder, SocketFolderError};
use toolway_rows::{GatewayStatus, GivenAnswer, QuestionListing};

use crate::context::Context;
use crate::exit::Exit;
use crate::report::Report;

/// How long a gateway may take to answer: it only has to look.
const LIMIT: Duration = Duration::from_secs(2);

/// A gateway, and what it answered.
pub(crate) struct AskedGateway<Answer> {
    /// Its process, where the system says so.
    pub(crate) process: Option<i32>,
    /// What it answered, with the way to ask more.
    pub(crate) answered: Result<(Answer, OwnerClient), OwnerCallError>,
}

impl<Answer> AskedGateway<Answer> {
    /// What to call it.
    pub(crate) fn shown(&self) -> String {
        match self.process {
            Some(process) => format!("the gateway of process {process}"),
            None => "a gateway".to_owned(),
        }
    }
}

/// What every gateway is doing.
pub(crate) async fn statuses(
    context: &Context,
) -> Result<Vec<AskedGateway<GatewayStatus>>, Report> {
    ask_all(context, "toolway/status", &json!({})).await
}

/// The questions of every gateway.
pub(crate) async fn questions(
    context: &Context,
) -> Result<Vec<AskedGateway<QuestionListing>>, Report> {
    ask_all(context, "toolway/questions", &json!({})).await
}

/// Gives every gateway the same answer, for a question of which nobody knows whose it is.
pub(crate) async fn answer_all(
    context: &Context,
    given: &GivenAnswer,
) -> Result<Vec<AskedGateway<GivenAnswer>>, Report> {
    ask_all(context, "toolway/answer", given).await
}

/// Answers a question of one gateway.
pub(crate) async fn answer(
    gateway: &mut OwnerClient,
    given: &GivenAnswer,
) -> Result<GivenAnswer, OwnerCallError> {
    gateway.ask("toolway/answer", given, LIMIT).await
}

/// The questions of one gateway.
pub(crate) async fn questions_of(
    gateway: &mut OwnerClient,
) -> Result<QuestionListing, OwnerCallError> {
    gateway.ask("toolway/questions", &json!({}), LIMIT).await
}

async fn ask_all<Answer: DeserializeOwned>(
    context: &Context,
    method: &str,
    params: &impl Serialize,
) -> Result<Vec<AskedGateway<Answer>>, Report> {
    let Some(folder) = SocketFolder::open_if_there(&context.setup.files().gateways())? else {
        return Ok(Vec::new());
    };
    let found = folder.gateways().await;
    let asked = found.into_iter().map(async |found| {
        let mut gateway = match found.reached {
            Ok(gateway) => gateway,
            Err(error) => {
                return AskedGateway {
                    process: None,
                    answered: Err(error),
                };
            }
        };
        let process = gateway.process();
        let answered = gateway.ask(method, params, LIMIT).await;
        AskedGateway {
            process,
            answered: answered.map(|answer| (answer, gateway)),
        }
    });
    let mut asked = join_all(asked).await;
    // One that ended this very moment is none that does not answer.
    asked.retain(|gateway| !matches!(gateway.answered, Err(OwnerCallError::Gone)));
    Ok(asked)
}

/// Says what does not answer, and gives the rest.
pub(crate) fn answering<Answer>(
    context: &Context,
    asked: Vec<AskedGateway<Answer>>,
) -> Vec<(Answer, OwnerClient)> {
    let mut answering = Vec::new();
    for gateway in asked {
        let shown = gateway.shown();
        match gateway.answered {
            Ok(answered) => answering.push(answered),
            Err(error) => context.warn(format!("{shown} does not answer: {error}")),
        }
    }
    answering
}

/// Says that there is none.
pub(crate) fn say_none(context: &Context) {
    context.say("no gateway is running");
    context.hint("start one with `toolway serve --http 127.0.0.1:0`, or let a client start it: `toolway connect <client>`");
}

impl From<SocketFolderError> for Report {
    fn from(error: SocketFolderError) -> Self {
        let hint = match &error {
            SocketFolderError::Folder { path, .. } => {
                format!(
                    "look at what lies there and move it away: `ls -ld {}`",
                    path.display()
                )
            }
            SocketFolderError::TooLong { .. } => {
                "set `TOOLWAY_HOME` to a directory with a shorter path".to_owned()
            }
            SocketFolderError::Socket { path, source } => {
                crate::report::unwritable(path, source.kind())
            }
        };
        Report::configuration(error.to_string()).hint(hint)
    }
}

impl From<OwnerCallError> for Report {
    fn from(error: OwnerCallError) -> Self {
        let exit = match &error {
            OwnerCallError::Silent { .. } => Exit::TimedOut,
            OwnerCallError::Refused { .. } => Exit::Usage,
            _ => Exit::Connection,
        };
        let message = match &error {
            OwnerCallError::Refused { message, .. } => message.clone(),
            other => format!("the gateway does not answer: {other}"),
        };
        Report::new(exit, message).hint("see what runs with `toolway status`")
    }
}
