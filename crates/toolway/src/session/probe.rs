//! Which era a server speaks.
//!
//! Owns the rules for reading an answer to `server/discover`, the order in which the two eras are
//! tried, and how a fresh channel is greeted after one that ended or went silent. Opening that
//! channel is the connection's work, remembering the outcome `era_memory.rs`'s; how long is waited
//! stands in `server_source/patience.rs`.

use std::pin::pin;
use std::time::Duration;

use toolway_transport::{CloseReason, SendFailure};
use toolway_types::{Era, MessageDelivery, ProtocolMode, ServerFacts, Untrusted};
use toolway_wire::era::{LEGACY_VERSIONS, method, mutual_modern};
use toolway_wire::error::UNSUPPORTED_PROTOCOL_VERSION;
use toolway_wire::{RawJson, RpcError};

use super::correlator::Correlator;
use super::modern::Discovery;
use super::{Greeting, legacy, modern, rpc_error};
use crate::error::{ConnectError, RequestError, RequestResult};
use crate::server_source::patience;

/// What an answer to the probe says about the era.
#[derive(Debug)]
enum Evidence {
    /// The server speaks this modern revision.
    Modern(Box<ServerFacts>),
    /// It is modern, refused our version, and names one that both speak.
    Mutual,
    /// The answer broke off; the network may have done that, or the server's manners.
    Cut,
    /// It is taken for legacy. The versions it named, none of which we speak.
    Legacy(Vec<String>),
    /// It says nothing about the era.
    Nothing(RequestError),
}

impl Greeting {
    /// How to greet a fresh channel of the same server after this handshake failed; `None` when
    /// that would show nothing new. Some servers end at the first message they do not know, some
    /// never answer again: both get the question they know first. A server that ends or is silent
    /// where it was remembered to answer is asked everything.
    pub(crate) fn after(&self, error: &ConnectError) -> Option<Greeting> {
        let lost = matches!(
            error,
            ConnectError::Request {
                source: RequestError::TimedOut
                    | RequestError::Closed(
                        CloseReason::Exited { .. }
                            | CloseReason::EndOfStream { .. }
                            | CloseReason::Broken(_)
                    ),
                ..
            }
        );
        let open = self.mode == ProtocolMode::Auto && self.delivery == MessageDelivery::Stream;
        if self.again || !open || !lost {
            return None;
        }
        let remembered = match self.remembered {
            Some(Era::Legacy) => None,
            Some(Era::Modern) | None => Some(Era::Legacy),
        };
        Some(Greeting {
            remembered,
            again: true,
            ..self.clone()
        })
    }

    /// How long a stream may be silent to everything. Nothing comes after a second channel, so
    /// that one may use up the time.
    fn silence_limit(&self) -> Duration {
        if self.again || self.delivery == MessageDelivery::PerRequest {
            self.timeout
        } else {
            patience::silence_limit(self.timeout)
        }
    }
}

/// Finds the era and does its handshake.
pub(super) async fn settle(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    match (greeting.mode, greeting.remembered, greeting.delivery) {
        (ProtocolMode::Legacy, ..) => initialize(correlator, greeting, greeting.timeout).await,
        (ProtocolMode::Modern, ..) => discover_only(correlator, greeting).await,
        (ProtocolMode::Auto, Some(Era::Legacy), _) => initialize_first(correlator, greeting).await,
        (ProtocolMode::Auto, _, MessageDelivery::PerRequest)
        | (ProtocolMode::Auto, Some(Era::Modern), _) => {
            let asked =
                tokio::time::timeout(greeting.silence_limit(), ask_twice(correlator, greeting));
            let evidence = asked
                .await
                .unwrap_or(Evidence::Nothing(RequestError::TimedOut));
            conclude(correlator, greeting, evidence).await
        }
        (ProtocolMode::Auto, None, MessageDelivery::Stream) => {
            settle_stream(correlator, greeting).await
        }
    }
}

async fn initialize(
    correlator: &Correlator,
    greeting: &Greeting,
    limit: Duration,
) -> Result<ServerFacts, ConnectError> {
    let answer = legacy::initialize(correlator, &greeting.client, limit)
        .await
        .map_err(|error| unwelcome(greeting.delivery, error))?;
    legacy::settle(correlator, &answer).await
}

/// Why `initialize` was not answered. Where the transport has statuses, one without an error of
/// the protocol may come from a server of the transport before it.
fn unwelcome(delivery: MessageDelivery, error: RequestError) -> ConnectError {
    if let (
        MessageDelivery::PerRequest,
        RequestError::Send(SendFailure::Status {
            status: status @ (400 | 404 | 405),
            body,
            ..
        }),
    ) = (delivery, &error)
    {
        return match rpc_error(body) {
            Some(rpc) => ConnectError::request(method::INITIALIZE, RequestError::Rpc(rpc)),
            None => ConnectError::NotStreamable {
                status: *status,
                older: None,
            },
        };
    }
    ConnectError::request(method::INITIALIZE, error)
}

/// The server was legacy last time. Only an answer that refuses `initialize` proves that wrong;
/// then it is probed over the same channel.
async fn initialize_first(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    let error = match initialize(correlator, greeting, greeting.silence_limit()).await {
        Err(error) if is_refusal(&error) => error,
        outcome => return outcome,
    };
    tracing::debug!(%error, "`initialize` is refused: probing");
    let limit = patience::silence_limit(greeting.timeout);
    match tokio::time::timeout(limit, ask_twice(correlator, greeting)).await {
        Ok(Evidence::Modern(facts)) => Ok(*facts),
        _ => Err(error),
    }
}

/// Whether the server answered that it does not do this handshake. A login wall, an overload or
/// a broken line says nothing about the era.
fn is_refusal(error: &ConnectError) -> bool {
    match error {
        ConnectError::Version { .. } | ConnectError::NotStreamable { .. } => true,
        ConnectError::Request { source, .. } => match source {
            RequestError::Rpc(_)
            | RequestError::Malformed(_)
            | RequestError::Send(SendFailure::NotMcp { .. }) => true,
            RequestError::Send(SendFailure::Status { status, .. }) => {
                matches!(status, 400..=499) && !matches!(status, 401 | 403)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether a handshake that failed so, in an era that was remembered, is a reason to forget it.
pub(crate) fn is_era_evidence(error: &ConnectError) -> bool {
    let is_silence_or_end = matches!(
        error,
        ConnectError::Request {
            source: RequestError::TimedOut | RequestError::Closed(_),
            ..
        }
    );
    is_refusal(error) || is_silence_or_end
}

async fn ask(correlator: &Correlator, greeting: &Greeting) -> RequestResult {
    modern::discover(
        correlator,
        &greeting.client,
        greeting.delivery,
        greeting.timeout,
    )
    .await
}

/// Probes, and once more when the server names a version that both speak, or when the answer
/// broke off. What breaks off twice is no accident.
async fn ask_twice(correlator: &Correlator, greeting: &Greeting) -> Evidence {
    match weigh(ask(correlator, greeting).await) {
        Evidence::Mutual | Evidence::Cut => weigh(ask(correlator, greeting).await),
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
        Evidence::Legacy(offered) if !offered.is_empty() => Err(unspoken(offered)),
        Evidence::Legacy(_) | Evidence::Mutual | Evidence::Cut | Evidence::Nothing(_) => {
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
        Evidence::Mutual | Evidence::Cut => {
            initialize(correlator, greeting, greeting.timeout).await
        }
        Evidence::Legacy(offered) => {
            match initialize(correlator, greeting, greeting.timeout).await {
                // It named its versions, and none is ours: that is the better explanation.
                Err(error) if !offered.is_empty() && is_refusal(&error) => Err(unspoken(offered)),
                outcome => outcome,
            }
        }
        Evidence::Nothing(error) => Err(ConnectError::request(method::DISCOVER, error)),
    }
}

/// A stream: an answer in short time decides. After that `initialize` goes out too, on the same
/// stream, and whichever is answered decides. Silence to both ends the wait early, so that a
/// fresh channel has a chance ([`Greeting::after`]).
async fn settle_stream(
    correlator: &Correlator,
    greeting: &Greeting,
) -> Result<ServerFacts, ConnectError> {
    let mut probe = pin!(ask_twice(correlator, greeting));
    let mut silence = pin!(tokio::time::sleep(greeting.silence_limit()));
    let short = patience::second_question(greeting.timeout);
    if let Ok(evidence) = tokio::time::timeout(short, &mut probe).await {
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
        let heard_nothing = probing && refusal.is_none();
        tokio::select! {
            evidence = &mut probe, if probing => match evidence {
                Evidence::Modern(facts) => return Ok(*facts),
                Evidence::Nothing(error @ RequestError::Closed(_)) => {
                    return Err(ConnectError::request(method::DISCOVER, error));
                }
                // A late refusal of the probe is not news.
                Evidence::Mutual
                | Evidence::Cut
                | Evidence::Legacy(_)
                | Evidence::Nothing(_) => {
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
            () = &mut silence, if heard_nothing => {
                return Err(ConnectError::request(method::INITIALIZE, RequestError::TimedOut));
            }
        }
        if !probing && let Some(error) = refusal.take() {
            return Err(ConnectError::request(method::INITIALIZE, error));
        }
    }
}

/// The table: what an answer to `server/discover` proves.
fn weigh(answer: RequestResult) -> Evidence {
    let legacy = Evidence::Legacy(Vec::new());
    match answer {
        Ok(result) => weigh_result(&result),
        Err(RequestError::Rpc(error)) => weigh_error(&error),
        // Anything may have answered so, or nothing: a login wall, a gateway, a proxy.
        Err(
            error @ (RequestError::TimedOut
            | RequestError::Idle { .. }
            | RequestError::Closed(_)
            | RequestError::Send(
                SendFailure::Status {
                    status: 401 | 403 | 500..,
                    ..
                }
                | SendFailure::TimedOut { .. }
                | SendFailure::Unreachable { .. }
                | SendFailure::Certificate { .. }
                | SendFailure::Credentials(_)
                | SendFailure::Redirected { .. }
                | SendFailure::Denied { .. },
            )),
        ) => Evidence::Nothing(error),
        Err(RequestError::Send(SendFailure::Cut(_))) => Evidence::Cut,
        Err(RequestError::Send(SendFailure::Status { body, .. })) => {
            rpc_error(&body).map_or(legacy, |error| weigh_error(&error))
        }
        Err(_) => legacy,
    }
}

fn weigh_result(result: &RawJson) -> Evidence {
    let Some(discovery) = Discovery::read(result) else {
        return Evidence::Legacy(Vec::new());
    };
    match mutual_modern(&discovery.supported_versions) {
        Some(version) => Evidence::Modern(Box::new(discovery.into_facts(version))),
        None => Evidence::Legacy(unknown(discovery.supported_versions)),
    }
}

fn weigh_error(error: &RpcError) -> Evidence {
    if error.code != UNSUPPORTED_PROTOCOL_VERSION {
        return Evidence::Legacy(Vec::new());
    }
    let supported = error.supported_versions();
    if mutual_modern(&supported).is_some() {
        return Evidence::Mutual;
    }
    Evidence::Legacy(unknown(supported))
}

/// The versions, if all of them are foreign to us.
fn unknown(versions: Vec<String>) -> Vec<String> {
    let is_known = |version: &String| LEGACY_VERSIONS.contains(&version.as_str());
    if versions.iter().any(is_known) {
        return Vec::new();
    }
    versions
}

fn unspoken(offered: Vec<String>) -> ConnectError {
    ConnectError::Version {
        offered: offered.into_iter().map(Untrusted::new).collect(),
    }
}
