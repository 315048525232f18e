//! What child processes write on their stdout.

use serde_json::Value;
use toolway_transport::{ChannelEvent, ChannelLimits, CloseReason};
use toolway_wire::Id;

use crate::peer::{Peer, python};

pub(crate) fn lines(reason: CloseReason) -> Vec<String> {
    let (CloseReason::Exited { stderr, .. } | CloseReason::EndOfStream { stderr }) = reason else {
        panic!("{reason:?}");
    };
    stderr
        .iter()
        .map(|line| line.as_received().to_owned())
        .collect()
}

#[tokio::test]
async fn rel_05_noise_on_stdout_goes_to_the_log_and_the_connection_stays() {
    let script = r#"
import sys
out = sys.stdout.buffer
ok = lambda n: b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n
out.write(b"Server v1.0 ready\n\x1b[32mgreen\x1b[0m log\n")
out.write(b"\xef\xbb\xbf" + ok(1) + b"\n")
out.write(ok(2) + b"\r\n")
out.write(b"\x00\x00" + ok(3) + b"\x00\n")
out.write(b"loading... " + ok(4) + b"\n")
out.write(b"\xff\xfe broken\n" + b'{"jsonrpc":"2.0","id":5,"result":"\xff"}\n')
out.write(b"\n\n" + b'{"level":"info","msg":"x"}\n')
out.write(b'{"jsonrpc":"2.0","id":6,"res\n')
out.write(ok(7))
"#;
    let mut peer = Peer::open(python(script), ChannelLimits::default()).await;
    let mut ids = Vec::new();
    let reason = loop {
        match peer.event().await {
            ChannelEvent::Message { bytes, .. } => {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                ids.push(message["id"].as_u64().expect("a number"));
            }
            ChannelEvent::Closed(reason) => break reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ids, [1, 2, 3, 5, 7]);
    assert_eq!(
        lines(reason),
        [
            "[stdout] Server v1.0 ready",
            "[stdout] \u{1b}[32mgreen\u{1b}[0m log",
            r#"[stdout] loading... {"jsonrpc":"2.0","id":4,"result":{}}"#,
            "[stdout] \u{FFFD}\u{FFFD} broken",
            r#"[stdout] {"level":"info","msg":"x"}"#,
            r#"[stdout] {"jsonrpc":"2.0","id":6,"res"#,
        ]
    );
}

#[tokio::test]
async fn rel_11_a_line_over_the_cap_fails_its_call_at_once() {
    let script = r#"
import sys
out = sys.stdout.buffer
piece = b"x" * (1 << 20)
def line(head, count, tail):
    out.write(head)
    for _ in range(count): out.write(piece)
    out.write(tail)
line(b'{"jsonrpc":"2.0","id":1,"result":"', 17, b'"}\n')
line(b'{"jsonrpc":"2.0","result":{"t":"', 1024, b'"},"id":2}\n')
line(b'{"jsonrpc":"2.0","id":3,"result":"', 15, b'"}\n')
sys.stdin.read()
"#;
    let mut peer = Peer::open(python(script), ChannelLimits::default()).await;
    for id in [1, 2] {
        match peer.event().await {
            ChannelEvent::Oversized { id_hint, limit } => {
                assert_eq!((id_hint, limit), (Some(Id::Number(id)), 16 * 1024 * 1024));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peer.message().await["id"], 3);
    peer.end().await;
}
