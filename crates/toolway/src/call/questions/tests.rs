//! The book by itself: its bounds, what it remembers, and who was first.

use std::time::{Duration, SystemTime};

use toolway_types::{ServerName, limits};

use super::*;

fn draft(number: usize) -> OpenQuestion {
    let now = SystemTime::now();
    OpenQuestion {
        id: QuestionId::new(&number.to_string()),
        kind: QuestionKind::Form {
            message: Untrusted::new("?"),
            schema: RawValue::from_string("{}".to_owned()).unwrap(),
        },
        server: ServerName::new("s").unwrap(),
        tool: None,
        caller: Caller::default(),
        put_to: Askee::Caller,
        asked_at: now,
        expires_at: now + Duration::from_mins(1),
    }
}

fn declined() -> QuestionAnswer {
    QuestionAnswer::Elicitation(ElicitationAnswer::Decline)
}

#[test]
fn questions_are_bounded_for_each_caller_and_in_all() {
    let book = Arc::new(QuestionBook::default());
    let mut open = Vec::new();
    let mut full = 0;
    for party in 0..limits::call::ALL_OPEN_QUESTIONS {
        let party = if party > 0 {
            book.new_party()
        } else {
            PartyId::OWNER
        };
        let before = open.len();
        while let Some(question) = book.open(draft(open.len()), party) {
            open.push(question);
        }
        match open.len() - before {
            0 => full += 1,
            count => assert_eq!(count, limits::call::OPEN_QUESTIONS),
        }
    }
    assert_eq!(open.len(), limits::call::ALL_OPEN_QUESTIONS);
    assert!(full > 0);
    open.pop();
    let party = book.new_party();
    assert!(book.open(draft(usize::MAX), party).is_some());
}

#[test]
fn what_was_closed_is_remembered_for_a_while_only() {
    let book = Arc::new(QuestionBook::default());
    for number in 0..2000 {
        let question = book.open(draft(number), PartyId::OWNER);
        let id = QuestionId::new(&number.to_string());
        assert_eq!(book.answer(&id, declined(), PartyId::OWNER), Ok(()));
        drop(question);
    }
    let answer = |number: usize| {
        let id = QuestionId::new(&number.to_string());
        book.answer(&id, declined(), PartyId::OWNER).unwrap_err()
    };
    assert!(matches!(answer(0), AnswerError::Unknown(_)));
    assert!(matches!(answer(1999), AnswerError::AlreadyAnswered(_)));
}

#[test]
fn an_answer_that_was_quicker_counts_and_its_giver_heard_yes() {
    let book = Arc::new(QuestionBook::default());
    let question = book.open(draft(1), PartyId::OWNER).unwrap();
    let id = QuestionId::new("1");
    assert_eq!(book.answer(&id, declined(), PartyId::OWNER), Ok(()));
    // A dialog answered in the same moment.
    assert_eq!(question.end(QuestionEnd::Answered), Err(Some(declined())));
    let question = book.open(draft(2), PartyId::OWNER).unwrap();
    assert_eq!(question.end(QuestionEnd::Answered), Ok(()));
    let late = book.answer(&QuestionId::new("2"), declined(), PartyId::OWNER);
    assert!(matches!(late, Err(AnswerError::AlreadyAnswered(_))));
}

#[test]
fn ids_have_all_their_bits_and_no_order() {
    let ids: std::collections::BTreeSet<String> = (0..1000)
        .map(|_| QuestionId::random().unwrap().to_string())
        .collect();
    assert_eq!(ids.len(), 1000);
    let firsts: std::collections::BTreeSet<_> = ids.iter().map(|id| id[..2].to_owned()).collect();
    assert!(firsts.len() > 200, "{}", firsts.len());
}
