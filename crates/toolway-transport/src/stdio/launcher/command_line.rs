//! Where the words and the environment lie that this process was started with.

use std::io;

/// Where the words and the environment lie that this process was started with.
pub(super) struct CommandLineMemory {
    pub(super) words: std::ops::Range<usize>,
    pub(super) environment: std::ops::Range<usize>,
}

impl CommandLineMemory {
    pub(super) fn of_this_process() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        Self::in_stat(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The fields 48 to 51 of `proc_pid_stat(5)`; the second holds a name, which may hold anything.
    fn in_stat(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace().skip(45);
        let mut range = || {
            let first: usize = fields.next()?.parse().ok()?;
            let end: usize = fields.next()?.parse().ok()?;
            (first > 0 && first <= end).then_some(first..end)
        };
        Some(Self {
            words: range()?,
            environment: range()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_words_and_environment_is_read_behind_any_name() {
        let before = "1 ".repeat(44);
        let stat = format!("7 (a) b) S {before}100 120 120 180 0\n");
        let found = CommandLineMemory::in_stat(&stat).expect("all fields are there");
        assert_eq!(found.words, 100..120);
        assert_eq!(found.environment, 120..180);
        for hidden in ["0 0 0 0", "120 100 120 180", "100 120"] {
            let stat = format!("7 (name) S {before}{hidden}");
            assert!(CommandLineMemory::in_stat(&stat).is_none(), "{hidden}");
        }
    }
}
