//! `toolway idp`: the one login at the organisation's identity provider that serves every server
//! with cross-app access.
//!
//! Owns what the user does about it (log in, log out, look). No secret is ever shown. The steps of
//! the login, and where it is kept, are the library's.

use clap::{Args, Subcommand};
use toolway::auth::{Organisation, OrganisationError, OrganisationUser};
use toolway::rows::{served_rows, shown_time};
use toolway_auth::idp::IdpLogoutOutcome;
use toolway_auth::logins::LoginGrant;
use toolway_config::Plan;
use toolway_rows::IdentityRow;

use super::auth::StatusArgs;
use super::login::{AtTerminal, WayArgs, until_given_up};
use crate::connect;
use crate::context::{Context, require_flags_only};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// Log in at your organisation's identity provider, or log out
///
/// One login there serves every server with cross-app access (`oauth.xaa` in its entry with
/// `TOOLWAY_ENABLE_XAA=1`, or your organisation's policy). The provider stands under
/// `identityProvider` in your settings or your organisation's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolway idp login
  toolway idp status
  toolway idp logout")]
pub(crate) struct IdpArgs {
    #[command(subcommand)]
    what: IdpAction,
}

#[derive(Debug, Subcommand)]
enum IdpAction {
    /// Log in, whoever was logged in before
    Login(WayArgs),
    /// Log out: the login and what servers were given for it go, here and at the provider
    Logout,
    /// Who is logged in, until when, and which servers that serves
    Status(StatusArgs),
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &IdpArgs) -> Outcome {
    let plan = context.plan();
    require_flags_only(plan)?;
    let Some(organisation) = context.setup.organisation(plan) else {
        context.say_unreadable(plan);
        return Err(none_configured());
    };
    context.say_once(context.setup.vault_finding());
    connect::block_on(async {
        match &args.what {
            IdpAction::Login(args) => log_in(context, &organisation, args).await,
            IdpAction::Logout => log_out(context, &organisation).await,
            IdpAction::Status(args) => status(context, plan, &organisation, args.json).await,
        }
    })
}

fn none_configured() -> Report {
    Report::configuration("no identity provider is configured").hint(
        "add it to your settings: `\"identityProvider\": {\"issuer\": \"https://login.example.com\", \
         \"clientId\": \"…\"}`",
    )
}

async fn log_in(context: &Context, organisation: &Organisation, args: &WayArgs) -> Outcome {
    let issuer = &organisation.settings().issuer;
    let terminal = AtTerminal::new(context);
    let login = Box::pin(organisation.login(args.way(), &terminal));
    let what = format!("the login at {issuer}");
    let outcome = until_given_up(context, &what, login).await?;
    let current_user = outcome.map_err(|error| {
        Report::new(Exit::NeedsLogin, error.to_string())
            .hint("try another way: `toolway idp login --no-browser`, or `--device`")
    })?;
    let text = format!(
        "logged in at {issuer} as `{}`, {}\n",
        current_user.subject,
        lasting(&current_user)
    );
    context.output.result(&text)?;
    Ok(Exit::Success)
}

async fn log_out(context: &Context, organisation: &Organisation) -> Outcome {
    let issuer = &organisation.settings().issuer;
    let current_user = organisation.current_user().await?;
    // First, so that no server is logged in to anew meanwhile.
    let given_back = organisation.logout().await?;
    let book = connect::logins(context);
    let logins = book.logins().await?;
    for login in logins
        .iter()
        .filter(|login| login.how == LoginGrant::CrossApp)
    {
        let (server, account) = (login.server.as_str(), login.account.as_str());
        for out in book.log_out(Some(server), Some(account)).await? {
            if let Some(error) = &out.not_revoked {
                context.warn(error);
            }
        }
        context.say(format!("logged out of `{server}`"));
        connect::reconnect_elsewhere(context, server);
    }
    if current_user.is_some() {
        let also = match given_back {
            IdpLogoutOutcome::Revoked => ", and the login is revoked there",
            IdpLogoutOutcome::Nothing => "",
            IdpLogoutOutcome::NotOffered => {
                context.say(
                    "note: the provider revokes nothing: what it gave stays good there until it \
                     expires",
                );
                ""
            }
            IdpLogoutOutcome::Failed(why) => {
                context.warn(&why);
                ""
            }
        };
        context
            .output
            .result(&format!("logged out at {issuer}{also}\n"))?;
    } else {
        context.say(format!("nobody is logged in at {issuer}"));
    }
    Ok(Exit::Success)
}

async fn status(
    context: &Context,
    plan: &Plan,
    organisation: &Organisation,
    json: bool,
) -> Outcome {
    let user = organisation.current_user().await?;
    let user = user.as_ref().filter(|user| user.is_of_use);
    let settings = organisation.settings();
    let storage = connect::vault(context).backend().await.as_str();
    let servers = served_rows(plan);
    if json {
        return context.json(&IdentityRow {
            issuer: settings.issuer.clone(),
            client_id: settings.client_id.clone(),
            source: settings.origin.to_string(),
            logged_in: user.is_some(),
            subject: user.map(|user| user.subject.clone()),
            expires_at: user.map(|user| shown_time(user.expires_at)),
            renews: user.is_some_and(|user| user.renews),
            storage: storage.into(),
            servers,
        });
    }
    let login = match user {
        Some(user) => format!("logged in as `{}`, {}", user.subject, lasting(user)),
        None => "nobody is logged in".to_owned(),
    };
    let servers = servers.iter().map(|server| match &server.required_by {
        Some(policy) => format!("{} (required by {policy})", server.name),
        None => server.name.clone(),
    });
    let servers = match servers.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "none".to_owned(),
        servers => servers,
    };
    context.output.result(&format!(
        "issuer    {}\nclient    {}\nsettings  {}\nlogin     {login}\nkept in   {storage}\nservers   {servers}\n",
        settings.issuer, settings.client_id, settings.origin
    ))?;
    if user.is_none() {
        context.hint("log in with `toolway idp login`");
    }
    Ok(Exit::Success)
}

fn lasting(current_user: &OrganisationUser) -> String {
    if current_user.renews {
        return "renews itself".to_owned();
    }
    format!("until {}", shown_time(current_user.expires_at))
}

impl From<OrganisationError> for Report {
    fn from(error: OrganisationError) -> Self {
        let hint = match error {
            OrganisationError::Secret(_) => "mend `identityProvider.clientSecret` in your settings",
            OrganisationError::Identity(_) => "check the keychain with `toolway doctor`",
        };
        Report::new(Exit::Unexpected, error.to_string()).hint(hint)
    }
}
