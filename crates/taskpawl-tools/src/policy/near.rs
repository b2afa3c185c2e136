//! Rules that would allow a call but for a key: its standard input, its directory, or its variables.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::command::Plain;
use super::directory::Directory;
use super::layer::Layer;
use super::rule::Rule;

/// The start options of a call that an allow rule does not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncovered {
    /// It has standard input.
    pub(crate) has_input: bool,
    /// It runs in these directories.
    pub(crate) directories: BTreeSet<Directory>,
    /// It sets these variables.
    pub(crate) variables: BTreeSet<String>,
    /// Its `env` cannot be read.
    pub(crate) has_unknown_env: bool,
}

impl Uncovered {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: Self) {
        self.has_input |= other.has_input;
        self.directories.extend(other.directories);
        self.variables.extend(other.variables);
        self.has_unknown_env |= other.has_unknown_env;
    }

    /// Returns how many keys it is about.
    fn count(&self) -> usize {
        let flags = [self.has_input, !self.directories.is_empty(), !self.variables.is_empty()];
        flags.into_iter().filter(|flag| *flag).count() + usize::from(self.has_unknown_env)
    }
}

/// An allow rule whose words are those of a call, and which does not allow it all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NearRule {
    /// The rule.
    pub rule: String,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Its line, from 1.
    pub line: usize,
    /// The keys with which it would allow the call, as they are written in the file: `stdin = "any"`.
    pub add: Vec<String>,
    /// The facts about the call that no key allows.
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

    /// Returns whether it is the same rule.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.file, self.line) == (&other.file, other.line)
    }

    /// Takes over what another call of the same rule lacks.
    pub fn merge(&mut self, other: Self) {
        self.take(other.uncovered);
    }

    fn take(&mut self, uncovered: Uncovered) {
        self.uncovered.add(uncovered);
        let Uncovered { has_input, directories, variables, has_unknown_env } = &self.uncovered;
        let inner: Vec<&str> = directories.iter().filter_map(Directory::within).collect();
        // Without `cwd` a rule holds at the root, and is to hold there still.
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
            is_outside.then_some("it may run outside of the project"),
            has_unknown_env.then_some("its `env` is no object"),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
}

/// Returns the rules of a layer that together have the words of all commands of a call; nothing if these rules allow it, or if
/// there are no such rules. Each command counts for the rule that lacks the fewest keys.
pub(crate) fn near_rules(layer: &Layer, plain: &[Plain], is_asked: impl Fn(&Rule) -> bool) -> Vec<NearRule> {
    let mut found: Vec<NearRule> = Vec::new();
    for command in plain {
        let rules = layer.rules.iter().filter(|rule| is_asked(rule));
        let fitting = rules.filter_map(|rule| Some((rule, rule.uncovered(command)?)));
        let Some((rule, uncovered)) = fitting.min_by_key(|(_, uncovered)| uncovered.count()) else {
            return Vec::new();
        };
        let mut near = NearRule::of(layer, rule);
        match found.iter_mut().find(|other| other.is_same(&near)) {
            Some(other) => other.take(uncovered),
            None if uncovered.is_empty() => {}
            None => {
                near.take(uncovered);
                found.push(near);
            }
        }
    }
    found
}

fn shown_directory(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Returns a key with a list of texts, as it is written in a policy file.
fn assignment<'a>(key: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<String> = values.map(|value| serde_json::Value::from(value).to_string()).collect();
    format!("{key} = [{}]", values.join(", "))
}
