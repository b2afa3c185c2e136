//! Allocation: who holds what there is only so much of, and who is next.
//!
//! A claim takes what it needs in one fixed order, holds what it has, and waits for the next in a single queue, by priority and
//! then by age. So nobody waits in a circle, nobody is overtaken for ever however much it needs, and what is given back is
//! looked at by the first of one queue, not by all that wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::Key;
use crate::command::Needs;
use crate::paths;
use crate::spec::Priority;

/// Something of which there is only so much. The order is that in which claims take them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// A named resource.
    Resource(String),
    /// Items of a task that run at once.
    Items(Key),
    /// A path, with all below it. Who writes below it has a share of it, who writes it has all.
    Path(String),
}

/// All of a path.
const WHOLE: u64 = u64::MAX >> 1;

/// The place of a claim in every queue.
type Turn = (Priority, u64, Key);

#[derive(Debug, Clone, Default)]
struct Stock {
    capacity: u64,
    used: u64,
    queue: BTreeSet<Turn>,
}

#[derive(Debug, Clone)]
struct Step {
    pool: Pool,
    amount: u64,
    capacity: u64,
}

#[derive(Debug, Clone)]
struct Claim {
    /// What it needs, in order.
    steps: Vec<Step>,
    /// How many of the steps it has.
    taken: usize,
    turn: Turn,
}

/// What claims hold and wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allocation {
    stocks: BTreeMap<Pool, Stock>,
    claims: BTreeMap<Key, Claim>,
    /// Claims that have all they need and were not taken note of.
    granted: BTreeSet<Turn>,
    next: u64,
}

impl Allocation {
    /// Asks for what a task needs. Once it has it, it is among what [`take_granted`](Self::take_granted) returns.
    pub(crate) fn request(&mut self, key: Key, needs: &Needs, priority: Priority) {
        self.release(key);
        let turn = (priority, self.next, key);
        self.next += 1;
        self.claims.insert(key, Claim { steps: steps(needs), taken: 0, turn });
        self.advance(key);
    }

    /// Gives a task what it needs although there may not be as much: it has it already.
    pub(crate) fn hold(&mut self, key: Key, needs: &Needs) {
        self.release(key);
        let steps = steps(needs);
        for step in &steps {
            self.stock(step).used += step.amount;
        }
        self.claims
            .insert(key, Claim { taken: steps.len(), steps, turn: (Priority::Medium, self.next, key) });
        self.next += 1;
    }

    /// Takes back what a task was granted, and puts it where it was in the queues; returns whether it now waits in one. Else it
    /// still has all that it needs.
    pub(crate) fn ask_again(&mut self, key: Key) -> bool {
        let Some(claim) = self.claims.get_mut(&key) else { return false };
        let turn = claim.turn;
        let taken = claim.steps[..std::mem::take(&mut claim.taken)].to_vec();
        for step in &taken {
            self.stock(step).used -= step.amount;
        }
        self.advance(key);
        self.wake(&taken);
        !self.granted.remove(&turn)
    }

    /// Gives back what a task holds, and takes it out of the queue where it waits.
    pub(crate) fn release(&mut self, key: Key) {
        let Some(claim) = self.claims.remove(&key) else { return };
        self.granted.remove(&claim.turn);
        for step in &claim.steps[..claim.taken] {
            self.stock(step).used -= step.amount;
        }
        if let Some(step) = claim.steps.get(claim.taken) {
            self.stock(step).queue.remove(&claim.turn);
        }
        let concerned = claim.steps.len().min(claim.taken + 1);
        self.wake(&claim.steps[..concerned]);
    }

    /// Returns whether a task asked for something and has not given it back.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.claims.contains_key(&key)
    }

    /// Returns whether a task has all that it asked for, and that was taken note of.
    pub(crate) fn has_all(&self, key: Key) -> bool {
        let is_settled =
            |claim: &Claim| claim.taken == claim.steps.len() && !self.granted.contains(&claim.turn);
        self.claims.get(&key).is_some_and(is_settled)
    }

    /// Returns the tasks that have all they need since this was asked last, in order.
    pub(crate) fn take_granted(&mut self) -> impl Iterator<Item = Key> + use<> {
        std::mem::take(&mut self.granted).into_iter().map(|(_, _, key)| key)
    }

    fn stock(&mut self, step: &Step) -> &mut Stock {
        let stock = self.stocks.entry(step.pool.clone()).or_default();
        stock.capacity = step.capacity;
        stock
    }

    /// Takes step after step until one is not to be had: there the claim waits.
    fn advance(&mut self, key: Key) {
        let Some(mut claim) = self.claims.remove(&key) else { return };
        while let Some(step) = claim.steps.get(claim.taken) {
            let stock = self.stock(step);
            let is_first = stock.queue.first().is_none_or(|first| claim.turn <= *first);
            if !is_first || stock.used.saturating_add(step.amount) > stock.capacity {
                stock.queue.insert(claim.turn);
                break;
            }
            stock.queue.remove(&claim.turn);
            stock.used += step.amount;
            claim.taken += 1;
        }
        if claim.taken == claim.steps.len() {
            self.granted.insert(claim.turn);
        }
        self.claims.insert(key, claim);
    }

    /// Lets the first of each queue go on, as long as there is enough for it.
    fn wake(&mut self, steps: &[Step]) {
        for step in steps {
            while let Some(stock) = self.stocks.get(&step.pool) {
                let before = stock.queue.len();
                let Some((_, _, key)) = stock.queue.first().copied() else {
                    if stock.used == 0 {
                        self.stocks.remove(&step.pool);
                    }
                    break;
                };
                self.advance(key);
                if self.stocks.get(&step.pool).is_some_and(|stock| stock.queue.len() == before) {
                    break;
                }
            }
        }
    }
}

/// Returns what a task needs in the order in which it is taken.
fn steps(needs: &Needs) -> Vec<Step> {
    let mut steps = BTreeMap::new();
    for (name, amount) in needs.resources.iter().filter(|(_, amount)| amount.units > 0) {
        steps.insert(Pool::Resource(name.clone()), (amount.units.into(), amount.of.into()));
    }
    if let Some((parent, most)) = needs.items {
        steps.insert(Pool::Items(parent), (1, most.into()));
    }
    for path in needs.paths() {
        for above in paths::above(&path) {
            steps.entry(Pool::Path(above.to_owned())).or_insert((1, WHOLE));
        }
        steps.insert(Pool::Path(path), (WHOLE, WHOLE));
    }
    steps.into_iter().map(|(pool, (amount, capacity))| Step { pool, amount, capacity }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Amount;

    fn units(name: &str, units: u32, of: u32) -> Needs {
        Needs { resources: BTreeMap::from([(name.to_owned(), Amount { units, of })]), ..Needs::default() }
    }

    fn writes(paths: &[&str]) -> Needs {
        Needs { writes: paths.iter().map(|path| (*path).to_owned()).collect(), ..Needs::default() }
    }

    const NOBODY: [u32; 0] = [];

    /// Asks in order and returns who has what it needs after each step.
    fn granted(allocation: &mut Allocation) -> Vec<u32> {
        allocation.take_granted().map(|key| key.0).collect()
    }

    fn ask(allocation: &mut Allocation, key: u32, needs: &Needs) -> Vec<u32> {
        allocation.request(Key(key), needs, Priority::Medium);
        granted(allocation)
    }

    fn give_back(allocation: &mut Allocation, key: u32) -> Vec<u32> {
        allocation.release(Key(key));
        granted(allocation)
    }

    #[test]
    fn a_big_claim_is_not_overtaken_by_a_stream_of_small_ones() {
        let mut all = Allocation::default();
        assert_eq!(ask(&mut all, 1, &units("gpu", 1, 3)), [1]);
        assert_eq!(ask(&mut all, 2, &units("gpu", 3, 3)), NOBODY);
        for small in 3..10 {
            assert_eq!(ask(&mut all, small, &units("gpu", 1, 3)), NOBODY);
        }
        assert_eq!(give_back(&mut all, 1), [2]);
        assert_eq!(give_back(&mut all, 2), [3, 4, 5]);
        assert_eq!(give_back(&mut all, 4), [6]);
    }

    #[test]
    fn what_is_more_urgent_comes_first_and_what_is_taken_out_makes_room() {
        let mut all = Allocation::default();
        ask(&mut all, 1, &units("gpu", 1, 2));
        assert_eq!(ask(&mut all, 2, &units("gpu", 2, 2)), NOBODY);
        assert_eq!(ask(&mut all, 3, &units("gpu", 1, 2)), NOBODY);
        all.request(Key(4), &units("gpu", 1, 2), Priority::Critical);
        assert_eq!(granted(&mut all), [4]);
        assert_eq!(give_back(&mut all, 2), NOBODY);
        assert_eq!(give_back(&mut all, 4), [3]);
        assert_eq!((give_back(&mut all, 1), give_back(&mut all, 3)), (vec![], vec![]));
        assert!(all.stocks.is_empty() && all.claims.is_empty());
    }

    #[test]
    fn several_resources_are_taken_together_and_nobody_waits_in_a_circle() {
        let mut all = Allocation::default();
        let both = |first: &str, second: &str| {
            let mut needs = units(first, 1, 1);
            needs.resources.extend(units(second, 1, 1).resources);
            needs
        };
        assert_eq!(ask(&mut all, 1, &both("a", "b")), [1]);
        assert_eq!(ask(&mut all, 2, &both("b", "c")), NOBODY);
        assert_eq!(ask(&mut all, 3, &both("c", "a")), NOBODY);
        assert_eq!(ask(&mut all, 4, &units("c", 1, 1)), [4]);
        assert_eq!(give_back(&mut all, 4), NOBODY);
        assert_eq!(give_back(&mut all, 1), [3]);
        assert_eq!(give_back(&mut all, 3), [2]);
    }

    #[test]
    fn paths_exclude_what_is_above_and_below_them() {
        let mut all = Allocation::default();
        assert_eq!(ask(&mut all, 1, &writes(&["src/a.rs"])), [1]);
        assert_eq!(ask(&mut all, 2, &writes(&["./src/b.rs", "doc"])), [2]);
        assert_eq!(ask(&mut all, 3, &writes(&["src/*.rs"])), NOBODY);
        assert_eq!(ask(&mut all, 4, &writes(&["src/c.rs"])), NOBODY);
        assert_eq!(ask(&mut all, 5, &writes(&["srcs"])), [5]);
        assert_eq!(give_back(&mut all, 1), NOBODY);
        assert_eq!(give_back(&mut all, 2), [3]);
        assert_eq!(ask(&mut all, 6, &writes(&["."])), NOBODY);
        assert_eq!(give_back(&mut all, 3), [4]);
        assert_eq!(give_back(&mut all, 4), NOBODY);
        assert_eq!(give_back(&mut all, 5), [6]);
    }

    #[test]
    fn who_goes_on_after_all_keeps_what_it_has_and_the_next_keeps_its_turn() {
        let mut all = Allocation::default();
        let lock = units("lock", 1, 1);
        for key in 1..4 {
            ask(&mut all, key, &lock);
        }
        assert_eq!(give_back(&mut all, 1), [2]);
        all.hold(Key(1), &lock);
        assert!(all.ask_again(Key(2)));
        assert_eq!(granted(&mut all), NOBODY);
        assert_eq!(give_back(&mut all, 1), [2]);
        assert_eq!(give_back(&mut all, 2), [3]);
    }

    #[test]
    fn a_lock_that_a_hundred_thousand_wait_for_costs_each_the_same() {
        let mut all = Allocation::default();
        for key in 1..=100_000 {
            all.request(Key(key), &units("lock", 1, 1), Priority::Medium);
        }
        for key in 1..=100_000 {
            assert_eq!(granted(&mut all), [key]);
            all.release(Key(key));
        }
        assert!(all.stocks.is_empty());
    }
}
