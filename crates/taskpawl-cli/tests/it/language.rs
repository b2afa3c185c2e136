//! Every plan in the language reference runs, and ends as the reference says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::Cli;

const REFERENCE: &str = include_str!("../../../../docs/plan-language.md");

/// A plan of the reference, with its promised exit code and statuses.
struct Example<'a> {
    plan: &'a str,
    exit: i32,
    states: BTreeMap<&'a str, &'a str>,
}

fn examples() -> Vec<Example<'static>> {
    let blocks = REFERENCE.split("\n```yaml\n").skip(1);
    blocks.map(|block| example(block.split("```").next().unwrap_or(block))).collect()
}

/// Returns the blocks with the names of files: plans that examples include.
fn named() -> Vec<(&'static str, &'static str)> {
    let blocks = REFERENCE.split("\n```yaml ").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or(block).split_once('\n').unwrap()).collect()
}

fn example(plan: &'static str) -> Example<'static> {
    let last = plan.lines().last().unwrap_or_default();
    let (exit, states) = last
        .strip_prefix("# ends with ")
        .and_then(|line| line.split_once(": "))
        .unwrap_or_else(|| panic!("the last line says how it ends, in:\n{plan}"));
    let states = states.split(", ").map(|state| state.split_once(' ').expect("an id and a state"));
    Example { plan, exit: exit.parse().expect("an exit code"), states: states.collect() }
}

fn field_names(schema: &Value, to: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let fields = map.get("properties").and_then(Value::as_object);
            to.extend(fields.into_iter().flat_map(|fields| fields.keys().cloned()));
            map.values().for_each(|value| field_names(value, to));
        }
        Value::Array(items) => items.iter().for_each(|value| field_names(value, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the words between backquotes.
fn quoted_words(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let lines = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    lines.flat_map(|quoted| quoted.split(|c| !is_part(c))).collect()
}

#[test]
fn the_reference_has_every_field_of_plan_files() {
    let schema = Cli::new().run(&["schema", "plan"]).stdout;
    let mut fields = BTreeSet::new();
    field_names(&serde_json::from_str(&schema).unwrap(), &mut fields);
    assert!(fields.len() > 60, "{fields:?}");
    let words = quoted_words(REFERENCE);
    let missing: Vec<&String> = fields.iter().filter(|field| !words.contains(field.as_str())).collect();
    assert!(missing.is_empty(), "docs/plan-language.md does not say what these are: {missing:?}");
}

#[test]
fn every_example_ends_as_the_reference_says() {
    let examples = examples();
    assert!(examples.len() >= 12, "{} examples", examples.len());
    for Example { plan, exit, states } in examples {
        let cli = Cli::new().with_programs().with_clock();
        for (name, included) in named() {
            cli.file(name, included);
        }
        fs::write(cli.path("work").join("plan.yaml"), plan).unwrap();
        let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
        let listed = cli.run(&["list", "--json", "--limit", "0"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let tasks = listed["data"].as_array().unwrap().iter();
        let found: BTreeMap<&str, &str> =
            tasks.map(|task| (task["id"].as_str().unwrap(), task["status"].as_str().unwrap())).collect();
        assert_eq!((run.code, found), (Some(exit), states), "of:\n{plan}\n{}", run.stderr);
    }
}
