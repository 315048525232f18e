//! The owner's end of the socket: one request at a time.
//!
//! Owns the connection, its framing and its time limits. What can be asked is the service's.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::UCred;
use toolway_wire::era::{self, meta_key};

use crate::stdio::MAX_LINE;

/// One gateway's socket, connected.
#[derive(Debug)]
pub struct OwnerClient {
    stream: BufReader<UnixStream>,
    process: Option<i32>,
    last: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum OwnerCallError {
    /// It cannot be connected to.
    #[error("it cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// Somebody else listens there.
    #[error("it is another user's (uid {uid})")]
    Stranger {
        /// Whose.
        uid: u32,
    },
    /// It says nothing.
    #[error("it has not answered within {limit:?}")]
    Silent {
        /// For so long.
        limit: Duration,
    },
    /// It ended the connection.
    #[error("it hung up")]
    Gone,
    /// It said something that is no answer.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// It refuses.
    #[error("{message}")]
    Refused {
        /// The code of the protocol.
        code: i64,
        /// Why, in words.
        message: String,
        /// Why, as a word, where it gave one.
        reason: Option<String>,
    },
}

#[derive(Deserialize)]
struct HeardAnswer {
    id: Option<Value>,
    result: Option<Value>,
    error: Option<HeardError>,
}

#[derive(Deserialize)]
struct HeardError {
    code: i64,
    message: String,
    #[serde(default)]
    data: Value,
}

impl OwnerClient {
    /// Talks over this connection, if the same user listens at its other end.
    pub fn over(stream: UnixStream) -> Result<Self, OwnerCallError> {
        let peer = stream.peer_cred().map_err(OwnerCallError::Unreachable)?;
        if !is_own(&peer) {
            return Err(OwnerCallError::Stranger { uid: peer.uid() });
        }
        Ok(Self {
            stream: BufReader::new(stream),
            process: peer.pid(),
            last: 0,
        })
    }

    /// The process that listens there, where the system says so.
    pub fn process(&self) -> Option<i32> {
        self.process
    }

    /// Asks one thing, and waits for the answer for so long. After an error other than
    /// [`OwnerCallError::Refused`] the connection is of no more use.
    pub async fn ask<Answer: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<Answer, OwnerCallError> {
        let answered = tokio::time::timeout(limit, self.exchange(method, params)).await;
        let result = answered.map_err(|_| OwnerCallError::Silent { limit })??;
        serde_json::from_value(result).map_err(|error| unreadable(&error))
    }

    async fn exchange(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Value, OwnerCallError> {
        self.last += 1;
        let mut params = serde_json::to_value(params).map_err(|error| unreadable(&error))?;
        params["_meta"] = json!({
            (meta_key::PROTOCOL_VERSION): era::MODERN_VERSIONS[0],
            (meta_key::CLIENT_CAPABILITIES): {},
            (meta_key::CLIENT_INFO): { "name": "toolway", "version": env!("CARGO_PKG_VERSION") },
        });
        let request = json!({
            "jsonrpc": "2.0", "id": self.last, "method": method, "params": params,
        });
        let line = format!("{request}\n");
        let written = self.stream.get_mut().write_all(line.as_bytes()).await;
        written.map_err(|_| OwnerCallError::Gone)?;
        loop {
            let mut line = Vec::new();
            let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
            let mut bounded = (&mut self.stream).take(most);
            let read = bounded.read_until(b'\n', &mut line).await;
            read.map_err(|_| OwnerCallError::Gone)?;
            if !line.ends_with(b"\n") {
                return Err(if line.is_empty() {
                    OwnerCallError::Gone
                } else {
                    OwnerCallError::Unreadable("it is cut off".to_owned())
                });
            }
            let heard: HeardAnswer =
                serde_json::from_slice(&line).map_err(|error| unreadable(&error))?;
            // What is said unasked is not what is waited for.
            if heard.id != Some(self.last.into()) {
                continue;
            }
            return match (heard.result, heard.error) {
                (Some(result), None) => Ok(result),
                (_, Some(error)) => Err(OwnerCallError::Refused {
                    code: error.code,
                    message: error.message,
                    reason: error.data["reason"].as_str().map(str::to_owned),
                }),
                (None, None) => Err(OwnerCallError::Unreadable("it is empty".to_owned())),
            };
        }
    }
}

fn unreadable(error: &serde_json::Error) -> OwnerCallError {
    OwnerCallError::Unreadable(error.to_string())
}

/// Whether a peer is the same user as this process.
pub(crate) fn is_own(peer: &UCred) -> bool {
    peer.uid() == rustix::process::geteuid().as_raw()
}
