//! What cleaning removes, what it keeps, and the promises that hold for all text.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Everything SEC-35 names, one range per class.
const HIDDEN: &[(char, char)] = &[
    ('\u{0}', '\u{8}'),
    ('\u{B}', '\u{1F}'),
    ('\u{7F}', '\u{9F}'),
    ('\u{AD}', '\u{AD}'),
    ('\u{34F}', '\u{34F}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202A}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{1BCA0}', '\u{1BCA3}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

fn hidden() -> impl Iterator<Item = char> {
    HIDDEN.iter().flat_map(|(first, last)| *first..=*last)
}

#[test]
fn sec_35_every_hidden_code_point_goes_from_every_position() {
    for c in hidden() {
        assert!(is_hidden(c), "U+{:04X}", c as u32);
        // No letter follows at once, since behind ESC or CSI it would belong to the sequence.
        for (text, expected) in [
            (format!("{c}\u{e4}b"), "\u{e4}b"),
            (format!("a{c}\u{e4}b"), "a\u{e4}b"),
            (format!("a\u{e4}b{c}"), "a\u{e4}b"),
            (format!("a{c}{c}\u{e4}{c}\u{e4}"), "a\u{e4}\u{e4}"),
            (format!("{c}"), ""),
        ] {
            let (cleaned, removed) = clean_counted(&text);
            if matches!(c, '\u{90}' | '\u{98}' | '\u{9D}'..='\u{9F}') && text.matches(c).count() > 1
            {
                // The second introducer aborts the first string, content included.
                assert!(!cleaned.contains(c));
                continue;
            }
            assert_eq!(cleaned, expected, "U+{:04X}", c as u32);
            assert_eq!(removed, text.matches(c).count(), "U+{:04X}", c as u32);
        }
    }
}

#[test]
fn sec_35_no_other_code_point_is_hidden() {
    let expected: std::collections::BTreeSet<char> = hidden().chain(['\n', '\t']).collect();
    let found: std::collections::BTreeSet<char> =
        ('\0'..=char::MAX).filter(|c| is_hidden(*c)).collect();
    assert_eq!(found, expected);
}

#[test]
fn sec_35_whole_terminal_sequences_go() {
    for (text, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{9b}1;31mred\u{9b}m", "red"),
        ("\u{1b}[?25lhidden cursor", "hidden cursor"),
        ("\u{1b}[2J\u{1b}[1;1Hcleared", "cleared"),
        ("\u{1b}[1 qcursor", "cursor"),
        ("\u{1b}]0;title\u{7}text", "text"),
        (
            "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
            "link",
        ),
        ("\u{9d}52;c;ZXZpbA==\u{9c}text", "text"),
        ("\u{1b}]0;a\nb\u{7}text", "text"),
        ("\u{1b}P1$r0m\u{7}still\u{1b}\\text", "text"),
        ("\u{90}q#0\u{9c}text", "text"),
        ("\u{1b}_apc\u{1b}\\text", "text"),
        ("\u{1b}^pm\u{1b}\\text", "text"),
        ("\u{1b}Xsos\u{1b}\\text", "text"),
        ("\u{1b}creset", "reset"),
        ("\u{1b}(Bcharset", "charset"),
        ("\u{1b}#8align", "align"),
        ("\u{1b}7save\u{1b}8", "save"),
        // An aborted string goes with its content, an unfinished one stays readable.
        ("\u{1b}]0;gone\u{18}text", "text"),
        ("\u{1b}]0;gone\u{1b}[31mtext", "text"),
        ("\u{1b}]0;stays visible", "0;stays visible"),
        ("\u{1b}Pstays visible\u{7}", "stays visible"),
        // Unfinished and nested introducers leave nothing that could join.
        ("a\u{1b}", "a"),
        ("a\u{1b}[", "a"),
        ("a\u{1b}[31", "a"),
        ("a\u{1b}[31\u{e4}", "a\u{e4}"),
        ("\u{1b}\u{1b}[31mx", "x"),
        ("\u{1b}\u{200b}[31mx", "[31mx"),
        ("\u{1b}[\u{1b}[31m31mx", "31mx"),
    ] {
        let cleaned = clean(text);
        assert_eq!(cleaned, expected, "{text:?}");
        assert_eq!(clean(&cleaned), cleaned);
    }
    assert_eq!(clean_counted("\u{1b}[31mred").1, 5);
    assert_eq!(clean_counted("\u{1b}]0;t\u{7}x").1, 6);
}

#[test]
fn line_ends_are_unified_and_lone_returns_go() {
    assert_eq!(clean_counted("a\r\nb\tc\n"), ("a\nb\tc\n".into(), 0));
    assert_eq!(clean_counted("safe\rdeceit"), ("safedeceit".into(), 1));
    assert_eq!(clean("a\r\r\nb"), "a\nb");
    assert_eq!(clean_line("  a\r\n\t b \n\n c\n"), "a b c");
    assert_eq!(clean_line("a  b"), "a  b");
    assert_eq!(clean_line("\n\t"), "");
}

#[test]
fn text_is_composed_after_hidden_characters_went() {
    assert_eq!(clean("cafe\u{301}"), "caf\u{e9}");
    assert_eq!(clean("cafe\u{200b}\u{301}"), "caf\u{e9}");
    assert_eq!(clean("\u{212a}"), "K");
}

#[test]
fn clean_text_is_borrowed() {
    for text in [
        "",
        "plain ASCII\n\twith lines",
        "gr\u{fc}\u{df}e \u{1f600} \u{4f60}\u{597d}",
    ] {
        assert!(matches!(clean(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn sec_35_json_is_cleaned_in_keys_and_strings_at_every_depth() {
    let (cleaned, removed) = clean_json(&json!({
        "ti\u{200b}tle": "a\u{202e}b",
        "enum": ["x\u{e0041}", 1, null, true, { "de\u{ad}ep": ["\u{1b}[31mred"] }],
    }));
    assert_eq!(
        cleaned,
        json!({ "title": "ab", "enum": ["x", 1, null, true, { "deep": ["red"] }] })
    );
    assert_eq!(removed, 9);
    assert_eq!(clean_json(&cleaned), (cleaned.clone(), 0));
}

#[test]
fn a_disguised_key_never_replaces_an_honest_one() {
    let honest = json!({ "path": 1 });
    assert_eq!(
        clean_json(&json!({ "path": 1, "pa\u{200b}th": 2 })),
        (honest.clone(), 5)
    );
    assert_eq!(
        clean_json(&json!({ "pa\u{200b}th": 2, "path": 1 })),
        (honest.clone(), 5)
    );
    assert_eq!(
        clean_json(&json!({ "\u{ad}path": 1, "path\u{ad}": 2 })),
        (honest, 6)
    );
}

#[test]
fn a_cut_text_says_so_and_keeps_its_limit() {
    let at_cap = "\u{e4}".repeat(2048);
    assert!(matches!(cut(&at_cap, 2048), Cow::Borrowed(_)));
    let over = cut(&(at_cap.clone() + "x"), 2048).into_owned();
    assert_eq!(over.chars().count(), 2048);
    assert!(over.ends_with("\u{e4}… [truncated]"));
    assert_eq!(cut(&over, 2048), over);
    assert_eq!(cut("abcdef", 3), "abc");
    assert_eq!(cut("abcdef", 0), "");
    assert_eq!(cut("", 0), "");
    assert_eq!(cut("abcdefghijklmnop", 14), "a… [truncated]");
}

#[test]
fn untrusted_text_is_shown_cleaned_and_kept_as_received() {
    let text = Untrusted::new("a\u{1b}[2Jb\n\u{202e}c");
    assert_eq!(text.to_string(), "ab\nc");
    assert_eq!(text.line(), "ab c");
    assert_eq!(text.cut(2), "ab");
    assert_eq!(text.as_received(), "a\u{1b}[2Jb\n\u{202e}c");
}

#[test]
fn folding_joins_case_and_composition_but_hides_nothing() {
    assert_eq!(fold("CAFE\u{301}"), fold("caf\u{e9}"));
    assert_eq!(fold("A\u{200b}"), "a\u{200b}");
    // One capital, two small letters: the end of a word must not tell.
    for sigma in ["\u{3b1}\u{3c3}", "\u{3b1}\u{3c2}", "\u{391}\u{3a3}"] {
        assert_eq!(fold(sigma), "\u{3b1}\u{3c3}");
    }
}

/// Text in which sequences, their parts and hidden characters are frequent.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[\u{1b}\u{7}\u{9b}\u{9c}\u{9d}\u{90}\u{18}\r\n\t]",
        "[\\[\\]PX^_\\\\;0-9m @~]",
        prop::sample::select(hidden().collect::<Vec<_>>()).prop_map(String::from),
        "[e\u{301}\u{1100}\u{1161}\u{958}]",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn sec_35_cleaning_is_idempotent_and_leaves_only_what_is_visible(text in hostile()) {
        let (cleaned, removed) = clean_counted(&text);
        prop_assert!(cleaned.chars().all(|c| matches!(c, '\n' | '\t') || !is_hidden(c)));
        prop_assert_eq!(clean_counted(&cleaned), (cleaned.clone(), 0));
        prop_assert!(removed <= text.chars().count());
        let line = clean_line(&text);
        prop_assert!(!line.contains(is_hidden));
        prop_assert_eq!(clean_line(&line), line.clone());
    }

    #[test]
    fn cleaning_json_is_idempotent(
        members in prop::collection::vec((hostile(), hostile()), 0..6),
    ) {
        let object: Map<String, Value> =
            members.into_iter().map(|(key, text)| (key, Value::from(text))).collect();
        let (cleaned, _) = clean_json(&json!([object]));
        prop_assert_eq!(clean_json(&cleaned), (cleaned.clone(), 0));
    }

    #[test]
    fn a_cut_never_exceeds_its_limit_and_keeps_the_beginning(text in hostile(), max in 0usize..40) {
        let short = cut(&text, max);
        prop_assert!(short.chars().count() <= max);
        let kept = short.strip_suffix(TRUNCATED).unwrap_or(&short);
        prop_assert!(text.starts_with(kept));
        prop_assert_eq!(cut(&short, max), short.clone());
    }
}
