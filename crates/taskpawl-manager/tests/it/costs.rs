//! The cost of commands: they read only the necessary part of a large store.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use taskpawl_manager::{Ending, Manager};
use taskpawl_model::command::{Command, Grant, Report, RequestRecord, Round, RunRules};
use taskpawl_model::rules::Decision;
use taskpawl_model::rules::decide;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    Actor, CallRecord, KeySpace, Node, PlanRecord, RunRecord, SignalRecord, Status, TaskRecord,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId, TaskId};
use taskpawl_model::view::{
    Changes, EventQuery, FindTasks, Query, ReadGraph, ReadHistory, ReadRuns, ReadTasks, UndoSnapshot,
    Undoable, View, ViewResult, Waits,
};

use crate::flow::with_plan;
use crate::support::{Fixture, end};

/// Counts of the rows read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reads {
    pub(crate) tasks: usize,
    pub(crate) nodes: usize,
    pub(crate) calls: usize,
}

/// A view that counts reads.
struct Counting<'a> {
    view: &'a dyn View,
    reads: Cell<Reads>,
}

impl Counting<'_> {
    fn count(&self, add: impl FnOnce(&mut Reads)) {
        let mut reads = self.reads.get();
        add(&mut reads);
        self.reads.set(reads);
    }
}

/// Delegates methods to the inner view.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $of:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $of),*) -> ViewResult<$result> { self.view.$name($($argument),*) })*
    };
}

impl ReadGraph for Counting<'_> {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        self.count(|reads| reads.nodes += 1);
        self.view.node(key)
    }

    pass_on! {
        dependencies(key: Key) -> Vec<Key>;
        dependents(key: Key) -> Vec<Key>;
        subtasks(key: Key) -> Vec<Key>;
        each_node(each: &mut dyn FnMut(Node)) -> ();
        each_dependency(each: &mut dyn FnMut(Key, Key)) -> ();
        counts() -> BTreeMap<Status, u64>;
    }
}

impl ReadTasks for Counting<'_> {
    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        self.count(|reads| reads.tasks += 1);
        self.view.task(key)
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        self.count(|reads| reads.calls += 1);
        self.view.calls(key)
    }

    pass_on! {
        key(id: &str) -> Option<Key>;
        id(key: Key) -> Option<TaskId>;
        ids_with_prefix(prefix: &str, limit: usize) -> Vec<TaskId>;
        deleted_id(id: &str) -> Option<Option<String>>;
        next_key() -> Key;
        applied(key: Key) -> Option<String>;
        plan(name: &str) -> Option<PlanRecord>;
        plans() -> Vec<PlanRecord>;
    }
}

impl FindTasks for Counting<'_> {
    pass_on! {
        find(query: &Query) -> Vec<Key>;
        leases(actor: Option<&str>) -> Vec<Key>;
        running() -> Vec<Key>;
        on_hold(limit: usize) -> Vec<Key>;
        to_be_opened() -> Vec<Key>;
        waiting(which: Waits<'_>) -> Vec<Key>;
        next_wake() -> Option<Timestamp>;
    }
}

impl ReadRuns for Counting<'_> {
    pass_on! {
        run(id: &RunId) -> Option<RunRecord>;
        runs(limit: usize) -> Vec<RunRecord>;
        pruned_runs(prefix: &str) -> Vec<(RunId, Timestamp)>;
        signals(name: Option<&str>) -> Vec<SignalRecord>;
        key_space() -> Option<KeySpace>;
    }
}

impl ReadHistory for Counting<'_> {
    pass_on! {
        revision() -> u64;
        events(after: u64, task: Option<Key>, limit: usize) -> Vec<Event>;
        find_events(query: &EventQuery) -> Vec<Event>;
        newest_checklists(revision: u64) -> Vec<Event>;
        undoables(first: u64, last: u64) -> Vec<Undoable>;
        last_undoable(actor: Actor<'_>) -> Option<Undoable>;
        request(actor: Actor<'_>, request: &str) -> Option<RequestRecord>;
        requests_before(time: Timestamp) -> u64;
        each_undo_snapshot(each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ();
        undo_snapshot(revision: u64) -> Option<Arc<UndoSnapshot>>;
    }
}

/// Returns the decision on a command, and the reads that it needed.
pub(crate) fn reads(manager: &Manager, command: Command) -> (Decision, Reads) {
    let request = manager.request(command);
    let decided = manager.store().view(|view| {
        let counting = Counting { view, reads: Cell::default() };
        let decision = decide(&counting, &request.command, &request.context);
        Ok((decision, counting.reads.get()))
    });
    let (decision, reads) = decided.unwrap();
    (decision.unwrap(), reads)
}

/// Returns a round of the run `r1` that claims these tasks.
fn round(fixture: &Fixture, claims: &[&str]) -> Round {
    let claims: Vec<Key> = claims.iter().map(|id| fixture.key(id)).collect();
    let grants = claims.iter().map(|key| (*key, Grant::default())).collect();
    let capacities = [("pool".to_owned(), 5_000)].into();
    let rules = Arc::new(RunRules { capacities, ..RunRules::default() });
    Round { claims, grants, rules, tools: Arc::new(["t".to_owned()].into()), ..Round::default() }
}

/// Returns the reads for a claim of a task with a resource, next to `pausing` paused tasks with the same
/// resource.
fn reads_of_a_claim_beside(pausing: usize) -> (Changes, Reads) {
    let tasks: Vec<_> = (0..=pausing)
        .map(|n| json!({"id": format!("t{n}"), "call": {"t": {}}, "resources": ["pool"], "retry": {"attempts": 2, "delay": "1h"}}))
        .collect();
    let fixture = with_plan(&json!({ "tasks": tasks }).to_string());
    let ids: Vec<String> = (1..=pausing).map(|n| format!("t{n}")).collect();
    let run = fixture.manager.clone().with_run(RunId::from("r1"));
    let send = |round: Round| run.command(Command::Round(Box::new(round))).unwrap();
    let answer = send(round(&fixture, &ids.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(answer.started.len(), pausing);
    let report = |task: &TaskId| Report {
        task: fixture.key(task.as_str()),
        attempt: 1,
        call: "c1".into(),
        end: end("bad"),
        cut: Vec::new(),
        usage: None,
        artifacts: Vec::new(),
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        worker: None,
        go_on: true,
    };
    let reports = answer.started.iter().map(|call| report(&call.task)).collect();
    assert_eq!(send(Round { reports, ..Round::default() }).paused.len(), pausing);
    let (decision, reads) = reads(&run, Command::Round(Box::new(round(&fixture, &["t0"]))));
    assert_eq!(decision.answer.started.len(), 1);
    (decision.changes, reads)
}

#[test]
fn a_claim_reads_resource_holders_but_not_paused_tasks() {
    let (changes, few) = reads_of_a_claim_beside(10);
    assert_eq!(changes.tasks.len(), 1);
    assert_eq!(reads_of_a_claim_beside(2_000).1, few);
}

/// Returns the reads for the end of a loop over `items`, and the status of a later task with this condition.
fn reads_of_a_condition_on(items: usize, condition: &str) -> Reads {
    let list: Vec<usize> = (0..items).collect();
    let fixture = with_plan(&format!(
        "tasks: [{{id: each, name: each, forEach: {{in: {list:?}}}}}, {{id: after, needs: each, when: {condition}}}]"
    ));
    let ids: Vec<String> = (1..items).map(|n| format!("each.{n}")).collect();
    fixture.manager.done(&ids, Ending::default()).unwrap();
    let end_last = Command::Done { ids: vec!["each.0".to_owned()], result: None, note: None, attempt: None };
    reads(&fixture.manager, end_last).1
}

#[test]
fn a_condition_on_the_status_of_a_loop_reads_no_items() {
    for condition in ["tasks.each.status == 'done'", "tasks.each.error is none", "tasks.each.result is none"]
    {
        let few = reads_of_a_condition_on(2, condition);
        assert_eq!(reads_of_a_condition_on(500, condition), few, "{condition}");
    }
    let results = "tasks.each.results | length > 0";
    assert!(reads_of_a_condition_on(500, results).tasks > 500);
}

#[test]
fn results_beyond_the_expression_limit_are_an_error() {
    let list: Vec<usize> = (0..200).collect();
    let fixture = with_plan(&format!(
        "tasks: [{{id: each, name: each, forEach: {{in: {list:?}}}}}, {{id: after, needs: each, when: tasks.each.results | length > 0}}]"
    ));
    let result = Some(json!("long ".repeat(40_000)));
    for n in list {
        let ending = Ending { result: result.clone(), ..Ending::default() };
        fixture.manager.done(&[format!("each.{n}")], ending).unwrap();
    }
    let error = fixture.task("after").error.unwrap();
    assert!(error.contains("reads or copies more than 33554432 bytes"), "{error}");
}

/// Returns the reads for the start of a run, next to `waiting` tasks with conditions that wait for another
/// one.
fn reads_of_a_start_beside(waiting: usize) -> Reads {
    let mut tasks = vec![json!({"id": "first"})];
    tasks.extend((0..waiting).map(|n| json!({"id": format!("t{n}"), "needs": "first", "when": "true"})));
    let fixture = with_plan(&json!({ "tasks": tasks }).to_string());
    let run =
        json!({"id": "r", "scope": [], "actor": "ann", "host": "h", "startedAt": "2025-06-15T15:06:40Z"});
    let start = Command::start_run(serde_json::from_value(run).unwrap());
    reads(&fixture.manager, start).1
}

#[test]
fn a_starting_run_does_not_read_waiting_tasks() {
    assert_eq!(reads_of_a_start_beside(1_000), reads_of_a_start_beside(10));
}
