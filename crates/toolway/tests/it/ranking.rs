//! The ranking keeps what was measured: queries as people put them, over the tools of real
//! servers. `cargo xtask bench search` shows the figures.

#[path = "../../../../bench/ranking.rs"]
mod measured;

/// Measured: 0.878. A change that costs two queries in a hundred is worth a second look.
const LEAST_RECALL: f64 = 0.86;
/// Measured: 0.776.
const LEAST_RECIPROCAL_RANK: f64 = 0.75;

#[test]
fn labelled_queries_find_their_tools_among_the_first_five() {
    let catalog = measured::catalog();
    assert!(
        catalog.tools().count() >= 500,
        "{}",
        catalog.tools().count()
    );
    let figures = measured::judge(&catalog, |_| true);
    assert!(figures.queries >= 60, "{}", figures.queries);
    assert!(figures.hits >= figures.recall);
    let missed = figures.missed.join("\n");
    assert!(
        figures.recall >= LEAST_RECALL,
        "{}\n{missed}",
        figures.recall
    );
    assert!(
        figures.reciprocal_rank >= LEAST_RECIPROCAL_RANK,
        "{}\n{missed}",
        figures.reciprocal_rank
    );
}
