//! What a program may do about servers: connect them anew, switch them, log in, decide.
//!
//! Owns what parameters mean. What a yes covers is the approval's, what a login takes the host's.

use std::sync::Arc;
use std::time::Duration;

use toolway::auth::{Invitation, LoginOptions};
use toolway::config::{PlannedServer, ServerVerdict, without_secrets};
use toolway::setup::off_runtime;
use toolway_auth::login::LoginMethod;

use super::error::ControlError;
use super::messages::{
    DecideParams, DecidedServer, Done, LoginParams, LoginStarted, ServerAnswered, UndecidedServer,
};
use super::program::Program;

/// How long a login may take to say where it is made.
const INVITES_WITHIN: Duration = Duration::from_mins(1);

/// Has a server connected anew.
pub(super) async fn reconnect(
    program: &Program,
    name: &str,
) -> Result<ServerAnswered, ControlError> {
    let reconnected = program.view.reconnect(name).await;
    reconnected.map_err(|_| ControlError::unknown_server(name))?;
    program.row(name)
}

/// Begins a login; gives where it is made.
pub(super) async fn login(
    program: &Arc<Program>,
    params: LoginParams,
) -> Result<LoginStarted, ControlError> {
    let way = match params.method.as_deref() {
        None | Some("browser") => LoginMethod::Browser,
        Some("device") => LoginMethod::Device,
        Some(_) => {
            let message = "`method` is `browser` or `device`";
            return Err(ControlError::invalid(message));
        }
    };
    let options = LoginOptions {
        way,
        account: params.account,
        ..LoginOptions::default()
    };
    let host = &program.core.host;
    let begun = host.login_in(&program.view, &params.server, options);
    let mut handle = begun
        .await
        .map_err(|error| ControlError::login(&params.server, &error.to_string()))?;
    let invitation = tokio::time::timeout(INVITES_WITHIN, handle.invitation());
    match invitation.await {
        Ok(Some(invitation)) => {
            // It goes on until it is done or given up; events say which.
            program.core.beside(Box::pin(async move {
                let outcome = handle.outcome().await;
                tracing::debug!(
                    ended = outcome.is_some(),
                    "a login of the program has ended"
                );
            }));
            let (url, code) = match invitation {
                Invitation::Page { url, .. } => (url, None),
                Invitation::Code { code, url, .. } => (url, Some(code.expose().to_owned())),
            };
            Ok(LoginStarted {
                url: Some(url.to_string()),
                code,
                logged_in: None,
            })
        }
        Ok(None) => match handle.outcome().await {
            Some(Ok(_)) => Ok(LoginStarted {
                logged_in: Some(true),
                ..LoginStarted::default()
            }),
            Some(Err(error)) => Err(ControlError::login(&params.server, &error.to_string())),
            None => Err(ControlError::login(
                &params.server,
                "another login is under way",
            )),
        },
        Err(_) => Err(ControlError::login(
            &params.server,
            "it did not say in time where to log in",
        )),
    }
}

/// Gives up the logins of a server, of one account or of all.
pub(super) async fn logout(program: &Program, params: &LoginParams) -> Result<Done, ControlError> {
    let host = &program.core.host;
    let out = host.logout_in(&program.view, &params.server, params.account.as_deref());
    out.await
        .map_err(|error| ControlError::login(&params.server, &error.to_string()))?;
    Ok(Done {})
}

/// Decides about what a repository brought, or shows what a decision would cover.
pub(super) async fn decide(
    program: &Program,
    params: DecideParams,
    is_yes: bool,
) -> Result<DecidedServer, ControlError> {
    let unread = || ControlError::internal("the configuration could not be read");
    let setup = &program.core.setup;
    let plan = setup.fresh_plan().await.ok_or_else(unread)?;
    let is_meant = |server: &&PlannedServer| {
        let is_open = matches!(
            server.verdict,
            ServerVerdict::PendingApproval { .. } | ServerVerdict::Rejected { .. }
        );
        server.name.as_str() == params.server && (is_open || !is_yes)
    };
    let mut servers = plan.servers.iter().filter(is_meant);
    let server = servers.find(|server| server.digest.is_some()).cloned();
    let Some(server) = server else {
        if plan.winner(&params.server).is_none() {
            return Err(ControlError::unknown_server(&params.server));
        }
        let message = format!("server `{}` waits for no decision", params.server);
        return Err(ControlError::invalid(message));
    };
    let digest = server.digest.clone().unwrap_or_default();
    let Some(seen) = params.digest else {
        return Ok(DecidedServer::Undecided(UndecidedServer {
            definition: without_secrets(&server.definition),
            digest,
            source: (&server.origin).into(),
            variables: server.withheld,
        }));
    };
    if seen != digest {
        return Err(ControlError::invalid(
            "that is not the digest of what the server is defined as now",
        ));
    }
    let environment = setup.environment().clone();
    let decided = off_runtime("decision", move || {
        if is_yes {
            let files = toolway::config::repository_files(&environment, &server);
            toolway::config::approve(&environment, &server, &server.withheld, &files.bound)
        } else {
            toolway::config::reject(&environment, &server)
        }
    });
    let decided = decided.await.ok_or_else(unread)?;
    decided.map_err(|error| ControlError::invalid(error.to_string()))?;
    // A host that follows its files would find it by itself, a little later.
    let _ = program.core.host.reload().await;
    program.view.ready(&params.server).await;
    Ok(DecidedServer::Decided(Box::new(
        program.row(&params.server)?,
    )))
}
