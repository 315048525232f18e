//! Where a scripted server's messages to one client go.
//!
//! Owns the trait that every transport implements, and writing in pieces. What is said is
//! `server.rs` and `drama.rs`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::Script;

/// The way to one client. A message is bytes, not text: some servers send what is no text.
pub(super) trait Outlet: Send + Sync {
    /// Sends one message. An error means that the client is gone.
    fn send(&self, message: &[u8]) -> io::Result<()>;
}

/// Who asked: where answers go, and whose ids these are.
#[derive(Clone)]
pub(super) struct ChaosClient {
    pub(super) outlet: Arc<dyn Outlet>,
    /// Clients number their requests alike; this keeps them apart.
    pub(super) key: String,
}

impl ChaosClient {
    /// Says something; that the client may be gone is no fault of the server's.
    pub(super) fn say(&self, message: &Value) {
        drop(self.outlet.send(message.to_string().as_bytes()));
    }
}

/// Writes, in pieces when the script says so.
pub(super) fn write(writer: &mut impl Write, bytes: &[u8], script: &Script) -> io::Result<()> {
    if script.slice == 0 {
        writer.write_all(bytes)?;
        return writer.flush();
    }
    for piece in bytes.chunks(script.slice) {
        writer.write_all(piece)?;
        writer.flush()?;
        std::thread::sleep(Duration::from_millis(script.slice_delay_ms));
    }
    Ok(())
}
