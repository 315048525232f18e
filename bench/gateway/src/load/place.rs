//! A gateway that runs: started as its plan says, with servers behind it, and ended again.
//!
//! Owns the process, its home, and waiting until it answers. What is asked of it is the figures'.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::batch::Line;
use super::plan::{Behind, Era, GatewayPlan};
use super::process::Processes;
use super::request::{Ask, Target, check_echo, result};

/// How long a gateway may take until all its tools can be listed.
const READY: Duration = Duration::from_secs(120);
/// How long it may take to end before it is killed.
const END: Duration = Duration::from_secs(5);
/// The first server's name.
const FIRST: &str = "bench";

pub struct Place {
    process: Child,
    _home: TempDir,
    pub target: Target,
    pub processes: Processes,
    /// The file that configures its servers, where it reads one.
    pub config: PathBuf,
    /// From its start until all tools were listed.
    pub ready: Duration,
}

impl Place {
    /// Starts it and waits until a call is answered and every tool is listed.
    pub fn start(gateway: &GatewayPlan, server: &Path, behind: Behind) -> Result<Self> {
        Self::try_start(gateway, server, behind)
            .with_context(|| format!("`{}` does not start", gateway.name))
    }

    fn try_start(gateway: &GatewayPlan, server: &Path, behind: Behind) -> Result<Self> {
        let home = tempfile::tempdir().context("cannot make a folder")?;
        let servers = servers(gateway, server, behind);
        let config = home.path().join("servers.json");
        fs::write(&config, json!({ "mcpServers": &servers }).to_string())?;
        for (name, content) in &gateway.files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap_or(home.path()))?;
            fs::write(path, content.to_string())?;
        }
        let port = free_port()?.to_string();
        let words = server_words(servers.values().next());
        let count = behind.servers.to_string();
        let shown = [
            ("{config}", config.to_string_lossy().into_owned()),
            ("{home}", home.path().to_string_lossy().into_owned()),
            ("{line}", words.join(" ")),
            ("{count}", count),
            ("{port}", port),
        ];
        let fill = |text: &str| {
            shown.iter().fold(text.to_owned(), |text, (mark, value)| {
                text.replace(mark, value)
            })
        };
        let mut line: Vec<String> = Vec::new();
        for word in &gateway.command {
            if word == "{server}" {
                line.extend(words.iter().cloned());
            } else {
                line.push(fill(word));
            }
        }
        let (program, rest) = line.split_first().context("it has no command")?;
        let mut command = Command::new(program);
        command
            .args(rest)
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", search_path())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(home.path().join("errors"))?);
        for (name, value) in &gateway.environment {
            command.env(name, fill(value));
        }
        let begin = Instant::now();
        let process = command
            .spawn()
            .with_context(|| format!("cannot run `{program}`"))?;
        let processes = Processes::new(process.id());
        let mut place = Self {
            process,
            target: Target {
                address: (Ipv4Addr::LOCALHOST, 0).into(),
                path: String::new(),
                era: gateway.era,
                session: None,
                prefix: gateway.prefix.clone(),
            },
            processes,
            config,
            ready: Duration::ZERO,
            _home: home,
        };
        let listed = if gateway.lists_one { 1 } else { behind.servers };
        let address = gateway.address.as_deref().map(fill);
        let outcome = place.prepare(address, listed * behind.tools, begin);
        outcome.with_context(|| place.last_words())?;
        Ok(place)
    }

    fn prepare(&mut self, address: Option<String>, wanted: usize, begin: Instant) -> Result<()> {
        let output = self.process.stdout.take().context("it has no output")?;
        let mut output = BufReader::new(output);
        let address = match address {
            Some(address) => address,
            None => {
                let mut line = String::new();
                output.read_line(&mut line)?;
                line
            }
        };
        // What it says further is of no interest, and must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let rest = address.trim().strip_prefix("http://").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        self.target.address = host
            .parse::<SocketAddr>()
            .with_context(|| format!("`{}` is no address", address.trim()))?;
        self.target.path = format!("/{path}");
        loop {
            let tried = self.look(wanted);
            self.ready = begin.elapsed();
            match tried {
                Ok(()) => return Ok(()),
                Err(error) if self.ready > READY => return Err(error),
                Err(_) => {}
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("it ended by itself: {status}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// One client's beginning: its session where it has one, the list, a call.
    fn look(&mut self, wanted: usize) -> Result<()> {
        if self.target.session.is_none() {
            self.target.session = self.open_session()?;
        }
        let listed = self.list()?.0;
        if listed != wanted {
            bail!("{listed} of {wanted} tools are listed");
        }
        let mut line = Line::open(&self.target)?;
        line.ask(&self.target, 1, Ask::Echo)?;
        check_echo(&line.answer, 1)
    }

    /// A session for later requests, where there are any.
    pub fn open_session(&self) -> Result<Option<String>> {
        if self.target.era == Era::Modern {
            return Ok(None);
        }
        self.open_session_on(&mut Line::open(&self.target)?)
    }

    pub fn open_session_on(&self, line: &mut Line) -> Result<Option<String>> {
        let target = &self.target;
        line.ask(target, 0, Ask::Initialize)?;
        result(&line.answer, 0)?;
        let session = line.answer.session().map(str::to_owned);
        let mut opened = target.clone();
        opened.session.clone_from(&session);
        line.ask(&opened, 0, Ask::Initialized)?;
        if line.answer.status() >= 300 {
            bail!("the session is not taken: status {}", line.answer.status());
        }
        Ok(session)
    }

    /// Lists all tools: how many there are, and how long that took.
    pub fn list(&self) -> Result<(usize, Duration)> {
        let mut line = Line::open(&self.target)?;
        let (mut count, mut taken, mut cursor) = (0, Duration::ZERO, None::<String>);
        loop {
            taken += line.ask(&self.target, 1, Ask::List(cursor.as_deref()))?;
            let value: Value = serde_json::from_slice(result(&line.answer, 1)?)?;
            let tools = value["tools"].as_array().context("the list has no tools")?;
            count += tools.len();
            match value["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok((count, taken)),
            }
        }
    }

    fn last_words(&self) -> String {
        let said = fs::read_to_string(self._home.path().join("errors")).unwrap_or_default();
        let begin = said.len().saturating_sub(600);
        let begin = (begin..said.len()).find(|place| said.is_char_boundary(*place));
        format!("it said: {}", said[begin.unwrap_or(0)..].trim())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It was started here and is not waited for yet, so that its number is still its own.
        if let Some(pid) = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begin = Instant::now();
        while begin.elapsed() < END {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The entries of all servers; the first has the tools that are called.
fn servers(gateway: &GatewayPlan, program: &Path, behind: Behind) -> Map<String, Value> {
    let mut servers = Map::new();
    for number in 0..behind.servers {
        let name = match number {
            0 => FIRST.to_owned(),
            _ => format!("{FIRST}{number}"),
        };
        let mut words = vec!["--tools".to_owned(), behind.tools.to_string()];
        words.extend(["--name".to_owned(), format!("look_up_{number}")]);
        if gateway.era == Era::Modern {
            words.push("--modern".to_owned());
        }
        servers.insert(name, json!({ "command": program, "args": words }));
    }
    servers
}

fn server_words(entry: Option<&Value>) -> Vec<String> {
    let words = entry.into_iter().flat_map(|entry| {
        let rest = entry["args"].as_array().into_iter().flatten();
        std::iter::once(&entry["command"]).chain(rest)
    });
    words.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Where interpreters of peers are found; nothing else of the environment is passed on.
#[expect(
    clippy::disallowed_methods,
    reason = "this measures the product and is no part of it"
)]
fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Free a moment ago; nobody else takes ports of loopback here.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
