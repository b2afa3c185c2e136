use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use petgraph::Direction::{self, Incoming, Outgoing};
use petgraph::algo::toposort;
use petgraph::graph::NodeIndex;

use super::Turn;
use crate::rules::Graph;
use crate::value::{Key, KeyMap};

/// A task graph prepared for simulation: points in flat arrays.
///
/// The point `2 p` is the entry of the task at index `p`, and `2 p + 1` is its exit. The work of the task lies between
/// them.
pub(super) struct FlatGraph {
    keys: Vec<Key>,
    weights: Vec<u64>,
    takes_place: Vec<bool>,
    /// The rank of each task by priority and due date. Tasks with equal numbers are equally urgent.
    urgency: Vec<u32>,
    before: Neighbors,
    after: Neighbors,
    /// All points in topological order.
    order: Vec<u32>,
}

/// A simulated run.
pub(super) struct SimulatedRun {
    pub(super) length: u64,
    /// The time at which each point was passed, in milliseconds from the start of the play.
    passed: Vec<u64>,
}

/// The neighbours of all points in one array: those of point `p` are `points[starts[p]..starts[p + 1]]`.
struct Neighbors {
    starts: Vec<u32>,
    points: Vec<u32>,
}

impl Neighbors {
    fn of(graph: &Graph, direction: Direction) -> Self {
        let graph = graph.points();
        let (mut starts, mut points) = (vec![0], Vec::with_capacity(graph.edge_count()));
        for point in graph.node_indices() {
            points.extend(graph.neighbors_directed(point, direction).map(number));
            starts.push(number(NodeIndex::new(points.len())));
        }
        Self { starts, points }
    }

    fn at(&self, point: usize) -> &[u32] {
        &self.points[self.starts[point] as usize..self.starts[point + 1] as usize]
    }

    /// Returns the largest value of `of` among the neighbours of a point; 0 without neighbours.
    fn most(&self, point: usize, of: &[u64]) -> u64 {
        self.at(point).iter().map(|next| of[*next as usize]).max().unwrap_or(0)
    }
}

fn number(point: NodeIndex<u32>) -> u32 {
    u32::try_from(point.index()).expect("BUG: points and edges are counted with 32 bits")
}

/// Returns the task whose exit this point is; `None` for an entry.
fn task_at_exit(point: u32) -> Option<u32> {
    (point % 2 == 1).then_some(point / 2)
}

fn entry_of(task: usize) -> usize {
    2 * task
}

fn exit_of(task: usize) -> usize {
    2 * task + 1
}

impl FlatGraph {
    /// Prepares a graph; `None` if it has a cycle.
    pub(super) fn of(graph: &Graph, turns: &BTreeMap<Key, Turn>) -> Option<Self> {
        let order = toposort(graph.points(), None).ok()?.into_iter().map(number).collect();
        let keys = graph.keys().to_vec();
        let turn = |key: &Key| turns.get(key).copied().unwrap_or_default();
        let urgent = |turn: Turn| (turn.priority, turn.due);
        let mut steps: Vec<_> =
            turns.values().map(|turn| urgent(*turn)).chain([urgent(Turn::default())]).collect();
        steps.sort_unstable();
        steps.dedup();
        let step = |key: &Key| steps.binary_search(&urgent(turn(key))).unwrap_or_else(|position| position);
        Some(Self {
            weights: graph.weights().to_vec(),
            takes_place: keys.iter().map(|key| turn(key).takes_place).collect(),
            urgency: keys.iter().map(|key| u32::try_from(step(key)).unwrap_or(u32::MAX)).collect(),
            before: Neighbors::of(graph, Incoming),
            after: Neighbors::of(graph, Outgoing),
            order,
            keys,
        })
    }

    pub(super) fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Returns the total duration of all tasks that take a slot.
    pub(super) fn work(&self) -> u64 {
        let weights = self.weights.iter().zip(&self.takes_place);
        weights
            .filter(|(_, takes_place)| **takes_place)
            .fold(0, |sum, (weight, _)| sum.saturating_add(*weight))
    }

    /// Returns the value of each task at its entry, like [`Graph::ranks`].
    pub(super) fn by_key(&self, points: &[u64]) -> KeyMap<u64> {
        self.keys.iter().enumerate().map(|(task, key)| (*key, points[entry_of(task)])).collect()
    }

    /// Returns the longest way from each point to the end, given these durations of the tasks.
    pub(super) fn ways(&self, weights: &[u64]) -> Vec<u64> {
        let mut ways = vec![0_u64; self.order.len()];
        for point in self.order.iter().rev().copied() {
            let longest = self.after.most(point as usize, &ways);
            let own = task_at_exit(point).map_or(0, |task| weights[task as usize]);
            ways[point as usize] = longest.saturating_add(own);
        }
        ways
    }

    /// Returns the time that each task waited for a slot.
    pub(super) fn waits<'c>(&'c self, played: &'c SimulatedRun) -> impl Iterator<Item = u64> + 'c {
        self.weights.iter().enumerate().map(|(task, weight)| {
            let ready = self.before.most(exit_of(task), &played.passed);
            played.passed[exit_of(task)].saturating_sub(*weight).saturating_sub(ready)
        })
    }

    /// Plays a run that takes ready tasks by urgency, rank and age.
    pub(super) fn play(&self, jobs: usize, ranks: &[u64]) -> SimulatedRun {
        let order = |task: usize| (self.urgency[task], Reverse(ranks[entry_of(task)]), self.keys[task]);
        self.play_in_order(jobs, &self.before, &self.after, &self.places(order))
    }

    /// Plays a run from its end, tasks that were passed last first. Returns the distance of each point from the end.
    pub(super) fn play_backwards(&self, jobs: usize, played: &SimulatedRun) -> Vec<u64> {
        let order = |task: usize| (Reverse(played.passed[exit_of(task)]), self.keys[task]);
        self.play_in_order(jobs, &self.after, &self.before, &self.places(order)).passed
    }

    /// Returns the position of each task in an order.
    fn places<O: Ord>(&self, order: impl Fn(usize) -> O) -> Vec<u32> {
        let mut tasks: Vec<u32> = (0..).take(self.keys.len()).collect();
        tasks.sort_unstable_by_key(|task| order(*task as usize));
        let mut places = vec![0; tasks.len()];
        for (position, task) in (0..).zip(&tasks) {
            places[*task as usize] = position;
        }
        places
    }

    fn play_in_order(
        &self,
        jobs: usize,
        before: &Neighbors,
        after: &Neighbors,
        places: &[u32],
    ) -> SimulatedRun {
        let mut stage = Stage::new(self, before, after, places);
        stage.go_on();
        loop {
            while stage.busy < jobs && stage.start_first() {}
            if !stage.end_next() {
                return SimulatedRun { length: stage.now, passed: stage.passed };
            }
        }
    }
}

/// A simulation in progress.
struct Stage<'c> {
    flat: &'c FlatGraph,
    after: &'c Neighbors,
    places: &'c [u32],
    /// The number of points that each point still waits for.
    left: Vec<u32>,
    passed: Vec<u64>,
    ready: BinaryHeap<Reverse<(u32, u32)>>,
    running: BinaryHeap<Reverse<(u64, u32)>>,
    /// The number of slots in use.
    busy: usize,
    now: u64,
    /// Points that were reached and not handled yet.
    reached: Vec<u32>,
}

impl<'c> Stage<'c> {
    fn new(flat: &'c FlatGraph, before: &Neighbors, after: &'c Neighbors, places: &'c [u32]) -> Self {
        let left: Vec<u32> = before.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Self {
            flat,
            after,
            places,
            passed: vec![0; left.len()],
            reached: (0..).zip(&left).filter(|(_, left)| **left == 0).map(|(point, _)| point).collect(),
            left,
            ready: BinaryHeap::new(),
            running: BinaryHeap::new(),
            busy: 0,
            now: 0,
        }
    }

    /// Passes every point that needs no time, and collects the tasks that are ready.
    fn go_on(&mut self) {
        while let Some(point) = self.reached.pop() {
            match task_at_exit(point).filter(|task| self.flat.weights[*task as usize] > 0) {
                Some(task) if self.flat.takes_place[task as usize] => {
                    self.ready.push(Reverse((self.places[task as usize], task)));
                }
                Some(task) => self.start(task),
                None => self.pass(point as usize),
            }
        }
    }

    fn pass(&mut self, point: usize) {
        self.passed[point] = self.now;
        for next in self.after.at(point) {
            let left = &mut self.left[*next as usize];
            *left -= 1;
            if *left == 0 {
                self.reached.push(*next);
            }
        }
    }

    fn start(&mut self, task: u32) {
        let end = self.now.saturating_add(self.flat.weights[task as usize]);
        self.running.push(Reverse((end, task)));
    }

    /// Starts the first ready task; returns whether there was one.
    fn start_first(&mut self) -> bool {
        let Some(Reverse((_, task))) = self.ready.pop() else { return false };
        self.busy += 1;
        self.start(task);
        true
    }

    /// Advances the time to the next end of a task; returns whether any task ran.
    fn end_next(&mut self) -> bool {
        let Some(Reverse((end, _))) = self.running.peek().copied() else { return false };
        // All tasks that end now are ended before any other starts, so that their followers compete by rank.
        self.now = end;
        while let Some(Reverse((_, task))) =
            self.running.peek().copied().filter(|Reverse((at, _))| *at == end)
        {
            self.running.pop();
            let task = task as usize;
            self.busy -= usize::from(self.flat.takes_place[task]);
            self.pass(exit_of(task));
        }
        self.go_on();
        true
    }
}
