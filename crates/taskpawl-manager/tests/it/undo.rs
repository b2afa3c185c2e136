//! `undo`.

use std::fmt::Debug;

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Approving, Ending, Error, Manager};
use taskpawl_model::command::Undone;
use taskpawl_model::task::BlockedReason;
use taskpawl_model::value::RunId;
use taskpawl_model::view::Query;
use taskpawl_store::{Location, open};
use taskpawl_testkit::{Random, broken_invariants};

use crate::support::{Fixture, LEASE, fields, ids, new_task};

fn undo(fixture: &Fixture) -> Undone {
    fixture.accept(fixture.manager.undo(None))
}

#[test]
fn undo_reverts_a_command_with_its_consequences() {
    let fixture = Fixture::with(&["a", "b needs=a", "m needs=a milestone", "c needs=m"]);
    let before = plain(&fixture.manager);
    fixture.fail("a");
    assert_eq!(
        fixture.states(),
        "a=failed b=blocked{dependency a} m=blocked{dependency a} c=blocked{dependency m}"
    );
    let undone = undo(&fixture);
    assert_eq!((undone.restored.len(), undone.removed.len()), (4, 0));
    assert_eq!(plain(&fixture.manager), before);
    assert_eq!((fixture.task("a").attempt, fixture.ready()), (1, ids(&["a"])), "attempts are never reset");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=done b=todo m=done c=todo");
    undo(&fixture);
    assert_eq!(plain(&fixture.manager), before);
}

#[test]
fn the_history_marks_undone_events() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    let first = fixture.revision();
    fixture.fail("a");
    fixture.accept(fixture.manager.update("b", fields(json!({"name": "new", "priority": "high"})), None));
    undo(&fixture);
    undo(&fixture);
    assert_eq!(
        fixture.events(first),
        [
            "status a",
            "status a",
            "status b",
            "updated b",
            "undone",
            "updated b",
            "undone",
            "status a",
            "status b"
        ]
    );
    let events = fixture.manager.history(Some("b"), first, 0).unwrap();
    let shown: Vec<String> = events.iter().map(|event| serde_json::to_string(&event.kind).unwrap()).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    {"type":"status","from":"todo","to":"blocked","cause":"gate","reason":{"type":"dependency","ids":[]},"attempt":0}
    {"type":"updated","fields":{"name":{"from":"name of b","to":"new"},"priority":{"from":null,"to":"high"}}}
    {"type":"updated","fields":{"name":{"from":"new","to":"name of b"},"priority":{"from":"high","to":"medium"}}}
    {"type":"status","from":"blocked","to":"todo","cause":"undo","attempt":0}
    "#);
}

#[test]
fn commands_are_undone_in_reverse_order_and_can_be_redone() {
    let fixture = Fixture::new();
    let (mut seen, mut undos) = (vec![plain(&fixture.manager)], Vec::new());
    for step in ["create", "update", "call", "note", "block"] {
        match step {
            "create" => fixture.create("a"),
            "update" => {
                drop(fixture.accept(fixture.manager.update("a", fields(json!({"labels": ["x"]})), None)));
            }
            "call" => {
                let call = new_task("x calls=1").calls.remove(0);
                fixture.accept(fixture.manager.add_tool_call("a", call));
            }
            "note" => drop(fixture.accept(fixture.manager.note("a", "hm"))),
            _ => drop(fixture.accept(fixture.manager.block(&ids(&["a"]), "why"))),
        }
        seen.push(plain(&fixture.manager));
    }
    for _ in 0..2 {
        for before in seen.iter().rev().skip(1) {
            undo(&fixture);
            undos.push(fixture.revision());
            assert_eq!(plain(&fixture.manager), *before);
        }
        assert!(fixture.refuse(|m| m.undo(None)).starts_with("`ann` has no command to undo"));
        for after in &seen[1..] {
            fixture.accept(fixture.manager.undo(undos.pop()));
            assert_eq!(plain(&fixture.manager), *after);
        }
    }
}

#[test]
fn conflicting_later_changes_are_refused_with_a_list() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    fixture.done("a");
    let done = fixture.revision();
    fixture.accept(fixture.acting_as("bob").manager.note("a", "looks good"));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(done))), @"
    revision 4 cannot be undone: `a` was changed: noted (bob, revision 5)
      hint: `taskpawl history a` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
    // The event of bob is undone, so it no longer conflicts.
    fixture.accept(fixture.acting_as("bob").manager.undo(None));
    fixture.accept(fixture.manager.undo(Some(done)));
    assert_eq!(fixture.states(), "a=todo b=todo");
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(done))), @"
    revision 4 was undone in revision 9
      hint: `taskpawl undo 9` redoes it
    ");
    fixture.done("a");
    let done = fixture.revision();
    fixture.accept(fixture.manager.claim("b", LEASE));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(done))), @"
    revision 11 cannot be undone: `b` became `in_progress` (ann, revision 12)
      hint: `taskpawl history b` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
}

#[test]
fn a_reference_in_an_expression_prevents_an_undo() {
    let fixture = Fixture::with(&["a", "b"]);
    fixture.accept(fixture.manager.add_dependency("b", "a"));
    let linked = fixture.revision();
    fixture.create("c needs=b");
    let when = |text: &str| fields(json!({ "when": text }));
    fixture.accept(fixture.manager.update("c", when("tasks.a.status == 'done'"), None));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(linked))), @"
    task `c`: when: `c` uses `a`, which is not one of its dependencies
      hint: `c` needs its result; change that first
    ");
    fixture.accept(fixture.manager.update("c", when("true"), None));
    let rewritten = fixture.revision();
    fixture.accept(fixture.manager.undo(Some(linked)));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(rewritten))), @"
    task `c`: when: `c` uses `a`, which is not one of its dependencies
      hint: make it depend on `a` first: `taskpawl add-dependency c a`
    ");
    fixture.accept(fixture.manager.add_dependency("b", "a"));
    fixture.accept(fixture.manager.undo(Some(rewritten)));
    assert_eq!(fixture.task("c").options["when"], "tasks.a.status == 'done'");
}

#[test]
fn executed_calls_are_not_undone() {
    let fixture = Fixture::with(&["a calls=1", "sub calls=1"]);
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(99))), @"
    revision 99 cannot be undone: it does not exist yet
      hint: `taskpawl history` lists the commands and their revisions
    ");
    fixture.run("a");
    let ran = fixture.revision();
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(ran))), @"
    revision 6 cannot be undone: a run made this change
      hint: `taskpawl history` lists the commands and their revisions
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(1))), @"
    revision 1 cannot be undone: `a` became `done` in a run (ann, revision 6)
      hint: `taskpawl history a` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
    // The calls of the cancelled task were ended and cannot be resumed.
    fixture.start(&["sub"]);
    fixture.accept(fixture.manager.cancel(&ids(&["sub"]), None));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(None)), @"
    revision 9 cannot be undone: `sub` was running, and its run has released it
      hint: `taskpawl history sub` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
    fixture.accept(fixture.manager.retry(&ids(&["sub"]), false));
    undo(&fixture);
    assert_eq!(fixture.task("sub").status.as_str(), "cancelled");
}

#[test]
fn executed_subtasks_prevent_the_undo_of_their_parent() {
    let fixture = Fixture::with(&["a", "top needs=a", "sub in=top calls=1"]);
    fixture.done("a");
    let done = fixture.revision();
    fixture.run("sub");
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(done))), @"
    revision 5 cannot be undone: `top` became `done` in a run (ann, revision 10)
      hint: `taskpawl history top` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
}

#[test]
fn undoing_a_reopen_restores_the_results() {
    let fixture = Fixture::with(&["a calls=2", "b needs=a"]);
    fixture.run("a");
    let before = plain(&fixture.manager);
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
    undo(&fixture);
    assert_eq!(plain(&fixture.manager), before);
    // The idempotency key of a call contains the generation. The next reopening uses the same one again, and
    // nothing ran with it.
    assert_eq!((fixture.task("a").generation, fixture.task("a").attempt), (0, 1));
}

#[test]
fn an_applied_plan_is_undone_and_redone_as_a_whole() {
    let plan = "tasks: [{id: a}, {id: b, needs: a, subtasks: [{id: c, run: x}]}, {name: d, needs: b}]";
    let fixture = Fixture::with(&["x"]);
    let before = plain(&fixture.manager);
    fixture.apply(plan);
    let after = plain(&fixture.manager);
    let undone = undo(&fixture);
    assert_eq!(undone.removed.len(), 4);
    assert_eq!(plain(&fixture.manager), before);
    fixture.accept(fixture.manager.undo(Some(fixture.revision())));
    assert_eq!(plain(&fixture.manager), after);
    assert_eq!(fixture.apply(plan).unchanged, 4);
    fixture.create("e needs=a");
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(2))), @"
    revision 6 cannot be undone: `e` depends on `a` (ann, revision 17)
      hint: `taskpawl history e` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
    undo(&fixture);
    undo(&fixture);
    // The ids are free again for any plan.
    fixture.create("a");
    fixture.create("b needs=a");
    let redo = fixture.manager.history(None, 0, 0).unwrap();
    let redo = redo.iter().rfind(|event| event.kind.name() == "undone").unwrap().revision;
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(redo))), @"
    revision 24 cannot be undone: `a` its id now belongs to another task; `b` its id now belongs to another task
      hint: `taskpawl history a` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
}

#[test]
fn a_deleted_task_is_restored_with_its_id_unless_a_reference_is_missing() {
    let fixture = Fixture::with(&["a", "b needs=a", "c needs=b calls=1"]);
    let before = plain(&fixture.manager);
    fixture.accept(fixture.manager.delete(&ids(&["c"])));
    let deleted = fixture.revision();
    fixture.accept(fixture.manager.delete(&ids(&["b"])));
    undo(&fixture);
    fixture.accept(fixture.manager.undo(Some(deleted)));
    assert_eq!(plain(&fixture.manager), before);
    fixture.accept(fixture.manager.delete(&ids(&["c"])));
    let deleted = fixture.revision();
    fixture.accept(fixture.manager.delete(&ids(&["b"])));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(deleted))), @"
    revision 10 cannot be undone: `b` was changed: deleted (ann, revision 11)
      hint: `taskpawl history b` shows the changes since then; undo those not made by a run first, or change the tasks by hand
    ");
    assert!(fixture.try_create("c").is_err(), "the id of a deleted task stays taken");
}

#[test]
fn an_undo_cannot_restore_a_dependency_cycle() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    fixture.accept(fixture.manager.remove_dependency("b", "a"));
    let removed = fixture.revision();
    fixture.accept(fixture.manager.add_dependency("a", "b"));
    insta::assert_snapshot!(fixture.refuse(|m| m.undo(Some(removed))), @"
    this would close a cycle: `b` → `a` → `b`
      hint: a task cannot wait for itself, directly or through others
    ");
}

#[test]
fn a_preview_returns_the_same_and_writes_nothing() {
    let fixture = Fixture::with(&["a"]);
    let before = fixture.dump();
    let seen = fixture.manager.preview_undo(None).unwrap();
    assert_eq!((fixture.dump(), seen), (before, undo(&fixture)));
}

/// Returns all fields of all tasks, except counters that only increase.
fn plain(manager: &Manager) -> Vec<Value> {
    let mut tasks = manager.list(&Query::default()).unwrap().tasks;
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    let value = |task| {
        let mut value = serde_json::to_value(task).unwrap();
        for field in ["version", "updatedAt", "attempt"] {
            value.as_object_mut().unwrap().remove(field);
        }
        let id = value["id"].as_str().unwrap().to_owned();
        let applied = manager.store().view(|view| {
            let key = view.key(&id)?.unwrap();
            view.applied(key)
        });
        json!([value, applied.unwrap()])
    };
    tasks.iter().map(value).collect()
}

fn check(manager: &Manager, seed: u64) {
    let broken = manager.store().view(|view| broken_invariants(view)).unwrap();
    assert!(broken.is_empty(), "seed {seed}: {}", broken.join("\n"));
    for task in manager.list(&Query::default()).unwrap().tasks {
        let waits = matches!(task.blocked_reason, Some(BlockedReason::Approval { .. }));
        assert!(
            !waits || task.options.contains_key("approval"),
            "seed {seed}: `{}` waits, and asks nothing",
            task.id
        );
    }
}

/// Executes a random command, which may be refused.
fn random_command(manager: &Manager, random: &mut Random) -> Result<(), Error> {
    let mut id = || format!("t{}", random.below(7));
    let (a, b, c) = (id(), id(), id());
    let one = ids(&[&a]);
    match random.below(25) {
        0..=3 => {
            let needs = if random.chance(50) { format!(" needs={b}") } else { String::new() };
            let parent = if random.chance(25) { format!(" in={c}") } else { String::new() };
            let kind = ["", " calls=2", " milestone"][random.below(3)];
            drop(manager.create(new_task(&format!("{a}{needs}{parent}{kind}")))?);
        }
        4 => {
            let name = format!("n{}", random.below(100));
            let changed = json!({"name": name, "labels": [b], "context": {"x": 1}});
            drop(manager.update(&a, fields(changed), None)?);
        }
        5 => drop(manager.delete(&one)?),
        6 => drop(manager.claim(&a, LEASE)?),
        7 => drop(manager.release(&one)?),
        8 | 9 => drop(manager.done(&one, Ending { result: Some(json!(a)), ..Ending::default() })?),
        10 => drop(manager.fail(&one, Ending { note: Some("no".to_owned()), ..Ending::default() })?),
        11 => drop(manager.skip(&one, None)?),
        12 => drop(manager.block(&one, "why")?),
        13 => drop(manager.unblock(&one)?),
        14 => drop(manager.retry(&one, random.chance(50))?),
        15 => drop(manager.reopen(&one, random.chance(50))?),
        16 => drop(manager.cancel(&one, None)?),
        17 => drop(manager.add_dependency(&a, &b)?),
        18 => drop(manager.remove_dependency(&a, &b)?),
        19 => drop(manager.move_task(&a, random.chance(70).then_some(b.as_str()))?),
        20 => drop(manager.note(&a, "hm")?),
        21 => {
            let task = if random.chance(50) { a } else { format!("p{}", random.below(5)) };
            let approval = if random.chance(50) { json!("required") } else { json!(null) };
            drop(manager.update(&task, fields(json!({"approval": approval})), None)?);
        }
        22 => drop(manager.approve(&one, Approving::default())?),
        23 => drop(manager.reject(&one, None)?),
        _ => drop(manager.apply(
            random_plan(random),
            "p",
            ApplyOptions { prune: random.chance(50), fresh: random.chance(20), ..ApplyOptions::default() },
        )?),
    }
    Ok(())
}

fn random_plan(random: &mut Random) -> taskpawl_model::plan::Plan {
    let mut tasks = Vec::new();
    for position in 0..=random.below(4) {
        let mut task = json!({"id": format!("p{position}"), "name": format!("n{}", random.below(3))});
        if position > 0 && random.chance(60) {
            task["needs"] = json!([format!("p{}", random.below(position))]);
        }
        if random.chance(40) {
            task["call"] = json!({"t": {"x": random.below(2)}});
        }
        if random.chance(20) {
            task["approval"] = json!("required");
        }
        tasks.push(task);
    }
    taskpawl_model::plan::parse_plan(&json!({ "tasks": tasks }).to_string()).unwrap()
}

/// Executes commands, undoes all of them one by one and redoes some. Each intermediate state must equal the
/// original one.
fn undo_and_redo_all(open: &dyn Fn() -> Manager, seed: u64, steps: usize) {
    let manager = &open();
    let random = &mut Random::new(seed);
    let mut moments = vec![plain(manager)];
    for _ in 0..steps {
        let before = manager.revision().unwrap();
        let touches = |manager: &Manager| {
            let events = manager.history(None, before, 0).unwrap();
            events.iter().any(|event| event.kind.name() != "renewed")
        };
        if random_command(manager, random).is_ok() && touches(manager) {
            moments.push(plain(manager));
        }
    }
    let (mut at, mut undos) = (moments.len() - 1, Vec::new());
    let manager = &open();
    while at > 0 {
        let goes_back = undos.is_empty() || random.chance(70);
        let which = if goes_back { None } else { undos.pop() };
        let undone = manager.undo(which);
        assert!(undone.is_ok(), "seed {seed}, step {at}: {}", undone.unwrap_err());
        if goes_back {
            undos.push(manager.revision().unwrap());
            at -= 1;
        } else {
            at += 1;
        }
        same(&plain(manager), &moments[at], seed, at);
        check(manager, seed);
    }
    assert!(manager.undo(None).is_err());
}

fn same<T: PartialEq + Debug>(now: &T, before: &T, seed: u64, step: usize) {
    assert!(now == before, "seed {seed}, step {step}: is {now:#?}, was {before:#?}");
}

#[test]
fn random_commands_are_undone_and_redone() {
    for seed in 0..400 {
        let fixture = Fixture::new();
        undo_and_redo_all(&|| fixture.manager.clone(), seed, 40);
    }
    let directory = tempfile::tempdir().unwrap();
    for seed in 400..406 {
        let path = directory.path().join(format!("{seed}.json"));
        undo_and_redo_all(&|| Manager::new(open(&Location::Json(path.clone())), "ann"), seed, 25);
        let path = directory.path().join(format!("{seed}.db"));
        undo_and_redo_all(&|| Manager::new(open(&Location::Sqlite(path.clone())), "ann"), seed, 25);
    }
}

/// Runs continue between the commands. Each undo is accepted or refused, and the store stays consistent.
#[test]
fn random_undos_during_runs_keep_the_store_consistent() {
    for seed in 0..300 {
        let fixture = Fixture::new();
        let random = &mut Random::new(seed);
        for _ in 0..40 {
            match random.below(10) {
                0..=4 => drop(random_command(&fixture.manager, random)),
                5 | 6 => run_something(&fixture, random),
                _ => {
                    let revision = 1 + random.below(usize::try_from(fixture.revision()).unwrap() + 1) as u64;
                    let which = random.chance(60).then_some(revision);
                    let before = fixture.dump();
                    let attempts = attempts(&fixture);
                    if fixture.manager.undo(which).is_err() {
                        assert_eq!(fixture.dump(), before, "seed {seed}: a refused undo left a trace");
                    }
                    for (id, attempt) in attempts {
                        let now = fixture.manager.get(&id).map_or(u32::MAX, |task| task.attempt);
                        assert!(now >= attempt, "seed {seed}: {id} was at attempt {attempt}, is at {now}");
                    }
                }
            }
            check(&fixture.manager, seed);
        }
    }
}

fn attempts(fixture: &Fixture) -> Vec<(String, u32)> {
    let tasks = fixture.manager.list(&Query::default()).unwrap().tasks;
    tasks.iter().map(|task| (task.id.to_string(), task.attempt)).collect()
}

/// Starts a ready task as a run, or reports on a running call.
fn run_something(fixture: &Fixture, random: &mut Random) {
    let tasks = fixture.manager.list(&Query::default()).unwrap().tasks;
    let is_running = |task: &&taskpawl_model::task::Task| {
        task.claim.as_ref().is_some_and(|claim| claim.run == Some(RunId::from("r1")))
    };
    let running: Vec<_> = tasks.iter().filter(is_running).collect();
    if running.is_empty() {
        let ready = fixture.ready();
        let ready: Vec<&str> = ready.iter().map(String::as_str).collect();
        fixture.start(&ready);
        return;
    }
    let task = running[random.below(running.len())];
    let call = task.metadata.tool_calls.iter().find(|call| call.status.as_str() == "running").unwrap();
    let how = ["ok", "ok", "bad", "lost"][random.below(4)];
    drop(fixture.try_report(task.id.as_str(), call.id.as_str(), crate::support::end(how), random.chance(80)));
}
