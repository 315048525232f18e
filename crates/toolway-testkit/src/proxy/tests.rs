//! The fault proxy by itself: that each toxic does what it says to real connections. Nothing of
//! the product is involved.

use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

use super::*;
use crate::patience::eventually_blocking;

/// A server that says back what it hears, one thread per client.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = &stream;
                let mut writer = &stream;
                std::io::copy(&mut reader, &mut writer)
            });
        }
    });
    address
}

fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).unwrap()
}

fn round_trip(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(text)?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back)?;
    Ok(back)
}

#[test]
fn what_is_not_spoiled_passes_and_is_counted() {
    let proxy = FaultProxy::before(&echo());
    let mut stream = connect(&proxy);
    assert_eq!(round_trip(&mut stream, b"hello").unwrap(), b"hello");
    assert_eq!((proxy.connections(), proxy.open()), (1, 1));
    assert_eq!(
        proxy.url("http://127.0.0.1:9/mcp"),
        format!("http://{}/mcp", proxy.address())
    );
    drop(stream);
    eventually_blocking(|| match proxy.open() {
        0 => Ok(()),
        open => Err(format!("{open} connections live")),
    });
}

#[test]
fn a_cut_comes_at_its_byte_politely_or_not() {
    let proxy = FaultProxy::before(&echo());
    for (end, polite) in [(ConnectionEnd::Fin, true), (ConnectionEnd::Reset, false)] {
        proxy.set(ProxyFaults {
            cut: Some(ConnectionCut {
                after: 3,
                direction: Direction::Down,
                end,
            }),
            ..ProxyFaults::default()
        });
        let mut stream = connect(&proxy);
        stream.write_all(b"hello").unwrap();
        let mut heard = Vec::new();
        let ended = stream.read_to_end(&mut heard);
        if polite {
            assert_eq!((ended.unwrap(), heard.as_slice()), (3, &b"hel"[..]));
        } else {
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
        }
    }
}

#[test]
fn a_half_open_connection_swallows_everything_until_it_is_healed() {
    let proxy = FaultProxy::before(&echo());
    let mut stream = connect(&proxy);
    round_trip(&mut stream, b"before").unwrap();
    proxy.set(ProxyFaults {
        half_open: true,
        ..ProxyFaults::default()
    });
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let swallowed = round_trip(&mut stream, b"during").unwrap_err();
    assert_eq!(swallowed.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(None).unwrap();
    proxy.heal();
    let mut back = [0; 6];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"during");
}

#[test]
fn a_closed_port_refuses_and_is_opened_again() {
    let proxy = FaultProxy::before(&echo());
    proxy.set(ProxyFaults {
        refuse: true,
        ..ProxyFaults::default()
    });
    let refused = TcpStream::connect(proxy.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.heal();
    assert_eq!(
        round_trip(&mut connect(&proxy), b"again").unwrap(),
        b"again"
    );
}

#[test]
fn held_late_and_narrow_ways_take_their_time_and_lose_nothing() {
    let proxy = FaultProxy::before(&echo());
    let text = vec![b'x'; 4096];
    for toxics in [
        ProxyFaults {
            latency: Duration::from_millis(20),
            ..ProxyFaults::default()
        },
        ProxyFaults {
            bandwidth: Some(100_000),
            slice: 100,
            ..ProxyFaults::default()
        },
        ProxyFaults {
            hold: Some(AnswerHold {
                bytes: 1 << 20,
                time: Duration::from_millis(20),
            }),
            ..ProxyFaults::default()
        },
    ] {
        proxy.set(toxics.clone());
        let started = Instant::now();
        let back = round_trip(&mut connect(&proxy), &text).unwrap();
        assert!(back == text);
        let taken = started.elapsed();
        assert!(taken >= Duration::from_millis(40), "{toxics:?}: {taken:?}");
    }
}

#[test]
fn every_connection_ends_with_the_proxy() {
    let proxy = FaultProxy::before(&echo());
    let mut stream = connect(&proxy);
    round_trip(&mut stream, b"hello").unwrap();
    drop(proxy);
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0);
}
