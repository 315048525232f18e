//! `toolway call --batch`: many calls in one run, a line of JSON each, in and out.
//!
//! Owns the two kinds of line. Everything is read and understood before anything is sent; what
//! runs beside what is the library's to decide.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolway::builtin::{self, RESERVED};
use toolway::{
    BatchOrder, CallError, CallFault, CallOptions, Consent, ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_config::Plan;
use toolway_rows::AnswerRow;
use toolway_types::ToolKey;

use super::answer::as_text;
use super::usage::{self, Place};
use super::{login, target};
use crate::commands::admitted::{find_by_exposed, require_admitted};
use crate::connect::{self, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// The most that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most calls of one batch.
const MAX_CALLS: usize = 10_000;

/// One call to make. Without a server, the tool is named as models see it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    server: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Makes every call of a file, or of stdin, and prints what came of each in the same order. The
/// exit code is that of the first call that failed.
pub(super) fn run(
    context: &Context,
    file: &str,
    timeout: Option<Duration>,
    consent: Consent,
    order: BatchOrder,
) -> Outcome {
    let lines = read(context, file)?;
    let plan = context.plan().clone();
    crate::context::require_flags_only(&plan)?;
    // Each line with its request, or with why there is none.
    let planned: Vec<Result<(Wanted, ToolRequest), Report>> = lines
        .iter()
        .map(|line| request(context, &plan, line))
        .collect();
    let wanted = planned.iter().flatten().map(|(wanted, _)| wanted);
    let wanted = Wanted::together(wanted);
    connect::with_user(context, plan, wanted, async |host| {
        let ready = context.turns.beside(|| connect::settle(context, host));
        ready.await;
        crate::commands::list::say_warnings(context, &host.snapshot());
        let options = CallOptions {
            timeout,
            order,
            trace: context.setup.given_trace(),
            ..CallOptions::new(consent)
        };
        let began = Instant::now();
        let requests = planned.iter().flatten();
        let requests = requests.map(|(_, request)| request.clone()).collect();
        let mut outcomes = std::pin::pin!(host.call_each(requests, options));
        let mut first = Exit::Success;
        for (line, planned) in lines.iter().zip(planned.iter()) {
            let outcome = match planned {
                Ok(_) => outcomes.next().await,
                Err(_) => None,
            };
            let exit = match (planned, outcome) {
                (Err(report), _) => print(context, line, Err(report))?,
                (_, Some(Ok(outcome))) => print(context, line, Ok(&outcome))?,
                (_, Some(Err(error))) => {
                    let built_in = target::missing_built_in(&error);
                    let report = built_in.unwrap_or_else(|| failed(error));
                    print(context, line, Err(&report))?
                }
                // Never: there is an outcome for every request.
                (Ok(_), None) => Exit::Unexpected,
            };
            if first == Exit::Success {
                first = exit;
            }
        }
        let limit = login::Limit {
            began,
            after: timeout,
        };
        match login::awaited(context, host, limit).await {
            Err(report) if first == Exit::Success => Err(report),
            _ => Ok(first),
        }
    })
}

fn failed(error: CallError) -> Report {
    let usage = match &error {
        CallError::Failed(ToolKey { server, tool }, CallFault::Invalid(_))
            if server.is_built_in() =>
        {
            builtin::own(tool).map(|own| usage::line(&Place::Host, tool, own.input_schema()))
        }
        _ => None,
    };
    let hint = usage.map(|usage| format!("it is called as `{usage}`"));
    Report::from(error).better_hint(hint)
}

fn print(
    context: &Context,
    line: &Line,
    outcome: Result<&ToolOutcome, &Report>,
) -> Result<Exit, Report> {
    let (exit, result, report) = match outcome {
        Ok(outcome) if outcome.is_error => (Exit::ToolError, Some(outcome.raw.as_raw()), None),
        Ok(outcome) => (Exit::Success, Some(outcome.raw.as_raw()), None),
        Err(report) => (report.exit, None, Some(report)),
    };
    let answer = AnswerRow {
        server: line.server.as_deref().map(Cow::Borrowed),
        tool: line.tool.as_str().into(),
        exit: exit.code(),
        result: result.map(Cow::Borrowed),
        output: outcome
            .ok()
            .filter(|outcome| outcome.replaced_by.is_some())
            .map(as_text),
        replaced_by: outcome
            .ok()
            .and_then(|outcome| outcome.replaced_by.as_deref())
            .map(Cow::Borrowed),
        context: outcome.map_or(&[][..], |outcome| &outcome.context).into(),
        warnings: outcome.map_or(&[][..], |outcome| &outcome.warnings).into(),
        error: report.map(|report| report.message.clone()),
        details: report.map_or_else(Vec::new, |report| report.details.clone()),
        hint: report
            .and_then(|report| report.hint.clone())
            .map(|hint| context.reached(hint)),
    };
    context.output.json_line(&answer)?;
    Ok(exit)
}

fn request(context: &Context, plan: &Plan, line: &Line) -> Result<(Wanted, ToolRequest), Report> {
    let exposed = || ToolTarget::Exposed(line.tool.clone());
    let (wanted, target) = match &line.server {
        Some(name) => {
            let server = require_admitted(context, plan, name)?;
            let key = ToolKey::new(server.clone(), &line.tool);
            (Wanted::Only(server), ToolTarget::Key(key))
        }
        // They tell of all servers.
        None if RESERVED.contains(&line.tool.as_str()) => (Wanted::All, exposed()),
        None => {
            let (_, wanted) = find_by_exposed(context, plan, &line.tool)?;
            (wanted, exposed())
        }
    };
    let arguments = line.arguments.clone();
    Ok((wanted, ToolRequest::new(target, arguments)))
}

fn read(context: &Context, file: &str) -> Result<Vec<Line>, Report> {
    let unreadable = |error: io::Error| {
        Report::usage(format!("cannot read `{file}`: {error}"))
            .hint("name a file with a JSON object on each line, or `-` for stdin")
    };
    let mut text = String::new();
    let read = match file {
        "-" => context
            .output
            .streams()
            .reader()
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text),
        path => File::open(context.path(path))
            .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text)),
    };
    read.map_err(unreadable)?;
    let too_much = |what: String| {
        Report::usage(format!("`{file}` holds more than {what}"))
            .hint("make several batches of it; nothing was sent")
    };
    if text.len() as u64 > MAX_BYTES {
        return Err(too_much(format!("{MAX_BYTES} bytes")));
    }
    let mut lines = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if lines.len() == MAX_CALLS {
            return Err(too_much(format!("{MAX_CALLS} calls")));
        }
        let line = serde_json::from_str(line).map_err(|error| {
            let name = if file == "-" { "stdin" } else { file };
            Report::usage(format!("{name}:{}: this is no call: {error}", place + 1),
            )
            .hint(r#"each line is `{"server": "…", "tool": "…", "arguments": {…}}`; nothing was sent"#)
        })?;
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(Report::usage(format!("`{file}` holds no call"))
            .hint("see how one is written with `toolway call --help`"));
    }
    Ok(lines)
}
