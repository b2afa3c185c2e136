//! Accounts for the consumption of a run and compares it with the limits of the run and its plans.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Deadline;
use crate::command::StartedCall;
use crate::plan::Budget;
use crate::run::schedule::{Event, Limits};
use crate::task::record::PlanRecord;
use crate::task::spec::TaskSpec;
use crate::value::Timestamp;
use crate::value::{Key, Period, Shared, TaskId, add_usage, cost};

/// Name of the limit of time.
pub(super) const TIMEOUT: &str = "timeout";

/// Number of tasks with the highest consumption that are listed.
const MAX_LISTED: usize = 50;

/// Limits of a run. Where one is `None`, that of each plan counts for the tasks of the plan.
#[derive(Debug, Clone, Default)]
pub struct RunLimits {
    /// The maximum run time.
    pub timeout: Option<Period>,
    /// The number of failed tasks at which nothing more starts.
    pub max_failures: Option<u64>,
    /// The usage of its calls at which nothing more starts.
    pub budget: Option<Budget>,
}

/// A limit because of which a run, or the part of it that belongs to a plan, started nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EndedEarly {
    /// The plan whose tasks were not started any more; absent if the limit applied to the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Name of the limit: `timeout`, `maxFailures`, `budget.calls`, `budget.duration` or `budget.cost`.
    pub limit: Cow<'static, str>,
    /// Configured value of the limit, formatted as in a plan.
    pub value: String,
}

/// Consumption of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunUsage {
    /// Number of started calls.
    pub calls: u64,
    /// Total run time of the calls, in milliseconds. Concurrent calls count separately.
    pub millis: u64,
    /// Sum of the usage that tools reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The 50 tasks with the highest consumption: by cost, then by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskUsage>,
}

/// Consumption of the calls of one task in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskUsage {
    /// The task whose calls these are.
    pub task: TaskId,
    /// Number of started calls.
    pub calls: u64,
    /// Total run time of the calls, in milliseconds.
    pub millis: u64,
    /// Sum of the usage that their tools reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
}

/// Returns whether a plan sets limits for its tasks.
pub(super) fn has_limits(plan: &PlanRecord) -> bool {
    [TIMEOUT, "maxFailures", "budget"].iter().any(|name| plan.header.contains_key(*name))
}

/// Accounts of a run and of its plans.
#[derive(Debug)]
pub(super) struct Ledger {
    started_at: Timestamp,
    run: Account,
    plans: BTreeMap<String, Account>,
    /// Limits that the run sets itself; they override those of plans.
    is_set: IsSet,
    usage: Option<Value>,
    /// Unfinished tasks with started calls.
    open: BTreeMap<Key, OpenTask>,
    most: Vec<TaskUsage>,
}

/// An unfinished task.
#[derive(Debug)]
struct OpenTask {
    spec: Shared<TaskSpec>,
    spent: TaskUsage,
}

#[derive(Debug, Clone, Copy)]
struct IsSet {
    timeout: bool,
    max_failures: bool,
    budget: bool,
}

/// Limits of a run, or of the tasks of a plan, together with the consumption.
#[derive(Debug, Default)]
struct Account {
    deadline: Option<(Timestamp, Period)>,
    max_failures: Option<u64>,
    budget: Budget,
    failures: u64,
    calls: u64,
    time: Duration,
    cost: f64,
    ended: Option<(&'static str, String)>,
}

impl Account {
    fn new(
        started_at: Timestamp,
        timeout: Option<Period>,
        max_failures: Option<u64>,
        budget: Budget,
    ) -> Self {
        let end = |timeout: Period| {
            let length = chrono::TimeDelta::from_std(timeout.0).ok()?;
            Some((started_at.checked_add_signed(length)?, timeout))
        };
        Self { deadline: timeout.and_then(end), max_failures, budget, ..Self::default() }
    }

    fn is_limited(&self) -> bool {
        self.deadline.is_some() || self.max_failures.is_some() || self.budget != Budget::default()
    }

    fn used_up(&self, now: Timestamp) -> Option<(&'static str, String)> {
        let Budget { calls, duration, cost } = self.budget;
        if let Some((_, timeout)) = self.deadline.filter(|(end, _)| *end <= now) {
            return Some((TIMEOUT, timeout.to_string()));
        }
        if let Some(most) = self.max_failures.filter(|most| self.failures >= *most) {
            return Some(("maxFailures", most.to_string()));
        }
        if let Some(calls) = calls.filter(|calls| self.calls >= *calls) {
            return Some(("budget.calls", calls.to_string()));
        }
        if let Some(duration) = duration.filter(|duration| self.time >= duration.0) {
            return Some(("budget.duration", duration.to_string()));
        }
        cost.filter(|cost| self.cost >= *cost).map(|cost| ("budget.cost", cost.to_string()))
    }

    fn ended_early(&self, plan: Option<String>) -> Option<EndedEarly> {
        let (limit, value) = self.ended.clone()?;
        Some(EndedEarly { plan, limit: limit.into(), value })
    }

    /// Returns true only once, when the first limit is reached.
    fn ends_now(&mut self, now: Timestamp) -> bool {
        if self.ended.is_some() {
            return false;
        }
        self.ended = self.used_up(now);
        self.ended.is_some()
    }
}

impl Ledger {
    pub(super) fn new(limits: RunLimits, started_at: Timestamp) -> Self {
        let RunLimits { timeout, max_failures, budget } = limits;
        let is_set = IsSet {
            timeout: timeout.is_some(),
            max_failures: max_failures.is_some(),
            budget: budget.is_some(),
        };
        Self {
            started_at,
            run: Account::new(started_at, timeout, max_failures, budget.unwrap_or_default()),
            plans: BTreeMap::new(),
            is_set,
            usage: None,
            open: BTreeMap::new(),
            most: Vec::new(),
        }
    }

    /// Adds the limits that plans set for their own tasks, as far as the run does not override them.
    pub(super) fn take_plans(&mut self, plans: Vec<PlanRecord>) {
        for plan in plans {
            let field = |name: &str| plan.header.get(name).cloned();
            let timeout = field("timeout").filter(|_| !self.is_set.timeout);
            let max_failures = field("maxFailures").filter(|_| !self.is_set.max_failures);
            let budget = field("budget").filter(|_| !self.is_set.budget);
            // An invalid value counts as absent: such a plan is refused when it is applied.
            let account = Account::new(
                self.started_at,
                timeout.and_then(|value| serde_json::from_value(value).ok()),
                max_failures.and_then(|value| value.as_u64()),
                budget.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default(),
            );
            if account.is_limited() {
                self.plans.insert(plan.name, account);
            }
        }
    }

    /// Returns the limits that the schedule enforces before it starts a call. The other limits can only be noticed
    /// after they are exceeded.
    pub(super) fn limits(&self) -> Limits {
        let plans = self.plans.iter().filter_map(|(name, plan)| Some((name.clone(), plan.budget.calls?)));
        Limits { calls: self.run.budget.calls, plan_calls: plans.collect(), ..Limits::default() }
    }

    /// Returns the deadline for a task of a plan, and a text that names the limit.
    pub(super) fn deadline(&self, plan: Option<&str>) -> Option<Deadline> {
        let of_run = self.run.deadline;
        let of_run = of_run
            .map(|(at, time)| Deadline { at, message: format!("the run exceeded its time limit of {time}") });
        let of_plan = plan.and_then(|plan| {
            let (at, time) = self.plans.get(plan)?.deadline?;
            Some(Deadline { at, message: format!("the plan `{plan}` exceeded its time limit of {time}") })
        });
        of_run.into_iter().chain(of_plan).min_by_key(|deadline| deadline.at)
    }

    /// Returns the earliest deadline that is still ahead.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let accounts = [&self.run].into_iter().chain(self.plans.values());
        let open = accounts.filter(|account| account.ended.is_none());
        open.filter_map(|account| Some(account.deadline?.0)).min()
    }

    pub(super) fn note_start(&mut self, started: &StartedCall) {
        self.accounts(started.plan.as_deref(), |account| account.calls += 1);
        let task = || OpenTask {
            spec: started.spec.clone(),
            spent: TaskUsage { task: started.task.clone(), calls: 0, millis: 0, usage: None },
        };
        self.open.entry(started.key).or_insert_with(task).spent.calls += 1;
    }

    pub(super) fn note_end(&mut self, key: Key, plan: Option<&str>, took: Duration, usage: Option<&Value>) {
        let cost = usage.map_or(0.0, cost);
        self.accounts(plan, |account| {
            account.time += took;
            account.cost += cost;
        });
        if let Some(usage) = usage {
            add_usage(&mut self.usage, usage.clone());
        }
        if let Some(OpenTask { spent: task, .. }) = self.open.get_mut(&key) {
            task.millis += u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            if let Some(usage) = usage {
                add_usage(&mut task.usage, usage.clone());
            }
        }
    }

    pub(super) fn note_failure(&mut self, plan: Option<&str>) {
        self.accounts(plan, |account| account.failures += 1);
    }

    /// Closes the account of a finished task; details are only kept for the tasks with the highest consumption. Returns
    /// the id and specification of the task if calls of it were started.
    pub(super) fn close(&mut self, key: Key) -> Option<(TaskId, Shared<TaskSpec>)> {
        let OpenTask { spec, spent } = self.open.remove(&key)?;
        let task = spent.task.clone();
        self.most.push(spent);
        // Cutting only at eight times the size makes the cost per task constant.
        if self.most.len() > 8 * MAX_LISTED {
            self.cut();
        }
        Some((task, spec))
    }

    /// Keeps the tasks with the highest consumption, in any order.
    fn cut(&mut self) {
        if self.most.len() > MAX_LISTED {
            self.most.select_nth_unstable_by(MAX_LISTED, most_first);
            self.most.truncate(MAX_LISTED);
        }
    }

    fn accounts(&mut self, plan: Option<&str>, change: impl Fn(&mut Account)) {
        change(&mut self.run);
        if let Some(account) = plan.and_then(|plan| self.plans.get_mut(plan)) {
            change(account);
        }
    }

    /// Returns the limits that were reached since the last call, each with the event for the schedule.
    pub(super) fn check(&mut self, now: Timestamp) -> Vec<(Event, EndedEarly)> {
        let mut news = Vec::new();
        if self.run.is_limited() && self.run.ends_now(now) {
            news.extend(self.run.ended_early(None).map(|ended| (Event::EndEarly, ended)));
        }
        for (name, plan) in &mut self.plans {
            if plan.ends_now(now) {
                let ended = plan.ended_early(Some(name.clone()));
                news.extend(ended.map(|ended| (Event::PlanEnded(name.clone()), ended)));
            }
        }
        news
    }

    /// Returns the plans that a limit has ended.
    pub(super) fn ended_plans(&self) -> BTreeSet<&str> {
        let ended = self.plans.iter().filter(|(_, plan)| plan.ended.is_some());
        ended.map(|(name, _)| name.as_str()).collect()
    }

    /// Removes a plan that has no unfinished task, so that its limit is not reported as reached.
    pub(super) fn forget_end(&mut self, plan: &str) {
        self.plans.remove(plan);
    }

    /// Returns the limits that were reached, and the consumption.
    pub(super) fn close_books(mut self) -> (Vec<EndedEarly>, RunUsage) {
        self.most.extend(std::mem::take(&mut self.open).into_values().map(|task| task.spent));
        self.cut();
        self.most.sort_unstable_by(most_first);
        let plans = self.plans.iter().filter_map(|(name, plan)| plan.ended_early(Some(name.clone())));
        let ended = self.run.ended_early(None).into_iter().chain(plans);
        let millis = u64::try_from(self.run.time.as_millis()).unwrap_or(u64::MAX);
        let spent = RunUsage { calls: self.run.calls, millis, usage: self.usage, tasks: self.most };
        (ended.collect(), spent)
    }
}

/// Orders by cost, then time, both descending, then by task id, so that the list is deterministic.
fn most_first(one: &TaskUsage, other: &TaskUsage) -> Ordering {
    let weight = |task: &TaskUsage| task.usage.as_ref().map_or(0.0, cost);
    let by_cost = weight(other).total_cmp(&weight(one));
    by_cost.then(other.millis.cmp(&one.millis)).then_with(|| one.task.cmp(&other.task))
}
