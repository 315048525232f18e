//! `toolway tokens`: the tokens that clients show to the gateway, by name.
//!
//! Owns the words. A token is printed once, when it is made, and nothing else ever has it: what is
//! kept is its digest (`toolway_auth::named_tokens`). How an end is written is `tokens/expiry.rs`.

mod expiry;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use toolway::rows::shown_time;
use toolway_auth::clock::unix_now;
use toolway_auth::named_tokens::{NamedToken, NamedTokenError, NamedTokens, TokenFileFault};
use toolway_config::NoProfile;
use toolway_rows::{TokenListing, TokenRow};
use toolway_types::name::as_word;

use self::expiry::{ExpiryOver, TokenExpiry};
use crate::context::Context;
use crate::exit::Exit;
use crate::report::{Outcome, Report, unwritable};

/// Make, list and revoke the tokens of clients of `serve`
///
/// A client shows its token as `Authorization: Bearer <token>`. It is printed once; only a digest
/// of it is kept. A token can be bound to a profile (`profiles.<name>` in your settings), and is
/// good for 90 days unless you say otherwise. What is revoked is refused from the next request on,
/// by servers that run as well.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway tokens add laptop
  toolway tokens add ci --expires 30d
  toolway tokens add forever --expires never
  toolway tokens list
  toolway tokens revoke ci")]
pub(crate) struct TokensArgs {
    #[command(subcommand)]
    command: TokensCommand,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// Make a token, and print it this once
    Add(AddTokenArgs),
    /// Show what tokens there are, never the tokens themselves
    List(ListTokensArgs),
    /// End a token, also for servers that run
    Revoke(RevokeTokenArgs),
}

#[derive(Debug, Args)]
struct AddTokenArgs {
    /// What you call it: letters, digits, `-`, `_` and `.`
    name: String,

    /// The only profile that it opens
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,

    /// When it ends: `12h`, `30d`, `2w`, the last day (`2027-01-31`, UTC), or `never`
    #[arg(long, value_name = "WHEN", default_value = "90d", value_parser = expiry::parse)]
    expires: TokenExpiry,
}

#[derive(Debug, Args)]
struct ListTokensArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RevokeTokenArgs {
    /// What you called it
    name: String,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &TokensArgs) -> Outcome {
    let tokens = NamedTokens::open(context.setup.files().tokens());
    match &args.command {
        TokensCommand::Add(args) => add(context, &tokens, args),
        TokensCommand::List(args) => list(context, &tokens, args),
        TokensCommand::Revoke(args) => revoke(context, &tokens, args),
    }
}

fn add(context: &Context, tokens: &NamedTokens, args: &AddTokenArgs) -> Outcome {
    if let Some(profile) = &args.profile {
        let plan = context.plan();
        if let Err(missing) = plan.profile(profile) {
            context.say_unreadable(plan);
            return Err(no_profile(missing));
        }
    }
    let expires = args.expires.from(unix_now()).map_err(|ExpiryOver| {
        Report::usage("`--expires` names a time that is over")
            .hint("write e.g. `--expires 30d`, or `--expires never`")
    })?;
    let token = tokens.add(&args.name, args.profile.as_deref(), expires)?;
    context.output.result(&format!("{}\n", token.expose()))?;
    let bound = match &args.profile {
        Some(profile) => format!("opens the profile `{profile}`"),
        None => "is bound to no profile".to_owned(),
    };
    let lasting = match expires {
        Some(expires) => format!("is good until {}", shown_time(expires)),
        None => "never ends".to_owned(),
    };
    context.say(format!(
        "the token `{}` {bound} and {lasting}; it is shown this once",
        args.name
    ));
    context.hint("a client shows it as `Authorization: Bearer <token>`");
    Ok(Exit::Success)
}

fn no_profile(missing: NoProfile) -> Report {
    let report = Report::configuration(missing.to_string());
    match missing {
        NoProfile::Unknown {
            meant: Some(meant), ..
        } => report.hint(format!("did you mean `{meant}`?")),
        NoProfile::Unknown { name, meant: None } => report.hint(format!(
            "write it in your settings: `\"profiles\": {{\"{}\": {{}}}}`",
            name.escape_debug()
        )),
        NoProfile::Faulty { fault, .. } => match fault.origin {
            Some(origin) => report.hint(format!("mend it at {origin}")),
            None => report,
        },
    }
}

fn list(context: &Context, tokens: &NamedTokens, args: &ListTokensArgs) -> Outcome {
    let listed = tokens.list()?;
    let now = unix_now();
    if args.json {
        let tokens = listed.iter().map(|token| row(token, now)).collect();
        return context.json(&TokenListing { tokens });
    }
    if listed.is_empty() {
        context.say("there are no tokens");
        context.hint("make one with `toolway tokens add <name>`");
        return Ok(Exit::Success);
    }
    let rows = listed.iter().map(|token| {
        let end = match token.expires {
            Some(end) if token.is_over(now) => format!("expired {}", shown_time(end)),
            Some(end) => shown_time(end),
            None => "never".to_owned(),
        };
        let profile = token.profile.clone().unwrap_or_else(|| "-".to_owned());
        vec![token.name.clone(), profile, shown_time(token.created), end]
    });
    context
        .output
        .table(&["NAME", "PROFILE", "CREATED", "EXPIRES"], rows)?;
    let bound: BTreeSet<&str> = (listed.iter())
        .filter_map(|token| token.profile.as_deref())
        .collect();
    for profile in bound {
        if let Err(missing) = context.plan().profile(profile) {
            context.warn(format!("{missing}, so what is bound to it opens nothing"));
        }
    }
    Ok(Exit::Success)
}

fn row(token: &NamedToken, now: u64) -> TokenRow {
    TokenRow {
        name: token.name.clone(),
        profile: token.profile.clone(),
        created_at: shown_time(token.created),
        expires_at: token.expires.map(shown_time),
        expired: token.is_over(now),
    }
}

fn revoke(context: &Context, tokens: &NamedTokens, args: &RevokeTokenArgs) -> Outcome {
    tokens.revoke(&args.name)?;
    context.say(format!("the token `{}` opens nothing any more", args.name));
    Ok(Exit::Success)
}

impl From<NamedTokenError> for Report {
    fn from(error: NamedTokenError) -> Self {
        let message = error.to_string();
        match error {
            NamedTokenError::Name(_) => Report::usage(message)
                .hint("use at most 64 of the letters, digits, `-`, `_` and `.`"),
            NamedTokenError::Taken(name) => {
                let word = as_word(&name);
                Report::usage(message).hint(format!(
                    "choose another name, or end that one with `toolway tokens revoke {word}`"
                ))
            }
            NamedTokenError::Unknown {
                meant: Some(meant), ..
            } => Report::usage(message).hint(format!("did you mean `{meant}`?")),
            NamedTokenError::Unknown { meant: None, .. } => {
                Report::usage(message).hint("see what there is with `toolway tokens list`")
            }
            NamedTokenError::Full => {
                Report::configuration(message).hint("end some with `toolway tokens revoke <name>`")
            }
            NamedTokenError::File(fault) => Report::from(fault),
            NamedTokenError::Write { path, error } => {
                Report::configuration(message).hint(unwritable(&path, error.kind()))
            }
            NamedTokenError::Random(_) => Report::new(Exit::Unexpected, message),
        }
    }
}

impl From<TokenFileFault> for Report {
    fn from(fault: TokenFileFault) -> Self {
        let path = fault.path().display().to_string();
        let path = as_word(&path);
        let hint = match &fault {
            TokenFileFault::Open { .. } => format!("close it with `chmod 600 {path}`"),
            TokenFileFault::Unreadable { .. } | TokenFileFault::Malformed { .. } => {
                format!("mend it, or remove it with `rm {path}` and make the tokens anew")
            }
        };
        Report::configuration(fault.to_string()).hint(hint)
    }
}
