//! Minimum cost of running a graph of tools: petgraph, text ids, tools behind a trait, and a `JoinSet` with a limit.
//! Keeps no state.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

use clap::ValueEnum;
use petgraph::graph::{DiGraph, NodeIndex};
use serde_json::Value;
use taskpawl::async_trait;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::Failure;
use crate::measure::{Whose, measure, memory};
use crate::sample::{Metric, Sample};
use crate::shape::Shape;

#[async_trait]
trait Tool: Send + Sync + Debug {
    async fn call(&self, args: &Value) -> Result<Value, String>;
}

#[derive(Debug)]
struct Nothing;

#[async_trait]
impl Tool for Nothing {
    async fn call(&self, _args: &Value) -> Result<Value, String> {
        Ok(Value::Null)
    }
}

struct Task {
    id: String,
    tool: Arc<dyn Tool>,
    open: usize,
}

/// Method by which the loop finds ready tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ready {
    /// Counts the open dependencies of each task.
    Counted,
    /// Searches all tasks on each round. Positive control for the tests that cost does not grow with the graph.
    Searched,
}

type ById = HashMap<String, NodeIndex>;
type Ended = (String, Result<Value, String>);

/// Runs `tasks` tasks without work and returns the cost, without that of building the graph.
pub(crate) fn run(
    shape: Shape,
    tasks: usize,
    jobs: usize,
    workers: usize,
    ready: Ready,
) -> Result<Sample, Failure> {
    let runtime = runtime(workers)?;
    let before = memory()?.0;
    let (mut graph, by_id) = graph(shape, tasks)?;
    let (done, sample) = measure(Whose::Mine, || runtime.block_on(run_all(&mut graph, &by_id, jobs, ready)))?;
    if done != tasks {
        return Err(format!("{done} of {tasks} tasks were run").into());
    }
    Ok(sample.with(Metric::Memory, (memory()?.1 - before).max(0.0)))
}

fn runtime(workers: usize) -> Result<Runtime, Failure> {
    Ok(match workers {
        1 => tokio::runtime::Builder::new_current_thread().build()?,
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build()?,
    })
}

fn graph(shape: Shape, tasks: usize) -> Result<(DiGraph<Task, ()>, ById), Failure> {
    let tool: Arc<dyn Tool> = Arc::new(Nothing);
    let (mut graph, mut by_id) = (DiGraph::new(), HashMap::new());
    for (position, needs) in shape.needs(tasks).into_iter().enumerate() {
        let id = format!("t{position}");
        let node = graph.add_node(Task { id: id.clone(), tool: tool.clone(), open: needs.len() });
        by_id.insert(id, node);
        for need in needs {
            graph.add_edge(NodeIndex::from(u32::try_from(need)?), node, ());
        }
    }
    Ok((graph, by_id))
}

async fn run_all(
    graph: &mut DiGraph<Task, ()>,
    by_id: &ById,
    jobs: usize,
    way: Ready,
) -> Result<usize, Failure> {
    let mut ready: VecDeque<NodeIndex> = graph.node_indices().filter(|node| graph[*node].open == 0).collect();
    let mut calls = JoinSet::new();
    let mut done = 0;
    loop {
        while calls.len() < jobs
            && let Some(node) = ready.pop_front()
        {
            calls.spawn(call(&graph[node]));
        }
        let Some(ended) = calls.join_next().await else { return Ok(done) };
        let (id, result) = ended?;
        result?;
        done += 1;
        // The queue is filled from counts in both cases. Only the cost of this search is wanted.
        if way == Ready::Searched {
            std::hint::black_box(graph.node_weights().filter(|task| task.open == 0).count());
        }
        let node = *by_id.get(&id).ok_or("a task that nobody knows")?;
        let mut dependents = graph.neighbors(node).detach();
        while let Some(dependent) = dependents.next_node(graph) {
            graph[dependent].open -= 1;
            if graph[dependent].open == 0 {
                ready.push_back(dependent);
            }
        }
    }
}

fn call(task: &Task) -> impl Future<Output = Ended> + use<> {
    let (id, tool) = (task.id.clone(), task.tool.clone());
    async move {
        let result = tool.call(&Value::Null).await;
        (id, result)
    }
}
