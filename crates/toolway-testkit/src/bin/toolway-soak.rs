//! Soaks a gateway, or the daemon: `toolway-soak TOOLWAY CHAOS CALLS [daemon]` prints what it saw as one JSON object, or the
//! first fault. `cargo xtask soak` builds and runs it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are what it is run for"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (toolway, chaos, calls, is_daemon) = match &words[..] {
        [toolway, chaos, calls] => (toolway, chaos, calls, false),
        [toolway, chaos, calls, what] if what == "daemon" => (toolway, chaos, calls, true),
        _ => {
            eprintln!("usage: toolway-soak TOOLWAY CHAOS CALLS [daemon]");
            return ExitCode::from(2);
        }
    };
    let Ok(calls) = calls.parse() else {
        eprintln!("`{calls}` is no number of calls");
        return ExitCode::from(2);
    };
    let soak = toolway_testkit::Soak {
        toolway: toolway.into(),
        chaos: chaos.into(),
        calls,
    };
    let ran = if is_daemon {
        soak.run_through_daemon()
    } else {
        soak.run()
    };
    match ran {
        Ok(report) => {
            println!("{:#}", report.to_json());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("fault: {fault}");
            ExitCode::FAILURE
        }
    }
}
