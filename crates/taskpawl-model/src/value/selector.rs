//! Selectors of tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A selector as in `--only`: `plan:NAME`, `label:NAME` or a task id. Each one includes all subtasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The tasks of a plan, with their subtasks.
    Plan(String),
    /// The tasks with a label, with their subtasks.
    Label(String),
    /// A task with its subtasks.
    Task(String),
}

impl FromStr for Selector {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("plan", name)) => Self::Plan(name.to_owned()),
            Some(("label", name)) => Self::Label(name.to_owned()),
            _ => Self::Task(text.to_owned()),
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(name) => write!(f, "plan:{name}"),
            Self::Label(name) => write!(f, "label:{name}"),
            Self::Task(id) => f.write_str(id),
        }
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().unwrap_or_else(|never| match never {}))
    }
}
