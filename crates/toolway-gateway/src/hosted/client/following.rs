//! What a legacy client follows as long as its session lasts: resources, the log of servers, and
//! where it talks to one server alone, what that says beside the protocol.
//!
//! Owns the futures that bring the news; they run beside the service (`service.rs`) and end with
//! the client.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{mpsc, watch};
use toolway::types::{Era, ServerName, limits};
use toolway::{CallOptions, HostSnapshot, LogLevel, LogNews, LogStream};
use toolway_wire::era::method;
use toolway_wire::{RawJson, envelope, request_head};

use super::super::answers;
use super::super::endpoint::connected;
use super::super::scope::EndpointScope;
use super::HostedClient;
use crate::conversation::{Answer, IncomingRequest};

/// The most resources that one client follows.
const MAX_FOLLOWED: usize = limits::gateway::FOLLOWED;

/// The most notifications of one client that wait for its server.
const MAX_NOTICES: usize = 64;

/// What is followed, and how that is ended.
#[derive(Default)]
pub(super) struct Following {
    resources: HashMap<String, AbortHandle>,
    logs: Option<AbortHandle>,
    notices: Option<AbortHandle>,
    /// What waits to be told to the client's one server.
    told: Option<mpsc::Sender<ClientNotice>>,
}

/// A notification of a client: its method and parameters.
type ClientNotice = (String, Option<RawJson>);

impl Drop for Following {
    fn drop(&mut self) {
        let news = self.logs.iter().chain(&self.notices);
        for handle in self.resources.values().chain(news) {
            handle.abort();
        }
    }
}

impl HostedClient {
    /// `resources/subscribe`
    pub(super) async fn follow(self: &Arc<Self>, request: &IncomingRequest) -> Answer {
        let Some(uri) = request_head::text_param(request.params.as_ref(), "uri") else {
            return answers::invalid("`uri` is missing");
        };
        let mut found = self.endpoint.resource(&uri);
        if found.is_none() && self.endpoint.all_came().await {
            found = self.endpoint.resource(&uri);
        }
        let (Some((server, own)), Some(unasked)) = (found, &self.unasked) else {
            return answers::invalid("no such resource can be followed here");
        };
        if self.state().following.resources.len() >= MAX_FOLLOWED {
            return answers::invalid(format!("more than {MAX_FOLLOWED} resources are followed"));
        }
        let mut options = CallOptions::new(self.endpoint.consent());
        options.trace.clone_from(&request.trace);
        let subscribing = self.attached.subscribe_resource_as(&server, own, &options);
        let mut subscription = match subscribing.await {
            Ok(subscription) => subscription,
            Err(toolway::SubscribeError::Call(error)) => return answers::failed(&error),
            Err(error) => return answers::invalid(error.to_string()),
        };
        let params = to_raw_value(&json!({ "uri": uri })).ok();
        let message = envelope::notification(method::RESOURCE_UPDATED, params.as_deref());
        let unasked = unasked.clone();
        let news = async move {
            while subscription.updated().await.is_ok() && !unasked.is_gone() {
                unasked.notify(message.clone());
            }
        };
        let handle = self.beside(news);
        let before = self
            .state()
            .following
            .resources
            .insert(uri.into_owned(), handle);
        if let Some(before) = before {
            before.abort();
        }
        answers::own(&json!({}), Era::Legacy)
    }

    /// `resources/unsubscribe`
    pub(super) fn unfollow(&self, request: &IncomingRequest) -> Answer {
        let Some(uri) = request_head::text_param(request.params.as_ref(), "uri") else {
            return answers::invalid("`uri` is missing");
        };
        if let Some(handle) = self.state().following.resources.remove(&*uri) {
            handle.abort();
        }
        answers::own(&json!({}), Era::Legacy)
    }

    /// Passes on what servers log while they work for nobody in particular.
    pub(super) fn hear_logs(self: &Arc<Self>, level: LogLevel) {
        let Some(unasked) = self.unasked.clone() else {
            return;
        };
        let client = Arc::downgrade(self);
        let mut snapshots = self.endpoint.view.watch();
        let news = async move {
            let mut heard = HashSet::<ServerName>::new();
            let mut streams = FuturesUnordered::new();
            loop {
                {
                    let Some(client) = client.upgrade() else {
                        return;
                    };
                    let snapshot = Arc::clone(&snapshots.borrow_and_update());
                    let present = connected(&snapshot).map(|(server, _)| server);
                    let present: Vec<_> =
                        present.filter(|it| client.endpoint.scope.has(it)).collect();
                    for server in present {
                        if heard.contains(server) {
                            continue;
                        }
                        if let Ok(stream) = client.attached.logs(server, level) {
                            heard.insert(server.clone());
                            let log = FollowedLog {
                                client: Arc::downgrade(&client),
                                server: server.clone(),
                                snapshots: client.endpoint.view.watch(),
                                stream,
                            };
                            streams.push(log.next());
                        }
                    }
                }
                if unasked.is_gone() {
                    return;
                }
                tokio::select! {
                    changed = snapshots.changed() => if changed.is_err() { return },
                    Some((log, news)) = streams.next() => match news {
                        // It may be there again already, as another one.
                        None => {
                            heard.remove(&log.server);
                            snapshots.mark_changed();
                        }
                        Some(news) => {
                            if let LogNews::Message(message) = news {
                                let params = Some(message.raw.as_raw());
                                unasked.notify(envelope::notification(method::MESSAGE, params));
                            }
                            streams.push(log.next());
                        }
                    }
                }
            }
        };
        let handle = self.beside(news);
        let before = self.state().following.logs.replace(handle);
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Passes on what its one server says that the protocol does not have.
    pub(super) fn hear_notices(self: &Arc<Self>) {
        let (EndpointScope::One(server), Some(unasked)) =
            (&self.endpoint.scope, self.unasked.clone())
        else {
            return;
        };
        let (client, server) = (Arc::downgrade(self), server.clone());
        let mut snapshots = self.endpoint.view.watch();
        let news = async move {
            loop {
                let stream = {
                    let Some(client) = client.upgrade() else {
                        return;
                    };
                    snapshots.borrow_and_update();
                    client.attached.notices(&server).ok()
                };
                let Some(mut stream) = stream else {
                    if snapshots.changed().await.is_err() {
                        return;
                    }
                    continue;
                };
                loop {
                    let notice = tokio::select! {
                        biased;
                        changed = snapshots.changed() => match changed {
                            Ok(()) => None,
                            Err(_) => return,
                        },
                        notice = stream.next() => match notice {
                            Some(notice) => Some(notice),
                            // It is defined anew, which is shown at once.
                            None => break,
                        },
                    };
                    let Some(client) = client.upgrade() else {
                        return;
                    };
                    if unasked.is_gone() {
                        return;
                    }
                    // It may be another one by now, or nothing of this client's.
                    if !client.attached.hears_notices(&server, &stream) {
                        break;
                    }
                    if let Some(notice) = notice {
                        let params = notice.params.as_ref().map(RawJson::as_raw);
                        unasked.notify(envelope::notification(&notice.method, params));
                    }
                }
            }
        };
        let handle = self.beside(news);
        let before = self.state().following.notices.replace(handle);
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Passes on what the client says that the protocol does not have, to its one server.
    pub(super) fn pass_on_notice(self: &Arc<Self>, method: &str, params: Option<RawJson>) {
        let EndpointScope::One(server) = &self.endpoint.scope else {
            tracing::debug!("a notification of a client is not heeded");
            return;
        };
        let mut state = self.state();
        let told = state
            .following
            .told
            .get_or_insert_with(|| self.tell_server(server.clone()));
        // A client that talks faster than its server listens is not waited for.
        if told.try_send((method.to_owned(), params)).is_err() {
            tracing::debug!("a notification of a client is dropped: too many wait");
        }
    }

    /// Tells a server what is put in, in order.
    fn tell_server(self: &Arc<Self>, server: ServerName) -> mpsc::Sender<ClientNotice> {
        let (sender, mut receiver) = mpsc::channel::<ClientNotice>(MAX_NOTICES);
        let client = Arc::downgrade(self);
        let telling = async move {
            while let Some((method, params)) = receiver.recv().await {
                let Some(client) = client.upgrade() else {
                    return;
                };
                let options = CallOptions::new(client.endpoint.consent());
                let told =
                    client
                        .attached
                        .pass_on_notice(&server, &method, params.as_ref(), &options);
                if let Err(error) = told.await {
                    tracing::debug!(%error, "a notification of a client is not passed on");
                }
            }
        };
        self.core.beside(Box::pin(telling));
        sender
    }

    /// Runs something beside the service, until it is aborted.
    fn beside(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        let work = Abortable::new(work, registration);
        self.core.beside(Box::pin(async move {
            let _ = work.await;
        }));
        handle
    }
}

/// The log of one server, as long as the client may hear it.
struct FollowedLog {
    client: Weak<HostedClient>,
    server: ServerName,
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    stream: LogStream,
}

impl FollowedLog {
    /// Waits for the next news; nothing once it is not heard any more.
    async fn next(mut self) -> (Self, Option<LogNews>) {
        loop {
            let news = tokio::select! {
                biased;
                changed = self.snapshots.changed() => match changed {
                    Ok(()) => None,
                    Err(_) => return (self, None),
                },
                news = self.stream.next() => Some(news),
            };
            let Some(client) = self.client.upgrade() else {
                return (self, None);
            };
            if !client.attached.hears_log(&self.server, &self.stream) {
                return (self, None);
            }
            if news.is_some() {
                return (self, news);
            }
        }
    }
}
