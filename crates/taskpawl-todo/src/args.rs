//! Reading the arguments of a call, whatever somebody sent. `null` counts as absent.

use serde_json::{Map, Value};

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Args<'a>(Option<&'a Map<String, Value>>);

impl<'a> Args<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// Returns an argument that is there.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// Returns an argument that is a text; another value counts as absent.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Returns an argument that is a text with something in it.
    pub(crate) fn filled(self, name: &str) -> Option<&'a str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }
}
