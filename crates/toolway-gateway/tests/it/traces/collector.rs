//! A collector on a loopback port, which reads what it is sent with the types of the standard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use toolway::config::{TraceSampling, TraceSettings};
use toolway::types::Secret;
use toolway::{SpanCounts, SpanExport};
use toolway_transport::client::HttpClient;
use url::Url;

/// What the collector does with a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reaction {
    Take,
    /// It asks to come again at once.
    Busy,
    Refuse,
    /// It never answers.
    Hang,
    /// It answers no HTTP.
    Nonsense,
    /// It takes the batch and never stops talking.
    Endless,
}

#[derive(Default)]
struct CollectorMemory {
    requests: Vec<ExportTraceServiceRequest>,
    /// Everything that came in, as bytes.
    raw: Vec<u8>,
    seen: usize,
}

/// A collector, and what exports to it.
pub(super) struct Collector {
    pub(super) export: SpanExport,
    memory: Arc<Mutex<CollectorMemory>>,
    _tasks: JoinSet<()>,
}

impl Collector {
    /// One that reacts so to requests in turn, and takes all further ones.
    pub(super) async fn start(reactions: &[Reaction]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let memory = Arc::<Mutex<CollectorMemory>>::default();
        let mut reactions: VecDeque<_> = reactions.iter().copied().collect();
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&memory);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let reaction = reactions.pop_front().unwrap_or(Reaction::Take);
                connections.spawn(serve(stream, reaction, Arc::clone(&shared)));
            }
        });
        let endpoint = format!("http://{address}/v1/traces");
        Self {
            export: export_to(&endpoint),
            memory,
            _tasks: tasks,
        }
    }

    /// How many requests have come.
    pub(super) fn seen(&self) -> usize {
        self.memory.lock().unwrap().seen
    }

    /// Has everything exported, and gives the spans, all bytes, and the counts.
    pub(super) async fn end(self) -> (Vec<Span>, Vec<u8>, SpanCounts) {
        let tracer = self.export.tracer().clone();
        self.export.end().await;
        let mut memory = self.memory.lock().unwrap();
        let requests = std::mem::take(&mut memory.requests);
        let mut spans = Vec::new();
        for request in requests {
            for of_resource in request.resource_spans {
                let resource = of_resource.resource.unwrap();
                assert_eq!(text_of(&resource.attributes, "service.name"), "the gateway");
                assert_eq!(
                    text_of(&resource.attributes, "deployment.environment.name"),
                    "test"
                );
                for of_scope in of_resource.scope_spans {
                    assert_eq!(of_scope.scope.unwrap().name, "toolway");
                    spans.extend(of_scope.spans);
                }
            }
        }
        (spans, std::mem::take(&mut memory.raw), tracer.counts())
    }
}

/// An exporter to this address that gathers for long, so that a test decides when it sends.
pub(super) fn export_to(endpoint: &str) -> SpanExport {
    let settings = TraceSettings {
        endpoint: Url::parse(endpoint).unwrap(),
        headers: vec![(
            "x-collector-key".to_owned(),
            Secret::new("for the collector"),
        )],
        service: "the gateway".to_owned(),
        resource: vec![("deployment.environment.name".to_owned(), "test".to_owned())],
        sampling: TraceSampling::default(),
        timeout: Duration::from_secs(1),
        delay: Duration::from_hours(1),
    };
    SpanExport::start(settings, HttpClient::default()).unwrap()
}

/// A text among attributes.
pub(super) fn text_of(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|it| it.key == name);
    match found.and_then(|it| it.value.as_ref()?.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        other => panic!("`{name}` is {other:?} in {attributes:?}"),
    }
}

async fn serve(mut stream: TcpStream, reaction: Reaction, memory: Arc<Mutex<CollectorMemory>>) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            break (head, bytes[end + 4..].to_vec());
        }
    };
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(
        head.contains("\r\ncontent-type: application/x-protobuf"),
        "{head}"
    );
    assert!(
        head.contains("\r\nx-collector-key: for the collector"),
        "{head}"
    );
    memory.lock().unwrap().seen += 1;
    let answer: &[u8] = match reaction {
        Reaction::Take | Reaction::Endless => {
            let request = ExportTraceServiceRequest::decode(&*body).unwrap();
            let mut memory = memory.lock().unwrap();
            memory.requests.push(request);
            memory.raw.extend(body);
            match reaction {
                Reaction::Endless => b"HTTP/1.1 200 OK\r\n\r\n",
                _ => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            }
        }
        Reaction::Busy => b"HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
        Reaction::Refuse => b"HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n",
        Reaction::Nonsense => b"\0\0 what?\r\n\r\n",
        Reaction::Hang => return std::future::pending().await,
    };
    let mut written = stream.write_all(answer).await;
    while matches!(reaction, Reaction::Endless) && written.is_ok() {
        written = stream.write_all(&[b'x'; 4096]).await;
    }
}
