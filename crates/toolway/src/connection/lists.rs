//! What a server offers, fetched when it connects and again when it says that it changed.
//!
//! Owns which lists are fetched, and what a list that cannot be read means: a warning, unless
//! the connection itself is in doubt.

use std::time::Duration;

use futures_util::future;
use serde_json::value::RawValue;
use toolway_transport::SendFailure;
use toolway_types::{ServerName, Untrusted};
use toolway_wire::era::method;
use toolway_wire::error::METHOD_NOT_FOUND;
use toolway_wire::headers::header_params;
use toolway_wire::view::{self, Page, Prompt, Resource, ResourceTemplate, Tool, ViewError};

use crate::catalog::ServerOffer;
use crate::error::{ConnectError, RequestError, wants_login};
use crate::session::list::{self, Listing};
use crate::session::{List, ListChanges, Session};

/// Everything one server offers, as far as it could be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    /// Tools.
    pub tools: Listing<Tool>,
    /// Resources.
    pub resources: Listing<Resource>,
    /// Resource templates.
    pub templates: Listing<ResourceTemplate>,
    /// Prompts.
    pub prompts: Listing<Prompt>,
    /// What is wrong with the server itself.
    pub conduct: Vec<String>,
}

impl Lists {
    /// Fetches whatever the server's capabilities offer, all lists at once.
    pub(crate) async fn fetch(session: &Session, timeout: Duration) -> Result<Self, ConnectError> {
        let (tools, (resources, templates), prompts) = future::try_join3(
            fetch_tools(session, timeout),
            fetch_resources(session, timeout),
            fetch_prompts(session, timeout),
        )
        .await?;
        Ok(Self {
            tools,
            resources,
            templates,
            prompts,
            conduct: Vec::new(),
        })
    }

    /// Fetches again what changed between two counts. A list that cannot be fetched stays as it
    /// was: an old list is better than none.
    pub(crate) async fn refresh(
        &mut self,
        session: &Session,
        before: ListChanges,
        now: ListChanges,
        timeout: Duration,
    ) {
        if before.tools != now.tools {
            keep_or_take(&mut self.tools, fetch_tools(session, timeout).await);
        }
        if before.resources != now.resources {
            match fetch_resources(session, timeout).await {
                Ok((resources, templates)) => {
                    keep_or_take(&mut self.resources, Ok(resources));
                    keep_or_take(&mut self.templates, Ok(templates));
                }
                Err(error) => keep_or_take(&mut self.resources, Err(error)),
            }
        }
        if before.prompts != now.prompts {
            keep_or_take(&mut self.prompts, fetch_prompts(session, timeout).await);
        }
    }

    /// Everything that was skipped.
    pub(crate) fn warnings(&self) -> Vec<String> {
        [
            &self.tools.warnings,
            &self.resources.warnings,
            &self.templates.warnings,
            &self.prompts.warnings,
            &self.conduct,
        ]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
    }

    /// The same for the catalogue.
    pub(crate) fn offer(&self, server: &ServerName) -> ServerOffer {
        let mut offer = ServerOffer::new(server.clone());
        offer.tools.clone_from(&self.tools.items);
        offer.resources.clone_from(&self.resources.items);
        offer.resource_templates.clone_from(&self.templates.items);
        offer.prompts.clone_from(&self.prompts.items);
        offer
    }
}

fn keep_or_take<T>(current: &mut Listing<T>, fresh: Result<Listing<T>, ConnectError>) {
    match fresh {
        Ok(fresh) if fresh.failed => {
            tracing::debug!(warnings = ?fresh.warnings, "kept the old list");
        }
        Ok(fresh) => *current = fresh,
        Err(error) => tracing::debug!(%error, "kept the old list"),
    }
}

async fn fetch_tools(session: &Session, timeout: Duration) -> Result<Listing<Tool>, ConnectError> {
    if !session.offers(List::Tools) {
        return Ok(Listing::default());
    }
    let mut listing = fetch(session, method::TOOLS_LIST, view::tools, timeout).await?;
    if session.mirrors_arguments() {
        leave_out_unmirrorable(&mut listing);
    }
    Ok(listing)
}

/// A tool whose schema asks for headers in a way that cannot be met must not be offered: its
/// calls could not be sent.
fn leave_out_unmirrorable(listing: &mut Listing<Tool>) {
    let warnings = &mut listing.warnings;
    listing
        .items
        .retain(|tool| match header_params(&tool.input_schema) {
            Ok(_) => true,
            Err(fault) => {
                let name = Untrusted::new(tool.name.as_str());
                warnings.push(format!("`tools/list`: `{name}` left out: {fault}"));
                false
            }
        });
}

async fn fetch_prompts(
    session: &Session,
    timeout: Duration,
) -> Result<Listing<Prompt>, ConnectError> {
    if !session.offers(List::Prompts) {
        return Ok(Listing::default());
    }
    fetch(session, method::PROMPTS_LIST, view::prompts, timeout).await
}

async fn fetch_resources(
    session: &Session,
    timeout: Duration,
) -> Result<(Listing<Resource>, Listing<ResourceTemplate>), ConnectError> {
    if !session.offers(List::Resources) {
        return Ok((Listing::default(), Listing::default()));
    }
    future::try_join(
        fetch(session, method::RESOURCES_LIST, view::resources, timeout),
        fetch(
            session,
            method::RESOURCE_TEMPLATES_LIST,
            view::resource_templates,
            timeout,
        ),
    )
    .await
}

async fn fetch<T>(
    session: &Session,
    name: &'static str,
    read: fn(&RawValue) -> Result<Page<T>, ViewError>,
    timeout: Duration,
) -> Result<Listing<T>, ConnectError> {
    match list::fetch(session, name, read, timeout).await {
        Ok(listing) => Ok(listing),
        Err(error) if is_fatal(&error) => Err(ConnectError::request(name, error)),
        // Many servers have resources and never heard of templates.
        Err(RequestError::Rpc(error))
            if error.code == METHOD_NOT_FOUND && name == method::RESOURCE_TEMPLATES_LIST =>
        {
            Ok(Listing::default())
        }
        Err(error) => Ok(Listing {
            warnings: vec![format!("`{name}` failed: {error}")],
            failed: true,
            ..Listing::default()
        }),
    }
}

/// Whether a list that failed this way means that the connection does not work.
fn is_fatal(error: &RequestError) -> bool {
    match error {
        RequestError::TimedOut
        | RequestError::Idle { .. }
        | RequestError::Closed(_)
        | RequestError::Send(SendFailure::TimedOut | SendFailure::Unreachable { .. }) => true,
        RequestError::Send(failure) if wants_login(failure) => true,
        RequestError::Rpc(_)
        | RequestError::Malformed(_)
        | RequestError::InputRefused { .. }
        | RequestError::TooManyRounds { .. }
        | RequestError::TaskCancelled
        | RequestError::Send(_) => false,
    }
}
