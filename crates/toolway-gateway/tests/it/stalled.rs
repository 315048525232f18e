//! REL-29: a client that stops reading affects no other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex, split};
use tokio::net::TcpStream;
use toolway_gateway::http::{HttpOptions, WRITE_TIMEOUT};
use toolway_gateway::{
    Answer, AnswerFuture, ClientBusy, Conversation, IncomingRequest, NoConversation, Outlet, Peer,
    Service, in_process, stdio,
};

use crate::http_stage::{OnStage, Stage, until};
use crate::{post, request, with_options};

/// Tells every client what it is told, and answers every request with its parameters.
#[derive(Default)]
struct Herald {
    clients: Mutex<Vec<Outlet>>,
    served: AtomicUsize,
}

impl Herald {
    fn clients(&self) -> Vec<Outlet> {
        self.clients.lock().unwrap().clone()
    }

    fn tell(&self, number: usize) {
        let message = json!({ "jsonrpc": "2.0", "method": "news", "params": { "n": number } });
        for client in self.clients() {
            client.notify(message.to_string().into());
        }
    }
}

impl Conversation for Herald {
    fn request(self: Arc<Self>, request: IncomingRequest, _outlet: Outlet) -> AnswerFuture {
        self.served.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Answer::result(request.params.unwrap_or_default()) })
    }
}

/// Serves a herald, and introduces every client to it.
struct Heralding(Arc<Herald>);

impl Service for Heralding {
    fn open(&self, _peer: &Peer, unasked: Outlet) -> Result<Arc<dyn Conversation>, NoConversation> {
        self.0.clients.lock().unwrap().push(unasked);
        Ok(Arc::clone(&self.0) as _)
    }

    fn visit(&self, _peer: &Peer) -> Result<Arc<dyn Conversation>, NoConversation> {
        Ok(Arc::clone(&self.0) as _)
    }
}

fn heralding(herald: &Arc<Herald>) -> Arc<dyn Service> {
    Arc::new(Heralding(Arc::clone(herald)))
}

#[tokio::test]
async fn rel_29_a_stalled_reader_loses_old_news_and_others_lose_none() {
    const NEWS: usize = 10_000;
    let herald = Arc::new(Herald::default());
    let peer = Peer::owner("test");
    // Hardly anything fits into the stalled one's pipe; the other one's reader keeps up.
    let (stalled, far) = duplex(64);
    let (input, output) = split(far);
    let first = stdio::serve_on(heralding(&herald), &peer, input, output);
    let (attentive, far) = duplex(64 * 1024);
    let (input, output) = split(far);
    let second = stdio::serve_on(heralding(&herald), &peer, input, output);

    let telling = async {
        while herald.clients().len() < 2 {
            tokio::task::yield_now().await;
        }
        let (reader, mut writer) = split(attentive);
        let mut lines = BufReader::new(reader).lines();
        for number in 0..NEWS {
            herald.tell(number);
            let line = lines.next_line().await.unwrap().unwrap();
            let heard: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(heard["params"]["n"], number);
        }
        // And its calls are answered.
        let call = format!("{}\n", request(1, "any", &json!({ "still": "there" })));
        writer.write_all(call.as_bytes()).await.unwrap();
        let line = lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"], json!({ "still": "there" }));

        let clients = herald.clients();
        let dropped: Vec<u64> = clients.iter().map(Outlet::dropped).collect();
        assert_eq!(dropped.iter().filter(|dropped| **dropped == 0).count(), 1);
        let dropped = *dropped.iter().max().unwrap();

        // The stalled one wakes up: what it missed is old news, and the newest came.
        let (reader, writer) = split(stalled);
        let mut lines = BufReader::new(reader).lines();
        let mut heard = Vec::new();
        while heard.last() != Some(&(NEWS as u64 - 1)) {
            let line = lines.next_line().await.unwrap().unwrap();
            let news: Value = serde_json::from_str(&line).unwrap();
            heard.push(news["params"]["n"].as_u64().unwrap());
        }
        assert!(heard.is_sorted(), "{heard:?}");
        assert_eq!(heard.len() as u64 + dropped, NEWS as u64);
        drop((writer, lines));
    };
    tokio::select! {
        _ = async { tokio::join!(first, second) } => panic!("serving ended"),
        () = telling => {}
    }
}

#[tokio::test]
async fn rel_29_requests_to_a_stalled_client_fail_and_its_calls_are_bounded() {
    let herald = Arc::new(Herald::default());
    let (to_server, incoming) = tokio::sync::mpsc::channel(8);
    let (outgoing, mut from_server) = tokio::sync::mpsc::channel::<Bytes>(1);
    let serving = in_process(heralding(&herald))(toolway::ServerEnd { incoming, outgoing });
    let talking = async {
        // The client does not read: calls are accepted up to the bound.
        let mut sent = 0_u64;
        loop {
            let call = request(sent, "any", &json!({}));
            let sending = to_server.send(Bytes::from(call));
            match tokio::time::timeout(std::time::Duration::from_secs(1), sending).await {
                Ok(sent) => sent.unwrap(),
                Err(_) => break,
            }
            sent += 1;
        }
        let bound = toolway_types::limits::gateway::IN_FLIGHT;
        let served = herald.served.load(Ordering::SeqCst);
        assert!((bound..=bound + 2).contains(&served), "{served}");

        let client = herald.clients().remove(0);
        let asked = (0..).take_while(|_| client.ask(Bytes::from_static(b"{}")).is_ok());
        assert_eq!(asked.count(), toolway_gateway::outlet::MAX_WAITING);
        assert_eq!(client.ask(Bytes::new()), Err(ClientBusy));

        // It reads again: every call that was taken is answered, once.
        let mut answered = std::collections::BTreeSet::new();
        while answered.len() < usize::try_from(sent).unwrap() {
            let message: Value =
                serde_json::from_slice(&from_server.recv().await.unwrap()).unwrap();
            if let Some(id) = message["id"].as_u64() {
                assert!(answered.insert(id), "{id} was answered twice");
            }
        }
        drop(to_server);
        while from_server.recv().await.is_some() {}
        assert!(client.is_gone());
    };
    tokio::time::pause();
    tokio::join!(serving, talking);
}

#[tokio::test]
async fn rel_29_an_http_client_that_never_reads_its_answer_is_cut_off() {
    // More than any pair of socket buffers holds.
    const SIZE: usize = 16_000_000;
    let stage = Arc::new(Stage::default());
    let service = Arc::new(OnStage(Arc::clone(&stage)));
    with_options(service, &HttpOptions::default(), async |address| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let raw = post(address, &[], &request(1, "big", &json!({ "size": SIZE })));
        let mut deaf = Vec::new();
        for _ in 0..4 {
            let mut deaf_one = TcpStream::connect(address).await.unwrap();
            deaf_one.write_all(raw.as_bytes()).await.unwrap();
            deaf.push(deaf_one);
        }
        until(|| stage.begun() == 4).await;
        // Others are served meanwhile.
        let hello = post(address, &[], &request(1, "whoami", &json!({})));
        stream.write_all(hello.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(r#""principal":"anybody""#));

        tokio::time::pause();
        tokio::time::sleep(WRITE_TIMEOUT * 2).await;
        tokio::time::resume();
        for mut deaf_one in deaf {
            let mut rest = Vec::new();
            drop(deaf_one.read_to_end(&mut rest).await);
            assert!(rest.len() < SIZE, "the whole answer came");
        }
    })
    .await;
}
