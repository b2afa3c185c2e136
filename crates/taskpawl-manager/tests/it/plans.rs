//! Several plans in one store: the ids of their tasks, and the relation of files to plans.

use serde_json::json;
use taskpawl_manager::{ApplyOptions, Error};
use taskpawl_model::command::ApplyReport;
use taskpawl_model::insight::ForecastOptions;
use taskpawl_model::plan::{PlanSource, parse_plan};
use taskpawl_model::rules::select;
use taskpawl_model::value::Selector;

use crate::flow::succeed;
use crate::support::{Fixture, error_text, ids};

const TWO: &str = "tasks: [{id: build, call: {t: {}}}, {id: test, needs: build, call: {t: {x: '${{ tasks.build.status }}'}}}]";

fn try_file(
    fixture: &Fixture,
    name: &str,
    path: &str,
    yaml: &str,
    is_moved: bool,
) -> Result<ApplyReport, Error> {
    let mut plan = parse_plan(yaml).unwrap();
    plan.source = Some(PlanSource { path: path.to_owned(), is_moved });
    fixture.manager.apply(plan, name, ApplyOptions::default())
}

#[track_caller]
fn file(fixture: &Fixture, name: &str, path: &str, yaml: &str) -> ApplyReport {
    fixture.accept(try_file(fixture, name, path, yaml, false))
}

fn refused(fixture: &Fixture, name: &str, path: &str) -> String {
    fixture.refuse(|_| try_file(fixture, name, path, TWO, false))
}

#[test]
fn a_second_plan_with_the_same_ids_is_prefixed() {
    let fixture = Fixture::new();
    assert_eq!(file(&fixture, "a", "a.yaml", TWO).prefix, None);
    let report = file(&fixture, "b", "b.yaml", TWO);
    assert_eq!(
        (report.prefix.as_deref(), report.created),
        (Some("b"), ["b.build", "b.test"].map(Into::into).into())
    );
    assert_eq!(fixture.states(), "build=todo test=todo b.build=todo b.test=todo");
    let before = fixture.dump();
    let report = file(&fixture, "b", "b.yaml", TWO);
    assert_eq!(
        (report.unchanged, fixture.dump()),
        (2, before),
        "applying the same file again changes nothing"
    );
    fixture.run("b.build");
    let started = fixture.start(&["b.test"]).started;
    assert_eq!(started[0].args["x"], "done", "`tasks.build` is the task of its own plan");
}

#[test]
fn the_prefix_of_a_plan_is_decided_once() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", "tasks: [{id: one}]");
    file(&fixture, "b", "b.yaml", "tasks: [{id: one}, {id: two}]");
    let report = file(&fixture, "b", "b.yaml", "tasks: [{id: one}, {id: two}, {id: three}]");
    assert_eq!(report.created, ["b.three".into()], "the prefix is used although `three` is free");
    let report = file(&fixture, "a", "a.yaml", "tasks: [{id: one}, {id: b.two}]");
    assert_eq!((report.prefix, report.prefixed), (None, vec!["b.two".into()]));
    assert_eq!(report.created, ["a.b.two".into()], "a prefixed id that another plan has taken");
    let report = file(&fixture, "a", "a.yaml", "tasks: [{id: one}, {id: b.two}]");
    assert_eq!((report.unchanged, report.prefixed.len()), (2, 0));
}

#[test]
fn short_ids_refer_to_the_named_plan() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    file(&fixture, "b", "b.yaml", TWO);
    let mut task = crate::support::new_task("more needs=build");
    task.plan = Some("b".to_owned());
    fixture.accept(fixture.manager.create(task));
    assert_eq!(fixture.task("more").dependencies, ["b.build".into()]);
}

#[test]
fn selectors_of_a_prefixed_plan_use_the_ids_of_the_file() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    file(&fixture, "b", "b.yaml", TWO);
    for id in ["test", "b.test"] {
        let mut part = serde_json::json!({"tasks": [{"id": id, "priority": "high"}]});
        let complete = |view: &dyn taskpawl_model::view::View| {
            taskpawl_model::rules::complete_part(view, "b", &mut part)
        };
        let around = fixture.manager.store().view(complete).unwrap();
        assert_eq!(around, 1, "the dependency is added");
        let plan = taskpawl_model::plan::plan_from_json(&part).unwrap();
        let report = fixture.accept(fixture.manager.apply(plan, "b", ApplyOptions::default()));
        assert!(report.created.is_empty(), "{report:?}");
    }
    assert_eq!(fixture.task("b.test").priority.as_str(), "high");
    assert_eq!(fixture.task("b.test").dependencies, ["b.build".into()]);
}

#[test]
fn an_id_of_a_deleted_task_stays_reserved() {
    let fixture = Fixture::with(&["mine"]);
    fixture.accept(fixture.manager.delete(&["mine".to_owned()]));
    assert_eq!(file(&fixture, "a", "a.yaml", "tasks: [{id: mine}]").created, ["a.mine".into()]);
}

#[test]
fn a_name_belongs_to_one_file() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    insta::assert_snapshot!(refused(&fixture, "a", "b/a.yaml"));
    let moved = fixture.accept(try_file(&fixture, "a", "b/a.yaml", TWO, true));
    assert_eq!(moved.unchanged, 2);
    assert!(refused(&fixture, "a", "a.yaml").starts_with("the plan `a` comes from `b/a.yaml`"));
}

#[test]
fn a_file_with_another_name_is_refused_until_its_plan_is_renamed() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    insta::assert_snapshot!(refused(&fixture, "z", "a.yaml"));
    fixture.accept(fixture.manager.rename_plan("a", "z"));
    assert_eq!(file(&fixture, "z", "a.yaml", TWO).unchanged, 2);
    assert_eq!(fixture.task("build").plan.as_deref(), Some("z"));
    assert_eq!(
        error_text(&fixture.manager.rename_plan("a", "y").unwrap_err()).lines().next().unwrap(),
        "`plan:a` selects no task"
    );
    fixture.accept(fixture.manager.rename_plan("z", "a"));
    assert_eq!(
        (file(&fixture, "a", "a.yaml", TWO).unchanged, fixture.states()),
        (2, "build=todo test=todo".into())
    );
}

#[test]
fn a_plan_without_a_file_adopts_the_first_one() {
    let fixture = Fixture::new();
    fixture.apply(TWO);
    assert_eq!(file(&fixture, "p", "p.yaml", TWO).unchanged, 2);
    assert!(refused(&fixture, "p", "q.yaml").starts_with("the plan `p` comes from `p.yaml`"));
    assert_eq!(fixture.apply(TWO).unchanged, 2, "plans without a file are known by their names");
}

const EMITS: &str =
    "tasks: [{id: build, call: {t: {}, emit: true}}, {id: test, needs: build, call: {t: {}}}]";

#[test]
fn tasks_emitted_in_a_prefixed_plan_have_its_prefix() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", "tasks: [{id: build}, {id: test}, {id: more}]");
    file(&fixture, "b", "b.yaml", EMITS);
    fixture.start(&["b.build"]);
    let tasks = json!([
        {"id": "more", "needs": ["build"], "neededBy": "test", "call": {"t": {"x": "${{ tasks.build.status }}"}}},
        {"id": "b.whole", "needs": "more", "call": {"t": {"x": "${{ tasks.build.status }} ${{ tasks.more.status }}"}}},
        {"name": "nameless"},
    ]);
    succeed(&fixture, "b.build", "c1", json!({"tasks": tasks}));
    assert_eq!(
        fixture.states(),
        "build=todo test=todo more=todo b.build=done b.test=todo b.more=todo b.whole=todo b.build.c1.0=todo",
        "{:?}",
        fixture.task("b.build").error
    );
    assert_eq!(fixture.task("b.test").dependencies, ["b.build".into(), "b.more".into()]);
    assert_eq!(
        fixture.start(&["b.more"]).started[0].args["x"],
        "done",
        "`tasks.build` is the task of its own plan"
    );
    succeed(&fixture, "b.more", "c1", json!(1));
    assert_eq!(fixture.start(&["b.whole"]).started[0].args["x"], "done done");
}

#[test]
fn a_repeated_call_emits_the_same_tasks_of_a_prefixed_plan() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", "tasks: [{id: build}, {id: more}]");
    file(&fixture, "b", "b.yaml", EMITS);
    let tasks = json!([{"id": "more"}, {"id": "other", "needs": "more"}]);
    for _ in 0..2 {
        fixture.start(&["b.build"]);
        succeed(&fixture, "b.build", "c1", json!({"tasks": tasks}));
        assert_eq!(
            fixture.states(),
            "build=todo more=todo b.build=done b.test=todo b.more=todo b.other=todo"
        );
        fixture.accept(fixture.manager.reopen(&ids(&["b.build"]), true));
    }
}

fn instance(fixture: &Fixture, name: &str, yaml: &str) -> ApplyReport {
    let plan = parse_plan(yaml).unwrap().into_instance(name);
    fixture.accept(fixture.manager.apply(plan, name, ApplyOptions::default()))
}

#[test]
fn tasks_emitted_in_an_instance_have_its_name() {
    let fixture = Fixture::new();
    let tasks = json!([
        {"id": "more", "needs": "build", "neededBy": "test", "call": {"t": {"x": "${{ tasks.build.status }}"}}},
    ]);
    for name in ["one", "two"] {
        assert_eq!(instance(&fixture, name, EMITS).prefix, None, "an instance gets no automatic prefix");
        let build = format!("{name}.build");
        fixture.start(&[&build]);
        succeed(&fixture, &build, "c1", json!({"tasks": tasks}));
        let more = format!("{name}.more");
        assert_eq!(fixture.task(&format!("{name}.test")).dependencies, [&*build, &more].map(Into::into));
        assert_eq!(
            fixture.start(&[&more]).started[0].args["x"],
            "done",
            "`tasks.build` is the task of the instance"
        );
    }
    let before = fixture.states();
    assert_eq!(
        before,
        "one.build=done one.test=todo one.more=in_progress two.build=done two.test=todo two.more=in_progress"
    );
    assert_eq!(instance(&fixture, "two", EMITS).unchanged, 2);
    assert_eq!(fixture.states(), before);
}

#[test]
fn an_instance_that_was_renamed_keeps_its_ids() {
    let fixture = Fixture::new();
    instance(&fixture, "one", TWO);
    fixture.accept(fixture.manager.rename_plan("one", "two"));
    assert_eq!(instance(&fixture, "two", TWO).unchanged, 2);
    assert_eq!(fixture.states(), "one.build=todo one.test=todo");
}

#[test]
fn ids_next_to_a_named_plan_are_those_of_its_file() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    file(&fixture, "b", "b.yaml", TWO);
    let only = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect::<Vec<Selector>>();
    let keys = |words: &[&str]| fixture.manager.read(|view| select(view, &only(words))).unwrap().unwrap();
    assert_eq!(keys(&["plan:b", "build"]), keys(&["plan:b"]), "`build` is `b.build`");
    assert_ne!(keys(&["build"]), keys(&["b.build"]), "without a named plan, ids are full ids");
    let forecast = |words: &[&str], what_if: &str| {
        let what_if = vec![what_if.parse().unwrap()];
        let options = ForecastOptions { only: only(words), jobs: 1, what_if, ..ForecastOptions::default() };
        fixture.manager.forecast(&options).map(|forecast| forecast.effects.unwrap().blocked)
    };
    assert_eq!(forecast(&["plan:b"], "fail:build").unwrap(), ["b.test".into()]);
    assert_eq!(forecast(&["plan:b"], "fail:b.build").unwrap(), ["b.test".into()]);
    assert_eq!(forecast(&["plan:a"], "fail:build").unwrap(), ["test".into()]);
    assert_eq!(forecast(&[], "fail:build").unwrap(), ["test".into()]);
    assert!(forecast(&["plan:b"], "fail:nowhere").is_err());
}

#[test]
fn undo_and_redo_of_a_plan_rename() {
    let fixture = Fixture::new();
    file(&fixture, "z", "z.yaml", "tasks: [{id: build}]");
    file(&fixture, "a", "a.yaml", TWO);
    fixture.accept(fixture.manager.rename_plan("a", "y"));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.task("a.build").plan.as_deref(), Some("a"));
    assert_eq!(
        file(&fixture, "a", "a.yaml", TWO).unchanged,
        2,
        "the file still belongs to the plan with its prefix"
    );
    let undone = fixture.revision();
    fixture.accept(fixture.manager.undo(Some(undone)));
    assert_eq!(fixture.task("a.build").plan.as_deref(), Some("y"), "the second undo reverts the first");
    assert_eq!(file(&fixture, "y", "a.yaml", TWO).unchanged, 2);
}

#[test]
fn an_undo_does_not_take_a_name_from_another_plan() {
    let fixture = Fixture::new();
    file(&fixture, "a", "a.yaml", TWO);
    fixture.accept(fixture.manager.rename_plan("a", "y"));
    let renamed = fixture.revision();
    file(&fixture, "a", "b.yaml", "tasks: [{id: other}]");
    let told = fixture.refuse(|manager| manager.undo(Some(renamed)));
    assert!(told.contains("`build` belonged to the plan `a`, which is a different plan now"), "{told}");
    assert_eq!(fixture.task("build").plan.as_deref(), Some("y"));
}
