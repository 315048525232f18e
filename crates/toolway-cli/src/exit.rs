//! The exit codes, in one place: they are an interface and never change their meaning.

/// Why the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Success,
    /// An error of no other kind.
    Unexpected,
    /// The command line makes no sense.
    Usage,
    /// A configuration file is wrong, or names no such server.
    Configuration,
    /// The server cannot be reached or does not speak the protocol.
    Connection,
    /// The server wants a login.
    NeedsLogin,
    /// A policy, a permission rule or a missing approval refuses it.
    Refused,
    /// The tool ran and answered an error.
    ToolError,
    /// It took too long, or was cancelled.
    TimedOut,
    /// Ctrl-C. The number by which shells say so; the program itself ends by the signal
    /// (`signals.rs`).
    Interrupted,
    /// What another program ended with that was run.
    Program(u8),
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Configuration => 3,
            Self::Connection => 4,
            Self::NeedsLogin => 5,
            Self::Refused => 6,
            Self::ToolError => 7,
            Self::TimedOut => 8,
            Self::Interrupted => 130,
            Self::Program(code) => code,
        }
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
