//! Which paths are written in an item.
//!
//! Owns the walk through it, also through the words of macros and attributes, which a parser leaves
//! as they are. A path of one word says nothing about modules: what it means stands in a `use` or
//! in the same module. What is called as a method has no path, and is not seen.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Macro, Meta, Path, TraitItem, VisRestricted};

use super::module::{How, Written};
use super::read;

/// Every path in an item.
pub(super) fn written_in(item: &Item) -> Vec<Written> {
    let mut walk = PathWalk::default();
    walk.visit_item(item);
    walk.written
}

#[derive(Default)]
struct PathWalk {
    written: Vec<Written>,
}

impl PathWalk {
    fn add(&mut self, path: Vec<String>, line: usize) {
        if path.len() > 1 {
            self.written.push(Written {
                path,
                line,
                how: How::Inline,
            });
        }
    }

    /// The paths among words that nobody parsed.
    fn words(&mut self, words: TokenStream, quoted: Quoted) {
        let words: Vec<TokenTree> = words.into_iter().collect();
        let mut place = 0;
        while place < words.len() {
            match &words[place] {
                TokenTree::Group(group) => self.words(group.stream(), quoted),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.unraw().to_string()];
                    while let Some(TokenTree::Ident(next)) = words.get(place + 3)
                        && is_colon(&words[place + 1])
                        && is_colon(&words[place + 2])
                    {
                        path.push(next.unraw().to_string());
                        place += 3;
                    }
                    self.add(path, first.span().start().line);
                }
                TokenTree::Literal(literal) if quoted == Quoted::MayBePaths => {
                    let text = literal.to_string();
                    let path = text.trim_matches('"').split("::");
                    let path: Vec<String> = path.map(str::to_owned).collect();
                    let is_word = |word: &String| {
                        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_')
                    };
                    if path.iter().all(is_word) {
                        self.add(path, literal.span().start().line);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            place += 1;
        }
    }
}

/// What a string among words can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    /// A path, as in `#[serde(with = "crate::seconds")]`.
    MayBePaths,
    AreTexts,
}

fn is_colon(word: &TokenTree) -> bool {
    matches!(word, TokenTree::Punct(mark) if mark.as_char() == ':')
}

impl<'ast> Visit<'ast> for PathWalk {
    fn visit_item(&mut self, item: &'ast Item) {
        if read::is_shipped(read::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if read::is_shipped(read::attributes_in_impl(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if read::is_shipped(read::attributes_in_trait(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        for leaf in read::leaves(import) {
            self.add(leaf.path, leaf.line);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if let Some(first) = path.segments.first()
            && path.leading_colon.is_none()
        {
            let words = path.segments.iter();
            let words = words.map(|segment| segment.ident.unraw().to_string());
            self.add(words.collect(), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.words(call.tokens.clone(), Quoted::AreTexts);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.words(list.tokens.clone(), Quoted::MayBePaths),
            // Comments name what they like.
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {}
            Meta::NameValue(_) | Meta::Path(_) => visit::visit_attribute(self, attribute),
        }
    }

    /// Who may see an item is no use of anything.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}
