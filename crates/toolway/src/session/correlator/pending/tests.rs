//! Whatever order things happen in, each request has one outcome, and it is its own.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::value::to_raw_value;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Register(u64),
    Settle(u64),
    Forget(u64),
    Stir(u64),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..12_u64;
    prop_oneof![
        4 => id.clone().prop_map(Step::Register),
        4 => id.clone().prop_map(Step::Settle),
        2 => id.clone().prop_map(Step::Forget),
        1 => id.prop_map(Step::Stir),
        1 => Just(Step::Close),
    ]
}

/// What a request that was taken in must come to.
#[derive(Debug, PartialEq)]
enum Fate {
    Waits,
    Answered(u64),
    Forgotten,
    Closed,
}

proptest! {
    #[test]
    fn rel_22_every_request_has_exactly_one_outcome_and_it_is_its_own(
        steps in prop::collection::vec(step(), 0..80)
    ) {
        let waiting = PendingRequests::default();
        let mut requests = Vec::new();
        let mut current: HashMap<u64, usize> = HashMap::new();
        let mut closed = false;
        let mut next = 1_000_u64;
        for step in steps {
            match step {
                // An id is used once while it waits, as the correlator promises.
                Step::Register(id) if !current.contains_key(&id) => {
                    let registered = waiting.register(id, None, None);
                    prop_assert_eq!(registered.is_err(), closed);
                    if let Ok(receiver) = registered {
                        current.insert(id, requests.len());
                        requests.push((receiver, Fate::Waits));
                    }
                }
                Step::Register(_) => {}
                Step::Settle(id) => {
                    next += 1;
                    let answer = to_raw_value(&next).expect("JSON");
                    let waited = current.remove(&id);
                    prop_assert_eq!(waiting.settle(id, Ok(answer.into())), waited.is_some());
                    if let Some(index) = waited {
                        requests[index].1 = Fate::Answered(next);
                    }
                }
                Step::Forget(id) => {
                    let waited = current.remove(&id);
                    prop_assert_eq!(waiting.forget(id), waited.is_some());
                    if let Some(index) = waited {
                        requests[index].1 = Fate::Forgotten;
                    }
                }
                Step::Stir(id) => prop_assert!(waiting.stir(id).is_none()),
                Step::Close => {
                    prop_assert_eq!(waiting.close(&CloseReason::Asked), !closed);
                    closed = true;
                    for (_, index) in current.drain() {
                        requests[index].1 = Fate::Closed;
                    }
                }
            }
        }
        for (mut receiver, fate) in requests {
            let seen = match receiver.try_recv() {
                Ok(Ok(answer)) => Fate::Answered(answer.get().parse().expect("a number")),
                Ok(Err(_)) => Fate::Closed,
                Err(oneshot::error::TryRecvError::Empty) => Fate::Waits,
                Err(oneshot::error::TryRecvError::Closed) => Fate::Forgotten,
            };
            prop_assert_eq!(seen, fate);
        }
    }
}

/// A request of a caller of its own.
fn of_somebody() -> Arc<RequestOrigin> {
    RequestOrigin::of(&Arc::new(CallerSide::default()), None)
}

fn is_of(cause: &QuestionCause, origin: &Arc<RequestOrigin>) -> bool {
    matches!(cause, QuestionCause::Requests(requests)
        if !requests.is_empty() && requests.iter().all(|it| Arc::ptr_eq(it, origin)))
}

#[test]
fn a_question_on_the_stream_of_a_request_that_has_ended_is_no_others() {
    let waiting = PendingRequests::default();
    let [ada, bob] = [of_somebody(), of_somebody()];
    let first = waiting.register(1, None, Some(Arc::clone(&ada)));
    let second = waiting.register(2, None, Some(Arc::clone(&bob)));
    assert!(is_of(&waiting.cause(Some(1), None), &ada));
    let answer = to_raw_value(&1).expect("JSON");
    assert!(waiting.settle(1, Ok(answer.into())));
    let cause = waiting.cause(Some(1), None);
    assert!(matches!(cause, QuestionCause::Unclear));
    assert!(is_of(&waiting.cause(Some(2), None), &bob));
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_may_be_for_a_request_another_gave_up_is_put_to_nobody() {
    let waiting = PendingRequests::default();
    let [ada, bob] = [of_somebody(), of_somebody()];
    let first = waiting.register(1, None, Some(Arc::clone(&ada)));
    let second = waiting.register(2, None, Some(Arc::clone(&bob)));
    assert!(waiting.leave(1, &mut None));
    let is_unclear = |own| matches!(waiting.cause(None, own), QuestionCause::Unclear);
    assert!(is_unclear(None), "it may be the first one's");
    // What comes on a stream of its own is as clear as before.
    assert!(is_of(&waiting.cause(Some(2), None), &bob));
    // Neither is it the owner's, with nothing in flight; but what the owner gave up is.
    assert!(waiting.leave(2, &mut None));
    assert!(is_unclear(None) && is_unclear(Some(&ada.caller)));
    let answer = || Ok(to_raw_value(&1).expect("JSON").into());
    assert!(!waiting.settle(2, answer()), "it was answered all the same");
    assert!(!is_unclear(Some(&ada.caller)));
    // Not for ever.
    let third = waiting.register(3, None, Some(Arc::clone(&bob)));
    assert!(is_unclear(None));
    tokio::time::advance(GIVEN_UP_FOR).await;
    assert!(is_of(&waiting.cause(None, None), &bob));
    drop((first, second, third));
}
