//! What is named in foreign text, and what is left as it is.

use proptest::prelude::*;

use super::*;

fn code(text: &str) -> String {
    legible(text, TextKind::Code)
}

fn prose(text: &str) -> String {
    legible(text, TextKind::Prose)
}

#[test]
fn plain_text_stays_as_it_is() {
    for text in [
        "",
        "npx",
        "--root=/home/ada/my notes  x",
        "C:\\Users\\ada",
        "été über naïve",
        "~/Документы/сервер.py",
        "日本語のファイル.txt",
        "GitHubの設定",
        "🦀 ok",
        "10 µs",
    ] {
        assert_eq!(code(text), text);
        assert_eq!(prose(text), text);
    }
    assert_eq!(prose("а у вас — всё “хорошо”"), "а у вас — всё “хорошо”");
    assert_eq!(prose("kapı"), "kapı");
    assert_eq!(legible("    \"a\": 1", TextKind::Source), "    \"a\": 1");
    assert_eq!(legible("\t\"a\": 1", TextKind::Source), "  \"a\": 1");
}

#[test]
fn sec_52_blanks_that_push_text_away_are_counted() {
    let many = " ".repeat(2500);
    assert_eq!(code(&format!("a{many}b")), "a⟨2,500 blanks⟩b");
    assert_eq!(prose(&format!("a{many}")), "a⟨2,500 blanks⟩");
    assert_eq!(code(" a  b "), "⟨1 blank⟩a  b⟨1 blank⟩");
    assert_eq!(
        code("a\u{a0}\u{2003}\u{3000}b"),
        "a⟨3 blanks of several kinds⟩b"
    );
    assert_eq!(code("a\u{a0}b\tc"), "a\\u{00A0}b\\u{0009}c");
    assert_eq!(
        legible(&format!("{many}x"), TextKind::Source),
        "⟨2,500 blanks⟩x"
    );
    assert_eq!(code("a\nb\n\n\n\nc"), "a⏎b⟨4 line breaks⟩⏎c");
    assert_eq!(code(&"\u{200b}".repeat(2500)), "⟨2,500 × \\u{200B}⟩");
}

#[test]
fn sec_52_letters_that_pass_for_others_are_named() {
    assert_eq!(code("\u{441}ommand"), "⟨Cyrillic с⟩ommand");
    assert_eq!(
        prose("log in at \u{430}pple.com"),
        "log in at ⟨Cyrillic а⟩pple.com"
    );
    assert_eq!(code("сору"), "⟨Cyrillic сору⟩");
    assert_eq!(prose("run сору now"), "run ⟨Cyrillic сору⟩ now");
    assert_eq!(code("\u{261}it"), "\\u{0261}it");
    assert_eq!(code("ｎｐｘ"), "\\u{FF4E}\\u{FF50}\\u{FF58}");
    assert_eq!(code("a\u{2215}b"), "a\\u{2215}b");
    assert_eq!(code("αб"), "α⟨Cyrillic б⟩");
}

#[test]
fn sec_35_what_acts_or_changes_the_order_is_spelled_out() {
    assert_eq!(code("a\u{1b}[2J\u{202e}b"), "a\\u{001B}[2J\\u{202E}b");
    assert_eq!(code("rm א.txt"), "rm \\u{05D0}.txt");
    assert_eq!(prose("שלום"), "⟨right to left⟩ שלום");
    assert_eq!(code("\u{301}a"), "\\u{0301}a");
    assert_eq!(prose("a\u{301}\u{302}\u{303}"), "a\u{301}\u{302}\\u{0303}");
    assert_eq!(prose("⟨1 blank⟩⏎"), "\\u{27E8}1 blank\\u{27E9}\\u{23CE}");
}

#[test]
fn a_long_text_is_cut_in_the_middle_and_says_so() {
    let text = format!("begin{}end", "x".repeat(10_000));
    assert_eq!(
        legible_within(&text, TextKind::Code, 30),
        "beginxxxxxxxxxxx⟨9,984 characters left out⟩xxxxxend"
    );
    // A mark is not taken apart.
    let both = format!("begin{}{}end", " ".repeat(2500), "x ".repeat(1000));
    assert_eq!(
        legible_within(&both, TextKind::Prose, 40),
        "begin⟨2,500 blanks⟩x x x x⟨1,983 characters left out⟩x x x x x end"
    );
    let blanks = format!("a{}b", " ".repeat(10_000));
    assert_eq!(
        legible_within(&blanks, TextKind::Code, 30),
        "a⟨10,000 blanks⟩b"
    );
}

proptest! {
    #[test]
    fn sec_52_nothing_hidden_and_no_long_blank_is_left(
        text in r"(\PC|[\x00-\x20]|[ \u{202e}\u{200b}\u{441}\u{5d0}⟨⟩]){0,60}",
    ) {
        for nature in [TextKind::Code, TextKind::Source, TextKind::Prose] {
            let shown = legible(&text, nature);
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
            if nature != TextKind::Source {
                prop_assert!(!shown.contains("   "), "{shown:?}");
            }
            if nature != TextKind::Prose {
                prop_assert!(!shown.contains(is_right_to_left), "{shown:?}");
            }
        }
    }
}
