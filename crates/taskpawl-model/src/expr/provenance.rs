//! Provenance of stored values: which parts were cut, and who wrote them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::spec::Origin;

/// Facts about a stored value that the value itself does not show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The parts that hold less than the tool produced.
    pub cut: Option<CutParts>,
    /// The origin, where a model has a part in it.
    pub origin: Option<Origin>,
}

impl Provenance {
    /// Returns whether there is nothing to know about the value.
    pub fn is_plain(&self) -> bool {
        self.cut.is_none() && self.origin.is_none()
    }
}

/// The values of a map that have a provenance, by name.
pub type Provenances = BTreeMap<String, Provenance>;

/// The parts of a value that were cut, as a tree of field names and positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutParts {
    /// The value at this place is cut; everything below it is then, too.
    here: bool,
    below: BTreeMap<String, Self>,
}

/// The fields of a stand-in that are true of the result it stands for.
const OF_STAND_IN: [&str; 3] = ["truncated", "sha256", "resultFile"];

impl CutParts {
    /// Reads JSON Pointers (RFC 6901); `""` names the whole value. `None` without any.
    pub fn from_pointers<P: AsRef<str>>(pointers: &[P]) -> Option<Self> {
        let mut root = Self::default();
        for pointer in pointers {
            let mut place = &mut root;
            for token in pointer.as_ref().split('/').skip(1) {
                // The order matters: `~01` stands for `~1`.
                place = place.below.entry(token.replace("~1", "/").replace("~0", "~")).or_default();
            }
            place.here = true;
        }
        (root != Self::default()).then_some(root)
    }

    /// Returns whether the value at this place is cut itself.
    pub(super) fn is_here(&self) -> bool {
        self.here
    }

    /// Returns the cut parts of a field or an item of `value`, to which these belong.
    pub(super) fn below(&self, value: Option<&Value>, name: &str) -> Option<&Self> {
        if let Some(below) = self.below.get(name) {
            return Some(below);
        }
        (self.here && !(is_stand_in(value) && OF_STAND_IN.contains(&name))).then_some(self)
    }
}

/// Returns whether a value stands for a larger result that is kept in a file.
fn is_stand_in(value: Option<&Value>) -> bool {
    value.is_some_and(|value| {
        value.get("truncated") == Some(&Value::Bool(true))
            && value.get("resultFile").is_some_and(Value::is_string)
    })
}

/// What an evaluation knows of the stored values that a part of an expression takes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Seen<'d> {
    /// It takes nothing from stored values that has a provenance.
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

    /// Returns what is known of a field of `value`.
    pub(super) fn field(self, value: Option<&Value>, name: &str) -> Self {
        match self {
            Self::One(cut) => Self::One(cut.and_then(|cut| cut.below(value, name))),
            // A list of results has no fields.
            Self::Nothing | Self::Many(_) => self,
        }
    }

    /// Returns what is known of the item at a position.
    pub(super) fn item(self, position: usize) -> Self {
        match self {
            Self::Many(results) => Self::of(results.get(position)),
            Self::One(_) => self.field(None, &position.to_string()),
            Self::Nothing => self,
        }
    }

    /// Returns whether any part of the value is cut.
    pub(super) fn is_cut(self) -> bool {
        match self {
            Self::Nothing => false,
            Self::One(cut) => cut.is_some(),
            Self::Many(results) => results.iter().any(|result| result.cut.is_some()),
        }
    }

    /// Returns whether the value itself is cut, so that nobody can say what is not in it.
    pub(super) fn is_cut_here(self) -> bool {
        matches!(self, Self::One(Some(cut)) if cut.is_here())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_name_parts_and_everything_below() {
        let cut = CutParts::from_pointers(&["/stdout", "/a~1b/0"]).unwrap();
        let is_cut = |path: &[&str]| {
            let mut place = Some(&cut);
            for name in path {
                place = place.and_then(|place| place.below(None, name));
            }
            place.is_some()
        };
        assert!(is_cut(&[]) && is_cut(&["stdout"]) && is_cut(&["stdout", "x"]));
        assert!(is_cut(&["a/b"]) && is_cut(&["a/b", "0"]));
        assert!(!is_cut(&["exitCode"]) && !is_cut(&["a/b", "1"]));
        assert_eq!(CutParts::from_pointers::<&str>(&[]), None);
    }

    #[test]
    fn a_stand_in_says_where_the_whole_is() {
        let cut = CutParts::from_pointers(&["", "/sha256"]).unwrap();
        let stand_in = json!({"truncated": true, "resultFile": "/f", "head": "", "sha256": ""});
        for (value, name, expected) in [
            (&stand_in, "resultFile", false),
            (&stand_in, "head", true),
            (&stand_in, "other", true),
            // The result that it stands for has such a field of its own.
            (&stand_in, "sha256", true),
            (&json!({"resultFile": "/f"}), "resultFile", true),
        ] {
            assert_eq!(cut.below(Some(value), name).is_some(), expected, "{name}");
        }
    }
}
