//! Replaces names in expressions, for plans that become a part of other plans.
//!
//! Only names are replaced, at the places where the parser found them. An expression in place of a name is written in
//! parentheses, so that it stays one operand.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::ast::{Kind, Name};
use super::error::{ExprError, Fault};
use super::param_type::ParamType;
use super::parser::parse;
use super::scan::{OPEN, Piece, pieces};
use super::template::{alone, shifted};
use super::words::TYPED;

/// Returns the text in place of a name; `None` keeps the name.
pub(crate) type Renaming<'r> = dyn FnMut(&Name) -> Option<String> + 'r;

/// Replaces names in a condition: an expression, bare or in `${{ … }}`.
pub(crate) fn rename_in_condition(text: &str, renaming: &mut Renaming<'_>) -> Result<String, ExprError> {
    let mut rename = || {
        let (source, at) = alone(text)?;
        let renamed = spliced(text, &replacements(source, at, renaming)?);
        let (source, _) = alone(&renamed)?;
        parse(source)?;
        Ok(renamed)
    };
    rename().map_err(|fault: Fault| fault.at("", 0))
}

/// Replaces names in the expressions of a value.
///
/// # Errors
/// An expression is invalid, or too long or too deep with its new names.
pub(crate) fn rename_in_value(value: &mut Value, renaming: &mut Renaming<'_>) -> Result<(), ExprError> {
    match value {
        Value::String(text) if text.contains(OPEN) => {
            *text = rename_in_text(text, renaming).map_err(|fault| fault.at("", 0))?;
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(|item| rename_in_value(item, renaming)),
        Value::Object(map) => map.values_mut().try_for_each(|item| rename_in_value(item, renaming)),
    }
}

fn rename_in_text(text: &str, renaming: &mut Renaming<'_>) -> Result<String, Fault> {
    let mut found = Vec::new();
    for piece in pieces(text)? {
        if let Piece::Expression { source, at } = piece {
            found.extend(replacements(source, at, renaming)?);
        }
    }
    let renamed = spliced(text, &found);
    for piece in pieces(&renamed)? {
        if let Piece::Expression { source, .. } = piece {
            parse(source)?;
        }
    }
    Ok(renamed)
}

/// Returns the new texts of names in an expression that begins at byte `at`, with the ranges that they replace.
fn replacements(
    source: &str,
    at: usize,
    renaming: &mut Renaming<'_>,
) -> Result<Vec<(Range<usize>, String)>, Fault> {
    let parsed = parse(source).map_err(|fault| shifted(fault, at))?;
    let mut found = Vec::new();
    parsed.expr.name_ranges(&mut |name, range| {
        found.extend(renaming(name).map(|text| (at + range.start..at + range.end, text)));
    });
    // The parts of `a if b else c` are not in the order of the text.
    found.sort_by_key(|(range, _)| range.start);
    Ok(found)
}

fn spliced(text: &str, replacements: &[(Range<usize>, String)]) -> String {
    let (mut output, mut end) = (String::with_capacity(text.len()), 0);
    for (range, new) in replacements {
        output.push_str(&text[end..range.start]);
        output.push_str(new);
        end = range.end;
    }
    output + &text[end..]
}

/// Returns the name in a text that is one `${{ NAME }}`.
pub(crate) fn lone_name(text: &str) -> Option<Name> {
    let [Piece::Expression { source, .. }] = pieces(text).ok()?[..] else { return None };
    if let Kind::Name(name) = parse(source).ok()?.expr.kind { Some(name) } else { None }
}

/// Returns an expression that evaluates to a value whose texts may contain expressions. It is one operand.
///
/// # Errors
/// An expression in the value is invalid.
pub(crate) fn as_expression(value: &Value) -> Result<String, ExprError> {
    operand(value, &joined).map_err(|fault| fault.at("", 0))
}

/// Returns an expression that evaluates to a value whose texts are only texts. It is one operand.
pub(crate) fn as_literal(value: &Value) -> String {
    operand(value, &|text| Ok(literal(text))).expect("BUG: a text without expressions is invalid")
}

/// Returns an expression that fails unless the value of `text`, which is one operand, has a type. Errors name the parameter.
pub(crate) fn typed_expression(text: &str, kind: ParamType, param: &str) -> String {
    format!("({text} | {TYPED}('{kind}', {}))", literal(param))
}

type Write<'w> = &'w dyn Fn(&str) -> Result<String, Fault>;

fn operand(value: &Value, write: Write<'_>) -> Result<String, Fault> {
    let written = written(value, write)?;
    Ok(match value {
        Value::Null | Value::Bool(_) => written,
        Value::String(text) if written == literal(text) => written,
        // A number needs parentheses, too: `params.n.0` must not become the number `3.0`.
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => format!("({written})"),
    })
}

/// Recursion is safe: values of plans are at most 64 deep.
fn written(value: &Value, write: Write<'_>) -> Result<String, Fault> {
    Ok(match value {
        Value::Null => "none".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => write(text)?,
        Value::Array(items) => {
            let items = items.iter().map(|item| written(item, write)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let field =
                |(key, value): (&String, &Value)| Ok(format!("{}: {}", literal(key), written(value, write)?));
            let fields = map.iter().map(field).collect::<Result<Vec<_>, Fault>>()?;
            format!("{{{}}}", fields.join(", "))
        }
    })
}

/// Returns the expression for a text with expressions. One alone keeps its type; with other text the value is text.
fn joined(text: &str) -> Result<String, Fault> {
    if !text.contains(OPEN) {
        return Ok(literal(text));
    }
    let pieces = pieces(text)?;
    if let [Piece::Expression { source, .. }] = pieces[..] {
        parse(source)?;
        return Ok(source.trim().to_owned());
    }
    let part = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => Ok(literal(text)),
        Piece::Expression { source, .. } => {
            parse(source)?;
            Ok(format!("({})", source.trim()))
        }
    };
    let parts = pieces.iter().map(part).collect::<Result<Vec<_>, Fault>>()?;
    Ok(parts.join(" ~ "))
}

/// Returns a text as a literal. It contains neither the start of an expression nor a reference to a secret.
fn literal(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('\'');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => written.push_str("\\'"),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '$' if characters.peek() == Some(&'{') => written.push_str("\\u0024"),
            character if character.is_ascii_control() => {
                write!(written, "\\u{:04x}", u32::from(character)).expect("BUG: writing to a string failed");
            }
            character => written.push(character),
        }
    }
    written.push('\'');
    written
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::expr::{Data, evaluate};

    fn renamed(text: &str, new: &str) -> String {
        let mut value = Value::from(text);
        let renaming = |name: &Name| matches!(name, Name::Param(name) if name == "x").then(|| new.to_owned());
        rename_in_value(&mut value, &mut { renaming }).unwrap();
        value.as_str().unwrap().to_owned()
    }

    #[test]
    fn only_names_are_replaced_at_their_places() {
        for (text, expected) in [
            ("${{ params.x }}", "${{ (a or b) }}"),
            ("${{params['x'].y|upper}}", "${{(a or b).y|upper}}"),
            (
                "params.x $${{ params.x }} ${{ 'params.x' ~ params.x }}",
                "params.x $${{ params.x }} ${{ 'params.x' ~ (a or b) }}",
            ),
            ("${{ params.x if params.y else params.x }}", "${{ (a or b) if params.y else (a or b) }}"),
            ("ä ${{ {'x': [params.x]} }}", "ä ${{ {'x': [(a or b)]} }}"),
            ("${{ params.xx }}", "${{ params.xx }}"),
        ] {
            let mut value = Value::from(text);
            let mut renaming = |name: &Name| {
                (*name == Name::Param("x".to_owned())).then(|| "(params.a or params.b)".to_owned())
            };
            rename_in_value(&mut value, &mut renaming).unwrap();
            let expected = expected.replace("(a or b)", "(params.a or params.b)");
            assert_eq!(value, json!(expected), "{text}");
        }
        let mut renaming = |_: &Name| Some("1".to_owned());
        for (text, expected) in [("params.x > 0", "1 > 0"), (" ${{ params.x }} ", " ${{ 1 }} ")] {
            assert_eq!(rename_in_condition(text, &mut renaming).unwrap(), expected);
        }
    }

    #[test]
    fn literals_come_back_as_they_were() {
        let values = [
            json!(null),
            json!(true),
            json!(-3),
            json!(2.5e300),
            json!(u64::MAX),
            json!("it's \"one\" \\ two\n\t\r\u{7}\u{8} ä"),
            json!("${secret:KEY} }} {{ x }} ${{ params.x }} $"),
            json!(["a", [], {"k": {"'": 1}}]),
            json!({}),
        ];
        for value in values {
            for text in ["${{ params.x }}", "${{params.x}}"] {
                let text = renamed(text, &as_literal(&value));
                let evaluated = evaluate(&json!([text.clone()]), &Data::default()).unwrap().value;
                // Evaluated values are shielded: they name no secrets.
                let evaluated = evaluated[0].to_string().replace("$${secret:", "${secret:");
                assert_eq!(evaluated, value.to_string(), "{text}");
            }
        }
        let nested = renamed("${{ params.x.0 ~ params.x['1'] }}", &as_literal(&json!(["a", "b"])));
        assert_eq!(nested, "${{ (['a', 'b']).0 ~ (['a', 'b'])['1'] }}");
    }

    #[test]
    fn texts_with_expressions_are_joined() {
        for (value, expected) in [
            (json!("${{ params.a }}"), "(params.a)"),
            (json!("x ${{ params.a }}$${{"), "('x ' ~ (params.a) ~ '\\u0024{{')"),
            (json!(["${{ tasks.a.result }}", 1]), "([tasks.a.result, 1])"),
        ] {
            assert_eq!(as_expression(&value).unwrap(), expected);
        }
        assert!(as_expression(&json!("${{ a + }}")).is_err());
    }

    #[test]
    fn an_expression_that_becomes_too_long_is_refused() {
        let mut value = json!("${{ params.x ~ params.x }}");
        let long = literal(&"a".repeat(40_000));
        assert!(rename_in_value(&mut value, &mut |_: &Name| Some(long.clone())).is_err());
    }
}
