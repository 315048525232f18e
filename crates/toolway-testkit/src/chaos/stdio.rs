//! The scripted server over stdin and stdout: one message per line.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use super::outlet::{self, ChaosClient, Outlet};
use super::server::{ChaosServer, MessageFlow, act};

/// One lock around every message, so that another thread's line cannot come between.
struct StdoutOutlet {
    server: Arc<ChaosServer>,
    turn: Mutex<io::Stdout>,
}

impl Outlet for StdoutOutlet {
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut stdout = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let script = self.server.script();
        if script.noise {
            writeln!(stdout, "debug: about to answer {{not json")?;
        }
        let mut line = message.to_vec();
        line.push(b'\n');
        outlet::write(&mut *stdout, &line, &script)
    }
}

/// Serves until stdin ends, or for longer when the script says so.
pub(super) fn serve(server: &Arc<ChaosServer>) -> io::Result<ExitCode> {
    if server.script().never_reads {
        super::linger();
    }
    let client = ChaosClient {
        outlet: Arc::new(StdoutOutlet {
            server: Arc::clone(server),
            turn: Mutex::new(io::stdout()),
        }),
        key: "stdio".to_owned(),
    };
    server.listen(&client);
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        if let MessageFlow::Exit(code) = act(server, &line, &client) {
            return Ok(ExitCode::from(code));
        }
    }
    if server.script().ignores_end_of_input {
        super::linger();
    }
    Ok(ExitCode::SUCCESS)
}
