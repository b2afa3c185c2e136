//! `apply`.

use taskpawl_manager::{ApplyOptions, OnChanged};

use crate::support::{Fixture, LEASE, counted, error_text, ids};

const NONE: ApplyOptions = ApplyOptions {
    prune: false,
    fresh: false,
    on_changed: OnChanged::Refuse,
    retry_failed: false,
    keeps_approvals: false,
};
const PRUNE: ApplyOptions = ApplyOptions { prune: true, ..NONE };
const FRESH: ApplyOptions = ApplyOptions { fresh: true, ..NONE };

const PLAN: &str = "
tasks:
  - id: a
    call: {t: {}}
  - id: b
    needs: [a]
  - id: p
    subtasks:
      - id: s
        call: {t: {}}
      - name: no id
        needs: [s]
";

#[test]
fn applying_the_same_file_again_changes_nothing() {
    let fixture = Fixture::new();
    let report = fixture.apply(PLAN);
    assert_eq!((report.created.len(), report.unchanged), (5, 0));
    let before = fixture.dump();
    let report = fixture.apply(PLAN);
    assert_eq!((report.created.len(), report.changed.len(), report.unchanged), (0, 0, 5));
    assert_eq!(fixture.dump(), before, "no event was added either");
    fixture.run("a");
    let before = fixture.dump();
    fixture.apply(PLAN);
    assert_eq!(fixture.dump(), before);
}

#[test]
fn tasks_that_were_not_started_follow_the_file() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, call: {t: {}}}, {id: b, needs: [a]}, {id: c, description: old}]");
    let report = fixture.apply(
        "tasks: [{id: a, calls: [{toolName: t, id: one}, {toolName: t}]}, {id: b}, {id: c, needs: [b], priority: high}, {id: d, subtasks: [{id: e}]}]",
    );
    assert_eq!(
        (report.created, report.changed),
        (["d", "e"].map(Into::into).into(), ["a", "b", "c"].map(Into::into).into())
    );
    assert_eq!(fixture.calls("a"), "one=pending/0 c1=pending/0");
    assert!(fixture.task("b").dependencies.is_empty());
    assert_eq!(fixture.task("c").description, "");
    assert_eq!(fixture.ready(), ["a", "b", "e"]);
}

#[test]
fn descriptive_fields_of_a_started_task_may_change_but_its_work_may_not() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, call: {t: {}}}, {id: b}, {id: c}, {id: d, needs: [a]}]");
    fixture.run("a");
    fixture.accept(fixture.manager.claim("b", LEASE));
    let report = fixture.apply(
        "tasks: [{id: a, name: A, description: x, labels: [l], priority: low, dueDate: 2030-01-01, call: {t: {}}}, {id: b}, {id: c}, {id: d, needs: [a]}]",
    );
    assert_eq!(report.changed, ["a".into()]);
    let refused = fixture.refuse(|_| {
        fixture.try_apply(
            "tasks: [{id: a, call: {t: {x: 1}}}, {id: b, timeout: 5m}, {id: c, mode: parallel}, {id: d}]",
            ApplyOptions::default(),
        )
    });
    insta::assert_snapshot!(refused);
}

#[test]
fn an_id_of_another_plan_refuses_the_whole_apply() {
    let fixture = Fixture::with(&["q.mine"]);
    fixture.apply("tasks: [{id: a}, {id: q.a}]");
    let other = taskpawl_model::plan::parse_plan("tasks: [{id: new}, {id: a}, {id: mine}]").unwrap();
    insta::assert_snapshot!(fixture.refuse(|m| m.apply(other, "q", ApplyOptions::default())), @"
    the plan `q` cannot be applied: `q.a` belongs to the plan `p`; `q.mine` was not created by a plan
      hint: give those tasks other ids in the file, or use `--as NAME` for a separate instance
    ");
}

#[test]
fn dependencies_outside_the_plan_must_exist() {
    let fixture = Fixture::with(&["outside"]);
    fixture.apply("tasks: [{id: a, needs: [outside]}]");
    assert_eq!(fixture.ready(), ["outside"]);
    let refused =
        fixture.refuse(|_| fixture.try_apply("tasks: [{id: a, needs: [outsid]}]", ApplyOptions::default()));
    insta::assert_snapshot!(refused, @"field `dependencies`: `a` depends on `outsid`, which is neither a task of the plan nor an id in the store");
    let refused =
        fixture.refuse(|_| fixture.try_apply("tasks: [{id: a, needs: [nobody]}]", ApplyOptions::default()));
    insta::assert_snapshot!(refused, @"
    no task `nobody`
      hint: `taskpawl list` shows the ids
    ");
}

#[test]
fn missing_tasks_are_listed_and_pruned_only_if_not_started() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a}, {id: b}, {id: c, subtasks: [{id: c1}, {id: c2}]}, {id: d, subtasks: [{id: d1}]}, {id: keep}]");
    fixture.done("a");
    fixture.accept(fixture.manager.claim("d1", LEASE));
    let report = fixture.apply("tasks: [{id: keep}]");
    assert_eq!(report.gone.len(), 7);
    assert_eq!(fixture.states(), "a=done b=todo c=todo c1=todo c2=todo d=todo d1=in_progress keep=todo");
    let report = fixture.accept(fixture.try_apply("tasks: [{id: keep}]", PRUNE));
    assert_eq!(report.pruned, ["b", "c", "c1", "c2"].map(Into::into));
    assert_eq!(report.gone, ["a", "d", "d1"].map(Into::into));
    assert_eq!(
        fixture.states(),
        "a=done b=cancelled c=cancelled c1=cancelled c2=cancelled d=todo d1=in_progress keep=todo"
    );
    let before = fixture.dump();
    fixture.accept(fixture.try_apply("tasks: [{id: keep}]", PRUNE));
    assert_eq!(fixture.dump(), before);
    let report = fixture.apply("tasks: [{id: keep}, {id: b}, {id: c, subtasks: [{id: c1}]}]");
    assert_eq!(report.changed, ["b", "c", "c1"].map(Into::into), "pruned tasks are restored");
    assert_eq!(fixture.states(), "a=done b=todo c=todo c1=todo c2=cancelled d=todo d1=in_progress keep=todo");
}

#[test]
fn a_kept_subtask_is_not_pruned_with_its_former_parent() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: p, subtasks: [{id: s}]}]");
    let report = fixture.accept(fixture.try_apply("tasks: [{id: s}]", PRUNE));
    assert_eq!((report.pruned, report.changed), (vec!["p".into()], vec!["s".into()]));
    assert_eq!(fixture.states(), "p=cancelled s=todo");
}

#[test]
fn reopened_tasks_may_get_other_work() {
    let fixture = Fixture::new();
    fixture
        .apply("tasks: [{id: a, call: {t: {}}}, {id: b, needs: [a], call: {t: {}}}, {id: c, call: {t: {}}}]");
    fixture.run("a");
    fixture.run("b");
    let other =
        "tasks: [{id: a, needs: [c], call: {t: {x: 1}}}, {id: b, call: {t: {}}}, {id: c, call: {t: {}}}]";
    fixture.refuse(|_| fixture.try_apply(other, ApplyOptions::default()));
    let report = fixture.accept(fixture.try_apply(other, FRESH));
    assert_eq!((report.reopened, report.changed), (2, vec!["a".into(), "b".into()]));
    assert_eq!(
        (fixture.states(), fixture.ready()),
        ("a=todo b=todo c=todo".into(), vec!["b".into(), "c".into()])
    );
    fixture.run("c");
    fixture.run("a");
    assert_eq!(fixture.states(), "a=done b=todo c=done");
}

#[test]
fn fresh_reopens_everything_in_one_commit() {
    let fixture = Fixture::new();
    let plan = "tasks: [{id: a, calls: [{toolName: t}, {toolName: t}]}, {id: b, needs: [a]}, {id: c, needs: [b]}, {id: half, calls: [{toolName: t}, {toolName: t}]}]";
    fixture.apply(plan);
    fixture.run("a");
    fixture.fail("b");
    fixture.start(&["half"]);
    fixture.report("half", "c1", "ok");
    let before = fixture.refuse(|_| fixture.try_apply(plan, FRESH));
    insta::assert_snapshot!(before, @"
    `half` is in progress
      hint: wait until it has ended; if it is not needed, `taskpawl cancel half` first
    ");
    fixture.report("half", "c2", "cut");
    assert_eq!(fixture.calls("half"), "c1=succeeded/1 c2=running/2", "repeatable calls start again at once");
    fixture.give_back("half");
    let report = fixture.accept(fixture.try_apply(plan, FRESH));
    assert_eq!(report.reopened, 3);
    assert_eq!(fixture.states(), "a=todo b=todo c=todo half=todo");
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
    assert_eq!(fixture.calls("half"), "c1=pending/1 c2=pending/2", "interrupted tasks restart, too");
    assert_eq!((fixture.task("half").generation, fixture.task("c").generation), (1, 0));
}

#[test]
fn tasks_without_ids_are_matched_by_name() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{name: one, call: {t: {}}}, {name: two, needs: [one]}]");
    assert_eq!(fixture.states(), "one=todo two=todo");
    let report = fixture.apply(
        "tasks: [{name: two, needs: [one], priority: high}, {name: one, call: {t: {}}}, {name: three}]",
    );
    assert_eq!((report.created.len(), report.changed, report.unchanged), (1, vec!["two".into()], 1));
    let report = fixture.apply("tasks: [{name: two, needs: [one], priority: high}, {name: One, call: {t: {}}}, {name: three}, {name: one, call: {t: {}}}]");
    assert_eq!((report.created.len(), report.gone.len()), (1, 0));
}

#[test]
fn a_renamed_task_is_still_matched_by_its_name_in_the_file() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{name: one}]");
    fixture.accept(fixture.manager.update(
        "one",
        crate::support::fields(serde_json::json!({"name": "uno"})),
        None,
    ));
    let report = fixture.apply("tasks: [{name: one, priority: high}]");
    assert_eq!(report.changed, ["one".into()]);
    assert_eq!(fixture.task("one").name, "uno", "manual changes are kept");
}

#[test]
fn a_plan_may_recreate_its_own_deleted_task() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a}, {id: b}]");
    fixture.accept(fixture.manager.delete(&ids(&["a"])));
    assert_eq!(
        error_text(&fixture.try_create("a").unwrap_err()).lines().next().unwrap(),
        "id `a` is taken by a deleted task: ids are not reused"
    );
    let plan = taskpawl_model::plan::parse_plan("tasks: [{id: a}]").unwrap();
    let report = fixture.accept(fixture.manager.apply(plan, "q", ApplyOptions::default()));
    assert_eq!(report.created, ["q.a".into()], "the id belongs to the other plan");
    let report = fixture.apply("tasks: [{id: a}, {id: b}]");
    assert_eq!(report.created, ["a".into()]);
}

#[test]
fn a_file_may_reverse_a_dependency_or_a_subtask_relation() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: b, needs: [a]}, {id: a}]");
    fixture.apply("tasks: [{id: b}, {id: a, needs: [b]}]");
    fixture.apply("tasks: [{id: b, needs: [a]}, {id: a}]");
    assert_eq!(fixture.ready(), ["a"]);
    fixture.apply("tasks: [{id: b, subtasks: [{id: a}]}]");
    fixture.apply("tasks: [{id: a, subtasks: [{id: b}]}]");
    fixture.apply("tasks: [{id: b, subtasks: [{id: a}]}]");
    assert_eq!(fixture.ready(), ["a"]);
    assert_eq!(fixture.task("a").parent.unwrap().as_str(), "b");
}

#[test]
fn a_cycle_through_tasks_outside_the_file_is_refused() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: q}]");
    fixture.create("outside needs=q");
    let refuse = |text: &str| {
        fixture
            .refuse(|_| fixture.try_apply(text, ApplyOptions::default()))
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        refuse("tasks: [{id: q, needs: [outside]}]"),
        "this would close a cycle: `q` → `outside` → `q`"
    );
    assert_eq!(
        refuse("tasks: [{id: q, subtasks: [{id: m, subtasks: [{id: n, needs: [outside]}]}]}]"),
        "this would close a cycle: `n` → `m` → `q` → `outside` → `n`"
    );
    assert_eq!(
        refuse("tasks: [{id: q, needs: [n]}, {id: n, needs: [outside]}]"),
        "this would close a cycle: `q` → `outside` → `n` → `q`"
    );
}

#[test]
fn dependencies_added_by_hand_are_kept() {
    let fixture = Fixture::with(&["extra"]);
    fixture.apply("tasks: [{id: a}, {id: b}, {id: c, needs: [a]}]");
    fixture.accept(fixture.manager.add_dependency("c", "extra"));
    fixture.apply("tasks: [{id: a}, {id: b}, {id: c, needs: [b]}]");
    let mut on: Vec<String> = fixture.task("c").dependencies.iter().map(ToString::to_string).collect();
    on.sort();
    assert_eq!(on, ["b", "extra"]);
}

#[test]
fn a_refused_apply_leaves_no_trace_even_after_creating_tasks() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, call: {t: {}}}, {id: b}]");
    fixture.run("a");
    fixture.refuse(|_| {
        fixture.try_apply("tasks: [{id: x}, {id: y, needs: [x]}, {id: b, priority: high}, {id: a}]", PRUNE)
    });
    assert_eq!(counted(&fixture).values().sum::<u64>(), 2);
}
