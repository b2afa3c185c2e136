//! Rehearsals: a run is played in virtual time before it begins, to find an order in which it ends sooner.
//!
//! The longest way to the end says nothing of how long tasks wait for a place. Where everything waits for one task and much comes
//! after it, that is most of the time: what leads to a long task then counts for little beside another long task, and is left for
//! too late. Two things that a played run tells mend that. How long each task waited counts as if the task took longer, so that
//! what is before it gets a longer way to go ("squeaky wheels", Joslin and Clements 1999). And the run is played backwards, from
//! its end, with what ended last first: what is then furthest from the end goes first (justification, Li and Willis 1992).
//!
//! Both give ranks in milliseconds to the end, so that what joins the graph later is ranked by what it joins.

use std::collections::BTreeMap;

use crate::spec::Priority;
use crate::{Graph, Key, KeyMap};

mod course;

use course::{Course, Played};

/// How often a run is played forwards, backwards and forwards again at the most. Two are enough for all that was measured.
const ROUNDS: usize = 4;

/// How many tasks there are in all plays together at the most: what rehearsing costs has a bound, however many there are.
const TASKS_PLAYED: usize = 1_000_000;

/// A run that is longer than the lower bound by this part of it at the most is not worth another play.
const GOOD_ENOUGH: u64 = 100;

/// How a run takes a task, where that is not as it takes most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether the task takes one of the places of the run; what people do, and what is not of its scope, does not.
    pub takes_place: bool,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is due, as in [`Node::due`](crate::Node::due).
    pub due: i64,
}

impl Default for Turn {
    fn default() -> Self {
        Self { takes_place: true, priority: Priority::Medium, due: i64::MAX }
    }
}

impl Graph {
    /// Returns ranks with which a run of `jobs` calls at once ends soon: what has a larger one is taken first.
    ///
    /// They are the [longest ways](Self::ranks) to the end, or what rehearsing found to be better. `turns` are those of the tasks
    /// that are not taken as most are. The weights must be lengths that somebody knows; a circle gives nothing.
    ///
    /// A few plays are tried, each of which costs about as much as sorting the tasks; above a million tasks none is.
    pub fn rehearsed_ranks(&self, jobs: usize, turns: &BTreeMap<Key, Turn>) -> KeyMap<u64> {
        let Some(course) = Course::of(self, turns) else { return KeyMap::default() };
        let points = Rehearsal::new(&course, jobs.max(1)).best_ranks();
        course.by_key(&points)
    }
}

struct Rehearsal<'c> {
    course: &'c Course,
    jobs: usize,
    plays_left: usize,
    /// No run is shorter.
    bound: u64,
    /// The shortest run yet, and the ranks of all points with which it was played.
    best: (u64, Vec<u64>),
}

impl<'c> Rehearsal<'c> {
    fn new(course: &'c Course, jobs: usize) -> Self {
        let ways = course.ways(course.weights());
        let bound = ways.iter().copied().max().unwrap_or(0).max(course.work().div_ceil(jobs as u64));
        let plays_left = (3 * ROUNDS).min(TASKS_PLAYED / course.weights().len().max(1));
        Self { course, jobs, plays_left, bound, best: (u64::MAX, ways) }
    }

    fn best_ranks(mut self) -> Vec<u64> {
        let mut ranks = self.best.1.clone();
        let mut waits = vec![0_u64; self.course.weights().len()];
        while let Some(played) = self.play(&ranks) {
            if self.turn_round(&played).is_none() {
                break;
            }
            // Half of what it was, so that a play that went wrong is not answered by one that goes as wrong the other way.
            for (wait, waited) in waits.iter_mut().zip(self.course.waits(&played)) {
                *wait = wait.midpoint(waited);
            }
            let weights = self.course.weights().iter().zip(&waits);
            let weights: Vec<u64> = weights.map(|(weight, wait)| weight.saturating_add(*wait)).collect();
            ranks = self.course.ways(&weights);
        }
        self.best.1
    }

    /// Plays a run; `None` when that is not worth it any more.
    fn play(&mut self, ranks: &[u64]) -> Option<Played> {
        let is_good = self.best.0.saturating_sub(self.bound) <= self.bound / GOOD_ENOUGH;
        if is_good || self.plays_left == 0 {
            return None;
        }
        self.plays_left -= 1;
        let played = self.course.play(self.jobs, ranks);
        if played.length < self.best.0 {
            self.best = (played.length, ranks.to_vec());
        }
        Some(played)
    }

    /// Plays a run backwards, and then as that says.
    fn turn_round(&mut self, played: &Played) -> Option<Played> {
        self.plays_left = self.plays_left.checked_sub(2)? + 1;
        let ranks = self.course.play_backwards(self.jobs, played);
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
        let course = Course::of(graph, turns).unwrap();
        let points: Vec<u64> = graph.keys().iter().flat_map(|key| [ranks[key]; 2]).collect();
        course.play(jobs, &points).length
    }

    /// The longest way first runs both long tasks at once, and then the short one and what waits for it, with a place free.
    #[test]
    fn an_order_is_found_that_the_longest_way_does_not_give() {
        let graph = graph(&[5, 5, 2, 1], &[(3, 2)]);
        let turns = BTreeMap::new();
        let lengths =
            [graph.ranks(), graph.rehearsed_ranks(2, &turns)].map(|ranks| length(&graph, 2, &turns, &ranks));
        assert_eq!(lengths, [8, 7]);
    }

    #[test]
    fn what_is_good_enough_keeps_the_longest_way_and_a_circle_gives_nothing() {
        let mut graph = graph(&[4, 3, 2, 1], &[(1, 0), (3, 2)]);
        assert_eq!(graph.rehearsed_ranks(4, &BTreeMap::new()), graph.ranks());
        graph.add_dependency(Key(0), Key(1));
        assert!(graph.rehearsed_ranks(4, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn what_people_do_takes_no_place_and_what_is_urgent_comes_first() {
        let graph = graph(&[5, 5, 5, 9], &[]);
        let by_people = Turn { takes_place: false, ..Turn::default() };
        let urgent = Turn { priority: Priority::Critical, ..Turn::default() };
        let mut turns = BTreeMap::new();
        let mut lengths = vec![length(&graph, 1, &turns, &graph.ranks())];
        turns.insert(Key(3), by_people);
        lengths.push(length(&graph, 1, &turns, &graph.ranks()));
        turns = BTreeMap::from([(Key(0), urgent), (Key(1), urgent)]);
        lengths.push(length(&graph, 2, &turns, &graph.ranks()));
        assert_eq!(lengths, [24, 15, 14]);
    }

    #[test]
    fn without_a_play_left_the_longest_way_stays() {
        let graph = graph(&[3, 3, 2, 2, 2], &[]);
        let turns = BTreeMap::new();
        let course = Course::of(&graph, &turns).unwrap();
        let mut rehearsal = Rehearsal::new(&course, 2);
        rehearsal.plays_left = 0;
        assert_eq!(course.by_key(&rehearsal.best_ranks()), graph.ranks());
    }
}
