//! Access to the arguments of a call, which may be anything. `null` counts as absent.

use serde_json::{Map, Value};

/// Arguments of a call; without any if the value is not an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Args<'a>(Option<&'a Map<String, Value>>);

impl<'a> Args<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// Returns an argument, or `None` if it is absent or `null`.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// Returns a string argument; a value of another type counts as absent.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Returns a string argument that contains more than white space.
    pub(crate) fn filled(self, name: &str) -> Option<&'a str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }
}
