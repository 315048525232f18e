//! What we declare to a server that it may ask of us.
//!
//! Owns the capability objects of both eras, made from what the embedding program and hooks offer.
//! Whether a question is put at all is decided against the same values, so that nothing is declared
//! that is not answered, and nothing is answered that was not declared.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use toolway_wire::RawJson;
use toolway_wire::view::task;

use super::raw;
use crate::client_handler::{ClientHandler, ClientOffers, Root};
use crate::session::ClientSide;

/// What was, or will be, declared on one channel.
#[derive(Debug)]
pub(super) struct DeclaredCapabilities {
    /// What the client handler and hooks offer together.
    pub offers: ClientOffers,
    /// The client handler's part in it.
    pub person: ClientOffers,
    roots: AtomicBool,
    /// Whether it may be told that there are any.
    tells_roots: bool,
    with_roots: Box<RawValue>,
    without_roots: Box<RawValue>,
}

impl DeclaredCapabilities {
    pub(super) fn new(client_side: &ClientSide) -> Self {
        let client_handler = client_side.client_handler.as_deref();
        let mut person = client_handler
            .map(ClientHandler::offers)
            .unwrap_or_default();
        if let Some(stated) = &client_side.stated {
            person = within_stated(person, stated);
        }
        // A hook may answer any question; one that no hook and no user answers is cancelled.
        let hooks = client_side.hooks.answers(&client_side.server);
        let offers = ClientOffers {
            form: person.form || hooks,
            url: person.url || hooks,
            sampling: person.sampling.clone(),
            roots: person.roots,
        };
        Self {
            with_roots: modern(&offers, Some(json!({}))),
            without_roots: modern(&offers, None),
            roots: AtomicBool::new(false),
            tells_roots: client_side.stated.as_ref().is_none_or(states_roots),
            offers,
            person,
        }
    }

    /// The part of it that a server was told of before, on behalf of all callers.
    pub(super) fn within(self, told: &Self) -> Self {
        let offers = ClientOffers {
            form: self.offers.form && told.offers.form,
            url: self.offers.url && told.offers.url,
            sampling: self
                .offers
                .sampling
                .filter(|_| told.offers.sampling.is_some()),
            roots: self.offers.roots && told.roots(),
        };
        Self {
            offers,
            roots: AtomicBool::new(told.roots() && self.tells_roots),
            ..self
        }
    }

    /// Whether the server was told that there are roots. There may be none any more, which is
    /// then the answer.
    pub(super) fn roots(&self) -> bool {
        self.roots.load(Ordering::Relaxed) || (self.tells_roots && self.offers.roots)
    }

    /// For `initialize`.
    pub(super) fn legacy(&self, roots: &[Root]) -> Value {
        let roots = self.note(roots).then(|| json!({ "listChanged": true }));
        Value::Object(common(&self.offers, roots))
    }

    /// For the `_meta` of a modern request, which says how things stand at that moment.
    pub(super) fn modern(&self, roots: &[Root]) -> &RawValue {
        if self.note(roots) {
            &self.with_roots
        } else {
            &self.without_roots
        }
    }

    fn note(&self, roots: &[Root]) -> bool {
        let has_roots = !roots.is_empty() || self.offers.roots;
        if !has_roots || !self.tells_roots {
            return false;
        }
        self.roots.store(true, Ordering::Relaxed);
        true
    }
}

/// The part of what a caller can be asked that it states for one request, as a modern client does.
fn within_stated(offers: ClientOffers, stated: &RawJson) -> ClientOffers {
    let stated: Value = serde_json::from_str(stated.get()).unwrap_or_default();
    let elicitation = stated.get("elicitation").and_then(Value::as_object);
    let has = |mode| elicitation.is_some_and(|modes| modes.contains_key(mode));
    ClientOffers {
        // Without a mode, forms are meant.
        form: offers.form && (has("form") || elicitation.is_some_and(Map::is_empty)),
        url: offers.url && has("url"),
        sampling: offers.sampling.filter(|_| stated["sampling"].is_object()),
        roots: offers.roots,
    }
}

fn states_roots(stated: &RawJson) -> bool {
    let stated: Value = serde_json::from_str(stated.get()).unwrap_or_default();
    stated["roots"].is_object()
}

fn modern(offers: &ClientOffers, roots: Option<Value>) -> Box<RawValue> {
    let mut capabilities = common(offers, roots);
    let extensions = json!({ task::EXTENSION: {} });
    capabilities.insert("extensions".to_owned(), extensions);
    to_raw_value(&capabilities).unwrap_or_else(|_| raw("{}"))
}

fn common(offers: &ClientOffers, roots: Option<Value>) -> Map<String, Value> {
    let mut capabilities = Map::new();
    if let Some(roots) = roots {
        capabilities.insert("roots".to_owned(), roots);
    }
    if let Some(sampling) = &offers.sampling {
        let sampling = serde_json::from_str(sampling.get()).ok();
        let sampling = sampling.filter(Value::is_object);
        capabilities.insert("sampling".to_owned(), sampling.unwrap_or_else(|| json!({})));
    }
    let mut modes = Map::new();
    for (mode, offered) in [("form", offers.form), ("url", offers.url)] {
        if offered {
            modes.insert(mode.to_owned(), json!({}));
        }
    }
    if !modes.is_empty() {
        capabilities.insert("elicitation".to_owned(), Value::Object(modes));
    }
    capabilities
}
