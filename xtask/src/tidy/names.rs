//! A type's name says which type it is, wherever it is read.
//!
//! Owns two rules: no two public types of the product have one name, and few types of any
//! visibility have a name that another has too. Both have numbers that may only shrink.

use super::Finding;
use crate::shape::Shape;

/// The most types of a hundred whose name another type has too.
const MOST_AMBIGUOUS: usize = 4;

/// Names that are public twice still. The list may only shrink.
const STILL_TWICE: &[&str] = &[];

const HERE: &str = "xtask/src/tidy/names.rs";

pub(super) fn public_names_stand_for_one_type(shape: &Shape) -> Vec<Finding> {
    one_type_each(shape, STILL_TWICE)
}

fn one_type_each(shape: &Shape, still: &[&str]) -> Vec<Finding> {
    let names = shape.names();
    let twice = names.public_twice();
    let mut findings = Vec::new();
    for (name, types) in &twice {
        let [first, others @ ..] = types.as_slice() else {
            continue;
        };
        if still.contains(name) {
            continue;
        }
        for other in others {
            let message = format!(
                "`{name}` is public a second time, as in {}:{}: give one of them a name that says \
                 what it is",
                first.file, first.line
            );
            findings.push(Finding::error(&other.file, other.line, message));
        }
    }
    for name in still {
        if !twice.iter().any(|(known, _)| known == name) {
            let message = format!("`{name}` is not public twice any more: take it off the list");
            findings.push(Finding::warning(HERE, None, message));
        }
    }
    findings
}

pub(super) fn few_names_are_ambiguous(shape: &Shape) -> Vec<Finding> {
    at_most(shape, MOST_AMBIGUOUS)
}

fn at_most(shape: &Shape, most: usize) -> Vec<Finding> {
    let names = shape.names();
    let (all, ambiguous) = (names.definitions(), names.ambiguous_definitions());
    let message = |what: &str| {
        format!(
            "{ambiguous} of {all} types have a name that another has too, {what} {most} of a \
             hundred: see `cargo xtask figures --names`"
        )
    };
    if ambiguous * 100 > all * most {
        return vec![Finding::error(HERE, None, message("more than"))];
    }
    if all > 0 && ambiguous * 100 + all < all * most {
        let message = message("fewer than") + ", and lower the number";
        return vec![Finding::warning(HERE, None, message)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use crate::tree::Tree;

    fn shape(x: &str, y: &str) -> Shape {
        let tree = Tree::of([("crates/x/src/lib.rs", x), ("crates/y/src/lib.rs", y)]);
        Shape::read(&tree).unwrap()
    }

    fn severities(findings: &[Finding]) -> Vec<Severity> {
        findings.iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_second_public_type_of_one_name_fails_with_both_places() {
        let findings = one_type_each(&shape("pub struct Line;", "\npub enum Line {}"), &[]);
        let said: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "error: crates/y/src/lib.rs:2: `Line` is public a second time, as in \
                 crates/x/src/lib.rs:1: give one of them a name that says what it is"
            ]
        );
    }

    #[test]
    fn a_private_namesake_and_a_known_one_are_fine() {
        let private = shape("pub struct Line;", "pub(crate) struct Line;");
        assert_eq!(one_type_each(&private, &[]), []);
        let known = shape("pub struct Line;", "pub struct Line;");
        assert_eq!(one_type_each(&known, &["Line"]), []);
    }

    #[test]
    fn a_known_name_that_is_public_once_asks_to_be_taken_off() {
        let findings = one_type_each(&shape("pub struct Line;", ""), &["Line"]);
        assert_eq!(severities(&findings), [Severity::Warning]);
    }

    #[test]
    fn too_many_ambiguous_names_fail_whatever_their_visibility() {
        let half = shape("struct Line; struct Other;", "struct Line; struct More;");
        assert_eq!(at_most(&half, 50), []);
        assert_eq!(severities(&at_most(&half, 49)), [Severity::Error]);
        assert_eq!(severities(&at_most(&half, 60)), [Severity::Warning]);
    }
}
