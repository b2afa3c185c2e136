use std::collections::BTreeSet;

use super::instance::Instance;

/// Returns the longest path, or the work shared by the jobs, whichever is longer: nothing is faster.
pub fn lower_bound(instance: &Instance, jobs: usize) -> u64 {
    let (heads, tails) = ways(instance);
    let path = (0..instance.len()).map(|task| heads[task] + instance.lengths[task] + tails[task]).max();
    let work: u64 = instance.lengths.iter().sum();
    path.unwrap_or(0).max(work.div_ceil(jobs as u64))
}

/// Sets of tasks, each with the shortest way to one of them, the work of all, and the shortest way from one of them to the end.
#[derive(Debug, Clone)]
pub struct Windows(Vec<(u64, u64, u64)>);

impl Windows {
    /// Looks at the sets of what lies at least so far from the start and so far from the end.
    pub fn of(instance: &Instance) -> Self {
        const LOOKED_AT: usize = 24;
        let (heads, tails) = ways(instance);
        let mut windows = Vec::new();
        for head in some(&heads, LOOKED_AT) {
            for tail in some(&tails, LOOKED_AT) {
                let is_in = |task: &usize| heads[*task] >= head && tails[*task] >= tail;
                let work: u64 = (0..instance.len()).filter(is_in).map(|task| instance.lengths[task]).sum();
                if work > 0 {
                    windows.push((head, work, tail));
                }
            }
        }
        Self(windows)
    }

    /// Returns a better bound: no task of a set starts before the shortest way to one of them, all of them together take at least
    /// their work shared by the jobs, and after the last of them comes at least the shortest way from one of them to the end.
    pub fn bound(&self, jobs: usize) -> u64 {
        let bounds = self.0.iter().map(|(head, work, tail)| head + work.div_ceil(jobs as u64) + tail);
        bounds.max().unwrap_or(0)
    }
}

/// Returns the longest way to each task and from its end on.
fn ways(instance: &Instance) -> (Vec<u64>, Vec<u64>) {
    let mut heads = vec![0_u64; instance.len()];
    let mut tails = vec![0_u64; instance.len()];
    for task in 0..instance.len() {
        let needs = &instance.needs[task];
        heads[task] = needs.iter().map(|on| heads[*on] + instance.lengths[*on]).max().unwrap_or(0);
    }
    for task in (0..instance.len()).rev() {
        for on in &instance.needs[task] {
            tails[*on] = tails[*on].max(tails[task] + instance.lengths[task]);
        }
    }
    (heads, tails)
}

/// Returns at most `most` of the different values, spread evenly.
fn some(values: &[u64], most: usize) -> Vec<u64> {
    let different: Vec<u64> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    if different.len() <= most {
        return different;
    }
    (0..most).map(|place| different[place * (different.len() - 1) / (most - 1)]).collect()
}

/// Returns the shortest possible makespan, by trying every order: for up to about ten tasks.
///
/// Some order of starting what is ready at once is among the best, as no task here is worth waiting for with a free place when
/// others are ready; and where waiting helps, orders that leave a place free until the next end are tried, too.
pub fn exact_makespan(instance: &Instance, jobs: usize) -> u64 {
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
        // Or nothing more starts before the next end.
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
