//! `toolway list --watch`: a host that runs until a signal, which is success.
//!
//! Owns the run: the host follows its files and the requests of other processes, and tries first
//! connections again like lost ones. On a terminal the view is `toolway-tui`'s; elsewhere each change
//! is a line (`event.rs`).

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use toolway::event::Replan;
use toolway::{ConfigWatch, Host, HostOptions, RetryFirst};
use toolway_config::{Environment, Plan, Planner};
use toolway_tui::TerminalSize;

use super::event;
use crate::connect;
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::report::{Outcome, Report, render_diagnosis};
use crate::signals::stdout_closed;

/// Findings that wait to be said; more at a time are never new ones.
const FINDINGS_LEN: usize = 64;

/// Runs the command.
pub(super) fn run(context: &Context, json: bool) -> Outcome {
    connect::block_on(async {
        let mut signals = context.signals();
        let planner = context.setup.planner();
        // Before the first plan, so that no change falls between the two.
        let files = ConfigWatch::start(context.setup.watched(&planner));
        let plan = planner.plan();
        require_flags_only(&plan)?;
        let (said, findings) = Findings::new(&plan);
        let options = HostOptions {
            retry_first: RetryFirst::Backoff,
            replan: Some(replan(planner, said)),
            ..connect::host_options(context)
        };
        let host = Host::start(plan, options);
        let outcome = tokio::select! {
            outcome = show(context, &host, findings, json) => outcome,
            () = files.follow(&host) => Ok(()),
            _ = signals.next() => Ok(()),
            () = stdout_closed(context.output.streams()) => Ok(()),
        };
        connect::end(host, &mut signals).await?;
        outcome.map(|()| Exit::Success)
    })
}

fn replan(planner: Arc<Planner>, findings: Findings) -> Replan {
    Arc::new(move || {
        let plan = planner.plan();
        findings.say_new(&plan);
        plan
    })
}

async fn show(
    context: &Context,
    host: &Host,
    mut findings: mpsc::Receiver<String>,
    json: bool,
) -> Result<(), Report> {
    if !json && context.output.stdout_is_terminal() {
        let (texts, painted) = mpsc::channel(1);
        let paint = async {
            while let Some(text) = findings.recv().await {
                // The view that takes it lives as long as this.
                let _ = texts.send(context.output.painted(&text)).await;
            }
        };
        let rewraps = rewraps(context.environment());
        let streams = context.output.streams();
        let screen = || TerminalSize {
            rewraps,
            ..TerminalSize::of(context.output.streams().output())
        };
        let theme = connect::theme(context);
        tokio::select! {
            shown = toolway_tui::watch(host.watch(), painted, || streams.output_writer(), screen, theme) => shown?,
            () = paint => {}
        }
        return Ok(());
    }
    let say = async {
        while let Some(text) = findings.recv().await {
            context.say(&text);
        }
    };
    tokio::select! {
        printed = event::print(context, host, json) => printed,
        () = say => Ok(()),
    }
}

/// Whether the terminal wraps lines anew when it becomes narrower: nearly all do. xterm and the
/// console cut them off; inside tmux or screen it is theirs that counts.
fn rewraps(environment: &Environment) -> bool {
    let set = |name: &str| environment.var(name).is_some_and(|value| !value.is_empty());
    set("TMUX") || set("STY") || !(set("XTERM_VERSION") || environment.var("TERM") == Some("linux"))
}

/// What is wrong with the configuration, each finding said when it appears.
struct Findings {
    known: Mutex<Vec<String>>,
    say: mpsc::Sender<String>,
}

impl Findings {
    fn new(plan: &Plan) -> (Self, mpsc::Receiver<String>) {
        let (say, said) = mpsc::channel(FINDINGS_LEN);
        let findings = Self {
            known: Mutex::default(),
            say,
        };
        findings.say_new(plan);
        (findings, said)
    }

    fn say_new(&self, plan: &Plan) {
        let now: Vec<String> = plan.all_diagnoses().map(render_diagnosis).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in now.iter().filter(|finding| !known.contains(finding)) {
            // What does not fit is found again by `toolway doctor`.
            let _ = self.say.try_send(finding.clone());
        }
        *known = now;
    }
}
