//! Semantics of expressions.

use serde_json::{Value, json};
use taskpawl_model::expr::{FILTERS, Name, ROOTS, TESTS, evaluate, evaluate_condition, mentions, references};

use super::operators::OPERATORS;
use super::{data, shown};

#[test]
fn reference_examples_give_the_documented_results() {
    let only_in_arguments = ["raw", "env"];
    let words = ROOTS.iter().chain(OPERATORS).chain(FILTERS).chain(TESTS);
    for word in words.filter(|word| !only_in_arguments.contains(&word.name)) {
        assert_eq!(shown(word.example), word.gives, "{}", word.example);
    }
}

/// Compares the tables of the language reference with the code.
#[test]
fn reference_lists_every_word() {
    let code = |text: &str| text.replace('\n', "\\n").replace('|', "\\|");
    let table = |title: &str, words: &[taskpawl_model::expr::Word]| {
        let row = |word: &taskpawl_model::expr::Word| {
            let (example, gives) = (code(word.example), code(word.gives));
            format!("| `{}` | {} | `{example}` | `{gives}` |", code(word.name), word.meaning)
        };
        let rows: Vec<String> = words.iter().map(row).collect();
        format!(
            "| {title} | what it is | example | gives |\n| --- | --- | --- | --- |\n{}\n",
            rows.join("\n")
        )
    };
    let tables =
        [table("name", ROOTS), table("operator", OPERATORS), table("filter", FILTERS), table("test", TESTS)];
    let reference = include_str!("../../../../../docs/plan-language.md");
    for table in tables {
        assert!(reference.contains(&table), "docs/plan-language.md has to have:\n\n{table}");
    }
}

#[test]
fn operators() {
    let table: Vec<String> = [
        "1 + 2 * 3",
        "(1 + 2) * 3",
        "7 / 2",
        "6 / 2",
        "7 // 2",
        "-7 // 2",
        "-7 % 3",
        "7 % -3",
        "7.5 % 2",
        "1 + 2.5",
        "- - 3",
        "-3 | abs",
        "18446744073709551615 - 1",
        "-9223372036854775808",
        "'a' + 'b'",
        "[1] + [2]",
        "'a' ~ 1 ~ true ~ [1] ~ {'a': none}",
        "1 ~ 2 + 3 | int",
        "1 == 1.0",
        "[1, {'a': 2.0}] == [1.0, {'a': 2}]",
        "'a' < 'b' and 2 <= 2.0",
        "not 1 == 2",
        "not false and false",
        "'' or 'other'",
        "1 and 2",
        "true or params.nothing",
        "'b' in 'abc'",
        "2 in [1, 2.0]",
        "'region' in {'region': 1}",
        "3 not in [1, 2]",
        "'yes' if params.deploy else 'no'",
        "1 if false else 2 if false else 3",
        "params.list[0]",
        "params.list[-1]",
        "params['list'].1",
        "params.list[index - 1]",
        "params.region[0]",
        "params.list[1:]",
        "'häuser'[:2]",
        "'abc'[-2:]",
        "tasks['build-lib'].results[0].a",
        "tasks['build-lib'].results | length",
        "tasks['build-lib'].context.note",
        "tasks['build-lib']['context']['compile'].exitCode",
        "tasks['build-lib'].status",
        "tasks.skipped.result",
        "tasks.skipped.status",
        "tasks.failed.error",
        "tasks.skipped.result.json.size | default(0)",
        "tasks.skipped.result is none",
        "tasks.skipped.result.json is defined",
        "params.nothing is defined",
        "params.nothing is not defined",
        "params.empty | default('x')",
        "params.empty | default('x', true)",
        "{'a': [1, {'b': none}], \"c\": params.region}",
        "range(3)",
        "range(2, 4)",
        "range(4, 2)",
        "[]",
        "{}",
        "[1, 2, ]",
        r"'\n\t\\\'\u00e4'",
        "1e3",
        "1_000",
    ]
    .iter()
    .map(|text| format!("{text:<56}{}", shown(text)))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn lone_expression_keeps_its_type_and_an_embedded_one_becomes_text() {
    let value = json!({
        "number": "${{ params.count }}",
        "list": "${{params.list}}",
        "object": "${{ {'a': {'b': params.count}} }}",
        "none": "${{ none }}",
        "text": "n=${{ params.count }}, ${{ params.deploy }}, ${{ params.list }}",
        "blank": " ${{ params.count }}",
        "escaped": "$${{ params.count }} ${{ '$${{' }}",
        "deep": [{"x": ["${{ index }}", 1, null]}],
        "plain": "no expression",
    });
    let shown = serde_json::to_string_pretty(&evaluate(&value, &data()).unwrap().value).unwrap();
    insta::assert_snapshot!(shown);
}

#[test]
fn condition_is_bare_or_in_braces_and_never_text() {
    let shown = |text: &str| match evaluate_condition(text, &data()) {
        Ok(holds) => holds.value.to_string(),
        Err(error) => error.to_string(),
    };
    let table: Vec<String> = [
        "params.deploy",
        "${{ params.deploy }}",
        "  ${{ not params.deploy }}\n",
        "params.count > 2 and tasks.skipped.status == 'skipped'",
        "none",
        "0",
        "[]",
        "params.list",
        "params.empty",
        "params.region",
        "'false'",
        "${{ params.deploy }} == true",
        "${{ params.deploy",
        "",
    ]
    .iter()
    .map(|text| format!("{text:<58}{}", shown(text)))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn references_are_found_without_evaluation() {
    let value = json!({
        "a": "x ${{ params.region ~ tasks['build-lib'].result.exitCode }} ${{ tasks.a.context.b.c }}",
        "b": [{"c": "${{ context['fetch'].x if item else index }}"}],
        "d": "${{ [attempt, {'k': tasks.a.status}] | default(params.other) }}",
    });
    insta::assert_debug_snapshot!(references(&value).unwrap());
    let last_mention = |text: &str| mentions(&json!(text)).unwrap().pop().unwrap();
    assert_eq!(last_mention("ä ${{ 1 + item }}").offset, 11);
    assert_eq!(last_mention("${{ params.x }}").name, Name::Param("x".to_owned()));
    assert!(mentions(&Value::Null).unwrap().is_empty());
}
