//! A JSON text that can be changed without disturbing what a person wrote around the change.
//!
//! Owns get, set and remove by path. Every change is a splice into the text: bytes outside it stay
//! as they are, so comments, key order, unknown keys and spacing survive by construction. After
//! each splice the text is parsed again; one that would not parse is not taken.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::EditError;
use super::layout::{self, JsonStyle};
use crate::json::syntax_tree::{self, SyntaxKind, SyntaxMember, SyntaxNode};

/// The content of one file, open for change.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    text: String,
    root: SyntaxNode,
    last_set: Option<Vec<String>>,
}

/// One step from a container to something inside it.
#[derive(Debug, Clone)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// A replacement of a range of the text.
type Splice = (Range<usize>, String);

impl Document {
    /// Opens a text that came from `path`. A text of white space and comments is an empty object.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, EditError> {
        let invalid = |error: syntax_tree::SyntaxError| EditError::invalid(path, error);
        let (text, root) = if let Some(root) = syntax_tree::parse(text).map_err(invalid)? {
            (text.to_owned(), root)
        } else {
            let newline = JsonStyle::of(text, None).newline;
            let comments = text.trim_end();
            let gap = if comments.is_empty() { "" } else { newline };
            let text = format!("{comments}{gap}{{}}{newline}");
            let root = syntax_tree::parse(&text).map_err(invalid)?;
            (text, root.ok_or_else(|| EditError::top_level(path, 1))?)
        };
        if !matches!(root.kind, SyntaxKind::Object(_)) {
            let line = syntax_tree::line_at(&text, root.start);
            return Err(EditError::top_level(path, line));
        }
        Ok(Self {
            path: path.to_owned(),
            text,
            root,
            last_set: None,
        })
    }

    /// The value at a path; the whole document for an empty one.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        self.node(&keys(path)).map(SyntaxNode::to_value)
    }

    /// The keys of the object at a path, in the order written.
    pub fn keys(&self, path: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for member in self
            .node(&keys(path))
            .map(SyntaxNode::members)
            .unwrap_or_default()
        {
            if !names.contains(&member.name) {
                names.push(member.name.clone());
            }
        }
        names
    }

    /// Puts a value at a path, making the objects on the way. What is already equal is not
    /// touched, and an object or array is changed member by member, so comments inside it stay.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        let Some((last, parents)) = path.split_last() else {
            return Err(EditError::Refused(
                "a whole file cannot be set at once".to_owned(),
            ));
        };
        let mut steps: Vec<PathStep> = Vec::new();
        for (depth, key) in parents.iter().enumerate() {
            let found = self.node(&steps).and_then(|node| node.member(key));
            match found.map(|member| (&member.value.kind, member.start)) {
                Some((SyntaxKind::Object(_), _)) => steps.push(PathStep::Key((*key).to_owned())),
                Some((_, start)) => {
                    return Err(EditError::NotAnObject {
                        path: self.path.clone(),
                        key: path[..=depth].join("."),
                        line: syntax_tree::line_at(&self.text, start),
                    });
                }
                None => {
                    let nested = nest(&path[depth + 1..], value.clone());
                    self.insert(&steps, Some(key), &nested)?;
                    self.last_set = Some(owned(path));
                    return Ok(());
                }
            }
        }
        steps.push(PathStep::Key((*last).to_owned()));
        self.assign(&steps, value)?;
        self.last_set = Some(owned(path));
        Ok(())
    }

    /// Takes a key away, with its value and nothing else. Says whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some((last, parents)) = path.split_last() else {
            return false;
        };
        self.cut_all(&keys(parents), last).unwrap_or(false)
    }

    /// The text as it stands.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The line of the entry last set.
    pub(super) fn last_set_line(&self) -> Option<u32> {
        let path: Vec<&str> = self.last_set.as_ref()?.iter().map(String::as_str).collect();
        self.line_of(&path)
    }

    /// The line of the key at a path.
    pub(super) fn line_of(&self, path: &[&str]) -> Option<u32> {
        let (last, parents) = path.split_last()?;
        let member = self.node(&keys(parents))?.member(last)?;
        Some(syntax_tree::line_at(&self.text, member.start))
    }

    fn node(&self, steps: &[PathStep]) -> Option<&SyntaxNode> {
        steps
            .iter()
            .try_fold(&self.root, |node, step| match (step, &node.kind) {
                (PathStep::Key(key), _) => node.member(key).map(|member| &member.value),
                (PathStep::Index(index), SyntaxKind::Array(elements)) => elements.get(*index),
                (PathStep::Index(_), _) => None,
            })
    }

    fn style(&self) -> JsonStyle {
        JsonStyle::of(
            &self.text,
            self.root.members().first().map(|member| member.start),
        )
    }

    /// Makes the value at `steps` equal to `value`, with as small a change as possible.
    fn assign(&mut self, steps: &[PathStep], value: &Value) -> Result<(), EditError> {
        let Some(node) = self.node(steps) else {
            let (last, parent) = steps.split_last().ok_or_else(|| self.broken())?;
            let key = match last {
                PathStep::Key(key) => Some(key.as_str()),
                PathStep::Index(_) => None,
            };
            return self.insert(parent, key, value);
        };
        let old = node.to_value();
        match (&old, value) {
            (old, new) if old == new => Ok(()),
            (Value::Object(old), Value::Object(new)) if !old.is_empty() && !new.is_empty() => {
                self.assign_object(steps, old, new)
            }
            (Value::Array(old), Value::Array(new)) if !old.is_empty() => {
                self.assign_array(steps, old, new)
            }
            _ => self.replace(steps, value),
        }
    }

    fn assign_object(
        &mut self,
        steps: &[PathStep],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<(), EditError> {
        for (key, value) in new {
            self.assign(&below(steps, PathStep::Key(key.clone())), value)?;
        }
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            self.cut_all(steps, key)?;
        }
        Ok(())
    }

    fn assign_array(
        &mut self,
        steps: &[PathStep],
        old: &[Value],
        new: &[Value],
    ) -> Result<(), EditError> {
        if old.len() == new.len() {
            for (index, value) in new.iter().enumerate() {
                self.assign(&below(steps, PathStep::Index(index)), value)?;
            }
            return Ok(());
        }
        // Keep in place what stays in order, drop the rest, append what is new.
        let mut kept = 0;
        let mut dropped = Vec::new();
        for (index, value) in old.iter().enumerate() {
            if new.get(kept) == Some(value) {
                kept += 1;
            } else {
                dropped.push(index);
            }
        }
        if kept == 0 {
            return self.replace(steps, &Value::Array(new.to_vec()));
        }
        for index in dropped.into_iter().rev() {
            self.cut(steps, index)?;
        }
        for value in &new[kept..] {
            self.insert(steps, None, value)?;
        }
        Ok(())
    }

    /// Replaces the value at `steps` as a whole.
    fn replace(&mut self, steps: &[PathStep], value: &Value) -> Result<(), EditError> {
        if layout::one_line(value).is_none()
            && let Some((_, parents)) = steps.split_last()
        {
            self.break_open(parents)?;
        }
        let node = self.node(steps).ok_or_else(|| self.broken())?;
        let indent = layout::line_indent(&self.text, node.start);
        let rendered = self.style().render(value, indent);
        self.splice(vec![(node.start..node.end, rendered)])
    }

    /// Adds an element, or a member when there is a key, at the end of the container at `steps`.
    fn insert(
        &mut self,
        steps: &[PathStep],
        key: Option<&str>,
        value: &Value,
    ) -> Result<(), EditError> {
        let node = self.node(steps).ok_or_else(|| self.broken())?;
        let line = layout::one_line(value);
        let is_empty_array = matches!(&node.kind, SyntaxKind::Array(elements) if elements.is_empty())
            && self.text[node.start + 1..node.end - 1].trim().is_empty();
        let stays_on_line = line.is_some()
            && (is_empty_array || (!items(node).is_empty() && self.is_one_line(node)));
        if !stays_on_line {
            self.break_open(steps)?;
        }

        let style = self.style();
        let text = &self.text;
        let node = self.node(steps).ok_or_else(|| self.broken())?;
        let close = node.end - 1;
        let base = layout::line_indent(text, node.start);
        let items = items(node);
        let indent = items
            .last()
            .and_then(|item| layout::own_line_indent(text, item.start))
            .or_else(|| layout::own_line_indent(text, items.first()?.start))
            .filter(|_| self.text[..node.end].contains('\n'))
            .map_or_else(|| format!("{base}{}", style.unit), str::to_owned);
        let item = match key {
            Some(key) => style.render_member(key, value, &indent),
            None => style.render(value, &indent),
        };

        // Behind every comment: a comment belongs to what stands before or below it, and a new
        // entry must not take it over.
        let inside = node.start + 1 + text[node.start + 1..close].trim_end().len();
        let before = match (stays_on_line, items.is_empty()) {
            (true, true) => String::new(),
            (true, false) => " ".to_owned(),
            (false, _) => format!("{}{indent}", style.newline),
        };
        let mut splices: Vec<Splice> = Vec::new();
        let mut comma_behind = "";
        if let Some(last) = items.last() {
            if layout::comma_after(text, last.end, close).is_some() {
                comma_behind = ",";
            } else {
                splices.push((last.end..last.end, ",".to_owned()));
            }
        }
        let has_break = text[inside..close].contains('\n');
        let (until, after) = if stays_on_line && !items.is_empty() || has_break {
            (inside, String::new())
        } else if stays_on_line {
            (close, String::new())
        } else {
            (close, format!("{}{base}", style.newline))
        };
        splices.push((
            inside..until,
            format!("{before}{item}{comma_behind}{after}"),
        ));
        self.splice(splices)
    }

    /// Takes a key away. It may be written twice: removing only one would make the other count.
    fn cut_all(&mut self, steps: &[PathStep], key: &str) -> Result<bool, EditError> {
        let is_it = |member: &SyntaxMember| member.name == key;
        let mut removed = false;
        while let Some(index) =
            (self.node(steps)).and_then(|it| it.members().iter().position(is_it))
        {
            self.cut(steps, index)?;
            removed = true;
        }
        Ok(removed)
    }

    /// Takes away the item with an index from the container at `steps`.
    fn cut(&mut self, steps: &[PathStep], index: usize) -> Result<(), EditError> {
        let text = &self.text;
        let node = self.node(steps).ok_or_else(|| self.broken())?;
        let items = items(node);
        let item = items.get(index).cloned().ok_or_else(|| self.broken())?;
        let limit = items.get(index + 1).map_or(node.end - 1, |next| next.start);
        let blank = |range: Range<usize>| text[range].chars().all(|c| c == ' ' || c == '\t');
        let mut splices: Vec<Splice> = Vec::new();
        let mut cut = item.clone();
        let own_comma = layout::comma_after(text, item.end, limit);
        match own_comma {
            Some(comma) if blank(item.end..comma) => cut.end = comma + 1,
            Some(comma) => splices.push((comma..comma + 1, String::new())),
            None => {}
        }
        // The last item goes without a comma of its own: then the one before it must lose its.
        if own_comma.is_none()
            && let Some(previous) = index.checked_sub(1).map(|before| &items[before])
            && let Some(comma) = layout::comma_after(text, previous.end, item.start)
        {
            if blank(comma + 1..item.start) {
                cut.start = comma;
            } else {
                splices.push((comma..comma + 1, String::new()));
            }
        }
        let rest = &text[cut.end..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let line_end = match &rest[spaces..] {
            tail if tail.starts_with("\r\n") => Some(2),
            tail if tail.starts_with('\n') => Some(1),
            _ => None,
        };
        let line_start = layout::line_start(text, cut.start);
        if let Some(length) = line_end
            && line_start > 0
            && layout::own_line_indent(text, cut.start).is_some()
        {
            cut = line_start..cut.end + spaces + length;
        } else if line_end.is_some() {
            cut = text[..cut.start].trim_end_matches([' ', '\t']).len()..cut.end + spaces;
        } else if cut.start == item.start {
            if cut.end == node.end - 1 {
                cut.start = text[..cut.start].trim_end_matches([' ', '\t']).len();
            }
            cut.end += spaces;
        }
        splices.push((cut, String::new()));
        self.splice(splices)?;

        let node = self.node(steps).ok_or_else(|| self.broken())?;
        let inside = node.start + 1..node.end - 1;
        if !inside.is_empty() && self.text[inside.clone()].trim().is_empty() {
            self.splice(vec![(inside, String::new())])?;
        }
        Ok(())
    }

    /// Gives every item of the one-line containers on the way to `steps` a line of its own.
    fn break_open(&mut self, steps: &[PathStep]) -> Result<(), EditError> {
        for depth in 0..=steps.len() {
            let Some(node) = self.node(&steps[..depth]) else {
                return Ok(());
            };
            let items = items(node);
            if items.is_empty() || !self.is_one_line(node) {
                continue;
            }
            let style = self.style();
            let text = &self.text;
            let base = layout::line_indent(text, node.start);
            let line = format!("{}{base}{}", style.newline, style.unit);
            let mut splices: Vec<Splice> = Vec::new();
            let mut from = node.start + 1;
            for (index, item) in items.iter().enumerate() {
                let spaces = text[from..].len() - text[from..].trim_start().len();
                splices.push((from..from + spaces, line.clone()));
                let limit = items.get(index + 1).map_or(node.end - 1, |next| next.start);
                from = layout::comma_after(text, item.end, limit).map_or(item.end, |at| at + 1);
            }
            let inside = node.start + 1 + text[node.start + 1..node.end - 1].trim_end().len();
            splices.push((inside..node.end - 1, format!("{}{base}", style.newline)));
            self.splice(splices)?;
        }
        Ok(())
    }

    fn is_one_line(&self, node: &SyntaxNode) -> bool {
        !self.text[node.start..node.end].contains('\n')
    }

    /// Applies replacements; those at the same place come out in the order given.
    fn splice(&mut self, mut splices: Vec<Splice>) -> Result<(), EditError> {
        splices.sort_by_key(|(range, _)| range.start);
        let mut text = self.text.clone();
        for (range, replacement) in splices.into_iter().rev() {
            text.replace_range(range, &replacement);
        }
        match syntax_tree::parse(&text) {
            Ok(Some(root)) => {
                self.text = text;
                self.root = root;
                Ok(())
            }
            _ => Err(self.broken()),
        }
    }

    fn broken(&self) -> EditError {
        EditError::Refused(format!(
            "the change would not leave valid JSON in `{}`",
            self.path.display()
        ))
    }
}

/// What the items of a container cover, keys included.
fn items(node: &SyntaxNode) -> Vec<Range<usize>> {
    match &node.kind {
        SyntaxKind::Scalar(_) => Vec::new(),
        SyntaxKind::Array(elements) => elements.iter().map(|item| item.start..item.end).collect(),
        SyntaxKind::Object(members) => members
            .iter()
            .map(|member| member.start..member.value.end)
            .collect(),
    }
}

fn keys(path: &[&str]) -> Vec<PathStep> {
    path.iter()
        .map(|key| PathStep::Key((*key).to_owned()))
        .collect()
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}

fn below(steps: &[PathStep], step: PathStep) -> Vec<PathStep> {
    steps.iter().cloned().chain([step]).collect()
}

fn nest(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, key| {
        Map::from_iter([((*key).to_owned(), inner)]).into()
    })
}
