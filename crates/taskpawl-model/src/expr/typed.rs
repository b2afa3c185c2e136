//! The types of values that are known before the run.

use serde_json::Value;

use super::ast::{Arguments, Expr, Kind, Name, Op, TaskField};
use super::error::{ExprFault, Fault};
use super::param_type::ParamType;
use super::words::TYPED;

/// Returns the type of an expression whose values all have the same one.
pub(super) fn type_of(expr: &Expr) -> Option<ParamType> {
    match &expr.kind {
        Kind::Value(value) => ParamType::of(value),
        Kind::Name(name) => type_of_name(name),
        Kind::Not(_) | Kind::Test { .. } => Some(ParamType::Boolean),
        Kind::Binary(op, ..) => type_of_operation(*op),
        Kind::If { then, otherwise, .. } => type_of(then).filter(|kind| type_of(otherwise) == Some(*kind)),
        Kind::Filter { filter, arguments, .. } => type_of_filter(filter.name, arguments),
        Kind::List(_) | Kind::Range(_) => Some(ParamType::Array),
        Kind::Object(_) => Some(ParamType::Object),
        Kind::Negate(_) => Some(ParamType::Number),
        Kind::Attribute(..) | Kind::Index(..) | Kind::Slice(..) => None,
    }
}

fn type_of_name(name: &Name) -> Option<ParamType> {
    match name {
        Name::Index | Name::Attempt => Some(ParamType::Integer),
        Name::Task { field: TaskField::Status, .. } | Name::Variable(_) => Some(ParamType::String),
        Name::Task { field: TaskField::Results, .. } => Some(ParamType::Array),
        Name::Task {
            field: TaskField::Context(_) | TaskField::Result | TaskField::Artifact(_) | TaskField::Error,
            ..
        }
        | Name::Param(_)
        | Name::Context(_)
        | Name::Item => None,
    }
}

fn type_of_operation(op: Op) -> Option<ParamType> {
    match op {
        Op::Concat => Some(ParamType::String),
        Op::Equal
        | Op::Unequal
        | Op::Less
        | Op::LessOrEqual
        | Op::Greater
        | Op::GreaterOrEqual
        | Op::In
        | Op::NotIn => Some(ParamType::Boolean),
        Op::Subtract | Op::Multiply | Op::Divide | Op::FloorDivide | Op::Remainder => Some(ParamType::Number),
        Op::Or | Op::And | Op::Add => None,
    }
}

fn type_of_filter(name: &str, arguments: &Arguments) -> Option<ParamType> {
    match name {
        "join" | "lower" | "replace" | "string" | "tojson" | "trim" | "upper" | "urlencode" => {
            Some(ParamType::String)
        }
        "length" => Some(ParamType::Integer),
        // With an argument the value may be that.
        "int" if arguments.plain.is_empty() => Some(ParamType::Integer),
        "abs" | "round" => Some(ParamType::Number),
        "float" if arguments.plain.is_empty() => Some(ParamType::Number),
        "items" | "keys" | "lines" | "list" | "map" | "rejectattr" | "selectattr" | "sort" | "split"
        | "unique" | "values" => Some(ParamType::Array),
        TYPED => written_type(arguments),
        _ => None,
    }
}

/// Returns the type that the arguments of `typed` name.
pub(super) fn written_type(arguments: &Arguments) -> Option<ParamType> {
    let Kind::Value(Value::String(word)) = &arguments.plain.first()?.kind else { return None };
    ParamType::from_word(word)
}

/// Checks that the type is written out, so that a wrong one is found before anything runs.
pub(super) fn check_type(filter: &str, arguments: &Arguments, at: usize) -> Result<(), Fault> {
    if filter != TYPED || written_type(arguments).is_some() {
        return Ok(());
    }
    let words: Vec<String> = ParamType::ALL.iter().map(|kind| format!("`'{kind}'`")).collect();
    Err(Fault::new(at, ExprFault::TypeWord).hint(format!("the types are {}", words.join(", "))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::expr::{Data, evaluate, fixed_type, typed_expression};

    /// Returns the value of an expression, or the error with its hint.
    fn value(expression: &str) -> Result<Value, String> {
        let data = Data {
            params: json!({"n": 1, "none": null, "text": "a\n"}).as_object().unwrap().clone(),
            ..Data::default()
        };
        let evaluated = evaluate(&json!(format!("${{{{ {expression} }}}}")), &data);
        evaluated.map(|found| found.value).map_err(|error| error.to_string())
    }

    #[test]
    fn values_of_another_type_fail_with_the_name_of_the_parameter() {
        for (source, kind, expected) in [
            ("params.n", ParamType::Integer, json!(1)),
            ("params.n", ParamType::Number, json!(1)),
            ("[params.n]", ParamType::Array, json!([1])),
            ("params.missing", ParamType::String, json!(7)),
        ] {
            let text = typed_expression(&format!("({source})"), kind, "it's");
            assert_eq!(value(&format!("{text} | default(7)")), Ok(expected), "{text}");
        }
        for (source, kind, expected) in [
            (
                "params.text",
                ParamType::Integer,
                "parameter `p` needs a whole number, `params.text` is the text `a\\n`; add `| int`",
            ),
            (
                "params.n",
                ParamType::String,
                "parameter `p` needs text, `params.n` is the number `1`; add `| string`",
            ),
            ("params.n / 2", ParamType::Integer, "parameter `p` needs a whole number"),
            (
                "params.none",
                ParamType::Object,
                "parameter `p` needs an object, `params.none` is none; add `| default(…)`",
            ),
        ] {
            let error = value(&typed_expression(&format!("({source})"), kind, "p")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let error = value("params.n | typed(params.text)").unwrap_err();
        assert!(error.contains("`typed` needs a type as a literal text"), "{error}");
    }

    #[test]
    fn types_are_known_where_all_values_have_the_same() {
        for (source, expected) in [
            ("params.a ~ 1", Some(ParamType::String)),
            ("tasks.a.result.stdout | trim", Some(ParamType::String)),
            ("tasks.a.status", Some(ParamType::String)),
            ("tasks.a.results", Some(ParamType::Array)),
            ("params.a | int", Some(ParamType::Integer)),
            ("params.a | int(none)", None),
            ("params.a | abs", Some(ParamType::Number)),
            ("params.a is none", Some(ParamType::Boolean)),
            ("'a' if params.a else 'b'", Some(ParamType::String)),
            ("'a' if params.a else 1", None),
            ("params.a or 'b'", None),
            ("params.a + params.b", None),
            ("{'a': 1}", Some(ParamType::Object)),
            ("params.a | typed('boolean')", Some(ParamType::Boolean)),
            ("tasks.a.result", None),
            ("a +", None),
        ] {
            assert_eq!(fixed_type(source), expected, "{source}");
        }
    }
}
