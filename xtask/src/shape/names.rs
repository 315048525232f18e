//! Which names stand for more than one type.
//!
//! Owns the two questions: how much of the product has a name that something else has too, and
//! which public names do.

use std::collections::BTreeMap;

use super::module::TypeDefinition;

/// The types of the product by their names.
pub(crate) struct Names<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a TypeDefinition>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(types: impl Iterator<Item = &'a TypeDefinition>) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&TypeDefinition>> = BTreeMap::new();
        for definition in types {
            by_name
                .entry(&definition.name)
                .or_default()
                .push(definition);
        }
        Self { by_name }
    }

    /// How many types there are.
    pub(crate) fn definitions(&self) -> usize {
        self.by_name.values().map(Vec::len).sum()
    }

    /// The names that stand for two or more, each with all it stands for.
    pub(crate) fn ambiguous(&self) -> impl Iterator<Item = (&'a str, &[&'a TypeDefinition])> {
        let names = self.by_name.iter();
        names
            .filter(|(_, types)| types.len() > 1)
            .map(|(name, types)| (*name, types.as_slice()))
    }

    /// How many types have a name that another has too.
    pub(crate) fn ambiguous_definitions(&self) -> usize {
        self.ambiguous().map(|(_, types)| types.len()).sum()
    }

    /// The names that are declared `pub` twice or more.
    pub(crate) fn public_twice(&self) -> Vec<(&'a str, Vec<&'a TypeDefinition>)> {
        let names = self.by_name.iter().map(|(name, types)| {
            let public = types.iter().copied().filter(|it| it.is_public);
            (*name, public.collect::<Vec<_>>())
        });
        names.filter(|(_, public)| public.len() > 1).collect()
    }
}
