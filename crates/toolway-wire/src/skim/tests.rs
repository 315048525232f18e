//! The id is found wherever it stands and however the bytes are cut.

use proptest::prelude::*;

use super::*;

fn skim(pieces: &[&[u8]]) -> Option<Id> {
    let mut skimmer = IdSkimmer::new();
    for piece in pieces {
        skimmer.feed(piece);
    }
    skimmer.response_id()
}

#[test]
fn the_id_is_found_first_last_and_in_between() {
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"id":9,"t":"\"id\":8,"}}"#,
        r#"{"result":{"a":[{"id":1}],"s":"}}\\"},"jsonrpc":"2.0", "id" : 7 }"#,
        r#"{"result":[],"id":7,"jsonrpc":"2.0"}"#,
    ] {
        assert_eq!(skim(&[text.as_bytes()]), Some(Id::Number(7)), "{text}");
    }
    assert_eq!(
        skim(&[br#"{"id":"a\"b","result":1}"#]),
        Some(Id::Text("a\"b".to_owned()))
    );
}

#[test]
fn an_unfinished_message_still_gives_an_id_that_was_seen() {
    assert_eq!(
        skim(&[br#"{"id":7,"result":{"text":"aaaa"#]),
        Some(Id::Number(7))
    );
}

#[test]
fn the_id_of_a_request_is_not_ours() {
    assert_eq!(
        skim(&[br#"{"id":7,"method":"sampling/createMessage","params":{}}"#]),
        None
    );
}

proptest! {
    #[test]
    fn cutting_the_bytes_anywhere_changes_nothing(cuts in prop::collection::vec(0usize..60, 0..6)) {
        let text: &[u8] = br#"{"r":{"id":3,"x":"a\\\"b{[","y":[1,2]},"id":"7","e":null}   "#;
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(skim(&pieces), Some(Id::Text("7".to_owned())));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut skimmer = IdSkimmer::new();
        skimmer.feed(&bytes);
        prop_assert!(skimmer.key.len() <= KEPT && skimmer.value.len() <= KEPT);
    }
}
