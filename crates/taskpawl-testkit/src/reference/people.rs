//! Reference: commands of people and agents.

use std::collections::BTreeSet;
use std::time::Duration;

use taskpawl_model::command::{Command, Context};
use taskpawl_model::task::CallStatus;
use taskpawl_model::task::Trigger;

use super::items::{Flaw, Holder, Reference, Stand, Taken, Work, require};

/// Parameters of a `done` or `fail` command.
struct End {
    good: bool,
    attempt: Option<u32>,
}

impl Reference {
    pub(super) fn carry_out(&mut self, command: &Command, context: &Context) -> Taken {
        match command {
            Command::Claim { id, lease, .. } => self.claim(id.as_deref(), *lease, context),
            Command::Renew { id, lease } => {
                let key = self.find(id)?;
                self.check_holder(key, context)?;
                self.change(key).stand = held(*lease, context);
                Some(())
            }
            Command::Release { ids, .. } => self.each(ids, |this, key| {
                // Releasing twice is idempotent, so that a caller that lost the reply can retry.
                if this.item(key).stand != Stand::Todo || !this.has_made(key, this.item(key).attempt) {
                    this.check_holder(key, context)?;
                    this.change(key).stand = Stand::Todo;
                }
                Some(())
            }),
            Command::Done { ids, attempt, .. } => {
                self.end(ids, &End { good: true, attempt: *attempt }, context)
            }
            Command::Fail { ids, attempt, .. } => {
                self.end(ids, &End { good: false, attempt: *attempt }, context)
            }
            Command::Skip { ids, .. } => self.each_top(ids, Self::skip),
            Command::Cancel { ids, .. } => self.each_top(ids, Self::cancel),
            Command::Block { ids, .. } => self.each(ids, |this, key| {
                require(this.item(key).stand == Stand::Todo)?;
                this.change(key).stand = Stand::BlockedByHand;
                Some(())
            }),
            Command::Unblock { ids } => self.each(ids, |this, key| {
                let stand = &this.item(key).stand;
                require(matches!(stand, Stand::BlockedByHand | Stand::BlockedByInterruption(_)))?;
                this.clear(key, false);
                this.change(key).stand = Stand::Todo;
                Some(())
            }),
            Command::Retry { ids, cascade } => self.start_again(ids, false, *cascade),
            Command::Reopen { ids, cascade } => self.start_again(ids, true, *cascade),
            Command::Note { id, text } => {
                require(!text.trim().is_empty())?;
                self.find(id).map(drop)
            }
            other => self.carry_out_of_author(other).unwrap_or_else(|| self.carry_out_of_run(other, context)),
        }
    }

    fn each(&mut self, ids: &[String], change: impl Fn(&mut Self, u32) -> Taken) -> Taken {
        for key in self.find_all(ids)? {
            change(self, key)?;
        }
        Some(())
    }

    /// Applies a command that includes subtasks. Of tasks that are nested in each other only the topmost is used.
    fn each_top(&mut self, ids: &[String], change: impl Fn(&mut Self, u32) -> Taken) -> Taken {
        let keys = self.find_all(ids)?;
        for key in &keys {
            if !keys.iter().any(|top| self.is_below(*key, *top)) {
                change(self, *key)?;
            }
        }
        Some(())
    }

    /// Releases the tasks that a command names if another actor has let their leases expire.
    pub(super) fn meet(&mut self, command: &Command) {
        for name in command.names() {
            if let Some(key) = self.find(name) {
                self.free(key);
            }
        }
    }

    pub(super) fn free(&mut self, key: u32) {
        let stand = &self.item(key).stand;
        if matches!(stand, Stand::Held(Holder::Actor { name, .. }) if *name != self.actor) {
            self.return_expired(key);
        }
    }

    /// Any command of an actor renews its leases that have less than half of their time left.
    pub(super) fn renew_own(&mut self, command: &Command, context: &Context) {
        let is_by_hand =
            !command.names().is_empty() || matches!(command, Command::Create(_) | Command::Claim { .. });
        if context.run.is_some() || !is_by_hand {
            return;
        }
        for item in self.items.values_mut() {
            if let Stand::Held(Holder::Actor { name, lease, until }) = &mut item.stand
                && *name == self.actor
                && *until > self.now
                && 2 * (*until - self.now) < *lease
            {
                *until = self.now + *lease;
            }
        }
    }

    fn has_made(&self, key: u32, attempt: u32) -> bool {
        self.makers.get(&(key, attempt)) == Some(&self.actor)
    }

    pub(super) fn return_expired(&mut self, key: u32) {
        if let Stand::Held(Holder::Actor { until, .. }) = self.item(key).stand
            && until <= self.now
        {
            self.change(key).stand = Stand::Todo;
            self.settle();
        }
    }

    fn check_holder(&self, key: u32, context: &Context) -> Taken {
        let is_mine =
            |holder: &Holder| matches!(holder, Holder::Actor { name, .. } if *name == context.actor);
        require(matches!(&self.item(key).stand, Stand::Held(holder) if is_mine(holder)))
    }

    fn claim(&mut self, id: Option<&str>, lease: Duration, context: &Context) -> Taken {
        let Some(id) = id else {
            self.keys().into_iter().for_each(|key| self.return_expired(key));
            let ready = self.keys().into_iter().filter(|key| self.is_ready(*key));
            let manual = ready.filter(|key| self.work(*key) == Work::Hand);
            let first = manual.min_by_key(|key| (self.item(*key).priority, *key))?;
            return self.take(first, lease, context);
        };
        let key = self.find(id)?;
        if let Stand::Held(_) = self.item(key).stand {
            self.check_holder(key, context)?;
            self.change(key).stand = held(lease, context);
            return Some(());
        }
        require(self.work(key) == Work::Hand)?;
        self.take(key, lease, context)
    }

    fn take(&mut self, key: u32, lease: Duration, context: &Context) -> Taken {
        require(self.is_ready(key))?;
        let item = self.change(key);
        item.stand = held(lease, context);
        item.attempt += 1;
        let attempt = item.attempt;
        self.makers.insert((key, attempt), context.actor.to_string());
        Some(())
    }

    fn end(&mut self, ids: &[String], end: &End, context: &Context) -> Taken {
        for key in self.find_all(ids)? {
            let is_right = end.attempt.is_none_or(|attempt| attempt == self.item(key).attempt);
            require(is_right || self.has(Flaw::AnyAttempt))?;
            match self.item(key).stand.clone() {
                Stand::BlockedByInterruption(call) => self.say_how_it_ended(key, &call, end.good),
                Stand::Held(_) => {
                    self.check_holder(key, context)?;
                    self.change(key).stand = ended(end.good);
                }
                Stand::Todo => {
                    require(self.work(key) == Work::Hand)?;
                    let mut past = end.attempt.filter(|attempt| *attempt > 0).into_iter();
                    require(past.all(|attempt| self.has_made(key, attempt)) || self.has(Flaw::AnyAttempt))?;
                    self.take(key, Duration::ZERO, context)?;
                    self.change(key).stand = ended(end.good);
                }
                _ => return None,
            }
            self.settle();
        }
        Some(())
    }

    fn say_how_it_ended(&mut self, key: u32, call: &str, good: bool) {
        let item = self.change(key);
        for other in item.calls.iter_mut().filter(|other| other.id == call) {
            other.status = if good { CallStatus::Succeeded } else { CallStatus::Failed };
        }
        let find = |status| item.calls.iter().find(|call| call.status == status);
        item.stand = if !good {
            Stand::Failed
        } else if let Some(other) = find(CallStatus::Interrupted) {
            Stand::BlockedByInterruption(other.id.clone())
        } else if find(CallStatus::Failed).is_some() {
            Stand::Failed
        } else if item.calls.iter().all(super::items::Call::is_settled) {
            Stand::Done
        } else {
            Stand::Todo
        };
    }

    fn skip(&mut self, key: u32) -> Taken {
        let is_done = self.item(key).stand == Stand::Done && self.has(Flaw::DoneMayBeSkipped);
        let stand = &self.item(key).stand;
        require(
            is_done || !matches!(stand, Stand::Held(_) | Stand::Done | Stand::Cancelled | Stand::Skipped),
        )?;
        self.skip_with_all_below(key);
        let below = self.below(key);
        require(!below.iter().any(|below| matches!(self.item(*below).stand, Stand::Held(_))))?;
        Some(())
    }

    fn cancel(&mut self, key: u32) -> Taken {
        let is_over = |stand: &Stand| matches!(stand, Stand::Done | Stand::Cancelled | Stand::Skipped);
        require(!is_over(&self.item(key).stand))?;
        let mut concerned = vec![key];
        if !self.has(Flaw::CancelLeavesSubtasks) {
            concerned.extend(self.below(key));
        }
        for key in concerned {
            if !is_over(&self.item(key).stand) {
                self.cancel_one(key);
            }
        }
        Some(())
    }

    fn cancel_one(&mut self, key: u32) {
        let item = self.items.get_mut(&key).expect("BUG: only tasks that are there are cancelled");
        let stand = std::mem::replace(&mut item.stand, Stand::Cancelled);
        for call in item.calls.iter_mut().filter(|call| call.status == CallStatus::Running) {
            call.status = CallStatus::Cancelled;
            if let Stand::Held(Holder::Run(run)) = &stand
                && self.runs.get(run) == Some(&true)
            {
                self.ending.insert((run.clone(), key, item.attempt, call.id.clone()));
            }
        }
    }

    /// Resets calls to pending: all of them, or only those that did not succeed.
    pub(super) fn clear(&mut self, key: u32, all: bool) {
        for call in &mut self.change(key).calls {
            if all || !call.is_settled() {
                call.status = CallStatus::Pending;
            }
        }
    }

    fn start_again(&mut self, ids: &[String], from_the_beginning: bool, cascade: bool) -> Taken {
        let (mut again, keys): (Vec<u32>, _) = (Vec::new(), self.find_all(ids)?);
        for key in &keys {
            let item = self.item(*key);
            require(item.stand.status().is_finished() || item.stand == Stand::Todo && item.attempt > 0)?;
        }
        for key in keys {
            again.push(key);
            again.extend(self.covered_below(key, from_the_beginning)?);
        }
        let named: BTreeSet<u32> = again.iter().copied().collect();
        let clean_ups = self.clean_ups_behind(&named);
        let mut behind = self.ran_behind(&named, &clean_ups, cascade)?;
        if cascade {
            self.add_clean_ups_of(&mut behind, &named, &clean_ups)?;
        }
        named.iter().try_for_each(|key| self.check_ended(*key))?;
        for key in named {
            self.clear(key, from_the_beginning);
            self.change(key).stand = Stand::Todo;
        }
        for key in behind.into_iter().chain(clean_ups) {
            self.clear(key, true);
            self.change(key).stand = Stand::Todo;
        }
        Some(())
    }

    /// Returns the clean-ups and compensations that ran because a named task failed. Tasks that are blocked by a failure
    /// hand it on.
    fn clean_ups_behind(&mut self, named: &BTreeSet<u32>) -> BTreeSet<u32> {
        let failed = |stand: &Stand| matches!(stand, Stand::Failed | Stand::Cancelled);
        let mut queue: Vec<u32> =
            named.iter().copied().filter(|key| failed(&self.item(*key).stand)).collect();
        let (mut seen, mut found) = (named.clone(), BTreeSet::new());
        while let Some(key) = queue.pop() {
            let dependents = self.dependents(key);
            let mut near = dependents.clone();
            near.extend(self.item(key).above);
            if self.item(key).stand == Stand::BlockedByDependency {
                near.extend(self.directly_below(key));
            }
            for other in near {
                if seen.contains(&other) {
                    continue;
                }
                let trigger = self.item(other).trigger;
                if self.item(other).stand == Stand::BlockedByDependency {
                    seen.insert(other);
                    queue.push(other);
                } else if dependents.contains(&other)
                    && matches!(trigger, Trigger::AllFinished | Trigger::AnyFailed)
                    && self.has_run(other)
                {
                    let mut again = vec![other];
                    seen.insert(other);
                    for below in self.below(other) {
                        if seen.insert(below) && self.has_run(below) {
                            again.push(below);
                        }
                    }
                    let mut above = self.item(other).above;
                    while let Some(parent) = above.filter(|parent| !seen.contains(parent)) {
                        if !self.has_run(parent) {
                            break;
                        }
                        seen.insert(parent);
                        again.push(parent);
                        above = self.item(parent).above;
                    }
                    queue.extend(&again);
                    found.extend(again);
                }
            }
        }
        found
    }

    /// Adds the clean-ups that ran because tasks behind the named ones failed, and what ran behind those.
    fn add_clean_ups_of(
        &mut self,
        behind: &mut BTreeSet<u32>,
        named: &BTreeSet<u32>,
        clean_ups: &BTreeSet<u32>,
    ) -> Taken {
        let mut seen: BTreeSet<u32> = &(named | clean_ups) | &*behind;
        let mut found = &*behind | clean_ups;
        while !found.is_empty() {
            let mut more = self.clean_ups_behind(&found);
            more.extend(self.ran_behind(&BTreeSet::new(), &more, true)?);
            found = more.into_iter().filter(|key| seen.insert(*key)).collect();
            behind.extend(&found);
        }
        Some(())
    }

    /// Returns whether a task ran and has ended.
    fn has_run(&mut self, key: u32) -> bool {
        self.free(key);
        matches!(self.item(key).stand, Stand::Done | Stand::Failed)
    }

    fn is_finished(&self, key: u32) -> bool {
        self.item(key).stand.status().is_finished()
    }

    /// Returns the subtasks that are included. Retrying a skipped or cancelled task includes the subtasks with the same
    /// status; reopening includes all finished ones.
    fn covered_below(&mut self, key: u32, from_the_beginning: bool) -> Option<Vec<u32>> {
        let own = self.item(key).stand.clone();
        let mut below = self.below(key);
        if from_the_beginning || matches!(own, Stand::Cancelled | Stand::Skipped) {
            for below in &below {
                self.free(*below);
            }
        }
        if from_the_beginning {
            require(!below.iter().any(|below| matches!(self.item(*below).stand, Stand::Held(_))))?;
            below.retain(|below| self.is_finished(*below));
        } else {
            let covers = matches!(own, Stand::Cancelled | Stand::Skipped);
            below.retain(|below| covers && self.item(*below).stand == own);
        }
        Some(below)
    }

    /// Returns the tasks that ran because one of the named tasks, or a task that is found here, had ended.
    fn ran_behind(
        &mut self,
        named: &BTreeSet<u32>,
        clean_ups: &BTreeSet<u32>,
        cascade: bool,
    ) -> Option<BTreeSet<u32>> {
        // Each with whether what stands below it started because of it.
        let mut queue: Vec<(u32, bool)> = named.iter().map(|key| (*key, false)).collect();
        let (mut all, mut from_below) = (BTreeSet::new(), BTreeSet::new());
        if cascade {
            queue.extend(clean_ups.iter().map(|key| (*key, true)));
        }
        while let Some((key, is_below)) = queue.pop() {
            for other in self.let_start_by(key, is_below) {
                self.free(other);
                let stand = &self.item(other).stand;
                let has_run = matches!(stand, Stand::Held(_) | Stand::Done | Stand::Failed);
                if !has_run || named.contains(&other) || clean_ups.contains(&other) {
                    continue;
                }
                let is_above = self.item(key).above == Some(other);
                if all.contains(&other) {
                    // All of its subtasks waited for `key`, not only the one that led to it.
                    if !is_above && from_below.remove(&other) {
                        queue.push((other, true));
                    }
                    continue;
                }
                require(cascade && !matches!(stand, Stand::Held(_)))?;
                all.insert(other);
                queue.push((other, !is_above));
                if is_above {
                    from_below.insert(other);
                }
            }
        }
        Some(all)
    }

    fn let_start_by(&self, key: u32, is_below: bool) -> Vec<u32> {
        let mut started = Vec::new();
        let stand = &self.item(key).stand;
        if matches!(stand, Stand::Done | Stand::Skipped) {
            started.extend(self.dependents(key));
        }
        if matches!(stand, Stand::Done | Stand::Skipped | Stand::Cancelled) {
            started.extend(self.item(key).above);
        }
        if is_below {
            started.extend(self.directly_below(key));
        }
        started
    }
}

fn ended(good: bool) -> Stand {
    if good { Stand::Done } else { Stand::Failed }
}

fn held(lease: Duration, context: &Context) -> Stand {
    let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let until = context.now.timestamp_millis() + lease;
    Stand::Held(Holder::Actor { name: context.actor.to_string(), lease, until })
}
