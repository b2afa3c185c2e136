//! The simulated schedule: plays a run in virtual time before it begins, to find an order in which it ends sooner.
//!
//! Ranking tasks by the longest way to the end ignores the time that tasks wait for a slot. If many tasks wait for one
//! task, waiting is most of the time. The tasks that lead to a long task then rank too low and start too late. Two
//! results of a simulated run correct this:
//!
//! - The time that each task waited counts as if the task took longer. The tasks before it get a longer way to the end
//!   ("squeaky wheels", Joslin and Clements 1999).
//! - The run is played backwards from its end, with the tasks that ended last first. A task that is then furthest from
//!   the end goes first (justification, Li and Willis 1992).
//!
//! Both give ranks in milliseconds to the end, so that tasks which join the graph later are ranked by their dependents.

use std::collections::BTreeMap;

use crate::rules::Graph;
use crate::task::spec::Priority;
use crate::value::{Key, KeyMap};

mod flat_graph;

use flat_graph::{FlatGraph, SimulatedRun};

/// The maximum number of rounds; a round plays forwards, backwards and forwards again. Two were enough in all
/// measurements.
const ROUNDS: usize = 4;

/// The maximum number of tasks in all plays together. It bounds the cost of a simulation for graphs of any size.
const TASKS_PLAYED: usize = 1_000_000;

/// A run within one part in this many of the lower bound is not worth another play.
const GOOD_ENOUGH: u64 = 100;

/// The way in which a run takes a task. The default is right for most tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// True if the task takes a slot of the run. Tasks of people and tasks outside the scope of the run take none.
    pub takes_place: bool,
    /// The priority, which comes before the due date.
    pub priority: Priority,
    /// The due date, as in [`Node::due`](crate::task::Node::due); `i64::MAX` without one.
    pub due: i64,
}

impl Default for Turn {
    fn default() -> Self {
        Self { takes_place: true, priority: Priority::Medium, due: i64::MAX }
    }
}

impl Graph {
    /// Returns ranks with which a run of `jobs` calls at once ends soon. Tasks with larger ranks are taken first.
    ///
    /// They are the [longest ways](Self::ranks) to the end, or better ones that the simulation found. `turns` lists the
    /// tasks that differ from the default. The weights must be known durations. A cycle gives an empty result.
    ///
    /// The cost is that of a few plays, each of which costs about as much as sorting the tasks. Above a million tasks
    /// nothing is played.
    pub fn rehearsed_ranks(&self, jobs: usize, turns: &BTreeMap<Key, Turn>) -> KeyMap<u64> {
        let Some(flat) = FlatGraph::of(self, turns) else { return KeyMap::default() };
        let points = SimulatedSchedule::new(&flat, jobs.max(1)).best_ranks();
        flat.by_key(&points)
    }
}

struct SimulatedSchedule<'c> {
    flat: &'c FlatGraph,
    jobs: usize,
    plays_left: usize,
    /// A lower bound for the length of a run: the longest way, or the whole work divided by the slots.
    bound: u64,
    /// The length of the shortest run so far, and the ranks of all points that produced it.
    best: (u64, Vec<u64>),
}

impl<'c> SimulatedSchedule<'c> {
    fn new(flat: &'c FlatGraph, jobs: usize) -> Self {
        let ways = flat.ways(flat.weights());
        let bound = ways.iter().copied().max().unwrap_or(0).max(flat.work().div_ceil(jobs as u64));
        let plays_left = (3 * ROUNDS).min(TASKS_PLAYED / flat.weights().len().max(1));
        Self { flat, jobs, plays_left, bound, best: (u64::MAX, ways) }
    }

    fn best_ranks(mut self) -> Vec<u64> {
        let mut ranks = self.best.1.clone();
        let mut waits = vec![0_u64; self.flat.weights().len()];
        while let Some(played) = self.play(&ranks) {
            if self.turn_round(&played).is_none() {
                break;
            }
            // The mean with the old value damps the correction, so that an overshoot does not swing to the opposite
            // mistake.
            for (wait, waited) in waits.iter_mut().zip(self.flat.waits(&played)) {
                *wait = wait.midpoint(waited);
            }
            let weights = self.flat.weights().iter().zip(&waits);
            let weights: Vec<u64> = weights.map(|(weight, wait)| weight.saturating_add(*wait)).collect();
            ranks = self.flat.ways(&weights);
        }
        self.best.1
    }

    /// Plays a run; `None` when the best one is good enough or no play is left.
    fn play(&mut self, ranks: &[u64]) -> Option<SimulatedRun> {
        let is_good = self.best.0.saturating_sub(self.bound) <= self.bound / GOOD_ENOUGH;
        if is_good || self.plays_left == 0 {
            return None;
        }
        self.plays_left -= 1;
        let played = self.flat.play(self.jobs, ranks);
        if played.length < self.best.0 {
            self.best = (played.length, ranks.to_vec());
        }
        Some(played)
    }

    /// Plays a run backwards, and then forwards with the resulting ranks.
    fn turn_round(&mut self, played: &SimulatedRun) -> Option<SimulatedRun> {
        // The backwards play is counted here, the forwards one inside `play`.
        self.plays_left = self.plays_left.checked_sub(2)? + 1;
        let ranks = self.flat.play_backwards(self.jobs, played);
        self.play(&ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(lengths: &[u64], needs: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::default();
        for (key, length) in (0..).zip(lengths) {
            graph.add_weighted(Key(key), *length);
        }
        for (task, on) in needs {
            graph.add_dependency(Key(*task), Key(*on));
        }
        graph
    }

    fn length(graph: &Graph, jobs: usize, turns: &BTreeMap<Key, Turn>, ranks: &KeyMap<u64>) -> u64 {
        let flat = FlatGraph::of(graph, turns).unwrap();
        let points: Vec<u64> = graph.keys().iter().flat_map(|key| [ranks[key]; 2]).collect();
        flat.play(jobs, &points).length
    }

    /// The longest way first runs both long tasks at once, and then the short one and its dependent, with a slot free.
    #[test]
    fn the_simulation_beats_the_longest_way() {
        let graph = graph(&[5, 5, 2, 1], &[(3, 2)]);
        let turns = BTreeMap::new();
        let lengths =
            [graph.ranks(), graph.rehearsed_ranks(2, &turns)].map(|ranks| length(&graph, 2, &turns, &ranks));
        assert_eq!(lengths, [8, 7]);
    }

    #[test]
    fn a_good_schedule_is_kept_and_a_cycle_gives_nothing() {
        let mut graph = graph(&[4, 3, 2, 1], &[(1, 0), (3, 2)]);
        assert_eq!(graph.rehearsed_ranks(4, &BTreeMap::new()), graph.ranks());
        graph.add_dependency(Key(0), Key(1));
        assert!(graph.rehearsed_ranks(4, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn tasks_of_people_take_no_slot_and_urgent_tasks_come_first() {
        let graph = graph(&[5, 5, 5, 9], &[]);
        let of_people = Turn { takes_place: false, ..Turn::default() };
        let urgent = Turn { priority: Priority::Critical, ..Turn::default() };
        let mut turns = BTreeMap::new();
        let mut lengths = vec![length(&graph, 1, &turns, &graph.ranks())];
        turns.insert(Key(3), of_people);
        lengths.push(length(&graph, 1, &turns, &graph.ranks()));
        turns = BTreeMap::from([(Key(0), urgent), (Key(1), urgent)]);
        lengths.push(length(&graph, 2, &turns, &graph.ranks()));
        assert_eq!(lengths, [24, 15, 14]);
    }

    #[test]
    fn without_plays_left_the_longest_way_stays() {
        let graph = graph(&[3, 3, 2, 2, 2], &[]);
        let turns = BTreeMap::new();
        let flat = FlatGraph::of(&graph, &turns).unwrap();
        let mut schedule = SimulatedSchedule::new(&flat, 2);
        schedule.plays_left = 0;
        assert_eq!(flat.by_key(&schedule.best_ranks()), graph.ranks());
    }
}
