//! Every plan in the reference of the language runs, and ends as the reference says.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::harness::Cli;

const REFERENCE: &str = include_str!("../../../../docs/plan-language.md");

/// A plan of the reference, and how it says that it ends.
struct Example<'a> {
    plan: &'a str,
    exit: i32,
    states: BTreeMap<&'a str, &'a str>,
}

fn examples() -> Vec<Example<'static>> {
    let blocks = REFERENCE.split("\n```yaml\n").skip(1);
    blocks.map(|block| example(block.split("```").next().unwrap_or(block))).collect()
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

#[test]
fn every_example_ends_as_the_reference_says() {
    let examples = examples();
    assert!(examples.len() >= 12, "{} examples", examples.len());
    for Example { plan, exit, states } in examples {
        let cli = Cli::new().with_programs().with_clock();
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
