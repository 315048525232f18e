//! The elements of a JSON array, one by one.
//!
//! Owns reading arrays whose length a server chose, without ever holding all of their elements.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Looks at the elements of an array one by one for as long as `look` wants to see more. They are
/// never all held at once: an element of two bytes would cost eight times its size. `None` when it
/// is no array.
pub(crate) fn each<'a>(array: &'a RawValue, look: impl FnMut(&'a RawValue) -> bool) -> Option<()> {
    struct Elements<F>(F);
    impl<'a, F: FnMut(&'a RawValue) -> bool> Visitor<'a> for Elements<F> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut elements: A) -> Result<(), A::Error> {
            while let Some(element) = elements.next_element::<&RawValue>()? {
                if !(self.0)(element) {
                    break;
                }
            }
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            Ok(())
        }
    }
    let mut reader = serde_json::Deserializer::from_str(array.get());
    reader.deserialize_seq(Elements(look)).ok()
}
