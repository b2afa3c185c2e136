//! The order of a run: what it costs at its start to find it, with lengths that are known.

use std::collections::BTreeMap;

use taskpawl::model::{Graph, Key};

use crate::Failure;
use crate::measure::{Cost, cost_of};

/// Few small graphs cost less than the clock ticks.
const TASKS_A_MEASUREMENT: usize = 1_000_000;

/// Prints what the longest ways cost, and what rehearsing adds.
pub(crate) fn compare(most: usize) -> Result<(), Failure> {
    println!("\n## the order of a run, found at its start: CPU a task\n");
    println!("| graph | tasks | jobs | longest ways | with rehearsals |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, graph) in
        [("layers", layers as fn(usize) -> Graph), ("two wide parts, a long task between", two_parts)]
    {
        for tasks in [1_000, most / 10, most, 10 * most] {
            let graph = graph(tasks);
            let plain = repeated(tasks, || graph.ranks())?;
            let rehearsed = repeated(tasks, || graph.rehearsed_ranks(16, &BTreeMap::new()))?;
            println!("| {name} | {tasks} | 16 | {plain:.2} µs | {rehearsed:.2} µs |");
        }
    }
    Ok(())
}

fn repeated<T>(tasks: usize, work: impl Fn() -> T) -> Result<f64, Failure> {
    let times = (TASKS_A_MEASUREMENT / tasks).max(1);
    let ((), cost): ((), Cost) = cost_of(|| {
        (0..times).for_each(|_| drop(work()));
        Ok(())
    })?;
    Ok(cost.micros_each(times * tasks))
}

/// Returns the length of a task: from a tenth of a second to ten, as mixed as those of different tools.
fn length(task: usize) -> u64 {
    100 + (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 9_900
}

/// 100 layers; each task needs three of the layer before. The first play is as good as any.
fn layers(tasks: usize) -> Graph {
    let width = tasks.div_ceil(100);
    let mut graph = with_tasks(tasks);
    for task in width..tasks {
        let before = (task / width - 1) * width;
        for step in [1, 7, 31] {
            add(&mut graph, task, before + task * step % width);
        }
    }
    graph
}

/// No play comes near the bound, so that as many are tried as there may be.
fn two_parts(tasks: usize) -> Graph {
    let middle = tasks / 2;
    let mut graph = with_tasks(tasks);
    graph.add_weighted(key(tasks), tasks as u64 * 100);
    (0..middle).for_each(|task| add(&mut graph, tasks, task));
    (middle..tasks).for_each(|task| add(&mut graph, task, tasks));
    graph
}

fn with_tasks(tasks: usize) -> Graph {
    let mut graph = Graph::default();
    (0..tasks).for_each(|task| graph.add_weighted(key(task), length(task)));
    graph
}

fn add(graph: &mut Graph, task: usize, on: usize) {
    graph.add_dependency(key(task), key(on));
}

fn key(task: usize) -> Key {
    Key(u32::try_from(task).unwrap_or(u32::MAX))
}
