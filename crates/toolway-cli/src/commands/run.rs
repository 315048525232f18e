//! `toolway run`: a program with an endpoint of its own, which shows one agent's servers and tools.
//!
//! Owns the flags and the process that was typed: it has the endpoint served, starts the program when
//! what it needs is there, passes signals on, and ends as the program did. The endpoint is served by
//! another process (`run/hosting.rs`), the daemon where one runs: so that whoever of the three is
//! killed, one of the others takes away what it left.

mod hosting;
mod program;
mod signalled;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::process::Child;
use toolway::StateFiles;
use toolway_config::Environment;
use toolway_gateway::agent_socket::RunFolder;
use toolway_types::name::shell_word;

pub(crate) use self::hosting::{RunHostArgs, run as host};
use self::program::{ProgramEnd, spawn};
use self::signalled::PassedSignals;
use super::endpoint;
use crate::connect;
use crate::context::Context;
use crate::daemon::relay::upstream::{Upstream, UpstreamEnd, UpstreamNews};
use crate::daemon::request::request_for;
use crate::daemon::start;
use crate::daemon_use::{DaemonUse, use_of_daemon};
use crate::exit::Exit;
use crate::report::{Outcome, Report};

/// The hidden command that serves the endpoint.
pub(crate) const HOSTING: &str = "__run-host";

/// What it says when clients can come.
const READY: &str = "ready";

/// How long what serves the endpoint may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// How often in a row another process is made to serve an endpoint that was lost at once.
const TRIES: u32 = 3;

/// One that stood for so long was no failure.
const STOOD: Duration = Duration::from_secs(30);

/// The variables that the program has.
const COMMAND_VARIABLE: &str = "TOOLWAY_ENDPOINT_COMMAND";
const CONFIG_VARIABLE: &str = "TOOLWAY_MCP_CONFIG";

/// Run a program with the servers and tools of one agent
///
/// The program finds the endpoint in its environment: `TOOLWAY_ENDPOINT` is a unix socket that talks
/// MCP, `TOOLWAY_ENDPOINT_COMMAND` a command that bridges stdin and stdout to it, and
/// `TOOLWAY_MCP_CONFIG` a file for clients that read `mcpServers`. The endpoint ends with the program,
/// and with it the servers that the agent brought. The exit code is the program's.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    view: RunView,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

/// What the endpoint shows.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunView {
    /// What this agent has: a file, or the name of one in `.claude/agents` or `.toolway/agents`
    #[arg(long, value_name = "FILE|NAME")]
    agent: Option<String>,

    /// Only these servers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    servers: Option<Vec<String>>,

    /// Servers without which the program is not started
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    required: Vec<String>,

    /// How long the first lists wait for servers that are still connecting: 5 unless given
    #[arg(long, value_name = "SECONDS", value_parser = super::serve::seconds)]
    wait: Option<Duration>,
}

impl RunView {
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut flag = |name: &str, value: String| words.push(format!("--{name}={value}"));
        if let Some(agent) = &self.agent {
            flag("agent", agent.clone());
        }
        if let Some(servers) = &self.servers {
            flag("servers", servers.join(","));
        }
        if !self.required.is_empty() {
            flag("required", self.required.join(","));
        }
        if let Some(wait) = self.wait {
            flag("wait", wait.as_secs_f64().to_string());
        }
        words
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &RunArgs) -> Outcome {
    let environment = context.environment();
    let usual = use_of_daemon(environment, DaemonUse::Attach)?;
    let run = ProgramRun {
        context,
        folder: RunFolder::make(&places(environment))?,
        args,
        use_of_it: if context.alone().is_empty() {
            usual
        } else {
            DaemonUse::Off
        },
    };
    connect::block_on(run.go())
}

/// Where the folders of runs may be, the best place first.
fn places(environment: &Environment) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let of_session = environment.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_session = of_session.filter(|path| path.is_absolute());
    let places = [
        Some(StateFiles::of(environment).runs()),
        of_session.map(|path| path.join("toolway-runs")),
        Some(PathBuf::from(format!("/tmp/toolway-runs-{user}"))),
    ];
    places.into_iter().flatten().collect()
}

struct ProgramRun<'a> {
    context: &'a Context,
    args: &'a RunArgs,
    folder: RunFolder,
    use_of_it: DaemonUse,
}

/// What became of an endpoint before it was there.
enum EndpointBeginning {
    Ready(Box<Upstream>),
    Ended(Exit),
    Signalled(i32),
}

impl ProgramRun<'_> {
    async fn go(mut self) -> Outcome {
        let mut signals = PassedSignals::listen();
        let mut upstream = match self.begin(&mut signals).await? {
            EndpointBeginning::Ready(upstream) => *upstream,
            EndpointBeginning::Ended(exit) => return Ok(exit),
            EndpointBeginning::Signalled(signal) => {
                self.context.end_by(signal);
                return Ok(Exit::Interrupted);
            }
        };
        let outcome = match self.start_program() {
            Ok(child) => Ok(self.follow(child, &mut upstream, &mut signals).await?),
            Err(report) => Err(report),
        };
        end(&mut upstream).await;
        match outcome? {
            ProgramEnd::Exit(code) => Ok(Exit::Program(code)),
            ProgramEnd::Signal(signal) => {
                self.context.end_by(signal);
                // By 128 and the signal's number, where that cannot end this process.
                let code = u8::try_from(signal).ok().and_then(|it| it.checked_add(128));
                Ok(Exit::Program(code.unwrap_or(u8::MAX)))
            }
        }
    }

    fn start_program(&self) -> Result<Child, Report> {
        let program = start::program()?;
        let bridge = [
            program.to_string_lossy().into_owned(),
            "endpoint".to_owned(),
            self.folder.socket().to_string_lossy().into_owned(),
        ];
        self.folder.write_config(&bridge)?;
        let words: Vec<_> = bridge.iter().map(|word| shell_word(word)).collect();
        let variables = [
            (endpoint::VARIABLE, self.folder.socket().into_os_string()),
            (COMMAND_VARIABLE, words.join(" ").into()),
            (CONFIG_VARIABLE, self.folder.config().into_os_string()),
        ];
        spawn(&self.args.command, variables)
    }

    /// Goes along with the program until it ends. What serves its endpoint may change meanwhile.
    async fn follow(
        &mut self,
        mut child: Child,
        upstream: &mut Upstream,
        signals: &mut PassedSignals,
    ) -> Result<ProgramEnd, Report> {
        let (mut tries, mut since) = (0, tokio::time::Instant::now());
        loop {
            let news = async {
                if tries > TRIES {
                    std::future::pending().await
                } else {
                    upstream.next().await
                }
            };
            let lost = tokio::select! {
                status = child.wait() => return Ok(ProgramEnd::of(status?)),
                signal = signals.next() => {
                    signal.pass_on(&child);
                    continue;
                }
                news = news => match news {
                    UpstreamNews::Line(_) => continue,
                    UpstreamNews::Moving(_) => false,
                    UpstreamNews::End(_) => true,
                },
            };
            if lost {
                tries = if since.elapsed() > STOOD {
                    1
                } else {
                    tries + 1
                };
                if tries > TRIES {
                    self.context.warn("the endpoint of this program is lost");
                    continue;
                }
            } else {
                // Whoever served it goes: another daemon, or a process of its own.
                self.use_of_it = match self.use_of_it {
                    DaemonUse::Start => DaemonUse::Start,
                    _ => DaemonUse::Attach,
                };
            }
            let next = tokio::select! {
                status = child.wait() => return Ok(ProgramEnd::of(status?)),
                next = self.serve_again() => next,
            };
            match next {
                Ok(Some(mut next)) => {
                    std::mem::swap(upstream, &mut next);
                    end(&mut next).await;
                    since = tokio::time::Instant::now();
                }
                Ok(None) => {}
                Err(report) => {
                    self.context.warn_of(&report);
                    tries = TRIES + 1;
                }
            }
        }
    }

    /// Has the endpoint served, and waits until clients can come.
    async fn begin(&self, signals: &mut PassedSignals) -> Result<EndpointBeginning, Report> {
        let mut upstream = self.upstream()?;
        tokio::select! {
            news = upstream.next() => Ok(match news {
                UpstreamNews::End(UpstreamEnd::Done(end)) => {
                    EndpointBeginning::Ended(Exit::Program(end.exit))
                }
                UpstreamNews::End(UpstreamEnd::Lost) => {
                    return Err(Report::new(
                        Exit::Connection,
                        "what serves the endpoint ended before it was there",
                    )
                    .hint("run it again; `toolway daemon logs` may say why"));
                }
                UpstreamNews::Line(_) | UpstreamNews::Moving(_) => EndpointBeginning::Ready(Box::new(upstream)),
            }),
            signal = signals.next() => {
                let number = signal.number();
                end(&mut upstream).await;
                Ok(EndpointBeginning::Signalled(number))
            }
        }
    }

    /// The same for an endpoint that was served before; nothing where that ended at once.
    async fn serve_again(&self) -> Result<Option<Upstream>, Report> {
        let mut upstream = self.upstream()?;
        Ok(match upstream.next().await {
            UpstreamNews::Line(_) | UpstreamNews::Moving(_) => Some(upstream),
            UpstreamNews::End(_) => None,
        })
    }

    fn upstream(&self) -> Result<Upstream, Report> {
        let environment = self.context.environment();
        let words = self.words();
        if self.use_of_it != DaemonUse::Off
            && let Some(request) = request_for(environment, words.clone())
            && let Some(upstream) = Upstream::daemon(environment, &request, self.use_of_it)?
        {
            return Ok(upstream);
        }
        Upstream::process(environment, |command| {
            command
                .args(self.context.alone())
                .arg("--no-daemon")
                .args(words)
                // Ctrl-C is the program's to answer.
                .process_group(0);
        })
    }

    /// The words that have the endpoint served.
    fn words(&self) -> Vec<String> {
        let flags = self.context.flags();
        let mut words = Vec::new();
        for config in &flags.mcp_config {
            words.push(format!("--mcp-config={config}"));
        }
        for server in &flags.mcp_server {
            words.push(format!("--mcp-server={server}"));
        }
        let switches = [
            (flags.strict, "--strict-mcp-config"),
            (flags.approve_project_servers, "--approve-project-servers"),
            (flags.ide, "--ide"),
        ];
        let given = switches.into_iter().filter(|(is_given, _)| *is_given);
        words.extend(given.map(|(_, flag)| flag.to_owned()));
        words.push(HOSTING.to_owned());
        words.extend(self.args.view.words());
        words.push(format!("--folder={}", self.folder.path().display()));
        words
    }
}

/// Has an endpoint end, and waits until its servers are gone.
async fn end(upstream: &mut Upstream) {
    upstream.hang_up().await;
    // What is late then ends by itself: it has nobody to serve.
    let _ = tokio::time::timeout(ENDS_WITHIN, upstream.ended()).await;
}
