//! Micro-benchmarks of single parts: model, graph, expressions and stores. Run them with `cargo bench -p
//! taskpawl-bench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use divan::Bencher;
use serde_json::json;
use taskpawl::model::expr::{Data, evaluate_expression};
use taskpawl::model::plan::{Plan, parse_plan};
use taskpawl::model::rules::Graph;
use taskpawl::model::value::Key;
use taskpawl::model::value::Map;
use taskpawl::model::view::Query;
use taskpawl::{ApplyOptions, Taskpawl};

fn main() {
    divan::main();
}

/// Returns the text of a plan with 100 layers, in which each task needs one task of the previous layer.
fn text(tasks: usize) -> String {
    let width = tasks.div_ceil(100);
    let mut text = "name: bench\ntasks:\n".to_owned();
    for task in 0..tasks {
        let needs = task.checked_sub(width).map(|need| format!(", needs: t{need}")).unwrap_or_default();
        let _ = writeln!(text, "  - {{id: t{task}, name: task {task}{needs}}}");
    }
    text
}

fn plan(tasks: usize) -> Plan {
    parse_plan(&text(tasks)).expect("BUG: the plan of the benchmark is a plan")
}

fn graph(tasks: u32) -> Graph {
    let mut graph = Graph::default();
    let width = tasks.div_ceil(100);
    for task in 0..tasks {
        graph.add_weighted(Key(task), u64::from(task % 97));
        task.checked_sub(width).into_iter().for_each(|need| graph.add_dependency(Key(task), Key(need)));
    }
    graph
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn model_parses_a_plan(bencher: Bencher, tasks: usize) {
    let text = text(tasks);
    bencher.counter(divan::counter::ItemsCount::new(tasks)).bench(|| parse_plan(&text));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn graph_is_built(bencher: Bencher, tasks: u32) {
    bencher.counter(divan::counter::ItemsCount::new(tasks)).bench(|| graph(tasks));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn graph_finds_longest_ways(bencher: Bencher, tasks: u32) {
    let graph = graph(tasks);
    bencher.counter(divan::counter::ItemsCount::new(tasks)).bench(|| graph.ranks());
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn graph_rehearses(bencher: Bencher, tasks: u32) {
    let graph = graph(tasks);
    let none = BTreeMap::new();
    bencher.counter(divan::counter::ItemsCount::new(tasks)).bench(|| graph.rehearsed_ranks(16, &none));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn graph_looks_for_cycles(bencher: Bencher, tasks: u32) {
    let graph = graph(tasks);
    bencher.counter(divan::counter::ItemsCount::new(tasks)).bench(|| graph.find_cycle());
}

#[divan::bench(args = ["1 + 2 * 3", "params.name == 'x' && params.list[2] > 1", "length(params.list)"])]
fn expression_is_evaluated(bencher: Bencher, text: &str) {
    let data = Data {
        params: json!({"name": "x", "list": [1, 2, 3]}).as_object().cloned().unwrap_or_default(),
        ..Data::default()
    };
    bencher.bench(|| evaluate_expression(text, &data));
}

/// Opens a store with a plan of 10,000 tasks.
fn store(name: &str) -> Taskpawl {
    let plans = Taskpawl::open(name).expect("BUG: a new store opens");
    plans
        .manager()
        .apply(plan(10_000), "bench", ApplyOptions::default())
        .expect("BUG: the plan fits an empty store");
    plans
}

#[divan::bench]
fn memory_store_takes_a_change(bencher: Bencher) {
    let plans = store(":memory:");
    let metadata: Map = [("number".to_owned(), json!(1))].into_iter().collect();
    bencher.bench(|| plans.blocking().update_task_metadata("t0", metadata.clone()));
}

#[divan::bench]
fn memory_store_shows_a_task(bencher: Bencher) {
    let plans = store(":memory:");
    bencher.bench(|| plans.blocking().get_task("t5000"));
}

#[divan::bench]
fn sqlite_store_takes_a_change(bencher: Bencher) {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let plans = store(&directory.path().join("bench.db").to_string_lossy());
    let metadata: Map = [("number".to_owned(), json!(1))].into_iter().collect();
    bencher.bench(|| plans.blocking().update_task_metadata("t0", metadata.clone()));
}

#[divan::bench]
fn sqlite_store_shows_a_task(bencher: Bencher) {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let plans = store(&directory.path().join("bench.db").to_string_lossy());
    bencher.bench(|| plans.blocking().get_task("t5000"));
}

#[divan::bench]
fn sqlite_store_lists_fifty(bencher: Bencher) {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let plans = store(&directory.path().join("bench.db").to_string_lossy());
    let query = Query { limit: 50, ..Query::default() };
    bencher.bench(|| plans.blocking().list_tasks(&query));
}
