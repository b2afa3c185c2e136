//! Values in shell commands.

use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};
use taskpawl_model::expr::{Args, Data, args_references, evaluate_args};

use super::data;

fn evaluated(command: &str, data: &Data) -> Result<Args, String> {
    let args = json!({"command": command});
    evaluate_args("shell", args.as_object().unwrap(), data).map_err(|error| error.to_string())
}

fn with_text(text: &str) -> Data {
    Data { item: Some(text.into()), ..Data::default() }
}

/// Runs a command and returns its standard output.
fn printed(command: &str, data: &Data) -> String {
    let args = evaluated(command, data).unwrap();
    let output = Command::new("sh").arg("-c").arg(args.args["command"].as_str().unwrap()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Commands with a value in every allowed position; the shell must receive the value unchanged.
const POSITIONS: [(&str, &str); 8] = [
    ("printf '[%s]' ${{ item }}", "[X]"),
    ("printf '[%s]' a${{ item }}b", "[aXb]"),
    ("printf '[%s]' 'a '${{ item }}\" b\"", "[a X b]"),
    ("A=${{ item }}; printf '[%s]' \"$A\"", "[X]"),
    ("printf '[%s]' \"$(printf '%s/' ${{ item }})\"", "[X/]"),
    ("# it's a comment\nprintf '[%s]' ${{ item }} # and \"another", "[X]"),
    ("printf '[%s]' $((1 + 1)) ${HOME:+${A:-\"b\"}} \\' ${{ item }}", "[2][b]['][X]"),
    ("printf '[%s]' \"$(cat <<E\nx\nE\n)\"", "[x]"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_value_is_one_shell_word(text in "[ -~\n\t\u{e4}\u{1f600}'\"\\\\$`!]{0,40}") {
        for (command, expected) in POSITIONS {
            prop_assert_eq!(printed(command, &with_text(&text)), expected.replace('X', &text));
        }
    }
}

#[test]
fn shell_metacharacters_are_one_word() {
    for text in
        ["", "'", "''", "$(touch x)", "`id`", "-rf", "~", "a=b", "*", "\n", "a\\", "if", "!!", "{a,b}", "#"]
    {
        for (command, expected) in POSITIONS {
            assert_eq!(
                printed(command, &with_text(text)),
                expected.replace('X', text),
                "{text:?} in {command}"
            );
        }
    }
}

#[test]
fn values_are_refused_where_quoting_cannot_protect_them() {
    let outcome = |command: &str| {
        let args = json!({"command": command});
        match args_references("shell", args.as_object().unwrap()) {
            Ok(_) => "fine".to_owned(),
            Err(error) => {
                format!("{}: {}\n      hint: {}", error.offset, error, error.hint.as_deref().unwrap())
            }
        }
    };
    let table: Vec<String> = [
        "echo \"${{ item }}\"",
        "echo '${{ item }}'",
        "echo \"a\" 'b' ${{ item }}",
        "echo `ls ${{ item }}`",
        "echo \\${{ item }}",
        "echo \\\\${{ item }}",
        "echo \"$(ls ${{ item }})\"",
        "echo \"$(ls \"${{ item }}\")\"",
        "echo \"$(ls)${{ item }}\"",
        "echo ${A:-${{ item }}}",
        "echo \"${A:-'x'}\" ${{ item }}",
        "echo $((1 + ${{ item }}))",
        "echo # ${{ item }}",
        "echo a#'b' ${{ item }}",
        "cat <<E > ${{ item }}\nx\nE",
        "cat <<E\n${{ item }}\nE",
        "echo $'it' ${{ item }}",
        "echo \"$(case x in a) echo \"${{ item }}\" ;; esac)\"",
        "echo `x`#\"a\n${{ item }}\"",
        "((x = ${{ item }}))",
        "echo \"${{ item | raw }}\"",
    ]
    .iter()
    .map(|command| format!("{command:?}\n  {}", outcome(command)))
    .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn other_types_become_words_and_raw_is_reported() {
    let text =
        |command: &str| evaluated(command, &data()).map(|args| (args.args["command"].clone(), args.raw));
    assert_eq!(
        text("a ${{ params.count }} ${{ params.list }}").unwrap(),
        (json!("a '3' '[\"a b\",\"c\"]'"), false)
    );
    assert_eq!(text("${{ params.list | join(' ') | raw }} x").unwrap(), (json!("a b c x"), true));
    assert_eq!(text("${{ 'ls' }}").unwrap(), (json!("'ls'"), false));
    insta::assert_snapshot!(text("a ${{ none }}").unwrap_err());
    insta::assert_snapshot!(text("a ${{ '\\0' }}").unwrap_err());
}

#[test]
fn only_shell_commands_are_quoted() {
    let args = json!({"command": "a '${{ item }}'", "stdin": "${{ item }}"});
    let evaluated = evaluate_args("other", args.as_object().unwrap(), &with_text("x y")).unwrap();
    assert_eq!(Value::Object(evaluated.args), json!({"command": "a 'x y'", "stdin": "x y"}));
    let args = json!({"command": "a ${{ item }}", "stdin": "${{ item }}", "env": {"A": "'${{ item }}'"}});
    let evaluated = evaluate_args("shell", args.as_object().unwrap(), &with_text("x y")).unwrap();
    assert_eq!(
        Value::Object(evaluated.args),
        json!({"command": "a 'x y'", "stdin": "x y", "env": {"A": "'x y'"}})
    );
}
