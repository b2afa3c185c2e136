//! Recovery from runs that died at any point.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use taskpawl_manager::{ApplyOptions, Ending, Error, Liveness, Manager, RunFilter, RunState};
use taskpawl_model::command::{Answer, CallEnd, Command, Report, Round, StartedCall};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::run::recovery::Plan;
use taskpawl_model::task::{RunRecord, Status, Work};
use taskpawl_model::value::Map;
use taskpawl_model::value::{Key, RunId};
use taskpawl_model::view::Query;
use taskpawl_store::{Location, open};

use crate::support::{Fixture, LEASE, end, ids};

/// Recovers everything, or the named tasks, as if the runs in `dead` were dead. Only the tool `safe` is
/// repeatable.
pub(crate) fn recover(manager: &Manager, tasks: Option<&[Key]>, dead: &[&str]) -> Plan {
    let is_alive = |run: &RunId| !dead.contains(&run.as_str());
    let now = manager.source().now();
    let plan = manager
        .read(|view| Ok(Plan::new(view, tasks, &is_alive, &|call| call.spec.tool_name == "safe", now)?));
    let plan = plan.unwrap();
    let requests = plan.commands().into_iter().map(|(run, command)| match run {
        Some(run) => manager.clone().with_run(run).request(command),
        None => manager.request(command),
    });
    manager.store().write(requests.collect()).unwrap().into_iter().for_each(|outcome| drop(outcome.unwrap()));
    plan
}

pub(crate) fn start_run(fixture: &Fixture, id: &str) {
    let record = RunRecord {
        id: RunId::from(id),
        scope: Vec::new(),
        params: Map::new(),
        actor: "ann".to_owned(),
        actor_kind: taskpawl_model::task::ActorKind::Unknown,
        stop: None,
        host: "here".to_owned(),
        started_at: fixture.manager.source().now(),
        finished_at: None,
        exit: None,
        recovered_at: None,
        output_pruned_at: None,
        counts: BTreeMap::new(),
        ending: BTreeMap::new(),
    };
    fixture.accept(fixture.manager.clone().with_run(RunId::from(id)).command(Command::start_run(record)));
}

/// Returns a task with two calls of these tools in these states: `.` not started, `r` running, `s` succeeded,
/// `f` failed.
fn with_calls(mode: &str, tools: [&str; 2], states: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(&format!(
        "tasks: [{{id: a, mode: {mode}, metadata: {{toolCalls: [{{id: c1, toolName: {}}}, {{id: c2, toolName: {}}}]}}}}]",
        tools[0], tools[1]
    ));
    start_run(&fixture, "r1");
    let tools = Arc::new(["t".to_owned(), "safe".to_owned()].into());
    fixture.round(Round { claims: vec![fixture.key("a")], tools, ..Round::default() });
    for (call, state) in ["c1", "c2"].into_iter().zip(states.chars()) {
        match state {
            's' => drop(fixture.report("a", call, "ok")),
            'f' => drop(fixture.report("a", call, "bad")),
            _ => {}
        }
    }
    fixture
}

fn outcome(fixture: &Fixture) -> String {
    let calls = fixture.calls("a");
    format!("{}, {calls}", fixture.states())
}

#[test]
fn the_status_after_recovery_follows_from_the_calls() {
    let mut table = String::new();
    for (mode, states) in [
        ("sequential", "r."),
        ("sequential", "sr"),
        ("parallel", "rr"),
        ("parallel", "rs"),
        ("parallel", "sr"),
        ("parallel", "rf"),
    ] {
        for tools in [["t", "t"], ["safe", "t"], ["t", "safe"], ["safe", "safe"]] {
            let fixture = with_calls(mode, tools, states);
            let held = outcome(&fixture);
            assert!(recover(&fixture.manager, None, &["other"]).is_empty(), "a living run keeps its tasks");
            assert_eq!(outcome(&fixture), held);
            let plan = recover(&fixture.manager, None, &["r1"]);
            fixture.check();
            let line = format!("{mode:<10} {:<9} {states}  {}\n", tools.join(","), outcome(&fixture));
            table.push_str(&line);
            let summary = plan.summary();
            let is_lost = fixture.states().contains("interrupted");
            assert_eq!(
                (summary.interrupted.len(), summary.returned.len()),
                (usize::from(is_lost), usize::from(!is_lost))
            );
            assert!(
                recover(&fixture.manager, None, &["r1"]).is_empty(),
                "a second recovery has nothing to do"
            );
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_author_setting_of_a_call_overrides_its_tool() {
    let fixture = Fixture::new();
    fixture.apply(
        "tasks:
          - {id: a, metadata: {toolCalls: [{toolName: t, idempotent: true}]}}
          - {id: b, metadata: {toolCalls: [{toolName: safe, idempotent: false}]}}",
    );
    let tools = Arc::new(["t".to_owned(), "safe".to_owned()].into());
    fixture.round(Round { claims: vec![fixture.key("a"), fixture.key("b")], tools, ..Round::default() });
    recover(&fixture.manager, None, &["r1"]);
    assert_eq!(fixture.states(), "a=todo b=blocked{interrupted}");
}

#[test]
fn leases_expire_by_time_and_runs_by_their_locks() {
    let fixture = Fixture::with(&["mine", "late", "run calls=1"]);
    fixture.accept(fixture.manager.claim("late", LEASE));
    fixture.pass(30);
    fixture.accept(fixture.manager.claim("mine", LEASE));
    fixture.start(&["run"]);
    fixture.pass(30);
    let plan = recover(&fixture.manager, None, &[]);
    assert_eq!(fixture.states(), "mine=in_progress late=todo run=in_progress");
    assert_eq!(plan.summary().expired.len(), 1);
    fixture.pass(3600);
    recover(&fixture.manager, Some(&[fixture.key("run")]), &[]);
    assert_eq!(
        fixture.states(),
        "mine=in_progress late=todo run=in_progress",
        "only the named tasks are examined"
    );
}

#[test]
fn only_a_full_recovery_closes_the_record_of_a_dead_run() {
    let fixture = Fixture::with(&["a calls=1", "b calls=1"]);
    start_run(&fixture, "r1");
    fixture.start(&["a", "b"]);
    recover(&fixture.manager, Some(&[fixture.key("a")]), &["r1"]);
    assert_eq!(fixture.states(), "a=blocked{interrupted} b=in_progress");
    let record = |fixture: &Fixture| fixture.manager.runs(&RunFilter::default()).unwrap().remove(0);
    assert!(record(&fixture).is_open());
    fixture.pass(5);
    let plan = recover(&fixture.manager, None, &["r1"]);
    assert_eq!(plan.summary().runs, [RunId::from("r1")]);
    let closed = record(&fixture);
    assert_eq!((closed.exit, closed.finished_at), (None, None), "time and result of the end are unknown");
    assert_eq!(closed.recovered_at, Some(fixture.manager.source().now()));
    assert_eq!(fixture.manager.run_state(&closed), RunState::Killed);
    assert!(recover(&fixture.manager, None, &["r1"]).is_empty());
}

#[test]
fn concurrent_recoveries_of_the_same_tasks_are_harmless() {
    let fixture = Fixture::with(&["a calls=1", "b parallel calls=2"]);
    start_run(&fixture, "r1");
    fixture.start(&["a", "b"]);
    let plan = || {
        let now = fixture.manager.source().now();
        fixture.manager.read(|view| Ok(Plan::new(view, None, &|_| false, &|_| true, now)?)).unwrap()
    };
    let (first, second) = (plan(), plan());
    let carry_out = |plan: &Plan| {
        for (run, command) in plan.commands() {
            fixture.accept(fixture.manager.clone().with_run(run.unwrap()).command(command));
        }
    };
    carry_out(&first);
    // In the meantime another run has claimed one of them.
    let tools = Arc::new(["t".to_owned()].into());
    let round = Round { claims: vec![fixture.key("a")], tools, ..Round::default() };
    fixture
        .accept(fixture.manager.clone().with_run(RunId::from("r2")).command(Command::Round(Box::new(round))));
    let before = fixture.dump();
    carry_out(&second);
    assert_eq!(fixture.dump(), before);
}

#[test]
fn a_thousand_interrupted_tasks_are_one_commit() {
    let directory = tempfile::tempdir().unwrap();
    let manager = Manager::new(open(&Location::Sqlite(directory.path().join("tasks.db"))), "ann");
    let tasks = (0..1000).map(|n| format!("- {{id: t{n}, metadata: {{toolCalls: [{{toolName: t}}]}}}}"));
    let plan = taskpawl_model::plan::parse_plan(&format!("tasks:\n{}", tasks.collect::<Vec<_>>().join("\n")))
        .unwrap();
    manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
    let run = manager.clone().with_run(RunId::from("r1"));
    let tools = Arc::new(["t".to_owned()].into());
    let claims = manager.read(|view| Ok(view.find(&Query::default())?)).unwrap();
    let started = run.command(Command::Round(Box::new(Round { claims, tools, ..Round::default() }))).unwrap();
    assert_eq!(started.started.len(), 1000);
    let begin = std::time::Instant::now();
    let plan = recover(&manager, None, &["r1"]);
    println!(
        "1,000 interrupted tasks: {} ms, {} commands in one commit",
        begin.elapsed().as_millis(),
        plan.commands().len()
    );
    assert_eq!(plan.summary().interrupted.len(), 1000);
    assert_eq!(plan.commands().len(), 1);
    assert_eq!(manager.counts().unwrap()[&Status::InProgress], 0);
}

/// Reports one run as dead, and counts recoveries.
#[derive(Debug, Default)]
struct Dead(Mutex<u32>);

impl Liveness for Dead {
    fn is_alive(&self, run: &RunId) -> bool {
        run.as_str() != "r1"
    }

    fn recover(&self, manager: &Manager, tasks: &[Key]) -> Result<(), Error> {
        *self.0.lock().unwrap() += 1;
        recover(manager, Some(tasks), &["r1"]);
        Ok(())
    }
}

#[test]
fn a_command_recovers_the_named_tasks_of_a_dead_run() {
    let dead = Arc::new(Dead::default());
    let fixture = Fixture::with(&["a calls=1", "b calls=1", "p", "s calls=1 in=p"]);
    let manager = fixture.manager.clone().with_liveness(dead.clone());
    fixture.start(&["a", "b", "s"]);
    assert_eq!(
        manager.get("a").unwrap().claim_ended.unwrap().as_str(),
        "killed",
        "a read shows the dead run"
    );
    fixture.accept(manager.note("a", "hm"));
    assert_eq!(*dead.0.lock().unwrap(), 0, "an accepted command needs no recovery");
    fixture.accept(manager.done(&ids(&["a"]), Ending::default()));
    assert_eq!(fixture.states(), "a=done b=in_progress p=todo s=in_progress");
    fixture.accept(manager.skip(&ids(&["p"]), None));
    assert_eq!(
        fixture.states(),
        "a=done b=in_progress p=skipped s=skipped",
        "subtasks of the named task are recovered, too"
    );
    let refused = manager.claim("b", LEASE).unwrap_err().to_string();
    assert!(refused.starts_with("task `b` is `blocked`") || refused.contains("has tool calls"), "{refused}");
    assert_eq!(*dead.0.lock().unwrap(), 3);
}

#[test]
fn an_apply_recovers_the_changed_tasks_of_a_dead_run() {
    let dead = Arc::new(Dead::default());
    let fixture = Fixture::new();
    let file = |n: u8| {
        parse_plan(&format!("tasks: [{{id: a, call: {{t: {{n: {n}}}}}}}, {{id: b, call: {{t: {{}}}}}}]"))
            .unwrap()
    };
    fixture.accept(fixture.manager.apply(file(1), "plan", ApplyOptions::default()));
    fixture.start(&["a", "b"]);
    let refused = fixture.manager.apply(file(2), "plan", ApplyOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("`a` is `in_progress`"), "the run may be alive: {refused}");
    let manager = fixture.manager.clone().with_liveness(dead.clone());
    fixture.accept(manager.apply(file(2), "plan", ApplyOptions::default()));
    assert_eq!(fixture.states(), "a=blocked{interrupted} b=in_progress");
    assert_eq!(fixture.task("a").metadata.tool_calls[0].args["n"], 2);
    assert_eq!(*dead.0.lock().unwrap(), 1, "only the changed task is recovered");
}

// Runs that end after each of their commits.

const PLAN: &str = "
    tasks:
      - {id: seq, metadata: {toolCalls: [{id: c1, toolName: safe}, {id: c2, toolName: t}, {id: c3, toolName: safe}]}}
      - {id: par, mode: parallel, metadata: {toolCalls: [{id: c1, toolName: t}, {id: c2, toolName: safe}, {id: c3, toolName: t}]}}
      - {id: one, needs: [seq], metadata: {toolCalls: [{id: c1, toolName: t}]}}
      - {id: all, needs: [seq, par, one], metadata: {toolCalls: [{id: c1, toolName: safe}]}}";

type Starts = BTreeMap<(String, String), u32>;

/// Runs the ready tasks as the run `id`, and dies after `commits` commits. A call counts as started once that
/// is recorded.
fn run(fixture: &Fixture, id: &str, starts: &mut Starts, mut commits: usize) {
    let manager = fixture.manager.clone().with_run(RunId::from(id));
    let tools: Arc<_> = Arc::new(["t".to_owned(), "safe".to_owned()].into());
    let mut running: Vec<StartedCall> = Vec::new();
    let mut give = |round: Round, running: &mut Vec<StartedCall>| {
        if commits == 0 {
            return false;
        }
        commits -= 1;
        let Answer { started, .. } = manager.command(Command::Round(Box::new(round))).unwrap();
        for call in &started {
            *starts.entry((call.task.to_string(), call.call.id.to_string())).or_default() += 1;
        }
        running.extend(started);
        true
    };
    loop {
        let ready = Query { ready: Some(vec![Work::Calls]), ..Query::default() };
        let claims = manager.read(|view| Ok(view.find(&ready)?)).unwrap();
        let reports: Vec<Report> = running.pop().into_iter().map(|call| report(&call, end("ok"))).collect();
        if claims.is_empty() && reports.is_empty() {
            return;
        }
        let round = Round {
            reports,
            claims,
            places: 2,
            takes_new: true,
            tools: Arc::clone(&tools),
            ..Round::default()
        };
        if !give(round, &mut running) {
            return;
        }
    }
}

fn report(call: &StartedCall, end: CallEnd) -> Report {
    Report {
        task: call.key,
        attempt: call.attempt,
        call: call.call.id.clone(),
        end,
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

/// Acts as a person who reports that interrupted calls have succeeded.
fn resolve_interrupted(fixture: &Fixture, starts: &Starts) {
    let blocked =
        || {
            let query = Query { status: vec![Status::Blocked], ..Query::default() };
            fixture.manager.list(&query).unwrap().tasks.into_iter().find(|task| {
                task.blocked_reason.as_ref().is_some_and(|reason| reason.kind() == "interrupted")
            })
        };
    while let Some(task) = blocked() {
        let Some(taskpawl_model::task::BlockedReason::Interrupted { call }) = &task.blocked_reason else {
            continue;
        };
        let at = (task.id.to_string(), call.to_string());
        assert_eq!(starts[&at], 1, "{at:?} was started");
        let tool = task.metadata.tool_calls.iter().find(|other| other.id == *call).unwrap();
        assert_eq!(tool.tool_name, "t", "repeatable calls need no person");
        fixture.manager.done(&[task.id.to_string()], Ending::default()).unwrap();
    }
}

/// Ends a first run after `first` commits and a second one after `second`, lets a third one finish, and
/// checks the invariants. Returns whether the first run ended early.
fn cut(first: usize, second: usize) -> bool {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    let mut starts = Starts::new();
    let mut was_cut = false;
    for (id, commits) in [("r1", first), ("r2", second), ("r3", usize::MAX)] {
        run(&fixture, id, &mut starts, commits);
        was_cut |=
            id == "r1" && fixture.states().contains("=todo") | fixture.states().contains("=in_progress");
        recover(&fixture.manager, None, &["r1", "r2", "r3"]);
        fixture.check();
        assert!(!fixture.states().contains("in_progress"), "{first}, {second}: {}", fixture.states());
        resolve_interrupted(&fixture, &starts);
    }
    assert_eq!(fixture.states(), "seq=done par=done one=done all=done", "{first}, {second}");
    for ((task, call), count) in &starts {
        let tool = fixture.task(task).metadata.tool_calls.into_iter().find(|other| other.id.as_str() == call);
        let is_once = tool.unwrap().tool_name == "t";
        assert!(!is_once || *count == 1, "{first}, {second}: {task}/{call} was started {count} times");
    }
    assert_eq!(starts.len(), 8, "every call was started");
    was_cut
}

#[test]
fn two_runs_cut_at_any_commit_lose_and_repeat_nothing() {
    let commits = (0..100).take_while(|first| cut(*first, 0)).count();
    assert!(commits > 6, "the first run has {commits} commits");
    for first in 0..commits {
        for second in 1..=commits {
            cut(first, second);
        }
    }
}
