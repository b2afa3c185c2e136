//! `[engines.restate]`: the server that carries calls to workers. Only the user's file has it: a project could otherwise send calls
//! anywhere.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Deserialize;

use super::document::Document;
use super::error::ConfigError;
use super::setting::Settings;
use super::value::{Length, Parsed};

/// The Restate server of the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestateConfig {
    pub(crate) url: Option<String>,
    pub(crate) admin: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) window: Option<usize>,
    pub(crate) patience: Option<Duration>,
    pub(crate) files: Option<FilesWord>,
    /// The git remote for `files = "git"`.
    pub(crate) remote: Option<String>,
}

/// The way in which the files of a project reach workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilesWord {
    /// The directory of the worker has the same files
    #[default]
    Shared,
    /// Tracked files are pushed to the remote of the configuration, and those in `writes` come back
    Git,
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
    files: Option<FilesWord>,
    remote: Option<String>,
}

/// Returns the Restate server of a file; `restate` is the only engine.
pub(super) fn read(
    document: &Document<'_>,
    sections: BTreeMap<String, Section>,
    settings: &mut Settings,
) -> Result<Option<RestateConfig>, ConfigError> {
    let mut restate = None;
    for (name, section) in sections {
        if name != "restate" {
            return Err(document.invalid(&["engines", &name]));
        }
        let Section { url, admin, pool, window, patience, files, remote } = section;
        for (key, value) in [("url", &url), ("admin", &admin), ("pool", &pool), ("remote", &remote)] {
            if let Some(value) = value {
                settings.note(format!("engines.restate.{key}"), value.clone(), document.origin());
            }
        }
        let (window, patience) = (window.map(NonZeroUsize::get), patience.map(|length| length.0.0.0));
        restate = Some(RestateConfig { url, admin, pool, window, patience, files, remote });
    }
    Ok(restate)
}
