//! Splitting a shell line into commands.
//!
//! Owns quotes and separators. Nothing is run or expanded here.

/// The parts of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellParts {
    /// The words of each command, without their quotes.
    pub(super) commands: Vec<Vec<String>>,
    /// The files that are read as input.
    pub(super) inputs: Vec<String>,
}

/// What the next word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordRole {
    Word,
    Input,
    Output,
}

/// Splits a line, also an unfinished one.
pub(super) fn parts(line: &str) -> ShellParts {
    let mut parts = ShellParts::default();
    let mut command = Vec::new();
    let mut word: Option<String> = None;
    let mut next = WordRole::Word;
    let mut chars = line.chars();
    loop {
        let c = chars.next();
        match c {
            Some('\\') => word.get_or_insert_default().extend(chars.next()),
            Some(quote @ ('"' | '\'')) => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != quote) {
                    if c == '\\' && quote == '"' {
                        word.extend(chars.next());
                    } else {
                        word.push(c);
                    }
                }
            }
            Some(c) if !c.is_whitespace() && !";&|()<>`".contains(c) => {
                word.get_or_insert_default().push(c);
            }
            _ => {
                if let Some(word) = word.take() {
                    match std::mem::replace(&mut next, WordRole::Word) {
                        WordRole::Word => command.push(word),
                        WordRole::Input => parts.inputs.push(word),
                        WordRole::Output => {}
                    }
                }
                match c {
                    Some('<') => next = WordRole::Input,
                    Some('>') => next = WordRole::Output,
                    Some(c) if c.is_whitespace() && c != '\n' => {}
                    _ if !command.is_empty() => parts.commands.push(std::mem::take(&mut command)),
                    _ => {}
                }
                if c.is_none() {
                    return parts;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_commands_and_what_they_read() {
        let parts = parts("cd 'a b' && x\\ y too\"l\\\"s\"/z <in.txt >out; $(p) 'open");
        assert_eq!(
            parts.commands,
            [
                vec!["cd", "a b"],
                vec!["x y", "tool\"s/z"],
                vec!["$"],
                vec!["p"],
                vec!["open"]
            ]
        );
        assert_eq!(parts.inputs, ["in.txt"]);
    }
}
