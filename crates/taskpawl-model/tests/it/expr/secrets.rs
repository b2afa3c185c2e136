//! Secrets and expressions: a value inserted by an expression can never name a secret.

use serde_json::{Value, json};
use taskpawl_model::expr::{Data, args_mentions, evaluate_args, with_secret_variables};
use taskpawl_model::value::secret_names;

fn evaluated(tool: &str, args: Value) -> Value {
    let map = |value: Value| value.as_object().cloned().unwrap();
    let params = map(
        json!({"evil": "${secret:STOLEN}", "half": "{secret:STOLEN}", "list": ["${secret:STOLEN}"], "name": "STOLEN}"}),
    );
    let data = Data { params, ..Data::default() };
    let args = evaluate_args(tool, &map(args), &data).unwrap().args;
    let names: Vec<String> = secret_names(&args).into_iter().collect();
    json!({"args": args, "names": names})
}

#[test]
fn inserted_values_cannot_name_secrets() {
    let found = evaluated(
        "x",
        json!({
            "own": "${secret:OWN} ${{ params.evil }}",
            "alone": "${{ params.evil }}",
            "list": "${{ params.list }}",
            "half": "$${{ 1 }} ${{ '$' }}${{ params.half }}",
            "name": "${secret:${{ params.name }}",
            "escaped": "$${secret:TEXT} ${{ 1 }}",
        }),
    );
    insta::assert_snapshot!(format!("{found:#}"));
    let found = evaluated("shell", json!({"command": "a \"${secret:OWN}\" ${{ params.evil }}"}));
    insta::assert_snapshot!(format!("{found:#}"));
}

#[test]
fn shell_commands_read_secrets_from_variables() {
    let table: Vec<String> = [
        "curl -H ${secret:A} x",
        "curl -H \"Bearer ${secret:A}\" x",
        "curl -H 'Bearer ${secret:A}' x",
        "a$(b ${secret:A} \"$(c ${secret:A-2})\")",
        "echo $${secret:A}",
        "a `b ${secret:A}`",
        "a ${X:-${secret:A}}",
        "a $((${secret:A}))",
        "a # ${secret:A}",
        "cat <<E\n${secret:A}\nE",
        "a \\${secret:A}",
        "a ${secret:no name}",
    ]
    .iter()
    .map(|command| {
        let made = with_secret_variables(command, |name| format!("V_{}", name.replace('-', "_")));
        format!("{command:<42}{}", made.unwrap_or_else(|error| error.to_string())).replace('\n', "⏎")
    })
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn invalid_secret_placeholders_are_found_before_a_run() {
    let error_text = |tool: &str, args: Value| {
        let error = args_mentions(tool, args.as_object().unwrap()).unwrap_err();
        format!(
            "{} at {} of {}; {}",
            error.fault,
            error.offset,
            error.pointer,
            error.hint.unwrap_or_default()
        )
    };
    let error_text = [
        error_text("exec", json!({"argv": ["a", "xy ${secret:a b}"]})),
        error_text("exec", json!({"argv": ["${{ 1 }} ${secret:"]})),
        error_text("shell", json!({"command": "a ${{ 1 }} `b ${secret:A}`"})),
    ];
    insta::assert_snapshot!(error_text.join("\n"));
}
