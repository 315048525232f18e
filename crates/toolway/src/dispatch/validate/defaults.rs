//! Required arguments that a schema has a default for.
//!
//! Owns filling them in. A library that writes schemas for what a tool reads, rather than for what
//! it takes, calls an argument required although it has a default; the server would be content
//! without it, and other clients leave it out. Sending the default is right either way, and rules,
//! hooks and people see it among the arguments.

use serde_json::{Map, Value};
use toolway_schema::{list, properties, property, required, target};

/// The deepest nesting that is followed; a circle of references ends here.
const MAX_DEPTH: usize = 16;
/// The most schemas that are looked at for one call.
const MAX_STEPS: usize = 2_000;

/// The arguments with the defaults of what is required and missing; nothing where there are none.
pub(super) fn filled(schema: &str, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    let root: Value = serde_json::from_str(schema).ok()?;
    let mut complete = arguments.clone();
    let mut filler = Filler {
        root: &root,
        steps: 0,
        any: false,
    };
    filler.fill(&root, &mut complete, 0);
    filler.any.then_some(complete)
}

struct Filler<'a> {
    root: &'a Value,
    steps: usize,
    any: bool,
}

impl<'a> Filler<'a> {
    fn fill(&mut self, schema: &'a Value, members: &mut Map<String, Value>, depth: usize) {
        self.steps += 1;
        if depth == MAX_DEPTH || self.steps > MAX_STEPS {
            return;
        }
        for part in self.parts(schema) {
            self.fill(part, members, depth + 1);
        }
        for name in required(schema) {
            if let (false, Some(property)) = (members.contains_key(name), property(schema, name))
                && let Some(default) = self.default(property, depth)
            {
                members.insert(name.to_owned(), default.clone());
                self.any = true;
            }
        }
        for (name, property) in properties(schema) {
            match members.get_mut(name) {
                Some(Value::Object(inner)) => self.fill(property, inner, depth + 1),
                Some(Value::Array(items)) => {
                    let Some(schema) = property.get("items") else {
                        continue;
                    };
                    for item in items.iter_mut().filter_map(Value::as_object_mut) {
                        self.fill(schema, item, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// The default of a property, its own before that of what it refers to.
    fn default(&self, property: &'a Value, depth: usize) -> Option<&'a Value> {
        let own = property.get("default");
        own.or_else(|| {
            let mut parts = self.parts(property).into_iter();
            parts.find_map(|part| {
                (depth < MAX_DEPTH)
                    .then(|| self.default(part, depth + 1))
                    .flatten()
            })
        })
    }

    /// What holds beside a schema: what it refers to in the same document, and `allOf`.
    fn parts(&self, schema: &'a Value) -> Vec<&'a Value> {
        let target = target(self.root, schema).into_iter();
        target.chain(list(schema, "allOf")).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_required_and_missing_is_filled_in() {
        let schema = json!({
            "properties": {
                "unit": {"type": "string", "default": "c"},
                "days": {"type": "integer", "default": 3},
                "city": {"type": "string"},
                "place": {"$ref": "#/$defs/place"},
                "stops": {"type": "array", "items": {"$ref": "#/$defs/place"}},
                "mode": {"$ref": "#/%24defs/the%20mode"},
            },
            "required": ["unit", "city", "mode"],
            "$defs": {
                "the mode": {"type": "string", "default": "fast"},
                "place": {
                    "properties": {"zone": {"default": null}, "inner": {"$ref": "#/$defs/place"}},
                    "required": ["zone"],
                },
            },
        })
        .to_string();
        for (given, expected) in [
            (json!({}), json!({"unit": "c", "mode": "fast"})),
            (json!({"unit": "f"}), json!({"unit": "f", "mode": "fast"})),
            (
                json!({"unit": "f", "mode": "slow", "place": {"inner": {}}, "stops": [{}, 7]}),
                json!({
                    "unit": "f", "mode": "slow",
                    "place": {"zone": null, "inner": {"zone": null}},
                    "stops": [{"zone": null}, 7],
                }),
            ),
        ] {
            let given = given.as_object().unwrap();
            assert_eq!(filled(&schema, given).map(Value::Object), Some(expected));
        }
        let enough = json!({"unit": "f", "mode": "slow"});
        assert_eq!(filled(&schema, enough.as_object().unwrap()), None);
    }

    #[test]
    fn a_schema_that_leads_in_circles_comes_to_an_end() {
        let schema = json!({
            "$ref": "#/$defs/a",
            "properties": {"x": {"$ref": "#/$defs/a"}},
            "required": ["x"],
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}]}},
        });
        assert_eq!(filled(&schema.to_string(), &Map::new()), None);
    }
}
