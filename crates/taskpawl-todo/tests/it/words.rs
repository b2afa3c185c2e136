//! Consistency of names, states and rules between schemas, help, guides, table and README.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use taskpawl_todo::{Dialect, Lists, ScopeRule, guide, help, summary, table, tool_names};
use taskpawl_tools::ToolSpec;

fn specs(rule: ScopeRule) -> Vec<(Dialect, ToolSpec)> {
    let lists = Lists::builder().scope(rule).build();
    let all =
        [Dialect::Conversation, Dialect::Checklist, Dialect::TodoList, Dialect::Session, Dialect::Queue];
    let of =
        |dialect: Dialect| lists.tools(dialect).into_iter().map(move |tool| (dialect, tool.spec().clone()));
    all.into_iter().flat_map(of).collect()
}

/// Collects all names, enumerated words and descriptions in a schema.
fn words(schema: &Value, words: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        words.push(name.clone());
        let values = field["enum"].as_array().into_iter().flatten();
        words.extend(values.map(|value| value.as_str().unwrap().to_owned()));
        words.extend(field["description"].as_str().map(str::to_owned));
        self::words(&field["items"], words);
    }
}

#[test]
fn description_help_guide_and_schema_agree() {
    for (dialect, spec) in specs(ScopeRule::argument()) {
        let (help, guide) = (help(&spec.name).unwrap(), guide(dialect));
        let mut all = vec![spec.name.clone()];
        words(&spec.args_schema, &mut all);
        all.extend(spec.description.split(". ").map(|rule| rule.trim_end_matches('.').to_owned()));
        for word in all {
            assert!(help.contains(&word), "help of {}: {word}", spec.name);
            assert!(guide.contains(&word), "guide to {dialect}: {word}");
        }
    }
    let names: Vec<String> = specs(ScopeRule::of_call()).into_iter().map(|(_, spec)| spec.name).collect();
    assert_eq!(tool_names().collect::<Vec<_>>(), names);
    assert_eq!(help("no such tool"), None);
}

#[test]
fn guides_are_complete() {
    for dialect in Dialect::ALL {
        let text = guide(dialect);
        assert!(text.starts_with("# ") && !text.contains("{{"), "{dialect}");
        for part in ["## When to use it", "## When to skip it", "## The tools"] {
            assert!(text.contains(part), "{dialect}: {part}");
        }
        assert!(!summary(dialect).is_empty());
    }
    let (list, other) = (guide(Dialect::Checklist), guide(Dialect::TodoList));
    assert!(!list.contains("manage_todo_list") && !other.contains("manage_tasks"));
    for words in [
        "several actions",
        "phases",
        "ambiguous",
        "several things at once",
        "new steps",
        "Before you end your turn",
    ] {
        assert!(list.contains(words), "{words}");
    }
    assert_eq!(
        list.matches("\n1. \"").count() + list.matches("\n3. \"").count(),
        4,
        "three examples of each"
    );
}

#[test]
fn dialect_names_can_be_parsed() {
    let words: Vec<&str> =
        Dialect::WORDS.iter().filter_map(|word| Dialect::from_word(word)).map(Dialect::as_str).collect();
    assert_eq!(words, Dialect::WORDS);
    assert_eq!(Dialect::from_word("checklist:"), None);
}

#[test]
fn the_page_contains_the_table_of_all_tools() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/todo.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&table()), "docs/todo.md should have this table:\n{}", table());
}

#[test]
fn the_table_contains_every_parameter_of_every_schema() {
    for (_, spec) in specs(ScopeRule::of_call()) {
        let table = table();
        let row = table.lines().find(|line| line.contains(&format!("| `{}` |", spec.name))).unwrap();
        for (name, field) in spec.args_schema["properties"].as_object().unwrap() {
            let is_required = spec.args_schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|it| it == name));
            let shown = if is_required { name.clone() } else { format!("{name}?") };
            assert!(row.contains(&shown), "{shown}: {row}");
            for value in field["enum"].as_array().into_iter().flatten() {
                assert!(row.contains(value.as_str().unwrap()), "{value}: {row}");
            }
        }
    }
}

#[test]
fn specs_are_these() {
    let mut text = String::new();
    for (dialect, spec) in specs(ScopeRule::argument()) {
        let spec = serde_json::to_string_pretty(&spec).unwrap();
        let _ = writeln!(text, "{dialect}\n{spec}\n");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn help_is_this() {
    insta::assert_snapshot!(tool_names().filter_map(help).collect::<Vec<_>>().join("\n"));
}
