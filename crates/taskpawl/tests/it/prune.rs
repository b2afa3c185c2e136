//! Pruning removes the remains of old runs, and nothing else.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::command::{Command, NewTask, Prune};
use taskpawl::model::task::TaskSpec;
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{
    ApplyOptions, PruneOptions, PruneReport, RunFilter, RunOptions, RunSummary, Source, Taskpawl, async_trait,
};
use tokio::sync::Notify;

use crate::support::{block_on, memory};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A clock that is set by hand, years after the creation of all test files.
#[derive(Debug, Default)]
struct Clock {
    seconds: AtomicI64,
    ids: AtomicU64,
}

impl Source for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp(4_000_000_000 + self.seconds.load(Ordering::Relaxed), 0).unwrap()
    }

    fn new_id(&self) -> String {
        format!("id-{}", self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

/// Prints 1000 bytes; waits, fails, or prints more if the arguments say so.
#[derive(Debug)]
struct Print {
    spec: ToolSpec,
    entered: Notify,
    open: Notify,
}

#[async_trait]
impl Tool for Print {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let mut path = cx.output.into_os_string();
        path.push(".stdout");
        let path = PathBuf::from(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x".repeat(1000)).unwrap();
        if args["waits"] == true {
            self.entered.notify_one();
            self.open.notified().await;
        }
        if args["fails"] == true {
            return Err(ToolError::failed("no"));
        }
        Ok(if args["long"] == true { json!("y".repeat(300_000)) } else { Value::Null })
    }
}

struct Scene {
    plans: Taskpawl,
    clock: Arc<Clock>,
    tool: Arc<Print>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(Clock::default());
        let spec = ToolSpec::new("print", "Prints.", json!({"type": "object"}));
        let tool = Arc::new(Print { spec, entered: Notify::new(), open: Notify::new() });
        let plans = memory().source(clock.clone()).tool(tool.clone()).open().unwrap();
        Self { plans, clock, tool }
    }

    fn pass(&self, time: Duration) {
        self.clock.seconds.fetch_add(i64::try_from(time.as_secs()).unwrap(), Ordering::Relaxed);
    }

    /// Runs tasks with these ids, and moves the clock a day ahead.
    fn run(&self, ids: &[&str], args: &str) -> RunSummary {
        for id in ids {
            self.plans
                .blocking()
                .apply_text(&format!("tasks: [{{id: {id}, call: {{print: {args}}}}}]"), id)
                .unwrap();
        }
        self.run_ready()
    }

    fn run_ready(&self) -> RunSummary {
        let summary = block_on(self.plans.run_all_ready(RunOptions::default())).unwrap();
        self.pass(DAY);
        summary
    }

    fn prune(&self, options: &PruneOptions) -> PruneReport {
        let dry = PruneOptions { dry_run: true, ..options.clone() };
        let (before, would) = (self.files(), self.plans.engine().prune(&dry).unwrap());
        assert_eq!(self.files(), before, "a dry run removes nothing");
        let report = self.plans.engine().prune(options).unwrap();
        assert_eq!(would, report, "a dry run reports the same");
        report
    }

    fn prune_older(&self, age: Duration) -> PruneReport {
        self.prune(&PruneOptions { older_than: Some(age), ..PruneOptions::default() })
    }

    fn prune_above(&self, quota: u64) -> PruneReport {
        self.prune(&PruneOptions { quota: Some(quota), ..PruneOptions::default() })
    }

    /// Returns the names of all output files.
    fn files(&self) -> Vec<String> {
        let output = self.plans.engine().project().files.join("output");
        let mut names = Vec::new();
        for directory in [output.clone(), output.join("results")] {
            let entries = fs::read_dir(directory).into_iter().flatten();
            let files = entries.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file());
            names.extend(files.map(|entry| entry.file_name().into_string().unwrap()));
        }
        names.retain(|name| name != "lock");
        names.sort();
        names
    }

    fn runs(&self) -> usize {
        self.plans.manager().runs(&RunFilter::default()).unwrap().len()
    }

    fn events(&self, name: &str) -> usize {
        let events = self.plans.manager().history(None, 0, 0).unwrap();
        events.iter().filter(|event| event.kind.name() == name).count()
    }
}

#[test]
fn old_runs_go_with_their_output_and_the_history_stays() {
    let scene = Scene::new();
    let old = scene.run(&["a", "b"], "{}").run;
    scene.pass(40 * DAY);
    scene.run(&["c"], "{}");
    let report = scene.prune_older(30 * DAY);
    assert_eq!((report.runs, report.outputs.len()), (vec![old.clone()], 0));
    assert_eq!((report.files, report.bytes, report.bytes_left), (2, 2000, 1000));
    assert_eq!((scene.files(), scene.runs()), (vec!["c@c1@1.stdout".to_owned()], 1));
    let manager = scene.plans.manager();
    assert!(manager.output_pruned_at("a").unwrap().is_some());
    assert_eq!(manager.output_pruned_at("c").unwrap(), None);
    assert_eq!(manager.pruned_runs().unwrap()[0].0, old);
    assert_eq!(
        (scene.events("run_started"), scene.events("call_started"), scene.events("pruned")),
        (2, 3, 1)
    );
    assert!(scene.prune_older(30 * DAY).is_empty());
    assert_eq!(scene.events("pruned"), 1, "nothing to remove is nothing to record");
}

#[test]
fn pruned_commands_cannot_be_undone() {
    let scene = Scene::new();
    let manager = scene.plans.manager();
    manager
        .apply(taskpawl::model::plan::parse_plan("tasks: [m]").unwrap(), "p", ApplyOptions::default())
        .unwrap();
    scene.run(&["a"], "{}");
    scene.pass(40 * DAY);
    scene.prune_older(DAY);
    let error = manager.undo(Some(1)).unwrap_err().to_string();
    assert_eq!(error, "revision 2 cannot be undone: the undo data is no longer stored");
}

#[test]
fn pruned_requests_are_forgotten() {
    let scene = Scene::new();
    let ask = |name: &str| {
        let manager = scene.plans.manager().clone().with_request(name, "digest");
        let spec = TaskSpec { name: "a".to_owned(), ..TaskSpec::default() };
        manager.create(NewTask { spec, ..NewTask::default() }).unwrap()
    };
    let old = ask("old");
    scene.pass(40 * DAY);
    let new = ask("new");
    assert_eq!((ask("old"), ask("new")), (old.clone(), new.clone()));
    assert!(scene.prune_older(50 * DAY).is_empty());
    assert_eq!(scene.prune_above(0).requests, 0, "a quota is one of output");
    assert_eq!(scene.prune_older(30 * DAY).requests, 1);
    assert_eq!(ask("new"), new);
    assert_ne!(ask("old"), old, "it is another request now");
    assert!(scene.prune_older(30 * DAY).is_empty());
}

#[test]
fn open_tasks_keep_their_output_until_they_end() {
    let scene = Scene::new();
    scene.run(&["a"], "{fails: true}");
    scene.plans.manager().retry(&["a".to_owned()], false).unwrap();
    scene.pass(40 * DAY);
    let report = scene.prune_older(30 * DAY);
    assert_eq!((report.runs.len(), report.files, scene.files().len()), (1, 0, 1));
    // Its run was removed from the store, but the file is still found by its name.
    scene.plans.manager().cancel(&["a".to_owned()], None).unwrap();
    let report = scene.prune_older(30 * DAY);
    assert_eq!((report.runs.len(), report.files, scene.files().len()), (0, 1, 0));
}

#[test]
fn the_next_prune_removes_the_rest_after_a_crash() {
    let scene = Scene::new();
    let run = scene.run(&["a", "b"], "{}").run;
    scene.pass(40 * DAY);
    // The store has removed the run; its files still exist.
    let prune = Prune { runs: vec![run], files: 2, bytes: 2000, ..Prune::default() };
    scene.plans.manager().command(Command::Prune(Box::new(prune))).unwrap();
    assert_eq!((scene.runs(), scene.files().len()), (0, 2));
    assert_eq!((scene.prune_older(30 * DAY).files, scene.files().len()), (2, 0));
}

#[test]
fn an_active_run_keeps_everything() {
    let scene = Scene::new();
    scene.run(&["old"], "{}");
    scene
        .plans
        .blocking()
        .apply_text(
            "tasks: [{id: done, call: {print: {}}}, {id: a, needs: done, call: {print: {waits: true}}}]",
            "p",
        )
        .unwrap();
    block_on(async {
        let run = scene.plans.run_all_ready(RunOptions::default());
        let meanwhile = async {
            scene.tool.entered.notified().await;
            scene.pass(400 * DAY);
            // A task that ended in an active run still belongs to that run.
            let report = scene.prune(&PruneOptions { older_than: Some(DAY), quota: Some(0), dry_run: false });
            assert_eq!((report.runs.len(), report.files), (1, 1));
            assert_eq!(scene.files(), ["a@c1@1.stdout", "done@c1@1.stdout"]);
            scene.tool.open.notify_one();
        };
        let (summary, ()) = tokio::join!(run, meanwhile);
        assert_eq!(summary.unwrap().exit, 0);
    });
    assert_eq!((scene.runs(), scene.files().len()), (1, 2));
    scene.pass(2 * DAY);
    assert_eq!((scene.prune_older(DAY).files, scene.files().len()), (2, 0));
}

#[test]
fn a_quota_removes_the_output_of_the_oldest_runs() {
    let scene = Scene::new();
    let runs = ["a", "b", "c"].map(|id| scene.run(&[id], "{}").run);
    assert!(scene.prune_above(3000).is_empty());
    let report = scene.prune_above(2500);
    assert_eq!((report.runs.len(), report.outputs, report.bytes_left), (0, vec![runs[0].clone()], 2000));
    assert_eq!(
        (scene.files(), scene.runs()),
        (vec!["b@c1@1.stdout".to_owned(), "c@c1@1.stdout".to_owned()], 3)
    );
    assert!(scene.plans.manager().run(&runs[0]).unwrap().output_pruned_at.is_some());
    assert!(scene.plans.manager().output_pruned_at("a").unwrap().is_some());
    let report = scene.prune_above(0);
    assert_eq!((report.outputs.len(), report.bytes_left, scene.files().len()), (2, 0, 0));
}

#[test]
fn large_results_stay_while_they_are_referenced() {
    let scene = Scene::new();
    scene.run(&["a"], "{long: true}");
    scene.pass(40 * DAY);
    assert_eq!(
        (scene.prune_older(30 * DAY).files, scene.files().len()),
        (1, 1),
        "only its printed output is removed"
    );
    scene.plans.manager().reopen(&["a".to_owned()], false).unwrap();
    // An undo would restore the result, so its file has to stay.
    scene.pass(DAY);
    assert!(scene.prune_older(30 * DAY).is_empty());
    scene.plans.manager().undo(None).unwrap();
    assert_eq!(scene.plans.blocking().get_task("a").unwrap().result.unwrap()["truncated"], true);
    scene.plans.manager().reopen(&["a".to_owned()], false).unwrap();
    scene.plans.manager().cancel(&["a".to_owned()], None).unwrap();
    scene.pass(40 * DAY);
    let report = scene.prune_older(30 * DAY);
    assert_eq!((report.files, report.commands > 0, scene.files().len()), (1, true, 0));
}
