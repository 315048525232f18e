//! A hundred processes below the real program, some of which never answer or crash, and one that
//! comes late. However the program ends, nothing of it remains.
//!
//! The same by way of the library, and with a minute's delay: `faults/scale.rs` of `toolway`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use toolway_testkit::{Canary, Script, ScriptedServer, TempHome};

use crate::support::{command, servers};
use crate::watching::Running;

/// How long the one that is late waits before it reads.
const LATE: Duration = Duration::from_secs(3);
/// How long a killed program's processes may remain.
const GONE_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Healthy,
    Silent,
    Crashing,
    Late,
}

/// What the servers are, by number: bad ones among the first and the last.
fn role(number: usize) -> Role {
    match number {
        99 => Role::Late,
        number if number % 10 == 0 => Role::Silent,
        number if number % 10 == 7 => Role::Crashing,
        _ => Role::Healthy,
    }
}

fn behaviour(role: Role) -> Script {
    let plain = Script::default();
    match role {
        Role::Healthy => plain,
        Role::Silent => Script {
            silent: vec!["initialize".to_owned(), "server/discover".to_owned()],
            ..plain
        },
        Role::Crashing => Script {
            complaint: Some("I crash".to_owned()),
            exit_at_start: Some(3),
            ..plain
        },
        Role::Late => Script {
            start_delay_ms: u64::try_from(LATE.as_millis()).unwrap(),
            ..plain
        },
    }
}

/// The program with its hundred servers, all of whose processes carry the mark.
struct Hundred {
    running: Running,
    states: BTreeMap<String, String>,
    canary: Canary,
    _home: TempHome,
}

impl Hundred {
    fn start() -> Self {
        let home = TempHome::new();
        let canary = Canary::new();
        let mark = (canary.name(), canary.value());
        let names: Vec<String> = (0..100).map(|number| format!("s{number:02}")).collect();
        let entries: Vec<(&str, Value)> = names
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let server = ScriptedServer::new(behaviour(role(number)));
                (name.as_str(), server.entry_with_env([mark]))
            })
            .collect();
        home.write_settings(servers(&entries));
        // The program itself carries it too, and with it whatever it forks to keep the others.
        let mut program = command(&home, &["list", "--watch", "--json"]);
        program.env(mark.0, mark.1);
        Self {
            running: Running::of(&mut program),
            states: BTreeMap::new(),
            canary,
            _home: home,
        }
    }

    /// How many servers of a role are in one of these states.
    fn count(&self, wanted: Role, states: &[&str]) -> usize {
        (0..100)
            .filter(|number| role(*number) == wanted)
            .filter_map(|number| self.states.get(&format!("s{number:02}")))
            .filter(|state| states.contains(&state.as_str()))
            .count()
    }

    /// Takes in what the program says until so many servers of a role are connected.
    fn wait_for(&mut self, wanted: Role, count: usize) {
        while self.count(wanted, &["connected"]) < count {
            let line = self.running.wait_for("\"event\"");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == "state" {
                let text = |key: &str| event[key].as_str().unwrap().to_owned();
                self.states.insert(text("server"), text("state"));
            }
        }
    }

    /// The healthy are all there, and the late one comes, while the bad ones still try.
    fn settle(&mut self) {
        self.wait_for(Role::Healthy, 79);
        assert_eq!(self.count(Role::Silent, &["pending"]), 10);
        assert_eq!(self.count(Role::Crashing, &["pending", "failed"]), 10);
        self.wait_for(Role::Late, 1);
        assert_eq!(self.count(Role::Healthy, &["connected"]), 79);
        assert_eq!(self.count(Role::Silent, &["pending"]), 10);
        // Those that answer and the program; the others come and go.
        let living = self.canary.processes().len();
        assert!(living > 80, "only {living} processes");
    }

    /// Every process below the program, marked or not, by its id and the time it started.
    fn family(&self) -> BTreeSet<(u32, String)> {
        let all: Vec<_> = processes().collect();
        let mut family = BTreeMap::from([(self.running.id(), String::new())]);
        loop {
            let before = family.len();
            for process in &all {
                if family.contains_key(&process.parent) {
                    family.insert(process.id, process.started.clone());
                }
            }
            if family.len() == before {
                family.remove(&self.running.id());
                return family.into_iter().collect();
            }
        }
    }
}

struct Process {
    id: u32,
    parent: u32,
    started: String,
}

/// Every process that is more than a zombie.
fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold anything, so what follows it is counted from its end.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        (fields[0] != "Z").then(|| Process {
            id,
            parent: fields[1].parse().unwrap(),
            started: fields[19].to_owned(),
        })
    })
}

/// Those of a family that live.
fn living(family: &BTreeSet<(u32, String)>) -> Vec<u32> {
    processes()
        .filter(|process| family.contains(&(process.id, process.started.clone())))
        .map(|process| process.id)
        .collect()
}

#[test]
fn rel_01_nothing_of_a_hundred_servers_survives_the_program_that_is_killed() {
    let mut hundred = Hundred::start();
    hundred.settle();
    // The launcher and its reapers are in it too, whose environment is empty.
    let family = hundred.family();
    assert!(family.len() > 80, "{family:?}");
    hundred.running.signal(Signal::KILL);
    let killed = Instant::now();
    let (code, _, _) = hundred.running.end();
    assert_eq!(code, Some(137), "it was killed");
    let is_left = || !hundred.canary.processes().is_empty() || !living(&family).is_empty();
    while is_left() && killed.elapsed() < GONE_WITHIN {
        std::thread::yield_now();
    }
    println!("gone {:?} after SIGKILL", killed.elapsed());
    hundred.canary.assert_gone();
    assert_eq!(living(&family), Vec::<u32>::new());
}

#[test]
fn rel_01_nothing_of_a_hundred_servers_is_left_when_the_program_is_told_to_end() {
    let mut hundred = Hundred::start();
    hundred.settle();
    let family = hundred.family();
    hundred.running.signal(Signal::TERM);
    let told = Instant::now();
    let (code, _, stderr) = hundred.running.end();
    println!("ended {:?} after SIGTERM", told.elapsed());
    assert_eq!(code, Some(0), "{stderr}");
    // In an orderly way: it waited for them, so there is nothing to wait for now.
    hundred.canary.assert_gone();
    assert_eq!(living(&family), Vec::<u32>::new());
}
