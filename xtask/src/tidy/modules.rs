//! The modules of a crate need each other in one direction, so that each can be read with those
//! below it alone.
//!
//! Owns the rule for the modules right below the root of each crate and right below every other
//! module, each with all that is below it. What counts as a use is `shape`'s. What a module uses of
//! the one that it lies in counts for the root alone; `cargo xtask figures` counts it elsewhere.

use super::Finding;
use crate::shape::{Graph, Level, Shape};

pub(super) fn modules_form_no_cycle(shape: &Shape) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &shape.crates {
        let (name, usages) = (&one.name, one.usages());
        findings.extend(closing(name, name, &one.graph(&usages)));
        for (parent, graph) in one.deeper(Level::Siblings, &usages) {
            findings.extend(closing(name, &format!("{name}::{parent}"), &graph));
        }
    }
    findings
}

/// The uses that close cycles among the modules right below `parent`.
fn closing(name: &str, parent: &str, graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for cycle in graph.cycles() {
        for (from, to) in graph.upwards(&cycle) {
            let Some(usage) = graph.usages(from, to).first() else {
                continue;
            };
            let message = format!(
                "closes a cycle of {} modules of `{parent}`: `{from}` needs `{}` of `{to}`, which \
                 leads back to `{from}`: see `cargo xtask figures --cycles {name}`",
                cycle.members.len(),
                usage.item,
            );
            findings.push(Finding::error(&usage.file, usage.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const NEEDS_B: &str = "use super::b::{One, Two};\n";
    const NEEDS_A: &str = "pub struct One;\npub struct Two;\nuse super::a::Back;\n";

    fn found<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        let shape = Shape::read(&Tree::of(files)).unwrap();
        let findings = modules_form_no_cycle(&shape);
        findings.iter().map(Finding::to_string).collect()
    }

    fn top_level(a: &str, b: &str) -> Vec<String> {
        found([
            ("crates/x/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/x/src/a.rs", a),
            ("crates/x/src/b.rs", b),
        ])
    }

    fn deeper(m: &str, a: &str, b: &str) -> Vec<String> {
        found([
            ("crates/x/src/lib.rs", "mod m;\n"),
            ("crates/x/src/m.rs", m),
            ("crates/x/src/m/a.rs", a),
            ("crates/x/src/m/b.rs", b),
        ])
    }

    #[test]
    fn one_direction_is_fine() {
        let none = Vec::<String>::new();
        assert_eq!(top_level(NEEDS_B, "pub struct One;"), none);
        assert_eq!(deeper("mod a;\nmod b;\n", NEEDS_B, "pub struct One;"), none);
    }

    #[test]
    fn a_cycle_fails_where_it_is_closed() {
        let findings = top_level(NEEDS_B, NEEDS_A);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let begin = "error: crates/x/src/b.rs:3: closes a cycle of 2 modules of `x`: `b` needs \
                     `Back` of `a`, which leads back to `b`:";
        assert!(findings[0].starts_with(begin), "{findings:?}");
    }

    #[test]
    fn a_cycle_below_a_module_fails_too() {
        let findings = deeper("mod a;\nmod b;\n", NEEDS_B, NEEDS_A);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let begin = "error: crates/x/src/m/b.rs:3: closes a cycle of 2 modules of `x::m`: `b` \
                     needs `Back` of `a`, which leads back to `b`:";
        assert!(findings[0].starts_with(begin), "{findings:?}");
    }

    #[test]
    fn a_module_may_need_the_one_that_it_lies_in() {
        let m = "mod a;\nmod b;\nuse self::a::One;\npub struct Own;\n";
        let findings = deeper(m, "pub struct One;\nuse super::Own;\n", "");
        assert_eq!(findings, Vec::<String>::new());
    }
}
