//! The numbers that limit a run.
//!
//! Owns their defaults, and reading them from the environment and from managed settings. What each
//! of them limits is its user's business.

use std::time::Duration;

use toolway_types::{Diagnosis, limits, text};

use crate::Environment;
use crate::managed::{ManagedState, ManagedVariable};
use crate::result_text::ResultText;
use crate::tool_search::ToolSearch;

/// The numbers that limit a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// `MCP_TIMEOUT`: the longest a handshake may take. Absent leaves it to what is usual, and to
    /// the kind of server.
    pub connect_timeout: Option<Duration>,
    /// `MCP_TOOL_TIMEOUT`: the longest a call may take, where its server says nothing. Absent
    /// leaves it to what is usual.
    pub tool_timeout: Option<Duration>,
    /// `MCP_REQUEST_TIMEOUT_MS`: how long the answer to an HTTP request may take to begin, where
    /// the server's entry says nothing. Absent leaves it to what is usual.
    pub request_timeout: Option<Duration>,
    /// `MCP_TOOL_IDLE_TIMEOUT`: the longest a call may go without a sign of life; zero is for
    /// ever, and absent leaves it to the kind of server.
    pub tool_idle_timeout: Option<Duration>,
    /// `MCP_SERVER_CONNECTION_BATCH_SIZE`: local servers that connect at a time.
    pub local_batch: usize,
    /// `MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE`: remote servers that connect at a time.
    pub remote_batch: usize,
    /// `MAX_MCP_OUTPUT_TOKENS`: the longest result that passes whole.
    pub max_output_tokens: usize,
    /// `TOOLWAY_RESULT_TEXT`: what becomes of hidden characters in the text of a result.
    pub result_text: ResultText,
    /// `TOOLWAY_TOOL_SEARCH`: which tools stay out of the list until a search finds them.
    pub tool_search: ToolSearch,
    /// `TOOLWAY_CONTEXT_TOKENS`: how much fits into the context that tools share with the rest.
    pub context_tokens: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            connect_timeout: None,
            tool_timeout: None,
            request_timeout: None,
            tool_idle_timeout: None,
            local_batch: limits::connection::LOCAL_AT_ONCE,
            remote_batch: limits::connection::REMOTE_AT_ONCE,
            max_output_tokens: limits::result::TOKENS,
            result_text: ResultText::default(),
            tool_search: ToolSearch::default(),
            context_tokens: 200_000,
        }
    }
}

/// The end of both names of the idle timeout, the one limit that may be zero.
const IDLE: &str = "MCP_TOOL_IDLE_TIMEOUT";

impl RunLimits {
    /// The default limit of a handshake.
    pub const USUAL_CONNECT: Duration = limits::connection::TIME;

    /// The default limit of a call.
    pub const USUAL_TOOL: Duration = limits::call::TIME;

    /// Reads them from the environment and from managed settings, which win.
    pub(crate) fn read(
        environment: &Environment,
        managed: &[ManagedVariable],
        diagnoses: &mut Vec<Diagnosis>,
    ) -> Self {
        let mut limits = Self::default();
        for name in [
            "MCP_TIMEOUT",
            "MCP_TOOL_TIMEOUT",
            "MCP_REQUEST_TIMEOUT_MS",
            // The other host's spelling first, so that ours wins.
            "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT",
            "MCP_TOOL_IDLE_TIMEOUT",
            "MCP_SERVER_CONNECTION_BATCH_SIZE",
            "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE",
            "MAX_MCP_OUTPUT_TOKENS",
            "TOOLWAY_CONTEXT_TOKENS",
        ] {
            if let Some(text) = environment.var(name).filter(|text| !text.trim().is_empty())
                && !limits.set(name, text)
            {
                diagnoses.push(not_a_number(name, text));
            }
        }
        if let Some(search) = ToolSearch::read(environment, diagnoses) {
            limits.tool_search = search;
        }
        if let Some(text) = ResultText::read(environment, diagnoses) {
            limits.result_text = text;
        }
        for variable in managed {
            let (name, origin) = (variable.name.as_str(), variable.origin.clone());
            match variable.state {
                ManagedState::AtOnce => {
                    let text = variable.value.expose();
                    if !limits.set(name, text) {
                        diagnoses.push(not_a_number(name, text).at(origin));
                    }
                }
                ManagedState::Confirmed => {}
                ManagedState::Waiting => {
                    let message = format!("`env.{name}` is not applied until you confirm it");
                    let hint = "look at it with `toolway policy confirm`";
                    diagnoses.push(Diagnosis::warning(message).at(origin).hint(hint));
                }
                ManagedState::Settled => {
                    let message = format!(
                        "`env.{name}` is not applied: where settings lie is settled before they \
                         are read"
                    );
                    diagnoses.push(Diagnosis::warning(message).at(origin));
                }
            }
        }
        limits
    }

    /// Sets one of them; false when the text is no positive number, or zero where that has no
    /// meaning.
    fn set(&mut self, name: &str, text: &str) -> bool {
        let Ok(number) = text.trim().parse::<u64>() else {
            return false;
        };
        if name.ends_with(IDLE) {
            self.tool_idle_timeout = Some(Duration::from_millis(number));
            return true;
        }
        if number == 0 {
            return false;
        }
        let count = usize::try_from(number).unwrap_or(usize::MAX);
        match name {
            "MCP_TIMEOUT" => self.connect_timeout = Some(Duration::from_millis(number)),
            "MCP_TOOL_TIMEOUT" => self.tool_timeout = Some(Duration::from_millis(number)),
            "MCP_REQUEST_TIMEOUT_MS" => self.request_timeout = Some(Duration::from_millis(number)),
            "MCP_SERVER_CONNECTION_BATCH_SIZE" => self.local_batch = count,
            "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE" => self.remote_batch = count,
            "MAX_MCP_OUTPUT_TOKENS" => self.max_output_tokens = count,
            "TOOLWAY_CONTEXT_TOKENS" => self.context_tokens = count,
            _ => {}
        }
        true
    }
}

/// The longest value that a message repeats, in characters.
const SHOWN_OF_A_VALUE: usize = 40;

fn not_a_number(name: &str, value: &str) -> Diagnosis {
    let wanted = if name.ends_with(IDLE) {
        "a whole number"
    } else {
        "a whole number above zero"
    };
    let value = text::spelled_out(value);
    let value = text::cut(&value, SHOWN_OF_A_VALUE);
    Diagnosis::warning(format!(
        "`{name}` is `{value}`, which is not {wanted}; the default is kept"
    ))
}
