//! Resource allocation: named resources, write paths and item slots that tasks of a run share.
//!
//! A claim takes its needs in one fixed order, holds those it has, and waits for the next one in a single queue. The
//! queue is ordered by priority and then by age. The fixed order rules out deadlocks. The queue rules out starvation,
//! however much a claim needs. A release looks at the first claim of each queue it touched, not at every waiting claim.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::Needs;
use crate::task::spec::Priority;
use crate::value::Key;
use crate::value::paths;

/// A limited resource. The order of the variants is the order in which claims take them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// A named resource.
    Resource(String),
    /// Items of a `forEach` task that run at once.
    Items(Key),
    /// A path with everything below it. A task that writes below it takes one share; a task that writes it takes all.
    Path(String),
}

/// The capacity of a path: more than all shares together, and so large that only one claim can hold the whole of it.
/// Half of the range leaves room for [`ResourceAllocator::hold`], which adds without checking the capacity.
const WHOLE: u64 = u64::MAX >> 1;

/// The position of a claim in every queue: priority, then the number of the request, so that older requests come first.
type QueuePosition = (Priority, u64, Key);

#[derive(Debug, Clone, Default)]
struct PoolUse {
    capacity: u64,
    used: u64,
    queue: BTreeSet<QueuePosition>,
}

#[derive(Debug, Clone)]
struct Step {
    pool: Pool,
    amount: u64,
    capacity: u64,
}

#[derive(Debug, Clone)]
struct Claim {
    /// Its needs, in the order in which they are taken.
    steps: Vec<Step>,
    /// The number of steps it holds, counted from the start of `steps`.
    taken: usize,
    turn: QueuePosition,
}

/// The resources that claims hold and wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceAllocator {
    stocks: BTreeMap<Pool, PoolUse>,
    claims: BTreeMap<Key, Claim>,
    /// Claims that got everything and were not yet returned by `take_granted`.
    granted: BTreeSet<QueuePosition>,
    next: u64,
}

impl ResourceAllocator {
    /// Requests the needs of a task. Once all are held, [`take_granted`](Self::take_granted) returns the task.
    pub(crate) fn request(&mut self, key: Key, needs: &Needs, priority: Priority) {
        self.release(key);
        let turn = (priority, self.next, key);
        self.next += 1;
        self.claims.insert(key, Claim { steps: steps(needs), taken: 0, turn });
        self.advance(key);
    }

    /// Records that a task holds its needs, even beyond the capacity, because its calls already run with them.
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

    /// Returns the needs of a task to their pools and requests them again at its old position in the queues.
    ///
    /// Returns whether the task now waits. Otherwise it has everything again.
    pub(crate) fn ask_again(&mut self, key: Key) -> bool {
        let Some(claim) = self.claims.get_mut(&key) else { return false };
        let turn = claim.turn;
        let taken = claim.steps[..std::mem::take(&mut claim.taken)].to_vec();
        for step in &taken {
            self.stock(step).used -= step.amount;
        }
        // This claim is in no queue at this point: waking the others first would let younger claims overtake it.
        self.advance(key);
        self.wake(&taken);
        !self.granted.remove(&turn)
    }

    /// Releases everything that a task holds, and removes it from the queue in which it waits.
    pub(crate) fn release(&mut self, key: Key) {
        let Some(claim) = self.claims.remove(&key) else { return };
        self.granted.remove(&claim.turn);
        for step in &claim.steps[..claim.taken] {
            self.stock(step).used -= step.amount;
        }
        if let Some(step) = claim.steps.get(claim.taken) {
            self.stock(step).queue.remove(&claim.turn);
        }
        // The pool in which the claim waited is woken as well: a smaller claim behind it may fit now that it is gone.
        let concerned = claim.steps.len().min(claim.taken + 1);
        self.wake(&claim.steps[..concerned]);
    }

    /// Returns whether a task has a request, granted or waiting.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.claims.contains_key(&key)
    }

    /// Returns whether a task has everything it requested and `take_granted` has already returned it.
    pub(crate) fn has_all(&self, key: Key) -> bool {
        let is_settled =
            |claim: &Claim| claim.taken == claim.steps.len() && !self.granted.contains(&claim.turn);
        self.claims.get(&key).is_some_and(is_settled)
    }

    /// Returns the tasks that got everything since the last call, by priority and age.
    pub(crate) fn take_granted(&mut self) -> impl Iterator<Item = Key> + use<> {
        std::mem::take(&mut self.granted).into_iter().map(|(_, _, key)| key)
    }

    fn stock(&mut self, step: &Step) -> &mut PoolUse {
        let stock = self.stocks.entry(step.pool.clone()).or_default();
        stock.capacity = step.capacity;
        stock
    }

    /// Takes step after step until one does not fit; the claim then waits in the queue of that pool.
    fn advance(&mut self, key: Key) {
        let Some(mut claim) = self.claims.remove(&key) else { return };
        // The claim is out of the map while it advances, because `stock` borrows the whole of `self`.
        while let Some(step) = claim.steps.get(claim.taken) {
            let stock = self.stock(step);
            // A claim that would fit still waits behind an earlier one, or a stream of small claims would starve a
            // large one.
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

    /// Lets the first claim of each queue advance while there is enough for it.
    fn wake(&mut self, steps: &[Step]) {
        for step in steps {
            while let Some(stock) = self.stocks.get(&step.pool) {
                let before = stock.queue.len();
                let Some((_, _, key)) = stock.queue.first().copied() else {
                    // Empty pools are removed: resources and paths are named by plans, and a long run would keep every
                    // name.
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

/// Returns the needs of a task in the order in which they are taken.
fn steps(needs: &Needs) -> Vec<Step> {
    let mut steps = BTreeMap::new();
    for (name, amount) in needs.resources.iter().filter(|(_, amount)| amount.units > 0) {
        steps.insert(Pool::Resource(name.clone()), (amount.units.into(), amount.of.into()));
    }
    if let Some((parent, most)) = needs.items {
        steps.insert(Pool::Items(parent), (1, most.into()));
    }
    for path in needs.paths() {
        // Every directory above takes one share. A task that writes the directory needs all of it, and so excludes this
        // one.
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

    const NONE: [u32; 0] = [];

    /// Returns the tasks that were granted since the last call.
    fn granted(allocator: &mut ResourceAllocator) -> Vec<u32> {
        allocator.take_granted().map(|key| key.0).collect()
    }

    fn ask(allocator: &mut ResourceAllocator, key: u32, needs: &Needs) -> Vec<u32> {
        allocator.request(Key(key), needs, Priority::Medium);
        granted(allocator)
    }

    fn give_back(allocator: &mut ResourceAllocator, key: u32) -> Vec<u32> {
        allocator.release(Key(key));
        granted(allocator)
    }

    #[test]
    fn small_claims_do_not_overtake_a_large_claim() {
        let mut all = ResourceAllocator::default();
        assert_eq!(ask(&mut all, 1, &units("gpu", 1, 3)), [1]);
        assert_eq!(ask(&mut all, 2, &units("gpu", 3, 3)), NONE);
        for small in 3..10 {
            assert_eq!(ask(&mut all, small, &units("gpu", 1, 3)), NONE);
        }
        assert_eq!(give_back(&mut all, 1), [2]);
        assert_eq!(give_back(&mut all, 2), [3, 4, 5]);
        assert_eq!(give_back(&mut all, 4), [6]);
    }

    #[test]
    fn urgent_claims_come_first_and_a_removed_claim_makes_room() {
        let mut all = ResourceAllocator::default();
        ask(&mut all, 1, &units("gpu", 1, 2));
        assert_eq!(ask(&mut all, 2, &units("gpu", 2, 2)), NONE);
        assert_eq!(ask(&mut all, 3, &units("gpu", 1, 2)), NONE);
        all.request(Key(4), &units("gpu", 1, 2), Priority::Critical);
        assert_eq!(granted(&mut all), [4]);
        assert_eq!(give_back(&mut all, 2), NONE);
        assert_eq!(give_back(&mut all, 4), [3]);
        assert_eq!((give_back(&mut all, 1), give_back(&mut all, 3)), (vec![], vec![]));
        assert!(all.stocks.is_empty() && all.claims.is_empty());
    }

    #[test]
    fn claims_of_several_resources_do_not_deadlock() {
        let mut all = ResourceAllocator::default();
        let both = |first: &str, second: &str| {
            let mut needs = units(first, 1, 1);
            needs.resources.extend(units(second, 1, 1).resources);
            needs
        };
        assert_eq!(ask(&mut all, 1, &both("a", "b")), [1]);
        assert_eq!(ask(&mut all, 2, &both("b", "c")), NONE);
        assert_eq!(ask(&mut all, 3, &both("c", "a")), NONE);
        assert_eq!(ask(&mut all, 4, &units("c", 1, 1)), [4]);
        assert_eq!(give_back(&mut all, 4), NONE);
        assert_eq!(give_back(&mut all, 1), [3]);
        assert_eq!(give_back(&mut all, 3), [2]);
    }

    #[test]
    fn a_path_excludes_its_parents_and_children() {
        let mut all = ResourceAllocator::default();
        assert_eq!(ask(&mut all, 1, &writes(&["src/a.rs"])), [1]);
        assert_eq!(ask(&mut all, 2, &writes(&["./src/b.rs", "doc"])), [2]);
        assert_eq!(ask(&mut all, 3, &writes(&["src/*.rs"])), NONE);
        assert_eq!(ask(&mut all, 4, &writes(&["src/c.rs"])), NONE);
        assert_eq!(ask(&mut all, 5, &writes(&["srcs"])), [5]);
        assert_eq!(give_back(&mut all, 1), NONE);
        assert_eq!(give_back(&mut all, 2), [3]);
        assert_eq!(ask(&mut all, 6, &writes(&["."])), NONE);
        assert_eq!(give_back(&mut all, 3), [4]);
        assert_eq!(give_back(&mut all, 4), NONE);
        assert_eq!(give_back(&mut all, 5), [6]);
    }

    #[test]
    fn a_resumed_task_keeps_its_needs_and_the_next_keeps_its_turn() {
        let mut all = ResourceAllocator::default();
        let lock = units("lock", 1, 1);
        for key in 1..4 {
            ask(&mut all, key, &lock);
        }
        assert_eq!(give_back(&mut all, 1), [2]);
        all.hold(Key(1), &lock);
        assert!(all.ask_again(Key(2)));
        assert_eq!(granted(&mut all), NONE);
        assert_eq!(give_back(&mut all, 1), [2]);
        assert_eq!(give_back(&mut all, 2), [3]);
    }

    #[test]
    fn a_lock_with_a_hundred_thousand_waiters_costs_each_the_same() {
        let mut all = ResourceAllocator::default();
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
