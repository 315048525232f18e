//! What counts as a use, as a cycle, as a type and as a line, on small crates in memory.

use super::*;

fn read<const N: usize>(files: [(&str, &str); N]) -> Shape {
    Shape::read(&Tree::of(files)).unwrap()
}

/// The one crate of a shape, as `from -> to: item, file:line`.
fn uses<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
    let shape = read(files);
    let one = &shape.crates[0];
    let name = |module: usize| match one.modules[module].name() {
        root if root.is_empty() => "root".to_owned(),
        name => name,
    };
    let usages = one.usages();
    usages
        .iter()
        .map(|usage| {
            let file = usage.file.rsplit('/').next().unwrap();
            let (from, to) = (name(usage.from), name(usage.to));
            format!("{from} -> {to}: {}, {file}:{}", usage.item, usage.line)
        })
        .collect()
}

fn cycles<const N: usize>(files: [(&str, &str); N]) -> Vec<Vec<String>> {
    let shape = read(files);
    let one = &shape.crates[0];
    let cycles = one.graph(&one.usages()).cycles();
    cycles.into_iter().map(|cycle| cycle.members).collect()
}

const ROOT: &str = "crates/x/src/lib.rs";
const A: &str = "crates/x/src/a.rs";
const B: &str = "crates/x/src/b.rs";
const BELOW_A: &str = "crates/x/src/a/below.rs";

#[test]
fn an_import_is_a_use_of_the_module_that_defines_the_item() {
    let found = uses([
        (ROOT, "mod a; mod b;"),
        (A, "use crate::b::{self, Thing, deep::{Other as Renamed}};"),
        (B, "pub mod deep { pub struct Other; }\npub struct Thing;"),
    ]);
    assert_eq!(
        found,
        [
            "a -> b: b, a.rs:1",
            "a -> b: Thing, a.rs:1",
            "a -> b::deep: Other, a.rs:1"
        ]
    );
}

#[test]
fn an_import_of_a_name_that_is_exported_again_leads_to_its_definition() {
    let found = uses([
        (
            ROOT,
            "mod a; mod b;\npub use b::Thing as Known;\npub use serde::Value;",
        ),
        (A, "use crate::{Known, Value};\nuse crate::b::Deep;"),
        (
            B,
            "pub struct Thing; mod deep { pub struct Deep; }\npub use deep::Deep;",
        ),
    ]);
    assert_eq!(
        found,
        ["a -> b: Thing, a.rs:1", "a -> b::deep: Deep, a.rs:2"]
    );
}

#[test]
fn paths_in_expressions_macros_and_attributes_are_uses() {
    let found = uses([
        (ROOT, "mod a; mod b;"),
        (
            A,
            "use crate::b;\n\
             fn f(x: crate::b::One) {\n\
             b::two();\n\
             println!(\"{}\", crate::b::three(1));\n\
             { use crate::b::Four; }\n\
             }\n\
             #[serde(with = \"crate::b::five\")]\n\
             struct S;",
        ),
        (B, ""),
    ]);
    assert_eq!(
        found,
        [
            "a -> b: b, a.rs:1",
            "a -> b: One, a.rs:2",
            "a -> b: two, a.rs:3",
            "a -> b: three, a.rs:4",
            "a -> b: Four, a.rs:5",
            "a -> b: five, a.rs:7"
        ]
    );
}

#[test]
fn names_of_other_crates_comments_and_visibility_are_no_uses() {
    let found = uses([
        (ROOT, "mod a; mod b;"),
        (
            A,
            "//! See [`crate::b::Thing`].\n\
             use ::b::Thing;\n\
             use std::fmt;\n\
             /// As [`crate::b::Thing`].\n\
             pub(in crate::b) struct S(fmt::Result, Option<String>);",
        ),
        (B, ""),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_child_uses_what_its_parent_defines_and_the_parent_only_what_it_needs() {
    let found = uses([
        (ROOT, "mod a;"),
        (
            A,
            "mod below;\n\
             pub use self::below::Given;\n\
             use self::below::help;\n\
             struct Own;",
        ),
        (BELOW_A, "use super::Own;\nuse super::super::a;"),
    ]);
    assert_eq!(
        found,
        [
            "a -> a::below: help, a.rs:3",
            "a::below -> a: Own, below.rs:1",
            "a::below -> a: a, below.rs:2"
        ]
    );
}

#[test]
fn what_is_not_shipped_uses_nothing_and_has_no_lines() {
    let shape = read([
        (ROOT, "mod a; mod b;\n#[cfg(test)]\nmod tests;"),
        (
            A,
            "//! A.\n\
             \n\
             #[cfg(test)]\n\
             use crate::b::One;\n\
             impl S {\n\
             #[cfg(test)]\n\
             fn f() { crate::b::two(); }\n\
             }\n\
             #[cfg(all(test, unix))]\n\
             mod tests {\n\
             use crate::b::Three;\n\
             struct Planted;\n\
             }\n",
        ),
        (
            B,
            "#[cfg(not(test))]\nuse crate::a;\n#[cfg(fuzzing)]\npub mod seam;",
        ),
        ("crates/x/src/tests.rs", "use crate::b::Four;"),
    ]);
    let one = &shape.crates[0];
    let usages = one.usages();
    assert_eq!(usages.len(), 1, "{usages:?}");
    assert_eq!(one.types().count(), 0);
    assert_eq!(one.files.len(), 3);
    assert_eq!(one.files[A], Lines { all: 8, code: 6 });
}

#[test]
fn modules_that_need_each_other_are_a_cycle_with_all_that_is_below_them() {
    let root = (ROOT, "mod a; mod b; mod c;");
    let c = ("crates/x/src/c.rs", "use crate::a::S;");
    let b = (B, "use crate::a::S;");
    let a = (A, "mod below;\npub struct S;");
    assert_eq!(cycles([root, a, b, c, (BELOW_A, "")]), [[""; 0]; 0]);
    let found = cycles([root, a, b, c, (BELOW_A, "fn f() { crate::b::g() }")]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn a_module_that_needs_the_root_which_needs_it_is_in_a_cycle() {
    let a = (A, "use crate::Options;\npub fn open() {}");
    let plain = "mod a;\npub use a::open;\npub struct Options;";
    assert_eq!(cycles([(ROOT, plain), a]), [[""; 0]; 0]);
    let mixed = "mod a;\npub struct Options;\npub fn f() { a::open() }";
    assert_eq!(cycles([(ROOT, mixed), a]), [["a", "lib.rs"]]);
}

#[test]
fn the_uses_to_be_taken_away_are_the_fewest() {
    let shape = read([
        (ROOT, "mod a; mod b;"),
        (A, "use crate::b::{One, Two, Three};"),
        (B, "use crate::a::Single;"),
    ]);
    let one = &shape.crates[0];
    let graph = one.graph(&one.usages());
    let cycles = graph.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(graph.upwards(&cycles[0]), [("b", "a")]);
}

#[test]
fn a_cycle_below_a_module_is_found_among_its_children() {
    let shape = read([
        (ROOT, "mod a;"),
        (
            A,
            "mod one { use super::two::X; }\n\
             mod two { use super::one::Y; use super::Own; }\n\
             struct Own;",
        ),
    ]);
    let one = &shape.crates[0];
    let usages = one.usages();
    let deeper = one.deeper(Level::Siblings, &usages);
    let found: Vec<_> = deeper
        .iter()
        .map(|(parent, graph)| (parent.as_str(), graph.in_cycles()))
        .collect();
    assert_eq!(found, [("a", 2)]);
    assert_eq!(one.graph(&usages).in_cycles(), 0);
}

#[test]
fn a_name_in_two_modules_is_ambiguous_and_one_type_on_two_systems_is_not() {
    let shape = read([
        (
            ROOT,
            "pub struct Line;\n\
             #[cfg(unix)] enum Only {}\n#[cfg(not(unix))] enum Only {}\n\
             fn f() { struct Line; }",
        ),
        (
            "crates/y/src/main.rs",
            "mod a { pub trait Line {} type Line2 = u8; }",
        ),
        ("crates/toolway-testkit/src/lib.rs", "struct Line2;"),
        ("crates/x/tests/it/main.rs", "struct Line2;"),
    ]);
    let names = shape.names();
    assert_eq!(names.definitions(), 4);
    assert_eq!(names.ambiguous_definitions(), 2);
    let public = names.public_twice();
    let places: Vec<_> = public
        .iter()
        .flat_map(|(name, types)| types.iter().map(|it| (*name, it.file.as_str(), it.line)))
        .collect();
    assert_eq!(
        places,
        [("Line", ROOT, 1), ("Line", "crates/y/src/main.rs", 1)]
    );
}

#[test]
fn a_file_that_is_no_rust_or_not_there_is_named() {
    let problem = |files: [(&str, &str); 2]| Shape::read(&Tree::of(files)).err().unwrap();
    let broken = problem([(ROOT, "mod a;"), (A, "fn f( {\n")]);
    assert_eq!((broken.file.as_str(), broken.line), (A, Some(1)));
    let missing = problem([(ROOT, "mod a;"), (B, "")]);
    assert_eq!(missing.to_string(), format!("{A}: the module is not there"));
}
