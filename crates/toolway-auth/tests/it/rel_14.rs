//! REL-14: processes that renew the same logins, all at once, lose none of them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::race::{self, Race};

/// The folder of the vault that a child uses.
const FOLDER: &str = "TOOLWAY_RACE_TEST_FOLDER";

const PROCESSES: usize = 20;
const SERVERS: usize = 5;

/// Several lives of a token.
const TIME: Duration = Duration::from_secs(9);

#[tokio::test]
async fn rel_14_twenty_processes_and_five_servers_lose_no_login() {
    let begun = Instant::now();
    let race = Race::prepare(SERVERS).await;
    let outcome = race.run(PROCESSES, |folder| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["rel_14::child", "--exact", "--ignored", "--nocapture"])
            .env(FOLDER, folder);
        command
    });
    assert_eq!(outcome.families_revoked, 0, "{outcome:?}");
    assert_eq!(outcome.processes.len(), PROCESSES);
    for said in &outcome.processes {
        assert_eq!((said.logged_out, said.failed), (0, 0), "{outcome:?}");
        assert!(said.answered > 0, "{outcome:?}");
    }
    for renewals in &outcome.renewals {
        assert!(*renewals > 1, "nothing was raced for: {outcome:?}");
        // One for each life of a token, and not one for each process: they use each other's.
        assert!(*renewals <= begun.elapsed().as_secs() + 2, "{outcome:?}");
    }
}

#[test]
#[ignore = "the process that rel_14 starts many times"]
#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other way to take arguments"
)]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let said = runtime.block_on(race::run(Path::new(&folder), TIME));
    println!("{}", said.line());
}
