//! The run view: the part of the store that a run has read, its scope, and the work that others may still bring.
//!
//! It turns answers and the events of other processes into events for [`step`](crate::run::schedule::step). The dispatcher
//! only passes them on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::{Answer, Needs, Round, RunRules, StartedCall};
use crate::rules::DecideError;
use crate::rules::means;
use crate::rules::scope::select;
use crate::run::ranks::{Ranks, RunnerLimits};
use crate::run::schedule::{Commit, Event, Written};
use crate::task::event::EventKind;
use crate::task::record::{Node, Work};
use crate::task::status::{BlockedReason, Status, TaskStatus};
use crate::value::Selector;
use crate::value::{Key, KeyMap, RunId, Timestamp};
use crate::view::{Query, View, ViewResult, Waits};

/// The number of waits that end in one commit.
const MAX_WOKEN: usize = 1_000;

/// A run's knowledge of the store, apart from its schedule.
#[derive(Debug, Clone)]
pub struct RunView {
    run: RunId,
    selectors: Vec<Selector>,
    tools: Arc<BTreeSet<String>>,
    scope: Option<Arc<BTreeSet<Key>>>,
    /// Ready tasks outside the scope. The set is cleared when a change may have moved tasks into the scope.
    outside: BTreeSet<Key>,
    /// The last revision whose events this run has read.
    seen: u64,
    missing_tools: BTreeMap<Key, String>,
    /// Tasks whose statuses were changed by others.
    changed: Vec<Key>,
    ranks: Ranks,
    never_fits: BTreeMap<Key, String>,
    /// The next time at which a durable wait ends, inside the scope or not.
    next_wake: Option<Timestamp>,
    /// The rules that the run was started with; `rules` adds the capacities that plans declare.
    own_rules: RunRules,
    rules: Arc<RunRules>,
}

/// The initial state of a run.
#[derive(Debug, Clone, Default)]
pub struct InitialWork {
    /// Ready tasks.
    pub ready: Vec<Node>,
    /// The distance of each task to the end, in milliseconds; empty when nothing is ready.
    pub ranks: Arc<KeyMap<u64>>,
}

/// The work that others may still bring to a run without work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prospects {
    /// Other runs that hold tasks of the scope.
    pub runs: BTreeSet<RunId>,
    /// True if agents and people hold tasks of the scope, or could take some.
    pub agents: bool,
    /// True if others wrote revisions that this run has not read: their last commit may end their tasks and make others
    /// ready.
    pub is_behind: bool,
}

impl Prospects {
    /// Returns whether waiting may bring work.
    pub fn more_may_come(&self) -> bool {
        self.agents || self.is_behind || !self.runs.is_empty()
    }
}

impl RunView {
    /// Returns the view of a run that has read nothing yet.
    pub fn new(run: RunId, selectors: Vec<Selector>, tools: BTreeSet<String>) -> Self {
        Self {
            run,
            selectors,
            tools: Arc::new(tools),
            scope: None,
            outside: BTreeSet::new(),
            seen: 0,
            missing_tools: BTreeMap::new(),
            changed: Vec::new(),
            ranks: Ranks::default(),
            never_fits: BTreeMap::new(),
            next_wake: None,
            own_rules: RunRules::default(),
            rules: Arc::default(),
        }
    }

    /// Sets the rules of the run. Its capacities override those of plans.
    #[must_use]
    pub fn with_rules(mut self, rules: RunRules) -> Self {
        self.own_rules = rules;
        self
    }

    /// Returns the last revision whose events this run has read.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the selectors that restrict the run.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// Returns the tasks of the scope; `None` for all tasks.
    pub fn scope(&self) -> Option<&BTreeSet<Key>> {
        self.scope.as_deref()
    }

    /// Returns the tasks that were not claimed because a tool is missing, with its name.
    pub fn missing_tools(&self) -> &BTreeMap<Key, String> {
        &self.missing_tools
    }

    /// Returns whether the run has a tool.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.contains(name)
    }

    /// Adds tools that became available during the run. Returns events for the tasks that waited for one of them.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn take_tools(
        &mut self,
        view: &dyn View,
        names: impl IntoIterator<Item = String>,
    ) -> ViewResult<Vec<Event>> {
        Arc::make_mut(&mut self.tools).extend(names);
        let available = self.missing_tools.iter().filter(|(_, name)| self.tools.contains(*name));
        let keys: Vec<Key> = available.map(|(key, _)| *key).collect();
        self.missing_tools.retain(|_, name| !self.tools.contains(name));
        let ready = nodes(view, &keys)?;
        let ranked = self.take_ranks(view, &ready)?;
        Ok(ranked.into_iter().chain([Event::Ready(self.keep_inside(ready))]).collect())
    }

    /// Returns the tasks whose statuses were changed by others since the last call.
    pub fn take_changed(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the tasks that were not claimed because they need more of a resource than exists, with the reason.
    pub fn never_fits(&self) -> &BTreeMap<Key, String> {
        &self.never_fits
    }

    /// Returns the tasks that an earlier process could not run because of a tool that this run has.
    pub fn tasks_with_tools(&self, view: &dyn View) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        for key in view.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
            let task = view.task(key)?;
            let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
            if let Some(BlockedReason::MissingTool { name }) = reason
                && self.tools.contains(name)
            {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Reads the store for the first time: the ready tasks, and the order in which a run of `jobs` calls at once takes
    /// them.
    ///
    /// # Errors
    /// A selector matches nothing, or the view cannot be read.
    pub fn begin(&mut self, view: &dyn View, jobs: usize) -> Result<InitialWork, DecideError> {
        self.scope = select(view, &self.selectors)?.map(Arc::new);
        self.seen = view.revision()?;
        self.next_wake = view.next_wake()?;
        self.take_capacities(view)?;
        let mut ready = view.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })?;
        ready.retain(|key| self.is_inside(*key));
        let ready = nodes(view, &ready)?;
        self.ranks = Ranks::new(RunnerLimits { jobs: Some(jobs), scope: self.scope.clone() });
        if !ready.is_empty() {
            self.ranks.load(view)?;
        }
        Ok(InitialWork { ready, ranks: self.ranks.known() })
    }

    /// Updates the capacities of resources: those of the run, else the smallest that a plan declares.
    fn take_capacities(&mut self, view: &dyn View) -> ViewResult<()> {
        let capacities = means::capacities(view, &self.own_rules.capacities)?;
        let rules = RunRules { capacities, ..self.own_rules.clone() };
        self.rules = Arc::new(rules);
        Ok(())
    }

    /// Returns the request to the store for one commit.
    pub fn round(&self, commit: Commit) -> Round {
        let Commit { reports, releases, claims, resumes, grants, .. } = commit;
        let Commit { places, tool_places, takes_new, ended_plans, .. } = commit;
        let (rules, tools, scope) = (Arc::clone(&self.rules), Arc::clone(&self.tools), self.scope.clone());
        Round {
            reports,
            releases,
            claims,
            resumes,
            grants,
            places,
            takes_new,
            tool_places,
            rules,
            ended_plans,
            tools,
            scope,
            ranks: self.ranks.known(),
        }
    }

    /// Returns whether an answer is complete, so that [`take_plain`](Self::take_plain) can apply it without reading the
    /// store.
    pub fn is_plain(&self, answer: &Answer) -> bool {
        let is_known = !self.has_unknown(&answer.ready) && !self.ranks.lacks(&answer.ready);
        // The revision before this commit is the last one read, so no other process wrote in between.
        self.seen == answer.revision - answer.events && is_known
    }

    /// Applies the answer of a commit when no other process wrote in between.
    pub fn take_plain(&mut self, mut answer: Answer) -> Event {
        self.seen = self.seen.max(answer.revision);
        self.missing_tools.extend(answer.missing_tools);
        self.next_wake = self.next_wake.into_iter().chain(answer.next_wake).min();
        self.note_too_much(&mut answer.needs);
        let Answer { started, needs, paused, .. } = answer;
        Event::Committed(Box::new(Written { started, ready: self.keep_inside(answer.ready), needs, paused }))
    }

    /// Removes the tasks that need more of a resource than exists, and remembers the reason.
    fn note_too_much(&mut self, needs: &mut Vec<(Key, Needs)>) {
        needs.retain(|(key, needs)| match needs.too_much() {
            Some((name, amount)) => {
                self.never_fits.insert(*key, means::too_much_text(name, amount));
                false
            }
            None => true,
        });
    }

    /// Applies the answer of a commit, and before it the events that others wrote until then.
    ///
    /// # Errors
    /// A selector matches nothing any more, or the view cannot be read.
    pub fn take_answer(&mut self, view: &dyn View, mut answer: Answer) -> Result<Vec<Event>, DecideError> {
        let before = answer.revision - answer.events;
        let mut events = Vec::new();
        if before > self.seen {
            events = self.take_foreign(view, before)?;
        }
        // The run has read past this commit: another process may have taken a task whose call this answer says to
        // start.
        if self.seen > answer.revision {
            let lost = self.take_lost(view, &mut answer.started)?;
            events.extend((!lost.is_empty()).then_some(Event::Lost(lost)));
        }
        self.refresh_scope(view, &answer.ready)?;
        events.extend(self.take_ranks(view, &answer.ready)?);
        events.push(self.take_plain(answer));
        Ok(events)
    }

    /// Applies the events that others wrote up to `revision`.
    ///
    /// # Errors
    /// A selector matches nothing any more, or the view cannot be read.
    pub fn take_foreign(&mut self, view: &dyn View, revision: u64) -> Result<Vec<Event>, DecideError> {
        let limit = usize::try_from(revision - self.seen).unwrap_or(0);
        let changes = view.events(self.seen, None, limit)?;
        if changes.iter().any(|change| may_change_scope(&change.kind)) {
            self.outside.clear();
        }
        let (mut ready, mut taken) = (Vec::new(), BTreeSet::new());
        for change in &changes {
            // Events of this run count as well, because its calls may add tasks. Tasks that its own commits made ready
            // appear twice: here and in the answer of the commit.
            ready.extend(change.ready.iter().copied());
            if let (EventKind::Status { .. }, Some(id)) = (&change.kind, &change.task)
                && change.run.as_ref() != Some(&self.run)
            {
                taken.insert(id.as_str());
            }
        }
        self.seen = revision;
        self.next_wake = view.next_wake()?;
        if changes.iter().any(|change| matches!(change.kind, EventKind::Applied(_))) {
            self.take_capacities(view)?;
        }
        let taken = taken.iter().map(|id| view.key(id)).collect::<ViewResult<Vec<_>>>()?;
        self.changed.extend(taken.iter().flatten());
        // The run has lost these tasks, running or waiting for a slot: another process changed their statuses.
        let taken: Vec<Key> = taken.into_iter().flatten().collect();
        // A retry of a task that was ready before makes nothing ready, so that its event does not list it.
        ready.extend(&taken);
        let mut events: Vec<Event> = taken.into_iter().map(Event::Revoked).collect();
        let ready = nodes(view, &ready)?;
        self.refresh_scope(view, &ready)?;
        events.extend(self.take_ranks(view, &ready)?);
        events.extend([Event::Ready(self.keep_inside(ready)), Event::OthersWrote]);
        Ok(events)
    }

    /// Returns the next time at which a durable wait ends.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.next_wake
    }

    /// Returns the tasks whose durable waits are over at `now`, at most as many as fit into one commit.
    ///
    /// # Errors
    /// The view cannot be read.
    pub(crate) fn take_due(&mut self, view: &dyn View, now: Timestamp) -> ViewResult<Vec<Key>> {
        let mut due = view.waiting(Waits::Due(now))?;
        // The commit that ends these waits is read like that of another process, and then the next time as well.
        self.next_wake = if due.is_empty() { view.next_wake()?.filter(|next| *next > now) } else { None };
        due.truncate(MAX_WOKEN);
        Ok(due)
    }

    /// Returns the work that others may still bring. Agents and people count only if the run waits for them. Tasks of
    /// `ended_plans` do not count: a limit of the run has ended these plans.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn prospects(
        &self,
        view: &dyn View,
        wait_for_agents: bool,
        ended_plans: &BTreeSet<&str>,
    ) -> ViewResult<Prospects> {
        self.prospects_of(view, wait_for_agents, &|key| {
            Ok(self.is_inside(key) && !is_of_plan(view, key, ended_plans)?)
        })
    }

    /// Returns whether the scope has tasks of a plan with one of these statuses; with any if the list is empty.
    ///
    /// # Errors
    /// The view cannot be read.
    pub(crate) fn has_tasks_of(&self, view: &dyn View, plan: &str, status: &[Status]) -> ViewResult<bool> {
        let query = Query { plan: Some(plan.to_owned()), status: status.to_vec(), ..Query::default() };
        if self.scope.is_none() {
            return Ok(!view.find(&Query { limit: 1, ..query })?.is_empty());
        }
        Ok(view.find(&query)?.into_iter().any(|key| self.is_inside(key)))
    }

    /// Returns the processes that may still release resources for which this run waits, inside its scope or not.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn prospects_anywhere(&self, view: &dyn View, wait_for_agents: bool) -> ViewResult<Prospects> {
        let mut prospects = self.prospects_of(view, wait_for_agents, &|_| Ok(true))?;
        // A cancelled task holds its resources until its calls have ended.
        prospects.runs.extend(crate::view::read::ending(view)?.into_values().filter(|run| *run != self.run));
        Ok(prospects)
    }

    fn prospects_of(
        &self,
        view: &dyn View,
        wait_for_agents: bool,
        is_meant: &dyn Fn(Key) -> ViewResult<bool>,
    ) -> ViewResult<Prospects> {
        let mut prospects = Prospects { is_behind: view.revision()? > self.seen, ..Prospects::default() };
        // Thousands of tasks may wait durably, so that their records are not read. This run ends their waits itself.
        let waiting: BTreeSet<Key> = view.waiting(Waits::All)?.into_iter().collect();
        if wait_for_agents {
            for key in &waiting {
                prospects.agents = prospects.agents || is_meant(*key)?;
            }
        }
        for key in view.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
            if waiting.contains(&key) || !is_meant(key)? {
                continue;
            }
            match view.task(key)?.and_then(|task| holder(&task.body.state).cloned()) {
                Some(run) if run == self.run => {}
                Some(run) => {
                    prospects.runs.insert(run);
                }
                None => prospects.agents |= wait_for_agents,
            }
        }
        if wait_for_agents && !prospects.agents {
            for key in view.find(&Query { ready: Some(vec![Work::Manual]), ..Query::default() })? {
                prospects.agents = prospects.agents || (self.is_inside(key) && is_meant(key)?);
            }
        }
        Ok(prospects)
    }

    /// Computes the ranks of tasks that were added later.
    fn take_ranks(&mut self, view: &dyn View, ready: &[Node]) -> ViewResult<Option<Event>> {
        let news: Vec<Node> = ready.iter().filter(|node| may_run(node)).copied().collect();
        if !self.ranks.lacks(&news) {
            return Ok(None);
        }
        Ok(Some(Event::Ranked(self.ranks.add(view, &news)?)))
    }

    fn is_inside(&self, key: Key) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.contains(&key))
    }

    /// Removes the calls whose tasks were lost between the commit and its answer.
    fn take_lost(&self, view: &dyn View, started: &mut Vec<StartedCall>) -> ViewResult<Vec<StartedCall>> {
        let (mut own, mut lost) = (Vec::with_capacity(started.len()), Vec::new());
        for call in started.drain(..) {
            let body = view.task(call.key)?.map(|task| task.body);
            // The attempt is compared as well: the same run may hold the task again after a retry.
            if body.is_some_and(|body| holder(&body.state) == Some(&self.run) && body.attempt == call.attempt)
            {
                own.push(call);
            } else {
                lost.push(call);
            }
        }
        *started = own;
        Ok(lost)
    }

    fn has_unknown(&self, ready: &[Node]) -> bool {
        let Some(scope) = &self.scope else { return false };
        let is_known = |key| scope.contains(key) || self.outside.contains(key);
        ready.iter().any(|node| may_run(node) && !is_known(&node.key))
    }

    /// Reads the scope again if a task that was created meanwhile may belong to it.
    fn refresh_scope(&mut self, view: &dyn View, ready: &[Node]) -> Result<(), DecideError> {
        if self.has_unknown(ready) {
            self.scope = select(view, &self.selectors)?.map(Arc::new);
        }
        Ok(())
    }

    /// Keeps the tasks that this run may take: ready ones with calls, inside its scope.
    fn keep_inside(&mut self, mut ready: Vec<Node>) -> Vec<Node> {
        ready.retain(may_run);
        if let Some(scope) = &self.scope {
            let outside = ready.extract_if(.., |node| !scope.contains(&node.key));
            self.outside.extend(outside.map(|node| node.key));
        }
        ready
    }
}

/// Returns whether a task belongs to one of these plans. Without a plan, the task is not read.
pub(crate) fn is_of_plan(view: &dyn View, key: Key, plans: &BTreeSet<&str>) -> ViewResult<bool> {
    if plans.is_empty() {
        return Ok(false);
    }
    let plan = view.task(key)?.and_then(|task| task.plan);
    Ok(plan.is_some_and(|plan| plans.contains(&*plan)))
}

fn may_run(node: &Node) -> bool {
    node.work == Work::Calls && node.is_ready()
}

fn holder(state: &TaskStatus) -> Option<&RunId> {
    if let TaskStatus::InProgress { claim } = state { claim.run.as_ref() } else { None }
}

/// Returns whether a change may move a task into the scope.
fn may_change_scope(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Created(_) | EventKind::Updated { .. } | EventKind::Moved { .. } | EventKind::Applied(_)
    )
}

fn nodes(view: &dyn View, keys: &[Key]) -> ViewResult<Vec<Node>> {
    let nodes = keys.iter().map(|key| view.node(*key)).collect::<ViewResult<Vec<_>>>()?;
    Ok(nodes.into_iter().flatten().collect())
}
