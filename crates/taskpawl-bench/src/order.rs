//! Cost of the graph of a run, and of the order that is computed at its start.

use std::collections::BTreeMap;
use std::hint::black_box;

use taskpawl::model::rules::Graph;
use taskpawl::model::value::Key;

use crate::Failure;
use crate::measure::{Whose, measure, memory};
use crate::sample::{Metric, Sample};
use crate::shape::Shape;

/// Builds a graph and returns the cost.
pub(crate) fn graph(shape: Shape, tasks: usize) -> Result<Sample, Failure> {
    let needs = shape.needs(tasks);
    let before = memory()?.0;
    let (graph, sample) = measure(Whose::Mine, || Ok(build(&needs)))?;
    let after = memory()?.0;
    drop(black_box(graph));
    Ok(sample.with(Metric::Memory, (after - before).max(0.0)))
}

/// Computes the ranks of a graph, with or without a simulated schedule, and returns the cost.
pub(crate) fn ranks(shape: Shape, tasks: usize, is_rehearsed: bool) -> Result<Sample, Failure> {
    let graph = build(&shape.needs(tasks));
    let find = || {
        if is_rehearsed {
            drop(black_box(graph.rehearsed_ranks(16, &BTreeMap::new())));
        } else {
            drop(black_box(graph.ranks()));
        }
        Ok(())
    };
    Ok(measure(Whose::Mine, find)?.1)
}

fn build(needs: &[Vec<usize>]) -> Graph {
    let mut graph = Graph::default();
    for (task, needs) in needs.iter().enumerate() {
        graph.add_weighted(key(task), length(task));
        for need in needs {
            graph.add_dependency(key(task), key(*need));
        }
    }
    graph
}

/// Returns a length between 0.1 and 10 seconds, as varied as that of different tools.
fn length(task: usize) -> u64 {
    100 + (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 9_900
}

fn key(task: usize) -> Key {
    Key(u32::try_from(task).unwrap_or(u32::MAX))
}
