//! `toolway audit`: every call that was asked for, by whom, and what became of it.
//!
//! Owns the choice of lines and their printing. The file, and that no argument stands in it
//! unless asked for, are the library's (`toolway::audit`).

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Args;
use clap::builder::PossibleValuesParser;
use toolway::audit::{self, AuditLine, CallEnd, CallRecord, DecidedBy, RecordedDecision};
use toolway::journal::timestamp;

use super::follow::follow;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, unwritable};

/// Show which tools were called, and who allowed it
///
/// Every call of this machine's Toolway processes is one line: when, by whom, server and tool,
/// who decided that it may run, how long it took and how it ended. Arguments and results are not
/// in it unless `TOOLWAY_AUDIT` says so (`off`, `calls`, `arguments`, `results`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway audit
  toolway audit github --since 1d
  toolway audit --outcome refused --json
  toolway audit -f")]
pub(crate) struct AuditArgs {
    /// Only calls of this server; also of one that is not configured any more
    server: Option<String>,

    /// Only calls of this tool, by its own name
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Only calls that ended so. Repeatable
    #[arg(long, value_name = "END", value_parser = PossibleValuesParser::new(CallEnd::ALL.map(CallEnd::as_str)))]
    outcome: Vec<String>,

    /// Only calls of the last so many seconds, minutes, hours or days: `90s`, `15m`, `2h`, `7d`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Duration>,

    /// Stay, and show what comes until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// How many of the last calls to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,

    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// What is shown of the lines.
struct Choice<'a> {
    args: &'a AuditArgs,
    /// Times are spelled so that their order is the order of letters.
    since: Option<String>,
}

impl Choice<'_> {
    fn wants(&self, line: &AuditLine) -> bool {
        let time = match line {
            AuditLine::Call(record) => &record.time,
            AuditLine::Lost { time, .. } => time,
        };
        if self.since.as_ref().is_some_and(|since| time < since) {
            return false;
        }
        let args = self.args;
        let AuditLine::Call(record) = line else {
            // What is missing may be what is looked for.
            return true;
        };
        let server = args.server.as_deref();
        let tool = args.tool.as_deref();
        let outcome = record.outcome.as_str();
        server.is_none_or(|server| record.server.as_deref() == Some(server))
            && tool.is_none_or(|tool| record.tool == tool)
            && (args.outcome.is_empty() || args.outcome.iter().any(|wanted| wanted == outcome))
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AuditArgs) -> Outcome {
    let directory = context.setup.files().audit();
    let since = args.since.map(|since| {
        let then = SystemTime::now().checked_sub(since);
        timestamp(then.unwrap_or(SystemTime::UNIX_EPOCH))
    });
    let choice = Choice { args, since };
    let read = audit::read_last(&directory, args.lines, |line| choice.wants(line));
    let unusable = |error: &io::Error| {
        let message = format!("what was called cannot be read: {error}");
        Report::new(Exit::Unexpected, message).hint(unwritable(&directory, error.kind()))
    };
    let found = read.map_err(|error| unusable(&error))?;
    if found.is_none()
        && let Some(error) = fault_of(&directory)
    {
        return Err(unusable(&error));
    }
    let Some((lines, follower)) = found else {
        if args.json {
            return Ok(Exit::Success);
        }
        context.say("nothing was called yet");
        return Ok(Exit::Success);
    };
    match follower.unreadable() {
        0 => {}
        1 => context.warn("one line could not be read and is left out"),
        many => context.warn(format!("{many} lines could not be read and are left out")),
    }
    if args.json || args.follow {
        for line in &lines {
            put(context, line, args)?;
        }
    } else if lines.is_empty() {
        context.say("no such calls were written down");
    } else {
        let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
        let whole = ["TIME", "OUTCOME"];
        context.output.table_keeping(&whole, &HEAD, &rows)?;
    }
    if !args.follow {
        return Ok(Exit::Success);
    }
    follow(context, follower, |line| {
        if choice.wants(line) {
            put(context, line, args)?;
        }
        Ok(())
    })
}

/// Why nothing can be written down in a place, where it is not merely empty.
fn fault_of(directory: &Path) -> Option<io::Error> {
    match std::fs::read_dir(directory) {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(error),
    }
}

const HEAD: [&str; 8] = [
    "TIME", "WHO", "SERVER", "TOOL", "OUTCOME", "TOOK", "SIZE", "DECIDED",
];

fn row(line: &AuditLine) -> Vec<String> {
    let dash = || "-".to_owned();
    match line {
        AuditLine::Call(record) => vec![
            seconds(&record.time),
            record.who.clone().unwrap_or_else(dash),
            record.server.clone().unwrap_or_else(dash),
            record.tool.clone(),
            end(record),
            took(record.milliseconds),
            record.received.map_or_else(dash, size),
            decided(record),
        ],
        AuditLine::Lost { time, lost } => {
            let what = format!("{lost} calls are missing here: they could not be written down");
            let mut cells = vec![seconds(time)];
            cells.extend(std::iter::repeat_with(dash).take(HEAD.len() - 2));
            cells.push(what);
            cells
        }
    }
}

fn put(context: &Context, line: &AuditLine, args: &AuditArgs) -> Result<(), Report> {
    if args.json {
        context.output.json_line(line)?;
    } else {
        let text = format!("{}\n", row(line).join("  "));
        context.output.paragraphs(&text, None)?;
    }
    Ok(())
}

/// A time without its fraction.
fn seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => time.to_owned(),
    }
}

fn end(record: &CallRecord) -> String {
    match record.code {
        Some(code) => format!("{} ({code})", record.outcome.as_str()),
        None => record.outcome.as_str().to_owned(),
    }
}

fn took(milliseconds: u64) -> String {
    match milliseconds {
        ..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{}.{}s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!("{}m{:02}s", milliseconds / 60_000, milliseconds / 1000 % 60),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        ..1_024 => format!("{bytes}B"),
        1_024..1_048_576 => format!("{}K", bytes / 1_024),
        _ => format!("{}M", bytes / 1_048_576),
    }
}

/// Who decided, and the hooks that changed what was said.
fn decided(record: &CallRecord) -> String {
    let mut cell = decider(record);
    for (what, hook) in [
        ("arguments", &record.rewritten_by),
        ("output", &record.replaced_by),
    ] {
        if let Some(hook) = hook {
            let _ = write!(cell, "; {what} by hook `{}`", hook.hook);
        }
    }
    cell
}

fn decider(record: &CallRecord) -> String {
    let by = match &record.by {
        Some(DecidedBy::Rule { rule, origin }) => format!("rule `{rule}` in {origin}"),
        Some(DecidedBy::Hook { hook, origin }) => format!("hook `{hook}` in {origin}"),
        Some(DecidedBy::Classifier { classifier, origin }) => {
            format!("classifier `{classifier}` in {origin}")
        }
        Some(DecidedBy::BuiltIn) => "built-in".to_owned(),
        Some(DecidedBy::Mode) => "mode".to_owned(),
        Some(DecidedBy::Typed) => "typed".to_owned(),
        Some(DecidedBy::Caller) => "left to the caller".to_owned(),
        Some(DecidedBy::Person) => "asked".to_owned(),
        Some(DecidedBy::Session) => "asked before".to_owned(),
        Some(DecidedBy::Changed) => "its definition changed".to_owned(),
        Some(DecidedBy::Nobody) => "nobody to ask".to_owned(),
        Some(DecidedBy::Unreadable { origin }) => format!("{origin} cannot be read"),
        None => return "-".to_owned(),
    };
    match record.decision {
        Some(RecordedDecision::Refused) => format!("refused: {by}"),
        Some(RecordedDecision::Allowed) | None => by,
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time such as `90s`, `15m`, `2h` or `7d`");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(factor).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}
