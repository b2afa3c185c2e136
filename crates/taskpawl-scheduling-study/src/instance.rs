use std::collections::BTreeMap;

use taskpawl_model::rules::Graph;
use taskpawl_model::value::{Key, KeyMap};

use taskpawl_testkit::Random;

/// Tasks with lengths in milliseconds, and their dependencies. Every task comes after its dependencies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instance {
    /// Length of each task, in milliseconds.
    pub(crate) lengths: Vec<u64>,
    /// Dependencies of each task, by position.
    pub(crate) needs: Vec<Vec<usize>>,
}

impl Instance {
    /// Adds a task and returns its position.
    pub(crate) fn add(&mut self, length: u64, needs: &[usize]) -> usize {
        let mut needs = needs.to_vec();
        needs.sort_unstable();
        needs.dedup();
        self.lengths.push(length.max(1));
        self.needs.push(needs);
        self.lengths.len() - 1
    }

    /// Returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the graph with all dependencies reversed; the last task becomes the first.
    pub(super) fn reversed(&self) -> Self {
        let other = |task: &usize| self.len() - 1 - task;
        let lengths = self.lengths.iter().rev().copied().collect();
        let needs = self.dependents().iter().rev().map(|tasks| tasks.iter().map(other).collect()).collect();
        Self { lengths, needs }
    }

    /// Returns the dependents of each task.
    pub(crate) fn dependents(&self) -> Vec<Vec<usize>> {
        let mut dependents = vec![Vec::new(); self.len()];
        for (task, needs) in self.needs.iter().enumerate() {
            for on in needs {
                dependents[*on].push(task);
            }
        }
        dependents
    }

    /// Returns the ranks that a run with `jobs` jobs would use if it expected these lengths.
    ///
    /// # Panics
    /// Panics if there are more tasks than keys.
    pub(crate) fn ranks(&self, lengths: &[u64], jobs: usize) -> KeyMap<u64> {
        self.graph(lengths).rehearsed_ranks(jobs, &BTreeMap::new())
    }

    /// Returns the longest path from each task to the end.
    ///
    /// # Panics
    /// Panics if there are more tasks than keys.
    pub(crate) fn longest_ways(&self) -> KeyMap<u64> {
        self.graph(&self.lengths).ranks()
    }

    fn graph(&self, lengths: &[u64]) -> Graph {
        let mut graph = Graph::default();
        for (task, length) in lengths.iter().enumerate() {
            graph.add_weighted(key(task), *length);
        }
        for (task, needs) in self.needs.iter().enumerate() {
            for on in needs {
                graph.add_dependency(key(task), key(*on));
            }
        }
        graph
    }

    /// Returns lengths with an error of about `percent` in both directions, like estimates from earlier runs.
    pub(crate) fn estimates(&self, random: &mut Random, percent: u64) -> Vec<u64> {
        let wrong = |length: &u64| {
            // The sum of three uniform numbers is nearly normally distributed: most errors are small, few are large.
            let sum: u64 = (0..3).map(|_| random.below_u64(2 * percent + 1)).sum();
            (length * (300 + sum) / (300 + 3 * percent)).max(1)
        };
        self.lengths.iter().map(wrong).collect()
    }
}

pub(super) fn key(task: usize) -> Key {
    Key(u32::try_from(task).expect("BUG: there are few tasks"))
}
