//! Proxies between a client and its server: one that passes bytes on until it is told to go
//! silent, and one that opens tunnels.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on until it goes silent: then nothing moves, and nothing is closed.
pub(crate) struct Silencer {
    pub(crate) address: String,
    speaks: Arc<watch::Sender<bool>>,
}

impl Silencer {
    /// In front of the server at this URL.
    pub(crate) async fn before(url: &str) -> (Self, String) {
        let target = url.split('/').nth(2).expect("an authority").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let speaks = Arc::new(watch::Sender::new(true));
        let (hears, to) = (Arc::clone(&speaks), target.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (hears, to) = (Arc::clone(&hears), to.clone());
                tokio::spawn(async move {
                    let server = TcpStream::connect(to).await.expect("it is there");
                    pass(client, server, &hears).await;
                });
            }
        });
        let through = url.replace(&target, &address);
        (Self { address, speaks }, through)
    }

    pub(crate) fn go_silent(&self) {
        self.speaks.send_replace(false);
    }

    pub(crate) fn speak_again(&self) {
        self.speaks.send_replace(true);
    }
}

async fn pass(client: TcpStream, server: TcpStream, speaks: &watch::Sender<bool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let down = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let _ = speaks.subscribe().wait_for(|speaks| *speaks).await;
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let up = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            let _ = speaks.subscribe().wait_for(|speaks| *speaks).await;
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(down, up);
}

/// Opens tunnels to one address, whatever name it is asked for, and keeps what it was asked.
pub(crate) struct Tunneller {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Tunneller {
    pub(crate) async fn to(target: &str, status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, target) = (Arc::clone(&asked), target.to_owned());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (log, target) = (Arc::clone(&log), target.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(client.read_u8().await.expect("a head"));
                    }
                    let head = String::from_utf8(head).expect("text");
                    log.lock().expect("no panic").push(head);
                    let answer = format!("HTTP/1.1 {status}\r\n\r\n");
                    client.write_all(answer.as_bytes()).await.expect("sent");
                    if status.starts_with('2') {
                        let mut server = TcpStream::connect(target).await.expect("it is there");
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}
