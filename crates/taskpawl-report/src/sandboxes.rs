//! The sandboxes of the programs of a run.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use taskpawl_model::task::ToolCall;

/// The levels below the best one, by their letter.
const LOWER: [&str; 3] = ["B", "C", "D"];

/// The levels of the sandboxes of programs, without duplicates. Its text is such as `level B`, or `level A; off`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandboxes(BTreeSet<&'static str>);

impl Sandboxes {
    /// Adds the sandbox of the last start of a call. Only fixed words are taken from a result, which may be the text of a tool.
    pub(crate) fn add(&mut self, call: &ToolCall) {
        let sandbox = call.result.as_ref().and_then(|result| result.get("sandbox")?.as_object());
        let Some(sandbox) = sandbox.filter(|_| ["exec", "shell"].contains(&call.tool_name.as_str())) else {
            return;
        };
        let word = |name: &str| sandbox.get(name).and_then(Value::as_str);
        let lower = word("isolation").and_then(|level| LOWER.into_iter().find(|lower| *lower == level));
        match (word("level"), lower) {
            (Some("off"), _) => self.0.insert("off"),
            (Some(_), lower) => self.0.insert(lower.unwrap_or("A")),
            (None, _) => false,
        };
    }

    /// Returns whether no program has run, or all had the whole sandbox.
    pub fn are_whole(&self) -> bool {
        self.0.iter().all(|level| *level == "A")
    }

    /// Returns whether no program has run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Sandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().map(|level| match *level {
            "off" => "off".to_owned(),
            level => format!("level {level}"),
        });
        f.write_str(&words.collect::<Vec<_>>().join("; "))
    }
}
