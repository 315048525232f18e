//! The ways reading a configuration file fails, before anything in it is understood.
//!
//! Owns the classes and their wording. What is wrong *inside* a readable file is a `Diagnosis`
//! from the start, because it never stops the other entries.

use std::io;

/// Why a file could not be taken in as text.
#[derive(Debug, thiserror::Error)]
pub enum FileReadError {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A directory, pipe, socket or device.
    #[error("is not a regular file")]
    NotAFile,
    /// Larger than any settings file a person writes.
    #[error("is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read.
        limit: u64,
    },
    /// Not UTF-8.
    #[error("is not UTF-8 text")]
    NotText {
        /// The line of the first bad byte, counted from 1.
        line: u32,
    },
    /// A repository's link, which may lead anywhere.
    #[error("is or lies behind a symbolic link, and links of a repository are not followed")]
    Link,
    /// A relative path that leaves the repository.
    #[error("lies outside of the repository")]
    Outside,
    /// A policy file that others could have written.
    #[error("cannot be trusted: {0}")]
    Untrusted(Distrust),
}

impl FileReadError {
    /// The line to point at.
    pub(crate) fn line(&self) -> u32 {
        match self {
            FileReadError::NotText { line } => *line,
            _ => 1,
        }
    }
}

/// Why a file of the system directory is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// It belongs to the wrong user.
    #[error("it belongs to user {owner}, not to user {expected}")]
    Owner {
        /// Who owns it.
        owner: u32,
        /// Who should.
        expected: u32,
    },
    /// Others may change it.
    #[error("its group or everybody may write to it (mode {mode:04o})")]
    Writable {
        /// Its permission bits.
        mode: u32,
    },
    /// Others may replace it.
    #[error("its directory may be changed by others: {0}")]
    Directory(Box<Distrust>),
}

/// Why a command line could not be split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A quote is opened and never closed.
    #[error("a quote is not closed")]
    Quote,
    /// The line ends in a backslash.
    #[error("it ends in a backslash")]
    Escape,
}
