//! A hundred processes at once, of which some never answer, some crash and one comes late.
//! (With virtual time, and the bad ones first in line: `healing.rs`, REL-08.)

use toolway::HostSnapshot;

use super::*;

/// What the servers are, by number.
fn role(number: usize) -> &'static str {
    match number {
        99 => "late",
        number if number % 10 == 3 => "silent",
        number if number % 10 == 7 => "crashing",
        _ => "healthy",
    }
}

fn server(number: usize) -> String {
    format!("s{number:02}")
}

/// The servers of a role.
fn of(wanted: &str) -> Vec<String> {
    (0..100)
        .filter(|number| role(*number) == wanted)
        .map(server)
        .collect()
}

fn behaviour(role: &str, late: Duration) -> Script {
    let plain = script(role);
    match role {
        "silent" => Script {
            silent: vec!["initialize".to_owned(), "server/discover".to_owned()],
            ..plain
        },
        "crashing" => Script {
            complaint: Some("I crash".to_owned()),
            exit_at_start: Some(3),
            ..plain
        },
        "late" => Script {
            start_delay_ms: u64::try_from(late.as_millis()).expect("a short time"),
            ..plain
        },
        _ => plain,
    }
}

fn count(snapshot: &HostSnapshot, servers: &[String], state: &str) -> usize {
    servers
        .iter()
        .filter(|name| {
            snapshot
                .server(name)
                .is_some_and(|server| server.state.as_str() == state)
        })
        .count()
}

#[expect(clippy::print_stdout, reason = "the times are what one looks at")]
async fn a_hundred_servers(late: Duration, timeout: Duration) {
    let check = LeakCheck::begin();
    let home = Home::new();
    let servers: Map<String, Value> = (0..100)
        .map(|number| {
            let script = behaviour(role(number), late);
            let entry = ScriptedServer::new(script).entry_with_env([check.env()]);
            (server(number), entry)
        })
        .collect();
    let timeout = timeout.as_millis().to_string();
    let host = host_with(&home, &Value::Object(servers), &[("MCP_TIMEOUT", &timeout)]);
    let started = std::time::Instant::now();
    let mut snapshots = host.watch();
    let everybody: Vec<String> = (0..100).map(server).collect();

    // The first tools are there as soon as the first server is: nobody waited for the rest.
    let first = snapshots.wait_for(|snapshot| snapshot.catalog.tools().next().is_some());
    let first = first.await.expect("the host runs").clone();
    println!("first tools after {:?}", started.elapsed());
    assert!(count(&first, &everybody, "connected") <= 10, "{first:?}");
    assert!(count(&first, &everybody, "pending") >= 80, "{first:?}");

    // The healthy are all connected while the bad ones are still trying.
    let healthy = of("healthy");
    assert_eq!(healthy.len(), 79);
    let all =
        snapshots.wait_for(|snapshot| count(snapshot, &healthy, "connected") == healthy.len());
    let all = all.await.expect("the host runs").clone();
    println!("79 healthy servers after {:?}", started.elapsed());
    assert_eq!(count(&all, &of("silent"), "pending"), 10, "{all:?}");
    let crashing = of("crashing");
    let trying = count(&all, &crashing, "pending") + count(&all, &crashing, "failed");
    assert_eq!(trying, 10, "{all:?}");
    for server in [&healthy[0], &healthy[78]] {
        echoes(&host, server).await;
    }

    // The late one joins, and its tools with it.
    let late_one = of("late");
    let joined = snapshots.wait_for(|snapshot| count(snapshot, &late_one, "connected") == 1);
    drop(joined.await.expect("the host runs"));
    println!("the late one after {:?}", started.elapsed());
    echoes(&host, "s99").await;

    host.shutdown().await;
    check.assert_clean().await;
}

#[tokio::test]
async fn rel_08_a_hundred_processes_with_bad_ones_among_them() {
    let late = Duration::from_millis(2500);
    a_hundred_servers(late, Duration::from_secs(40)).await;
}

/// By hand: `cargo nextest run -p toolway --run-ignored only a_minute_late`.
#[tokio::test]
#[ignore = "takes more than a minute"]
async fn rel_08_a_hundred_processes_and_one_a_minute_late() {
    a_hundred_servers(Duration::from_mins(1), Duration::from_secs(90)).await;
}
