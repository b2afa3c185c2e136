//! Plans as YAML: in the order of the language, with a comment above each task that says why it is there.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use taskpawl_model::plan::{plan_value, proposed_fields};
use taskpawl_text::plain_line;

use crate::planner::TokenUsage;

/// The beginning of the comment of a generated file. `apply` shows and asks about a file that has it.
pub const GENERATED: &str = "# Proposed by a planner";

/// The field of a task with the reason for it, which becomes a comment.
const WHY: &str = "x-why";

/// The record of a planning, which is kept in the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// The name of the planner.
    pub planner: String,
    /// The number of answers.
    pub turns: u32,
    /// The consumption.
    pub usage: TokenUsage,
}

impl Planning {
    /// Returns the record as data.
    pub fn to_json(&self) -> Value {
        let TokenUsage { input, output, cost } = self.usage;
        let mut data = json!({"by": self.planner, "turns": self.turns});
        // A planner that reports no tokens used some, too.
        if input > 0 || output > 0 {
            (data["inputTokens"], data["outputTokens"]) = (json!(input), json!(output));
        }
        if let Some(cost) = cost {
            data["cost"] = json!(cost);
        }
        data
    }
}

/// Returns whether the text of a plan has the comment of generated plans: at its beginning, or after the answer if it was refused.
pub fn is_generated(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').lines().any(|line| line.starts_with(GENERATED))
}

/// Returns the text of an accepted plan. The record of its planning is stored with it.
pub fn plan_text(plan: &Value, planning: &Planning) -> String {
    let mut plan = plan.clone();
    if let Some(fields) = plan.as_object_mut() {
        fields.insert("x-planning".to_owned(), planning.to_json());
    }
    let head = format!(
        "{GENERATED}, `{}`. The plan is yours once you apply it; while this line is here, `taskpawl apply`\n\
         # shows what would run, and asks.\n",
        plain_line(&planning.planner)
    );
    let body = Writer::default().plan(&plan);
    // A value that this writer got wrong would change the plan silently.
    let is_same = plan_value(&body).is_ok_and(|again| again == without_reasons(plan.clone()));
    let body = if is_same { body } else { format!("{plan:#}\n") };
    head + &body
}

/// Returns the text of the file for a refused plan: the answer as it came, and its problems as comments below it, so that the lines which
/// the problems name are those of the file.
pub fn refused_text(planner: &str, text: &str, problems: &[String]) -> String {
    let mut all = format!("{}\n\n{GENERATED}, `{}`, and refused:\n", text.trim_end(), plain_line(planner));
    for problem in problems {
        let _ = writeln!(all, "# - {}", plain_line(problem));
    }
    all
}

fn without_reasons(mut plan: Value) -> Value {
    fn strip(tasks: &mut Value) {
        for task in tasks.as_array_mut().into_iter().flatten() {
            if let Some(fields) = task.as_object_mut() {
                fields.remove(WHY);
                fields.entry("subtasks").and_modify(strip);
            }
        }
    }
    strip(&mut plan["tasks"]);
    plan
}

/// Writes YAML in blocks.
#[derive(Default)]
struct Writer(String);

impl Writer {
    fn plan(mut self, plan: &Value) -> String {
        let Some(fields) = plan.as_object() else { return format!("{plan:#}\n") };
        for (name, value) in ordered(fields, proposed_fields().plan) {
            if name == "tasks" && value.as_array().is_some_and(|tasks| !tasks.is_empty()) {
                self.0.push_str("tasks:\n");
                self.tasks(value, 0);
            } else {
                self.entry(name, value, 0);
            }
        }
        self.0
    }

    fn tasks(&mut self, tasks: &Value, indent: usize) {
        for task in tasks.as_array().into_iter().flatten() {
            let Some(fields) = task.as_object() else {
                let _ = writeln!(self.0, "{:indent$}- {}", "", flow(task));
                continue;
            };
            if let Some(why) = fields.get(WHY).and_then(Value::as_str) {
                let _ = writeln!(self.0, "{:indent$}# {}", "", plain_line(why));
            }
            let fields = ordered(fields, proposed_fields().task).into_iter().filter(|(name, _)| *name != WHY);
            let begin = self.0.len();
            for (name, value) in fields {
                if name == "subtasks" && value.as_array().is_some_and(|tasks| !tasks.is_empty()) {
                    let _ = writeln!(self.0, "{:1$}subtasks:", "", indent + 2);
                    self.tasks(value, indent + 2);
                } else {
                    self.entry(name, value, indent + 2);
                }
            }
            if self.0.len() == begin {
                let _ = writeln!(self.0, "{:indent$}- {{}}", "");
            } else {
                self.0.replace_range(begin + indent..=begin + indent, "-");
            }
        }
    }

    fn entry(&mut self, name: &str, value: &Value, indent: usize) {
        let name = scalar(name);
        match value {
            Value::String(text) if is_block(text) => {
                let _ = writeln!(self.0, "{:indent$}{name}: |-", "");
                for line in text.lines() {
                    let width = if line.is_empty() { 0 } else { indent + 2 };
                    let _ = writeln!(self.0, "{:width$}{line}", "");
                }
            }
            Value::Object(fields) if !fields.is_empty() => {
                let _ = writeln!(self.0, "{:indent$}{name}:", "");
                for (name, value) in fields {
                    self.entry(name, value, indent + 2);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let _ = writeln!(self.0, "{:indent$}{name}:", "");
                for item in items {
                    let begin = self.0.len();
                    if let Some(fields) = item.as_object().filter(|fields| !fields.is_empty()) {
                        for (name, value) in fields {
                            self.entry(name, value, indent + 4);
                        }
                        self.0.replace_range(begin + indent + 2..=begin + indent + 2, "-");
                    } else {
                        let _ = writeln!(self.0, "{:1$}- {2}", "", indent + 2, flow(item));
                    }
                }
            }
            Value::String(_)
            | Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_) => {
                let _ = writeln!(self.0, "{:indent$}{name}: {}", "", flow(value));
            }
        }
    }
}

/// Returns the fields, the known ones in their order and the others after them.
fn ordered<'m>(fields: &'m Map<String, Value>, order: &[&str]) -> Vec<(&'m str, &'m Value)> {
    let position = |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
    let mut all: Vec<(&str, &Value)> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    all.sort_by_key(|(name, _)| position(name));
    all
}

/// Returns whether a text is readable as a block of lines, and means the same as one.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.ends_with('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || !c.is_control())
        && !text.contains(['\u{2028}', '\u{2029}', '\u{85}', '\u{feff}'])
        && text.lines().all(|line| !line.trim().is_empty() || line.is_empty())
}

/// Returns a value on one line. It is JSON, which YAML includes, but for plain words.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn scalar(text: &str) -> String {
    // YAML reads these words as other values.
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '/' | '-'))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planning() -> Planning {
        let usage = TokenUsage { input: 900, output: 250, cost: Some(0.0125) };
        Planning { planner: "small at localhost".to_owned(), turns: 2, usage }
    }

    #[test]
    fn a_plan_reads_as_a_person_would_write_it() {
        let plan = json!({
            "tasks": [
                {"run": "make -j2 | tee log", "x-why": "Tests need\nprograms.", "name": "Programs are built", "id": "build"},
                {"id": "all", "needs": ["build"], "subtasks": [
                    {"id": "a", "run": "set -u\nif true; then\n  ./a\nfi", "approval": {"ask": "Go?", "options": ["yes", "no"]}},
                    {"id": "b", "calls": [{"write_file": {"path": "x", "content": "1\n"}}, {"sleep": {"duration": "1s"}}]},
                ]},
            ],
            "name": "release",
        });
        insta::assert_snapshot!(plan_text(&plan, &planning()));
    }

    #[test]
    fn every_text_is_read_back_as_it_was() {
        for text in [
            "", " a", "a ", "a: b", "# a", "yes", "1", "- a", "a\nb", "a\n\n  b", "a\n", "\ta\nb", "a\r\nb",
            "é\u{85}", "\u{7}", "{", "'", "\"", "${{ x }}", "a\n \nb", "~", "=", "a #b",
        ] {
            let plan = json!({"name": "p", "tasks": [{"id": "a", "description": text, "call": {"log": {"message": text}}}]});
            let written = plan_text(&plan, &planning());
            assert!(is_generated(&written));
            let mut again = plan_value(&written).unwrap();
            again.as_object_mut().unwrap().remove("x-planning");
            assert_eq!(again, plan, "{written}");
            assert!(!written.contains("\n{\n"), "{text:?} needs JSON");
        }
    }

    #[test]
    fn a_refused_plan_keeps_its_problems_and_its_text() {
        let text = refused_text("m\n", "{\"tasks\": [", &["line 1: it\nends".to_owned()]);
        assert_eq!(
            text,
            "{\"tasks\": [\n\n# Proposed by a planner, `m`, and refused:\n# - line 1: it ends\n"
        );
    }
}
