use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use taskpawl_model::command::{CallEnd, Needs, Report, StartedCall};
use taskpawl_model::run::schedule::{Action, Commit, Event, State, Written, step};
use taskpawl_model::task::{CallBody, CallRecord, CallSpec, Node, Origin, TaskSpec, Trigger, Work};
use taskpawl_model::value::Map;
use taskpawl_model::value::{CallId, Key, KeyMap, TaskId};

use crate::instance::{Instance, key};

/// Simulates a run with the real schedule, and returns its makespan. Ready tasks are started in the order of `ranks`.
///
/// # Panics
/// Panics if the schedule loses a task.
pub(crate) fn run_makespan(instance: &Instance, jobs: usize, ranks: KeyMap<u64>) -> u64 {
    let ranks = Arc::new(ranks);
    let mut world = World::new(instance, Arc::clone(&ranks));
    let mut state = State::new(jobs, ranks);
    let ready = world.first_ready();
    let mut events = VecDeque::from([Event::Ready(ready), Event::Settled]);
    loop {
        while let Some(event) = events.pop_front() {
            for action in step(&mut state, event) {
                world.carry_out(action, &mut events);
            }
        }
        let Some(ended) = world.next_ends() else { break };
        events.extend(ended.into_iter().map(|task| Event::Ended(Box::new(report(task)))));
        events.push_back(Event::Settled);
    }
    assert_eq!(world.ended, instance.len(), "BUG: the schedule lost a task");
    world.now
}

/// Replacement for store and tools: answers immediately, and ends tools after the length of their tasks.
struct World<'i> {
    instance: &'i Instance,
    ranks: Arc<KeyMap<u64>>,
    dependents: Vec<Vec<usize>>,
    left: Vec<usize>,
    running: BTreeSet<(u64, usize)>,
    now: u64,
    ended: usize,
}

impl<'i> World<'i> {
    fn new(instance: &'i Instance, ranks: Arc<KeyMap<u64>>) -> Self {
        Self {
            instance,
            ranks,
            dependents: instance.dependents(),
            left: instance.needs.iter().map(Vec::len).collect(),
            running: BTreeSet::new(),
            now: 0,
            ended: 0,
        }
    }

    fn first_ready(&self) -> Vec<Node> {
        (0..self.instance.len()).filter(|task| self.left[*task] == 0).map(node).collect()
    }

    fn carry_out(&mut self, action: Action, events: &mut VecDeque<Event>) {
        match action {
            Action::Commit(commit) => {
                let written = self.commit(&commit);
                events.extend([Event::Committed(Box::new(written)), Event::Settled]);
            }
            Action::Start(call) => {
                let task = call.key.0 as usize;
                self.running.insert((self.now + self.instance.lengths[task], task));
            }
            Action::Find(..) | Action::Kill(_) | Action::KillAll | Action::Finish => {}
        }
    }

    /// Applies a commit like a store: ends the reported tasks, and claims requested and newly ready tasks in the order
    /// of their ranks.
    fn commit(&mut self, commit: &Commit) -> Written {
        let mut ready = Vec::new();
        for report in &commit.reports {
            self.ended += 1;
            for dependent in self.dependents[report.task.0 as usize].clone() {
                self.left[dependent] -= 1;
                if self.left[dependent] == 0 {
                    ready.push(dependent);
                }
            }
        }
        let asked: BTreeSet<usize> = commit.claims.iter().map(|key| key.0 as usize).collect();
        let mut claims: Vec<usize> = asked.iter().copied().collect();
        claims.extend(ready.iter().filter(|_| commit.takes_new));
        claims.sort_by_key(|task| (Reverse(self.ranks.get(&key(*task)).copied().unwrap_or(0)), *task));
        let left = claims.split_off(commit.places.min(claims.len()));
        let started: Vec<StartedCall> = claims.iter().map(|task| self::started(key(*task))).collect();
        ready.retain(|task| !claims.contains(task));
        Written {
            started,
            ready: ready.into_iter().map(node).collect(),
            needs: left
                .iter()
                .filter(|task| asked.contains(task))
                .map(|task| (key(*task), Needs::default()))
                .collect(),
            paused: Vec::new(),
        }
    }

    /// Advances the time to the next end of a tool.
    fn next_ends(&mut self) -> Option<Vec<usize>> {
        let (end, _) = *self.running.first()?;
        self.now = end;
        let later = self.running.split_off(&(end + 1, 0));
        let ended = std::mem::replace(&mut self.running, later);
        Some(ended.into_iter().map(|(_, task)| task).collect())
    }
}

fn node(task: usize) -> Node {
    Node::new(key(task), Trigger::AllDone, Work::Calls)
}

fn started(key: Key) -> StartedCall {
    let spec = CallSpec { tool_name: "t".to_owned(), ..CallSpec::default() };
    let call = CallRecord {
        id: CallId::from("c1"),
        spec: spec.into(),
        origin: Origin::Plan,
        body: CallBody::default().into(),
    };
    StartedCall {
        key,
        task: TaskId::from(format!("t{key}")),
        attempt: 1,
        generation: 0,
        round: 0,
        call,
        args: Map::new(),
        deadline: None,
        plan: None,
        sandbox: None,
        cache: None,
        spec: TaskSpec::default().into(),
    }
}

fn report(task: usize) -> Report {
    Report {
        task: key(task),
        attempt: 1,
        call: CallId::from("c1"),
        end: CallEnd::Succeeded(serde_json::Value::Null),
        cut: Vec::new(),
        usage: None,
        artifacts: Vec::new(),
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        worker: None,
        go_on: true,
    }
}

/// Returns the makespan of first come, first served: earlier ready tasks start first, and of those that became ready
/// together the oldest.
pub(crate) fn first_come_makespan(instance: &Instance, jobs: usize) -> u64 {
    let dependents = instance.dependents();
    let mut left: Vec<usize> = instance.needs.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<(u64, usize)> =
        (0..instance.len()).filter(|task| left[*task] == 0).map(|task| (0, task)).collect();
    let (mut running, mut now) = (BTreeSet::new(), 0);
    loop {
        while running.len() < jobs
            && let Some((_, task)) = ready.pop_first()
        {
            running.insert((now + instance.lengths[task], task));
        }
        let Some((end, _)) = running.first().copied() else { return now };
        now = end;
        while let Some((_, task)) = running.first().copied().filter(|(end, _)| *end == now) {
            running.remove(&(now, task));
            for dependent in &dependents[task] {
                left[*dependent] -= 1;
                if left[*dependent] == 0 {
                    ready.insert((now, *dependent));
                }
            }
        }
    }
}
