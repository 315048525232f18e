//! From a request to its route.
//!
//! Owns the order: the guard, then the route, then who asks, then what they want. Whoever is not let
//! in learns nothing of what is behind.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use super::access::Access;
use super::counters::Counter as _;
use super::front::{Front, peer};
use super::legacy;
use super::old_transport::{self, OldClients};
use super::post;
use super::respond::{self, HttpResponse};
use super::route::HttpRoute;
use super::visitor::{Door, Visitor};

/// What answers requests.
pub(super) struct Handler {
    pub(super) front: Arc<Front>,
    pub(super) old_clients: Arc<OldClients>,
}

impl Handler {
    /// Answers one request.
    pub(super) async fn handle(
        self: Arc<Self>,
        visitor: Arc<Visitor>,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let front = &self.front;
        front.counters.requests.up();
        let (request, body) = request.into_parts();
        let guard = match (visitor.door, &front.metrics_guard) {
            (Door::Metrics, Some(guard)) => guard,
            _ => &front.guard,
        };
        if let Err(rejection) = guard.admit(&request, visitor.here) {
            tracing::debug!(%rejection, "a request was not let in");
            front.counters.refused.up();
            return respond::text(rejection.status(), format!("{rejection}\n"));
        }
        let Some(route) = HttpRoute::of(request.uri.path()) else {
            return respond::empty(StatusCode::NOT_FOUND);
        };
        let method = &request.method;
        match route {
            HttpRoute::Health if is_read(method) => respond::text(StatusCode::OK, "ok\n"),
            HttpRoute::Readiness if is_read(method) => self.readiness(),
            HttpRoute::Metrics if visitor.door == Door::Metrics && is_read(method) => {
                self.metrics()
            }
            // Nothing else is behind the other door.
            _ if visitor.door == Door::Metrics => respond::empty(StatusCode::NOT_FOUND),
            HttpRoute::ResourceMetadata => match &front.access {
                Access::Checked(access) if is_read(method) => match access.resource_metadata() {
                    Some(document) => respond::json(StatusCode::OK, document),
                    None => respond::empty(StatusCode::NOT_FOUND),
                },
                _ => respond::empty(StatusCode::NOT_FOUND),
            },
            HttpRoute::Health | HttpRoute::Readiness => respond::method_not_allowed("GET"),
            HttpRoute::OldStream(_) | HttpRoute::OldMessages if !front.has_old_transport => {
                respond::empty(StatusCode::NOT_FOUND)
            }
            HttpRoute::Metrics => match front.identify(&request).await {
                Err(response) => response,
                Ok(identity) if !identity.is_owner => respond::empty(StatusCode::FORBIDDEN),
                Ok(_) if is_read(method) => self.metrics(),
                Ok(_) => respond::method_not_allowed("GET"),
            },
            HttpRoute::Exchange(endpoint) => {
                let peer = match front.identify(&request).await {
                    Ok(identity) => peer(&identity, endpoint),
                    Err(response) => return response,
                };
                match *method {
                    Method::POST => post::post(front, &visitor, peer, request.headers, body).await,
                    Method::GET => legacy::listen(front, &visitor, &peer, &request.headers),
                    Method::DELETE => legacy::end(front, &peer, &request.headers),
                    _ => respond::method_not_allowed("GET, POST, DELETE"),
                }
            }
            HttpRoute::OldStream(endpoint) => {
                let peer = match front.identify(&request).await {
                    Ok(identity) => peer(&identity, endpoint),
                    Err(response) => return response,
                };
                if *method != Method::GET {
                    return respond::method_not_allowed("GET");
                }
                old_transport::open(front, &self.old_clients, &visitor, &peer)
            }
            HttpRoute::OldMessages => {
                let identity = match front.identify(&request).await {
                    Ok(identity) => identity,
                    Err(response) => return response,
                };
                if *method != Method::POST {
                    return respond::method_not_allowed("POST");
                }
                let query = request.uri.query();
                old_transport::post(front, &self.old_clients, &identity, query, body).await
            }
        }
    }

    fn readiness(&self) -> HttpResponse {
        if self.front.closing.is_cancelled() {
            return respond::text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n");
        }
        let ready = (self.front.observer.as_ref()).map_or(Ok(()), |observer| observer.readiness());
        match ready {
            Ok(()) => respond::text(StatusCode::OK, "ready\n"),
            Err(why) => respond::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        }
    }

    fn metrics(&self) -> HttpResponse {
        let mut text = String::new();
        if let Some(observer) = &self.front.observer {
            observer.write_metrics(&mut text);
        }
        self.front.counters.write_metrics(&mut text);
        respond::metrics(text)
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
