//! The ranking keeps what was measured: queries as people put them, over the tools of real
//! servers. `cargo xtask bench search` shows the figures.

#[path = "../../../../bench/ranking.rs"]
mod measured;

#[test]
fn labelled_queries_find_their_tools_among_the_first_five() {
    let catalog = measured::catalog();
    assert!(catalog.tools.len() >= 500, "{}", catalog.tools.len());
    let all = measured::judge(&catalog, |_| true);
    let even = measured::judge(&catalog, |number| number % 2 == 0);
    let odd = measured::judge(&catalog, |number| number % 2 == 1);
    for (name, figures) in [("all", &all), ("even", &even), ("odd", &odd)] {
        println!(
            "{name}: {} queries, recall@5 {:.3}, hits@5 {:.3}, MRR {:.3}",
            figures.queries, figures.recall, figures.hits, figures.reciprocal_rank
        );
    }
    for missed in &even.missed {
        println!("{missed}");
    }
    assert!(all.queries >= 60, "{}", all.queries);
    assert!(
        all.recall >= 0.5,
        "{}\n{}",
        all.recall,
        all.missed.join("\n")
    );
}
