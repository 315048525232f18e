//! REL-14 at length: twenty processes renew the logins of five servers, for as long as is asked.
//!
//! `cargo run -p toolway-auth --example refresh_race -- 600` races for ten minutes and says how
//! many families of tokens were revoked and how many processes were logged out. Both must be none.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "it is a program to look at"
)]

#[path = "../tests/it/race.rs"]
mod race;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use race::Race;

const PROCESSES: usize = 20;
const SERVERS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match words[..] {
        ["child", folder, seconds] => {
            let time = Duration::from_secs(seconds.parse().expect("a number of seconds"));
            let said = runtime.block_on(race::run(Path::new(folder), time));
            println!("{}", said.line());
            ExitCode::SUCCESS
        }
        [seconds] => drive(&runtime, seconds),
        _ => {
            println!("usage: refresh_race <seconds>");
            ExitCode::FAILURE
        }
    }
}

fn drive(runtime: &tokio::runtime::Runtime, seconds: &str) -> ExitCode {
    let begun = Instant::now();
    let race = runtime.block_on(Race::prepare(SERVERS));
    let program = std::env::current_exe().expect("a program knows its path");
    let outcome = race.run(PROCESSES, |folder| {
        let mut command = Command::new(&program);
        command.arg("child").arg(folder).arg(seconds);
        command
    });
    let sum = |of: fn(&race::Said) -> u64| outcome.processes.iter().map(of).sum::<u64>();
    let logged_out = outcome
        .processes
        .iter()
        .filter(|said| said.logged_out > 0)
        .count();
    println!(
        "{PROCESSES} processes, {SERVERS} servers, {:.0} s\n\
         families revoked: {}\n\
         processes logged out: {logged_out}\n\
         renewals by server: {:?}\n\
         requests answered: {}, refused for an expired token and repeated: {}, failed: {}\n\
         callers that did not wait for their token: {}",
        begun.elapsed().as_secs_f64(),
        outcome.families_revoked,
        outcome.renewals,
        sum(|said| said.answered),
        sum(|said| said.refused),
        sum(|said| said.failed),
        sum(|said| said.hurried),
    );
    if outcome.families_revoked == 0 && logged_out == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
