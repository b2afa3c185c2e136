//! The provenance of stored values: truncated parts and authors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::task::spec::Origin;

/// Facts about a stored value that the value itself does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The truncated parts.
    pub cut: Option<CutParts>,
    /// The origin, if a model took part in the value.
    pub origin: Option<Origin>,
}

impl Provenance {
    /// Returns whether the value is complete and not from a model.
    pub fn is_plain(&self) -> bool {
        self.cut.is_none() && self.origin.is_none()
    }

    /// Returns the provenance of a value that also depends on one of this origin.
    pub(crate) fn lowered(mut self, origin: Option<Origin>) -> Self {
        self.origin = self.origin.max(origin);
        self
    }
}

/// The provenance of the values in a map, by name. Values without one are absent.
pub type Provenances = BTreeMap<String, Provenance>;

/// The truncated parts of a value, as a tree of field names and indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutParts {
    /// True if the value at this path is truncated, and with it everything below.
    here: bool,
    below: BTreeMap<String, Self>,
}

/// Fields of a placeholder that are exact, although the result is truncated.
const OF_STAND_IN: [&str; 3] = ["truncated", "sha256", "resultFile"];

impl CutParts {
    /// Parses JSON Pointers (RFC 6901); `""` is the whole value. `None` for an empty list.
    pub fn from_pointers<P: AsRef<str>>(pointers: &[P]) -> Option<Self> {
        let mut root = Self::default();
        for pointer in pointers {
            let mut node = &mut root;
            for token in pointer.as_ref().split('/').skip(1) {
                // The order matters: `~01` stands for `~1`.
                node = node.below.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
            }
            node.here = true;
        }
        (root != Self::default()).then_some(root)
    }

    /// Returns whether the value at this path is truncated itself.
    pub(super) fn is_here(&self) -> bool {
        self.here
    }

    /// Returns the truncated parts of a field or an item of `value`, if any.
    pub(super) fn below(&self, value: Option<&Value>, name: &str) -> Option<&Self> {
        if let Some(below) = self.below.get(name) {
            return Some(below);
        }
        (self.here && !(is_stand_in(value) && OF_STAND_IN.contains(&name))).then_some(self)
    }
}

/// Returns whether a value is the placeholder for a larger result in a file.
fn is_stand_in(value: Option<&Value>) -> bool {
    value.is_some_and(|value| {
        value.get("truncated") == Some(&Value::Bool(true))
            && value.get("resultFile").is_some_and(Value::is_string)
    })
}

/// The provenance of the stored values that a part of an expression is taken from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Seen<'d> {
    /// Not from a stored value with a provenance.
    #[default]
    Nothing,
    /// One stored value, or a part of it.
    One(Option<&'d CutParts>),
    /// The results of a task, in order.
    Many(&'d [Provenance]),
}

impl<'d> Seen<'d> {
    pub(super) fn of(provenance: Option<&'d Provenance>) -> Self {
        provenance.map_or(Self::Nothing, |provenance| Self::One(provenance.cut.as_ref()))
    }

    /// Returns the provenance of a field of `value`.
    pub(super) fn field(self, value: Option<&Value>, name: &str) -> Self {
        match self {
            Self::One(cut) => Self::One(cut.and_then(|cut| cut.below(value, name))),
            // A list of results has no fields.
            Self::Nothing | Self::Many(_) => self,
        }
    }

    /// Returns the provenance of the item at an index.
    pub(super) fn item(self, position: usize) -> Self {
        match self {
            Self::Many(results) => Self::of(results.get(position)),
            Self::One(_) => self.field(None, &position.to_string()),
            Self::Nothing => self,
        }
    }

    /// Returns whether any part of the value is truncated.
    pub(super) fn is_cut(self) -> bool {
        match self {
            Self::Nothing => false,
            Self::One(cut) => cut.is_some(),
            Self::Many(results) => results.iter().any(|result| result.cut.is_some()),
        }
    }

    /// Returns whether the value itself is truncated, so that an absent part may have existed.
    pub(super) fn is_cut_here(self) -> bool {
        matches!(self, Self::One(Some(cut)) if cut.is_here())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_covers_a_part_and_everything_below() {
        let cut = CutParts::from_pointers(&["/stdout", "/a~1b/0"]).unwrap();
        let is_cut = |path: &[&str]| {
            let mut node = Some(&cut);
            for name in path {
                node = node.and_then(|node| node.below(None, name));
            }
            node.is_some()
        };
        assert!(is_cut(&[]) && is_cut(&["stdout"]) && is_cut(&["stdout", "x"]));
        assert!(is_cut(&["a/b"]) && is_cut(&["a/b", "0"]));
        assert!(!is_cut(&["exitCode"]) && !is_cut(&["a/b", "1"]));
        assert_eq!(CutParts::from_pointers::<&str>(&[]), None);
    }

    #[test]
    fn the_exact_fields_of_a_placeholder_count_as_complete() {
        let cut = CutParts::from_pointers(&["", "/sha256"]).unwrap();
        let stand_in = json!({"truncated": true, "resultFile": "/f", "head": "", "sha256": ""});
        for (value, name, expected) in [
            (&stand_in, "resultFile", false),
            (&stand_in, "head", true),
            (&stand_in, "other", true),
            // The result itself has such a field, and it is truncated.
            (&stand_in, "sha256", true),
            (&json!({"resultFile": "/f"}), "resultFile", true),
        ] {
            assert_eq!(cut.below(Some(value), name).is_some(), expected, "{name}");
        }
    }
}
