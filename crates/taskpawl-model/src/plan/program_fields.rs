//! Reads the fields of plans, tasks and calls that are defaults for programs.

use serde_json::{Value, json};

use super::PlanProblem;
use super::node::{Entry, Node, shortened};
use super::program::ProgramDefaults;
use super::reader::{Reader, Segment};
use crate::task::interpreter::INTERPRETER;
use crate::value::Map;

/// The names of known interpreters.
const INTERPRETERS: [&str; 2] = ["sh", "bash"];

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
