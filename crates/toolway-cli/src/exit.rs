//! The exit codes, in one place: they are an interface and never change their meaning.

/// Why the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Success = 0,
    /// An error of no other kind.
    Unexpected = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A configuration file is wrong, or names no such server.
    Configuration = 3,
    /// The server cannot be reached or does not speak the protocol.
    Connection = 4,
    /// The server wants a login.
    NeedsLogin = 5,
    /// A policy, a permission rule or a missing approval refuses it.
    Refused = 6,
    /// The tool ran and answered an error.
    ToolError = 7,
    /// It took too long, or was cancelled.
    TimedOut = 8,
    /// Ctrl-C. The number by which shells say so; the program itself ends by the signal
    /// (`signals.rs`).
    Interrupted = 130,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// The table shown in `--help`, the man page and the README.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  success
  1  unexpected error
  2  usage: the command line makes no sense
  3  configuration: a file is wrong, or no such server is configured
  4  connection: the server cannot be reached
  5  login: the server wants one first
  6  refused by policy, permission or a missing approval
  7  the tool answered an error
  8  timed out or cancelled
  130  ended by Ctrl-C (129 and 143: by SIGHUP and SIGTERM)";
