//! A gateway on the official Rust SDK, as one writes it with the SDK's own types: each message is
//! read into them, handed to the SDK's client, and written again.
//!
//! `typed-gateway stateless|sessions COMMAND…` starts the command as its one server, listens on a
//! free port of loopback and says its address as the first line. `stateless` answers with JSON,
//! `sessions` as the SDK does by itself: sessions, and each answer as an event stream.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;

#[derive(Clone)]
struct TypedGateway {
    server: Peer<RoleClient>,
}

impl ServerHandler for TypedGateway {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.server.call_tool_once(request).await.map_err(passed_on)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.server.list_tools(request).await.map_err(passed_on)
    }
}

fn passed_on(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [mode, program, rest @ ..] = &words[..] else {
        bail!("usage: typed-gateway stateless|sessions COMMAND…");
    };
    let config = match mode.as_str() {
        "stateless" => StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true),
        "sessions" => StreamableHttpServerConfig::default(),
        _ => bail!("`{mode}` is neither `stateless` nor `sessions`"),
    };
    let mut command = Command::new(program);
    command.args(rest);
    let process = TokioChildProcess::new(command).context("the server does not start")?;
    let running = ().serve(process).await.context("the server does not shake hands")?;
    let server = running.peer().clone();
    let mut sessions = LocalSessionManager::default();
    // Idle sessions are measured; they must not end meanwhile.
    sessions.session_config = SessionConfig::default();
    sessions.session_config.keep_alive = None;
    let service = StreamableHttpService::new(
        move || {
            Ok(TypedGateway {
                server: server.clone(),
            })
        },
        Arc::new(sessions),
        config,
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "http://{address}/mcp")?;
    std::io::stdout().flush()?;
    // As every other gateway here; one that cannot is slow in other ways than this shows.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
