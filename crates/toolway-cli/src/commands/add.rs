//! `toolway add`: writes a server's entry from words.
//!
//! Owns the translation of flags to an entry, and the one function (`write`) through which
//! `add`, `add-json` and `import` all write. What the words for the server mean is `add/target.rs`.

mod place;
mod target;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use toolway_config::edit::{EditError, Edited};
use toolway_config::{ServerVerdict, cross_app_enabled};
use toolway_types::{Diagnosis, Scope, ServerName, Severity, TransportKind, VoucherKind};

use super::auth::account_word;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report};
use crate::typed::is_url;

/// Add a server
///
/// A URL makes an HTTP server (an SSE server where it ends in `/sse`, a WebSocket where it begins
/// with `ws:`), anything else a command. The command's own flags may follow it; where Toolway has
/// one of the same name, put `--` before the command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway add docs https://mcp.example.com/mcp
  toolway add everything npx -y @modelcontextprotocol/server-everything
  toolway add files -s user -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  toolway add git -s user -- uvx mcp-server-git --repository '${workspace}'
  toolway add github-work https://mcp.example.com/mcp --account work
  toolway add tracker https://mcp.example.com/mcp -H 'Authorization: Bearer ${TRACKER_TOKEN}'")]
pub(crate) struct AddArgs {
    /// What to call it
    name: String,

    /// The command with its arguments, or the URL
    #[arg(required = true, value_name = "COMMAND|URL")]
    target: Vec<String>,

    #[command(flatten)]
    writing: Writing,

    /// How to reach it; guessed when absent
    #[arg(short, long, value_parser = transports())]
    transport: Option<TransportKind>,

    /// A variable for the server's process. Repeatable
    #[arg(short, long, value_name = "KEY=VALUE")]
    env: Vec<String>,

    /// A header for every request. Repeatable
    #[arg(short = 'H', long, value_name = "KEY: VALUE")]
    header: Vec<String>,

    /// The process's working directory; `${workspace}` is the one in which Toolway runs
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,

    /// The longest a call may take, in milliseconds
    #[arg(long, value_name = "MS")]
    timeout: Option<u64>,

    /// The protocol era to speak
    #[arg(long, value_parser = ["auto", "legacy", "2026-07-28"])]
    protocol: Option<String>,

    /// The OAuth client id registered for you
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,

    /// The fixed port of the login's callback
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,

    /// Which of your logins it uses, by your word for the account
    #[arg(long, value_name = "NAME", value_parser = account_word)]
    account: Option<String>,

    /// Log in by cross-app access
    #[arg(long)]
    xaa: bool,

    /// Log in by the token that the platform keeps in this file
    #[arg(long, value_name = "FILE")]
    workload_token_file: Option<String>,

    /// Log in by the token of a job of GitHub Actions
    #[arg(long, conflicts_with = "workload_token_file")]
    workload_github_actions: bool,
}

/// Where an entry goes.
#[derive(Debug, Args)]
pub(crate) struct Writing {
    /// Which file to write to
    #[arg(short, long, value_enum, default_value = "local")]
    pub(crate) scope: WritableScope,

    /// Replace an entry of the same name; add a program that is not there yet
    #[arg(long)]
    pub(crate) force: bool,
}

/// The scopes a user can write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritableScope {
    /// You, in this project
    Local,
    /// You, everywhere
    User,
    /// Everyone in this repository (`.mcp.json`)
    Project,
}

impl WritableScope {
    /// All of them.
    pub(crate) const ALL: [WritableScope; 3] = [Self::Local, Self::User, Self::Project];

    /// The scope it stands for.
    pub(crate) fn scope(self) -> Scope {
        match self {
            WritableScope::Local => Scope::Local,
            WritableScope::User => Scope::User,
            WritableScope::Project => Scope::Project,
        }
    }
}

/// The transports that a user writes an entry for.
fn transports() -> impl TypedValueParser<Value = TransportKind> {
    PossibleValuesParser::new(TransportKind::common().map(TransportKind::as_str))
        .try_map(|word| TransportKind::parse(&word).ok_or("there is no such transport"))
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &AddArgs) -> Outcome {
    let target = target::settled(context, args)?;
    let mut definition = definition(args, &target)?;
    let (cwd, scope) = (context.environment().cwd(), args.writing.scope);
    place::write_out(&mut definition, cwd, scope);
    let exit = write(context, &args.name, &definition, &args.writing)?;
    if let Some(advice) = place::advice(&args.name, &definition, cwd, scope) {
        context.say(&advice);
    }
    if args.xaa {
        say_cross_app(context);
    }
    Ok(exit)
}

/// Says what cross-app access still lacks.
fn say_cross_app(context: &Context) {
    if !cross_app_enabled(context.environment()) {
        context.warn(
            "`--xaa` does not count yet: cross-app access is switched off\n\
             hint: set `TOOLWAY_ENABLE_XAA=1`",
        );
    } else if context.setup.plan().identity.is_none() {
        context.warn(
            "`--xaa` needs an identity provider, and none is configured\n\
             hint: set `identityProvider` in your settings",
        );
    }
}

fn definition(args: &AddArgs, target: &[String]) -> Result<Map<String, Value>, Report> {
    let Some((first, rest)) = target.split_first() else {
        return Err(Report::usage("a command or a URL is missing"));
    };
    let transport = match args.transport {
        Some(named) => named,
        None if is_url(first) => TransportKind::of_address(first),
        None => TransportKind::Stdio,
    };
    let kind = transport.as_str();
    let is_stdio = transport == TransportKind::Stdio;
    let (wrong, fits) = if is_stdio {
        let wrong = vec![
            (!args.header.is_empty(), "--header"),
            (args.client_id.is_some(), "--client-id"),
            (args.callback_port.is_some(), "--callback-port"),
            (args.account.is_some(), "--account"),
            (args.xaa, "--xaa"),
            (args.workload_token_file.is_some(), "--workload-token-file"),
            (args.workload_github_actions, "--workload-github-actions"),
        ];
        (wrong, "a server reached by URL")
    } else {
        let wrong = vec![
            (!args.env.is_empty(), "--env"),
            (args.cwd.is_some(), "--cwd"),
        ];
        (wrong, "a server started by a command")
    };
    if let Some((_, flag)) = wrong.iter().find(|(is_given, _)| *is_given) {
        return Err(
            Report::usage(format!("`{flag}` is only for {fits}")).hint(format!(
                "leave `{flag}` out, or see `toolway add --help` for what `{}` can take",
                args.name
            )),
        );
    }
    if is_stdio {
        return Ok(given(json!({
            "type": kind,
            "command": first,
            "args": (!rest.is_empty()).then_some(rest),
            "cwd": args.cwd,
            "env": pairs(&args.env, "=", "--env KEY=VALUE")?,
            "timeout": args.timeout,
            "protocol": args.protocol,
        })));
    }
    if let Some(extra) = rest.first() {
        return Err(Report::usage(format!(
            "`{extra}` follows the URL, but a URL takes no arguments"
        ))
        .hint(format!("leave it out: `toolway add {} {first}`", args.name)));
    }
    let oauth = oauth(args)?;
    Ok(given(json!({
        "type": kind,
        "url": first,
        "headers": pairs(&args.header, ":", "--header 'Key: Value'")?,
        "oauth": (!oauth.is_empty()).then_some(oauth),
        "timeout": args.timeout,
        "protocol": args.protocol,
    })))
}

/// What the flags say about logging in.
fn oauth(args: &AddArgs) -> Result<Map<String, Value>, Report> {
    let workload = match &args.workload_token_file {
        Some(file) => Some(json!({ "tokenFile": file })),
        None => (args.workload_github_actions).then(|| json!({ "githubActions": true })),
    };
    if workload.is_some() && args.writing.scope == WritableScope::Project {
        let message = "a project's file cannot say where this machine's identity is";
        return Err(Report::usage(message)
            .hint("write it to your own settings: `--scope user` or `--scope local`"));
    }
    Ok(given(json!({
        "clientId": args.client_id,
        "callbackPort": args.callback_port,
        "account": args.account,
        "xaa": args.xaa.then_some(true),
        "workload": workload,
    })))
}

/// The members of an object that are not null.
fn given(object: Value) -> Map<String, Value> {
    let Value::Object(mut members) = object else {
        return Map::new();
    };
    members.retain(|_, value| !value.is_null());
    members
}

/// `KEY<separator>VALUE` words as an object; none where there are none.
fn pairs(words: &[String], separator: &str, shape: &str) -> Result<Option<Value>, Report> {
    let mut object = Map::new();
    for word in words {
        let pair = word.split_once(separator);
        let Some((key, value)) = pair.filter(|(key, _)| !key.trim().is_empty()) else {
            // The word itself may be a secret: it is not repeated.
            return Err(
                Report::usage(format!("a value is not of the form `{shape}`"))
                    .hint("see `toolway add --help`"),
            );
        };
        // A header's value has no white space at its edge; a variable's may.
        let value = if separator == ":" {
            value.trim()
        } else {
            value
        };
        object.insert(key.trim().to_owned(), json!(value));
    }
    Ok((!object.is_empty()).then_some(Value::Object(object)))
}

/// Checks an entry as the plan would, writes it, approves it where approval is needed,
/// since the user typed it, and says where it went.
pub(crate) fn write(
    context: &Context,
    name: &str,
    definition: &Map<String, Value>,
    writing: &Writing,
) -> Outcome {
    let server = ServerName::new(name).map_err(|error| {
        Report::usage(error.to_string())
            .hint("use letters, digits, `-` and `_`, e.g. `toolway add my-server <command or url>`")
    })?;
    let scope = writing.scope.scope();
    let warnings = check(context, &server, definition, scope)?;
    // The trial knows nothing of scopes, and your own may name secrets and this machine's identity:
    // there the plan has the word.
    let is_own = matches!(scope, Scope::User | Scope::Local);
    let planned_later = is_own && (names_secret(definition) || names_identity(definition));
    if !planned_later {
        context.say_findings(&warnings);
    }
    context.say_findings(&toolway_config::unpinned(&server, definition));
    let edited = toolway_config::add_server(
        context.environment(),
        scope,
        &server,
        definition,
        if writing.force {
            toolway_config::Existing::Replace
        } else {
            toolway_config::Existing::Keep
        },
    )
    .map_err(|error| Report::for_edit(error, name, scope))?;
    say_written(
        context,
        &format!("added `{name}` to the {scope} scope"),
        &edited,
    );
    let plan = context.setup.plan();
    let mut written = plan.servers.iter();
    let written = written.find(|entry| entry.name == server && entry.scope == scope);
    if let Some(ServerVerdict::Refused { reason }) = written.map(|entry| &entry.verdict) {
        context.warn(format!("`{name}` is refused: {reason}"));
    } else if let Some(winner) = plan.winner(name)
        && winner.scope != scope
    {
        context.warn(format!(
            "`{name}` of the {} scope ({}) wins over it",
            winner.scope, winner.origin
        ));
    } else if let Some(winner) = plan.winner(name)
        && planned_later
    {
        // It is written, so it is no error of this command.
        let warnings = winner.diagnoses.iter().cloned().map(|finding| Diagnosis {
            severity: Severity::Warning,
            ..finding
        });
        context.say_findings(&warnings.collect::<Vec<_>>());
    }
    Ok(Exit::Success)
}

/// Whether a value of an entry stands elsewhere: `${keychain:…}`, `${file:…}` or `${cmd:…}`.
fn names_secret(definition: &Map<String, Value>) -> bool {
    let text = Value::Object(definition.clone()).to_string();
    let kinds = ["${keychain:", "${file:", "${cmd:"];
    kinds.iter().any(|kind| text.contains(kind))
}

/// Whether an entry logs in as this machine.
fn names_identity(definition: &Map<String, Value>) -> bool {
    let oauth = definition.get("oauth");
    let names = |kind: &VoucherKind| oauth.is_some_and(|oauth| oauth.get(kind.as_str()).is_some());
    VoucherKind::ALL.iter().any(names)
}

/// Refuses an entry that could never work before anything is written. What may be wrong with it
/// otherwise is given back.
fn check(
    context: &Context,
    name: &ServerName,
    definition: &Map<String, Value>,
    scope: Scope,
) -> Result<Vec<Diagnosis>, Report> {
    let findings = toolway_config::check_definition(context.environment(), name, definition, scope);
    let (warnings, errors): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.severity == Severity::Warning);
    match errors.into_iter().next() {
        None => Ok(warnings),
        Some(finding) => {
            let valid = toolway_config::validate(name, definition)
                .iter()
                .all(|fault| fault.severity != Severity::Error);
            let report = Report::new(
                // What is right in itself can only have been refused.
                if valid {
                    Exit::Refused
                } else {
                    Exit::Configuration
                },
                format!("server `{name}` is not added: {}", finding.message),
            );
            Err(report
                .hint("see `toolway add --help`")
                .better_hint(finding.hint))
        }
    }
}

/// Says what was written and where, and where the old content is.
pub(crate) fn say_written<T>(context: &Context, what: &str, edited: &Edited<T>) {
    let place = match edited.line {
        Some(line) => format!("{}:{line}", edited.path.display()),
        None => edited.path.display().to_string(),
    };
    if edited.changed {
        context.say(format!("{what}: {place}"));
    } else {
        context.say(format!("{what}: {place} (no change)"));
    }
}

impl Report {
    /// An error while writing a server's entry.
    pub(crate) fn for_edit(error: EditError, name: &str, scope: Scope) -> Self {
        match error {
            EditError::Exists { path, .. } => Report::configuration(format!(
                "server `{name}` is already in {}",
                path.display()
            ))
            .hint(format!(
                "replace it with `--force`, or remove it first: `toolway remove {name} -s {scope}`"
            )),
            other => Report::from(other),
        }
    }
}
