//! What every command starts from: the environment, the flags, the streams, and the plan.
//!
//! Owns the lookups that several commands share (a server by name, with a near miss suggested).

mod offline;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use toolway::{Recorder, UserSetup, installs_first};
use toolway_config::{
    Environment, Flags, Plan, PlannedServer, ServerVerdict, address_without_secrets,
};
use toolway_types::{Diagnosis, Origin, Scope, Severity, TransportKind, TransportSpec};

use crate::exit::Exit;
use crate::kept_hosts::RunInDaemon;
use crate::output::{Errors, Output};
use crate::report::{self, About, Outcome, Report, login_words, render_diagnosis};
use crate::signals::{SignalSource, Signals};
use crate::streams::Streams;
use crate::terminal_turns::TerminalTurns;
use crate::typed::{TypedTarget, as_address};

/// Findings about servers' entries that are printed in full before the others are counted.
const ENTRIES_AT_ONCE: usize = 4;

/// One run of the program.
pub(crate) struct Context {
    /// What hosts are made of.
    pub(crate) setup: UserSetup,
    pub(crate) output: Output,
    /// Who has the terminal while a host runs.
    pub(crate) turns: Arc<TerminalTurns>,
    plan: OnceCell<Plan>,
    /// What keeps servers from being logged in to by themselves, as hosts found out.
    advice: RefCell<BTreeMap<String, String>>,
    /// The server that was typed in place of a configured one.
    typed: RefCell<Option<(String, TypedTarget)>>,
    /// What was said of the set-up.
    said: RefCell<Vec<Diagnosis>>,
    signals: SignalSource,
    daemon: Option<RunInDaemon>,
    /// The flags that leave the daemon out.
    alone: Vec<&'static str>,
    recorder: Option<Recorder>,
}

impl Context {
    /// For a run of this process.
    pub(crate) fn new(environment: Environment, flags: Flags, errors: Errors) -> Self {
        Self::of_run(
            environment,
            flags,
            errors,
            Streams::default(),
            SignalSource::default(),
        )
    }

    /// For a run in this environment, on these streams.
    pub(crate) fn of_run(
        environment: Environment,
        flags: Flags,
        errors: Errors,
        streams: Streams,
        signals: SignalSource,
    ) -> Self {
        let environment = toolway_config::with_managed_variables(environment);
        let output = Output::on(streams, &environment).telling(errors);
        Self {
            signals,
            daemon: None,
            alone: Vec::new(),
            recorder: None,
            setup: UserSetup::new(environment, flags),
            output,
            turns: TerminalTurns::new(),
            plan: OnceCell::new(),
            advice: RefCell::default(),
            typed: RefCell::default(),
            said: RefCell::default(),
        }
    }

    /// Has this run use what the daemon keeps, by the plan that this goes by.
    pub(crate) fn use_daemon(&mut self, daemon: RunInDaemon, plan: Plan) {
        self.daemon = Some(daemon);
        self.plan = OnceCell::from(plan);
    }

    /// Has hosts of this run record what is said to servers.
    pub(crate) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// What records it.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// What the daemon keeps, if this run is in it and has a host there: what is typed in place of a
    /// configured server is in no file, and so in no other host.
    pub(crate) fn daemon(&self) -> Option<&RunInDaemon> {
        self.daemon
            .as_ref()
            .filter(|_| self.typed.borrow().is_none())
    }

    /// These flags leave the daemon out.
    pub(crate) fn note_alone(&mut self, flags: Vec<&'static str>) {
        self.alone = flags;
    }

    /// The flags that leave the daemon out of what this run starts, if any does.
    pub(crate) fn alone(&self) -> &[&'static str] {
        &self.alone
    }

    /// This run ends by a signal, as a program did that it ran.
    pub(crate) fn end_by(&self, signal: i32) {
        self.signals.end_by(signal);
    }

    /// The signals that end this run, listened to from now on. Must be called inside a runtime.
    pub(crate) fn signals(&self) -> Signals {
        Signals::listen(&self.signals)
    }

    /// The signal that this run ended by, if it did not end by itself.
    pub(crate) fn ended_by(&self, exit: Exit) -> Option<i32> {
        self.signals.ends_by(exit)
    }

    /// A path as it was typed, from the directory where that was.
    pub(crate) fn path(&self, typed: impl AsRef<Path>) -> PathBuf {
        self.environment().cwd().join(typed)
    }

    /// What the run was started with.
    pub(crate) fn environment(&self) -> &Environment {
        self.setup.environment()
    }

    /// What the command line says about configuration.
    pub(crate) fn flags(&self) -> &Flags {
        self.setup.flags()
    }

    /// Has secrets saved in plain text, unless that is forbidden.
    pub(crate) fn keep_in_plain_text(&mut self) -> Result<(), Report> {
        let plan = self.plan.get_or_init(|| self.setup.plan());
        Ok(self.setup.keep_in_plain_text(plan)?)
    }

    /// Says something that is not a result.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        self.output.say(text.as_ref());
    }

    /// Says what is wrong without ending the command.
    pub(crate) fn warn(&self, text: impl Display) {
        self.say(format!("warning: {text}"));
    }

    /// Says what can be done next.
    pub(crate) fn hint(&self, text: impl Display) {
        self.say(format!("hint: {text}"));
    }

    /// Says an error, and what helps, without ending the command.
    pub(crate) fn warn_of(&self, report: &Report) {
        self.warn(&report.message);
        if let Some(hint) = &report.hint {
            self.hint(hint);
        }
    }

    /// Ends a command whose whole result is a JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> Outcome {
        self.output.json(value)?;
        Ok(Exit::Success)
    }

    /// Notes that a server was typed in place of a configured one.
    pub(crate) fn note_typed(&self, name: &str, what: TypedTarget) {
        *self.typed.borrow_mut() = Some((name.to_owned(), what));
    }

    /// A hint whose commands work for servers that no file names.
    pub(crate) fn reached(&self, hint: String) -> String {
        if let Some((name, what)) = &*self.typed.borrow() {
            return report::ad_hoc(&hint, name, what).unwrap_or_else(|| {
                let login = if hint.contains("`toolway login ") {
                    ", then log in with `toolway login <name>`"
                } else {
                    ""
                };
                format!("add it first: {}{login}", what.adding())
            });
        }
        if self.flags().mcp_config.is_empty() && self.flags().mcp_server.is_empty() {
            return hint;
        }
        let given = self.plan().servers.iter();
        let given = given.filter(|server| server.scope == Scope::Dynamic);
        let given: Vec<&str> = given.map(|server| server.name.as_str()).collect();
        report::by_flags(&hint, &given, self.flags())
    }

    /// Notes what a host found out about a server that wants a login.
    pub(crate) fn note_advice(&self, server: &str, advice: String) {
        self.advice.borrow_mut().insert(server.to_owned(), advice);
    }

    /// What keeps a server from being logged in to by itself, where a host found that out.
    pub(crate) fn advice(&self, server: &str) -> Option<String> {
        self.advice.borrow().get(server).cloned()
    }

    /// A report with what is known about the login that it asks for, and with commands that work.
    pub(crate) fn advised(&self, report: Report) -> Report {
        let mut report = self.with_login(report);
        report.hint = report.hint.map(|hint| self.reached(hint));
        report
    }

    fn with_login(&self, report: Report) -> Report {
        let server = match &report.about {
            Some(About::WantsLogin(server)) => server.clone(),
            Some(About::Failed(server)) => {
                let hint = self.offline_hint(server);
                return report.better_hint(hint);
            }
            None => return report,
        };
        if let Some(advice) = self.advice(&server) {
            return report.hint(advice);
        }
        let entry = self.plan().winner(&server);
        if entry
            .and_then(|entry| entry.transport)
            .is_some_and(TransportKind::is_connector)
        {
            return report.hint("log in to your account with `toolway account login`");
        }
        match entry.and_then(PlannedServer::account) {
            Some(account) => {
                let words = login_words(&server, Some(account));
                report.hint(format!("log in with `toolway login {words}`"))
            }
            None => report,
        }
    }

    /// What to do about a server that a program fetches, on a machine without a network.
    pub(crate) fn offline_hint(&self, server: &str) -> Option<String> {
        let ServerVerdict::Admitted(spec) = &self.plan().winner(server)?.verdict else {
            return None;
        };
        match &spec.transport {
            TransportSpec::Stdio(process) if installs_first(process) => offline::hint(process),
            _ => None,
        }
    }

    /// The plan, made on first use: commands that need none read no file.
    pub(crate) fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| self.setup.plan())
    }

    /// A plan for other flags, e.g. with a server typed on the command line.
    pub(crate) fn plan_with(&self, flags: &Flags) -> Plan {
        toolway_config::plan(self.environment(), flags)
    }

    /// Prints what is wrong with the configuration. Many findings about entries are counted, so that
    /// they do not hide the answer.
    pub(crate) fn say_diagnoses(&self, plan: &Plan) {
        self.say_unreadable(plan);
        let entries: Vec<&Diagnosis> = plan
            .servers
            .iter()
            .flat_map(|server| &server.diagnoses)
            .collect();
        let shown = if entries.len() > ENTRIES_AT_ONCE {
            ENTRIES_AT_ONCE - 1
        } else {
            entries.len()
        };
        let (shown, counted) = entries.split_at(shown);
        for diagnosis in shown {
            self.output.diagnosis(diagnosis);
        }
        if !counted.is_empty() {
            self.output.say(&format!(
                "and {} more findings like these\nhint: see all of them with `toolway doctor`",
                counted.len()
            ));
        }
    }

    /// Prints findings as people read them, also where errors are told as JSON.
    pub(crate) fn say_findings<'a>(&self, findings: impl IntoIterator<Item = &'a Diagnosis>) {
        for finding in findings {
            self.say(render_diagnosis(finding));
        }
    }

    /// As [`Context::say_findings`], each finding once in a run.
    pub(crate) fn say_once(&self, findings: impl IntoIterator<Item = Diagnosis>) {
        for finding in findings {
            let mut said = self.said.borrow_mut();
            if !said.contains(&finding) {
                self.say_findings([&finding]);
                said.push(finding);
            }
        }
    }

    /// Prints what is wrong with whole files: a server that is not known may stand in one. Other
    /// servers' entries have nothing to do with it.
    pub(crate) fn say_unreadable(&self, plan: &Plan) {
        for diagnosis in &plan.diagnoses {
            self.output.diagnosis(diagnosis);
        }
    }

    /// As [`Context::say_diagnoses`], but a fault in what was typed ends the command: a flag is
    /// not one file among many.
    pub(crate) fn require_flags(&self, plan: &Plan) -> Result<(), Report> {
        require_flags_only(plan)?;
        self.say_diagnoses(plan);
        Ok(())
    }

    /// The entry that counts for a name, or an error that suggests the nearest one.
    pub(crate) fn server(&self, name: &str) -> Result<&PlannedServer, Report> {
        self.plan()
            .winner(name)
            .ok_or_else(|| unknown_server(self.plan(), name))
    }
}

/// A fault in what was typed ends the command; faults of files are not said.
pub(crate) fn require_flags_only(plan: &Plan) -> Result<(), Report> {
    let typed = |diagnosis: &&Diagnosis| {
        diagnosis.severity == Severity::Error
            && matches!(diagnosis.origin, Some(Origin::Flag { .. }))
    };
    if let Some(fault) = plan.diagnoses.iter().find(typed) {
        return Err(Report::from(fault.clone()));
    }
    Ok(())
}

/// No such server: says so, and names the nearest.
pub(crate) fn unknown_server(plan: &Plan, name: &str) -> Report {
    let report = Report::configuration(format!("no server named `{name}` is configured"));
    match plan.suggest(name) {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        // No name has these.
        None if name.contains(['/', ':'])
            && let Some(address) = as_address(name) =>
        {
            let address = address_without_secrets(&address);
            report.hint(format!("did you mean `{address}`?"))
        }
        None if plan.servers.is_empty() => {
            report.hint("add one with `toolway add <name> <command or url>`")
        }
        None => report.hint("see what is configured with `toolway list --no-connect`"),
    }
}
