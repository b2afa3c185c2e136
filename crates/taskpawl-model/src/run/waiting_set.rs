//! The waiting set: tasks of a run that wait for something other than a slot, and the resources held by running tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::command::{Grant, Inquiry, Needs, Paused};
use crate::rules::order::Order;
use crate::run::allocator::ResourceAllocator;
use crate::value::Key;
use crate::value::Timestamp;

/// Tasks that wait for something other than a slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingSet {
    allocator: ResourceAllocator,
    /// Tasks with limits that are held or wait to be claimed.
    limited: BTreeMap<Key, Limited>,
    /// Tasks with an unanswered inquiry.
    looking: BTreeSet<Key>,
    /// Tasks that have everything this run can give, and that wait for resources held outside it.
    elsewhere: BTreeSet<Key>,
    /// Tasks that may be claimed with the grants they got.
    claimable: BTreeSet<Order>,
    /// Claimed tasks that pause: no call of them runs, except parallel ones beside a waiting call.
    paused: BTreeMap<Key, Paused>,
    alarms: BTreeSet<(Timestamp, Key)>,
    /// Paused tasks that may resume, oldest first. Entries may be stale; readers check `paused`.
    resumable: VecDeque<Key>,
    tools: BTreeMap<String, ToolPlaces>,
}

#[derive(Debug, Clone)]
struct Limited {
    needs: Needs,
    order: Order,
    grant: Grant,
    /// Its resources were released because its last call may have ended.
    is_let_go: bool,
    /// It was resumed after a call before, so it probably will be again.
    has_gone_on: bool,
}

#[derive(Debug, Clone, Default)]
struct ToolPlaces {
    most: usize,
    used: usize,
    claims: BTreeSet<Order>,
    paused: VecDeque<Key>,
}

impl WaitingSet {
    pub(crate) fn new(tools: BTreeMap<String, usize>) -> Self {
        let tools =
            tools.into_iter().map(|(name, most)| (name, ToolPlaces { most, ..ToolPlaces::default() }));
        Self { tools: tools.collect(), ..Self::default() }
    }

    // Asking.

    pub(crate) fn has_claimable(&self) -> bool {
        !self.claimable.is_empty()
    }

    pub(crate) fn has_limited(&self) -> bool {
        !self.limited.is_empty()
    }

    /// Returns whether an answer or the end of a pause is still expected.
    pub(crate) fn is_busy(&self) -> bool {
        !self.paused.is_empty() || !self.looking.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.limited.is_empty() && self.paused.is_empty()
    }

    pub(crate) fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Returns whether tasks wait for resources held outside this run.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Returns the tasks that wait for resources held outside this run, with their needs.
    pub(crate) fn held_up_by_others(&self) -> impl Iterator<Item = (Key, &Needs)> {
        self.elsewhere.iter().filter_map(|key| Some((*key, &self.limited.get(key)?.needs)))
    }

    pub(crate) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(at, _)| *at)
    }

    pub(crate) fn has_limit(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// Returns the number of free slots of each tool that has a limit.
    pub(crate) fn tool_places(&self) -> BTreeMap<String, usize> {
        let places =
            self.tools.iter().map(|(name, tool)| (name.clone(), tool.most.saturating_sub(tool.used)));
        places.collect()
    }

    // Tools.

    pub(crate) fn take_tool(&mut self, tool: &str) {
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.used += 1;
        }
    }

    /// Frees the slot of a call. Waiting tasks get it in the next `take_resumable`.
    pub(crate) fn free_tool(&mut self, tool: &str) {
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.used = tool.used.saturating_sub(1);
        }
    }

    /// Moves waiting tasks to the resumable and claimable ones, as many as there are free slots.
    fn free_tools(&mut self) {
        let mut woken = Vec::new();
        for (name, tool) in &mut self.tools {
            let mut free = tool.most.saturating_sub(tool.used);
            // Paused tasks come before claims: they are claimed already.
            while free > 0
                && let Some(key) = tool.paused.pop_front()
            {
                // It may have resumed since, for another reason.
                if let Some(paused) = self.paused.get_mut(&key).filter(|paused| paused.tools.contains(name)) {
                    woken.extend(paused.waits_no_more().map(|until| (until, key)));
                    self.resumable.push_back(key);
                    free -= 1;
                }
            }
            while free > 0 && !tool.claims.is_empty() {
                self.claimable.extend(tool.claims.pop_first());
                free -= 1;
            }
        }
        for alarm in woken {
            self.alarms.remove(&alarm);
        }
    }

    // Claims.

    /// Takes the first tasks that may be claimed with the grants they got.
    pub(crate) fn take_claimable(&mut self, most: usize, is_free: impl Fn(Key) -> bool) -> Vec<Order> {
        let taken: Vec<Order> =
            self.claimable.iter().filter(|order| is_free(order.key)).take(most).copied().collect();
        for order in &taken {
            self.claimable.remove(order);
        }
        taken
    }

    pub(crate) fn grant(&self, key: Key) -> Option<Grant> {
        self.limited.get(&key).map(|limited| limited.grant.clone())
    }

    /// Adds a task whose claim came back because it needs something first. Returns the inquiry to answer for it.
    pub(crate) fn park(&mut self, order: Order, mut needs: Needs) -> Option<Inquiry> {
        let key = order.key;
        if let Some(tool) = needs.tool.as_ref().and_then(|name| self.tools.get_mut(name)) {
            tool.claims.insert(order);
            // Its other needs may have changed by the time it gets a slot of the tool.
            self.forget(key);
            return None;
        }
        let before = self.limited.get(&key).map(|limited| &limited.needs);
        // Resolving paths reads the disk. The old result stands as long as the declared paths are the same.
        let previous =
            before.filter(|before| before.writes == needs.writes).and_then(|before| before.resolved.clone());
        needs.resolved = needs.resolved.or(previous);
        let writes = if needs.resolved.is_none() { needs.writes.clone() } else { Vec::new() };
        let inquiry = Inquiry { cache: needs.cache.clone(), writes };
        let (was_granted, is_held_elsewhere) = (before.is_some(), needs.is_held_elsewhere);
        let limited = self.limited.entry(key).or_insert_with(|| Limited {
            needs: Needs::default(),
            order,
            grant: Grant::default(),
            is_let_go: false,
            has_gone_on: false,
        });
        limited.needs = needs;
        if inquiry != Inquiry::default() {
            // Nothing is held while the inquiry runs, so that a slow one blocks no other task.
            self.allocator.release(key);
            self.looking.insert(key);
            return Some(inquiry);
        }
        match (is_held_elsewhere, was_granted) {
            (true, _) => _ = self.elsewhere.insert(key),
            (false, true) => self.ask_again(key),
            (false, false) => self.request(key),
        }
        None
    }

    fn ask_again(&mut self, key: Key) {
        if !self.allocator.has(key) {
            self.request(key);
        } else if !self.allocator.ask_again(key) {
            // The task of this run that held it has released it since.
            self.may_go_on(key);
        }
    }

    fn request(&mut self, key: Key) {
        if let Some(limited) = self.limited.get_mut(&key) {
            limited.is_let_go = false;
            self.allocator.request(key, &limited.needs, limited.order.priority);
        }
    }

    /// Applies the answer to an inquiry. A task whose result is in the cache needs no resources.
    pub(crate) fn found(&mut self, key: Key, mut grant: Grant) {
        let Some(limited) = self.limited.get_mut(&key).filter(|_| self.looking.remove(&key)) else { return };
        // The cache question is answered; only resources remain to be requested.
        let recorded = limited.needs.cache.take().and_then(|cache| cache.recorded);
        let is_hit = grant.fingerprint.is_some() && grant.fingerprint == recorded;
        match &grant.writes {
            Some(found) => limited.needs.resolved = Some(found.paths.clone()),
            None => grant.writes = limited.grant.writes.take(),
        }
        limited.grant = grant;
        if is_hit {
            self.claimable.insert(limited.order);
        } else {
            self.request(key);
        }
    }

    /// Retries the tasks that wait for resources held outside this run, after other processes wrote.
    pub(crate) fn others_wrote(&mut self) {
        for key in std::mem::take(&mut self.elsewhere) {
            self.may_go_on(key);
        }
    }

    fn may_go_on(&mut self, key: Key) {
        if self.paused.contains_key(&key) {
            self.resumable.push_back(key);
        } else if let Some(limited) = self.limited.get(&key) {
            self.claimable.insert(limited.order);
        }
    }

    /// Moves tasks that got all their resources to the claimable or resumable ones.
    pub(crate) fn sweep(&mut self) {
        for key in self.allocator.take_granted() {
            self.may_go_on(key);
        }
    }

    // Resources of claimed tasks.

    /// Releases the resources of a task without running calls: it may have ended.
    pub(crate) fn let_go(&mut self, key: Key) {
        // A task that was resumed before is likely to go on after this call as well. It keeps its resources until the
        // store answers, or it would have to queue for them between any two calls.
        if let Some(limited) = self.limited.get_mut(&key).filter(|limited| !limited.has_gone_on) {
            limited.is_let_go = true;
            self.allocator.release(key);
        }
    }

    /// Marks a task as resumed: it keeps its resources.
    pub(crate) fn keep(&mut self, key: Key) {
        let Some(limited) = self.limited.get_mut(&key) else { return };
        limited.has_gone_on = true;
        // It may have requested again before the store answered that it goes on.
        if std::mem::take(&mut limited.is_let_go) || !self.allocator.has_all(key) {
            self.allocator.hold(key, &limited.needs);
        }
    }

    /// Removes a task that this run no longer holds or waits for.
    pub(crate) fn forget(&mut self, key: Key) {
        self.elsewhere.remove(&key);
        self.looking.remove(&key);
        if let Some(limited) = self.limited.remove(&key) {
            self.claimable.remove(&limited.order);
            self.allocator.release(key);
        }
        self.unpause(key);
    }

    // Pauses.

    /// Pauses a task. It holds no resources until it resumes, unless parallel calls of it still run.
    pub(crate) fn pause(&mut self, paused: Paused, has_calls: bool) {
        let key = paused.key;
        if let Some(limited) = self.limited.get_mut(&key).filter(|_| !has_calls) {
            limited.is_let_go = true;
            limited.has_gone_on = false;
            self.allocator.release(key);
        }
        self.alarms.extend(paused.until.map(|until| (until, key)));
        let waits_for_one = paused.tools.len() == 1 && paused.until.is_none();
        for name in &paused.tools {
            let tool = self.tools.get_mut(name);
            // A task that resumed for another reason may still be queued here.
            if let Some(tool) = tool.filter(|tool| waits_for_one || !tool.paused.contains(&key)) {
                tool.paused.push_back(key);
            }
        }
        let waits_for_place = paused.until.is_none() && paused.tools.is_empty();
        self.paused.insert(key, paused);
        if waits_for_place {
            self.wants_to_go_on(key);
        }
    }

    /// Resumes the tasks whose pauses are over.
    pub(crate) fn due(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.remove(&(at, key));
            if let Some(paused) = self.paused.get_mut(&key) {
                paused.waits_no_more();
                self.wants_to_go_on(key);
            }
        }
    }

    fn wants_to_go_on(&mut self, key: Key) {
        match self.limited.get(&key) {
            Some(limited) if limited.is_let_go && limited.needs.has_limits() => self.request(key),
            Some(_) | None => self.resumable.push_back(key),
        }
    }

    /// Takes the first paused tasks that may resume, at most `most`.
    pub(crate) fn take_resumable(&mut self, most: usize) -> Vec<Paused> {
        self.free_tools();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(key) = self.resumable.pop_front()
        {
            let lacks =
                self.limited.get(&key).is_some_and(|limited| limited.is_let_go && limited.needs.has_limits());
            // It released its resources, so it has to queue for them before it resumes.
            if lacks && self.paused.contains_key(&key) {
                self.request(key);
            } else {
                taken.extend(self.paused.remove(&key));
            }
        }
        taken
    }

    /// Pauses a task again that was to resume and did not get its resources.
    pub(crate) fn pause_again(&mut self, paused: Paused) {
        let key = paused.key;
        self.paused.insert(key, Paused { until: None, tools: BTreeSet::new(), ..paused });
        if self.limited.contains_key(&key) {
            self.ask_again(key);
        } else {
            self.resumable.push_back(key);
        }
    }

    /// Ends a pause because the store has decided about the task since.
    pub(crate) fn unpause(&mut self, key: Key) {
        if let Some(until) = self.paused.remove(&key).and_then(|paused| paused.until) {
            self.alarms.remove(&(until, key));
        }
    }

    /// Ends the pauses for which `which` holds. Returns the tasks without running calls, to be released.
    pub(crate) fn take_paused(
        &mut self,
        which: impl Fn(&Paused) -> bool,
        runs: impl Fn(Key) -> bool,
    ) -> Vec<(Key, u32)> {
        let taken = self.paused.values().filter(|paused| which(paused));
        let taken: Vec<(Key, u32)> = taken.map(|paused| (paused.key, paused.attempt)).collect();
        let (stay, go): (Vec<_>, Vec<_>) = taken.into_iter().partition(|(key, _)| runs(*key));
        for (key, _) in &stay {
            self.unpause(*key);
        }
        for (key, _) in &go {
            self.forget(*key);
        }
        go
    }
}

impl Paused {
    /// Clears the reasons to wait and returns the time until which it waited.
    fn waits_no_more(&mut self) -> Option<Timestamp> {
        self.tools.clear();
        self.until.take()
    }
}
