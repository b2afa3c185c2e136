use std::collections::BTreeMap;

use taskpawl_model::{Graph, Key, KeyMap};

use crate::Random;

/// Tasks with lengths in milliseconds and what each depends on; dependencies come before what depends on them.
#[derive(Debug, Clone, Default)]
pub struct Instance {
    /// How long each task takes.
    pub lengths: Vec<u64>,
    /// What each task depends on.
    pub needs: Vec<Vec<usize>>,
}

impl Instance {
    /// Adds a task and returns its number.
    pub fn add(&mut self, length: u64, needs: &[usize]) -> usize {
        let mut needs = needs.to_vec();
        needs.sort_unstable();
        needs.dedup();
        self.lengths.push(length.max(1));
        self.needs.push(needs);
        self.lengths.len() - 1
    }

    /// Returns how many tasks there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the graph from its end to its beginning: the last task is the first, and needs what depended on it.
    pub(super) fn reversed(&self) -> Self {
        let other = |task: &usize| self.len() - 1 - task;
        let lengths = self.lengths.iter().rev().copied().collect();
        let needs = self.dependents().iter().rev().map(|tasks| tasks.iter().map(other).collect()).collect();
        Self { lengths, needs }
    }

    /// Returns what depends on each task.
    pub fn dependents(&self) -> Vec<Vec<usize>> {
        let mut dependents = vec![Vec::new(); self.len()];
        for (task, needs) in self.needs.iter().enumerate() {
            for on in needs {
                dependents[*on].push(task);
            }
        }
        dependents
    }

    /// Returns the ranks that a run of `jobs` calls at once would use which expects `lengths`.
    ///
    /// # Panics
    /// There are more tasks than keys.
    pub fn ranks(&self, lengths: &[u64], jobs: usize) -> KeyMap<u64> {
        self.graph(lengths).rehearsed_ranks(jobs, &BTreeMap::new())
    }

    /// Returns the longest way from each task to the end.
    ///
    /// # Panics
    /// There are more tasks than keys.
    pub fn longest_ways(&self) -> KeyMap<u64> {
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

    /// Returns lengths that are wrong by about `percent` either way, as those of the past are.
    pub fn estimates(&self, random: &mut Random, percent: u64) -> Vec<u64> {
        let wrong = |length: &u64| {
            // Three numbers added up are nearly normal: most are a little wrong, few are far off.
            let sum: u64 = (0..3).map(|_| random.below_u64(2 * percent + 1)).sum();
            (length * (300 + sum) / (300 + 3 * percent)).max(1)
        };
        self.lengths.iter().map(wrong).collect()
    }
}

pub(super) fn key(task: usize) -> Key {
    Key(u32::try_from(task).expect("BUG: there are few tasks"))
}
