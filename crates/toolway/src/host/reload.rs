//! A fresh plan for a host that runs.
//!
//! Owns what that takes, so that a task of the host can ask for it as well as its owner. What a
//! plan changes is `supervisor/apply.rs`.

use std::sync::Arc;

use toolway_config::Plan;
use toolway_types::ServerName;

use super::{Reach, settings};
use crate::connection::InProcessServer;
use crate::event::{Changes, NoPlanSource, Replan};
use crate::snapshot::ServerSnapshot;
use crate::supervisor::{self, Request};
use crate::tasks;

/// Where plans come from, and who takes them.
pub(crate) struct Reload {
    pub(super) reach: Arc<Reach>,
    pub(super) in_process: Vec<(ServerName, InProcessServer)>,
    pub(super) only: Option<Vec<ServerName>>,
    pub(super) replan: Option<Replan>,
}

impl Reload {
    /// Puts a new plan in the place of the old one.
    pub(crate) async fn apply(&self, plan: Plan) -> Changes {
        let members = supervisor::roster(&plan, &self.in_process, self.only.as_deref());
        let settings = settings(plan);
        let reach = &self.reach;
        reach
            .ask(|done| Request::Apply {
                members,
                settings,
                done,
            })
            .await
            .unwrap_or_default()
    }

    /// Makes a fresh plan and applies it.
    pub(crate) async fn reload(&self) -> Result<Changes, NoPlanSource> {
        let replan = self.replan.clone().ok_or(NoPlanSource)?;
        match tasks::blocking("replan", move || replan()).await {
            Ok(plan) => Ok(self.apply(plan).await),
            Err(failure) => {
                tracing::error!(%failure, "no fresh plan: the old one stays");
                Ok(Changes::default())
            }
        }
    }

    /// Has these servers connected anew; waits for none of them.
    pub(crate) async fn reconnect(&self, which: impl Fn(&ServerSnapshot) -> bool) {
        let picture = self.reach.snapshot();
        for server in picture.servers.iter().filter(|server| which(server)) {
            let asked = self.reach.ask(|done| Request::Reconnect {
                server: server.name.as_str().to_owned(),
                done,
            });
            // A server that is gone by now needs nothing.
            let _ = asked.await;
        }
    }
}
