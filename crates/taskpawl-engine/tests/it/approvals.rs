//! Approvals during a run: the approver, notifications, and requests that expire.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{
    ApprovalVerdict, Approver, Engine, KeySource, Observer, Project, RunEvent, RunOptions, RunSummary,
};
use taskpawl_manager::{ApplyOptions, Approving, Manager, Source};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::{ApprovalRequest, Origin, PlanRecord};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::{Map, Timestamp};
use taskpawl_store::{Location, open};
use taskpawl_tools::{Registry, Supervision};
use tokio::join;

use crate::support::{Lab, within};

/// An approver with prepared verdicts. When they are used up it never answers.
#[derive(Debug, Default)]
struct Oracle {
    verdicts: Mutex<VecDeque<ApprovalVerdict>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

#[async_trait]
impl Approver for Oracle {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        self.asked.lock().unwrap().push(request.clone());
        let verdict = self.verdicts.lock().unwrap().pop_front();
        match verdict {
            Some(verdict) => verdict,
            None => std::future::pending().await,
        }
    }
}

impl Oracle {
    fn saying(verdicts: impl IntoIterator<Item = ApprovalVerdict>) -> Arc<Self> {
        Arc::new(Self { verdicts: Mutex::new(verdicts.into_iter().collect()), ..Self::default() })
    }

    async fn until_asked(&self) {
        within(async {
            while self.asked.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|request| format!("{} {:?}", request.task, request.calls[0].args.get("n"))).collect()
    }
}

fn yes() -> ApprovalVerdict {
    ApprovalVerdict::Approve { answer: None, args: None }
}

fn asking(oracle: &Arc<Oracle>) -> RunOptions {
    RunOptions { approver: Some(oracle.clone()), ..RunOptions::default() }
}

fn approve(manager: &Manager, id: &str) {
    manager.approve(&[id.to_owned()], Approving::default()).unwrap();
}

const TWO: &str = "
tasks:
- {id: a, calls: [{toolName: ok}, {id: d, toolName: ok, args: {n: 1}, approval: required}, {toolName: ok}]}
- {id: b, call: {hold: {}}}
";

#[tokio::test]
async fn an_approver_is_asked_while_everything_else_goes_on() {
    let (lab, oracle) = (Lab::new(TWO), Oracle::saying([yes()]));
    let (summary, ()) = join!(lab.run_with(asking(&oracle)), async {
        let mut starts: Vec<String> = Vec::new();
        for _ in 0..4 {
            starts.push(lab.next_start().await);
        }
        starts.sort();
        assert_eq!(starts, ["a/c1", "a/c2", "a/d", "b/c1"], "b runs while a waits for the approval");
        lab.release(1);
    });
    assert_eq!((lab.states(), summary.exit), ("a=done b=done".into(), 0));
    assert_eq!(lab.starts(), "a/c1:1 a/c2:1 a/d:1 b/c1:1");
    assert_eq!(oracle.asked(), ["a Some(Number(1))"]);
}

#[tokio::test]
async fn without_an_approver_the_run_ends_and_the_next_one_continues() {
    let lab = Lab::new(
        "tasks: [{id: a, calls: [{id: c, toolName: ok, approval: {ask: 'Which one?', options: [it's, b]}}]}]",
    );
    let summary = lab.run().await;
    assert_eq!((lab.states(), summary.exit), ("a=blocked{approval}".into(), 3));
    assert_eq!(summary.waiting[0].reason, "asks: Which one? (it's, b)");
    insta::assert_debug_snapshot!(summary.next_actions.iter().map(ToString::to_string).collect::<Vec<_>>(), @r#"
    [
        "taskpawl show a",
        "taskpawl approve a --answer 'it'\\''s'",
        "taskpawl approve a --answer b",
        "taskpawl reject a",
        "taskpawl run-all-ready",
    ]
    "#);
    let answer = Some(json!("b"));
    lab.manager.approve(&["a".to_owned()], Approving { answer, ..Approving::default() }).unwrap();
    assert_eq!((lab.run().await.exit, lab.states()), (0, "a=done".into()));
}

#[tokio::test]
async fn an_approver_may_skip_the_task_itself() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {ok: {n: 1}}, approval: required}, {id: b, needs: a, call: {ok: {n: 2}}}]",
    );
    let oracle = Oracle::saying([ApprovalVerdict::SkipTask]);
    let summary = lab.run_with(asking(&oracle)).await;
    assert_eq!((lab.states(), summary.exit), ("a=skipped b=done".into(), 0));
}

#[tokio::test]
async fn skipped_requests_wait_and_rejected_tasks_are_cancelled() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {ok: {n: 1}}, approval: required}, {id: b, call: {ok: {n: 2}}, approval: required}]",
    );
    let reject = ApprovalVerdict::Reject { reason: Some("no".to_owned()) };
    let oracle = Oracle::saying([ApprovalVerdict::Skip, reject]);
    let summary = lab.run_with(asking(&oracle)).await;
    assert_eq!((lab.states(), summary.exit), ("a=blocked{approval} b=cancelled".into(), 3));
    assert_eq!(
        oracle.asked(),
        ["a Some(Number(1))", "b Some(Number(2))"],
        "tasks that wait when the run starts are included"
    );
    assert_eq!(lab.task("b").error.as_deref(), Some("no"));
}

#[tokio::test]
async fn an_approver_decides_about_results_and_the_run_goes_on() {
    let plan = "tasks: [{id: a, call: {ok: {n: 1}}, approval: {after: true}}, {id: b, needs: a, call: {ok: {n: 2}}}]";
    let lab = Lab::new(plan);
    let summary = lab.run_with(asking(&Oracle::saying([yes()]))).await;
    assert_eq!((lab.states(), summary.exit), ("a=done b=done".into(), 0));
    let lab = Lab::new(plan);
    let no = ApprovalVerdict::Reject { reason: Some("no".to_owned()) };
    let summary = lab.run_with(asking(&Oracle::saying([no]))).await;
    assert_eq!((lab.states(), summary.exit), ("a=failed b=blocked{dependency}".into(), 1));
    // Nothing can be sent back without an agent, so the question stays.
    let lab = Lab::new(plan);
    let back = ApprovalVerdict::SendBack { text: "again".to_owned() };
    let summary = lab.run_with(asking(&Oracle::saying([back]))).await;
    assert_eq!(summary.exit, 3);
    assert!(lab.states().starts_with("a=blocked{approval}"), "{}", lab.states());
}

#[tokio::test]
async fn an_approver_may_change_the_arguments() {
    let lab = Lab::new("tasks: [{id: a, calls: [{id: c, exec: {argv: ['false']}, approval: required}]}]");
    let args: Map = json!({"argv": ["echo", "ok"]}).as_object().cloned().unwrap();
    let oracle = Oracle::saying([ApprovalVerdict::Approve { answer: None, args: Some(args) }]);
    lab.run_with(asking(&oracle)).await;
    assert_eq!(lab.states(), "a=done");
    assert_eq!(lab.task("a").result.unwrap()["stdout"], "ok\n");
}

#[tokio::test]
async fn a_decision_by_another_process_withdraws_the_request() {
    let (lab, oracle) = (Lab::new(TWO), Oracle::saying([]));
    let summary = join!(lab.run_with(asking(&oracle)), async {
        oracle.until_asked().await;
        approve(&lab.manager, "a");
        lab.until("a", "done").await;
        lab.release(1);
    });
    assert_eq!((summary.0.exit, oracle.asked().len()), (0, 1));
}

#[tokio::test]
async fn an_invalid_answer_leaves_the_request_pending() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {n: 1}}, approval: {ask: 'Which?', options: [x]}}]");
    let (oracle, ear) = (Oracle::saying([yes()]), Arc::new(Ear::default()));
    let options = RunOptions { observer: Some(ear.clone()), ..asking(&oracle) };
    assert_eq!((lab.run_with(options).await.exit, lab.states()), (3, "a=blocked{approval}".into()));
    insta::assert_snapshot!(ear.warnings().join("\n"), @"the decision about `a` is ignored: an answer is required for the question of task `a`");
}

#[tokio::test]
async fn an_approver_that_panics_decides_nothing() {
    #[derive(Debug)]
    struct Broken;

    #[async_trait]
    impl Approver for Broken {
        async fn decide(&self, _: &ApprovalRequest) -> ApprovalVerdict {
            panic!("as told")
        }
    }
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}, approval: required}]");
    let options = RunOptions { approver: Some(Arc::new(Broken)), ..RunOptions::default() };
    assert_eq!((lab.run_with(options).await.exit, lab.states()), (3, "a=blocked{approval}".into()));
}

#[tokio::test]
async fn a_run_with_wait_continues_after_a_decision() {
    let lab =
        Lab::new("tasks: [{id: a, call: {ok: {}}, approval: required}, {id: b, needs: [a], call: {ok: {}}}]");
    let (summary, ()) = join!(lab.run_with(RunOptions { wait: true, ..RunOptions::default() }), async {
        lab.until("a", "blocked").await;
        approve(&lab.manager, "a");
    });
    assert_eq!((summary.exit, lab.states()), (0, "a=done b=done".into()));
}

#[tokio::test]
async fn a_stopped_run_asks_no_more() {
    let (lab, oracle) =
        (Lab::new("tasks: [{id: a, call: {ok: {}}, approval: required}]"), Oracle::saying([]));
    let options = asking(&oracle);
    let control = options.control.clone();
    let (summary, ()) = join!(lab.run_with(options), async {
        lab.until("a", "blocked").await;
        control.stop();
    });
    assert_eq!((summary.exit, lab.states()), (130, "a=blocked{approval}".into()));
}

/// A clock that is set by the test.
#[derive(Debug, Default)]
struct Clock(AtomicI64);

impl Source for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp(1_750_000_000 + self.0.load(Ordering::Relaxed), 0).unwrap()
    }

    fn new_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[tokio::test]
async fn requests_expire_during_a_run_with_wait() {
    let plan = "tasks: [{id: a, calls: [{id: c, exec: {argv: ['true']}, approval: {ask: Go?, expires: 1h, onExpiry: approve}}]}]";
    let (engine, _files) = engine_with(plan, Arc::new(Clock::default()));
    let clock = engine.manager().source().clone();
    let (summary, ()) =
        join!(within(engine.run_all_ready(RunOptions { wait: true, ..RunOptions::default() })), async {
            while engine.manager().waiting_for_decision().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            // Each requested id advances the clock by one second.
            (0..3600).for_each(|_| drop(clock.new_id()));
        });
    assert_eq!(summary.unwrap().exit, 0);
    let granted = engine.manager().get("a").unwrap().metadata.tool_calls[0].granted.clone().unwrap();
    assert_eq!(granted.by, "onExpiry");
}

#[tokio::test]
async fn the_next_run_handles_expired_requests() {
    let plan = "tasks: [{id: a, call: {exec: {argv: ['true']}}, approval: {ask: Go?, expires: 1h}}]";
    let (engine, _files) = engine_with(plan, Arc::new(Clock::default()));
    let run = || async { within(engine.run_all_ready(RunOptions::default())).await.unwrap() };
    assert_eq!(run().await.exit, 3);
    (0..3600).for_each(|_| drop(engine.manager().source().new_id()));
    run().await;
    assert_eq!(engine.manager().get("a").unwrap().status.as_str(), "cancelled");
}

fn engine_with(plan: &str, source: Arc<dyn Source>) -> (Engine, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    let manager = Manager::new(open(&Location::Memory), "ann").with_source(source);
    let plan = taskpawl_model::plan::parse_plan(plan).unwrap();
    manager.apply(plan, "p", taskpawl_manager::ApplyOptions::default()).unwrap();
    let path = files.path().to_owned();
    let project =
        Project { keys: KeySource::of_project("x"), root: path.clone(), files: path, host: "h".to_owned() };
    let engine = Engine::new(manager, Arc::new(Registry::builtin()), project);
    (engine.with_supervision(Supervision::Off), files)
}

/// An observer that records the warnings of a run.
#[derive(Debug, Default)]
struct Ear(Mutex<Vec<String>>);

impl Observer for Ear {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::Warning { message } = event {
            self.0.lock().unwrap().push(message.clone());
        }
    }
}

impl Ear {
    fn warnings(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn said(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn notified(lab: &Lab, script: &str) -> (RunSummary, Vec<String>) {
    let ear = Arc::new(Ear::default());
    let notify = ["sh", "-c", script].map(str::to_owned).to_vec();
    let options = RunOptions { notify, observer: Some(ear.clone()), ..RunOptions::default() };
    let summary = lab.run_with(options).await;
    (summary, ear.warnings())
}

#[tokio::test]
async fn the_notification_program_receives_approvals_failures_and_the_end() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {ok: {}}, approval: required}, {id: b, call: {bad: {}}}, {id: c, call: {bad: {}}}]",
    );
    let path = lab.files.path().join("said");
    let script = format!(
        "test -n \"$TASKPAWL_RUN\" && printf '{{\"kind\": \"%s\"}}\\n' $TASKPAWL_EVENT >> {0}; cat >> {0}",
        path.display()
    );
    let (summary, warnings) = notified(&lab, &script).await;
    assert!(warnings.is_empty(), "{warnings:?}");
    let said = said(&path);
    let kinds: Vec<_> = said.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds.last(), Some(&"finished"));
    let told = |event: &str| -> Vec<Value> {
        let lines = said.iter().filter(|line| line["event"] == event);
        let tasks = lines.flat_map(|line| line["tasks"].as_array().cloned().unwrap_or_default());
        // The two failures may be reported in either order.
        let mut ids: Vec<Value> = tasks.map(|task| task["task"].clone()).collect();
        ids.sort_by_key(Value::to_string);
        ids
    };
    assert_eq!((told("waiting"), told("failed")), (vec![json!("a")], vec![json!("b"), json!("c")]));
    let end = said.last().unwrap();
    assert_eq!(
        (&end["event"], &end["exit"], &end["run"]),
        (&json!("finished"), &json!(1), &json!(summary.run))
    );
    let left = std::fs::read_dir(lab.files.path().join("files/notify")).unwrap().count();
    assert_eq!(left, 0, "the output of notification programs is not kept");
}

#[tokio::test]
async fn the_program_of_a_plan_receives_the_end() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("said");
    let plan = format!(
        "notify: [sh, -c, 'echo $TASKPAWL_EVENT >> {}; cat > /dev/null']\ntasks: [{{id: a, call: {{ok: {{}}}}}}]",
        path.display()
    );
    let lab = Lab::new(&plan);
    assert_eq!(lab.run().await.exit, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "finished\n");
}

/// A policy that asks about everything that a model wrote.
#[derive(Debug)]
struct NoModels;

impl PolicyHook for NoModels {
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        assert_eq!((call.tool, call.args["argv"][0].as_str()), ("exec", Some("sh")));
        let is_model = matches!(call.origin, Origin::Mcp | Origin::Agent);
        if is_model { PolicyDecision::Ask { why: "rule 7 asks".to_owned() } } else { PolicyDecision::Allow }
    }

    fn version(&self) -> &'static str {
        "1"
    }
}

#[tokio::test]
async fn a_notification_program_named_by_a_model_runs_only_after_a_person_applies_it() {
    let lab = Lab::new("tasks: [{id: a}]");
    let path = lab.files.path().join("said");
    let plan = format!(
        "notify: [sh, -c, 'cat > {}']\ntasks: [{{id: n, call: {{ok: {{}}}}, priority: high}}]",
        path.display()
    );
    let apply = |origin, text: &str| {
        let manager = lab.manager.clone().with_origin(origin);
        manager.apply(parse_plan(text).unwrap(), "notifying", ApplyOptions::default()).unwrap()
    };
    assert_eq!(apply(Origin::Mcp, &plan).header, ["notify"]);
    let warnings = async || {
        let ear = Arc::new(Ear::default());
        lab.manager.reopen(&["n".to_owned()], false).ok();
        lab.run_with(RunOptions { observer: Some(ear.clone()), ..RunOptions::default() }).await;
        ear.warnings().join("\n")
    };
    let said = warnings().await;
    assert!(
        said.contains("`notify` of plan `notifying` is not run") && said.contains("written by `mcp`"),
        "{said}"
    );
    assert!(said.contains("a model wrote it, and the sandbox is off"), "{said}");
    assert!(!path.exists());
    // The origin cannot be set in a plan file.
    let forged = parse_plan(&format!("notifyOrigin: cli\n{plan}")).unwrap_err().to_string();
    assert!(forged.contains("notifyOrigin"), "{forged}");
    apply(Origin::Plan, &plan);
    assert_eq!(warnings().await, "");
    assert!(path.exists());
    // A model that applies the plan unchanged does not become the author.
    assert!(apply(Origin::Mcp, &plan).header.is_empty());
    assert_eq!(warnings().await, "");
}

#[test]
fn the_program_of_a_plan_is_authorized_by_its_author() {
    let record = |origin: Value| {
        let header = json!({"notify": ["sh", "x"], "notifyOrigin": origin}).as_object().cloned().unwrap();
        PlanRecord { header, ..PlanRecord::default() }.notify().unwrap()
    };
    assert_eq!(record(json!("plan")).authorize(Some(&NoModels)), PolicyDecision::Allow);
    for origin in [json!("mcp"), json!("agent"), json!("nobody"), Value::Null] {
        assert_eq!(
            record(origin).authorize(Some(&NoModels)),
            PolicyDecision::Ask { why: "rule 7 asks".to_owned() }
        );
    }
}

#[tokio::test]
async fn a_plan_limits_its_own_failures() {
    let lab = Lab::new(
        "maxFailures: 1\ntasks: [{id: a, call: {bad: {}}}, {id: b, call: {ok: {}}}, {id: c, call: {ok: {}}}]",
    );
    let summary = lab.run_with(RunOptions { jobs: Some(1), ..RunOptions::default() }).await;
    assert_eq!((lab.states(), summary.exit), ("a=failed b=todo c=todo".into(), 1));
    assert_eq!(
        (&*summary.ended_early[0].limit, summary.ended_early[0].plan.is_some()),
        ("maxFailures", true)
    );
}

#[tokio::test]
async fn a_failing_notification_program_never_fails_the_run() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}]");
    let (summary, warnings) = notified(&lab, "echo first >&2; echo the line is busy >&2; exit 3").await;
    assert_eq!(summary.exit, 0);
    insta::assert_snapshot!(warnings.join("\n"), @"`notify` could not tell what happened: sh: exit code 3: the line is busy");
    let options = RunOptions { notify: vec!["/nowhere/at-all".to_owned()], ..RunOptions::default() };
    assert_eq!(lab.run_with(options).await.exit, 0);
}
