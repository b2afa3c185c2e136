//! The entries of a configuration file.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::model::task::{Retry, unknown_failure};
use taskpawl::model::value::Period;

use super::document::Parsed;
use super::secrets::Definition;
use super::{ColorWord, agents, engines, planner, sandbox};
use crate::byte_size;

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

/// A duration that is not zero.
#[derive(Debug)]
pub(super) struct Length(pub(super) Period);

impl FromStr for Length {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().filter(|period: &Period| !period.0.is_zero()).map(Self).ok_or(())
    }
}

/// A number of bytes, with a unit.
#[derive(Debug)]
pub(super) struct Size(pub(super) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        byte_size::parse(text).map(Self)
    }
}

/// The retry policy: the number of starts, or the table of a task.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Retries(pub(super) Retry);

impl TryFrom<Value> for Retries {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let table = if value.is_number() { json!({ "attempts": value }) } else { value };
        // Serde reads a list as the fields of a struct.
        let retry = Some(table).filter(Value::is_object).and_then(|table| serde_json::from_value(table).ok());
        let retry =
            retry.filter(|retry: &Retry| retry.attempts > 0 && unknown_failure(Some(retry)).is_none());
        retry.map(Self).ok_or("another form is expected")
    }
}
