//! A fresh plan for a host that runs.
//!
//! Owns what that takes, so that a task of the host can ask for it as well as its owner, and what a
//! plan changes beside servers: the organisation of federated logins, and whose connectors there
//! are. What it changes about servers is `supervisor/apply.rs`.

use std::sync::Arc;

use tokio::sync::Mutex;
use toolway_auth::references::ReferenceResolver;
use toolway_config::Plan;
use toolway_types::ServerName;

use super::view::{View, ViewMaker, ViewSpec};
use crate::account::{AccountChange, CurrentAccount};
use crate::auth::Auth;
use crate::event::{Changes, NoPlanSource, Replan};
use crate::lock::lock;
use crate::reconnect::Unless;
use crate::server_source::InProcessServer;
use crate::snapshot::{CallSettings, ServerSnapshot};
use crate::supervisor::{PlanEffects, Roster};
use crate::{supervisor, tasks};

/// Where plans come from, and who takes them.
pub(crate) struct Reload {
    /// The owner's view.
    pub(super) view: View,
    /// What other views are made of.
    pub(super) views: Arc<ViewMaker>,
    /// The plan of this moment.
    pub(super) plan: std::sync::Mutex<Arc<Plan>>,
    pub(super) in_process: Vec<(ServerName, InProcessServer)>,
    pub(super) only: Option<Vec<ServerName>>,
    pub(super) replan: Option<Replan>,
    pub(super) auth: Option<Arc<Auth>>,
    pub(super) references: Option<ReferenceResolver>,
    pub(crate) account: CurrentAccount,
    /// Held while a plan takes over, so that the newest one has the last word.
    pub(super) turn: Mutex<()>,
}

impl Reload {
    /// Puts a new plan in the place of the old one.
    pub(crate) async fn apply(&self, plan: Plan) -> Changes {
        let _turn = self.turn.lock().await;
        self.take_over(plan).await
    }

    async fn take_over(&self, plan: Plan) -> Changes {
        let members = self.view.spec().roster(&plan, self.roster(&plan));
        let auth = self.auth.as_ref();
        let organisation = auth.is_some_and(|auth| {
            let identity = plan.identity.clone();
            auth.set_identity(identity, self.references.as_ref())
        });
        let account = self.account.change(&plan);
        let anew = PlanEffects {
            organisation,
            account: account.clone(),
        };
        let plan = Arc::new(plan);
        *lock(&self.plan) = Arc::clone(&plan);
        let settings = Arc::new(CallSettings::from(&*plan));
        let applied = self.view.apply(members, Arc::clone(&settings), anew).await;
        for view in self.views.following.all() {
            let spec = view.spec();
            let members = spec.roster(&plan, self.roster(&plan));
            let settings = Arc::new(spec.settings(&settings, &members));
            let anew = PlanEffects {
                organisation,
                account: account.clone(),
            };
            view.apply(members, settings, anew).await;
        }
        let changes = applied.unwrap_or_default();
        // Last, because it ends the task that follows the old account, and that may be the caller.
        if let AccountChange::To(connectors) = account {
            self.account.replace(connectors);
        }
        changes
    }

    fn roster(&self, plan: &Plan) -> Roster {
        supervisor::roster(plan, &self.in_process, self.only.as_deref())
    }

    /// Makes a view, which follows the plan from now on.
    pub(crate) async fn view(&self, spec: ViewSpec) -> View {
        // Not while a plan takes over, which the view would miss.
        let _turn = self.turn.lock().await;
        let plan = Arc::clone(&lock(&self.plan));
        let members = spec.roster(&plan, self.roster(&plan));
        let settings = spec.settings(&CallSettings::from(&*plan), &members);
        self.views.start(members, settings, spec)
    }

    /// Has a view show something else, to whoever holds it.
    pub(crate) async fn change_view(&self, view: &View, spec: ViewSpec) {
        let _turn = self.turn.lock().await;
        let plan = Arc::clone(&lock(&self.plan));
        let members = spec.roster(&plan, self.roster(&plan));
        let settings = spec.settings(&CallSettings::from(&*plan), &members);
        view.set_spec(Arc::new(spec));
        let none = PlanEffects::default();
        view.apply(members, Arc::new(settings), none).await;
    }

    /// Makes a fresh plan and applies it.
    pub(crate) async fn reload(&self) -> Result<Changes, NoPlanSource> {
        let replan = self.replan.clone().ok_or(NoPlanSource)?;
        let _turn = self.turn.lock().await;
        match tasks::blocking("replan", move || replan()).await {
            Ok(plan) => Ok(self.take_over(plan).await),
            Err(failure) => {
                tracing::error!(%failure, "no fresh plan: the old one stays");
                Ok(Changes::default())
            }
        }
    }

    /// Has those of these servers connected anew that wait for a login; waits for none of them.
    pub(crate) async fn reconnect_waiting(&self, which: impl Fn(&ServerSnapshot) -> bool) {
        let snapshot = self.view.snapshot();
        for server in snapshot.servers.iter().filter(|server| which(server)) {
            let name = server.name.as_str();
            // A server that is gone by now needs nothing.
            let _ = self.view.orders().reconnect(name, Unless::LoggedIn).await;
        }
    }
}
