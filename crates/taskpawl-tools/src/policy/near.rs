//! Allow rules that match a call except for a missing key: its standard input, its directory, or its variables.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::command::Plain;
use super::directory::Directory;
use super::layer::Layer;
use super::rule::Rule;
use crate::policy::rule::Uncovered;
use crate::{Decision, LayerKind};

/// Allow rule that has the words of a call, but does not cover its start options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NearRule {
    /// Text of the rule.
    pub rule: String,
    /// File of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Line of the rule, from 1.
    pub line: usize,
    /// Keys that would make the rule allow the call, in the syntax of the file: `stdin = "any"`.
    pub add: Vec<String>,
    /// Start options that no key can allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<&'static str>,
    #[serde(skip)]
    cwd: Vec<String>,
    #[serde(skip)]
    env: Vec<String>,
    #[serde(skip)]
    uncovered: Uncovered,
}

impl NearRule {
    fn of(layer: &Layer, rule: &Rule) -> Self {
        Self {
            rule: rule.to_string(),
            file: layer.path.clone(),
            line: rule.line,
            add: Vec::new(),
            never: Vec::new(),
            cwd: rule.cwd.iter().map(|pattern| pattern.glob().glob().to_owned()).collect(),
            env: rule.env.clone(),
            uncovered: Uncovered::default(),
        }
    }

    /// Returns whether both are the same rule.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.file, self.line) == (&other.file, other.line)
    }

    /// Adds the missing keys for another call that matches the same rule.
    pub fn merge(&mut self, other: Self) {
        self.take(other.uncovered);
    }

    fn take(&mut self, uncovered: Uncovered) {
        self.uncovered.add(uncovered);
        let Uncovered { has_input, directories, variables, has_unknown_env } = &self.uncovered;
        let inner: Vec<&str> = directories.iter().filter_map(Directory::within).collect();
        // A rule without `cwd` covers the root. Suggesting a `cwd` without it would take that away.
        let root = self.cwd.is_empty().then_some("");
        let cwd = self.cwd.iter().map(String::as_str).chain(root);
        let env = self.env.iter().chain(variables).map(String::as_str);
        self.add = [
            has_input.then(|| "stdin = \"any\"".to_owned()),
            (!inner.is_empty())
                .then(|| assignment("cwd", cwd.chain(inner.iter().copied()).map(shown_directory))),
            (!variables.is_empty()).then(|| assignment("env", env)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let is_outside = directories.contains(&Directory::Elsewhere);
        self.never = [
            is_outside.then_some("it may run outside the project"),
            has_unknown_env.then_some("its `env` is not an object"),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
}

/// Returns the allow rules of a layer that together match the words of all commands of a call. It is empty if these
/// rules allow the call, or if a command matches none.
///
/// Each command is assigned to the rule that lacks the fewest keys.
pub(crate) fn near_rules(layer: &Layer, plain: &[Plain], is_asked: impl Fn(&Rule) -> bool) -> Vec<NearRule> {
    let mut matching: Vec<NearRule> = Vec::new();
    for command in plain {
        let rules = layer.rules.iter().filter(|rule| is_asked(rule));
        let fitting = rules.filter_map(|rule| Some((rule, rule.uncovered(command)?)));
        let Some((rule, uncovered)) = fitting.min_by_key(|(_, uncovered)| uncovered.count()) else {
            return Vec::new();
        };
        let mut near = NearRule::of(layer, rule);
        match matching.iter_mut().find(|other| other.is_same(&near)) {
            Some(other) => other.take(uncovered),
            None if uncovered.is_empty() => {}
            None => {
                near.take(uncovered);
                matching.push(near);
            }
        }
    }
    matching
}

fn shown_directory(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Formats a key with a list of texts in the syntax of a policy file.
fn assignment<'a>(key: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<String> = values.map(|value| serde_json::Value::from(value).to_string()).collect();
    format!("{key} = [{}]", values.join(", "))
}

/// Decision of one layer on a call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Layer that decides.
    pub layer: LayerKind,
    /// Decision of the layer.
    pub decision: Decision,
    /// Reason as text.
    pub why: String,
    /// Rule that determined the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// File of the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Allow rules that match the call except for a missing key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<NearRule>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.layer, self.decision, self.why)
    }
}
