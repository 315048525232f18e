//! `mcp__<server>__authenticate`: what a model can do about a server that wants a login.
//!
//! Owns the tool. It is there while its server is in `needs-auth`: it begins the login and answers
//! with the page that a person has to open; the server's real tools take its place when they are
//! done. Where no login is possible it says what the server wants and how a person gives it. It
//! never takes a secret: a model has none to give.

use serde_json::json;
use toolway_types::name::{as_word, shell_word};
use toolway_types::{ConnectionState, ServerName, TransportKind, Untrusted};
use url::Url;

use super::{Builtin, BuiltinAnswer, BuiltinCall};
use crate::auth::{Invitation, LoginOptions, LoginProblem};
use crate::call::brief;
use crate::catalog::ToolHints;
use crate::offering::READS;
use crate::snapshot::ServerSnapshot;

pub(super) use super::AUTHENTICATE as NAME;

/// Stands where something was left out of an address.
const CUT: char = '…';

/// An address as its entry has it, without what is often a secret: user, password and query.
pub(crate) fn address(url: &str) -> String {
    let (start, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, cut) = match rest.find(['?', '#']) {
        Some(end) => (&rest[..end], true),
        None => (rest, false),
    };
    let host_ends = place.find('/').unwrap_or(place.len());
    let (place, user) = match place[..host_ends].rfind('@') {
        Some(at) => (&place[at + 1..], true),
        None => (place, false),
    };
    let mut shown = format!("{start}://");
    if user {
        shown.push(CUT);
        shown.push('@');
    }
    shown.push_str(place);
    if cut {
        shown.push('?');
        shown.push(CUT);
    }
    shown
}

pub(super) fn tool(shown: &str, server: &ServerSnapshot, url: Option<String>) -> Builtin {
    let name = server.name.clone();
    let entry = server.origin.to_string();
    let is_connector = server.transport.is_some_and(TransportKind::is_connector);
    let description = format!(
        "The server `{name}` is configured and wants a login before its tools can be used. This \
         begins the login and gives the page that a person has to open."
    );
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    Builtin::made(shown, &description, schema, move |call| {
        let (name, url, entry) = (name.clone(), url.clone(), entry.clone());
        async move {
            match wanted(&call, name.as_str(), url.as_deref(), &entry) {
                Err(answer) => answer,
                // Whose login it would be is the owner's to say.
                Ok(_) if !call.host.acts_for_owner() => owners_login(&name),
                Ok((_, by_hand)) if is_connector => {
                    begin_account(&call, &name, url.as_deref(), by_hand).await
                }
                Ok((challenge, by_hand)) => begin(&call, &name, &challenge, by_hand).await,
            }
        }
    })
    .hints(ToolHints {
        open_world: Some(false),
        ..READS
    })
    .without_asking()
}

/// What somebody hears who does not act for the owner.
fn owners_login(server: &ServerName) -> BuiltinAnswer {
    let word = as_word(server.as_str());
    BuiltinAnswer::error(format!(
        "server `{server}` wants a login, and that is for the person to make whose Toolway this is: \
         `toolway login {word}` in a terminal"
    ))
}

/// Begins the login, or joins the one under way.
async fn begin(
    call: &BuiltinCall,
    server: &ServerName,
    challenge: &Untrusted,
    by_hand: BuiltinAnswer,
) -> BuiltinAnswer {
    let Some(auth) = &call.host.auth else {
        return by_hand;
    };
    let Some(identity) = call.host.snapshot().identity(server.as_str()) else {
        return by_hand;
    };
    let mut login = match auth.begin(&identity, Some(challenge), LoginOptions::default()) {
        Ok(login) => login,
        Err(LoginProblem::NoVault | LoginProblem::Written(_) | LoginProblem::NotRemote(_)) => {
            return by_hand;
        }
        Err(problem) => return BuiltinAnswer::error(problem.to_string()),
    };
    let mut word = as_word(server.as_str()).into_owned();
    if let Some(account) = auth.account_of(&identity) {
        word = format!("{word} --account {}", shell_word(&account));
    }
    if let Some(invitation) = login.invitation().await {
        auth.leave(&identity, login);
        return invited(server, &word, &invitation);
    }
    match login.outcome().await {
        Some(Err(problem)) => BuiltinAnswer::error(format!(
            "{problem}\nA person can try in a terminal: `toolway login {word}`"
        )),
        Some(Ok(_)) => BuiltinAnswer::text(format!("the login to `{server}` is done")),
        None => BuiltinAnswer::error(format!(
            "another login to `{server}` has just ended: call this again"
        )),
    }
}

/// What the person is to do.
fn invited(server: &ServerName, word: &str, invitation: &Invitation) -> BuiltinAnswer {
    match invitation {
        Invitation::Page { host, url } => BuiltinAnswer::text(format!(
            "A person has to log in to `{server}`: give them this page of {host} to open in a \
             browser on this machine, within five minutes.\n\n  {url}\n\nOn another machine: \
             `toolway login {word} --no-browser`, or `--device`. When they are done, the tools of \
             `{server}` take the place of this one. Do not ask for a code or a token in a \
             conversation."
        )),
        Invitation::Code { code, url, .. } => BuiltinAnswer::text(format!(
            "A person has to log in to `{server}`: on any device, they open {url} and type `{}`. \
             When they are done, the tools of `{server}` take the place of this one.",
            code.expose()
        )),
    }
}

/// Begins the login to the account, which is the login of all its connectors, or joins the one
/// under way.
async fn begin_account(
    call: &BuiltinCall,
    server: &ServerName,
    url: Option<&str>,
    by_hand: BuiltinAnswer,
) -> BuiltinAnswer {
    let Some(connectors) = &call.host.connectors else {
        return BuiltinAnswer::error(format!(
            "`{server}` is a connector: its login is that of the account. A person logs in in a \
             terminal: `toolway account login`"
        ));
    };
    let url: Option<Url> = url.and_then(|url| url.parse().ok());
    let provider = &connectors.provider;
    if !url.is_some_and(|url| provider.proxy.leads_to(&url)) {
        // An entry that calls itself a connector and leads elsewhere: the account is no login
        // there.
        return by_hand;
    }
    let mut login = connectors.login_runner.begin();
    let account = provider.host();
    match login.invitation().await {
        Some(Invitation::Page { host, url }) => BuiltinAnswer::text(format!(
            "`{server}` is a connector: a person has to log in to their account at {account}. \
             Give them this page of {host} to open in a browser on this machine, within five \
             minutes.\n\n  {url}\n\nOn another machine: `toolway account login --no-browser`, or \
             `--device`. When they are done, the tools of `{server}` take the place of this one, \
             and so do those of the account's other connectors. Do not ask for a code or a token \
             in a conversation."
        )),
        Some(Invitation::Code { .. }) | None => match login.outcome().await {
            Some(Err(problem)) => BuiltinAnswer::error(format!(
                "{problem}\nA person can try in a terminal: `toolway account login`"
            )),
            Some(Ok(())) => BuiltinAnswer::text(format!("the login at {account} is done")),
            None => BuiltinAnswer::error(format!(
                "the login at {account} was given up: call this again"
            )),
        },
    }
}

/// What the server wants, and what to say where no login can be begun. An error is all there is
/// to say: its state may be another than when the tool was listed.
fn wanted(
    call: &BuiltinCall,
    name: &str,
    url: Option<&str>,
    entry: &str,
) -> Result<(Untrusted, BuiltinAnswer), BuiltinAnswer> {
    let snapshot = call.host.snapshot();
    let detail = match snapshot.server(name).map(|server| &server.state) {
        Some(ConnectionState::NeedsAuth { detail, .. }) => detail,
        Some(ConnectionState::Connected(_)) => {
            return Err(BuiltinAnswer::text(format!(
                "server `{name}` is connected: no login is wanted any more"
            )));
        }
        Some(state) => {
            return Err(BuiltinAnswer::error(format!(
                "server `{name}` is {}: whether it wants a login is not known now",
                state.as_str()
            )));
        }
        None => {
            return Err(BuiltinAnswer::error(format!(
                "server `{name}` is not configured any more"
            )));
        }
    };
    let word = as_word(name);
    let shown = Untrusted::new(url.unwrap_or("its address"))
        .line()
        .into_owned();
    // What was left out of the address is not to be left out of the entry.
    let place = match url {
        Some(url) if !url.contains(CUT) => shell_word(&shown),
        _ => "<url>".into(),
    };
    let said = brief(detail);
    let said = if said.is_empty() {
        "It did not say which.".to_owned()
    } else {
        format!("Its challenge: `{said}`.")
    };
    let by_hand = BuiltinAnswer::error(format!(
        "server `{name}` at {shown} wants a login. {said}\n\
         A person has to give it a token, in a terminal:\n\
         \n  export TOKEN=…\n  toolway add {word} {place} --force -H 'Authorization: Bearer ${{TOKEN}}'\n\n\
         or by hand, in its entry ({entry}):\n\
         \n  \"headers\": {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}\n\n\
         and then `toolway reconnect {word}`, or a restart. Do not ask for the token in a \
         conversation."
    ));
    Ok((detail.clone(), by_hand))
}
