//! The modules of a crate need each other in one direction, so that each can be read with those
//! below it alone.
//!
//! Owns the rule for the modules right below the root of each crate, each with all that is below
//! it, and the list of crates that still break it. What counts as a use is `shape`'s. Deeper down
//! cycles are only counted, by `cargo xtask figures`.

use super::Finding;
use crate::shape::Shape;

/// How many modules are in cycles, in crates that still have some. It may only shrink; a crate that
/// is not here has none.
const STILL: &[(&str, usize)] = &[];

pub(super) fn modules_form_no_cycle(shape: &Shape) -> Vec<Finding> {
    no_more_than(shape, STILL)
}

fn no_more_than(shape: &Shape, still: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &shape.crates {
        let known = still.iter().find(|(name, _)| *name == one.name);
        let most = known.map_or(0, |(_, most)| *most);
        let graph = one.graph(&one.usages());
        let found = graph.in_cycles();
        let name = &one.name;
        if found < most {
            let message = format!(
                "{found} modules of `{name}` are in cycles, {most} were: lower the number in \
                 xtask/src/tidy/modules.rs"
            );
            findings.push(Finding::warning(one.root(), None, message));
        }
        if found <= most {
            continue;
        }
        let cycles = graph.cycles();
        if most > 0 {
            // Which use is the new one cannot be told from those that are known.
            let members: Vec<_> = cycles.iter().map(|it| it.members.join(", ")).collect();
            let message = format!(
                "{found} modules of `{name}` are in cycles ({}), {most} at most: see `cargo xtask \
                 figures --cycles {name}`",
                members.join("; ")
            );
            findings.push(Finding::error(one.root(), None, message));
            continue;
        }
        for cycle in &cycles {
            for (from, to) in graph.upwards(cycle) {
                let Some(usage) = graph.usages(from, to).first() else {
                    continue;
                };
                let message = format!(
                    "closes a cycle of {} modules of `{name}`: `{from}` needs `{}` of `{to}`, \
                     which leads back to `{from}`: see `cargo xtask figures --cycles {name}`",
                    cycle.members.len(),
                    usage.item,
                );
                findings.push(Finding::error(&usage.file, usage.line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use crate::tree::Tree;

    const ROOT: (&str, &str) = ("crates/x/src/lib.rs", "mod a;\nmod b;\n");

    fn found(a: &str, b: &str, still: &[(&str, usize)]) -> Vec<Finding> {
        let tree = Tree::of([ROOT, ("crates/x/src/a.rs", a), ("crates/x/src/b.rs", b)]);
        no_more_than(&Shape::read(&tree).unwrap(), still)
    }

    const NEEDS_B: &str = "use crate::b::{One, Two};\n";
    const NEEDS_A: &str = "pub struct One;\npub struct Two;\nuse crate::a::Back;\n";

    #[test]
    fn one_direction_is_fine() {
        assert_eq!(found(NEEDS_B, "pub struct One;", &[]), []);
    }

    #[test]
    fn a_cycle_fails_where_it_is_closed() {
        let findings = found(NEEDS_B, NEEDS_A, &[]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let said = findings[0].to_string();
        let begin = "error: crates/x/src/b.rs:3: closes a cycle of 2 modules of `x`: `b` needs \
                     `Back` of `a`, which leads back to `b`:";
        assert!(said.starts_with(begin), "{said}");
    }

    #[test]
    fn a_known_cycle_may_stay_but_not_grow() {
        assert_eq!(found(NEEDS_B, NEEDS_A, &[("x", 2)]), []);
        let grown = found(NEEDS_B, NEEDS_A, &[("x", 1)]);
        assert_eq!(grown.len(), 1, "{grown:?}");
        let said = grown[0].to_string();
        let begin = "error: crates/x/src/lib.rs: 2 modules of `x` are in cycles (b, a), 1 at most";
        assert!(said.starts_with(begin), "{said}");
        assert_eq!(found(NEEDS_B, NEEDS_A, &[("y", 2)]).len(), 1);
    }

    #[test]
    fn a_cycle_that_shrank_asks_for_a_lower_number() {
        let findings = found(NEEDS_B, "", &[("x", 2)]);
        let severities: Vec<_> = findings.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Warning]);
    }
}
