//! What a server asks of us, whichever way it asks: read, put to hooks and the client handler,
//! answered.
//!
//! Owns which questions are put at all, and the shape of every answer. How a question comes in is
//! not decided here: as a request in the legacy era (`correlator/questions.rs`), in a round of
//! input or in a task in the modern one (`rounds.rs`, `task.rs`).
//!
//! Invariants: nothing is asked that was not declared; a form's answer fits the form, or is not
//! sent; only URLs that a user can judge reach a user.

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use toolway_types::{Untrusted, may_be_opened, text};
use toolway_wire::era::method;
use toolway_wire::view::elicit::{ElicitRequest, elicit_request};
use toolway_wire::{RpcError, error};
use url::Url;

use super::declared::DeclaredCapabilities;
use super::raw;
use crate::client_handler::{Elicitation, ElicitationAnswer, GivenAnswer, Root, fill_form, told};
use crate::json_schema::Problem;
use crate::session::ClientSide;

/// The most of an address, in characters.
const MAX_SHOWN: usize = 500;

/// A question that may be put.
#[derive(Debug)]
pub(super) enum ServerQuestion {
    /// To hooks, and then to a person.
    Elicit(Elicitation, AskedParty),
    /// To a user, but no user may be sent to this address.
    Unfit(Untrusted),
    /// To a model.
    Sample(Box<RawValue>),
    /// Which roots there are.
    Roots,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedParty {
    /// Hooks, then a person.
    Person,
    /// Hooks alone: no person answers such questions.
    HooksAlone,
}

impl AskedParty {
    /// `answered`: whether a person answers such questions.
    fn of(answered: bool) -> Self {
        if answered {
            Self::Person
        } else {
            Self::HooksAlone
        }
    }
}

/// Why a question is not put.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QuestionRefusal {
    /// We do not offer the method, or this kind of it.
    NotOffered {
        /// What was asked for, with its kind where the method alone would mislead.
        input: String,
        /// Whether the method as such is offered.
        method_known: bool,
    },
    /// It cannot be read.
    Malformed(String),
}

impl QuestionRefusal {
    /// The same for a server that asked with a request.
    pub(super) fn to_rpc(&self) -> RpcError {
        match self {
            Self::NotOffered {
                method_known: false,
                ..
            } => RpcError::new(error::METHOD_NOT_FOUND, "method not found"),
            Self::NotOffered { input, .. } => {
                RpcError::new(error::INVALID_PARAMS, format!("not offered: {input}"))
            }
            Self::Malformed(problem) => RpcError::new(error::INVALID_PARAMS, problem.clone()),
        }
    }
}

impl ServerQuestion {
    /// Reads a question, and refuses what was not declared.
    pub(super) fn read(
        name: &str,
        params: &RawValue,
        declared: &DeclaredCapabilities,
    ) -> Result<Self, QuestionRefusal> {
        match name {
            method::ROOTS_LIST if declared.roots() => Ok(Self::Roots),
            method::SAMPLING_CREATE if declared.offers.sampling.is_some() => {
                Ok(Self::Sample(params.to_owned()))
            }
            method::ELICITATION_CREATE => {
                let offers = &declared.offers;
                let not_offered = |method_known| QuestionRefusal::NotOffered {
                    input: describe(name, params),
                    method_known,
                };
                if !offers.form && !offers.url {
                    return Err(not_offered(false));
                }
                let request = elicit_request(params)
                    .map_err(|problem| QuestionRefusal::Malformed(problem.to_string()))?;
                let person = &declared.person;
                let (offered, answered) = match &request {
                    ElicitRequest::Form { .. } => (offers.form, person.form),
                    ElicitRequest::Url { .. } => (offers.url, person.url),
                };
                if offered {
                    Ok(elicitation(request, AskedParty::of(answered)))
                } else {
                    Err(not_offered(true))
                }
            }
            _ => Err(QuestionRefusal::NotOffered {
                input: name.to_owned(),
                method_known: false,
            }),
        }
    }

    /// Whether answering takes time; other questions are answered at once.
    pub(super) fn takes_time(&self, client_side: &ClientSide) -> bool {
        match self {
            Self::Elicit(..) | Self::Sample(_) => true,
            Self::Roots => asked_roots(client_side).is_some(),
            Self::Unfit(_) => false,
        }
    }

    /// Puts it, and gives the result to send.
    pub(super) async fn put(self, client_side: &ClientSide) -> Result<Box<RawValue>, RpcError> {
        let nobody = || RpcError::new(error::METHOD_NOT_FOUND, "method not found");
        let server = &client_side.server;
        match self {
            Self::Roots => match asked_roots(client_side) {
                Some(asked) => Ok(roots(&asked.await)),
                None => Ok(roots(&client_side.roots.borrow())),
            },
            Self::Unfit(url) => {
                client_side.remarks.make(&format!(
                    "server `{server}` wanted the page `{}` opened and heard a no: only `https` \
                     pages, and `http` pages of this machine, without a name or password in the \
                     address, are put before anybody",
                    text::cut(&text::spelled_out(url.as_received()), MAX_SHOWN)
                ));
                Ok(raw(r#"{"action":"decline"}"#))
            }
            Self::Sample(request) => {
                let client_handler = client_side.client_handler.as_ref().ok_or_else(nobody)?;
                client_handler.sample(server, request).await
            }
            Self::Elicit(request, asked) => {
                let schema = match &request {
                    Elicitation::Form { schema, .. } => Some(schema.clone()),
                    Elicitation::Url { .. } => None,
                };
                // Boxed: hooks take room that a request without a question need not have.
                let GivenAnswer { answer, by } =
                    Box::pin(elicit(request, asked, client_side)).await;
                let (result, problems) = elicited(answer, schema.as_deref());
                if !problems.is_empty() {
                    let by = by.map(|by| format!("{by} answered"));
                    let by = by.unwrap_or_else(|| "was answered".to_owned());
                    client_side.remarks.make(&format!(
                        "what {by} to server `{server}` does not fit its form, so the server heard \
                         that nobody answered: {}",
                        told(&problems)
                    ));
                }
                Ok(result)
            }
        }
    }
}

/// Asking for the roots, where that has to be done.
fn asked_roots(client_side: &ClientSide) -> Option<BoxFuture<'_, Vec<Root>>> {
    let client_handler = client_side.client_handler.as_ref()?;
    if client_side.has_fixed_roots {
        return None;
    }
    client_handler.roots(&client_side.server)
}

/// Hooks first; a person where they leave it to one; and hooks again, on that person's answer.
async fn elicit(request: Elicitation, asked: AskedParty, client_side: &ClientSide) -> GivenAnswer {
    let ClientSide {
        server,
        client_handler,
        hooks,
        remarks,
        ..
    } = client_side;
    if let Some(given) = hooks.answer(server, &request, remarks).await {
        return given;
    }
    match client_handler {
        Some(client_handler) if asked == AskedParty::Person => {
            let answer = client_handler.elicit(server, request.clone()).await;
            hooks.review(server, &request, answer, remarks).await
        }
        _ => GivenAnswer::by_nobody(ElicitationAnswer::Cancel),
    }
}

/// Puts a question of the host's own, in the same way as a server's.
pub(crate) async fn put_to_person(
    request: Elicitation,
    client_side: &ClientSide,
) -> ElicitationAnswer {
    let person = client_side.client_handler.as_ref();
    let asked = AskedParty::of(person.is_some_and(|person| person.offers().url));
    elicit(request, asked, client_side).await.answer
}

/// The method, with the kind of question where there is more than one.
fn describe(name: &str, params: &RawValue) -> String {
    match elicit_request(params) {
        Ok(ElicitRequest::Form { .. }) => format!("{name} (form)"),
        Ok(ElicitRequest::Url { .. }) => format!("{name} (url)"),
        Err(_) => name.to_owned(),
    }
}

fn elicitation(request: ElicitRequest, asked: AskedParty) -> ServerQuestion {
    match request {
        ElicitRequest::Form { message, schema } => {
            let message = Untrusted::new(message);
            ServerQuestion::Elicit(Elicitation::Form { message, schema }, asked)
        }
        ElicitRequest::Url { message, url, id } => match Url::parse(&url) {
            Ok(url) if may_be_opened(&url) => {
                let request = Elicitation::Url {
                    message: Untrusted::new(message),
                    url,
                    id,
                    rights: None,
                };
                ServerQuestion::Elicit(request, asked)
            }
            _ => ServerQuestion::Unfit(Untrusted::new(url)),
        },
    }
}

/// An answer as a result, and what is wrong with it where it does not fit its form. `schema` is
/// the form's; a URL has none.
fn elicited(answer: ElicitationAnswer, schema: Option<&RawValue>) -> (Box<RawValue>, Vec<Problem>) {
    let mut wrong = Vec::new();
    let result = match (answer, schema) {
        (ElicitationAnswer::Accept(content), Some(schema)) => {
            match fill_form(content.unwrap_or_default(), schema) {
                Ok(content) => json!({ "action": "accept", "content": content }),
                Err(problems) => {
                    wrong = problems;
                    json!({ "action": "cancel" })
                }
            }
        }
        (ElicitationAnswer::Accept(_), None) => json!({ "action": "accept" }),
        (ElicitationAnswer::Decline, _) => json!({ "action": "decline" }),
        (ElicitationAnswer::Cancel, _) => json!({ "action": "cancel" }),
    };
    let result = to_raw_value(&result).unwrap_or_else(|_| raw(r#"{"action":"cancel"}"#));
    (result, wrong)
}

fn roots(roots: &[Root]) -> Box<RawValue> {
    let roots: Vec<Value> = roots
        .iter()
        .map(|root| match &root.name {
            Some(name) => json!({ "uri": root.uri.as_str(), "name": name }),
            None => json!({ "uri": root.uri.as_str() }),
        })
        .collect();
    to_raw_value(&json!({ "roots": roots })).unwrap_or_else(|_| raw(r#"{"roots":[]}"#))
}

#[cfg(test)]
mod tests;
