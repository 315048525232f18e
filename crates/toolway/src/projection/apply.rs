//! A filter, applied to a value.
//!
//! Owns the meaning of every operation and the bound on the work: what is visited and copied is
//! paid for from a purse whose size follows from the value's own.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{FilterNode, FilterOp, ProjectionError};

/// How often the whole value may be visited or copied.
const PURSE_PER_PART: u64 = 4;
/// What every filter may cost, however small the value.
const PURSE: u64 = 100_000;

/// Everything the filter gives.
pub(super) fn apply(root: &FilterNode, value: &Value) -> Result<Vec<Value>, ProjectionError> {
    let mut run = Run {
        purse: weight(value, u64::MAX)
            .saturating_mul(PURSE_PER_PART)
            .saturating_add(PURSE),
    };
    let found = run.eval(root, &[Cow::Borrowed(value)])?;
    for one in &found {
        if let Cow::Borrowed(one) = one {
            run.pay_for(root, one)?;
        }
    }
    Ok(found.into_iter().map(Cow::into_owned).collect())
}

/// What copying a value costs; counting stops at `most`.
fn weight(value: &Value, most: u64) -> u64 {
    let of_text = |text: &str| text.len() as u64 / 64;
    let mut sum = 0_u64;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        sum = sum.saturating_add(1);
        if sum > most {
            break;
        }
        match value {
            Value::String(text) => sum = sum.saturating_add(of_text(text)),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                for (name, value) in fields {
                    sum = sum.saturating_add(of_text(name));
                    left.push(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    sum
}

struct Run {
    purse: u64,
}

type Matches<'a> = Vec<Cow<'a, Value>>;

impl Run {
    fn pay(&mut self, node: &FilterNode, cost: u64) -> Result<(), ProjectionError> {
        if let Some(left) = self.purse.checked_sub(cost) {
            self.purse = left;
            return Ok(());
        }
        // A filter that costs too much costs too much as a whole: `?` must not go on.
        self.purse = 0;
        Err(fault(node, "gives far more than the value holds"))
    }

    fn pay_for(&mut self, node: &FilterNode, value: &Value) -> Result<(), ProjectionError> {
        let cost = weight(value, self.purse);
        self.pay(node, cost)
    }

    fn eval<'a>(
        &mut self,
        node: &FilterNode,
        inputs: &[Cow<'a, Value>],
    ) -> Result<Matches<'a>, ProjectionError> {
        self.pay(node, inputs.len() as u64 + 1)?;
        match &node.op {
            FilterOp::Identity => {
                let mut found = Vec::with_capacity(inputs.len());
                for input in inputs {
                    found.push(self.copy(node, input)?);
                }
                Ok(found)
            }
            FilterOp::Field(of, _)
            | FilterOp::Index(of, _)
            | FilterOp::Slice(of, ..)
            | FilterOp::Each(of) => {
                let mut found = Vec::new();
                for value in self.eval(of, inputs)? {
                    self.step(node, value, &mut found)?;
                }
                Ok(found)
            }
            FilterOp::Try(inner) => {
                let mut found = Vec::new();
                // Behind a step it forgives that step, value by value; behind a parenthesis all
                // that stands in it.
                if let FilterOp::Field(of, _)
                | FilterOp::Index(of, _)
                | FilterOp::Slice(of, ..)
                | FilterOp::Each(of) = &inner.op
                {
                    for value in self.eval(of, inputs)? {
                        let step = self.step(inner, value, &mut found);
                        self.forgive(step)?;
                    }
                } else {
                    for input in inputs {
                        let some = self.eval(inner, std::slice::from_ref(input));
                        found.extend(self.forgive(some)?.unwrap_or_default());
                    }
                }
                Ok(found)
            }
            FilterOp::Pipe(first, second) => {
                let between = self.eval(first, inputs)?;
                self.eval(second, &between)
            }
            FilterOp::Comma(all) => {
                let mut found = Vec::new();
                // One input at a time: everything of the first comes before the second.
                for input in inputs {
                    for one in all {
                        found.extend(self.eval(one, std::slice::from_ref(input))?);
                    }
                }
                Ok(found)
            }
            FilterOp::Collect(inner) => {
                let mut found = Vec::with_capacity(inputs.len());
                for input in inputs {
                    let all = self.eval(inner, std::slice::from_ref(input))?;
                    let mut items = Vec::with_capacity(all.len());
                    for one in all {
                        items.push(self.own(node, one)?);
                    }
                    found.push(Cow::Owned(Value::Array(items)));
                }
                Ok(found)
            }
            FilterOp::Object(fields) => {
                let mut found = Vec::with_capacity(inputs.len());
                for input in inputs {
                    found.extend(self.object(node, fields, input)?);
                }
                Ok(found)
            }
        }
    }

    /// Every combination of what the fields give, as in `jq`.
    fn object<'a>(
        &mut self,
        node: &FilterNode,
        fields: &[(String, FilterNode)],
        input: &Cow<'a, Value>,
    ) -> Result<Matches<'a>, ProjectionError> {
        let mut made = vec![Map::new()];
        for (name, value) in fields {
            let values = self.eval(value, std::slice::from_ref(input))?;
            let mut next = Vec::new();
            for base in &made {
                for one in &values {
                    self.pay(node, base.len() as u64 + 1)?;
                    for known in base.values() {
                        self.pay_for(node, known)?;
                    }
                    self.pay_for(node, one)?;
                    let mut object = base.clone();
                    object.insert(name.clone(), one.clone().into_owned());
                    next.push(object);
                }
            }
            made = next;
        }
        Ok(made
            .into_iter()
            .map(|object| Cow::Owned(Value::Object(object)))
            .collect())
    }

    /// One step from one value: a field, an element, a part, or all there is.
    fn step<'a>(
        &mut self,
        node: &FilterNode,
        value: Cow<'a, Value>,
        found: &mut Matches<'a>,
    ) -> Result<(), ProjectionError> {
        match &node.op {
            FilterOp::Field(_, name) => {
                found.push(self.part(node, value, |value| field(node, value, name))?);
            }
            FilterOp::Index(_, index) => {
                found.push(self.part(node, value, |value| element(node, value, *index))?);
            }
            FilterOp::Slice(_, from, to) => {
                let part = slice(node, &value, *from, *to)?;
                self.pay_for(node, &part)?;
                found.push(Cow::Owned(part));
            }
            _ => self.each(node, value, found)?,
        }
        Ok(())
    }

    fn each<'a>(
        &mut self,
        node: &FilterNode,
        value: Cow<'a, Value>,
        found: &mut Matches<'a>,
    ) -> Result<(), ProjectionError> {
        let many = match &*value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            other => {
                let message = format!("`[]` wants an array or an object, not {}", kind(other));
                return Err(fault(node, message));
            }
        };
        self.pay(node, many as u64)?;
        match value {
            Cow::Borrowed(Value::Array(items)) => found.extend(items.iter().map(Cow::Borrowed)),
            Cow::Borrowed(Value::Object(fields)) => {
                found.extend(fields.values().map(Cow::Borrowed));
            }
            Cow::Owned(Value::Array(items)) => found.extend(items.into_iter().map(Cow::Owned)),
            Cow::Owned(Value::Object(fields)) => {
                found.extend(fields.into_iter().map(|(_, value)| Cow::Owned(value)));
            }
            Cow::Borrowed(_) | Cow::Owned(_) => {}
        }
        Ok(())
    }

    /// Nothing in place of what does not fit; an empty purse is never forgiven.
    fn forgive<T>(&self, result: Result<T, ProjectionError>) -> Result<Option<T>, ProjectionError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.purse == 0 => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// A part of a value: of a borrowed one a borrowed part, of our own one a copy.
    fn part<'a>(
        &mut self,
        node: &FilterNode,
        value: Cow<'a, Value>,
        find: impl for<'v> Fn(&'v Value) -> Result<Option<&'v Value>, ProjectionError>,
    ) -> Result<Cow<'a, Value>, ProjectionError> {
        match value {
            Cow::Borrowed(value) => Ok(find(value)?.map_or(Cow::Owned(Value::Null), Cow::Borrowed)),
            Cow::Owned(value) => match find(&value)? {
                None => Ok(Cow::Owned(Value::Null)),
                Some(part) => {
                    self.pay_for(node, part)?;
                    Ok(Cow::Owned(part.clone()))
                }
            },
        }
    }

    fn copy<'a>(
        &mut self,
        node: &FilterNode,
        value: &Cow<'a, Value>,
    ) -> Result<Cow<'a, Value>, ProjectionError> {
        if let Cow::Owned(value) = value {
            self.pay_for(node, value)?;
        }
        Ok(value.clone())
    }

    fn own(&mut self, node: &FilterNode, value: Cow<'_, Value>) -> Result<Value, ProjectionError> {
        if let Cow::Borrowed(value) = value {
            self.pay_for(node, value)?;
        }
        Ok(value.into_owned())
    }
}

fn fault(node: &FilterNode, message: impl Into<String>) -> ProjectionError {
    ProjectionError {
        column: node.column,
        message: message.into(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn field<'v>(
    node: &FilterNode,
    value: &'v Value,
    name: &str,
) -> Result<Option<&'v Value>, ProjectionError> {
    match value {
        Value::Object(fields) => Ok(fields.get(name)),
        Value::Null => Ok(None),
        Value::Array(_) => Err(fault(
            node,
            format!("an array has no field `{name}`; for that of every element write `[].{name}`"),
        )),
        other => Err(fault(
            node,
            format!("{} has no field `{name}`", kind(other)),
        )),
    }
}

fn element<'v>(
    node: &FilterNode,
    value: &'v Value,
    index: i64,
) -> Result<Option<&'v Value>, ProjectionError> {
    match value {
        Value::Array(items) => {
            let at = place(index, items.len());
            Ok(at.and_then(|at| items.get(at)))
        }
        Value::Null => Ok(None),
        other => Err(fault(node, format!("{} has no elements", kind(other)))),
    }
}

/// Where a number that may count from the end points; none before the beginning.
fn place(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        return Some(usize::try_from(index).unwrap_or(usize::MAX));
    }
    let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    len.checked_sub(back)
}

fn slice(
    node: &FilterNode,
    value: &Value,
    from: Option<i64>,
    to: Option<i64>,
) -> Result<Value, ProjectionError> {
    let range = |len: usize| {
        let bound = |index: i64| place(index, len).unwrap_or(0).min(len);
        let from = from.map_or(0, bound);
        from..to.map_or(len, bound).max(from)
    };
    match value {
        Value::Array(items) => Ok(Value::Array(items[range(items.len())].to_vec())),
        Value::String(text) => {
            let range = range(text.chars().count());
            let part = text.chars().skip(range.start).take(range.len());
            Ok(Value::String(part.collect()))
        }
        Value::Null => Ok(Value::Null),
        other => Err(fault(node, format!("{} cannot be sliced", kind(other)))),
    }
}
