//! Defaults for programs: `env`, `cwd`, `shell` and `idempotent` of a call with `run`, of a task and of the plan.
//!
//! They are written into the arguments of `exec` and `shell` calls, so that policy, approvals and cache see one place.

use serde_json::{Value, json};

use super::PlanProblem;
use super::node::{Entry, Node, shortened};
use super::reader::{Reader, Segment};
use crate::task::CallSpec;
use crate::task::interpreter::INTERPRETER;
use crate::value::Map;

/// The fields, in plans.
pub(crate) const FIELDS: [&str; 4] = ["env", "cwd", INTERPRETER, "idempotent"];

/// The names of known interpreters.
const INTERPRETERS: [&str; 2] = ["sh", "bash"];

/// Defaults for calls that run a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProgramDefaults {
    env: Map,
    cwd: Option<String>,
    shell: Option<Value>,
    idempotent: Option<bool>,
}

impl ProgramDefaults {
    /// Returns these defaults, completed by those of the plan. Variables are merged by name.
    pub(super) fn or(mut self, outer: &Self, nulls: &[&str]) -> Self {
        let inherits = |field: &str| !nulls.contains(&field);
        if inherits("env") {
            add_missing(&mut self.env, &outer.env);
        }
        self.cwd = self.cwd.or_else(|| outer.cwd.clone().filter(|_| inherits("cwd")));
        self.shell = self.shell.or_else(|| outer.shell.clone().filter(|_| inherits(INTERPRETER)));
        self.idempotent = self.idempotent.or(outer.idempotent.filter(|_| inherits("idempotent")));
        self
    }

    /// Writes the defaults into a call that runs a program. What the call says itself wins.
    pub(super) fn fill(&self, call: &mut CallSpec) {
        if !matches!(call.tool_name.as_str(), "exec" | "shell") {
            return;
        }
        call.idempotent = call.idempotent.or(self.idempotent);
        if let Some(cwd) = &self.cwd {
            call.args.entry("cwd").or_insert_with(|| cwd.as_str().into());
        }
        if !self.env.is_empty() {
            let env = call.args.entry("env").or_insert_with(|| json!({}));
            if let Value::Object(env) = env {
                add_missing(env, &self.env);
            }
        }
        if let Some(shell) = self.shell.as_ref().filter(|_| call.tool_name == "shell") {
            call.args.entry(INTERPRETER).or_insert_with(|| shell.clone());
        }
    }
}

fn add_missing(map: &mut Map, more: &Map) {
    for (name, value) in more {
        map.entry(name.as_str()).or_insert_with(|| value.clone());
    }
}

impl<'n> Reader<'n> {
    /// Reads a default for programs; false if the field is none. Expressions in it belong to the call at index `call`.
    pub(super) fn program_field(
        &mut self,
        defaults: &mut ProgramDefaults,
        entry: &'n Entry<'n>,
        call: usize,
    ) -> bool {
        let node = &entry.value;
        match &*entry.key {
            "env" => defaults.env = self.option(node, Self::variables).unwrap_or_default(),
            "cwd" => defaults.cwd = self.option(node, Self::filled_text),
            INTERPRETER => defaults.shell = self.option(node, Self::interpreter),
            "idempotent" => defaults.idempotent = self.option(node, Self::flag),
            _ => return false,
        }
        self.args_site("", node, call);
        true
    }

    fn variables(&mut self, node: &'n Node<'n>) -> Option<Map> {
        let entries = self.entries(node, "an object with names and texts")?;
        let mut variables = Map::new();
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| {
                if let Some(value) = reader.text(&entry.value) {
                    variables.insert(entry.key.to_string(), value.into());
                }
            });
        }
        Some(variables)
    }

    /// Reads the program that reads a command: a known shell, or a program with arguments before the command.
    fn interpreter(&mut self, node: &'n Node<'n>) -> Option<Value> {
        if node.as_list().is_some() {
            let argv = self.one_or_many(node, Self::text);
            if argv.first().is_none_or(|program| program.trim().is_empty()) {
                self.report(node.at, PlanProblem::Blank);
            }
            return Some(json!(argv));
        }
        let word = self.filled_text(node)?;
        if !INTERPRETERS.contains(&word.as_str()) {
            let problem = PlanProblem::UnknownWord { what: "shell", word: shortened(&word) };
            let hint = format!(
                "allowed are `sh`, `bash` and a list, such as `[{}, -e, -c]`: the command is its last argument",
                shortened(&word)
            );
            self.report_with(node.at, problem, hint);
            return None;
        }
        Some(word.into())
    }
}
