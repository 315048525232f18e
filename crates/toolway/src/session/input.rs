//! The input that a server wants before it goes on: all its questions at once, answered.
//!
//! Owns putting them in turn and gathering the answers, for rounds, tasks and pages alike. What one
//! question may be is `question.rs`'s.
//!
//! Invariant: nothing is asked unless everything that is asked can be answered.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};
use toolway_types::Untrusted;
use toolway_wire::view::elicit::InputRequest;

use super::Session;
use super::correlator::{Deadline, MAX_QUESTIONS};
use super::question::{QuestionRefusal, ServerQuestion};
use crate::error::RequestError;

/// Answers all of a server's questions, as one object by their keys.
pub(super) async fn answers(
    session: &Session,
    requests: &[InputRequest],
    deadline: Deadline,
) -> Result<Box<RawValue>, RequestError> {
    if requests.len() > MAX_QUESTIONS {
        let problem = format!("the server asks {} questions at once", requests.len());
        return Err(RequestError::Malformed(problem));
    }
    let declared = session.reception().declared_to(session.origin.as_ref());
    let client_side = session.client_side();
    // All are looked at before any is put, so that no answer is given in vain.
    let questions = requests
        .iter()
        .map(|request| {
            let InputRequest {
                key,
                method,
                params,
            } = request;
            let question = ServerQuestion::read(method, params, &declared).map_err(refused)?;
            Ok((key, method, question))
        })
        .collect::<Result<Vec<_>, RequestError>>()?;
    let mut responses: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    for (key, method, question) in questions {
        let answer = session
            .between(deadline, question.put(&client_side))
            .await?
            .map_err(|error| RequestError::InputRefused {
                input: Untrusted::new(format!("{method}: {}", error.message)),
            })?;
        responses.insert(key, answer);
    }
    to_raw_value(&responses).map_err(|error| RequestError::Malformed(error.to_string()))
}

fn refused(refusal: QuestionRefusal) -> RequestError {
    match refusal {
        QuestionRefusal::NotOffered { input, .. } => RequestError::InputRefused {
            input: Untrusted::new(input),
        },
        QuestionRefusal::Malformed(problem) => {
            RequestError::Malformed(format!("the server asks for unusable input: {problem}"))
        }
    }
}
