//! The hosts that `http_request` may reach, from the user's file and the project's.

use std::fmt;

use serde_json::json;
use taskpawl::tools::HttpAccess;
use toml::de::DeValue;

use super::Layer;

/// The expected form of the value.
pub(super) const EXPECTED: &str =
    "a list such as [\"api.example.com\", \"*.example.org\", \"127.0.0.1:8080\"]";

/// The lists of both files; `None` where a file has no list.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    project: Option<Vec<String>>,
    user: Option<Vec<String>>,
}

impl Hosts {
    pub(super) fn of(&self, layer: Layer) -> Option<&[String]> {
        match layer {
            Layer::Project => self.project.as_deref(),
            Layer::User => self.user.as_deref(),
        }
    }

    pub(super) fn set(&mut self, layer: Layer, list: Vec<String>) {
        match layer {
            Layer::Project => self.project = Some(list),
            Layer::User => self.user = Some(list),
        }
    }

    /// Returns the reachable hosts: those that the user grants, narrowed to the project's list. Without a list of the
    /// user, every public host is granted.
    pub(super) fn access(&self) -> HttpAccess {
        let valid = "BUG: hosts are checked when they are read";
        let granted = match &self.user {
            Some(list) => HttpAccess::only(list).expect(valid),
            None => HttpAccess::public(),
        };
        match &self.project {
            Some(list) => granted.narrowed_to(list).expect(valid),
            None => granted,
        }
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.project, &self.user) {
            (Some(project), Some(user)) => write!(f, "{} of {}", json!(project), json!(user)),
            (Some(list), None) | (None, Some(list)) => json!(list).fmt(f),
            (None, None) => Ok(()),
        }
    }
}

/// Returns a list of valid hosts, or `None` for any other value.
pub(super) fn list(value: &DeValue<'_>) -> Option<Vec<String>> {
    let DeValue::Array(items) = value else { return None };
    let texts = items.iter().map(|item| Some(item.get_ref().as_str()?.to_owned()));
    let list = texts.collect::<Option<Vec<_>>>()?;
    HttpAccess::only(&list).is_ok().then_some(list)
}
