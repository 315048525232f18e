//! A program that said who it is: what it sees, what it brings, who asks it.
//!
//! Owns its servers and its view of the host, kept in step. Whatever it has ends with it.

mod agents;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use toolway::types::ServerName;
use toolway::types::text::clean_line;
use toolway::{AttachOptions, Attached, Caller, CallerKind, Root, View, ViewSpec};
use tracing::debug;
use url::Url;

use self::agents::Agents;
pub(super) use self::agents::RunningAgent;
use super::ControlCore;
use super::asking::ProgramAsker;
use super::brought::{BroughtServers, ResidentLink};
use super::error::ControlError;
use super::messages::{Asks, Initialize, ProgramHook, ServerAnswered, ServersSet};
use super::resident::Resident;
use super::rows::{Provenances, server_row};

/// The most of a program's own name that is shown, in characters.
const MAX_NAME: usize = 100;

/// A program.
pub(super) struct Program {
    pub(super) core: Arc<ControlCore>,
    pub(super) view: View,
    pub(super) attached: Attached,
    pub(super) link: ResidentLink,
    pub(super) is_strict: bool,
    pub(super) asks: Asks,
    pub(super) said_hooks: Vec<ProgramHook>,
    pub(super) agents: Agents,
    brought: Mutex<Arc<BroughtServers>>,
    /// The servers that it switched off.
    off: Mutex<BTreeSet<ServerName>>,
    /// Held while its servers change, so that the newest set has the last word.
    turn: tokio::sync::Mutex<()>,
}

/// What a program said at the beginning, and what came of it so far.
pub(super) struct NewProgram<'a> {
    pub(super) core: &'a Arc<ControlCore>,
    pub(super) said: &'a Initialize,
    pub(super) link: &'a ResidentLink,
    pub(super) view: View,
    pub(super) brought: BroughtServers,
    pub(super) roots: Vec<Root>,
}

impl Program {
    pub(super) fn new(new: NewProgram<'_>) -> Self {
        let asker = Arc::new(ProgramAsker {
            link: new.link.clone(),
            asks: new.said.asks,
            view: new.view.clone(),
            provenances: Provenances::default(),
            agent: None,
        });
        let attached = new.core.host.attach(
            Caller::new(CallerKind::Client, &shown_name(new.said)),
            AttachOptions {
                prompter: asker.prompter(),
                client_handler: Some(asker),
                roots: new.roots,
                view: Some(new.view.clone()),
                // It shows questions to people, as a front-end of ours does.
                keeps_rules: true,
                ..AttachOptions::default()
            },
        );
        Self {
            core: Arc::clone(new.core),
            view: new.view,
            attached,
            link: new.link.clone(),
            is_strict: new.said.strict,
            asks: new.said.asks,
            said_hooks: new.said.hooks.clone(),
            agents: Agents::default(),
            off: Mutex::default(),
            brought: Mutex::new(Arc::new(new.brought)),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// What it brought, as of now.
    pub(super) fn brought(&self) -> Arc<BroughtServers> {
        let brought = self.brought.lock();
        Arc::clone(&brought.unwrap_or_else(PoisonError::into_inner))
    }

    /// Has it bring these servers, and no others.
    pub(super) async fn set(&self, wanted: Map<String, Value>) -> ServersSet {
        let _turn = self.turn.lock().await;
        let before = self.brought();
        let (now, set) = before
            .replaced_by(wanted, &self.core.setup, &self.link)
            .await;
        *self.brought.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
        self.show().await;
        set
    }

    /// Has its view, and those of its agents, show what it has now.
    async fn show(&self) {
        let base = ViewSpec {
            off: lock(&self.off).clone(),
            ..base_view(self.is_strict)
        };
        let spec = self.brought().in_view(base);
        self.core.host.change_view(&self.view, spec).await;
        self.agents.follow(self).await;
    }

    /// Switches a server on or off, for this program alone.
    pub(super) async fn switch(&self, server: &str, is_on: bool) -> Result<(), ControlError> {
        let _turn = self.turn.lock().await;
        let name = self
            .view
            .snapshot()
            .server(server)
            .map(|it| it.name.clone());
        let name = name.ok_or_else(|| ControlError::unknown_server(server))?;
        if is_on {
            lock(&self.off).remove(&name);
        } else {
            lock(&self.off).insert(name);
        }
        self.show().await;
        Ok(())
    }

    /// The servers that it switched off.
    pub(super) fn off(&self) -> BTreeSet<ServerName> {
        lock(&self.off).clone()
    }

    /// One of its servers, as it stands now.
    pub(super) fn row(&self, server: &str) -> Result<ServerAnswered, ControlError> {
        let snapshot = self.view.snapshot();
        let shown = snapshot.server(server);
        let shown = shown.ok_or_else(|| ControlError::unknown_server(server))?;
        let server = server_row(shown, &snapshot, &Provenances::default(), false);
        Ok(ServerAnswered { server })
    }

    /// Judges its servers again: what is forbidden may be something else by now.
    pub(super) async fn judge_again(&self) {
        let wanted = self.brought().wanted().clone();
        if !wanted.is_empty() {
            let set = self.set(wanted).await;
            for (server, why) in &set.errors {
                debug!(server, why, "a server of the program is not there");
            }
        }
    }

    /// The server of this name that lives in it, or that an agent of it brought.
    pub(super) fn resident(&self, name: &str) -> Result<Arc<Resident>, ControlError> {
        let resident = self.brought().resident(name);
        let resident = resident.or_else(|| self.agents.resident(name));
        resident.ok_or_else(|| ControlError::unknown_server(name))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program sees beside what it brings.
pub(super) fn base_view(is_strict: bool) -> ViewSpec {
    if is_strict {
        ViewSpec::nothing()
    } else {
        ViewSpec::default()
    }
}

fn shown_name(said: &Initialize) -> String {
    let name = said
        .client
        .as_ref()
        .and_then(|client| client.name.as_deref());
    match &*shown_text(name.unwrap_or_default()) {
        "" => "control".to_owned(),
        name => format!("control: {name}"),
    }
}

/// A name that somebody gave themselves, as people are shown it.
pub(super) fn shown_text(name: &str) -> String {
    let name: String = clean_line(name).chars().take(MAX_NAME).collect();
    name.trim().to_owned()
}

/// The places that a program names.
pub(super) fn roots(named: &[String]) -> Result<Vec<Root>, ControlError> {
    let root = |place: &String| {
        if let Some(root) = Root::directory(place.as_ref()) {
            return Ok(root);
        }
        match Url::parse(place) {
            Ok(uri) if uri.scheme() == "file" => Ok(Root { uri, name: None }),
            _ => {
                let place = clean_line(place);
                let message =
                    format!("the root `{place}` is no absolute path and no `file:` address");
                Err(ControlError::invalid(message))
            }
        }
    };
    named.iter().map(root).collect()
}
