//! Runs inside of another program: several at once, on one thread, and dropped ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec, in_scope};
use taskpawl::{Observer, RunEvent, RunOptions, Taskpawl, async_trait};
use tokio::sync::Notify;

use crate::support::{block_on, memory, with_plan};

/// Signals that it was called, and returns on a signal, or never.
#[derive(Debug)]
struct Gate {
    spec: ToolSpec,
    entered: Arc<Notify>,
    open: Arc<Notify>,
}

impl Gate {
    fn new(entered: &Arc<Notify>, open: &Arc<Notify>) -> Arc<Self> {
        let spec = ToolSpec::new("gate", "Waits until it is opened.", json!({"type": "object"}));
        Arc::new(Self { spec, entered: Arc::clone(entered), open: Arc::clone(open) })
    }
}

#[async_trait]
impl Tool for Gate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        self.entered.notify_one();
        self.open.notified().await;
        Ok(json!({"scope": cx.scope, "actor": cx.actor}))
    }
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn event(&self, event: &RunEvent) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "as an embedder ignores unknown events")]
        let line = match event {
            RunEvent::CallStarted { task, tool, .. } => format!("{task} starts {tool}"),
            RunEvent::CallEnded { task, status, .. } => format!("{task} {status}"),
            RunEvent::TaskEnded { task, status, .. } => format!("{task} is {status}"),
            RunEvent::Progress { task, message, .. } => format!("{task} says {message}"),
            RunEvent::Summary(summary) => format!("exit {}", summary.exit),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn two_engines_run_side_by_side_on_one_thread() {
    let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    // Each call opens the gate of the other, so both end only if the two runs proceed at the same time.
    let left = memory().actor("left").tool(Gate::new(&first, &second)).open().unwrap();
    let right = memory().actor("right").tool(Gate::new(&second, &first)).open().unwrap();
    for plans in [&left, &right] {
        plans.blocking().apply_text("tasks: [{id: a, call: {gate: {}}}]", "plan").unwrap();
    }
    let run = |plans: &Taskpawl, scope: &str| {
        let (plans, scope) = (plans.clone(), Some(scope.to_owned()));
        async move { plans.run_all_ready(RunOptions { scope, ..RunOptions::default() }).await.unwrap() }
    };
    let (one, two) = block_on(async { tokio::join!(run(&left, "l"), run(&right, "r")) });
    assert_eq!((one.exit, two.exit), (0, 0));
    assert_eq!(left.blocking().get_task("a").unwrap().result, Some(json!({"scope": "l", "actor": "left"})));
    assert_eq!(right.blocking().get_task("a").unwrap().result, Some(json!({"scope": "r", "actor": "right"})));
}

#[test]
fn calls_have_the_scope_that_their_run_started_in() {
    let open = Arc::new(Notify::new());
    let plans = memory().tool(Gate::new(&open, &open)).open().unwrap();
    let scope_of = |id: &str, scope: Option<&str>| {
        plans.blocking().apply_text(&format!("tasks: [{{id: {id}, call: {{gate: {{}}}}}}]"), id).unwrap();
        let run = plans.run_all_ready(RunOptions::default());
        match scope {
            Some(scope) => block_on(in_scope(scope, run)).unwrap(),
            None => block_on(run).unwrap(),
        };
        plans.blocking().get_task(id).unwrap().result.unwrap()["scope"].clone()
    };
    assert_eq!([scope_of("a", Some("talk")), scope_of("b", None)], [json!("talk"), Value::Null]);
}

#[test]
fn a_run_that_is_dropped_ends_its_programs_and_the_next_one_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let (entered, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let plans = memory().root(directory.path()).tool(Gate::new(&entered, &never)).open().unwrap();
    let plan = "
        tasks:
          - {id: program, run: 'echo $$ > pid; sleep 600; true', timeout: 1h}
          - {id: safe, call: {sleep: {duration: 600s}}}
          - {id: gate, call: {gate: {}}}";
    plans.blocking().apply_text(plan, "plan").unwrap();
    let pid = block_on(async {
        let run = plans.run_all_ready(RunOptions { jobs: Some(3), ..RunOptions::default() });
        tokio::select! {
            _ = run => panic!("a run without an end ended"),
            pid = program_of(directory.path(), &entered) => pid,
        }
    });
    // Dropping the run killed it; the kernel may need a moment to finish that.
    while !is_dead(&pid) {
        std::thread::yield_now();
    }

    let status = |id: &str| plans.blocking().get_task(id).unwrap().status;
    let held = ["program", "safe", "gate"].map(status);
    assert_eq!(held, [Status::InProgress; 3], "no end was recorded");
    let control = taskpawl::RunControl::default();
    control.stop();
    let summary = block_on(plans.run_all_ready(RunOptions { control, ..RunOptions::default() })).unwrap();
    assert_eq!(summary.exit, 130);
    assert_eq!(status("program"), Status::Blocked, "its progress is unknown");
    assert_eq!(status("gate"), Status::Blocked);
    assert_eq!(status("safe"), Status::Todo, "it may be repeated");
}

/// Waits until the program and the custom tool have started.
async fn program_of(directory: &std::path::Path, entered: &Notify) -> String {
    entered.notified().await;
    loop {
        match std::fs::read_to_string(directory.join("pid")) {
            Ok(pid) if pid.ends_with('\n') => return pid.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Returns whether a process is gone, or is a zombie.
fn is_dead(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['Z', 'X']) || rest.is_empty())
}

#[test]
fn ids_beside_a_plan_are_those_of_its_file() {
    let plans = memory().open().unwrap();
    plans.blocking().apply_text("tasks: [{id: build}]", "a").unwrap();
    let text = "tasks: [{id: build}, {id: more, call: {log: {message: x}}}]";
    assert_eq!(plans.blocking().apply_text(text, "b").unwrap().prefix.as_deref(), Some("b"));
    let only = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect();
    let run = |words: &[&str]| {
        block_on(plans.run_all_ready(RunOptions { only: only(words), ..RunOptions::default() }))
    };
    run(&["more"]).unwrap_err();
    run(&["plan:b", "more"]).unwrap();
    assert_eq!(plans.blocking().get_task("b.more").unwrap().status, Status::Done);
}

#[test]
fn an_observer_sees_a_run_in_order() {
    let plans = with_plan(
        "tasks: [{id: a, call: {log: {message: hello}}}, {id: b, needs: a, call: {fail: {message: no}}}, {id: c, needs: b}]",
    );
    let recorder = Arc::new(Recorder::default());
    let observer = Some(Arc::clone(&recorder) as Arc<dyn Observer>);
    block_on(plans.run_all_ready(RunOptions { observer, ..RunOptions::default() })).unwrap();
    insta::assert_snapshot!(recorder.0.lock().unwrap().join("\n"), @r#"
    a starts log
    a says hello
    a succeeded
    a is done
    b starts fail
    b failed
    b is failed
    c is blocked
    exit 1
    "#);
}
