//! Messages of invalid expressions.

use serde_json::json;
use taskpawl_model::expr::{ExprError, args_references, evaluate, references};

use super::{data, shown};

fn checked(text: &str) -> String {
    let message = |error: ExprError| {
        let hint = error.hint.map_or(String::new(), |hint| format!("\n      hint: {hint}"));
        format!("{text}\n  {}: {}{hint}", error.offset, error.fault)
    };
    match references(&json!(text)) {
        Ok(_) => format!("{text}\n  fine"),
        Err(error) => message(error),
    }
}

#[test]
fn parse_errors_name_the_position_and_a_fix() {
    let table: Vec<String> = [
        "${{ tasks.build-lib.result }}",
        "${{ tasks.build-2.result }}",
        "${{ context.my-call.stdout }}",
        "${{ params.my-name }}",
        "${{ tasks.a.result.exit-code }}",
        "${{ params.count-index }}",
        "${{ tasks.v1.build.result }}",
        "${{ tasks.a.reslt }}",
        "${{ tasks.a.output }}",
        "${{ tasks.a }}",
        "${{ tasks['a'] }}",
        "${{ tasks[params.x].result }}",
        "${{ tasks }}",
        "${{ params }}",
        "${{ context[item] }}",
        "${{ parms.x }}",
        "${{ steps.a.outputs.x }}",
        "${{ null }}",
        "${{ region }}",
        "${{ len(params.list) }}",
        "${{ params.name.strip() }}",
        "${{ success() }}",
        "${{ foo(1) }}",
        "${{ params.x | lenght }}",
        "${{ params.x | strip }}",
        "${{ params.x | len }}",
        "${{ params.x | to_json }}",
        "${{ params.x | from_json }}",
        "${{ params.x | parse }}",
        "${{ params.x | toUpper }}",
        "${{ params.x | str }}",
        "${{ params.x | tojson(indent=2) }}",
        "${{ params.x | replace('a') }}",
        "${{ params.x | map('upper') }}",
        "${{ params.x is define }}",
        "${{ params.x is startingwith }}",
        "${{ params.x && params.y }}",
        "${{ params.x = 1 }}",
        "${{ !params.x }}",
        "${{ a ? b : c }}",
        "${{ 2 ** 3 }}",
        "${{ 1 < 2 < 3 }}",
        "${{ 1 if params.x }}",
        "${{ params.x",
        "${{ 'abc }}",
        "${{ '\\q' }}",
        "${{ }}",
        "${{ 1 2 }}",
        "${{ (1 }}",
        "${{ [1, }}",
        "${{ {'a' 1} }}",
        "${{ params. }}",
        "${{ params.x[] }}",
        "${{ 1.5.2x }}",
        "${{ 99999999999999999999 }}",
        "${{ 1e999 }}",
        "${{ ünder }}",
        "${{ params.x | raw }}",
        "${{ params.x | raw | trim }}",
        "${{ (params.x | raw) ~ 'a' }}",
    ]
    .iter()
    .map(|text| checked(text))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn evaluation_errors_name_the_missing_part_and_the_existing_ones() {
    let table: Vec<String> = [
        "tasks['build-lib'].result.jsn",
        "tasks['build-lib'].result.json.size.x",
        "tasks['build-lib'].result.stdout.size",
        "tasks['build-lib'].results[2]",
        "tasks['build-lib'].context.compil",
        "tasks.plain.result.json.size",
        "tasks.skipped.result.json",
        "tasks.unknown.result",
        "params.regoin",
        "params.list[5]",
        "params.list['x']",
        "params.region[1.5]",
        "context.fetch.json.names.x ~ 'a'",
        "[] | first",
        "-params.region",
        "1 + 'a'",
        "1 < 'a'",
        "1 in 5",
        "1 in 'abc'",
        "1 / 0",
        "9223372036854775807 * 9223372036854775807",
        "'a' * 3",
        "none ~ 'a'",
        "params.list | sum",
        "params.list | upper",
        "'x' | int",
        "'{' | fromjson",
        "'18446744073709551616' | fromjson",
        "'{\"a\": {\"b\": 1, \"b\": 2}}' | fromjson",
        "[{'a': 1}, {}] | map(attribute='a')",
        "[1, 'a'] | sort",
        "[] | max",
        "{1: 2}",
        "params.list[1.5:]",
    ]
    .iter()
    .map(|text| format!("{text}\n  {}", shown(text)))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn errors_name_the_path_within_the_value() {
    let value = json!({"argv": ["a", "b", {"c d": "x ${{ params.nothing }}"}]});
    insta::assert_snapshot!(evaluate(&value, &data()).unwrap_err());
    let value = json!({"argv": ["a", "${{ nothing }}"]});
    insta::assert_snapshot!(references(&value).unwrap_err());
    let value = json!({"env": {"${{ item }}": 1}});
    insta::assert_snapshot!(args_references("exec", value.as_object().unwrap()).unwrap_err());
}
