//! Calls that read their plan from inside and add to it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{Engine, KeySource, Project, RunOptions, RunSummary};
use taskpawl_manager::{ApplyOptions, Approving, Ending, Error, Manager};
use taskpawl_model::command::NewTask;
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::{CallSpec, NewCall, Origin, TaskSpec};
use taskpawl_store::{Channel, Location, Patience, PlanSocket, StoreError, open};
use taskpawl_tools::{CallContext, Registry, Supervision, Tool, ToolError, ToolSpec};

use crate::support::within;

/// The action of a call, which receives the plan access if the call has any.
type Act = dyn Fn(Option<PlanSocket>) -> Result<(), String> + Send + Sync;

/// A tool that performs the action of the test, on a thread that may block.
struct Agent {
    spec: ToolSpec,
    act: Arc<Act>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for Agent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        let act = Arc::clone(&self.act);
        let door = cx.plan.clone().map(PlanSocket::from);
        let acted = tokio::task::spawn_blocking(move || act(door)).await;
        acted.unwrap().map(|()| Value::Null).map_err(ToolError::failed)
    }
}

/// A store in memory with the plan `p`, and an engine with the tool `agent`.
struct Scene {
    manager: Manager,
    engine: Engine,
    _files: tempfile::TempDir,
}

impl Scene {
    fn new(
        plan: &str,
        act: impl Fn(Option<PlanSocket>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let files = tempfile::tempdir().unwrap();
        let store = open(&Location::Memory);
        let mut tools = Registry::builtin();
        let spec = ToolSpec::new("agent", "Acts.", json!({"type": "object"}));
        tools.register(Arc::new(Agent { spec, act: Arc::new(act) })).unwrap();
        let project = Project {
            keys: KeySource::of_project("project"),
            root: files.path().to_owned(),
            files: files.path().join("files"),
            host: "here".to_owned(),
        };
        let engine = Engine::new(Manager::new(Arc::clone(&store), "ann"), Arc::new(tools), project);
        let scene = Self {
            manager: Manager::new(store, "tester"),
            engine: engine.with_supervision(Supervision::Off),
            _files: files,
        };
        scene.apply(plan, "p");
        scene
    }

    fn apply(&self, plan: &str, name: &str) {
        let plan = parse_plan(plan).unwrap_or_else(|errors| panic!("{errors}"));
        self.manager.apply(plan, name, ApplyOptions::default()).unwrap();
    }

    async fn run(&self) -> RunSummary {
        within(Box::pin(self.engine.run_all_ready(RunOptions { jobs: Some(4), ..RunOptions::default() })))
            .await
            .unwrap()
    }

    fn error_of(&self, id: &str) -> Option<String> {
        self.manager.get(id).unwrap().error
    }
}

/// Returns the manager that a program within the call would use. The false actor and origin have to be ignored.
fn inside(door: Option<PlanSocket>) -> Manager {
    Manager::new(open(&Location::Call(door.unwrap())), "mallory").with_origin(Origin::Cli)
}

fn task(id: &str) -> NewTask {
    let spec = TaskSpec { name: id.to_uppercase(), ..TaskSpec::default() };
    NewTask { id: id.into(), spec, ..NewTask::default() }
}

fn log() -> NewCall {
    let args = json!({"message": "hello"}).as_object().unwrap().clone();
    NewCall { id: None, spec: CallSpec { tool_name: "log".to_owned(), args, ..CallSpec::default() }.into() }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn said(error: Error) -> String {
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{error}{hint}")
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_call_adds_tasks_to_its_running_plan_under_its_own_name() {
    let plan = "tasks:
- {id: agent, call: {agent: {}, planAccess: add}}
- {id: last, needs: [agent], call: {log: {message: bye}}}";
    let scene = Scene::new(plan, |door| {
        let plan = inside(door);
        plan.create(NewTask { calls: vec![log()], ..task("first") }).map_err(said)?;
        // The new task runs while the call that added it is still active.
        wait_until("the new task runs at once", || plan.get("first").unwrap().status.as_str() == "done");
        let more = "tasks: [{id: second, needs: [first], call: {log: {message: x}}, subtasks: [{name: below, call: {log: {message: x}}}]}]";
        let more = parse_plan(more).unwrap();
        let report = plan.apply(more.clone(), "ignored", ApplyOptions::default()).map_err(said)?;
        let created: Vec<_> = report.created.iter().map(ToString::to_string).collect();
        assert_eq!((report.plan.as_str(), created.join(" ").as_str()), ("p", "second agent.c1.0"));
        let again = plan.apply(more, "ignored", ApplyOptions::default()).map_err(said)?;
        assert_eq!((again.created.len() + again.changed.len(), again.unchanged), (0, 2));
        plan.add_dependency("last", "second").map_err(said)?;
        plan.note("last", format!("wait for it, ghp_{}", "a1B2c3D4e5F6".repeat(3))).map_err(said)?;
        Ok(())
    });
    let summary = scene.run().await;
    assert_eq!((summary.exit, scene.error_of("agent")), (0, None));
    let second = scene.manager.get("second").unwrap();
    let origin = second.metadata.tool_calls[0].origin;
    assert_eq!((second.plan.as_deref(), origin, second.status.as_str()), (Some("p"), Origin::Agent, "done"));
    assert_eq!(serde_json::to_value(&second).unwrap()["links"], json!({"discoveredFrom": ["agent"]}));
    let last = scene.manager.get("last").unwrap();
    assert_eq!(last.dependencies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["agent", "second"]);
    assert!(last.started_at >= second.finished_at);
    assert!(last.notes[0].text.starts_with("wait for it") && !last.notes[0].text.contains("a1B2"));
    let made = scene.manager.history(Some("second"), 0, 1).unwrap().remove(0);
    assert_eq!((made.actor.as_str(), made.run), ("ann", Some(summary.run)));
}

/// Calls every method of a manager, on tasks of all kinds.
fn attempts(plan: &Manager) -> Vec<(&'static str, Result<(), Error>)> {
    let ids = |id: &str| vec![id.to_owned()];
    let file = |text: &str| parse_plan(text).unwrap();
    let apply = |text: &str, options| plan.apply(file(text), "q", options).map(drop);
    let below = |id: &str, parent: &str| NewTask { parent: Some(parent.to_owned()), ..task(id) };
    let lease = Duration::from_secs(60);
    vec![
        ("get", plan.get("todo").map(drop)),
        ("create", plan.create(task("own")).map(drop)),
        ("create, with a call", plan.create(NewTask { calls: vec![log()], ..task("ready") }).map(drop)),
        ("create, below its own", plan.create(below("below", "own")).map(drop)),
        ("create, below another", plan.create(below("beneath", "todo")).map(drop)),
        ("create, an id that is taken", plan.create(task("todo")).map(drop)),
        ("apply", apply("tasks: [{id: own2, needs: [todo]}]", ApplyOptions::default())),
        ("apply, over another task", apply("tasks: [{id: todo}]", ApplyOptions::default())),
        (
            "apply, with parameters",
            apply("{params: {x: {type: string, default: a}}, tasks: []}", ApplyOptions::default()),
        ),
        ("apply --prune", apply("tasks: []", ApplyOptions { prune: true, ..ApplyOptions::default() })),
        ("apply --fresh", apply("tasks: []", ApplyOptions { fresh: true, ..ApplyOptions::default() })),
        ("add-tool-call, to its own", plan.add_tool_call("own2", log()).map(drop)),
        ("add-tool-call, to another", plan.add_tool_call("todo", log()).map(drop)),
        ("add-dependency, of its own", plan.add_dependency("own2", "far").map(drop)),
        ("add-dependency, on its own", plan.add_dependency("todo2", "own").map(drop)),
        ("add-dependency, between others", plan.add_dependency("todo2", "far").map(drop)),
        ("add-dependency, of a task that is done", plan.add_dependency("done", "own").map(drop)),
        ("add-dependency, in a circle", plan.add_dependency("todo", "own2").map(drop)),
        ("add-dependency, of another plan", plan.add_dependency("far", "own").map(drop)),
        ("note", plan.note("todo", "x").map(drop)),
        ("note, on another plan", plan.note("far", "x").map(drop)),
        ("update", plan.update("own", json!({"name": "x"}).as_object().unwrap().clone(), None).map(drop)),
        ("delete", plan.delete(&ids("own")).map(drop)),
        ("claim", plan.claim("own", lease).map(drop)),
        ("claim --next", plan.claim_next(lease).map(drop)),
        ("renew", plan.renew("own", lease).map(drop)),
        ("release", plan.release(&ids("own")).map(drop)),
        ("done", plan.done(&ids("todo"), Ending::default()).map(drop)),
        ("fail", plan.fail(&ids("own"), Ending::default()).map(drop)),
        ("skip", plan.skip(&ids("own"), None).map(drop)),
        ("block", plan.block(&ids("own"), "x").map(drop)),
        ("unblock", plan.unblock(&ids("own")).map(drop)),
        ("retry", plan.retry(&ids("done"), false).map(drop)),
        ("reopen", plan.reopen(&ids("done"), false).map(drop)),
        ("cancel", plan.cancel(&ids("own"), None).map(drop)),
        ("approve", plan.approve(&ids("asks"), Approving::default()).map(drop)),
        ("reject", plan.reject(&ids("asks"), None).map(drop)),
        ("remove-dependency", plan.remove_dependency("own2", "todo").map(drop)),
        ("move", plan.move_task("own", None).map(drop)),
        ("undo", plan.undo(None).map(drop)),
    ]
}

/// Returns the results of all attempts by a call with this access, as a table.
async fn table(access: &str) -> String {
    let lines = Arc::new(Mutex::new(String::new()));
    let written = Arc::clone(&lines);
    let plan = "tasks:
- {id: done, milestone: true}
- {id: agent, needs: [done], call: {agent: {}ACCESS}}
- {id: todo, needs: [agent]}
- {id: todo2, needs: [agent]}
- {id: asks, approval: required, call: {log: {message: x}}}";
    let plan = plan.replace("ACCESS", access);
    let scene = Scene::new(&plan, move |door| {
        let mut lines = written.lock().unwrap();
        let Some(door) = door else {
            lines.push_str("no way to the plan\n");
            return Ok(());
        };
        for (what, result) in attempts(&inside(Some(door))) {
            let result = result.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
            writeln!(lines, "{what:<40} {result}").unwrap();
        }
        Ok(())
    });
    scene.apply("tasks: [{id: far}]", "other");
    scene.run().await;
    assert_eq!(scene.error_of("agent"), None);
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[tokio::test]
async fn what_a_call_may_do_with_its_plan_is_looking_and_adding_and_no_more() {
    let read = table(", planAccess: read").await;
    let allowed = read.lines().filter(|line| line.ends_with(" ok")).collect::<Vec<_>>();
    assert_eq!(allowed.len(), 1, "{read}");
    assert_eq!(table("").await, "no way to the plan\n");
    insta::assert_snapshot!(table(", planAccess: add").await);
}

#[tokio::test]
async fn access_to_the_plan_ends_with_the_call() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let plan = "tasks: [{id: a, call: {agent: {}, planAccess: add, retry: {attempts: 2}}}]";
    let scene = Scene::new(plan, move |door| {
        let mut kept = keep.lock().unwrap();
        for plan in kept.iter() {
            // The access of the first attempt, whose connection is still open.
            let plan: &Manager = plan;
            assert!(matches!(plan.get("a").unwrap_err(), Error::Store(StoreError::CallOver)));
        }
        let plan = inside(door);
        plan.create(task(&format!("t{}", kept.len()))).map_err(said)?;
        kept.push(plan);
        if kept.len() == 1 { Err("the first time".to_owned()) } else { Ok(()) }
    });
    let summary = scene.run().await;
    // The added tasks are manual, so the run waits for people.
    assert_eq!((summary.exit, scene.error_of("a")), (3, None));
    for plan in kept.lock().unwrap().iter() {
        assert!(matches!(plan.get("a").unwrap_err(), Error::Store(StoreError::CallOver)));
        let error = plan.create(task("late")).unwrap_err();
        assert_eq!(error.to_string(), "the call that gave access to this plan has ended");
    }
    assert_eq!(scene.manager.list(&taskpawl_model::view::Query::default()).unwrap().tasks.len(), 3);
}

#[tokio::test]
async fn additions_of_one_call_are_limited() {
    let scene = Scene::new("tasks: [{id: a, call: {agent: {}, planAccess: add}}]", |door| {
        let plan = inside(door);
        let many =
            (0..10_001).map(|number| format!("{{\"id\":\"t{number}\"}}")).collect::<Vec<_>>().join(",");
        let many = parse_plan(&format!("{{\"tasks\":[{many}]}}")).unwrap();
        let error = plan.apply(many, "x", ApplyOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("a call may add at most 1048576 bytes at once"), "{error}");
        let few = |first: u32| {
            let few = (first..first + 4000).map(|number| format!("{{\"id\":\"t{number}\",\"name\":\"t\"}}"));
            parse_plan(&format!("{{\"tasks\":[{}]}}", few.collect::<Vec<_>>().join(","))).unwrap()
        };
        for first in [0, 4000] {
            plan.apply(few(first), "x", ApplyOptions::default()).map_err(said)?;
        }
        let error = plan.apply(few(8000), "x", ApplyOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "the call has reached its limit of 10000 tasks");
        let text = "x".repeat(1 << 19);
        let error = (0..40).find_map(|_| plan.note("a", &*text).err()).unwrap();
        assert_eq!(error.to_string(), "the call has reached its limit of 16777216 bytes");
        // Reading is still possible.
        plan.get("t1").map_err(said)?;
        Ok(())
    });
    scene.run().await;
    assert_eq!(scene.error_of("a"), None);
    assert_eq!(scene.manager.get("a").unwrap().status.as_str(), "done");
}

/// Sends random valid and invalid messages over several connections.
fn babble(door: &PlanSocket, seed: u64) {
    let mut random = seed;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    for _ in 0..20 {
        let Some(channel) = door.enter(Patience::default()).unwrap() else { return };
        if next() % 2 == 0 {
            say(&channel, br#"{"hello":{"version":1}}"#);
            channel.receive(1 << 20, Patience::default()).unwrap();
        }
        for _ in 0..next() % 20 {
            let words: [&[u8]; 8] = [
                b"\"look\"",
                b"\"done\"",
                b"{\"view\":{\"key\":\"a\"}}",
                b"{\"view\":\"eachNode\"}",
                b"{\"add\":{\"join\":[{}]}}",
                b"{\"add\":{\"create\":{\"id\":\"b\",\"parent\":\"a\"}}}",
                b"{\"hello\":{\"version\":7}}",
                &[0xff; 9],
            ];
            say(&channel, words[usize::try_from(next()).unwrap() % words.len()]);
        }
    }
}

/// Sends a message and ignores errors: the other side may already have closed the connection.
fn say(channel: &Channel, bytes: &[u8]) {
    let _ = channel.send(bytes, Patience::default());
}

#[tokio::test]
async fn invalid_messages_of_a_call_do_not_disturb_the_run() {
    let plan = "tasks:
- {id: a, call: {agent: {}, planAccess: add}}
- {id: b, forEach: {in: [1, 2, 3, 4, 5, 6, 7, 8]}, call: {log: {message: x}}}";
    let others = Arc::new(Mutex::new(None::<Manager>));
    let seen = Arc::clone(&others);
    let scene = Scene::new(plan, move |door| {
        let door = door.unwrap();
        let floods: Vec<_> = (0..8)
            .map(|seed| {
                let door = door.clone();
                std::thread::spawn(move || babble(&door, seed))
            })
            .collect();
        // A client that starts a read and does not continue blocks only its own connection.
        let looks = door.enter(Patience::default()).unwrap().unwrap();
        say(&looks, br#"{"hello":{"version":1}}"#);
        say(&looks, b"\"look\"");
        let others = seen.lock().unwrap().clone().unwrap();
        wait_until("the others go on", || others.get("b").unwrap().status.as_str() == "done");
        for flood in floods {
            flood.join().unwrap();
        }
        inside(Some(door)).get("a").map_err(said)?;
        Ok(())
    });
    *others.lock().unwrap() = Some(scene.manager.clone());
    let summary = scene.run().await;
    assert_eq!((summary.exit, scene.error_of("a")), (0, None));
}
