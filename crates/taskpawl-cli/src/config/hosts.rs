//! The hosts that `http_request` may reach, from the user's file and the project's.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};
use taskpawl::tools::HttpAccess;

use super::document::Document;
use super::error::ConfigError;
use super::setting::{Layer, Settings};

/// The lists of both files; `None` where a file has no list.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    project: Option<Vec<String>>,
    user: Option<Vec<String>>,
}

impl Hosts {
    fn of(&self, layer: Layer) -> Option<&[String]> {
        match layer {
            Layer::Project => self.project.as_deref(),
            Layer::User => self.user.as_deref(),
        }
    }

    fn set(&mut self, layer: Layer, list: Vec<String>) {
        match layer {
            Layer::Project => self.project = Some(list),
            Layer::User => self.user = Some(list),
        }
    }

    /// Reads the list of a file. The project's list narrows the user's, independent of the reading order.
    pub(super) fn read(
        &mut self,
        document: &Document<'_>,
        list: &Value,
        settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        let path = ["tools", "http_request", "hosts"];
        let list = list_of(list).ok_or_else(|| document.invalid(&path))?;
        let name = path.join(".");
        // The project's file is read first and narrows the list, so it stays the shown source.
        let is_narrowed = document.layer == Layer::User && self.of(Layer::Project).is_some();
        let earlier = settings.named(&name).filter(|_| is_narrowed);
        let origin = earlier.map_or_else(|| document.origin(), |setting| setting.origin.clone());
        self.set(document.layer, list);
        settings.note(name, self.to_string(), origin);
        Ok(())
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
fn list_of(value: &Value) -> Option<Vec<String>> {
    Vec::deserialize(value).ok().filter(|list| HttpAccess::only(list).is_ok())
}
