//! `[engines.restate]`: the server that carries calls to workers. Only the user's file has it: a project could otherwise send calls
//! anywhere.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Deserialize;

use super::document::{Document, Parsed};
use super::file::Length;
use super::{Config, ConfigError};

/// The meaning of the section.
pub(super) const MEANING: &str = "the Restate server that carries calls to workers";

/// The hint for a project that has such a section.
pub(super) const ONLY_USER: &str =
    "the user's own file alone names engines; `taskpawl config path` names that file";

/// The Restate server of the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestateConfig {
    pub(crate) url: Option<String>,
    pub(crate) admin: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) window: Option<usize>,
    pub(crate) patience: Option<Duration>,
}

/// The section of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Section {
    url: Option<String>,
    admin: Option<String>,
    pool: Option<String>,
    window: Option<NonZeroUsize>,
    patience: Option<Parsed<Length>>,
}

/// Returns the expected form of a value; `None` for an unknown key.
pub(super) fn expected(key: &str) -> Option<&'static str> {
    Some(match key {
        "url" => "the address of the ingress, such as \"http://127.0.0.1:8080\"",
        "admin" => "the address of the admin interface, such as \"http://127.0.0.1:9070\"",
        "pool" => "the name of a pool of workers, such as \"default\"",
        "window" => "a number from 1 to 1000",
        "patience" => "a duration such as \"10m\"",
        _ => return None,
    })
}

impl Config {
    /// Reads the engines; `restate` is the only one.
    pub(super) fn read_engines(
        &mut self,
        document: &Document<'_>,
        sections: BTreeMap<String, Section>,
    ) -> Result<(), ConfigError> {
        for (name, section) in sections {
            if name != "restate" {
                return Err(document.invalid(&["engines", &name]));
            }
            let Section { url, admin, pool, window, patience } = section;
            for (key, value) in [("url", &url), ("admin", &admin), ("pool", &pool)] {
                if let Some(value) = value {
                    self.note(format!("engines.restate.{key}"), value.clone(), document.origin());
                }
            }
            let (window, patience) = (window.map(NonZeroUsize::get), patience.map(|length| length.0.0.0));
            self.restate = RestateConfig { url, admin, pool, window, patience };
        }
        Ok(())
    }
}
