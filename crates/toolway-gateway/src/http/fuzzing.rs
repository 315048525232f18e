//! The entry point of the fuzz target `http-front` in `fuzz/`: the bytes of one connection.
//!
//! Owns nothing. It exists only where the compiler is told `--cfg fuzzing`.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio_util::sync::CancellationToken;

use super::connection::speak;
use super::front::Front;
use super::guard::RequestGuard;
use super::handler::Handler;
use super::options::HttpOptions;
use super::slots::ConnectionSlots;
use super::visitor::{Door, Visitor};
use crate::conversation::Service;

/// What a server at the address of the options answers to these bytes, after which the client closes
/// its side. Nothing that a request leaves behind is carried on.
pub async fn answered(service: Arc<dyn Service>, options: &HttpOptions, bytes: &[u8]) -> Vec<u8> {
    let guard = RequestGuard::new(options.address, &options.hosts, options.scheme());
    let asked = CancellationToken::new();
    let (front, _work) = Front::new(service, options, guard, None, asked.clone());
    let visitor = Arc::new(Visitor {
        door: Door::Clients,
        here: Some(options.address.ip()),
        slot: ConnectionSlots::new(1, Arc::clone(&front.counters)).take(),
        patience: super::lazy_timer::LazyTimer::default(),
    });
    let handler = Arc::new(Handler {
        front,
        old_clients: Arc::default(),
    });
    let (ours, mut theirs) = duplex(1 << 20);
    let talk = async {
        let _ = theirs.write_all(bytes).await;
        let _ = theirs.shutdown().await;
        let mut said = Vec::new();
        let _ = theirs.read_to_end(&mut said).await;
        said
    };
    let (_, said) = tokio::join!(speak(ours, visitor, handler, asked), talk);
    said
}
