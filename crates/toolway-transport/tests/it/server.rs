//! A small HTTP server that a test scripts, request by request.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// One step of an answer.
pub(crate) enum Act {
    Write(Vec<u8>),
    /// Wait until the test says so.
    Wait(Arc<Notify>),
    /// Wait until the client closes the connection, and say so.
    AwaitClose(Arc<Notify>),
    /// Write whatever the test hands over, until one side is done.
    Follow(mpsc::UnboundedReceiver<Vec<u8>>),
    Close,
}

/// How many connections are open.
#[derive(Clone)]
pub(crate) struct Census(Arc<watch::Sender<usize>>);

pub(crate) struct Counted(Census);

impl Census {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn count(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.clone())
    }

    pub(crate) async fn until_empty(&self) {
        let mut count = self.0.subscribe();
        crate::peer::within_patience(count.wait_for(|count| *count == 0))
            .await
            .expect("it is counted");
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) census: Census,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrivals: mpsc::UnboundedReceiver<Seen>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::launch(None, answer).await
    }

    pub(crate) async fn start_tls(
        tls: ServerConfig,
        answer: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self::launch(Some(TlsAcceptor::from(Arc::new(tls))), answer).await
    }

    async fn launch(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!(
            "{scheme}://{}/mcp",
            listener.local_addr().expect("an address")
        );
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (answer, log) = (Arc::new(answer), Arc::clone(&seen));
        let census = Census::new();
        let counting = census.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let (answer, log, arrived) =
                    (Arc::clone(&answer), Arc::clone(&log), arrived.clone());
                let tls = tls.clone();
                let counted = counting.count();
                tokio::spawn(async move {
                    let _counted = counted;
                    let _ = match tls {
                        None => serve(stream, &*answer, &log, &arrived).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &*answer, &log, &arrived).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self {
            url,
            census,
            seen,
            arrivals,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// The next request that arrives.
    pub(crate) async fn arrival(&mut self) -> Seen {
        crate::peer::within_patience(self.arrivals.recv())
            .await
            .expect("the server runs")
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: &(dyn Fn(&Seen) -> Vec<Act> + Send + Sync),
    log: &Mutex<Vec<Seen>>,
    arrived: &mpsc::UnboundedSender<Seen>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(seen) = read(&mut stream, &mut buffer).await? {
        log.lock().expect("no panic").push(seen.clone());
        let acts = answer(&seen);
        let _ = arrived.send(seen);
        for act in acts {
            match act {
                Act::Write(bytes) => stream.write_all(&bytes).await?,
                Act::Wait(notify) => notify.notified().await,
                Act::AwaitClose(notify) => {
                    while stream
                        .read(&mut [0; 256])
                        .await
                        .is_ok_and(|count| count > 0)
                    {}
                    notify.notify_one();
                    return Ok(());
                }
                Act::Follow(mut pieces) => {
                    let mut ignored = [0; 256];
                    loop {
                        tokio::select! {
                            biased;
                            piece = pieces.recv() => match piece {
                                Some(piece) => stream.write_all(&piece).await?,
                                None => return Ok(()),
                            },
                            read = stream.read(&mut ignored) => if read? == 0 {
                                return Ok(());
                            },
                        }
                    }
                }
                Act::Close => return Ok(()),
            }
        }
    }
    Ok(())
}

async fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<Seen>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let mut lines = head.split("\r\n");
            let mut first = lines
                .next()
                .unwrap_or_default()
                .split(' ')
                .map(ToOwned::to_owned);
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let mut seen = Seen {
                method: first.next().unwrap_or_default(),
                path: first.next().unwrap_or_default(),
                headers,
                body: Vec::new(),
            };
            let length = seen
                .header("content-length")
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                seen.body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Ok(Some(seen));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// A whole answer.
pub(crate) fn reply(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<Act> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    vec![Act::Write([text.as_bytes(), body].concat())]
}

pub(crate) fn json(body: &serde_json::Value) -> Vec<Act> {
    reply(
        "200 OK",
        &[("content-type", "application/json")],
        &crate::peer::bytes(body),
    )
}

pub(crate) fn accepted() -> Vec<Act> {
    reply("202 Accepted", &[], b"")
}

/// The beginning of an event stream that ends when the connection does.
pub(crate) fn stream(text: &str) -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Act::Write(format!("{head}{text}").into_bytes())
}

/// The beginning of an event stream whose end is told from a broken connection.
pub(crate) fn chunked(text: &str) -> Act {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Act::Write([head.as_bytes(), &chunk(text.as_bytes())].concat())
}

/// One more piece of it; an empty one is its end.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let size = format!("{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat()
}
