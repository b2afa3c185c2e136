//! The entries of a configuration file.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::secrets::Definition;
use super::value::{Length, Parsed, Retries, Size};
use super::{agents, engines, planner, sandbox};

/// All entries of a file. A variable of the environment has the form of a file with one entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) actor: Option<String>,
    pub(super) color: Option<ColorWord>,
    pub(super) jobs: Option<NonZeroUsize>,
    pub(super) lease: Option<Parsed<Length>>,
    pub(super) limit: Option<usize>,
    pub(super) output: Output,
    pub(super) run: Run,
    pub(super) resources: BTreeMap<String, u32>,
    pub(super) tools: BTreeMap<String, Map<String, Value>>,
    pub(super) secrets: BTreeMap<String, Definition>,
    pub(super) mcp: Mcp,
    pub(super) mcp_servers: BTreeMap<String, Value>,
    pub(super) sandbox: sandbox::Section,
    pub(super) trace: Trace,
    pub(super) planner: planner::Section,
    pub(super) engines: BTreeMap<String, engines::Section>,
    pub(super) agents: BTreeMap<String, agents::AgentConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Output {
    pub(super) quota: Option<Parsed<Size>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Run {
    pub(super) notify: Option<Vec<String>>,
    pub(super) timeout: Option<Parsed<Length>>,
    pub(super) task_timeout: Option<Parsed<Length>>,
    pub(super) max_failures: Option<NonZeroU64>,
    pub(super) retry: Option<Retries>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Mcp {
    pub(super) configs: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Trace {
    pub(super) collectors: Option<Vec<String>>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColorWord {
    // No help text for each value: it would add lines to the help of every command. The help of `--color` describes
    // them.
    Auto,
    Always,
    Never,
}
