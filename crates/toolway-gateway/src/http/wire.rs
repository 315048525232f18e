//! The bytes of a connection, encrypted or not.
//!
//! Owns one type for both, so that everything above is compiled once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::stall::StallingSocket;

/// A connection's bytes.
pub(super) enum ServerWire {
    Plain(StallingSocket),
    Encrypted(Box<TlsStream<StallingSocket>>),
}

macro_rules! either {
    ($self:ident, $stream:ident => $done:expr) => {
        match $self.get_mut() {
            ServerWire::Plain(stream) => {
                let $stream = Pin::new(stream);
                $done
            }
            ServerWire::Encrypted(stream) => {
                let $stream = Pin::new(&mut **stream);
                $done
            }
        }
    };
}

impl AsyncRead for ServerWire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for ServerWire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(context))
    }
}
