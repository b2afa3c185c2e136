use std::collections::BTreeMap;

use taskpawl_model::command::Refusal;
use taskpawl_model::insight::{CallAuthorization, UnrunnableTask, call_authorizations, ready_part};
use taskpawl_model::rules::{DecideError, select};
use taskpawl_model::rules::{Means, approval_request, approvals_ahead, resolve};
use taskpawl_model::run::recovery::open_questions;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    ApprovalRequest, ApprovalsAhead, GateState, Node, PlanRecord, Priority, RunRecord, Status, Task,
    TaskStatus, Work,
};
use taskpawl_model::value::Selector;
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId};
use taskpawl_model::view::read_task;
use taskpawl_model::view::{Query, View, ViewResult};
use taskpawl_store::StoreError;

use crate::error::Error;
use crate::manager::Manager;

/// A page of matching tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The tasks, in the order of the query.
    pub tasks: Vec<Task>,
    /// The number of all matching tasks. Only present for queries that the counters of the store can answer.
    pub total: Option<u64>,
    /// True if further tasks match.
    pub truncated: bool,
}

/// A page of ready tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyPage {
    /// The tasks that a run or an actor can take, in the order in which they are taken.
    pub page: Page,
    /// Ready tasks before or between them that the next run cannot take, and all ready tasks whose tool does
    /// not exist.
    pub unrunnable: Vec<UnrunnableTask>,
}

/// A filter for runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The maximum number of runs, latest first; 0 for all.
    pub limit: usize,
}

impl Manager {
    /// Reads one consistent snapshot of the store. A refusal of the rules is returned as such, not as an
    /// error of the store.
    pub fn read<T>(&self, look: impl FnOnce(&dyn View) -> Result<T, DecideError>) -> Result<T, Error> {
        Ok(self.store().view(|view| or_refused(look(view)))??)
    }

    /// Returns a task.
    pub fn get(&self, id: &str) -> Result<Task, Error> {
        let look = |view: &dyn View| {
            let key = resolve(view, id)?;
            let unknown = || Refusal::UnknownTask { id: id.to_owned(), similar: Vec::new() };
            Ok(read_task(view, key)?.ok_or_else(unknown)?)
        };
        // Most tasks are read right after a change, whose connection still has them cached.
        self.marked(self.store().view_briefly(|view| or_refused(look(view)))??)
    }

    /// Adds the fields that depend on liveness and the clock of this machine.
    pub(crate) fn marked(&self, mut task: Task) -> Result<Task, Error> {
        self.mark_ended_claims([&mut task]);
        self.mark_ending([&mut task])?;
        Ok(task)
    }

    /// Returns the tools that another program brings to a plan, according to its file. Without a plan it is that of `task`.
    pub fn brought_tools(&self, plan: Option<&str>, task: Option<&str>) -> Result<Vec<String>, Error> {
        self.read(|view| {
            let of_task = match task.filter(|_| plan.is_none()) {
                Some(id) => view.task(resolve(view, id)?)?.and_then(|record| record.plan.clone()),
                None => None,
            };
            let Some(name) = plan.or(of_task.as_deref()) else { return Ok(Vec::new()) };
            let stored = view.plan(name)?;
            Ok(stored.iter().flat_map(PlanRecord::brought_tools).map(str::to_owned).collect())
        })
    }

    /// Returns the matching tasks, in the order of the query.
    pub fn list(&self, query: &Query) -> Result<Page, Error> {
        // One more than requested shows whether the page is truncated.
        let more = Query { limit: if query.limit == 0 { 0 } else { query.limit + 1 }, ..query.clone() };
        self.page(query, |view| view.find(&more))
    }

    /// Returns the tasks with these ids or unique prefixes, in this order, from one snapshot.
    pub fn get_all(&self, ids: &[String]) -> Result<Vec<Task>, Error> {
        let mut tasks = self.read(|view| {
            let keys = ids.iter().map(|id| resolve(view, id)).collect::<Result<Vec<_>, _>>()?;
            Ok(read_tasks(view, &keys)?)
        })?;
        self.mark_ended_claims(&mut tasks);
        self.mark_ending(&mut tasks)?;
        Ok(tasks)
    }

    /// Returns the matching tasks like [`list`](Self::list), always with their total number. Counting reads every matching task, unless
    /// the query has only statuses.
    pub fn list_counted(&self, query: &Query) -> Result<Page, Error> {
        let mut page = self.list(query)?;
        if page.total.is_none() {
            let all = Query { limit: 0, offset: 0, ..query.clone() };
            page.total = Some(self.read(|view| Ok(view.find(&all)?.len() as u64))?);
        }
        Ok(page)
    }

    /// Reads the tasks that `find` returns. It must return one more than the query asks for, if there are
    /// more.
    fn page(
        &self,
        query: &Query,
        find: impl FnOnce(&dyn View) -> ViewResult<Vec<Key>>,
    ) -> Result<Page, Error> {
        let mut page = self.read(|view| {
            let mut keys = find(view)?;
            let truncated = query.limit > 0 && keys.len() > query.limit;
            if truncated {
                keys.truncate(query.limit);
            }
            let tasks = read_tasks(view, &keys)?;
            Ok(Page { tasks, total: total(view, query)?, truncated })
        })?;
        self.mark_ended_claims(&mut page.tasks);
        self.mark_ending(&mut page.tasks)?;
        Ok(page)
    }

    /// Returns the ready tasks in the order in which they are taken, without those that the next run cannot
    /// take; `means` describes that run. Includes tasks with an expired lease, because a claim of such a task
    /// succeeds.
    pub fn ready(&self, limit: usize, offset: usize, means: &Means) -> Result<ReadyPage, Error> {
        let ready = Some(vec![Work::Calls, Work::Manual]);
        let query = Query { ready, limit, offset, ..Query::default() };
        let most = if limit == 0 { 0 } else { limit.saturating_add(offset).saturating_add(1) };
        let (now, mut unrunnable) = (self.source().now(), Vec::new());
        let page = self.page(&query, |view| {
            let ready = ready_part(view, &[Work::Calls, Work::Manual], most, means)?;
            unrunnable = ready.unrunnable;
            let mut sort_keys: Vec<SortKey> = ready.takable.iter().map(sort_key).collect();
            sort_keys.extend(claimable(view, now)?);
            sort_keys.sort_unstable();
            Ok(sort_keys.into_iter().map(|(_, _, key)| key).skip(offset).collect())
        })?;
        Ok(ReadyPage { page, unrunnable })
    }

    /// Returns the ids of the tasks that match the selectors and statuses, by age. Without a selector all
    /// tasks match.
    pub fn select(&self, selectors: &[Selector], status: &[Status]) -> Result<Vec<String>, Error> {
        self.read(|view| {
            let keys = match select(view, selectors)? {
                Some(keys) => keys.into_iter().collect(),
                None => view.find(&Query { status: status.to_vec(), ..Query::default() })?,
            };
            let mut ids = Vec::new();
            for key in keys {
                if has_status(view, key, status)? {
                    ids.extend(view.id(key)?.map(|id| id.to_string()));
                }
            }
            Ok(ids)
        })
    }

    /// Returns the decision that a task waits for, or `None` if it waits for none.
    pub fn approval_request(&self, id: &str) -> Result<Option<ApprovalRequest>, Error> {
        self.read(|view| approval_request(view, resolve(view, id)?))
    }

    /// Evaluates the policy for the calls of a task as if they started now.
    ///
    /// # Errors
    /// No task has this id, or the store cannot be read.
    pub fn call_authorizations(&self, id: &str) -> Result<Vec<CallAuthorization>, Error> {
        let policy_hook = self.policy_hook().map(|policy_hook| &**policy_hook);
        self.read(|view| Ok(call_authorizations(view, policy_hook, resolve(view, id)?)?))
    }

    /// Returns the decisions that tasks wait for, by age. With selectors, only those of selected tasks.
    pub fn approval_requests(&self, selectors: &[Selector]) -> Result<Vec<ApprovalRequest>, Error> {
        self.read(|view| {
            let scope = select(view, selectors)?;
            let mut requests = Vec::new();
            for (key, _) in open_questions(view)? {
                if scope.as_ref().is_none_or(|scope| scope.contains(&key)) {
                    requests.extend(approval_request(view, key)?);
                }
            }
            Ok(requests)
        })
    }

    /// Returns the decisions that the selected tasks will ask for, as far as they can be made now.
    pub fn approvals_ahead(&self, selectors: &[Selector]) -> Result<ApprovalsAhead, Error> {
        self.read(|view| {
            let keys = match select(view, selectors)? {
                Some(keys) => keys.into_iter().collect(),
                None => view.find(&Query::default())?,
            };
            approvals_ahead(view, self.policy_hook().cloned(), &keys)
        })
    }

    /// Returns the tasks that wait for a decision, by age.
    pub fn waiting_for_decision(&self) -> Result<Vec<Task>, Error> {
        let mut tasks = self.read(|view| {
            let keys: Vec<Key> = open_questions(view)?.into_iter().map(|(key, _)| key).collect();
            Ok(read_tasks(view, &keys)?)
        })?;
        self.mark_ended_claims(&mut tasks);
        Ok(tasks)
    }

    /// Returns the number of tasks in each status.
    pub fn counts(&self) -> Result<BTreeMap<Status, u64>, Error> {
        Ok(self.store().view(|view| view.counts())?)
    }

    /// Returns the events after `revision` in ascending order, of one task if `id` is given; at most `limit`
    /// (0: all).
    pub fn history(&self, id: Option<&str>, revision: u64, limit: usize) -> Result<Vec<Event>, Error> {
        self.read(|view| {
            let key = id.map(|id| resolve(view, id)).transpose()?;
            Ok(view.events(revision, key, limit)?)
        })
    }

    /// Returns the runs, latest first.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, Error> {
        Ok(self.store().view(|view| view.runs(filter.limit))?)
    }

    /// Returns the run with this id.
    pub fn run(&self, id: &RunId) -> Result<RunRecord, Error> {
        let found = self.store().view(|view| view.run(id))?;
        Ok(found.ok_or_else(|| Refusal::UnknownRun { id: id.to_string() })?)
    }

    /// Returns the revision of the last event.
    pub fn revision(&self) -> Result<u64, StoreError> {
        self.store().view(|view| view.revision())
    }
}

/// The sort key of a task in the order in which tasks are taken.
type SortKey = (Priority, i64, Key);

/// Separates refusals, which are a valid result of a read, from errors of the view, which abort it.
fn or_refused<T>(looked: Result<T, DecideError>) -> ViewResult<Result<T, DecideError>> {
    match looked {
        Err(DecideError::View(error)) => Err(error),
        seen => Ok(seen),
    }
}

fn sort_key(node: &Node) -> SortKey {
    (node.priority, node.due, node.key)
}

fn nodes(view: &dyn View, keys: Vec<Key>) -> ViewResult<Vec<Node>> {
    let nodes = keys.into_iter().map(|key| view.node(key)).collect::<ViewResult<Vec<_>>>()?;
    Ok(nodes.into_iter().flatten().collect())
}

/// Returns the tasks that become ready again with the next commit, because their lease has expired.
fn claimable(view: &dyn View, now: Timestamp) -> ViewResult<Vec<SortKey>> {
    let mut keys = Vec::new();
    for key in view.leases(None)? {
        let state = view.task(key)?.map(|task| task.body.state.clone());
        if let Some(TaskStatus::InProgress { claim }) = state
            && claim.is_expired(now)
            && view.node(key)?.is_some_and(|node| node.gate_state == GateState::Ready)
        {
            keys.push(key);
        }
    }
    Ok(nodes(view, keys)?.iter().map(sort_key).collect())
}

fn read_tasks(view: &dyn View, keys: &[Key]) -> ViewResult<Vec<Task>> {
    let mut tasks = Vec::with_capacity(keys.len());
    for key in keys {
        tasks.extend(read_task(view, *key)?);
    }
    Ok(tasks)
}

fn has_status(view: &dyn View, key: Key, status: &[Status]) -> ViewResult<bool> {
    let Some(task) = view.task(key)? else { return Ok(false) };
    Ok(status.is_empty() || status.contains(&task.body.state.status()))
}

/// Returns the number of matching tasks, if the counters of the store can tell.
fn total(view: &dyn View, query: &Query) -> ViewResult<Option<u64>> {
    let is_filtered = *query
        != Query {
            status: query.status.clone(),
            limit: query.limit,
            offset: query.offset,
            ..Query::default()
        };
    if is_filtered {
        return Ok(None);
    }
    let counts = view.counts()?;
    let is_asked = |status: &Status| query.status.is_empty() || query.status.contains(status);
    Ok(Some(counts.iter().filter(|(status, _)| is_asked(status)).map(|(_, count)| count).sum()))
}
