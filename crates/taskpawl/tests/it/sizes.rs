//! Large plans: every task runs once, and deep structures cause no recursion.

use std::fmt::Write;
use std::sync::Arc;

use taskpawl::{RunOptions, RunSummary};

use crate::support::{Count, block_on, memory};

/// Applies and runs a plan with the tool `count`, and returns the number of its calls.
fn run(plan: &str) -> (RunSummary, u64) {
    let count = Count::new();
    let plans = memory().without_builtin_tools().tool(Arc::clone(&count) as Arc<_>).open().unwrap();
    plans.blocking().apply_text(plan, "plan").unwrap();
    let summary = block_on(plans.run_all_ready(RunOptions::default())).unwrap();
    (summary, count.calls())
}

#[test]
fn a_chain_of_5_000_dependencies_runs() {
    let mut plan = String::from("tasks:\n- {id: t0, call: {count: {}}}\n");
    for task in 1..5_000 {
        writeln!(plan, "- {{id: t{task}, needs: t{}, call: {{count: {{}}}}}}", task - 1).unwrap();
    }
    let (summary, calls) = run(&plan);
    assert_eq!((summary.exit, summary.counts["done"], calls), (0, 5_000, 5_000));
}

#[test]
fn subtasks_5_000_deep_run() {
    let mut plan = String::from("tasks:\n");
    for task in 0..4_999 {
        writeln!(plan, "- {{id: t{task}, subtasks: [t{}]}}", task + 1).unwrap();
    }
    plan.push_str("- {id: t4999, call: {count: {}}}\n");
    let (summary, calls) = run(&plan);
    assert_eq!((summary.exit, summary.counts["done"], calls), (0, 5_000, 1));
}

#[test]
fn a_join_over_100_000_tasks_runs_and_each_of_them_once() {
    let mut plan = String::from("tasks:\n");
    let mut needs = String::new();
    for task in 0..100_000 {
        writeln!(plan, "- {{id: t{task}, call: {{count: {{}}}}}}").unwrap();
        write!(needs, "t{task},").unwrap();
    }
    writeln!(plan, "- {{id: join, needs: [{}], milestone: true}}", needs.trim_end_matches(',')).unwrap();
    let (summary, calls) = run(&plan);
    assert_eq!((summary.exit, summary.counts["done"], calls), (0, 100_001, 100_000));
}
