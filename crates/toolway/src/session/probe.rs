//! Which era a server speaks.
//!
//! Owns the rules for reading an answer to `server/discover`, and the order in which the two
//! eras are tried. A process that ends because of the probe is started again by the connection,
//! in the legacy era.

use std::pin::pin;
use std::time::Duration;

use serde_json::value::RawValue;
use toolway_transport::SendFailure;
use toolway_types::{ProtocolMode, ServerFacts, Untrusted};
use toolway_wire::era::{LEGACY_VERSIONS, method, mutual_modern};
use toolway_wire::error::UNSUPPORTED_PROTOCOL_VERSION;
use toolway_wire::{Message, RpcError, envelope};

use super::correlator::Correlator;
use super::modern::Discovery;
use super::{Delivery, Greeting, legacy, modern};
use crate::error::{ConnectError, RequestError};

/// How long a silent process is given before `initialize` is sent as well. Silence proves
/// nothing: `npx` and `uvx` may install for a minute before anybody reads.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

type Answer = Result<Box<RawValue>, RequestError>;

/// What an answer to the probe says about the era.
#[derive(Debug)]
enum Evidence {
    /// The server speaks this modern revision.
    Modern(Box<ServerFacts>),
    /// It is modern, refused our version, and names one that both speak.
    Mutual,
    /// It is taken for legacy. `offered`: the versions it named, none of which we speak.
    Legacy { offered: Vec<String> },
    /// It says nothing about the era.
    Nothing(RequestError),
}

/// Finds the era and does its handshake.
pub(super) async fn settle(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    match (greeting.mode, greeting.delivery) {
        (ProtocolMode::Legacy, _) => initialize(correlator, greeting).await,
        (ProtocolMode::Modern, _) => discover_only(correlator, greeting).await,
        (ProtocolMode::Auto, Delivery::PerRequest) => {
            let evidence = ask_twice(correlator, greeting).await;
            conclude(correlator, greeting, evidence).await
        }
        (ProtocolMode::Auto, Delivery::Stream) => settle_stream(correlator, greeting).await,
    }
}

async fn initialize(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    let answer = legacy::initialize(correlator, &greeting.client, greeting.timeout)
        .await
        .map_err(|error| ConnectError::request(method::INITIALIZE, error))?;
    legacy::settle(correlator, &answer).await
}

async fn ask(correlator: &Correlator, greeting: &Greeting) -> Answer {
    modern::discover(
        correlator,
        &greeting.client,
        greeting.delivery,
        greeting.timeout,
    )
    .await
}

/// Probes, and once more when the server names a version that both speak.
async fn ask_twice(correlator: &Correlator, greeting: &Greeting) -> Evidence {
    match weigh(ask(correlator, greeting).await) {
        Evidence::Mutual => weigh(ask(correlator, greeting).await),
        evidence => evidence,
    }
}

/// The entry says that the server is modern, so nothing else is tried.
async fn discover_only(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    let mut answer = ask(correlator, greeting).await;
    if matches!(weigh(answer.clone()), Evidence::Mutual) {
        answer = ask(correlator, greeting).await;
    }
    match weigh(answer.clone()) {
        Evidence::Modern(facts) => Ok(*facts),
        Evidence::Legacy { offered } if !offered.is_empty() => Err(unspoken(offered)),
        Evidence::Legacy { .. } | Evidence::Mutual | Evidence::Nothing(_) => {
            let error = answer.err().unwrap_or_else(|| {
                RequestError::Malformed("the answer is not a discover result".to_owned())
            });
            Err(ConnectError::request(method::DISCOVER, error))
        }
    }
}

/// Acts on evidence that is in.
async fn conclude(
    correlator: &Correlator,
    greeting: &Greeting,
    evidence: Evidence,
) -> Result<ServerFacts, ConnectError> {
    match evidence {
        Evidence::Modern(facts) => Ok(*facts),
        // Twice the same contradiction: what is left is the other era.
        Evidence::Mutual => initialize(correlator, greeting).await,
        Evidence::Legacy { offered } => match initialize(correlator, greeting).await {
            // It named its versions, and none is ours: that is the better explanation.
            Err(ConnectError::Request {
                source: RequestError::Rpc(_),
                ..
            }) if !offered.is_empty() => Err(unspoken(offered)),
            outcome => outcome,
        },
        Evidence::Nothing(error) => Err(ConnectError::request(method::DISCOVER, error)),
    }
}

/// A stream: an answer within [`PATIENCE`] decides. After that `initialize` goes out too, on the
/// same stream, and whichever is answered decides.
async fn settle_stream(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    let mut probe = pin!(ask_twice(correlator, greeting));
    if let Ok(evidence) = tokio::time::timeout(PATIENCE, &mut probe).await {
        return conclude(correlator, greeting, evidence).await;
    }
    tracing::debug!("no answer to the probe yet: trying `initialize` as well");
    let mut handshake = pin!(legacy::initialize(
        correlator,
        &greeting.client,
        greeting.timeout
    ));
    let mut probing = true;
    let mut refusal = None;
    loop {
        tokio::select! {
            evidence = &mut probe, if probing => match evidence {
                Evidence::Modern(facts) => return Ok(*facts),
                Evidence::Nothing(error @ RequestError::Closed(_)) => {
                    return Err(ConnectError::request(method::DISCOVER, error));
                }
                // A late refusal of the probe is not news.
                Evidence::Mutual | Evidence::Legacy { .. } | Evidence::Nothing(_) => {
                    probing = false;
                }
            },
            answer = &mut handshake, if refusal.is_none() => match answer {
                Ok(answer) => return legacy::settle(correlator, &answer).await,
                Err(error @ RequestError::Closed(_)) => {
                    return Err(ConnectError::request(method::INITIALIZE, error));
                }
                Err(error) => refusal = Some(error),
            },
        }
        if !probing && let Some(error) = refusal.take() {
            return Err(ConnectError::request(method::INITIALIZE, error));
        }
    }
}

/// The table: what an answer to `server/discover` proves.
fn weigh(answer: Answer) -> Evidence {
    match answer {
        Ok(result) => weigh_result(&result),
        Err(RequestError::Rpc(error)) => weigh_error(&error),
        // Anything may have answered so, or nobody: a login wall, a gateway, a proxy.
        Err(
            error @ (RequestError::TimedOut
            | RequestError::Idle { .. }
            | RequestError::Closed(_)
            | RequestError::Send(
                SendFailure::Status {
                    status: 401 | 403 | 500..,
                    ..
                }
                | SendFailure::TimedOut
                | SendFailure::Unreachable { .. }
                | SendFailure::Redirected { .. },
            )),
        ) => Evidence::Nothing(error),
        Err(RequestError::Send(SendFailure::Status { body, .. })) => match envelope::parse(&body) {
            Ok(Message::Response {
                outcome: Err(error),
                ..
            }) => weigh_error(&error),
            _ => Evidence::Legacy {
                offered: Vec::new(),
            },
        },
        Err(
            RequestError::Send(_)
            | RequestError::Malformed(_)
            | RequestError::InputRefused { .. }
            | RequestError::TooManyRounds { .. }
            | RequestError::TaskCancelled,
        ) => Evidence::Legacy {
            offered: Vec::new(),
        },
    }
}

fn weigh_result(result: &RawValue) -> Evidence {
    let Some(discovery) = Discovery::read(result) else {
        return Evidence::Legacy {
            offered: Vec::new(),
        };
    };
    match mutual_modern(&discovery.supported_versions) {
        Some(version) => Evidence::Modern(Box::new(discovery.into_facts(version))),
        None => Evidence::Legacy {
            offered: unknown(discovery.supported_versions),
        },
    }
}

fn weigh_error(error: &RpcError) -> Evidence {
    if error.code != UNSUPPORTED_PROTOCOL_VERSION {
        return Evidence::Legacy {
            offered: Vec::new(),
        };
    }
    let supported = error.supported_versions();
    if mutual_modern(&supported).is_some() {
        return Evidence::Mutual;
    }
    Evidence::Legacy {
        offered: unknown(supported),
    }
}

/// The versions, if all of them are foreign to us.
fn unknown(versions: Vec<String>) -> Vec<String> {
    if versions
        .iter()
        .any(|version| LEGACY_VERSIONS.contains(&version.as_str()))
    {
        return Vec::new();
    }
    versions
}

fn unspoken(offered: Vec<String>) -> ConnectError {
    ConnectError::Version {
        offered: offered.into_iter().map(Untrusted::new).collect(),
    }
}
