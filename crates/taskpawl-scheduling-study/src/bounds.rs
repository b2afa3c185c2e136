use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::instance::Instance;

/// Returns the longest path or the total work divided by the jobs, whichever is longer. No schedule is faster.
pub(crate) fn lower_bound(instance: &Instance, jobs: usize) -> u64 {
    let (heads, tails) = ways(instance);
    let path = (0..instance.len()).map(|task| heads[task] + instance.lengths[task] + tails[task]).max();
    let work: u64 = instance.lengths.iter().sum();
    path.unwrap_or(0).max(work.div_ceil(jobs as u64))
}

/// Returns a tighter bound. In addition to [`lower_bound`] it uses the work before each task and the work after it.
///
/// - No task starts before the longest path to it, nor before the work of all its predecessors, divided by the jobs.
///   The same holds for the time after it.
/// - A set of tasks starts no earlier than the earliest of its tasks, takes at least its work divided by the jobs, and
///   is followed by at least the shortest time after one of its tasks.
/// - Of any `k · jobs + 1` tasks some `k + 1` run one after the other, which takes at least the `k + 1` shortest of
///   them.
///
/// The sets consist of the tasks that start at least so late and end at least so early. For the work all such sets are
/// used, for the sequences only some, because they are expensive.
pub(crate) fn tight_bound(instance: &Instance, jobs: usize) -> u64 {
    const LOOKED_AT: usize = 24;
    let heads = earliest(instance, jobs);
    let tails = earliest(&instance.reversed(), jobs);
    let tails: Vec<u64> = tails.into_iter().rev().collect();
    let mut best = lower_bound(instance, jobs).max(work_bound(instance, jobs, &heads, &tails));
    for head in some(&heads, LOOKED_AT) {
        for tail in some(&tails, LOOKED_AT) {
            let is_in = |task: &usize| heads[*task] >= head && tails[*task] >= tail;
            let set = (0..instance.len()).filter(is_in).map(|task| instance.lengths[task]);
            let set: Vec<u64> = set.collect();
            if !set.is_empty() {
                best = best.max(head + least_time(set, jobs) + tail);
            }
        }
    }
    best
}

/// Returns the best bound from the work of such sets.
fn work_bound(instance: &Instance, jobs: usize, heads: &[u64], tails: &[u64]) -> u64 {
    let mut latest: Vec<usize> = (0..instance.len()).collect();
    latest.sort_by_key(|task| Reverse(tails[*task]));
    let mut best = 0;
    for head in heads.iter().collect::<BTreeSet<_>>() {
        let mut work = 0;
        for task in latest.iter().copied().filter(|task| heads[*task] >= *head) {
            work += instance.lengths[task];
            best = best.max(head + work.div_ceil(jobs as u64) + tails[task]);
        }
    }
    best
}

/// Returns the least time that independent tasks take.
fn least_time(mut lengths: Vec<u64>, jobs: usize) -> u64 {
    let work: u64 = lengths.iter().sum();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let behind = (1..=lengths.len() / jobs).filter(|others| others * jobs < lengths.len());
    let sums = behind.map(|others| lengths[others * jobs - others..=others * jobs].iter().sum());
    sums.chain([work.div_ceil(jobs as u64)]).max().unwrap_or(0)
}

/// Returns a lower bound for the start of each task.
fn earliest(instance: &Instance, jobs: usize) -> Vec<u64> {
    let mut starts = vec![0_u64; instance.len()];
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(instance.len());
    for task in 0..instance.len() {
        let mut all = vec![false; task];
        let mut start = 0;
        for on in &instance.needs[task] {
            start = start.max(starts[*on] + instance.lengths[*on]);
            all[*on] = true;
            for (is_before, also) in all.iter_mut().zip(&before[*on]) {
                *is_before |= also;
            }
        }
        let lengths = instance.lengths.iter().zip(&all);
        let work: u64 = lengths.filter(|(_, is_before)| **is_before).map(|(length, _)| length).sum();
        starts[task] = start.max(work.div_ceil(jobs as u64));
        before.push(all);
    }
    starts
}

/// Returns the longest paths to the start of each task and from its end.
pub(crate) fn ways(instance: &Instance) -> (Vec<u64>, Vec<u64>) {
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

/// Returns at most `most` of the distinct values, evenly spread.
fn some(values: &[u64], most: usize) -> Vec<u64> {
    let different: Vec<u64> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    if different.len() <= most {
        return different;
    }
    (0..most).map(|place| different[place * (different.len() - 1) / (most - 1)]).collect()
}
