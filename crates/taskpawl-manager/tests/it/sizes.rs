//! Large graphs: no recursion, and only changed rows are written.

use taskpawl_manager::{ApplyOptions, Ending, Manager};
use taskpawl_model::command::Command;
use taskpawl_model::plan::{Plan, PlanTask};
use taskpawl_model::rules::Means;
use taskpawl_model::task::{Status, TaskSpec};
use taskpawl_model::value::TaskId;
use taskpawl_store::{Location, open};

use crate::support::ids;

fn task(id: &str, needs: Vec<usize>, parent: Option<usize>) -> PlanTask {
    let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
    PlanTask { id: Some(TaskId::from(id)), spec: spec.into(), needs, parent, ..PlanTask::default() }
}

fn apply(tasks: Vec<PlanTask>) -> Manager {
    let manager = Manager::new(open(&Location::Memory), "ann");
    let plan = Plan { version: 1, tasks, ..Plan::default() };
    manager.apply(plan, "p", ApplyOptions::default()).unwrap();
    manager
}

fn counts(manager: &Manager) -> Vec<(Status, u64)> {
    manager.counts().unwrap().into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_chain_of_five_thousand_dependencies() {
    let needs = |n: usize| if n == 0 { vec![] } else { vec![n - 1] };
    let manager = apply((0..5_000).map(|n| task(&format!("t{n}"), needs(n), None)).collect());
    manager.fail(&ids(&["t0"]), Ending::default()).unwrap();
    assert_eq!(counts(&manager), [(Status::Blocked, 4_999), (Status::Failed, 1)]);
    let error = manager.add_dependency("t0", "t4999").unwrap_err().to_string();
    assert!(error.starts_with("this would close a cycle: `t0` → `t1` →"), "{error:.99}");
    manager.retry(&ids(&["t0"]), false).unwrap();
    assert_eq!(counts(&manager), [(Status::Todo, 5_000)]);
    let all: Vec<String> = (0..5_000).map(|n| format!("t{n}")).collect();
    manager.done(&all, Ending::default()).unwrap();
    assert_eq!(counts(&manager), [(Status::Done, 5_000)]);
    manager.reopen(&ids(&["t0"]), true).unwrap();
    assert_eq!(counts(&manager), [(Status::Todo, 5_000)]);
}

#[test]
fn five_thousand_nested_subtasks() {
    let manager =
        apply((0..5_000).map(|n: usize| task(&format!("t{n}"), vec![], n.checked_sub(1))).collect());
    assert_eq!(manager.ready(0, 0, &Means::default()).unwrap().page.tasks.len(), 1);
    let error = manager.add_dependency("t0", "t4999").unwrap_err().to_string();
    assert!(error.starts_with("this would close a cycle:"), "{error:.99}");
    manager.skip(&ids(&["t0"]), None).unwrap();
    assert_eq!(counts(&manager), [(Status::Skipped, 5_000)]);
    manager.retry(&ids(&["t0"]), false).unwrap();
    manager.done(&ids(&["t4999"]), Ending::default()).unwrap();
    assert_eq!(counts(&manager), [(Status::Done, 5_000)]);
}

/// Returns the numbers of tasks, nodes and events that `done` of a task writes.
fn sizes_of_done(manager: &Manager, id: &str) -> (usize, usize, usize) {
    let command = Command::Done { ids: ids(&[id]), result: None, note: None, attempt: None };
    let decision = manager.store().preview(&manager.request(command)).unwrap().unwrap();
    let changes = decision.changes;
    assert!(changes.edges.is_empty() && changes.calls.is_empty() && changes.applied.is_empty());
    (changes.tasks.len(), changes.nodes.len(), changes.events.len())
}

#[test]
fn each_dependency_of_a_join_over_a_hundred_thousand_writes_one_row() {
    const WIDE: usize = 100_000;
    let mut tasks: Vec<PlanTask> = (0..WIDE).map(|n| task(&format!("t{n}"), vec![], None)).collect();
    tasks.push(task("join", (0..WIDE).collect(), None));
    let manager = apply(tasks);
    assert_eq!(
        sizes_of_done(&manager, "t7"),
        (1, 2, 2),
        "only the task itself and the counts of the join are written"
    );
    let all: Vec<String> = (0..WIDE).map(|n| format!("t{n}")).collect();
    manager.done(&all, Ending::default()).unwrap();
    let ready = manager.ready(2, 0, &Means::default()).unwrap();
    assert_eq!(ready.page.tasks[0].id.as_str(), "join");
    let fewer: Vec<String> = (1..WIDE).map(|n| format!("t{n}")).collect();
    let fields = serde_json::json!({"dependencies": fewer});
    manager.update("join", fields.as_object().unwrap().clone(), None).unwrap();
    assert_eq!(manager.get("join").unwrap().dependencies.len(), WIDE - 1);
}

#[test]
fn a_failure_with_a_hundred_thousand_dependents() {
    const WIDE: usize = 100_000;
    let mut tasks = vec![task("top", vec![], None), task("beside", vec![], None)];
    tasks.extend((0..WIDE).map(|n| task(&format!("t{n}"), vec![if n % 100 == 0 { 0 } else { n + 1 }], None)));
    let manager = apply(tasks);
    assert_eq!(sizes_of_done(&manager, "beside"), (1, 1, 2));
    manager.fail(&ids(&["top"]), Ending::default()).unwrap();
    assert_eq!(counts(&manager), [(Status::Todo, 1), (Status::Blocked, WIDE as u64), (Status::Failed, 1)]);
    manager.retry(&ids(&["top"]), false).unwrap();
    assert_eq!(counts(&manager), [(Status::Todo, WIDE as u64 + 2)]);
}

#[test]
fn a_hundred_thousand_subtasks_of_one_task() {
    const WIDE: usize = 100_000;
    let mut tasks = vec![task("p", vec![], None)];
    tasks.extend((0..WIDE).map(|n| task(&format!("t{n}"), vec![], Some(0))));
    let manager = apply(tasks);
    assert_eq!(sizes_of_done(&manager, "t7"), (1, 2, 2));
    manager.skip(&ids(&["p"]), None).unwrap();
    assert_eq!(counts(&manager), [(Status::Skipped, WIDE as u64 + 1)]);
}
