//! Expressions that try to crash or stall the evaluator must fail early. The cost limit counts work, not time, so that
//! the result is deterministic.

use proptest::prelude::*;
use serde_json::{Value, json};
use taskpawl_model::expr::{
    Data, evaluate, evaluate_args, evaluate_condition, evaluate_expression, references,
};
use taskpawl_model::plan::parse_plan;

use super::data;

const MANY: usize = 100_000;

fn outcome(text: &str, data: &Data) -> String {
    let lone = json!(format!("${{{{ {text} }}}}"));
    let first = references(&lone).map_or_else(|error| error.fault.to_string(), |_| "fine".to_owned());
    let second = match evaluate(&lone, data) {
        Ok(value) => format!("a value of {} bytes", value.value.to_string().len()),
        Err(error) => error.fault.to_string(),
    };
    if first == "fine" { second } else { first }
}

#[test]
fn deep_nesting_of_every_operator_is_an_error() {
    let nests = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{'a':", "1", "}"),
        ("-", "1", ""),
        ("not ", "1", ""),
        ("", "1", "+1"),
        ("", "1", "-1"),
        ("", "1", "*1"),
        ("", "1", "~1"),
        ("", "1", " and 1"),
        ("", "1", " or 1"),
        ("", "1", " if 1 else 1"),
        ("1 if ", "1", " else 1"),
        ("1 if 1 else ", "1", ""),
        ("", "item", ".a"),
        ("", "item", "[0]"),
        ("item[", "0", "]"),
        ("item[", "0", ":]"),
        ("", "item", "|trim"),
        ("1|default(", "1", ")"),
        ("", "item", " is defined"),
        ("1 is divisibleby(", "1", ")"),
        ("range(", "1", ")"),
        ("", "1", "==1"),
        ("", "1", " not in [1]"),
        ("f(", "1", ")"),
        ("", "tasks", ".a"),
        ("tasks[", "1", "]"),
    ];
    let table: Vec<String> = nests
        .iter()
        .map(|(before, middle, after)| {
            // Tried with more bytes than an expression may have, and with as many levels as fit into that limit.
            let level = before.len() + after.len();
            let short = 60_000 / level;
            let text = |levels: usize| format!("{}{middle}{}", before.repeat(levels), after.repeat(levels));
            let (long, short) = (outcome(&text(MANY), &data()), outcome(&text(short), &data()));
            assert_eq!(long, "the expression has more than 65536 bytes");
            format!("{before}{middle}{after:<16} {short}")
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn plans_with_oversized_expressions_are_refused() {
    for (before, after) in
        [("(", ")"), ("[", "]"), ("not ", ""), ("", "+1"), ("", ".a"), ("", "|trim"), ("1 if 1 else ", "")]
    {
        let text = format!("{}attempt{}", before.repeat(MANY), after.repeat(MANY));
        for plan in [
            json!([{"id": "a", "when": text}]),
            json!([{"id": "a", "forEach": {"in": text}, "run": "x"}]),
            json!([{"id": "a", "call": {"log": {"message": format!("${{{{ {text} }}}}")}}}]),
        ] {
            let errors = parse_plan(&plan.to_string()).unwrap_err().to_string();
            assert!(
                errors.contains("the expression has more than 65536 bytes"),
                "{}",
                errors.chars().take(200).collect::<String>()
            );
        }
    }
}

#[test]
fn multiplied_values_fail_before_they_are_built() {
    let mut data = data();
    data.item = Some("y".repeat(256 * 1024).into());
    data.params.insert("numbers".to_owned(), (0..50_000).collect());
    let nested =
        |inner: &str, by: &str, times: usize| format!("{}{inner}{}", "(".repeat(times), by.repeat(times));
    let cases = [
        "'x' * 1000000000".to_owned(),
        "[0] * 1000000000".to_owned(),
        "range(1000000000)".to_owned(),
        "range(-9223372036854775807, 9223372036854775807)".to_owned(),
        "range(1000000000) | length".to_owned(),
        "9999999999 * 9999999999 * 9999999999".to_owned(),
        vec!["item"; 90].join(" ~ "),
        vec!["item"; 90].join(" + "),
        format!("[{}]", vec!["item"; 5000].join(",")),
        format!("[{}]", vec!["params.numbers"; 5000].join(",")),
        vec!["params.numbers"; 90].join(" + "),
        "params.numbers | join(item)".to_owned(),
        "item | replace('y', item)".to_owned(),
        "item | replace('', item)".to_owned(),
        nested("item", "|replace('y','yyyyyyyyyyyyyyyy'))", 20),
        nested("item", "|urlencode|replace('y','%%%%'))", 20),
        nested("item", "|tojson)", 45),
        nested("params.numbers", "|tojson|list)", 20),
        nested("item", "|list|tojson)", 20),
        "item | trim(item)".to_owned(),
        "params.numbers | map(attribute='x', default=item)".to_owned(),
        "[params.numbers == params.numbers, params.numbers in [params.numbers]]".to_owned(),
        format!("1 in [{}]", vec!["params.numbers"; 5000].join(",")),
        "params.numbers | selectattr('x', 'in', params.numbers)".to_owned(),
        "range(100000) | selectattr('x', 'in', range(100000))".to_owned(),
        "1.5 | round(999999999)".to_owned(),
        format!("'{}' | fromjson", "[".repeat(60_000)),
        format!("'[{}0]' | fromjson", "0,".repeat(30_000)),
        format!("'{}'", "\\u00e4".repeat(10_000)),
        "1e308 * 1e308".to_owned(),
    ];
    let table: Vec<String> = cases
        .iter()
        .map(|text| format!("{:<70}{}", text.chars().take(66).collect::<String>(), outcome(text, &data)))
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn expressions_of_one_value_share_a_cost_limit() {
    let mut data = data();
    data.item = Some("y".repeat(256 * 1024).into());
    let many = Value::from(vec!["${{ item }}"; 1000]);
    let error = evaluate(&many, &data).unwrap_err();
    assert_eq!(error.fault.to_string(), "the expression reads or copies more than 33554432 bytes");
    let text = json!("${{ item }} ".repeat(1000));
    assert!(evaluate(&text, &data).is_err());
}

fn fragment() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "params",
        "context",
        "tasks",
        "item",
        "index",
        ".",
        "['a']",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ":",
        ",",
        "|",
        "is",
        "not",
        "in",
        "and",
        "or",
        "if",
        "else",
        "==",
        "<",
        "+",
        "-",
        "~",
        "*",
        "/",
        "//",
        "%",
        "default",
        "raw",
        "map",
        "sort",
        "attribute=",
        "'a'",
        "\"",
        "\\",
        "1",
        "0",
        "1.5",
        "-1",
        "1e9",
        "true",
        "none",
        "range",
        "region",
        "list",
        "result",
        " ",
        "\n",
        "ä",
        "${{",
        "}}",
        "$",
        "`",
        "<<",
        "#",
        "$(",
    ]);
    proptest::collection::vec(prop_oneof![9 => words.prop_map(str::to_owned), 1 => any::<String>()], 0..24)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_text_panics(text in fragment()) {
        let data = data();
        let whole = format!("${{{{ {text} }}}}");
        for text in [&text, &whole] {
            _ = references(&json!(text));
            _ = evaluate(&json!(text), &data);
            _ = evaluate_condition(text, &data);
            let args = json!({"command": text});
            _ = evaluate_args("shell", args.as_object().unwrap(), &data);
        }
    }
}

#[test]
fn numbers_sort_exactly_across_types() {
    let data = Data::default();
    let sorted = |list: &str| evaluate_expression(&format!("{list} | sort"), &data).unwrap().value;
    // Converted to a float for the comparison, both integers would equal the fraction, although they differ from each
    // other.
    let mixed = "[9007199254740993, 9007199254740992.0, 9007199254740992, 9007199254740994.0]";
    assert_eq!(
        sorted(mixed).to_string(),
        "[9007199254740992.0,9007199254740992,9007199254740993,9007199254740994.0]"
    );
    assert_eq!(evaluate_expression("9007199254740993 == 9007199254740992.0", &data).unwrap().value, false);
}

#[test]
fn comment_after_a_continued_line_is_recognized() {
    let args = serde_json::json!({"command": "x \\\n# don't\n echo 'hi ${{ 'a' }}'"});
    let error = evaluate_args("shell", args.as_object().unwrap(), &Data::default()).unwrap_err();
    assert!(error.to_string().contains("quotes"), "{error}");
}
