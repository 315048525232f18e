//! From the text of a crate to its modules.
//!
//! Owns following `mod`, and leaving out what is never shipped: what stands behind `cfg(test)` or
//! `cfg(fuzzing)`. Which paths are written in an item is `paths.rs`.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::{Attribute, Ident, ImplItem, Item, ItemUse, Meta, TraitItem, UseTree, Visibility};

use super::Unreadable;
use super::lines::Lines;
use super::module::{Crate, How, Module, ModuleId, ROOT, TypeDefinition, Written};
use super::paths;
use crate::tree::Tree;

/// Conditions under which nothing is shipped.
const NOT_SHIPPED: &[&str] = &["test", "fuzzing"];

/// Reads a crate from its root on.
pub(super) fn crate_at(tree: &Tree, name: &str, root: &str) -> Result<Crate, Unreadable> {
    let mut reader = CrateReader {
        tree,
        read: Crate {
            name: name.to_owned(),
            modules: vec![Module {
                file: root.to_owned(),
                ..Module::default()
            }],
            files: [].into(),
        },
    };
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    reader.file(ROOT, folder)?;
    Ok(reader.read)
}

struct CrateReader<'a> {
    tree: &'a Tree,
    read: Crate,
}

impl CrateReader<'_> {
    /// Reads the file of a module, whose children lie in a folder.
    fn file(&mut self, module: ModuleId, folder: &str) -> Result<(), Unreadable> {
        let file = self.read.modules[module].file.clone();
        let unreadable = |line, problem: String| Unreadable {
            file: file.clone(),
            line,
            problem,
        };
        let text = self.tree.get(&file);
        let text = text.ok_or_else(|| unreadable(None, "the module is not there".to_owned()))?;
        let parsed = syn::parse_file(text)
            .map_err(|error| unreadable(Some(error.span().start().line), error.to_string()))?;
        let mut tests = Vec::new();
        self.items(module, folder, &parsed.items, &mut tests)?;
        self.read.files.insert(file, Lines::of(text, &tests));
        Ok(())
    }

    /// Reads the items of a module; gives where modules stand that are not shipped.
    fn items(
        &mut self,
        module: ModuleId,
        folder: &str,
        items: &[Item],
        tests: &mut Vec<RangeInclusive<usize>>,
    ) -> Result<(), Unreadable> {
        for item in items {
            if let Item::Mod(inner) = item {
                if is_shipped(&inner.attrs) {
                    let name = inner.ident.unraw().to_string();
                    let folder_of_child = format!("{folder}/{name}");
                    if let Some((_, items)) = &inner.content {
                        let file = self.read.modules[module].file.clone();
                        let child = self.child(module, name, file);
                        self.items(child, &folder_of_child, items, tests)?;
                    } else {
                        let child = self.child(module, name, format!("{folder_of_child}.rs"));
                        self.file(child, &folder_of_child)?;
                    }
                } else if let Some((brace, _)) = &inner.content {
                    let begin = inner.attrs.first().map_or_else(
                        || inner.ident.span(),
                        |attribute| attribute.pound_token.spans[0],
                    );
                    tests.push(begin.start().line..=brace.span.close().end().line);
                }
            } else if is_shipped(attributes(item)) {
                self.item(module, item);
            }
        }
        Ok(())
    }

    fn child(&mut self, parent: ModuleId, name: String, file: String) -> ModuleId {
        let id = self.read.modules.len();
        let mut path = self.read.modules[parent].path.clone();
        path.push(name.clone());
        self.read.modules[parent].children.insert(name, id);
        self.read.modules.push(Module {
            path,
            file,
            parent: Some(parent),
            ..Module::default()
        });
        id
    }

    fn item(&mut self, module: ModuleId, item: &Item) {
        let module = &mut self.read.modules[module];
        if let Item::Use(import) = item {
            let exported = !matches!(import.vis, Visibility::Inherited);
            for leaf in leaves(import) {
                match leaf.name {
                    Some(name) => {
                        module.imports.insert(name, leaf.path.clone());
                    }
                    None => module.globs.push(leaf.path.clone()),
                }
                module.written.push(Written {
                    path: leaf.path,
                    line: leaf.line,
                    how: How::Import { exported },
                });
            }
            return;
        }
        if let Some((name, visibility)) = type_in(item) {
            let definition = TypeDefinition {
                name: name.unraw().to_string(),
                file: module.file.clone(),
                line: name.span().start().line,
                is_public: matches!(visibility, Visibility::Public(_)),
            };
            // Two of one name in one module are one type on two systems.
            if !module.types.iter().any(|it| it.name == definition.name) {
                module.types.push(definition);
            }
        }
        if let Some(name) = name(item) {
            module.items.insert(name.unraw().to_string());
        }
        module.written.extend(paths::written_in(item));
    }
}

/// One name that a `use` brings; none for all names of a module.
pub(super) struct Leaf {
    name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// What a `use` brings from this crate, as far as its beginning tells.
pub(super) fn leaves(import: &ItemUse) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    if import.leading_colon.is_none() {
        collect(&import.tree, &mut Vec::new(), &mut leaves);
    }
    leaves
}

fn collect(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
    let mut leaf = |last: &Ident, name: &Ident| {
        let mut path = before.clone();
        // `a::{self}` means `a`.
        if last != "self" || path.is_empty() {
            path.push(last.unraw().to_string());
        }
        let name = if name == "self" {
            path.last().cloned()
        } else {
            Some(name.unraw().to_string())
        };
        leaves.push(Leaf {
            name,
            path,
            line: last.span().start().line,
        });
    };
    match tree {
        UseTree::Path(step) => {
            before.push(step.ident.unraw().to_string());
            collect(&step.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) => leaf(&name.ident, &name.ident),
        UseTree::Rename(renamed) => leaf(&renamed.ident, &renamed.rename),
        UseTree::Glob(glob) => leaves.push(Leaf {
            name: None,
            path: before.clone(),
            line: glob.star_token.spans[0].start().line,
        }),
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, before, leaves);
            }
        }
    }
}

fn type_in(item: &Item) -> Option<(&Ident, &Visibility)> {
    match item {
        Item::Struct(it) => Some((&it.ident, &it.vis)),
        Item::Enum(it) => Some((&it.ident, &it.vis)),
        Item::Union(it) => Some((&it.ident, &it.vis)),
        Item::Trait(it) => Some((&it.ident, &it.vis)),
        Item::TraitAlias(it) => Some((&it.ident, &it.vis)),
        Item::Type(it) => Some((&it.ident, &it.vis)),
        _ => None,
    }
}

fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Fn(it) => Some(&it.sig.ident),
        Item::Const(it) => Some(&it.ident),
        Item::Static(it) => Some(&it.ident),
        Item::Macro(it) => it.ident.as_ref(),
        _ => type_in(item).map(|(name, _)| name),
    }
}

/// Whether what these stand before is part of the product.
pub(super) fn is_shipped(attributes: &[Attribute]) -> bool {
    !attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => is_for_tests(list.tokens.clone()),
        _ => false,
    })
}

/// Whether a condition holds only where nothing is shipped: one word, or `all` with it in it.
fn is_for_tests(condition: TokenStream) -> bool {
    let words: Vec<TokenTree> = condition.into_iter().collect();
    words.iter().enumerate().any(|(place, word)| match word {
        TokenTree::Ident(word) => NOT_SHIPPED.iter().any(|condition| word == condition),
        TokenTree::Group(group) => {
            let before = place.checked_sub(1).map(|before| &words[before]);
            let is_all = matches!(before, Some(TokenTree::Ident(word)) if word == "all");
            is_all && is_for_tests(group.stream())
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::ExternCrate(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::ForeignMod(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::TraitAlias(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

pub(super) fn attributes_in_impl(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(it) => &it.attrs,
        ImplItem::Fn(it) => &it.attrs,
        ImplItem::Type(it) => &it.attrs,
        ImplItem::Macro(it) => &it.attrs,
        _ => &[],
    }
}

pub(super) fn attributes_in_trait(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(it) => &it.attrs,
        TraitItem::Fn(it) => &it.attrs,
        TraitItem::Type(it) => &it.attrs,
        TraitItem::Macro(it) => &it.attrs,
        _ => &[],
    }
}
