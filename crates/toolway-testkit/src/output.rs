//! What a program printed and how it ended, in a form that reads well in a snapshot.

use std::fmt;

/// The end of a program, with the paths of its [`crate::TempHome`] replaced by words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
    /// Its exit code, as shells say it: 128 and the number of the signal that ended it.
    pub code: Option<i32>,
}

/// The exit code of a program as shells say it: 128 and the number of the signal that ended it.
pub fn shell_code(status: std::process::ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    let by_signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(by_signal)
}

impl CommandOutput {
    /// stdout as JSON; panics with the whole output when it is not.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}):\n{self}"))
    }

    /// The same output, or a panic that shows it when the exit code is another one.
    #[expect(
        clippy::return_self_not_must_use,
        reason = "often the check alone is wanted"
    )]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(
            self.code == Some(code),
            "expected exit code {code}:\n{self}"
        );
        self
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(formatter, "exit: {code}")?,
            None => writeln!(formatter, "exit: by a signal")?,
        }
        writeln!(formatter, "----- stdout")?;
        write_block(formatter, &self.stdout)?;
        writeln!(formatter, "----- stderr")?;
        write_block(formatter, &self.stderr)
    }
}

/// Ends every block with a line break, so that the next heading starts its own line.
fn write_block(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_str(text)?;
    if text.is_empty() || text.ends_with('\n') {
        Ok(())
    } else {
        formatter.write_str("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_display_has_one_block_per_stream() {
        let output = CommandOutput {
            stdout: "a\nb\n".into(),
            stderr: "no end".into(),
            code: Some(3),
        };
        assert_eq!(
            output.to_string(),
            "exit: 3\n----- stdout\na\nb\n----- stderr\nno end\n"
        );
    }
}
