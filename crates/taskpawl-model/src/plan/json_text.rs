//! Parses a JSON text to a tree, in builds without YAML. Errors have the path of a value; those of the syntax have a position.

use std::borrow::Cow;

use serde_json::Value;
use taskpawl_json::{JsonError, Position, path_text};

use super::node::{Content, Entry, Node};
use super::text_rules::Rules;
use super::{PlanError, PlanProblem};

/// Returns the text: JSON needs no preparation.
#[cfg(not(feature = "yaml"))]
pub(super) fn prepared(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// Parses a text; `None`, with an error added, if there is no tree.
pub(super) fn parse(text: &str, rules: Rules, errors: &mut Vec<PlanError>) -> Option<Node<'static>> {
    let tree = value(text).and_then(|value| {
        node(value, rules.max_depth).ok_or_else(|| {
            let problem = PlanProblem::TooDeep { limit: rules.max_depth };
            PlanError { at: Position::default(), path: String::new(), problem, hint: None }
        })
    });
    tree.map_err(|error| errors.push(error)).ok()
}

fn value(text: &str) -> Result<Value, PlanError> {
    if text.trim().is_empty() {
        let at = Position { line: 1, column: 1 };
        return Err(PlanError { at, path: String::new(), problem: PlanProblem::Empty, hint: None });
    }
    taskpawl_json::read(text).map_err(|error| match error {
        JsonError::Fault(fault) => {
            let path = path_text(&fault.path);
            PlanError { at: fault.at, path, problem: fault.problem.into(), hint: None }
        }
        JsonError::Syntax(error) => {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let at = Position { line: count(error.line()), column: count(error.column()) };
            let problem = PlanProblem::Syntax { message: error.to_string() };
            let hint = "write the plan in JSON: the program is built without the feature `yaml`";
            PlanError { at, path: String::new(), problem, hint: Some(hint.into()) }
        }
    })
}

/// Converts a value; `None` if it is more than `depth` levels deep.
fn node(value: Value, depth: usize) -> Option<Node<'static>> {
    let content = match value {
        Value::Null => Content::Null,
        Value::Bool(value) => Content::Bool(value),
        Value::Number(number) => Content::Number(number),
        Value::String(text) => Content::Text(Cow::Owned(text)),
        Value::Array(items) => {
            let below = depth.checked_sub(1)?;
            Content::List(items.into_iter().map(|item| node(item, below)).collect::<Option<_>>()?)
        }
        Value::Object(fields) => {
            let below = depth.checked_sub(1)?;
            let entry = |(key, value): (String, Value)| {
                let value = node(value, below)?;
                Some(Entry { key: Cow::Owned(key), key_at: Position::default(), value })
            };
            Content::Object(fields.into_iter().map(entry).collect::<Option<_>>()?)
        }
    };
    Some(Node { at: Position::default(), content })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str, max_depth: usize) -> PlanError {
        let mut errors = Vec::new();
        let rules = Rules { max_depth, ..Rules::PLAN };
        assert_eq!(parse(text, rules, &mut errors), None);
        errors.remove(0)
    }

    #[test]
    fn a_text_becomes_the_tree_of_its_value() {
        let value = json!({"name": "x", "tasks": [{"id": "a", "run": "true"}, null, true, 1.5, -3]});
        let mut errors = Vec::new();
        let node = parse(&value.to_string(), Rules::PLAN, &mut errors).unwrap();
        assert_eq!(node.to_json(9).unwrap(), value);
        assert_eq!(errors, []);
    }

    #[test]
    fn other_texts_are_refused_with_a_position_or_a_path() {
        let yaml = refused("name: x\n", 9);
        assert_eq!(yaml.at, Position { line: 1, column: 2 });
        assert!(yaml.hint.unwrap().to_string().contains("feature `yaml`"));
        let twice = refused(r#"{"tasks": [{"id": "a", "id": "b"}]}"#, 9);
        assert!(twice.problem.to_string().contains("already given"), "{}", twice.problem);
        assert_eq!(twice.path, "tasks[0]");
        assert!(matches!(refused(" \n", 9).problem, PlanProblem::Empty));
        assert!(matches!(refused("[[[1]]]", 2).problem, PlanProblem::TooDeep { limit: 2 }));
        assert!(matches!(refused(&"[".repeat(100_000), 9).problem, PlanProblem::Syntax { .. }));
    }
}
