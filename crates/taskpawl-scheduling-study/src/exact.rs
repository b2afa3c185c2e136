use std::collections::BTreeSet;

use crate::bounds::ways;
use crate::instance::Instance;

/// Returns the shortest possible makespan by trying every order. Only feasible for up to about ten tasks.
///
/// The search starts ready tasks whenever a job is free. As it can be better to leave a job idle until the next task
/// ends, it tries that as well.
pub(crate) fn exact_makespan(instance: &Instance, jobs: usize) -> u64 {
    let (_, tails) = ways(instance);
    let mut search = Exact { instance, jobs, tails, best: instance.lengths.iter().sum() };
    search.go_on(0, &mut BTreeSet::new(), &mut BTreeSet::new());
    search.best
}

struct Exact<'i> {
    instance: &'i Instance,
    jobs: usize,
    tails: Vec<u64>,
    best: u64,
}

impl Exact<'_> {
    fn go_on(&mut self, now: u64, running: &mut BTreeSet<(u64, usize)>, done: &mut BTreeSet<usize>) {
        let bound = running.iter().map(|(end, task)| end + self.tails[*task]).max().unwrap_or(now);
        if bound >= self.best && done.len() < self.instance.len() {
            return;
        }
        if done.len() == self.instance.len() {
            self.best = self.best.min(now);
            return;
        }
        if running.len() < self.jobs {
            for task in self.ready(running, done) {
                let run = (now + self.instance.lengths[task], task);
                running.insert(run);
                self.go_on(now, running, done);
                running.remove(&run);
            }
        }
        // The other choice: start nothing more before the next task ends.
        if let Some((end, task)) = running.first().copied() {
            running.remove(&(end, task));
            done.insert(task);
            self.go_on(end, running, done);
            done.remove(&task);
            running.insert((end, task));
        }
    }

    fn ready(&self, running: &BTreeSet<(u64, usize)>, done: &BTreeSet<usize>) -> Vec<usize> {
        let runs = |task: usize| running.iter().any(|(_, other)| *other == task);
        let is_ready = |task: &usize| {
            !done.contains(task)
                && !runs(*task)
                && self.instance.needs[*task].iter().all(|on| done.contains(on))
        };
        (0..self.instance.len()).filter(is_ready).collect()
    }
}
