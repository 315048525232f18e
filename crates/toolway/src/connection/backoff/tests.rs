//! The waits between attempts, and what is not tried again.

use toolway_types::CertificateFault;

use super::*;

fn delays(backoff: &mut Backoff) -> Vec<(u32, Duration)> {
    std::iter::from_fn(|| backoff.failed())
        .map(|retry| (retry.attempt, retry.delay))
        .collect()
}

#[test]
fn a_lost_connection_is_tried_five_times_with_growing_waits() {
    for seed in 0..100 {
        let mut backoff = Backoff::seeded(seed);
        let first = backoff.lost(Duration::ZERO).expect("a first attempt");
        let mut all = vec![(first.attempt, first.delay)];
        all.extend(delays(&mut backoff));
        let numbers: Vec<u32> = all.iter().map(|(attempt, _)| *attempt).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        for ((_, delay), whole) in all.iter().zip([1, 2, 4, 8, 16]) {
            let whole = Duration::from_secs(whole);
            assert!(*delay >= whole / 2 && *delay <= whole, "{delay:?}");
        }
    }
}

#[test]
fn an_asked_for_connection_counts_its_first_attempt() {
    let mut backoff = Backoff::seeded(1);
    assert_eq!(backoff.attempt(), 1);
    let numbers: Vec<u32> = delays(&mut backoff).iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    backoff.renew();
    assert_eq!(backoff.attempt(), 1);
}

#[test]
fn waits_differ_between_seeds_and_repeat_with_one() {
    let all = |seed| delays(&mut Backoff::seeded(seed));
    assert_eq!(all(7), all(7));
    assert_ne!(all(7), all(8));
}

#[test]
fn no_wait_is_longer_than_half_a_minute() {
    let mut backoff = Backoff::seeded(3);
    backoff.attempt = ATTEMPTS - 1;
    let retry = backoff.failed().expect("a last attempt");
    assert!(retry.delay <= LONGEST);
}

#[test]
fn rel_04_a_connection_that_dies_young_goes_on_with_the_series() {
    let mut backoff = Backoff::seeded(5);
    let attempts: Vec<u32> = std::iter::from_fn(|| backoff.lost(Duration::from_secs(59)))
        .map(|retry| retry.attempt)
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
}

#[test]
fn a_connection_that_stood_for_a_minute_starts_a_new_series() {
    let mut backoff = Backoff::seeded(5);
    for _ in 0..4 {
        backoff.lost(Duration::ZERO);
    }
    let retry = backoff.lost(STEADY).expect("an attempt");
    assert_eq!(retry.attempt, 1);
}

fn status(status: u16) -> ConnectError {
    ConnectError::Request {
        method: "initialize",
        source: RequestError::Send(SendFailure::Status {
            status,
            www_authenticate: None,
            body: bytes::Bytes::new(),
            had_session: false,
            retry_after: Some(Duration::from_secs(u64::from(status))),
        }),
    }
}

#[test]
fn what_cannot_get_better_is_final() {
    let spawn = |kind: std::io::Error| {
        ConnectError::Open(OpenError::Spawn {
            command: "x".to_owned(),
            source: kind,
        })
    };
    assert!(is_final(&spawn(ErrorKind::NotFound.into())));
    assert!(is_final(&spawn(ErrorKind::PermissionDenied.into())));
    let full = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    assert!(!is_final(&spawn(full)));
    for code in [400, 401, 403, 404, 405, 410, 422] {
        assert!(is_final(&status(code)), "{code}");
    }
    for code in [408, 425, 429, 500, 502, 503, 504] {
        assert!(!is_final(&status(code)), "{code}");
    }
    let (fault, message) = (CertificateFault::Expired, String::new());
    for source in [
        RequestError::Send(SendFailure::Certificate {
            fault,
            message: message.clone(),
        }),
        RequestError::Closed(SendFailure::Certificate { fault, message }.into()),
    ] {
        let method = "initialize";
        assert!(is_final(&ConnectError::Request { method, source }));
    }
    assert!(is_final(&ConnectError::Version {
        offered: Vec::new()
    }));
    assert!(!is_final(&ConnectError::TimedOut {
        after: Duration::from_secs(30),
        waiting_for: "it"
    }));
}

#[test]
fn a_server_can_ask_for_a_pause_but_not_for_ever() {
    assert_eq!(asked_for(&status(200)), Duration::from_secs(200));
    assert_eq!(asked_for(&status(503)), LONGEST_ASKED);
    let closed = ConnectError::Request {
        method: "initialize",
        source: RequestError::Closed(
            SendFailure::Status {
                status: 503,
                www_authenticate: None,
                body: bytes::Bytes::new(),
                had_session: false,
                retry_after: Some(Duration::from_secs(7)),
            }
            .into(),
        ),
    };
    assert_eq!(asked_for(&closed), Duration::from_secs(7));
}
