//! `dagrs-peer SHAPE TASKS` runs a graph of tasks without work with dagrs, and prints CPU and wall time in
//! microseconds.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use dagrs::{
    Action, Content, DefaultNode, EnvVar, Graph, InChannels, Node, NodeTable, OutChannels, Output,
    async_trait,
};

/// Microseconds per tick of the kernel's process times: `sysconf(_SC_CLK_TCK)` is 100 on Linux.
const MICROS_A_TICK: u64 = 10_000;

/// A task that receives from its dependencies: dagrs only orders tasks that read the messages of others.
struct Nothing;

#[async_trait::async_trait]
impl Action for Nothing {
    async fn run(&self, inputs: &mut InChannels, outputs: &mut OutChannels, _: Arc<EnvVar>) -> Output {
        inputs.map(drop).await;
        outputs.broadcast(Content::new(())).await;
        Output::empty()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, shape, tasks] = &args[..] else { return Err("dagrs-peer SHAPE TASKS".into()) };
    let mut graph = graph(shape, tasks.parse()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (cpu, begin) = (cpu_micros()?, Instant::now());
    runtime.block_on(graph.async_start())?;
    let wall = begin.elapsed().as_micros();
    println!("{{\"cpuMicros\": {}, \"wallMicros\": {wall}}}", cpu_micros()? - cpu);
    Ok(())
}

fn graph(shape: &str, tasks: usize) -> Result<Graph, Box<dyn Error>> {
    let mut table = NodeTable::new();
    let mut graph = Graph::new();
    let mut ids = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let node = DefaultNode::with_action(format!("t{task}"), Nothing, &mut table);
        ids.push(node.id());
        graph.add_node(node)?;
    }
    let mut dependents = vec![Vec::new(); tasks];
    for task in 0..tasks {
        needs(shape, task, tasks).into_iter().for_each(|need| dependents[need].push(ids[task]));
    }
    for (task, dependents) in dependents.into_iter().enumerate().filter(|(_, them)| !them.is_empty()) {
        graph.add_edge(ids[task], dependents)?;
    }
    graph.set_env(EnvVar::new(table));
    Ok(graph)
}

/// Returns the dependencies of a task. Has to match `src/shape.rs` of the benchmarks.
fn needs(shape: &str, task: usize, tasks: usize) -> Vec<usize> {
    let width = tasks.div_ceil(100);
    match shape {
        "chain" => task.checked_sub(1).into_iter().collect(),
        "wide" if task + 1 == tasks => (0..task).collect(),
        "layered" if task >= width => {
            let first = (task / width - 1) * width;
            let mut needs: Vec<usize> = [1, 7, 31].iter().map(|step| first + task * step % width).collect();
            needs.sort_unstable();
            needs.dedup();
            needs
        }
        _ => Vec::new(),
    }
}

fn cpu_micros() -> Result<u64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks * MICROS_A_TICK)
}
