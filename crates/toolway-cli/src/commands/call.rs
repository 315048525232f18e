//! `toolway call`: one call of one tool.
//!
//! Owns reading what was typed: which tool (`call/target.rs`), which arguments
//! (`call/arguments.rs`), and how the answer is printed (`call/answer.rs`). Many calls at once are
//! `call/batch.rs`.

mod answer;
mod arguments;
mod batch;
mod login;
mod path;
mod schema;
mod target;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::sync::watch;
use toolway::projection::Projection;
use toolway::{
    BatchOrder, CallError, CallFault, CallOptions, Consent, Progress, ResultDelivery, TimeLimit,
    ToolOutcome, ToolRequest, ToolTarget,
};
use toolway_types::ServerName;
use toolway_wire::era::method;
use toolway_wire::error::{MISSING_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED};

use super::admitted::{find_by_exposed, require_admitted};
use crate::connect::{self, CommandHost, Typed, TypedCommand, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, did_you_mean};

pub(crate) use answer::as_text;
pub(super) use path::steps;
pub(super) use schema::Schema;
pub(super) use target::dotted;
use target::{Server, Target};
pub(super) use usage::Place;

/// Call a tool
///
/// Arguments are `key=value` (typed by the tool's schema), `key:=json`, `key=@file`, or a JSON
/// object by `--args`; `ship_to.city=Bergen` and `items[0].id=7` lead into objects and lists. A
/// tool that only one server has needs no server. What you type is your yes: no permission prompt appears unless a
/// hook wants one or the tool's definition changed, but deny rules and policy still refuse.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway call time get_current_time timezone=Europe/Berlin
  toolway call time.get_current_time timezone=Europe/Berlin
  toolway call get_current_time timezone=Europe/Berlin
  toolway call mcp__time__get_current_time --args '{\"timezone\": \"Europe/Berlin\"}'
  toolway call https://mcp.example.com/mcp search query='rust async'
  toolway call echo message=hi -- npx -y @modelcontextprotocol/server-everything
  TOOLWAY_TOOL_SEARCH=true toolway call ToolSearch query='open an issue'
  toolway call github list_issues repo=acme/site --select '.items[] | {number, title}'
  toolway call --batch - < calls.jsonl")]
pub(crate) struct CallArgs {
    /// The server and the tool, then the arguments
    #[arg(required_unless_present = "batch", num_args = 1.., value_names = ["SERVER", "TOOL", "KEY=VALUE"])]
    words: Vec<String>,

    /// All arguments as one JSON object; `@file` reads a file, `-` reads stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,

    /// Print the whole MCP result as JSON
    #[arg(long)]
    json: bool,

    /// Print what a model would get: long text saved to a file, pictures made to fit
    #[arg(long)]
    bounded: bool,

    /// Print only some fields of a structured or JSON result, e.g. `.items[].id`
    ///
    /// A small part of `jq`: `.field`, `."odd field"`, `[2]`, `[2:5]`, `[]`, `?`, `|`, `,`,
    /// `[…]`, `{a, b: .c}`. Texts are printed as they are, everything else as JSON, one a line;
    /// with `--json` one array of all of it.
    #[arg(long, value_name = "FILTER")]
    select: Option<Projection>,

    /// The longest it may take in all, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// Ask before it runs, as an agent's call would be asked about
    #[arg(long)]
    ask: bool,

    /// Accept that the tool's definition changed since it was last permitted
    #[arg(long, conflicts_with = "ask")]
    accept_change: bool,

    /// Many calls, `{"server": …, "tool": …, "arguments": {…}}` on each line of a file, or of
    /// stdin with `-`; prints a line of JSON for each, in the same order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["words", "args", "json", "command", "bounded", "select", "ask"])]
    batch: Option<String>,

    /// Run all calls of a batch beside each other, also those that may write
    #[arg(long, requires = "batch", conflicts_with = "words")]
    parallel: bool,

    #[command(flatten)]
    command: TypedCommand,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CallArgs) -> Outcome {
    let consent = match (args.ask, args.accept_change) {
        (true, _) => Consent::Prompt,
        (false, true) => Consent::Reviewed,
        (false, false) => Consent::Typed,
    };
    if let Some(file) = &args.batch {
        let timeout = args.timeout.map(Duration::from_secs);
        let order = if args.parallel {
            BatchOrder::Parallel
        } else {
            BatchOrder::InOrder
        };
        return batch::run(context, file, timeout, consent, order);
    }
    let typed = Typed::either(
        context,
        args.words.first().map(String::as_str),
        &args.command,
    )?;
    let plan = match &typed {
        Some(typed) => context.plan_with(&typed.flags),
        None => context.plan().clone(),
    };
    let target = target::parse(&plan, &args.words, typed.as_ref(), !args.command.is_empty())
        .inspect_err(|report| {
            // A server that is not known may stand in a file that could not be read.
            if report.exit == Exit::Configuration {
                context.say_unreadable(&plan);
            }
        })?;
    if typed.is_none() {
        crate::context::require_flags_only(&plan)?;
    }
    let (server, wanted) = match &target.server {
        Server::Named(name) => {
            let server = require_admitted(context, &plan, name)?;
            (server.clone(), Wanted::Only(server))
        }
        Server::FromExposed(exposed) => find_by_exposed(context, &plan, exposed)?,
        // It tells of all servers, or is one's of them.
        Server::Host(_) | Server::Unnamed => (ServerName::built_in(), Wanted::All),
    };
    // Only then does the mode matter: what is typed is a yes.
    if let (Consent::Prompt, Some(idle)) = (consent, plan.permissions.idle_auto()) {
        context.warn(&idle.message);
    }
    let words = arguments::Words::parse(context, target.rest, args.args.as_deref())?;
    let timeout = args.timeout.map(Duration::from_secs);
    let place = match (&typed, args.words.first()) {
        _ if server.is_built_in() => Place::Host,
        (Some(_), _) if !args.command.is_empty() => Place::Command(&args.command),
        (Some(_), Some(url)) => Place::Server(url),
        _ => Place::Server(server.as_str()),
    };
    let wish = Wish {
        tool: target.tool(&server),
        words,
        place,
        print: answer::Wanted {
            json: args.json,
            bounded: args.bounded,
            select: args.select.as_ref(),
        },
        timeout,
        typed: typed.as_ref(),
        consent,
    };
    connect::with_user(context, plan, wanted, async |host| {
        let start = Instant::now();
        let ready = context.turns.beside(|| connect::settle(context, host));
        match timeout {
            None => ready.await,
            Some(limit) => tokio::time::timeout(limit, ready)
                .await
                .map_err(|_| not_connected(&server, limit))?,
        }
        if target.server != Server::Unnamed {
            return call(context, host, wish, start).await;
        }
        let key = target::the_only(&host.snapshot(), &target.tool)?;
        let wish = Wish {
            place: Place::Server(key.server.as_str()),
            tool: ToolTarget::Key(key.clone()),
            ..wish
        };
        call(context, host, wish, start).await
    })
}

/// What was typed, as far as it can be understood before the server is asked.
struct Wish<'a> {
    tool: ToolTarget,
    words: arguments::Words,
    place: Place<'a>,
    print: answer::Wanted<'a>,
    timeout: Option<Duration>,
    typed: Option<&'a Typed>,
    consent: Consent,
}

fn not_connected(server: &ServerName, limit: Duration) -> Report {
    let message = if server.is_built_in() {
        format!("not every server is connected after {limit:?}")
    } else {
        format!("server `{server}` is not connected after {limit:?}")
    };
    Report::new(Exit::TimedOut, message).hint("give it longer with `--timeout <seconds>`")
}

async fn call(
    context: &Context,
    host: &CommandHost<'_>,
    wish: Wish<'_>,
    start: Instant,
) -> Outcome {
    let snapshot = host.snapshot();
    crate::commands::list::say_warnings(context, &snapshot);
    let tool = snapshot.catalog.find(&wish.tool).ok();
    let schema: Value = tool
        .and_then(|tool| serde_json::from_str(tool.input_schema.get()).ok())
        .unwrap_or(Value::Null);
    let name = tool.map_or("", |tool| tool.key.tool.as_str());
    let arguments = wish.words.resolve(&schema, context)?;
    for warning in usage::unknown(name, &schema, &arguments) {
        context.warn(&warning);
    }
    let usage = usage::line(&wish.place, name, &schema);
    let request = ToolRequest::new(wish.tool, arguments);
    let options = CallOptions {
        timeout: wish
            .timeout
            .map(|limit| limit.saturating_sub(start.elapsed())),
        delivery: match (wish.print.bounded, wish.print.select) {
            (false, _) => ResultDelivery::Whole,
            (true, None) => ResultDelivery::Bounded,
            (true, Some(projection)) => ResultDelivery::Selected(projection.clone()),
        },
        trace: context.setup.given_trace(),
        ..CallOptions::new(wish.consent)
    };
    let outcome = watched(context, host, request, options)
        .await
        .map_err(|mut error| {
            let better = match &error {
                CallError::Failed(_, CallFault::Invalid(_)) => {
                    Some(format!("it is called as `{usage}`"))
                }
                // Suggested the way it was typed.
                CallError::Unknown {
                    target: ToolTarget::Key(_),
                    suggestions,
                } => {
                    let near = suggestions.iter().filter_map(|near| {
                        let mut tools = snapshot.catalog.tools();
                        let tool = tools.find(|tool| tool.name == *near)?;
                        let alias = snapshot.catalog.alias(&tool.key);
                        let name = alias.unwrap_or(&tool.key.tool);
                        Some(usage::line(&wish.place, name, &Value::Null))
                    });
                    did_you_mean(&near.collect::<Vec<_>>())
                }
                CallError::Unavailable { state, .. } => {
                    wish.typed.and_then(|typed| typed.hint(state))
                }
                error if !context.output.can_ask() && wants_user(error) => Some(format!(
                    "run `{}` in a terminal, or answer with an `Elicitation` hook",
                    usage::line(&wish.place, name, &Value::Null)
                )),
                _ => None,
            };
            if let Some(report) = target::missing_built_in(&error) {
                return report;
            }
            if let CallError::Failed(_, CallFault::TimedOut { after, limit }) = &mut error
                && *limit == TimeLimit::Whole
            {
                // The whole time counts, not what was left of it.
                *after = wish.timeout.unwrap_or(*after);
            }
            Report::from(error).better_hint(better)
        })?;
    let takes_some = !Schema::new(&schema).arguments().known.is_empty();
    let usage = takes_some.then_some(usage.as_str());
    answer::print(context, &outcome, wish.print, usage)?;
    let limit = login::Limit {
        began: start,
        after: wish.timeout,
    };
    login::awaited(context, host, limit).await?;
    Ok(if outcome.is_error {
        Exit::ToolError
    } else {
        Exit::Success
    })
}

/// Whether the call failed because the server wanted to ask the user something.
fn wants_user(error: &CallError) -> bool {
    let CallError::Failed(_, fault) = error else {
        return false;
    };
    match fault {
        CallFault::InputRefused(input) => {
            input.as_received().starts_with(method::ELICITATION_CREATE)
        }
        CallFault::Protocol { code, data, .. } => match *code {
            URL_ELICITATION_REQUIRED => true,
            MISSING_CLIENT_CAPABILITY => data
                .as_ref()
                .is_some_and(|data| data.get().contains("elicitation")),
            _ => false,
        },
        _ => false,
    }
}

/// Makes the call; where there is a terminal, one that takes long says what is waited for.
async fn watched(
    context: &Context,
    host: &CommandHost<'_>,
    request: ToolRequest,
    mut options: CallOptions,
) -> Result<ToolOutcome, CallError> {
    if !context.output.can_animate() {
        return host.call(request, options).await;
    }
    let what = match &request.target {
        ToolTarget::Key(key) => format!("`{}` of server `{}`", key.tool, key.server),
        ToolTarget::Exposed(name) => format!("`{name}`"),
    };
    let (newest, news) = watch::channel(None);
    options.progress = Some(Arc::new(move |progress| {
        newest.send_replace(Some(progress));
    }));
    let view = context.turns.beside(|| show(context, &what, news.clone()));
    tokio::select! {
        outcome = host.call(request, options) => outcome,
        never = view => match never {},
    }
}

/// Says what is waited for until it is dropped.
async fn show(
    context: &Context,
    what: &str,
    news: watch::Receiver<Option<Progress>>,
) -> std::convert::Infallible {
    // A terminal that cannot be drawn on is no reason to fail.
    let errors = context.output.streams().error_writer();
    let _ = toolway_tui::wait(what, news, errors, connect::view(context)).await;
    std::future::pending().await
}

impl Target<'_> {
    /// What the host is asked for.
    fn tool(&self, server: &ServerName) -> ToolTarget {
        match &self.server {
            Server::FromExposed(name) | Server::Host(name) => ToolTarget::Exposed(name.clone()),
            Server::Named(_) | Server::Unnamed => ToolTarget::Key(toolway_types::ToolKey::new(
                server.clone(),
                self.tool.clone(),
            )),
        }
    }
}
