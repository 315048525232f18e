//! A legacy request that is not answered before a person has visited a page (error −32042).
//!
//! Owns showing the page, waiting until the server or the person says that it is dealt with, and
//! sending the request again. Whether a page may be shown at all is decided where every question is
//! (`question.rs`); the modern era asks in rounds instead (`rounds.rs`).

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolway_wire::RpcError;
use toolway_wire::era::method;
use toolway_wire::error::URL_ELICITATION_REQUIRED;
use toolway_wire::view::elicit::{ElicitRequest, InputRequest, elicit_request};

use crate::call::ProgressSink;
use crate::error::{RequestError, RequestResult};
use crate::session::correlator::Deadline;
use crate::session::{Session, input, legacy, refine};

/// How often one request may send a person somewhere.
const MAX_PAGE_VISITS: usize = 3;

/// How long the server's word that a page is dealt with is waited for. It need not give it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Sends a legacy request, and again after each visit of a page.
pub(super) async fn drive(
    session: &Session,
    name: &str,
    params: &RawValue,
    deadline: Deadline,
    progress: Option<ProgressSink>,
) -> RequestResult {
    for _ in 0..MAX_PAGE_VISITS {
        let sent = legacy::request(session, name, params, deadline, progress.clone());
        let outcome = sent.await.map_err(refine);
        let pages = match &outcome {
            Err(RequestError::Rpc(error)) if error.code == URL_ELICITATION_REQUIRED => pages(error),
            _ => return outcome,
        };
        // Boxed: a request without a page must not carry the room for one along.
        if pages.is_empty() || !Box::pin(run(session, &pages, deadline)).await? {
            if !pages.is_empty() {
                session.client_side().remarks.make(&format!(
                    "`{name}` was not sent again, because nobody agreed to visit the page that the \
                     server wants visited first"
                ));
            }
            return outcome;
        }
    }
    let last = legacy::request(session, name, params, deadline, progress);
    let outcome = Box::pin(last).await.map_err(refine);
    if let Err(RequestError::Rpc(error)) = &outcome
        && error.code == URL_ELICITATION_REQUIRED
    {
        session.client_side().remarks.make(&format!(
            "the server wants a page visited again after {MAX_PAGE_VISITS} visits, which are the most \
             for one request"
        ));
    }
    outcome
}

/// The pages that an error names; none when it cannot be read.
fn pages(error: &RpcError) -> Vec<InputRequest> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<Box<RawValue>>,
    }
    let data = error.data.as_ref();
    let data = data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let elicitations = data.map_or_else(Vec::new, |data| data.elicitations);
    if !elicitations.iter().all(|elicitation| is_page(elicitation)) {
        return Vec::new();
    }
    let named = |(place, params): (usize, Box<RawValue>)| InputRequest {
        key: place.to_string(),
        method: method::ELICITATION_CREATE.to_owned(),
        params,
    };
    elicitations.into_iter().enumerate().map(named).collect()
}

/// A form's answer would have nowhere to go.
fn is_page(elicitation: &RawValue) -> bool {
    matches!(elicit_request(elicitation), Ok(ElicitRequest::Url { .. }))
}

/// Shows the pages. True when the person agreed to all of them and the request may be sent again.
async fn run(
    session: &Session,
    pages: &[InputRequest],
    deadline: Deadline,
) -> Result<bool, RequestError> {
    #[derive(Deserialize)]
    struct Given {
        action: String,
    }
    // From before the user is asked: a page may be dealt with before their yes is here.
    let notices = PageNotices::about(session, pages);
    let answers = input::answers(session, pages, deadline).await?;
    let answers: HashMap<String, Given> = serde_json::from_str(answers.get())
        .map_err(|error| RequestError::Malformed(error.to_string()))?;
    if answers.values().any(|given| given.action != "accept") {
        return Ok(false);
    }
    let client_side = session.client_side();
    let said = async {
        match &client_side.client_handler {
            Some(person) => person.visited(&client_side.server).await,
            None => std::future::pending().await,
        }
    };
    let either = async {
        tokio::select! {
            () = notices.given() => {}
            () = said => {}
        }
    };
    let given = tokio::time::timeout(PATIENCE, either);
    deadline.unless_over(given).await?.ok();
    Ok(true)
}

/// The server's word about pages.
struct PageNotices<'a> {
    session: &'a Session,
    awaited: Vec<String>,
}

impl<'a> PageNotices<'a> {
    fn about(session: &'a Session, pages: &[InputRequest]) -> Self {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "elicitationId")]
            id: String,
        }
        let named = |page: &InputRequest| serde_json::from_str::<Named>(page.params.get()).ok();
        let awaited: Vec<String> = pages.iter().filter_map(named).map(|it| it.id).collect();
        for id in &awaited {
            session.correlator().follow(id);
        }
        Self { session, awaited }
    }

    async fn given(&self) {
        if self.awaited.is_empty() {
            // It cannot be given; the whole time is for the person.
            std::future::pending::<()>().await;
        }
        for id in &self.awaited {
            self.session.correlator().follow(id).notified().await;
        }
    }
}

impl Drop for PageNotices<'_> {
    fn drop(&mut self) {
        for id in &self.awaited {
            self.session.correlator().unfollow(id);
        }
    }
}
