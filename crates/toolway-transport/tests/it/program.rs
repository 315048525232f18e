//! Programs run to their end, as direct children and below a launcher alike: what they are given,
//! what is heard of them, and that nothing of them stays.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolway_testkit::Canary;
use toolway_transport::OpenError;
use toolway_transport::program::{
    Invocation, ProgramError, ProgramLimits, ProgramOutput, ProgramRun, run,
};
use toolway_types::{Secret, ShieldMode, WorkingDirectory};

use crate::peer::within_patience;
use crate::process::{Way, until_none};

const WAYS: [Way; 2] = [Way::Direct, Way::Kept];

fn line(line: &str, canary: &Canary) -> ProgramRun {
    let inherited = [(
        "PATH".to_owned(),
        Secret::new("/usr/local/bin:/usr/bin:/bin"),
    )];
    ProgramRun {
        invocation: Invocation::Line(line.to_owned()),
        stdin: b"the input".to_vec(),
        inherited: Arc::new(BTreeMap::from(inherited)),
        env: [(canary.name().to_owned(), Secret::new(canary.value()))].into(),
        cwd: WorkingDirectory::default(),
        shield: ShieldMode::Off,
        limits: ProgramLimits {
            time: Duration::from_secs(30),
            stdout: 64 * 1024,
            stderr: 1024,
        },
    }
}

async fn finished(way: Way, program: ProgramRun) -> ProgramOutput {
    within_patience(run(program, &way.options()))
        .await
        .expect("it ends by itself")
}

async fn failed(way: Way, program: ProgramRun) -> ProgramError {
    within_patience(run(program, &way.options()))
        .await
        .expect_err("it does not end by itself")
}

#[tokio::test]
async fn sec_13_a_file_that_was_checked_is_executed_under_the_name_it_goes_by() {
    for way in WAYS {
        let canary = Canary::new();
        let program = ProgramRun {
            invocation: Invocation::Checked {
                file: "/bin/sh".into(),
                program: "/nowhere/by-name".to_owned(),
                args: vec!["-c".to_owned(), "printf %s \"$0\"".to_owned()],
            },
            ..line("", &canary)
        };
        let ended = finished(way, program).await;
        assert_eq!(ended.stdout, b"/nowhere/by-name");
        canary.assert_gone();
    }
}

#[tokio::test]
async fn input_goes_in_and_both_outputs_and_the_status_come_out() {
    for way in WAYS {
        let canary = Canary::new();
        let ended = finished(way, line("cat; echo oops >&2; exit 3", &canary)).await;
        assert_eq!(ended.stdout, b"the input");
        assert_eq!((ended.stderr, ended.stderr_total), (b"oops\n".to_vec(), 5));
        assert_eq!(ended.status.code(), Some(3));
        canary.assert_gone();
    }
}

#[tokio::test]
async fn arguments_given_apart_meet_no_shell() {
    for way in WAYS {
        let program = ProgramRun {
            invocation: Invocation::Words {
                program: "printf".to_owned(),
                args: vec!["%s".to_owned(), "$(id) `id` ; id".to_owned()],
            },
            ..line("", &Canary::new())
        };
        assert_eq!(finished(way, program).await.stdout, b"$(id) `id` ; id");
    }
}

#[tokio::test]
async fn sec_39_it_gets_the_declared_environment_and_three_descriptors() {
    for way in WAYS {
        let canary = Canary::new();
        let program = ProgramRun {
            cwd: PathBuf::from("/usr").into(),
            ..line("pwd; env | cut -d= -f1 | sort; ls /proc/self/fd", &canary)
        };
        let shown = String::from_utf8(finished(way, program).await.stdout).expect("text");
        let words: Vec<&str> = shown
            .lines()
            // The shell's own, the sweep's mark of direct children, and the directory `ls` reads.
            .filter(|word| !["PWD", "OLDPWD", "_", "SHLVL", "TOOLWAY_SERVER_MARK", "3"].contains(word))
            .collect();
        assert_eq!(
            words,
            ["/usr", "PATH", canary.name(), "0", "1", "2"],
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn what_does_not_start_says_so() {
    for way in WAYS {
        let missing = ProgramRun {
            invocation: Invocation::Words {
                program: "/nonexistent/guard".to_owned(),
                args: Vec::new(),
            },
            ..line("", &Canary::new())
        };
        let error = failed(way, missing).await;
        assert!(
            matches!(error, ProgramError::Start(OpenError::Spawn { .. })),
            "{error:?}"
        );
        let elsewhere = ProgramRun {
            cwd: PathBuf::from("/nonexistent").into(),
            ..line("true", &Canary::new())
        };
        let error = failed(way, elsewhere).await;
        assert!(
            matches!(error, ProgramError::Start(OpenError::Directory(_))),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn rel_30_a_program_that_hangs_is_killed_with_all_it_started() {
    for way in WAYS {
        let canary = Canary::new();
        let mut program = line(
            "trap '' INT TERM; setsid sleep 1000 & (trap '' INT TERM; sleep 1000) & wait; wait",
            &canary,
        );
        program.limits.time = Duration::from_millis(300);
        let error = failed(way, program).await;
        assert!(matches!(error, ProgramError::TimedOut { .. }), "{error:?}");
        until_none(&canary).await;
    }
}

#[tokio::test]
async fn rel_30_a_program_that_prints_without_end_is_killed_at_once() {
    for way in WAYS {
        let canary = Canary::new();
        let start = Instant::now();
        let error = failed(way, line("yes", &canary)).await;
        assert!(
            matches!(error, ProgramError::TooMuch { limit: 65_536 }),
            "{error:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "not by its deadline"
        );
        until_none(&canary).await;
    }
}

#[tokio::test]
async fn rel_30_complaints_are_counted_beyond_their_room() {
    for way in WAYS {
        let canary = Canary::new();
        let ended = finished(
            way,
            line("head -c 300000 /dev/zero >&2; echo done", &canary),
        )
        .await;
        assert_eq!((ended.stderr.len(), ended.stderr_total), (1024, 300_000));
        assert_eq!(ended.stdout, b"done\n");
    }
}

#[tokio::test]
async fn rel_30_whoever_holds_its_output_open_does_not_hold_us() {
    for way in WAYS {
        let canary = Canary::new();
        let start = Instant::now();
        let daemons = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000' &) ; echo said";
        let ended = finished(way, line(daemons, &canary)).await;
        assert_eq!(ended.stdout, b"said\n");
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "not by its deadline"
        );
        until_none(&canary).await;
    }
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_failure() {
    for way in WAYS {
        let canary = Canary::new();
        let program = ProgramRun {
            stdin: vec![b'x'; 1024 * 1024],
            ..line("echo deaf", &canary)
        };
        assert_eq!(finished(way, program).await.stdout, b"deaf\n");
    }
}

#[tokio::test]
async fn rel_30_a_run_that_is_dropped_leaves_nothing() {
    for way in WAYS {
        let canary = Canary::new();
        let options = way.options();
        let running = run(line("setsid sleep 1000 & sleep 1000", &canary), &options);
        let seen = async {
            while canary.processes().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = running => panic!("it never ends by itself"),
            () = within_patience(seen) => {}
        }
        until_none(&canary).await;
    }
}
