//! Who needs whom: a graph of names, the cycles in it, and the fewest uses that keep them together.
//!
//! Owns the algorithms. Which is a node and what counts as an edge is `uses.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::uses::Usage;

/// Modules and what each uses of the others.
#[derive(Default)]
pub(crate) struct Graph {
    edges: BTreeMap<(String, String), Vec<Usage>>,
}

/// Modules each of which needs all the others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// In an order in which as little as possible points upwards: what needs least stands first.
    pub(crate) members: Vec<String>,
}

impl Graph {
    pub(super) fn add(&mut self, from: String, to: String, usage: &Usage) {
        self.edges
            .entry((from, to))
            .or_default()
            .push(usage.clone());
    }

    /// What one uses of another.
    pub(crate) fn usages(&self, from: &str, to: &str) -> &[Usage] {
        let key = (from.to_owned(), to.to_owned());
        self.edges.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Every cycle, the largest first.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in self.edges.keys() {
            below.entry(from).or_default().insert(to);
            below.entry(to).or_default();
        }
        let mut cycles: Vec<Cycle> = components(&below)
            .into_iter()
            .filter(|members| members.len() > 1)
            .map(|members| self.ordered(&members))
            .collect();
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.members.len()));
        cycles
    }

    /// How many modules are in any cycle.
    pub(crate) fn in_cycles(&self) -> usize {
        self.cycles().iter().map(|cycle| cycle.members.len()).sum()
    }

    /// The uses that point upwards in the order of a cycle: without them there is none.
    pub(crate) fn upwards(&self, cycle: &Cycle) -> Vec<(&str, &str)> {
        let place = |name: &str| cycle.members.iter().position(|member| member == name);
        let edges = self.edges.keys();
        edges
            .filter(|(from, to)| matches!((place(from), place(to)), (Some(a), Some(b)) if a < b))
            .map(|(from, to)| (from.as_str(), to.as_str()))
            .collect()
    }

    /// How much work it is to take an edge away: by how many different items it is made.
    fn weight(&self, from: &str, to: &str) -> usize {
        let usages = self.usages(from, to).iter();
        let items: BTreeSet<&str> = usages.map(|usage| usage.item.as_str()).collect();
        items.len()
    }

    /// Puts the members into an order with little that points upwards: first those that nothing
    /// below them is needed by (Eades, Lin and Smyth), then each is moved while that helps.
    fn ordered(&self, members: &[&str]) -> Cycle {
        let weights: BTreeMap<(&str, &str), usize> = self
            .edges
            .keys()
            .map(|(from, to)| (from.as_str(), to.as_str()))
            .filter(|(from, to)| members.contains(from) && members.contains(to))
            .map(|edge| (edge, self.weight(edge.0, edge.1)))
            .collect();
        let mut order = first_order(members, &weights);
        let mut least = upward(&order, &weights);
        loop {
            let before = least;
            for &member in members {
                let rest: Vec<&str> = order.iter().copied().filter(|it| *it != member).collect();
                for place in 0..=rest.len() {
                    let mut moved = rest.clone();
                    moved.insert(place, member);
                    let weight = upward(&moved, &weights);
                    if weight < least {
                        (order, least) = (moved, weight);
                    }
                }
            }
            if least == before {
                break;
            }
        }
        Cycle {
            members: order.into_iter().map(str::to_owned).collect(),
        }
    }
}

type Weights<'a> = BTreeMap<(&'a str, &'a str), usize>;

/// What points from an earlier one to a later one.
fn upward(order: &[&str], weights: &Weights<'_>) -> usize {
    let place: BTreeMap<&str, usize> = order.iter().copied().zip(0..).collect();
    let edges = weights.iter();
    edges
        .filter(|((from, to), _)| place[from] < place[to])
        .map(|(_, weight)| weight)
        .sum()
}

fn first_order<'a>(members: &[&'a str], weights: &Weights<'a>) -> Vec<&'a str> {
    let mut rest: BTreeSet<&str> = members.iter().copied().collect();
    let (mut low, mut high) = (Vec::new(), Vec::new());
    while let Some(&any) = rest.first() {
        let needs = |name: &str, rest: &BTreeSet<&str>| sum(weights, rest, |from, _| from == name);
        let needed = |name: &str, rest: &BTreeSet<&str>| sum(weights, rest, |_, to| to == name);
        let next = if let Some(&name) = rest.iter().find(|name| needs(name, &rest) == 0) {
            low.push(name);
            name
        } else if let Some(&name) = rest.iter().find(|name| needed(name, &rest) == 0) {
            high.push(name);
            name
        } else {
            let difference =
                |name: &&&str| needs(name, &rest).cast_signed() - needed(name, &rest).cast_signed();
            let name = rest.iter().max_by_key(difference).copied().unwrap_or(any);
            high.push(name);
            name
        };
        rest.remove(next);
    }
    low.extend(high.into_iter().rev());
    low
}

/// The weight of the edges among `rest` that are meant.
fn sum(
    weights: &Weights<'_>,
    rest: &BTreeSet<&str>,
    is_meant: impl Fn(&str, &str) -> bool,
) -> usize {
    let edges = weights.iter();
    edges
        .filter(|((from, to), _)| rest.contains(from) && rest.contains(to) && is_meant(from, to))
        .map(|(_, weight)| weight)
        .sum()
}

/// The strongly connected components (Tarjan). A crate has tens of modules: recursion is no danger.
fn components<'a>(below: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut search = Search {
        below,
        seen: BTreeMap::new(),
        open: Vec::new(),
        found: Vec::new(),
    };
    for name in below.keys() {
        if !search.seen.contains_key(name) {
            search.visit(name);
        }
    }
    search.found
}

struct Search<'a, 'b> {
    below: &'b BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// When each was seen first.
    seen: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    found: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a, '_> {
    /// Gives the first that it leads back to.
    fn visit(&mut self, name: &'a str) -> usize {
        let number = self.seen.len();
        self.seen.insert(name, number);
        self.open.push(name);
        let mut low = number;
        for &next in &self.below[name] {
            let reached = match self.seen.get(next) {
                None => self.visit(next),
                Some(&number) if self.open.contains(&next) => number,
                Some(_) => continue,
            };
            low = low.min(reached);
        }
        if low == number {
            let begin = self.open.iter().position(|open| *open == name);
            self.found
                .push(self.open.split_off(begin.unwrap_or_default()));
        }
        low
    }
}
