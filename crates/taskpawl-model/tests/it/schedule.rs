//! Decisions of the scheduler as scripts: one event per line, followed by the resulting actions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use taskpawl_model::command::{CallEnd, Report, StartedCall};
use taskpawl_model::run::schedule::{Action, Event, Limits, State, Written, step};
use taskpawl_model::task::{CallBody, CallRecord, CallSpec, Node, Origin, Priority, TaskSpec, Trigger, Work};
use taskpawl_model::value::{CallId, Key, KeyMap, TaskId};

/// A run under test, and the transcript so far.
struct Script {
    state: State,
    text: String,
}

impl Script {
    fn new(jobs: usize) -> Self {
        Self { state: State::new(jobs, KeyMap::default()), text: String::new() }
    }

    fn tell(&mut self, label: &str, event: Event) -> &mut Self {
        writeln!(self.text, "{label}").unwrap();
        for action in step(&mut self.state, event) {
            writeln!(self.text, "  {}", action_text(&action)).unwrap();
        }
        self
    }

    fn ready(&mut self, keys: &[u32]) -> &mut Self {
        self.tell(&format!("ready {keys:?}"), Event::Ready(keys.iter().map(|key| node(*key)).collect()))
    }

    fn committed(&mut self, calls: &[(u32, &str)], ready: &[u32]) -> &mut Self {
        let started = calls.iter().map(|(key, call)| started(*key, call)).collect();
        let ready_nodes = ready.iter().map(|key| node(*key)).collect();
        self.tell(&format!("committed, started {calls:?}, ready {ready:?}"), written(started, ready_nodes))
    }

    fn ended(&mut self, key: u32, call: &str) -> &mut Self {
        let end = CallEnd::Succeeded(serde_json::Value::Null);
        self.tell(&format!("ended {key}/{call}"), ended(key, call, end))
    }

    fn settled(&mut self) -> &mut Self {
        self.tell("settled", Event::Settled)
    }

    fn stop(&mut self) -> &mut Self {
        self.tell("stop", Event::Stop)
    }
}

fn ended(key: u32, call: &str, end: CallEnd) -> Event {
    Event::Ended(Box::new(Report::new(Key(key), 1, CallId::from(call), end)))
}

fn written(started: Vec<StartedCall>, ready: Vec<Node>) -> Event {
    Event::Committed(Box::new(Written { started, ready, ..Written::default() }))
}

fn node(key: u32) -> Node {
    Node::new(Key(key), Trigger::AllDone, Work::Calls)
}

fn started(key: u32, call: &str) -> StartedCall {
    let spec = CallSpec { tool_name: "t".to_owned(), ..CallSpec::default() };
    let record = CallRecord {
        id: CallId::from(call),
        spec: spec.into(),
        origin: Origin::Cli,
        body: CallBody::default().into(),
    };
    StartedCall {
        key: Key(key),
        task: TaskId::from(format!("t{key}")),
        attempt: 1,
        generation: 0,
        round: 0,
        call: record,
        args: taskpawl_model::value::Map::new(),
        deadline: None,
        plan: None,
        spec: TaskSpec::default().into(),
        sandbox: None,
        cache: None,
    }
}

fn action_text(action: &Action) -> String {
    match action {
        Action::Commit(commit) => {
            let reports = commit.reports.iter().map(|report| {
                let end = match &report.end {
                    CallEnd::Succeeded(_) => "ok",
                    CallEnd::Failed { .. } => "failed",
                    CallEnd::Interrupted { repeatable: true, .. } => "not started",
                    CallEnd::Interrupted { repeatable: false, .. } => "interrupted",
                    CallEnd::Asks(_) => "asks",
                };
                format!(
                    "{}/{} {end}{}",
                    report.task.0,
                    report.call,
                    if report.go_on { "" } else { " and no more" }
                )
            });
            let mut parts: Vec<String> = reports.collect();
            parts.extend(commit.releases.iter().map(|(key, _)| format!("give {} back", key.0)));
            parts.extend(commit.resumes.iter().map(|(key, _)| format!("go on with {}", key.0)));
            parts.extend(commit.claims.iter().map(|key| format!("claim {}", key.0)));
            format!("commit: {}", parts.join(", "))
        }
        Action::Start(call) => format!("start {}/{}", call.key.0, call.call.id),
        Action::Find(key, _) => format!("find {}", key.0),
        Action::Kill(key) => format!("kill {}", key.0),
        Action::KillAll => "kill all".to_owned(),
        Action::Finish => "finish".to_owned(),
    }
}

#[test]
fn chain_runs_in_order_and_an_end_shares_a_commit_with_the_next_claim() {
    let mut script = Script::new(4);
    script.ready(&[1]).settled().committed(&[(1, "c1")], &[]).settled();
    script.ended(1, "c1").settled().committed(&[], &[2]).settled();
    script.committed(&[(2, "c1")], &[]).ended(2, "c1").settled().committed(&[], &[]).settled().settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn ready_tasks_are_claimed_by_priority_due_date_rank_and_age() {
    let ranks = KeyMap::from_iter([(Key(5), 9), (Key(6), 2)]);
    let mut state = State::new(100, ranks);
    let with = |key, priority, due| Node { priority, due, ..node(key) };
    let nodes = vec![
        with(1, Priority::Low, 0),
        with(3, Priority::Medium, i64::MAX),
        with(2, Priority::Medium, i64::MAX),
        with(6, Priority::Medium, i64::MAX),
        with(5, Priority::Medium, i64::MAX),
        with(4, Priority::Medium, 10),
        with(8, Priority::High, i64::MAX),
        with(7, Priority::High, 10),
        with(9, Priority::Critical, i64::MAX),
    ];
    step(&mut state, Event::Ready(nodes));
    let actions = step(&mut state, Event::Settled);
    let [Action::Commit(commit)] = actions.as_slice() else { panic!("{actions:?}") };
    let claims: Vec<u32> = commit.claims.iter().map(|key| key.0).collect();
    assert_eq!(claims, [9, 7, 8, 4, 5, 6, 2, 3, 1]);
}

#[test]
fn raising_the_priority_of_a_waiting_task_claims_it_once() {
    let mut script = Script::new(1);
    let urgent = Node { priority: Priority::Critical, ..node(2) };
    script.ready(&[1, 2]).tell("2 is urgent", Event::Ready(vec![urgent]));
    script.settled().committed(&[], &[]).settled().committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text, @"
    ready [1, 2]
    2 is urgent
    settled
      commit: claim 2
    committed, started [], ready []
    settled
      commit: claim 1
    committed, started [], ready []
    settled
      finish
    ");
}

#[test]
fn running_calls_never_exceed_jobs_even_in_parallel_tasks() {
    let mut script = Script::new(2);
    script.ready(&[1, 2, 3]).settled();
    script.committed(&[(1, "c1"), (1, "c2"), (1, "c3"), (2, "c1")], &[]).settled();
    script.ended(1, "c2").settled().committed(&[], &[]);
    script.ended(1, "c1").ended(1, "c3").settled().committed(&[], &[]);
    script.ended(2, "c1").settled().committed(&[(3, "c1")], &[]).ended(3, "c1").settled();
    script.committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn events_during_a_commit_share_the_next_commit() {
    let mut script = Script::new(3);
    script.ready(&[1]).settled().ready(&[2]).settled().ready(&[3]).settled();
    script.committed(&[(1, "c1")], &[]).settled();
    script.ended(1, "c1").settled().committed(&[(2, "c1"), (3, "c1")], &[]).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn soft_stop_starts_nothing_and_releases_unstarted_tasks() {
    let mut script = Script::new(1);
    script.ready(&[1, 2, 3]).settled().committed(&[(1, "c1"), (1, "c2"), (2, "c1")], &[]).stop();
    script.settled().committed(&[], &[]).settled();
    script.ended(1, "c1").settled().committed(&[], &[]).settled().settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn calls_started_by_a_pending_commit_after_a_stop_are_released() {
    let mut script = Script::new(2);
    script.ready(&[1]).settled().stop().settled().committed(&[(1, "c1")], &[]).settled();
    script.committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text, @"
    ready [1]
    settled
      commit: claim 1
    stop
    settled
    committed, started [(1, \"c1\")], ready []
    settled
      commit: give 1 back
    committed, started [], ready []
    settled
      finish
    ");
}

#[test]
fn hard_stop_kills_running_calls() {
    let mut script = Script::new(2);
    script.ready(&[1, 2]).settled().committed(&[(1, "c1"), (2, "c1")], &[]).stop().settled().stop();
    script.tell("interrupted 1/c1", ended(1, "c1", CallEnd::interrupted(false))).settled();
    script.ended(2, "c1").committed(&[], &[]).settled().committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn revoked_task_is_killed_and_its_waiting_calls_never_start() {
    let mut script = Script::new(1);
    script.ready(&[1, 2]).settled().committed(&[(1, "c1"), (1, "c2"), (2, "c1")], &[]);
    script.tell("revoked 1", Event::Revoked(Key(1))).tell("revoked 7", Event::Revoked(Key(7)));
    script.tell("interrupted 1/c1", ended(1, "c1", CallEnd::interrupted(true))).settled();
    script.committed(&[], &[]).ended(2, "c1").settled().committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn restarted_task_waits_for_the_end_of_its_previous_attempt() {
    let mut script = Script::new(3);
    script.ready(&[1]).settled().committed(&[(1, "c1"), (1, "c2")], &[]).settled();
    script.tell("revoked 1", Event::Revoked(Key(1))).ready(&[1, 2]).settled();
    script.committed(&[], &[]).settled().ended(1, "c1").settled().committed(&[], &[]).settled();
    assert!(!script.state.is_out_of_work());
    script.ended(1, "c2").settled().committed(&[(1, "c1")], &[]).ended(1, "c1").settled();
    script.committed(&[], &[]).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn commit_takes_nothing_new_while_a_revoked_task_runs() {
    let mut state = State::new(3, KeyMap::default());
    let mut places = Vec::new();
    let mut tell = |event| {
        for action in step(&mut state, event) {
            if let Action::Commit(commit) = action {
                places.push(commit.takes_new);
            }
        }
    };
    tell(Event::Ready(vec![node(1)]));
    tell(Event::Settled);
    tell(written(vec![started(1, "c1")], vec![node(2)]));
    tell(Event::Revoked(Key(1)));
    tell(Event::Settled);
    tell(written(Vec::new(), Vec::new()));
    tell(ended(1, "c1", CallEnd::interrupted(true)));
    tell(Event::Settled);
    assert_eq!(places, [true, false, true]);
}

#[test]
fn attempt_claimed_by_a_pending_commit_waits_for_the_old_one() {
    let mut script = Script::new(3);
    script.ready(&[1]).settled().committed(&[(1, "c1")], &[]).ready(&[2]).settled();
    script.tell("revoked 1", Event::Revoked(Key(1))).committed(&[(1, "c1"), (2, "c1")], &[]).settled();
    script.tell("interrupted 1/c1", ended(1, "c1", CallEnd::interrupted(true))).settled();
    insta::assert_snapshot!(script.text);
}

#[test]
fn run_waits_for_more_work_and_finishes_once() {
    let mut script = Script::new(1);
    script.tell("more work may come", Event::MoreMayCome(true)).settled().ready(&[1]).settled();
    script.committed(&[(1, "c1")], &[]).ended(1, "c1").settled().committed(&[], &[]).settled();
    script.tell("no more work may come", Event::MoreMayCome(false)).settled().settled();
    insta::assert_snapshot!(script.text, @"
    more work may come
    settled
    ready [1]
    settled
      commit: claim 1
    committed, started [(1, \"c1\")], ready []
      start 1/c1
    ended 1/c1
    settled
      commit: 1/c1 ok
    committed, started [], ready []
    settled
    no more work may come
    settled
      finish
    settled
    ");
}

#[test]
fn first_tool_with_capacity_resumes_a_task_once() {
    let tools = [("one".to_owned(), 1), ("two".to_owned(), 1)].into();
    let limits = Limits { tools, ..Limits::default() };
    let mut state = State::new(4, KeyMap::default()).with_limits(limits);
    let of_tool = |key: u32, tool: &str| {
        let mut call = started(key, "c1");
        call.call.spec.tool_name = tool.to_owned();
        call
    };
    let both = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    let paused = vec![taskpawl_model::command::Paused {
        key: Key(1),
        attempt: 1,
        plan: None,
        until: None,
        tools: both,
    }];
    let full = Written { started: vec![of_tool(8, "one"), of_tool(9, "two")], paused, ..Written::default() };
    step(&mut state, Event::Committed(Box::new(full)));
    let resumed = |state: &mut State, key: u32| {
        step(state, ended(key, "c1", CallEnd::Succeeded(serde_json::Value::Null)));
        let actions = step(state, Event::Settled);
        step(state, Event::Committed(Box::default()));
        let [Action::Commit(commit)] = &actions[..] else { panic!("{actions:?}") };
        commit.resumes.clone()
    };
    assert_eq!(
        resumed(&mut state, 9),
        [(Key(1), 1)],
        "task 1 waited for tool `one` first, and tool `two` is free"
    );
    assert_eq!(resumed(&mut state, 8), []);
}

#[test]
fn revoked_pause_does_not_keep_the_run_open() {
    let mut state = State::new(4, KeyMap::default());
    step(&mut state, Event::Ready(vec![node(1)]));
    step(&mut state, Event::Settled);
    let until = taskpawl_model::value::Timestamp::from_timestamp(4_000_000_000, 0);
    let paused = vec![taskpawl_model::command::Paused {
        key: Key(1),
        attempt: 1,
        plan: None,
        until,
        tools: BTreeSet::new(),
    }];
    step(&mut state, Event::Committed(Box::new(Written { paused, ..Written::default() })));
    assert_eq!(step(&mut state, Event::Settled), []);
    step(&mut state, Event::Revoked(Key(1)));
    assert_eq!(step(&mut state, Event::Settled), [Action::Finish]);
}
