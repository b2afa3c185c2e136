//! The contract that every backend fulfills.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_model::command::{
    Apply, Command, IdempotentRequest, NewSignal, NewTask, OnChanged, Prune, Refusal, Request, Round,
};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{
    ActorKind, BlockedReason, CallSpec, ChecklistItem, ChecklistStatus, KeyRequest, NewCall, Priority,
    RunRecord, Status, TaskSpec, TaskStatus, Work,
};
use taskpawl_model::value::{Key, RunId, TaskId};
use taskpawl_model::view::{EventQuery, Query, View, ViewError, ViewResult, Waits};
use taskpawl_store::{Location, Outcome, Store, StoreError, open, open as open_store};

use crate::support::{accept, after, at, content, create, done, one, request, task, task_with_call};

/// Opens handles on one store, each like another process.
type Open<'a> = &'a dyn Fn() -> Arc<dyn Store>;

fn contract(open: &dyn Fn(&str) -> Arc<dyn Store>) {
    type Case = (&'static str, fn(Open<'_>));
    let cases: [Case; 24] = [
        ("requests", an_idempotent_request_is_not_repeated),
        ("undo_by_kind", an_actor_of_another_kind_has_nothing_to_undo),
        ("forgotten", prune_removes_old_requests),
        ("empty", a_new_store_is_empty),
        ("round trip", everything_is_read_back),
        ("edges", edges_can_be_queried_from_both_ends),
        ("large", a_large_plan_is_written_undone_and_redone),
        ("ids", ids_are_found_by_prefix),
        ("ready", ready_tasks_are_ordered),
        ("find", filters_combine),
        ("leases", leases_are_found_by_holder),
        ("running", tasks_with_running_calls_are_found),
        ("tools", tools_are_listed_with_their_ready_tasks),
        ("runs", open_runs_are_distinguished_from_ended_ones),
        ("waits", durable_waits_and_signals_are_found),
        ("keys", the_prefix_of_idempotency_keys_is_stored),
        ("counts", counts_follow_the_statuses),
        ("events", events_are_numbered_and_found_by_task),
        ("checklists", events_are_found_by_their_kind),
        ("delete", ids_of_deleted_tasks_stay_reserved),
        ("batch", a_refusal_does_not_fail_its_batch),
        ("look", write_and_view_reads_before_any_other_change),
        ("preview", a_preview_writes_nothing),
        ("queue", queued_requests_are_answered_in_order),
    ];
    for (name, case) in cases {
        case(&|| open(name));
    }
}

#[test]
fn memory_keeps_the_contract() {
    contract(&|_| open(&Location::Memory));
}

#[test]
fn sqlite_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    contract(&|name| open(&Location::Sqlite(directory.path().join(name).join("tasks.db"))));
}

#[test]
fn json_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    contract(&|name| open(&Location::Json(directory.path().join(name).join("plan.json"))));
}

fn events_are_found_by_their_kind(open: Open<'_>) {
    let store = open();
    let list = |scope: &str, cleared| {
        let item = ChecklistItem { id: 1.into(), title: "a".to_owned(), status: ChecklistStatus::Completed };
        request(Command::Checklist {
            scope: scope.to_owned(),
            items: vec![item],
            cleared,
            liveness_lock: None,
            kept: false,
        })
    };
    accept(&store, list("s", false));
    accept(&store, create(task("checklist")));
    accept(&store, list("t", true));
    assert!(one(&store, list(" ", false)).is_err());
    let find = |kind: &str, latest| {
        let kind = Some(kind.to_owned());
        let query = EventQuery { kind, latest, limit: usize::from(latest), ..EventQuery::default() };
        let events = store.view(|view| view.find_events(&query)).unwrap();
        events.iter().map(|event| (event.revision, event.kind.name().to_owned())).collect::<Vec<_>>()
    };
    let named = |revision, kind: &str| (revision, kind.to_owned());
    assert_eq!(find("checklist", false), [named(1, "checklist"), named(3, "checklist")]);
    assert_eq!(find("checklist", true), [named(3, "checklist")]);
    assert_eq!(find("created", false), [named(2, "created")]);
    assert_eq!((find("check", false), find("\"", false)), (vec![], vec![]));
    // The last event of each scope, for any characters in the scope.
    for scope in ["s", "a\",\"items\":[\"", "a", "s", "t"] {
        accept(&store, list(scope, false));
    }
    let newest = |after| {
        let events = store.view(|view| view.newest_checklists(after)).unwrap();
        events.iter().map(|event| event.revision).collect::<Vec<_>>()
    };
    assert_eq!([newest(0), newest(6), newest(8)], [vec![5, 6, 7, 8], vec![7, 8], vec![]]);
}

fn key(view: &dyn View, id: &str) -> ViewResult<Key> {
    Ok(view.key(id)?.unwrap_or_else(|| panic!("there is a task `{id}`")))
}

fn find(store: &Arc<dyn Store>, query: &Query) -> Vec<String> {
    let ids = store.view(|view| {
        let keys = view.find(query)?;
        keys.into_iter().map(|key| Ok(view.id(key)?.unwrap().to_string())).collect::<ViewResult<Vec<_>>>()
    });
    ids.unwrap()
}

fn leases_are_found_by_holder(open: Open<'_>) {
    let store = open();
    let ids = ["a", "b", "c"];
    for id in ids {
        accept(&store, create(task(id)));
    }
    let mut as_bob = claim("b");
    as_bob.context.actor = "bob".into();
    for request in [claim("a"), as_bob, claim("c"), done("c")] {
        accept(&store, request);
    }
    let leases = |actor| {
        let store = open_again(&store, open);
        let keys = store.view(|view| view.leases(actor)).unwrap();
        keys.iter().map(|key| ids[key.0 as usize]).collect::<String>()
    };
    assert_eq!([leases(None), leases(Some("bob")), leases(Some("eve"))], ["ab", "b", ""]);
    accept(&store, request(Command::Delete { ids: vec!["c".to_owned()] }));
    accept(&store, request(Command::Release { ids: vec!["a".to_owned()], note: None }));
    assert_eq!(leases(None), "b");
}

fn tasks_with_running_calls_are_found(open: Open<'_>) {
    let store = open();
    for id in ["a", "b", "c"] {
        accept(&store, create(task_with_call(id)));
    }
    let as_run = |round: Round| {
        let mut request = request(Command::Round(Box::new(round)));
        request.context.run = Some(RunId::from("r"));
        accept(&store, request)
    };
    let running = || open_again(&store, open).view(|view| view.running()).unwrap();
    let tools = Arc::new(["log".to_owned()].into());
    as_run(Round { claims: vec![Key(0), Key(2)], tools, ..Round::default() });
    assert_eq!(running(), [Key(0), Key(2)]);
    as_run(Round { releases: vec![(Key(2), 1)], ..Round::default() });
    assert_eq!(running(), [Key(0)]);
    accept(&store, request(Command::Cancel { ids: vec!["a".to_owned()], reason: None }));
    assert_eq!(running(), []);
}

fn tools_are_listed_with_their_ready_tasks(open: Open<'_>) {
    let store = open();
    let calling = |id: &str, tools: &[&str]| {
        let spec = |tool: &&str| CallSpec { tool_name: (*tool).to_owned(), ..CallSpec::default() };
        let calls = tools.iter().map(|tool| NewCall { id: None, spec: spec(tool).into() }).collect();
        NewTask { calls, ..task(id) }
    };
    for (id, tools) in [("a", &["log"][..]), ("b", &["x", "log", "x"]), ("c", &["x"]), ("d", &["y"])] {
        accept(&store, create(calling(id, tools)));
    }
    accept(&store, create(task("hand")));
    let look = |tool: &str, limit: usize| {
        let store = open_again(&store, open);
        let keys = store.view(|view| view.ready_calling(tool, limit)).unwrap();
        keys.iter().map(|key| ["a", "b", "c", "d"][key.0 as usize]).collect::<String>()
    };
    assert_eq!(open_again(&store, open).view(|view| view.tools()).unwrap(), ["log", "x", "y"]);
    assert_eq!([look("log", 0), look("x", 0), look("x", 1), look("none", 0)], ["ab", "bc", "b", ""]);
    // Waiting and ended tasks are not ready.
    accept(&store, request(Command::AddDependency { id: "b".to_owned(), on: "a".to_owned() }));
    accept(&store, request(Command::Cancel { ids: vec!["d".to_owned()], reason: None }));
    assert_eq!([look("log", 0), look("x", 0), look("y", 0)], ["a", "c", ""]);
}

fn open_runs_are_distinguished_from_ended_ones(open: Open<'_>) {
    let store = open();
    let id = |n: i64| RunId::from(format!("run-{n}"));
    for n in 0..3 {
        let run = RunRecord {
            id: id(n),
            scope: Vec::new(),
            params: taskpawl_model::value::Map::new(),
            actor: "ann".to_owned(),
            actor_kind: taskpawl_model::task::ActorKind::Unknown,
            stop: None,
            host: "host".to_owned(),
            started_at: at(n),
            finished_at: None,
            exit: None,
            recovered_at: None,
            output_pruned_at: None,
            counts: std::collections::BTreeMap::new(),
            ending: std::collections::BTreeMap::new(),
        };
        accept(&store, request(Command::start_run(run)));
    }
    let open_runs = |store: &Arc<dyn Store>| {
        let runs = open_again(store, open).view(|view| view.open_runs()).unwrap();
        runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(open_runs(&store), ["run-2", "run-1", "run-0"]);
    accept(&store, request(Command::CloseRun { id: id(2) }));
    let counts = std::collections::BTreeMap::new();
    accept(&store, request(Command::FinishRun { id: id(0), exit: 0, counts }));
    assert_eq!(open_runs(&store), ["run-1"]);
    let events = store.events_since(0, 0).unwrap().len();
    accept(&store, request(Command::CloseRun { id: id(2) }));
    assert_eq!(store.events_since(0, 0).unwrap().len(), events, "a closed run is not closed again");
}

fn durable_waits_and_signals_are_found(open: Open<'_>) {
    let store = open();
    let wait = |id: &str, args: Value| {
        let args = args.as_object().unwrap().clone();
        let spec = CallSpec { tool_name: "wait".to_owned(), args, ..CallSpec::default() };
        create(NewTask { calls: vec![NewCall { id: None, spec: spec.into() }], ..task(id) })
    };
    for (id, args) in [
        ("late", json!({"for": "2h"})),
        ("early", json!({"for": "1h"})),
        ("signal", json!({"signal": "go"})),
        ("other", json!({"signal": "go", "timeout": "3h"})),
    ] {
        accept(&store, wait(id, args));
    }
    accept(
        &store,
        create(NewTask {
            spec: TaskSpec { name: "later".to_owned(), not_before: Some(at(60)), ..TaskSpec::default() },
            ..task("todo")
        }),
    );
    let claims =
        ["late", "early", "signal", "other"].map(|id| store.view(|view| view.key(id)).unwrap().unwrap());
    let tools = Arc::new(BTreeSet::from(["wait".to_owned()]));
    let round = Round { claims: claims.to_vec(), tools, ..Round::default() };
    let mut round = request(Command::Round(Box::new(round)));
    round.context.run = Some(RunId::from("run"));
    assert_eq!(accept(&store, round).next_wake, Some(at(3600)));
    let waiting = |which: Waits<'_>| {
        let store = open_again(&store, open);
        let ids = |view: &dyn View| -> ViewResult<Vec<String>> {
            view.waiting(which)?.into_iter().map(|key| Ok(view.id(key)?.unwrap().to_string())).collect()
        };
        store.view(|view| ids(view)).unwrap()
    };
    let next = || open_again(&store, open).view(|view| view.next_wake()).unwrap();
    assert_eq!(waiting(Waits::All), ["late", "early", "signal", "other", "todo"]);
    assert_eq!(waiting(Waits::Due(at(3600))), ["early", "todo"]);
    assert_eq!(waiting(Waits::Signal("go")), ["signal", "other"]);
    assert_eq!((next(), waiting(Waits::Signal("no"))), (Some(at(60)), Vec::new()));
    let send = |id: &str, to: Option<&str>| {
        let (name, to) = ("go".to_owned(), to.map(str::to_owned));
        let signal = NewSignal { id: id.to_owned(), name, data: json!(id), to };
        accept(&store, request(Command::Signal(Box::new(signal)))).tasks
    };
    assert_eq!(send("one", None), [TaskId::from("signal")]);
    assert!(send("two", Some("late")).is_empty());
    assert_eq!(send("three", None), [TaskId::from("other")]);
    assert!(send("four", None).is_empty());
    let kept = |name: Option<&str>| {
        let kept = open_again(&store, open).view(|view| view.signals(name)).unwrap();
        kept.into_iter().map(|signal| signal.id).collect::<Vec<_>>()
    };
    assert_eq!((kept(Some("go")), kept(Some("no"))), (vec!["two".to_owned(), "four".to_owned()], Vec::new()));
    accept(&store, request(Command::DropSignals { name: "go".to_owned() }));
    assert_eq!(kept(None), Vec::<String>::new());
    let keys = store.view(|view| view.waiting(Waits::All)).unwrap();
    let mut wake = request(Command::Wake { tasks: keys });
    wake.context.now = at(3600);
    accept(&store, wake);
    assert_eq!((waiting(Waits::All), next()), (vec!["late".to_owned()], Some(at(7200))));
}

fn the_prefix_of_idempotency_keys_is_stored(open: Open<'_>) {
    let store = open();
    let space = |store: &Arc<dyn Store>| open_again(store, open).view(|view| view.key_space()).unwrap();
    let settle = |fresh: &str, copy_of: Option<&str>| {
        let request_of = KeyRequest {
            fresh: fresh.to_owned(),
            copy_of: copy_of.map(str::to_owned),
            path: Some("/a".to_owned()),
            ..KeyRequest::default()
        };
        accept(&store, request(Command::SettleKeys(Box::new(request_of))));
    };
    accept(&store, create(task("a")));
    assert_eq!(space(&store), None);
    settle("one", None);
    settle("two", None);
    let kept = space(&store).unwrap();
    assert_eq!((kept.project.as_str(), kept.path.as_deref()), ("one", Some("/a")), "the prefix is set once");
    settle("three", Some("one"));
    assert_eq!(space(&store).unwrap().project, "three", "a copy gets another prefix");
}

/// Returns the store as another process sees it. A store in memory is returned itself.
fn open_again(store: &Arc<dyn Store>, open: Open<'_>) -> Arc<dyn Store> {
    let other = open();
    let is_shared = other.view(|view| view.revision()).unwrap() > 0;
    if is_shared { other } else { Arc::clone(store) }
}

fn claim(id: &str) -> Request {
    request(Command::Claim {
        id: Some(id.to_owned()),
        lease: Duration::from_secs(60),
        capacities: std::collections::BTreeMap::new(),
        writes: std::collections::BTreeMap::new(),
    })
}

fn a_new_store_is_empty(open: Open<'_>) {
    let store = open();
    store
        .view(|view| {
            assert_eq!(view.revision()?, 0);
            assert_eq!(view.next_key()?, Key(0));
            assert_eq!(view.key("a")?, None);
            assert_eq!(view.task(Key(0))?, None);
            assert!(view.counts()?.values().all(|count| *count == 0));
            assert_eq!(view.events(0, None, 0)?, []);
            Ok(())
        })
        .unwrap();
    assert_eq!(store.wait_change(0, Duration::ZERO).unwrap(), 0);
}

fn an_idempotent_request_is_not_repeated(open: Open<'_>) {
    let once = |name: &str, digest: &str, id: &str| {
        let (request_name, digest) = (name.to_owned(), digest.to_owned());
        let command = Command::Create(Box::new(task(id)));
        request(Command::Idempotent(Box::new(IdempotentRequest { request: request_name, digest, command })))
    };
    let store = open();
    let first = accept(&store, once("r", "1", "a"));
    assert!(!first.repeated);
    // Another handle on the same store, like another process.
    let store = open_again(&store, open);
    let second = accept(&store, once("r", "1", "b"));
    assert_eq!((second.tasks, second.repeated), (first.tasks, true));
    let reused = one(&store, once("r", "2", "c")).unwrap_err();
    assert!(matches!(*reused, Refusal::RequestReused { .. }), "{reused}");
    // The same request name of an actor of another kind is a different request.
    let by = |kind, id| {
        let mut request = once("r", "3", id);
        request.context.kind = kind;
        request
    };
    assert!(!accept(&store, by(ActorKind::Agent, "e")).repeated);
    let store = open_again(&store, open);
    assert!(accept(&store, by(ActorKind::Agent, "f")).repeated);
    one(&store, by(ActorKind::Program, "g")).unwrap_err();
    // A refused request was not executed, so its name can be used again.
    one(&store, once("s", "1", "a")).unwrap_err();
    assert!(!accept(&store, once("s", "1", "d")).repeated);
    assert_eq!(store.view(|view| view.counts()).unwrap()[&Status::Todo], 3);
}

fn an_actor_of_another_kind_has_nothing_to_undo(open: Open<'_>) {
    let by = |kind, command| {
        let mut request = request(command);
        request.context.kind = kind;
        request
    };
    let undo = || Command::Undo { revision: None };
    let store = open();
    accept(&store, by(ActorKind::Person, Command::Create(Box::new(task("a")))));
    let store = open_again(&store, open);
    let refusal = one(&store, by(ActorKind::Agent, undo())).unwrap_err();
    assert!(matches!(*refusal, Refusal::NothingToUndo { .. }), "{refusal}");
    accept(&store, by(ActorKind::Agent, Command::Create(Box::new(task("b")))));
    accept(&store, by(ActorKind::Person, undo()));
    let left = store.view(|view| Ok((view.key("a")?, view.key("b")?))).unwrap();
    assert!(left.0.is_none() && left.1.is_some(), "{left:?}");
}

fn prune_removes_old_requests(open: Open<'_>) {
    let once = |name: &str, second: i64| {
        let command = Command::Create(Box::new(task(name)));
        let once = IdempotentRequest { request: name.to_owned(), digest: String::new(), command };
        let mut request = request(Command::Idempotent(Box::new(once)));
        request.context.now = at(second);
        request
    };
    let store = open();
    for second in [1, 2, 3] {
        accept(&store, once(&format!("r{second}"), second));
    }
    let before =
        |store: &Arc<dyn Store>, second| store.view(|view| view.requests_before(at(second))).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|second| before(&store, second)), [0, 0, 1, 2, 3]);
    accept(&store, request(Command::Prune(Box::new(Prune { before: Some(at(3)), ..Prune::default() }))));
    let store = open_again(&store, open);
    assert_eq!(before(&store, 9), 1);
    assert!(accept(&store, once("r3", 5)).repeated);
    // The request is executed again, and refused because its task exists.
    one(&store, once("r2", 5)).unwrap_err();
    // Without a time, prune removes no requests.
    accept(&store, request(Command::Prune(Box::default())));
    assert_eq!(before(&store, 9), 1);
}

fn everything_is_read_back(open: Open<'_>) {
    let store = open();
    let mut new = task_with_call("build");
    new.spec = TaskSpec {
        description: "ä \u{1F980} \"quoted\"\nline".to_owned(),
        priority: Priority::High,
        due_date: Some(at(5)),
        assignee: Some("ann".to_owned()),
        labels: vec!["x".to_owned(), "y".to_owned()],
        ..new.spec
    };
    new.spec.extra.insert("x-own".to_owned(), serde_json::json!({"deep": [1, 2.5, null]}));
    new.context.insert("k".to_owned(), serde_json::json!("v"));
    new.calls[0].spec.extra.insert("x-ownToo".to_owned(), serde_json::json!(true));
    let (spec, call) = (new.spec.clone(), new.calls[0].spec.clone());
    accept(&store, create(new));
    store
        .view(|view| {
            let key = key(view, "build")?;
            let record = view.task(key)?.unwrap();
            assert_eq!(record.id, TaskId::from("build"));
            assert_eq!(*record.spec, spec);
            assert_eq!(record.created_at, at(0));
            assert_eq!(record.updated_at, at(0));
            assert_eq!(record.body.context["k"], "v");
            let calls = view.calls(key)?;
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].spec, call);
            let node = view.node(key)?.unwrap();
            assert_eq!(
                (node.priority, node.work, node.due),
                (Priority::High, Work::Calls, at(5).timestamp_millis())
            );
            assert!(view.next_key()? > key);
            Ok(())
        })
        .unwrap();
}

fn edges_can_be_queried_from_both_ends(open: Open<'_>) {
    let store = open();
    for new in [task("a"), task("b"), after("c", &["a", "b"])] {
        accept(&store, create(new));
    }
    accept(&store, create(NewTask { parent: Some("c".to_owned()), ..task("below") }));
    let edges = |store: &Arc<dyn Store>| {
        store.view(|view| {
            let (a, b, c) = (key(view, "a")?, key(view, "b")?, key(view, "c")?);
            assert_eq!(view.subtasks(c)?, [key(view, "below")?]);
            assert_eq!(view.dependents(b)?, [c]);
            let mut all = Vec::new();
            view.each_dependency(&mut |task, on| all.push((task, on)))?;
            assert_eq!(all, view.dependencies(c)?.into_iter().map(|on| (c, on)).collect::<Vec<_>>());
            let mut nodes = Vec::new();
            view.each_node(&mut |node| nodes.push(node))?;
            assert_eq!(nodes.len(), 4);
            assert!(nodes.is_sorted_by_key(|node| node.key));
            Ok((view.dependencies(c)? == [a, b], view.dependents(a)? == [c]))
        })
    };
    assert_eq!(edges(&store).unwrap(), (true, true));
    accept(&store, request(Command::RemoveDependency { id: "c".to_owned(), on: "a".to_owned() }));
    assert_eq!(edges(&store).unwrap(), (false, false));
}

/// Enough rows for complete multi-row statements of every kind, with a remainder for each.
fn a_large_plan_is_written_undone_and_redone(open: Open<'_>) {
    const TASKS: usize = 35;
    let (store, memory) = (open(), open_store(&Location::Memory));
    let tasks: Vec<_> = (0..TASKS).map(planned).collect();
    let plan = parse_plan(&json!({"name": "p", "tasks": tasks}).to_string()).unwrap();
    let apply = Apply {
        name: "p".to_owned(),
        prune: false,
        fresh: false,
        on_changed: OnChanged::Refuse,
        retry_failed: false,
        keeps_approvals: false,
        plan,
    };
    let ids = |step| (0..TASKS).rev().step_by(step).map(|number| format!("t{number}")).collect();
    let commands = [
        Command::Apply(Arc::new(apply)),
        Command::RemoveDependency { id: "t34".to_owned(), on: "t33".to_owned() },
        Command::Delete { ids: ids(1) },
        Command::Undo { revision: None },
        Command::Cancel { ids: ids(2), reason: None },
    ];
    for (step, command) in commands.into_iter().enumerate() {
        let (answer, expected) =
            (accept(&store, request(command.clone())), accept(&memory, request(command)));
        assert_eq!(answer, expected, "step {step}");
        assert_eq!(content(&open_again(&store, open)), content(&memory), "step {step}");
    }
    assert_eq!(find(&store, &Query { labels: vec!["odd".to_owned()], ..Query::default() }).len(), TASKS / 2);
}

/// Returns a task of a plan. Neighbouring tasks have different fields.
fn planned(number: usize) -> Value {
    let mut task = json!({"id": format!("t{number}"), "name": format!("number {number}"), "call": {"log": {"n": number}}});
    let needs = (1..4).filter_map(|before| number.checked_sub(before)).map(|before| format!("t{before}"));
    task["needs"] = json!(needs.collect::<Vec<_>>());
    if number % 2 == 1 {
        task["labels"] = json!(["odd", format!("label {number}")]);
        task["context"] = json!({"number": number});
    }
    task
}

fn ids_are_found_by_prefix(open: Open<'_>) {
    let store = open();
    for id in ["ab", "abc", "abd", "ac", "Ab"] {
        accept(&store, create(task(id)));
    }
    let ids = |prefix: &str, limit| store.view(|view| view.ids_with_prefix(prefix, limit)).unwrap();
    assert_eq!(ids("ab", 9), ["ab", "abc", "abd"].map(TaskId::from));
    assert_eq!(ids("ab", 2), ["ab", "abc"].map(TaskId::from));
    assert_eq!(ids("abc", 9), ["abc"].map(TaskId::from));
    assert!(ids("b%", 9).is_empty());
    assert_eq!(
        one(&store, done("a")).unwrap_err().to_string(),
        one(&store, done("a")).unwrap_err().to_string()
    );
}

fn ready_tasks_are_ordered(open: Open<'_>) {
    let store = open();
    let with = |id: &str, priority, due: Option<i64>| {
        let mut new = task(id);
        new.spec.priority = priority;
        new.spec.due_date = due.map(at);
        new
    };
    for new in [
        with("old", Priority::Medium, None),
        with("new", Priority::Medium, None),
        with("due late", Priority::Medium, Some(9)),
        with("due soon", Priority::Medium, Some(3)),
        with("urgent", Priority::Critical, None),
        with("some day", Priority::Low, Some(1)),
    ] {
        let id = new.id.as_str().replace(' ', "-");
        accept(&store, create(NewTask { id: TaskId::from(id), ..new }));
    }
    accept(&store, create(task_with_call("for-a-run")));
    accept(&store, create(after("not-yet", &["old"])));
    let ready = |works: &[Work]| find(&store, &Query { ready: Some(works.to_vec()), ..Query::default() });
    let manual = ["urgent", "due-soon", "due-late", "old", "new", "some-day"];
    assert_eq!(ready(&[Work::Manual]), manual);
    assert_eq!(ready(&[Work::Calls]), ["for-a-run"]);
    assert_eq!(ready(&[]), ["urgent", "due-soon", "due-late", "old", "new", "for-a-run", "some-day"]);
    let answer = accept(&store, done("old"));
    assert_eq!(answer.ready.len(), 1);
    assert_eq!(ready(&[Work::Manual]), ["urgent", "due-soon", "due-late", "new", "not-yet", "some-day"]);
    let page = Query { ready: Some(vec![]), offset: 2, limit: 2, ..Query::default() };
    assert_eq!(find(&store, &page), ["due-late", "new"]);
}

fn filters_combine(open: Open<'_>) {
    let store = open();
    for (id, assignee, labels) in [
        ("t1", Some("ann"), &["x"][..]),
        ("t2", Some("ann"), &["x", "y"]),
        ("t3", Some("bob"), &["y"]),
        ("t4", None, &[]),
    ] {
        let mut new = task(id);
        new.spec.assignee = assignee.map(str::to_owned);
        new.spec.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        new.spec.description = format!("Grün {id}");
        accept(&store, create(new));
    }
    accept(&store, done("t2"));
    accept(&store, create(NewTask { parent: Some("t4".to_owned()), ..task("t5") }));
    let parent = store.view(|view| key(view, "t4")).unwrap();
    let any = Query::default;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let cases: Vec<(Query, &[&str])> = vec![
        (any(), &["t1", "t2", "t3", "t4", "t5"]),
        (Query { status: vec![Status::Todo], ..any() }, &["t1", "t3", "t4", "t5"]),
        (Query { status: vec![Status::Todo, Status::Done], limit: 3, ..any() }, &["t1", "t2", "t3"]),
        (Query { status: vec![Status::Blocked], ..any() }, &[]),
        (Query { assignee: Some("ann".to_owned()), ..any() }, &["t1", "t2"]),
        (Query { assignee: Some("ann".to_owned()), status: vec![Status::Done], ..any() }, &["t2"]),
        (Query { labels: words(&["y"]), ..any() }, &["t2", "t3"]),
        (Query { labels: words(&["x", "y"]), ..any() }, &["t2"]),
        (Query { labels: words(&["x"]), ready: Some(vec![]), ..any() }, &["t1"]),
        (Query { parent: Some(parent), ..any() }, &["t5"]),
        (Query { plan: Some("p".to_owned()), ..any() }, &[]),
        (Query { priority: vec![Priority::Low], ..any() }, &[]),
        (Query { text: Some("GRÜN T".to_owned()), ..any() }, &["t1", "t2", "t3", "t4"]),
        (Query { text: Some("%".to_owned()), ..any() }, &[]),
        (Query { text: Some("name of".to_owned()), offset: 1, limit: 2, ..any() }, &["t2", "t3"]),
        (Query { offset: 4, ..any() }, &["t5"]),
        (Query { offset: 9, limit: 1, ..any() }, &[]),
    ];
    for (query, expected) in cases {
        assert_eq!(find(&store, &query), expected, "{query:?}");
    }
}

fn counts_follow_the_statuses(open: Open<'_>) {
    let store = open();
    for new in [task("a"), task("b"), task("c"), after("d", &["c"])] {
        accept(&store, create(new));
    }
    accept(&store, done("a"));
    accept(&store, request(Command::Block { ids: vec!["b".to_owned()], reason: "why".to_owned() }));
    let fail = Command::Fail { ids: vec!["c".to_owned()], result: None, note: None, attempt: None };
    accept(&store, request(fail));
    let counts = |store: &Arc<dyn Store>| {
        let counts = store.view(|view| view.counts()).unwrap();
        counts.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    assert_eq!(counts(&store), [(Status::Blocked, 2), (Status::Done, 1), (Status::Failed, 1)]);
    let reason = store.view(|view| Ok(view.task(key(view, "d")?)?.unwrap().body.state.clone())).unwrap();
    assert_eq!(reason, TaskStatus::blocked(BlockedReason::Dependency { ids: vec![] }));
    accept(&store, request(Command::Delete { ids: vec!["d".to_owned()] }));
    assert_eq!(counts(&store), [(Status::Blocked, 1), (Status::Done, 1), (Status::Failed, 1)]);
}

fn events_are_numbered_and_found_by_task(open: Open<'_>) {
    let store = open();
    let first = accept(&store, create(task("a"))).revision;
    accept(&store, create(after("b", &["a"])));
    let last = accept(&store, done("a")).revision;
    let events = store.events_since(0, 0).unwrap();
    assert_eq!(events.iter().map(|event| event.revision).collect::<Vec<_>>(), (1..=last).collect::<Vec<_>>());
    assert_eq!(store.events_since(first, 1).unwrap(), [events[usize::try_from(first).unwrap()].clone()]);
    assert!(matches!(events[0].kind, EventKind::Created(_)));
    assert_eq!((events[0].at, events[0].actor.as_str()), (at(0), "ann@host"));
    store
        .view(|view| {
            let (a, b) = (key(view, "a")?, key(view, "b")?);
            let own = view.events(0, Some(a), 0)?;
            assert_eq!(
                own,
                events.iter().filter(|event| event.task == Some("a".into())).cloned().collect::<Vec<_>>()
            );
            assert_eq!(view.events(own[0].revision, Some(a), 1)?, own[1..2]);
            assert!(own.iter().any(|event| event.ready[..] == [b]));
            Ok(())
        })
        .unwrap();
    assert_eq!(store.wait_change(first, Duration::MAX).unwrap(), last);
}

fn ids_of_deleted_tasks_stay_reserved(open: Open<'_>) {
    let store = open();
    accept(&store, create(task("a")));
    accept(&store, create(after("b", &["a"])));
    accept(&store, request(Command::Delete { ids: vec!["b".to_owned()] }));
    let gone = store.view(|view| {
        assert_eq!(view.key("b")?, None);
        assert_eq!(view.dependents(key(view, "a")?)?, []);
        assert_eq!(view.deleted_id("a")?, None);
        view.deleted_id("b")
    });
    assert_eq!(gone.unwrap(), Some(None));
    let refusal = one(&store, create(task("b"))).unwrap_err();
    assert!(matches!(*refusal, Refusal::DuplicateId { deleted: true, .. }));
    accept(&store, create(task("c")));
    assert_eq!(find(&store, &Query::default()), ["a", "c"]);
    let deleted = store.events_since(0, 0).unwrap();
    assert!(deleted.iter().any(|event| event.kind.name() == "deleted" && event.task == Some("b".into())));
}

fn a_refusal_does_not_fail_its_batch(open: Open<'_>) {
    let store = open();
    let batch =
        vec![create(task("a")), create(task("a")), create(after("b", &["a"])), done("a"), done("nobody")];
    let outcomes = store.write(batch).unwrap();
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true, false]);
    let revisions: Vec<_> = outcomes.iter().flatten().map(|answer| answer.revision).collect();
    assert!(revisions.is_sorted() && revisions[0] < revisions[2]);
    assert_eq!(find(&store, &Query { ready: Some(vec![]), ..Query::default() }), ["b"]);
    let before = store.view(|view| view.revision()).unwrap();
    assert!(store.write(vec![done("nobody")]).unwrap()[0].is_err());
    assert!(store.write(vec![]).unwrap().is_empty());
    assert_eq!(store.view(|view| view.revision()).unwrap(), before);
}

fn write_and_view_reads_before_any_other_change(open: Open<'_>) {
    let store = open();
    accept(&store, create(task("a")));
    let look = |view: &dyn View, outcomes: &[Outcome]| {
        let record = view.task(key(view, "a")?)?.unwrap();
        let accepted: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
        Ok((record.version, record.spec.name.clone(), accepted))
    };
    let rename = |name: String| {
        let fields = json!({"name": name}).as_object().unwrap().clone();
        request(Command::Update { id: "a".to_owned(), fields, if_version: None, restart: None })
    };
    let versions: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (store, rename) = (&store, &rename);
                scope.spawn(move || {
                    let step = |round| {
                        let name = format!("{thread} {round}");
                        let batch = vec![rename("before".to_owned()), done("nobody"), rename(name.clone())];
                        let (outcomes, seen) = store.write_and_view(batch, look).unwrap();
                        assert_eq!(
                            (outcomes.len(), &seen.1),
                            (3, &name),
                            "no other request changed it in between"
                        );
                        assert_eq!(seen.2, [true, false, true], "the callback gets its own outcomes");
                        seen.0
                    };
                    (0..20).map(step).collect::<Vec<u64>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let last = store.view(|view| Ok(view.task(key(view, "a")?)?.unwrap().version)).unwrap();
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), 80, "each request leaves a distinct version");
    assert_eq!(versions.iter().max(), Some(&last));
    let (outcomes, seen) = store.write_and_view(Vec::new(), |view, _| view.revision()).unwrap();
    assert_eq!((outcomes.len(), seen), (0, store.view(|view| view.revision()).unwrap()));
    let failed = store.write_and_view(vec![rename("kept".to_owned())], |_, _| -> ViewResult<()> {
        Err(ViewError("it cannot be read".into()))
    });
    assert!(matches!(failed, Err(StoreError::View { .. })), "{failed:?}");
    assert_eq!(
        store.view(|view| Ok(view.task(key(view, "a")?)?.unwrap().spec.name.clone())).unwrap(),
        "kept"
    );
}

fn a_preview_writes_nothing(open: Open<'_>) {
    let store = open();
    accept(&store, create(task("a")));
    let decision = store.preview(&done("a")).unwrap().unwrap();
    assert!(!decision.changes.is_empty());
    assert!(store.preview(&done("b")).unwrap().is_err());
    assert_eq!(find(&store, &Query { status: vec![Status::Todo], ..Query::default() }), ["a"]);
}

fn queued_requests_are_answered_in_order(open: Open<'_>) {
    let store = open();
    let (sender, receiver) = mpsc::channel();
    for n in 0..50 {
        let sender = sender.clone();
        let requests = vec![create(task(&format!("t{n}"))), done(&format!("t{n}"))];
        store.submit(requests, Box::new(move |result| sender.send((n, result.unwrap())).unwrap()));
    }
    accept(&store, create(task("last")));
    drop(sender);
    let answers: Vec<_> = receiver.iter().collect();
    assert_eq!(answers.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    assert!(answers.iter().flat_map(|(_, outcomes)| outcomes).all(Result::is_ok));
    assert_eq!(store.view(|view| view.counts()).unwrap()[&Status::Done], 50);
}
