//! Several cases at once, each worker with something of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

/// Runs every item in one of so many workers; the results come in the order of the items. What a
/// worker needs is begun in it before its first item, and ended after its last.
pub(super) fn run<T: Sync, W, R: Send>(
    items: &[T],
    workers: usize,
    begin: impl Fn() -> Result<W> + Sync,
    each: impl Fn(&mut W, &T) -> Result<R> + Sync,
    end: impl Fn(W) -> Result<()> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        let mut own = None;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let tool = match &mut own {
                Some(tool) => tool,
                none => none.insert(begin()?),
            };
            let result = each(tool, item)?;
            if let Ok(mut done) = done.lock() {
                done.push((index, result));
            }
        }
        own.map_or(Ok(()), &end)
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|worker| {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a thread that ran scenarios panicked"))?
        })
    })?;
    let mut done = done
        .into_inner()
        .map_err(|_| anyhow::anyhow!("a thread that ran scenarios panicked"))?;
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn results_keep_the_order_and_what_a_worker_has_is_begun_and_ended_as_often() {
        let started = AtomicUsize::new(0);
        let ended = AtomicUsize::new(0);
        let items: Vec<usize> = (0..50).collect();
        let begin = || Ok(started.fetch_add(1, Ordering::Relaxed));
        let end = |_| {
            ended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let doubled = run(&items, 3, begin, |_, item| Ok(item * 2), end).unwrap();
        assert_eq!(doubled, (0..50).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(started.into_inner(), ended.into_inner());
    }

    #[test]
    fn an_error_of_one_item_is_the_error_of_all() {
        let each = |(): &mut (), item: &usize| if *item == 7 { bail!("no") } else { Ok(()) };
        let items: Vec<usize> = (0..20).collect();
        assert!(run(&items, 2, || Ok(()), each, |()| Ok(())).is_err());
    }
}
