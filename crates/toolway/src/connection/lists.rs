//! What a server offers, fetched when it connects and again when it says that it changed.
//!
//! Owns which lists are fetched, and what a list that cannot be read means: a warning, unless
//! the connection itself is in doubt.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future;
use serde_json::value::RawValue;
use toolway_transport::SendFailure;
use toolway_types::{BytePool, Untrusted};
use toolway_wire::era::method;
use toolway_wire::error::METHOD_NOT_FOUND;
use toolway_wire::headers::header_params;
use toolway_wire::view::{self, ListView, Prompt, Resource, ResourceTemplate, Tool};

use crate::error::{ConnectError, RequestError, wants_login};
use crate::listing::{FetchedList, ListKind, ServerLists};
use crate::session::{Session, list};

impl ServerLists {
    /// Fetches whatever the server's capabilities offer, all lists at once.
    pub(crate) async fn fetch(
        session: &Session,
        timeout: Duration,
        all_lists: &BytePool,
    ) -> Result<Self, ConnectError> {
        let source = ListFetcher {
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
    pub(super) fn take(&mut self, fetched: RefetchedList) -> RefetchEffect {
        let list = fetched.list;
        let taken = match (list, fetched.fresh) {
            (_, Err(error)) => RefetchEffect::kept(error.to_string()),
            (ListKind::Tools, Ok(fresh)) => {
                keep_or_take(&mut self.tools, fresh.tools, |it| &it.raw)
            }
            (ListKind::Prompts, Ok(fresh)) => {
                keep_or_take(&mut self.prompts, fresh.prompts, |it| &it.raw)
            }
            (ListKind::Resources, Ok(fresh)) => {
                let resources = keep_or_take(&mut self.resources, fresh.resources, |it| &it.raw);
                let templates = keep_or_take(&mut self.templates, fresh.templates, |it| &it.raw);
                RefetchEffect {
                    changed: resources.changed || templates.changed,
                    failure: resources.failure.or(templates.failure),
                }
            }
        };
        let stale = taken.failure.as_ref().map(|why| {
            let what = list.word();
            format!("its {what} could not be fetched again, so these may be old: {why}")
        });
        let before = std::mem::replace(&mut self.stale[list as usize], stale);
        RefetchEffect {
            changed: taken.changed || before != self.stale[list as usize],
            ..taken
        }
    }
}

/// One list, fetched again.
pub(super) struct RefetchedList {
    pub(super) list: ListKind,
    /// With nothing in the others.
    fresh: Result<Box<ServerLists>, ConnectError>,
}

impl RefetchedList {
    /// The failure of the connection, or of its session, that kept it from being fetched.
    pub(super) fn failure(&self) -> Option<&RequestError> {
        match self.fresh.as_ref().err()? {
            ConnectError::Request { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Fetches one list again.
pub(super) async fn fetch_again(
    session: Session,
    list: ListKind,
    timeout: Duration,
    all_lists: BytePool,
) -> RefetchedList {
    let source = ListFetcher {
        session: &session,
        timeout,
        all_lists: &all_lists,
    };
    let mut lists = Box::<ServerLists>::default();
    let fetched = async {
        match list {
            ListKind::Tools => lists.tools = source.tools().await?,
            ListKind::Prompts => lists.prompts = source.prompts().await?,
            ListKind::Resources => {
                (lists.resources, lists.templates) = source.resources_and_templates().await?;
            }
        }
        Ok(lists)
    };
    let fresh = fetched.await;
    RefetchedList { list, fresh }
}

/// What came of fetching a list again.
#[derive(Debug, Default)]
pub(super) struct RefetchEffect {
    /// Whether anything is seen differently now.
    pub changed: bool,
    /// Why the old list, or a part of it, was kept.
    pub failure: Option<String>,
}

impl RefetchEffect {
    fn kept(why: String) -> Self {
        Self {
            changed: false,
            failure: Some(why),
        }
    }
}

/// `raw` gives an item as it was received.
fn keep_or_take<T>(
    current: &mut FetchedList<T>,
    fresh: FetchedList<T>,
    raw: impl Fn(&T) -> &RawValue,
) -> RefetchEffect {
    if fresh.failed {
        return RefetchEffect::kept(fresh.warnings.join("; "));
    }
    let same = fresh.warnings == current.warnings
        && fresh.items.len() == current.items.len()
        && std::iter::zip(&*fresh.items, &*current.items)
            .all(|(fresh, current)| raw(fresh).get() == raw(current).get());
    *current = fresh;
    RefetchEffect {
        changed: !same,
        failure: None,
    }
}

/// Where lists are fetched from.
#[derive(Clone, Copy)]
struct ListFetcher<'a> {
    session: &'a Session,
    /// For each request.
    timeout: Duration,
    /// What the lists of all servers may hold together.
    all_lists: &'a BytePool,
}

impl ListFetcher<'_> {
    async fn tools(self) -> Result<FetchedList<Tool>, ConnectError> {
        if !self.session.offers(ListKind::Tools) {
            return Ok(FetchedList::default());
        }
        let mut listing = self.list(method::TOOLS_LIST, &view::TOOLS).await?;
        if self.session.mirrors_arguments() {
            leave_out_unmirrorable(&mut listing);
        }
        Ok(listing)
    }

    async fn prompts(self) -> Result<FetchedList<Prompt>, ConnectError> {
        if !self.session.offers(ListKind::Prompts) {
            return Ok(FetchedList::default());
        }
        self.list(method::PROMPTS_LIST, &view::PROMPTS).await
    }

    async fn resources_and_templates(
        self,
    ) -> Result<(FetchedList<Resource>, FetchedList<ResourceTemplate>), ConnectError> {
        if !self.session.offers(ListKind::Resources) {
            return Ok((FetchedList::default(), FetchedList::default()));
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
    ) -> Result<FetchedList<T>, ConnectError> {
        match list::fetch(self.session, name, view, self.timeout, self.all_lists).await {
            Ok(listing) => Ok(listing),
            Err(error) if is_fatal(&error) => Err(ConnectError::request(name, error)),
            // Many servers have resources and never heard of templates.
            Err(RequestError::Rpc(error))
                if error.code == METHOD_NOT_FOUND && name == method::RESOURCE_TEMPLATES_LIST =>
            {
                Ok(FetchedList::default())
            }
            Err(error) => Ok(FetchedList {
                warnings: vec![format!("`{name}` failed: {error}")],
                failed: true,
                ..FetchedList::default()
            }),
        }
    }
}

/// A tool whose schema asks for headers in a way that cannot be met must not be offered: its
/// calls could not be sent.
fn leave_out_unmirrorable(listing: &mut FetchedList<Tool>) {
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
        | RequestError::Unavailable(_)
        | RequestError::NotWidened { .. }
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
