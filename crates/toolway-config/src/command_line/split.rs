//! Splitting a command line into words without a shell.

use crate::error::SplitError;

/// Splits a command line into words: white space separates, `'…'` and `"…"` hold together, a
/// backslash takes the next character as it is (inside `"…"` only `"` and itself).
pub fn split_command(line: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or(SplitError::Escape)?),
            quote @ ('"' | '\'') => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(SplitError::Quote)? {
                        c if c == quote => break,
                        '\\' if quote == '"' && matches!(chars.peek(), Some('"' | '\\')) => {
                            word.extend(chars.next());
                        }
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_a_shell_would_and_nothing_else_happens() {
        let split = |line| split_command(line).unwrap();
        assert_eq!(split("npx -y  server"), ["npx", "-y", "server"]);
        assert_eq!(
            split(r#"a "b c" 'd e' f\ g """#),
            ["a", "b c", "d e", "f g", ""]
        );
        assert_eq!(split(r#""a\"b\\c\d" '\'"#), [r#"a"b\c\d"#, r"\"]);
        assert_eq!(
            split("a;b $(c) `d` | e # f"),
            ["a;b", "$(c)", "`d`", "|", "e", "#", "f"]
        );
        assert_eq!(split_command("a 'b"), Err(SplitError::Quote));
        assert_eq!(split_command("a\\"), Err(SplitError::Escape));
    }
}
