//! A stream that is read, cut and read again.

use super::*;

fn room(limit: usize) -> Arc<KeptRoom> {
    Arc::new(KeptRoom {
        used: AtomicUsize::new(0),
        limit,
        all: None,
    })
}

/// What is ready now, and whether more may come.
fn take(reader: &mut ReplayReader) -> (String, bool) {
    let mut ready = VecDeque::new();
    let mut context = Context::from_waker(Waker::noop());
    let mut text = String::new();
    loop {
        let polled = reader.poll_events(&mut context, &mut ready);
        for part in ready.drain(..) {
            text.push_str(std::str::from_utf8(&part).unwrap());
        }
        match polled {
            Poll::Ready(true) => {}
            Poll::Ready(false) => return (text, false),
            Poll::Pending => return (text, true),
        }
    }
}

/// The ids of events in a text.
fn ids(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect()
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed_and_the_end() {
    let outlet = Outlet::default();
    let room = room(10_000);
    let stream = ReplayStream::new(3, outlet.clone(), Arc::clone(&room));
    let mut reader = stream.read(true).unwrap();
    outlet.notify(Bytes::from_static(b"\"one\""));
    outlet.notify(Bytes::from_static(b"\"two\""));
    let (text, more) = take(&mut reader);
    assert_eq!(ids(&text), ["3-0", "3-1", "3-2"]);
    assert!(
        text.starts_with("id: 3-0\nretry: 1000\ndata: \n\n"),
        "{text}"
    );
    assert!(more);
    drop(reader);
    outlet.notify(Bytes::from_static(b"\"three\""));
    let answer = ["{\"result\":", "4", "}"].map(|part| Bytes::from_static(part.as_bytes()));
    stream.finish(&answer);
    assert!(outlet.is_gone());
    let (text, more) = take(&mut stream.resume(1).unwrap());
    assert_eq!(ids(&text), ["3-2", "3-3", "3-4"]);
    assert!(text.ends_with("data: {\"result\":4}\n\n"), "{text}");
    assert!(!more);
    // As often as it likes, and never what was not there.
    assert_eq!(ids(&take(&mut stream.resume(3).unwrap()).0), ["3-4"]);
    assert_eq!(take(&mut stream.resume(4).unwrap()), (String::new(), false));
    assert_eq!(stream.resume(5).err(), Some(NoReplay::Unknown));
    drop(stream);
    assert_eq!(room.used.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn who_comes_back_takes_over_and_who_only_comes_does_not() {
    let outlet = Outlet::default();
    let stream = ReplayStream::new(0, outlet.clone(), room(10_000));
    let mut first = stream.read(false).unwrap();
    outlet.notify(Bytes::from_static(b"1"));
    assert_eq!(ids(&take(&mut first).0), ["0-1"]);
    assert_eq!(stream.read(false).err(), Some(NoReplay::Taken));
    let mut second = stream.resume(0).unwrap();
    assert_eq!(take(&mut first), (String::new(), false));
    drop(first);
    assert!(stream.has_reader());
    outlet.notify(Bytes::from_static(b"2"));
    assert_eq!(ids(&take(&mut second).0), ["0-1", "0-2"]);
    drop(second);
    assert!(!stream.has_reader());
    // What nobody read waits, and what was sent is not sent again unasked.
    outlet.notify(Bytes::from_static(b"3"));
    assert_eq!(ids(&take(&mut stream.read(false).unwrap()).0), ["0-3"]);
}

#[tokio::test]
async fn no_more_is_kept_than_there_is_room_for() {
    let outlet = Outlet::default();
    let room = room(1000);
    let stream = ReplayStream::new(1, outlet.clone(), Arc::clone(&room));
    let mut reader = stream.read(false).unwrap();
    for _ in 0..100 {
        outlet.notify(Bytes::from(format!("\"{}\"", "x".repeat(100))));
        assert_eq!(ids(&take(&mut reader).0).len(), 1);
        assert!(room.used.load(Ordering::SeqCst) <= 1000);
    }
    let kept = take(&mut stream.resume(0).unwrap()).0;
    assert_eq!(ids(&kept).last(), Some(&"1-100"));
    assert!((5..10).contains(&ids(&kept).len()), "{kept}");
    // More than there is room for is sent to who reads, and kept for nobody.
    let mut reader = stream.resume(100).unwrap();
    stream.finish(&[Bytes::from("9".repeat(2000))]);
    assert_eq!(ids(&take(&mut reader).0), ["1-101"]);
    drop(reader);
    assert_eq!(room.used.load(Ordering::SeqCst), 0);
}
