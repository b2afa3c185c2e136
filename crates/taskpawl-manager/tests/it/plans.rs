//! Several plans in one store: the ids of their tasks, and the relation of files to plans.

use serde_json::json;
use taskpawl_manager::{ApplyOptions, Error};
use taskpawl_model::{ApplyReport, ForecastOptions, PlanSource, Selector, parse_plan, select};

use crate::flow::succeed;
use crate::support::{Desk, error_text, ids};

const TWO: &str = "tasks: [{id: build, call: {t: {}}}, {id: test, needs: build, call: {t: {x: '${{ tasks.build.status }}'}}}]";

fn try_file(desk: &Desk, name: &str, path: &str, yaml: &str, is_moved: bool) -> Result<ApplyReport, Error> {
    let mut plan = parse_plan(yaml).unwrap();
    plan.source = Some(PlanSource { path: path.to_owned(), is_moved });
    desk.manager.apply(plan, name, ApplyOptions::default())
}

#[track_caller]
fn file(desk: &Desk, name: &str, path: &str, yaml: &str) -> ApplyReport {
    desk.accept(try_file(desk, name, path, yaml, false))
}

fn refused(desk: &Desk, name: &str, path: &str) -> String {
    desk.refuse(|_| try_file(desk, name, path, TWO, false))
}

#[test]
fn a_second_plan_with_the_same_ids_is_prefixed() {
    let desk = Desk::new();
    assert_eq!(file(&desk, "a", "a.yaml", TWO).prefix, None);
    let report = file(&desk, "b", "b.yaml", TWO);
    assert_eq!(
        (report.prefix.as_deref(), report.created),
        (Some("b"), ["b.build", "b.test"].map(Into::into).into())
    );
    assert_eq!(desk.states(), "build=todo test=todo b.build=todo b.test=todo");
    let before = desk.dump();
    let report = file(&desk, "b", "b.yaml", TWO);
    assert_eq!((report.unchanged, desk.dump()), (2, before), "applying the same file again changes nothing");
    desk.run("b.build");
    let started = desk.start(&["b.test"]).started;
    assert_eq!(started[0].args["x"], "done", "`tasks.build` is the task of its own plan");
}

#[test]
fn the_prefix_of_a_plan_is_decided_once() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", "tasks: [{id: one}]");
    file(&desk, "b", "b.yaml", "tasks: [{id: one}, {id: two}]");
    let report = file(&desk, "b", "b.yaml", "tasks: [{id: one}, {id: two}, {id: three}]");
    assert_eq!(report.created, ["b.three".into()], "the prefix is used although `three` is free");
    let report = file(&desk, "a", "a.yaml", "tasks: [{id: one}, {id: b.two}]");
    assert_eq!((report.prefix, report.prefixed), (None, vec!["b.two".into()]));
    assert_eq!(report.created, ["a.b.two".into()], "a prefixed id that another plan has taken");
    let report = file(&desk, "a", "a.yaml", "tasks: [{id: one}, {id: b.two}]");
    assert_eq!((report.unchanged, report.prefixed.len()), (2, 0));
}

#[test]
fn short_ids_refer_to_the_named_plan() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    file(&desk, "b", "b.yaml", TWO);
    let mut task = crate::support::new_task("more needs=build");
    task.plan = Some("b".to_owned());
    desk.accept(desk.manager.create(task));
    assert_eq!(desk.task("more").dependencies, ["b.build".into()]);
}

#[test]
fn selectors_of_a_prefixed_plan_use_the_ids_of_the_file() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    file(&desk, "b", "b.yaml", TWO);
    for id in ["test", "b.test"] {
        let mut part = serde_json::json!({"tasks": [{"id": id, "priority": "high"}]});
        let complete = |view: &dyn taskpawl_model::View| taskpawl_model::complete_part(view, "b", &mut part);
        let around = desk.manager.store().view(complete).unwrap();
        assert_eq!(around, 1, "the dependency is added");
        let plan = taskpawl_model::plan_from_json(&part).unwrap();
        let report = desk.accept(desk.manager.apply(plan, "b", ApplyOptions::default()));
        assert!(report.created.is_empty(), "{report:?}");
    }
    assert_eq!(desk.task("b.test").priority.as_str(), "high");
    assert_eq!(desk.task("b.test").dependencies, ["b.build".into()]);
}

#[test]
fn an_id_of_a_deleted_task_stays_reserved() {
    let desk = Desk::with(&["mine"]);
    desk.accept(desk.manager.delete(&["mine".to_owned()]));
    assert_eq!(file(&desk, "a", "a.yaml", "tasks: [{id: mine}]").created, ["a.mine".into()]);
}

#[test]
fn a_name_belongs_to_one_file() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    insta::assert_snapshot!(refused(&desk, "a", "b/a.yaml"));
    let moved = desk.accept(try_file(&desk, "a", "b/a.yaml", TWO, true));
    assert_eq!(moved.unchanged, 2);
    assert!(refused(&desk, "a", "a.yaml").starts_with("the plan `a` is that of `b/a.yaml`"));
}

#[test]
fn a_file_with_another_name_is_refused_until_its_plan_is_renamed() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    insta::assert_snapshot!(refused(&desk, "z", "a.yaml"));
    desk.accept(desk.manager.rename_plan("a", "z"));
    assert_eq!(file(&desk, "z", "a.yaml", TWO).unchanged, 2);
    assert_eq!(desk.task("build").plan.as_deref(), Some("z"));
    assert_eq!(
        error_text(&desk.manager.rename_plan("a", "y").unwrap_err()).lines().next().unwrap(),
        "`plan:a` selects no task"
    );
    desk.accept(desk.manager.rename_plan("z", "a"));
    assert_eq!(
        (file(&desk, "a", "a.yaml", TWO).unchanged, desk.states()),
        (2, "build=todo test=todo".into())
    );
}

#[test]
fn a_plan_without_a_file_adopts_the_first_one() {
    let desk = Desk::new();
    desk.apply(TWO);
    assert_eq!(file(&desk, "p", "p.yaml", TWO).unchanged, 2);
    assert!(refused(&desk, "p", "q.yaml").starts_with("the plan `p` is that of `p.yaml`"));
    assert_eq!(desk.apply(TWO).unchanged, 2, "plans without a file are known by their names");
}

const EMITS: &str =
    "tasks: [{id: build, call: {t: {}, emit: true}}, {id: test, needs: build, call: {t: {}}}]";

#[test]
fn tasks_emitted_in_a_prefixed_plan_have_its_prefix() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", "tasks: [{id: build}, {id: test}, {id: more}]");
    file(&desk, "b", "b.yaml", EMITS);
    desk.start(&["b.build"]);
    let tasks = json!([
        {"id": "more", "needs": ["build"], "neededBy": "test", "call": {"t": {"x": "${{ tasks.build.status }}"}}},
        {"id": "b.whole", "needs": "more", "call": {"t": {"x": "${{ tasks.build.status }} ${{ tasks.more.status }}"}}},
        {"name": "nameless"},
    ]);
    succeed(&desk, "b.build", "c1", json!({"tasks": tasks}));
    assert_eq!(
        desk.states(),
        "build=todo test=todo more=todo b.build=done b.test=todo b.more=todo b.whole=todo b.build.c1.0=todo",
        "{:?}",
        desk.task("b.build").error
    );
    assert_eq!(desk.task("b.test").dependencies, ["b.build".into(), "b.more".into()]);
    assert_eq!(
        desk.start(&["b.more"]).started[0].args["x"],
        "done",
        "`tasks.build` is the task of its own plan"
    );
    succeed(&desk, "b.more", "c1", json!(1));
    assert_eq!(desk.start(&["b.whole"]).started[0].args["x"], "done done");
}

#[test]
fn a_repeated_call_emits_the_same_tasks_of_a_prefixed_plan() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", "tasks: [{id: build}, {id: more}]");
    file(&desk, "b", "b.yaml", EMITS);
    let tasks = json!([{"id": "more"}, {"id": "other", "needs": "more"}]);
    for _ in 0..2 {
        desk.start(&["b.build"]);
        succeed(&desk, "b.build", "c1", json!({"tasks": tasks}));
        assert_eq!(desk.states(), "build=todo more=todo b.build=done b.test=todo b.more=todo b.other=todo");
        desk.accept(desk.manager.reopen(&ids(&["b.build"]), true));
    }
}

fn instance(desk: &Desk, name: &str, yaml: &str) -> ApplyReport {
    let plan = parse_plan(yaml).unwrap().into_instance(name);
    desk.accept(desk.manager.apply(plan, name, ApplyOptions::default()))
}

#[test]
fn tasks_emitted_in_an_instance_have_its_name() {
    let desk = Desk::new();
    let tasks = json!([
        {"id": "more", "needs": "build", "neededBy": "test", "call": {"t": {"x": "${{ tasks.build.status }}"}}},
    ]);
    for name in ["one", "two"] {
        assert_eq!(instance(&desk, name, EMITS).prefix, None, "an instance gets no automatic prefix");
        let build = format!("{name}.build");
        desk.start(&[&build]);
        succeed(&desk, &build, "c1", json!({"tasks": tasks}));
        let more = format!("{name}.more");
        assert_eq!(desk.task(&format!("{name}.test")).dependencies, [&*build, &more].map(Into::into));
        assert_eq!(
            desk.start(&[&more]).started[0].args["x"],
            "done",
            "`tasks.build` is the task of the instance"
        );
    }
    let before = desk.states();
    assert_eq!(
        before,
        "one.build=done one.test=todo one.more=in_progress two.build=done two.test=todo two.more=in_progress"
    );
    assert_eq!(instance(&desk, "two", EMITS).unchanged, 2);
    assert_eq!(desk.states(), before);
}

#[test]
fn an_instance_that_was_renamed_keeps_its_ids() {
    let desk = Desk::new();
    instance(&desk, "one", TWO);
    desk.accept(desk.manager.rename_plan("one", "two"));
    assert_eq!(instance(&desk, "two", TWO).unchanged, 2);
    assert_eq!(desk.states(), "one.build=todo one.test=todo");
}

#[test]
fn ids_next_to_a_named_plan_are_those_of_its_file() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    file(&desk, "b", "b.yaml", TWO);
    let only = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect::<Vec<Selector>>();
    let keys = |words: &[&str]| desk.manager.read(|view| select(view, &only(words))).unwrap().unwrap();
    assert_eq!(keys(&["plan:b", "build"]), keys(&["plan:b"]), "`build` is `b.build`");
    assert_ne!(keys(&["build"]), keys(&["b.build"]), "without a named plan, ids are full ids");
    let forecast = |words: &[&str], what_if: &str| {
        let what_if = vec![what_if.parse().unwrap()];
        let options = ForecastOptions { only: only(words), jobs: 1, what_if, ..ForecastOptions::default() };
        desk.manager.forecast(&options).map(|forecast| forecast.effects.unwrap().blocked)
    };
    assert_eq!(forecast(&["plan:b"], "fail:build").unwrap(), ["b.test".into()]);
    assert_eq!(forecast(&["plan:b"], "fail:b.build").unwrap(), ["b.test".into()]);
    assert_eq!(forecast(&["plan:a"], "fail:build").unwrap(), ["test".into()]);
    assert_eq!(forecast(&[], "fail:build").unwrap(), ["test".into()]);
    assert!(forecast(&["plan:b"], "fail:nowhere").is_err());
}

#[test]
fn undo_and_redo_of_a_plan_rename() {
    let desk = Desk::new();
    file(&desk, "z", "z.yaml", "tasks: [{id: build}]");
    file(&desk, "a", "a.yaml", TWO);
    desk.accept(desk.manager.rename_plan("a", "y"));
    desk.accept(desk.manager.undo(None));
    assert_eq!(desk.task("a.build").plan.as_deref(), Some("a"));
    assert_eq!(
        file(&desk, "a", "a.yaml", TWO).unchanged,
        2,
        "the file still belongs to the plan with its prefix"
    );
    let undone = desk.revision();
    desk.accept(desk.manager.undo(Some(undone)));
    assert_eq!(desk.task("a.build").plan.as_deref(), Some("y"), "the second undo reverts the first");
    assert_eq!(file(&desk, "y", "a.yaml", TWO).unchanged, 2);
}

#[test]
fn an_undo_does_not_take_a_name_from_another_plan() {
    let desk = Desk::new();
    file(&desk, "a", "a.yaml", TWO);
    desk.accept(desk.manager.rename_plan("a", "y"));
    let renamed = desk.revision();
    file(&desk, "a", "b.yaml", "tasks: [{id: other}]");
    let told = desk.refuse(|manager| manager.undo(Some(renamed)));
    assert!(told.contains("`build` was of the plan `a`, which is another one now"), "{told}");
    assert_eq!(desk.task("build").plan.as_deref(), Some("y"));
}
