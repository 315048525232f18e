//! How an HTTP connection becomes a WebSocket (RFC 6455, 4).
//!
//! Owns the request, and what of the answer must hold. No extension is offered and none accepted,
//! so nothing is ever compressed.

use bytes::Bytes;
use http::header::{
    CONNECTION, HOST, HeaderName, LOCATION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Empty;
use toolway_types::Untrusted;
use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;
use url::{Position, Url};

use crate::client::dial::{DialedStream, Dialer, UpgradeOutcome, upgrade};
use crate::credentials::{self, ChannelCredentials, RetryState};
use crate::error::{CloseReason, SendFailure};
use crate::http::failure::refusal;

/// The subprotocol.
const MCP: &str = "mcp";

/// Connects and has the connection turned into a WebSocket. The URL is an HTTP one.
pub(super) async fn connect(
    dialer: &Dialer,
    url: &Url,
    configured: &HeaderMap,
    credentials: &ChannelCredentials,
) -> Result<DialedStream, CloseReason> {
    let mut tries = RetryState::default();
    let (outcome, key) = loop {
        let asked = credentials::CredentialRequest {
            method: &Method::GET,
            url,
        };
        let presented = credentials.present(asked).await;
        let presented = presented.map_err(SendFailure::Credentials)?;
        let mut headers = configured.clone();
        presented.put(&mut headers);
        let socket = dialer.dial(url).await?;
        let key = generate_key();
        let request = request(dialer, url, headers, &key)
            .map_err(|error| CloseReason::Broken(error.to_string()))?;
        let outcome = upgrade(socket, request).await?;
        let (status, heard) = match &outcome {
            UpgradeOutcome::Upgraded(_, headers) => (StatusCode::SWITCHING_PROTOCOLS, headers),
            UpgradeOutcome::Refused {
                status, headers, ..
            } => (*status, headers),
        };
        let judged = credentials.is_again(&mut tries, &presented, asked, status, heard);
        if !judged.await {
            break (outcome, key);
        }
    };
    match outcome {
        UpgradeOutcome::Upgraded(socket, headers) => {
            check(&headers, &key)?;
            Ok(socket)
        }
        UpgradeOutcome::Refused {
            status,
            headers,
            body,
        } if status.is_client_error() || status.is_server_error() => {
            Err(refusal(status, &headers, body).into())
        }
        UpgradeOutcome::Refused {
            status, headers, ..
        } => {
            let message = match text(&headers, &LOCATION) {
                Some(location) if status.is_redirection() => {
                    format!("the server redirects to `{location}`, which is not followed")
                }
                _ => format!("the server answered HTTP {status} instead of opening a WebSocket"),
            };
            Err(CloseReason::Broken(message))
        }
    }
}

fn request(
    dialer: &Dialer,
    url: &Url,
    configured: HeaderMap,
    key: &str,
) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(&url[Position::BeforePath..Position::AfterQuery])
        .header(USER_AGENT, &dialer.user_agent)
        .body(Empty::new())?;
    let headers = request.headers_mut();
    headers.extend(configured);
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    for (name, value) in [
        (HOST, authority),
        (CONNECTION, "Upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_VERSION, "13"),
        (SEC_WEBSOCKET_KEY, key),
        (SEC_WEBSOCKET_PROTOCOL, MCP),
    ] {
        headers.insert(name, value.parse()?);
    }
    Ok(request)
}

fn check(headers: &HeaderMap, key: &str) -> Result<(), CloseReason> {
    let broken = |message: String| Err(CloseReason::Broken(message));
    let upgrade = text(headers, &UPGRADE).unwrap_or_default();
    if !upgrade.eq_ignore_ascii_case("websocket")
        || text(headers, &SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()))
    {
        return broken("the server's WebSocket handshake is not valid".to_owned());
    }
    if let Some(extension) = text(headers, &SEC_WEBSOCKET_EXTENSIONS) {
        return broken(format!(
            "the server uses the WebSocket extension `{extension}`, which was not offered"
        ));
    }
    // Naming none is allowed, and simple servers do; naming another one means another protocol.
    match text(headers, &SEC_WEBSOCKET_PROTOCOL) {
        Some(other) if other != MCP => broken(format!(
            "the server chose the WebSocket subprotocol `{other}`, not `{MCP}`"
        )),
        _ => Ok(()),
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    Some(Untrusted::new(&*value).line().to_string())
}
