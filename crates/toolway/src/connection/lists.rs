//! What a server offers, fetched when it connects and again when it says that it changed.
//!
//! Owns which lists are fetched, and what a list that cannot be read means: a warning, unless
//! the connection itself is in doubt.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future;
use serde_json::value::RawValue;
use toolway_transport::SendFailure;
use toolway_types::{Pool, Untrusted};
use toolway_wire::era::method;
use toolway_wire::error::METHOD_NOT_FOUND;
use toolway_wire::headers::header_params;
use toolway_wire::view::{self, ListView, Prompt, Resource, ResourceTemplate, Tool};

use crate::error::{ConnectError, RequestError, wants_login};
use crate::listing::{List, Listing, Lists};
use crate::session::{Session, list};

impl Lists {
    /// Fetches whatever the server's capabilities offer, all lists at once.
    pub(crate) async fn fetch(
        session: &Session,
        timeout: Duration,
        all_lists: &Pool,
    ) -> Result<Self, ConnectError> {
        let source = Source {
            session,
            timeout,
            all_lists,
        };
        let (tools, (resources, templates), prompts) = future::try_join3(
            source.tools(),
            source.resources_and_templates(),
            source.prompts(),
        )
        .await?;
        Ok(Self {
            tools,
            resources,
            templates,
            prompts,
            ..Self::default()
        })
    }

    /// Takes a list that was fetched again. One that could not be fetched stays as it was: an old
    /// list is better than none.
    pub(super) fn take(&mut self, fetched: Fetched) -> Taken {
        let (list, taken) = match fetched {
            Fetched::Tools(fresh) => (List::Tools, keep_or_take(&mut self.tools, fresh)),
            Fetched::Prompts(fresh) => (List::Prompts, keep_or_take(&mut self.prompts, fresh)),
            Fetched::Resources(Err(error)) => (
                List::Resources,
                keep_or_take(&mut self.resources, Err(error)),
            ),
            Fetched::Resources(Ok((resources, templates))) => {
                let resources = keep_or_take(&mut self.resources, Ok(resources));
                let templates = keep_or_take(&mut self.templates, Ok(templates));
                (List::Resources, resources.and(templates))
            }
        };
        let stale = taken.failure.as_ref().map(|why| {
            let what = list.word();
            format!("its {what} could not be fetched again, so these may be old: {why}")
        });
        let place = &mut self.stale[list as usize];
        let said_otherwise = *place != stale;
        *place = stale;
        Taken {
            changed: taken.changed || said_otherwise,
            ..taken
        }
    }
}

/// One list, fetched again.
pub(super) enum Fetched {
    Tools(Result<Listing<Tool>, ConnectError>),
    Resources(Result<(Listing<Resource>, Listing<ResourceTemplate>), ConnectError>),
    Prompts(Result<Listing<Prompt>, ConnectError>),
}

impl Fetched {
    /// Which list it is.
    pub(super) fn list(&self) -> List {
        match self {
            Fetched::Tools(_) => List::Tools,
            Fetched::Resources(_) => List::Resources,
            Fetched::Prompts(_) => List::Prompts,
        }
    }

    /// The failure of the connection, or of its session, that kept it from being fetched.
    pub(super) fn failure(&self) -> Option<&RequestError> {
        let error = match self {
            Fetched::Tools(fresh) => fresh.as_ref().err(),
            Fetched::Resources(fresh) => fresh.as_ref().err(),
            Fetched::Prompts(fresh) => fresh.as_ref().err(),
        };
        match error? {
            ConnectError::Request { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Fetches one list again.
pub(super) async fn fetch_again(
    session: Session,
    list: List,
    timeout: Duration,
    all_lists: Pool,
) -> Fetched {
    let source = Source {
        session: &session,
        timeout,
        all_lists: &all_lists,
    };
    match list {
        List::Tools => Fetched::Tools(source.tools().await),
        List::Resources => Fetched::Resources(source.resources_and_templates().await),
        List::Prompts => Fetched::Prompts(source.prompts().await),
    }
}

/// What came of fetching a list again.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Whether anything is seen differently now.
    pub changed: bool,
    /// Why the old list, or a part of it, was kept.
    pub failure: Option<String>,
}

impl Taken {
    fn and(self, other: Taken) -> Taken {
        Taken {
            changed: self.changed || other.changed,
            failure: self.failure.or(other.failure),
        }
    }
}

fn keep_or_take<T: Item>(
    current: &mut Listing<T>,
    fresh: Result<Listing<T>, ConnectError>,
) -> Taken {
    let kept = |why: String| Taken {
        changed: false,
        failure: Some(why),
    };
    match fresh {
        Ok(fresh) if fresh.failed => kept(fresh.warnings.join("; ")),
        Ok(fresh) => {
            let same = fresh.warnings == current.warnings
                && fresh.items.len() == current.items.len()
                && std::iter::zip(&*fresh.items, &*current.items)
                    .all(|(fresh, current)| fresh.raw().get() == current.raw().get());
            *current = fresh;
            Taken {
                changed: !same,
                failure: None,
            }
        }
        Err(error) => kept(error.to_string()),
    }
}

/// What is kept of an item as it was received.
trait Item {
    fn raw(&self) -> &RawValue;
}

impl Item for Tool {
    fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl Item for Resource {
    fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl Item for ResourceTemplate {
    fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl Item for Prompt {
    fn raw(&self) -> &RawValue {
        &self.raw
    }
}

/// Where lists are fetched from.
#[derive(Clone, Copy)]
struct Source<'a> {
    session: &'a Session,
    /// For each request.
    timeout: Duration,
    /// What the lists of all servers may hold together.
    all_lists: &'a Pool,
}

impl Source<'_> {
    async fn tools(self) -> Result<Listing<Tool>, ConnectError> {
        if !self.session.offers(List::Tools) {
            return Ok(Listing::default());
        }
        let mut listing = self.list(method::TOOLS_LIST, &view::TOOLS).await?;
        if self.session.mirrors_arguments() {
            leave_out_unmirrorable(&mut listing);
        }
        Ok(listing)
    }

    async fn prompts(self) -> Result<Listing<Prompt>, ConnectError> {
        if !self.session.offers(List::Prompts) {
            return Ok(Listing::default());
        }
        self.list(method::PROMPTS_LIST, &view::PROMPTS).await
    }

    async fn resources_and_templates(
        self,
    ) -> Result<(Listing<Resource>, Listing<ResourceTemplate>), ConnectError> {
        if !self.session.offers(List::Resources) {
            return Ok((Listing::default(), Listing::default()));
        }
        let templates = method::RESOURCE_TEMPLATES_LIST;
        future::try_join(
            self.list(method::RESOURCES_LIST, &view::RESOURCES),
            self.list(templates, &view::RESOURCE_TEMPLATES),
        )
        .await
    }

    async fn list<T>(
        self,
        name: &'static str,
        view: &ListView<T>,
    ) -> Result<Listing<T>, ConnectError> {
        match list::fetch(self.session, name, view, self.timeout, self.all_lists).await {
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
}

/// A tool whose schema asks for headers in a way that cannot be met must not be offered: its
/// calls could not be sent.
fn leave_out_unmirrorable(listing: &mut Listing<Tool>) {
    let warnings = &mut listing.warnings;
    Arc::make_mut(&mut listing.items).retain(|tool| match header_params(&tool.input_schema) {
        Ok(_) => true,
        Err(fault) => {
            let name = Untrusted::new(tool.name.as_str());
            warnings.push(format!("`tools/list`: `{name}` left out: {fault}"));
            false
        }
    });
}

/// Whether a list that failed this way means that the connection does not work.
fn is_fatal(error: &RequestError) -> bool {
    match error {
        RequestError::TimedOut
        | RequestError::Idle { .. }
        | RequestError::Closed(_)
        | RequestError::Send(
            SendFailure::TimedOut { .. }
            | SendFailure::Unreachable { .. }
            // Half a list says nothing about what the server offers; the next attempt may.
            | SendFailure::Cut(_)
            | SendFailure::Certificate { .. }
            | SendFailure::Credentials(_)
            // The server does not know the session any more.
            | SendFailure::Status {
                status: 404,
                had_session: true,
                ..
            },
        ) => true,
        RequestError::Send(failure) if wants_login(failure) => true,
        RequestError::Rpc(_)
        | RequestError::Malformed(_)
        | RequestError::InputRefused { .. }
        | RequestError::TooManyRounds { .. }
        | RequestError::TaskCancelled
        | RequestError::Send(_) => false,
    }
}
