//! The rhythm alone, with a clock of its own.

use super::*;

/// A list, and the time.
struct Scene {
    pace: Pace,
    now: Instant,
    announced: u64,
}

const SECOND: Duration = Duration::from_secs(1);

impl Scene {
    fn new(ttl: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            pace: Pace::new(now, ttl),
            now,
            announced: 0,
        }
    }

    fn change(&mut self) {
        self.announced += 1;
        self.pace.note(self.now, self.announced);
    }

    /// Goes on to the next fetch, which takes so long and ends so; how long it was waited for.
    fn fetch(&mut self, takes: Duration, outcome: FetchOutcome, ttl: Option<Duration>) -> Duration {
        let due = self.pace.due(false).expect("something asks for it");
        let waited = due.saturating_duration_since(self.now);
        self.now = due.max(self.now);
        self.pace.begin();
        assert_eq!(self.pace.due(false), None, "one at a time");
        self.now += takes;
        self.pace.end(self.now, outcome, ttl);
        waited
    }

    fn plain(&mut self) -> u64 {
        self.fetch(Duration::ZERO, FetchOutcome::Changed, None)
            .as_secs()
    }
}

#[tokio::test(start_paused = true)]
async fn rel_21_the_interval_doubles_while_changes_keep_coming_and_shrinks_after_quiet() {
    let mut scene = Scene::new(None);
    assert_eq!(scene.pace.due(false), None, "nothing changed");
    scene.change();
    let mut waits = vec![scene.plain()];
    for _ in 0..11 {
        scene.change();
        waits.push(scene.plain());
    }
    assert_eq!(waits, [0, 1, 1, 1, 1, 2, 4, 8, 16, 30, 30, 30]);

    scene.now += SECOND * 31;
    scene.change();
    assert_eq!(scene.plain(), 0, "after quiet it is fetched at once");
    scene.change();
    assert_eq!(scene.plain(), 1, "and the interval is short again");
}

#[tokio::test(start_paused = true)]
async fn rel_21_a_change_during_a_fetch_is_one_more_fetch_after_it() {
    let mut scene = Scene::new(None);
    scene.change();
    scene.pace.begin();
    for _ in 0..1000 {
        scene.change();
    }
    scene.now += SECOND * 5;
    scene.pace.end(scene.now, FetchOutcome::Changed, None);
    assert_eq!(
        scene.plain(),
        1,
        "a list slower than the interval gets its rest"
    );
    assert_eq!(scene.pace.due(false), None, "and one fetch covers them all");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_fails_is_tried_again_a_few_times_and_then_left() {
    let mut scene = Scene::new(None);
    scene.change();
    let mut waits = Vec::new();
    while scene.pace.due(false).is_some() {
        let wait = scene.fetch(Duration::ZERO, FetchOutcome::Failed, None);
        waits.push(wait.as_secs());
    }
    assert_eq!(waits.len(), 6, "{waits:?}");
    for (wait, least) in std::iter::zip(waits, [0, 2, 4, 8, 16, 30]) {
        assert!((least..=least + least / 4 + 1).contains(&wait), "{wait}");
    }
    scene.change();
    assert!(scene.pace.due(false).is_some(), "a change is a new reason");
    scene.now += SECOND * 60;
    scene.plain();
    scene.change();
    scene.fetch(Duration::ZERO, FetchOutcome::Failed, None);
    assert!(
        scene.pace.due(false).is_some(),
        "a success renews the budget"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_list_is_asked_for_with_jitter_and_more_rarely_without_news() {
    let ttl = Some(Duration::from_secs(100));
    let mut scene = Scene::new(ttl);
    assert_eq!(
        scene.pace.due(true),
        None,
        "changes are announced: nobody asks"
    );
    let mut least = 100;
    for _ in 0..6 {
        let wait = scene
            .fetch(Duration::ZERO, FetchOutcome::Same, ttl)
            .as_secs();
        let most = least + least / 4;
        assert!((least..=most).contains(&wait), "{least} ≤ {wait} ≤ {most}");
        least = (least * 2).min(60 * 60);
    }
    let wait = scene
        .fetch(Duration::ZERO, FetchOutcome::Changed, ttl)
        .as_secs();
    assert!(wait >= 3600, "{wait}");
    let wait = scene
        .fetch(Duration::ZERO, FetchOutcome::Same, ttl)
        .as_secs();
    assert!(
        (100..=125).contains(&wait),
        "news makes it quick again: {wait}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tiny_ttl_is_no_order_to_hurry_and_none_no_order_at_all() {
    let mut scene = Scene::new(Some(Duration::from_millis(1)));
    let wait = scene.fetch(Duration::ZERO, FetchOutcome::Changed, None);
    assert!(wait >= SECOND * 30, "{wait:?}");
    assert_eq!(scene.pace.due(false), None);
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_for_the_same_do_not_ask_at_once() {
    let begin = Instant::now();
    let waits: std::collections::BTreeSet<_> = (0..100)
        .filter_map(|_| Pace::new(begin, Some(SECOND * 300)).due(false))
        .collect();
    assert!(waits.len() > 50, "{} different moments", waits.len());
}
