//! A store in memory with a manual clock, and short notations for plans.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Ending, Error, Manager, Source};
use taskpawl_model::command::{Answer, ApplyReport, CallEnd, Command, NewTask, Refusal, Report, Round};
use taskpawl_model::plan::{parse_plan, parse_task};
use taskpawl_model::rules::Means;
use taskpawl_model::task::PolicyHook;
use taskpawl_model::task::{CallError, Status, Task, TaskSpec, Trigger};
use taskpawl_model::value::{CallId, Key, RunId, TaskId};
use taskpawl_model::value::{Map, Timestamp};
use taskpawl_model::view::Query;
use taskpawl_model::view::read_task;
use taskpawl_store::{Location, open};
use taskpawl_testkit::broken_invariants;

pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A manual clock with sequential ids.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    seconds: AtomicI64,
    ids: AtomicU64,
}

impl Source for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp(1_750_000_000 + self.seconds.load(Ordering::Relaxed), 0).unwrap()
    }

    fn new_id(&self) -> String {
        format!("id-{}", self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

/// A manager with helpers for tests. After every accepted command all derived data is checked.
pub(crate) struct Fixture {
    pub(crate) manager: Manager,
    clock: Arc<Clock>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::at(&Location::Memory)
    }

    /// Returns a desk over the store at a location.
    pub(crate) fn at(location: &Location) -> Self {
        let clock = Arc::new(Clock::default());
        let manager = Manager::new(open(location), "ann").with_source(clock.clone());
        Self { manager, clock }
    }

    /// Returns a desk with these tasks, created one by one so that they belong to no plan.
    pub(crate) fn with(tasks: &[&str]) -> Self {
        let fixture = Self::new();
        for task in tasks {
            fixture.create(task);
        }
        fixture
    }

    pub(crate) fn acting_as(&self, actor: &str) -> Self {
        Self { manager: self.manager.clone().with_actor(actor), clock: Arc::clone(&self.clock) }
    }

    /// Returns the same desk with a policy hook.
    pub(crate) fn judged_by(&self, policy_hook: Arc<dyn PolicyHook>) -> Self {
        let manager = self.manager.clone().with_policy_hook(policy_hook);
        Self { manager, clock: Arc::clone(&self.clock) }
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.clock.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Creates a task: `id [calls=N] [parallel] [needs=a,b] [in=p] [trigger=t] [milestone]`.
    #[track_caller]
    pub(crate) fn create(&self, text: &str) {
        self.try_create(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        self.check();
    }

    pub(crate) fn try_create(&self, text: &str) -> Result<TaskId, Error> {
        self.manager.create(new_task(text))
    }

    #[track_caller]
    pub(crate) fn accept<T>(&self, result: Result<T, Error>) -> T {
        let value = result.unwrap_or_else(|error| panic!("refused: {error}"));
        self.check();
        value
    }

    /// Checks that a command is refused and changes nothing. Returns the error with its hint.
    #[track_caller]
    pub(crate) fn refuse<T: std::fmt::Debug>(
        &self,
        command: impl FnOnce(&Manager) -> Result<T, Error>,
    ) -> String {
        let before = self.dump();
        let error = command(&self.manager).expect_err("the command was not refused");
        assert_eq!(self.dump(), before, "a refused command left a trace");
        error_text(&error)
    }

    #[track_caller]
    pub(crate) fn done(&self, id: &str) {
        self.accept(self.manager.done(&[id.to_owned()], Ending::default()));
    }

    #[track_caller]
    pub(crate) fn fail(&self, id: &str) {
        self.accept(self.manager.fail(&[id.to_owned()], Ending::default()));
    }

    #[track_caller]
    pub(crate) fn task(&self, id: &str) -> Task {
        self.manager.get(id).unwrap()
    }

    /// Returns the status of each task, with the reason of blocked ones.
    pub(crate) fn states(&self) -> String {
        let tasks = self.manager.list(&Query::default()).unwrap().tasks;
        let words = tasks.iter().map(|task| {
            let reason = task.blocked_reason.as_ref().map(|reason| {
                let text = serde_json::to_value(reason).unwrap();
                let ids = text.get("ids").map(|ids| {
                    let ids: Vec<&str> = ids.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                    format!(" {}", ids.join(","))
                });
                format!("{{{}{}}}", reason.kind(), ids.unwrap_or_default())
            });
            format!("{}={}{}", task.id, task.status, reason.unwrap_or_default())
        });
        words.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn ready(&self) -> Vec<String> {
        let ready = self.manager.ready(0, 0, &Means::default()).unwrap();
        ready.page.tasks.iter().map(|task| task.id.to_string()).collect()
    }

    /// Returns the whole content of the store.
    pub(crate) fn dump(&self) -> String {
        let shown = self.manager.store().view(|view| {
            let (mut nodes, mut edges, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
            view.each_node(&mut |node| nodes.push(node))?;
            view.each_dependency(&mut |task, on| edges.push((task, on)))?;
            for node in &nodes {
                tasks.push((read_task(view, node.key)?, view.applied(node.key)?));
            }
            let events = view.events(0, None, 0)?;
            Ok(format!(
                "{nodes:?}\n{edges:?}\n{tasks:?}\n{events:?}\n{:?}\n{:?}",
                view.counts()?,
                view.runs(0)?
            ))
        });
        shown.unwrap()
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        let broken = self.manager.store().view(|view| broken_invariants(view)).unwrap();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    pub(crate) fn key(&self, id: &str) -> Key {
        self.manager.store().view(|view| view.key(id)).unwrap().unwrap()
    }

    /// Claims tasks for the run `r1` and starts their first calls.
    #[track_caller]
    pub(crate) fn start(&self, ids: &[&str]) -> Answer {
        let tasks = ids.iter().map(|id| self.key(id)).collect();
        let tools = Arc::new(["t".to_owned(), "shell".to_owned()].into());
        self.round(Round { claims: tasks, tools, ..Round::default() })
    }

    #[track_caller]
    pub(crate) fn round(&self, round: Round) -> Answer {
        self.as_run(Command::Round(Box::new(round)))
    }

    /// Releases a task of the run whose calls were not started.
    #[track_caller]
    pub(crate) fn give_back(&self, id: &str) {
        let releases = vec![(self.key(id), self.task(id).attempt)];
        self.round(Round { releases, ..Round::default() });
    }

    #[track_caller]
    pub(crate) fn as_run(&self, command: Command) -> Answer {
        self.accept(self.manager.clone().with_run(RunId::from("r1")).command(command))
    }

    pub(crate) fn try_report(
        &self,
        id: &str,
        call: &str,
        end: CallEnd,
        go_on: bool,
    ) -> Result<Answer, Error> {
        let attempt = self.task(id).attempt;
        let (task, call) = (self.key(id), CallId::from(call));
        let report = Report {
            task,
            attempt,
            call,
            end,
            cut: Vec::new(),
            usage: None,
            artifacts: Vec::new(),
            changed_beyond: Vec::new(),
            changes_unknown: None,
            inputs_changed: false,
            worker: None,
            go_on,
        };
        self.manager.clone().with_run(RunId::from("r1")).command(Command::Report(Box::new(report)))
    }

    /// Reports the end of a call: `ok`, `bad`, `lost` (unknown) or `cut` (repeatable).
    #[track_caller]
    pub(crate) fn report(&self, id: &str, call: &str, how: &str) -> Answer {
        self.accept(self.try_report(id, call, end(how), true))
    }

    /// Runs all calls of a task with success.
    #[track_caller]
    pub(crate) fn run(&self, id: &str) {
        let mut answer = self.start(&[id]);
        assert!(!answer.started.is_empty(), "{id}: {}", self.states());
        while let Some(started) = answer.started.pop() {
            answer = self.report(id, started.call.id.as_str(), "ok");
        }
    }

    /// Returns the statuses of the calls of a task, with their numbers of starts.
    pub(crate) fn calls(&self, id: &str) -> String {
        let task = self.task(id);
        let calls = task.metadata.tool_calls.iter();
        calls
            .map(|call| format!("{}={}/{}", call.id, call.status, call.attempts))
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn events(&self, after: u64) -> Vec<String> {
        let events = self.manager.history(None, after, 0).unwrap();
        let name = |task: &Option<TaskId>| task.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
        events.iter().map(|event| format!("{}{}", event.kind.name(), name(&event.task))).collect()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.manager.revision().unwrap()
    }

    pub(crate) fn try_apply(&self, yaml: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        let plan = parse_plan(yaml).unwrap_or_else(|errors| panic!("{errors}"));
        self.manager.apply(plan, "p", options)
    }

    #[track_caller]
    pub(crate) fn apply(&self, yaml: &str) -> ApplyReport {
        self.accept(self.try_apply(yaml, ApplyOptions::default()))
    }

    #[track_caller]
    pub(crate) fn set_state(&self, id: &str, state: &str) {
        let ids = [id.to_owned()];
        match state {
            "done" => self.done(id),
            "failed" => self.fail(id),
            "cancelled" => drop(self.accept(self.manager.cancel(&ids, None))),
            "skipped" => drop(self.accept(self.manager.skip(&ids, None))),
            "blocked" => drop(self.accept(self.manager.block(&ids, "why"))),
            "in_progress" => drop(self.accept(self.manager.claim(id, LEASE))),
            _ => assert_eq!(state, "todo"),
        }
    }
}

pub(crate) fn end(how: &str) -> CallEnd {
    match how {
        "ok" => CallEnd::Succeeded(json!("fine")),
        "bad" => {
            let error = CallError::new("failed", "boom");
            CallEnd::Failed { error, result: None }
        }
        "lost" => CallEnd::interrupted(false),
        "cut" => CallEnd::interrupted(true),
        _ => panic!("{how}"),
    }
}

/// Returns the error text, with its hint on a second line.
pub(crate) fn error_text(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\n  hint: {hint}"),
        None => error.to_string(),
    }
}

pub(crate) fn refusal(error: Error) -> Refusal {
    let Error::Refused(refusal) = error else { panic!("no refusal: {error}") };
    *refusal
}

pub(crate) fn ids(list: &[&str]) -> Vec<String> {
    list.iter().map(|id| (*id).to_owned()).collect()
}

pub(crate) fn fields(value: Value) -> Map {
    let Value::Object(map) = value else { panic!("no object: {value}") };
    map
}

pub(crate) fn new_task(text: &str) -> NewTask {
    let mut words = text.split_whitespace();
    let id = words.next().unwrap();
    let mut task = json!({"name": format!("name of {id}")});
    let (mut dependencies, mut parent, mut trigger) = (Vec::new(), None, None);
    for word in words {
        match word.split_once('=') {
            Some(("calls", count)) => {
                let calls = vec![json!({"toolName": "t"}); count.parse().unwrap()];
                task["metadata"] = json!({"toolCalls": calls});
            }
            Some(("needs", on)) => dependencies = on.split(',').map(str::to_owned).collect(),
            Some(("trigger", word)) => trigger = Trigger::from_word(word),
            Some(("in", above)) => parent = Some(above.to_owned()),
            Some((field, value)) => task[field] = json!(value),
            None if word == "parallel" => task["mode"] = json!(word),
            None => task[word] = json!(true),
        }
    }
    let parsed = parse_task(&task.to_string()).unwrap_or_else(|errors| panic!("{text}: {errors}"));
    NewTask {
        id: TaskId::from(id),
        spec: TaskSpec { trigger, ..parsed.spec.into_inner() },
        context: parsed.context,
        calls: parsed.calls,
        dependencies,
        parent,
        plan: None,
    }
}

pub(crate) fn counted(fixture: &Fixture) -> BTreeMap<Status, u64> {
    let mut counts = fixture.manager.counts().unwrap();
    counts.retain(|_, count| *count > 0);
    counts
}
