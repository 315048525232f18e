//! `toolway serve --http`: the address, and what is said when nobody can listen there.
//!
//! Owns reading addresses, and the hints. Listening is `toolway_gateway::http`'s.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use toolway_gateway::error::ServeError;
use toolway_gateway::http::{HttpOptions, HttpServer, TlsFiles};
use toolway_gateway::{HostService, OwnerService, Service};

use super::ServeArgs;
use super::access::OpenedAccess;
use crate::context::Context;
use crate::report::Report;

/// An address as people write it: `127.0.0.1:8808`, `localhost:8808`, or a port of this machine.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let here = |port: &str| {
        let port = port.parse().ok()?;
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    let local = text.strip_prefix("localhost:").unwrap_or(text);
    let found = here(local).or_else(|| text.parse().ok());
    found.ok_or_else(|| {
        "write an address and a port, such as `127.0.0.1:8808`, or a port".to_owned()
    })
}

/// Listens until the program ends.
pub(super) async fn serve(
    context: &Context,
    args: &ServeArgs,
    service: &Arc<HostService>,
    owned: &OwnerService,
    access: OpenedAccess,
) -> Result<(), Report> {
    let Some(address) = args.http else {
        return Ok(());
    };
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let options = HttpOptions {
        access: access.access,
        hosts: args.host.clone(),
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        behind_proxy: args.behind_proxy,
        old_transport: args.sse,
        metrics_address: args.metrics,
        observer: Some(Arc::clone(service) as _),
        ..HttpOptions::at(address)
    };
    let service: Arc<dyn Service> = Arc::clone(service) as _;
    let (server, driver) = HttpServer::bind(service, &options).map_err(|error| {
        let report = Report::usage(error.to_string());
        match hint(&error) {
            Some(hint) => report.hint(hint),
            None => report,
        }
    })?;
    owned.listens("http", Some(server.url()));
    if let Some(address) = args.metrics {
        owned.listens("metrics", Some(format!("http://{address}/metrics")));
    }
    context.output.result(&format!("{}\n", server.url()))?;
    for line in access.said {
        context.say(&line);
    }
    driver.await;
    Ok(())
}

/// What to do about it.
fn hint(error: &ServeError) -> Option<&'static str> {
    match error {
        ServeError::OpenBehindProxy(_) => Some("leave `--no-token` out"),
        ServeError::NotLoopback { .. } => Some(
            "`toolway serve --http 127.0.0.1:0` serves this machine; beyond it are needed `--tls-cert` and `--tls-key`, and tokens of `toolway tokens` or `--oauth-issuer`",
        ),
        ServeError::Bind { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => Some(
                "another program listens there; `--http 127.0.0.1:0` takes a port that is free",
            ),
            ErrorKind::AddrNotAvailable => Some("this machine does not have that address"),
            ErrorKind::PermissionDenied => Some("take a port from 1024 on"),
            _ => None,
        },
        ServeError::Tls(_) => {
            Some("`--tls-cert` and `--tls-key` take PEM files that belong together")
        }
        ServeError::HostName(_) => {
            Some("`--host` takes a name without scheme and port: `--host gateway.example`")
        }
    }
}
