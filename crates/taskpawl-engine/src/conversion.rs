//! Suggests a filter when an expression yields another type than the tool expects.

use serde_json::Value;
use taskpawl_model::expr::lone_expression;
use taskpawl_model::value::Map;
use taskpawl_tools::ToolError;

/// Returns the hint for an argument that consists of one expression and whose type the tool refuses.
pub(crate) fn remedy(error: &ToolError, written: &Map) -> Option<String> {
    let ToolError::InvalidArgs { field, problem, .. } = error else { return None };
    // The type error has no structured form: the two texts are taken from the message of the argument validation.
    let (expected, found) = problem.strip_prefix("has to be ")?.split_once(", but is ")?;
    let source = lone_expression(at(written, field.strip_prefix("args.")?)?.as_str()?)?;
    let takes = |kind: &str| expected.split(" or ").any(|one| one == kind);
    let is = |kind: &str| found.split(' ').any(|word| word == kind);
    let (filter, kind) = if takes("a string") && (is("array") || is("object")) {
        ("tojson", "text")
    } else if takes("a string") && (is("number") || is("boolean")) {
        ("string", "text")
    } else if takes("an integer") && is("string") {
        ("int", "a whole number")
    } else if takes("a number") && is("string") {
        ("float", "a number")
    } else {
        return None;
    };
    Some(format!("`${{{{ {} | {filter} }}}}` converts it to {kind}", operand(source)))
}

/// Returns an expression as an operand for a filter, in parentheses if it is more than a path.
fn operand(source: &str) -> String {
    let is_path = source.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '\''));
    if is_path { source.to_owned() } else { format!("({source})") }
}

/// Returns the value at a path such as `argv[1]` or `env.HOME`.
fn at<'a>(written: &'a Map, path: &str) -> Option<&'a Value> {
    let mut steps = path.split(['.', '[']);
    let mut value = written.get(steps.next()?)?;
    for step in steps {
        value = match step.strip_suffix(']') {
            Some(index) => value.get(index.parse::<usize>().ok()?)?,
            None => value.get(step)?,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hint_names_the_filter_for_the_expected_type() {
        let Value::Object(written) = json!({
            "argv": ["echo", "${{ 1 + 1 }}", "${{ params.list }}", "n${{ 1 }}"],
            "env": {"N": "${{ params['n'] }}"}, "seconds": "${{ context.seconds }}", "all": "${{ params.list }}",
        }) else {
            unreachable!()
        };
        let hint = |field: &str, problem: &str| {
            let (tool, field, problem) = ("exec".to_owned(), format!("args.{field}"), problem.to_owned());
            remedy(&ToolError::InvalidArgs { tool, field, problem }, &written).unwrap_or_default()
        };
        let number = "has to be a string, but is the number `2`";
        let text = "has to be an integer, but is the string `\"2\"`";
        assert_eq!(hint("argv[1]", number), "`${{ (1 + 1) | string }}` converts it to text");
        assert_eq!(hint("env.N", number), "`${{ params['n'] | string }}` converts it to text");
        assert_eq!(
            hint("argv[2]", "has to be a string, but is an array of 2"),
            "`${{ params.list | tojson }}` converts it to text"
        );
        assert_eq!(hint("seconds", text), "`${{ context.seconds | int }}` converts it to a whole number");
        for (field, problem) in [
            ("argv[0]", number),
            ("argv[3]", number),
            ("argv[9]", number),
            ("all[0]", number),
            ("seconds", "has to be at least 1, but is 0"),
            ("argv[1]", "has to be a string, but is null"),
        ] {
            assert_eq!(hint(field, problem), "", "{field} {problem}");
        }
    }
}
