//! Values written by models: a call that inserts such a value is authorized as a call of that model, wherever the value
//! is used and however it got there.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::{ApplyOptions, Approving, Ending, Manager};
use taskpawl_model::command::Refusal;
use taskpawl_model::plan::parse_plan;
use taskpawl_model::rules::Means;
use taskpawl_model::task::{ActorKind, NewCall, Origin, Status};
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::Map;

use crate::support::Lab;

/// A policy that allows calls of people and of their plans, and asks about all others.
#[derive(Debug)]
struct ByOrigin {
    /// Positive control: every call counts as one of a plan.
    drops_origin: bool,
}

impl PolicyHook for ByOrigin {
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision {
        let asks = call.origin.is_of_model() && !self.drops_origin;
        if asks { PolicyDecision::Ask { why: "models ask".to_owned() } } else { PolicyDecision::Allow }
    }

    fn version(&self) -> &'static str {
        "1"
    }
}

/// Authors of a value: the plan file itself, or an actor who changed it later.
const WRITERS: &[(&str, Option<(ActorKind, Origin)>)] = &[
    ("file", None),
    ("person", Some((ActorKind::Person, Origin::Cli))),
    ("program", Some((ActorKind::Program, Origin::Library))),
    ("agent", Some((ActorKind::Agent, Origin::Cli))),
    ("broker", Some((ActorKind::Agent, Origin::Agent))),
    ("mcp", Some((ActorKind::Agent, Origin::Mcp))),
];

/// Paths of a value to an expression. The tasks `n` (a call) and `m` (manual) end before.
const VALUES: &[(&str, &str)] = &[
    ("own", "context.v"),
    ("param", "params.v"),
    ("other", "tasks.n.context.v"),
    ("made", "tasks.n.result.key ~ tasks.n.context.v"),
    ("passed", "tasks.p.result.sha256"),
    ("report", "tasks.m.result.v"),
    ("end", "tasks.m.status"),
    ("chosen", "'x' if tasks.m.result.v == 'x' else 'y'"),
];

/// Positions of an expression `@`: fields of a task, and whether the value is only data there.
const PLACES: &[(&str, &str, bool)] = &[
    ("argument", "call: {ok: {n: '${{ @ }}'}}", false),
    ("deep", "call: {ok: {n: [{a: 'x ${{ @ }} y'}]}}", false),
    ("program", "call: {shell: {command: '${{ @ }} --version'}}", false),
    ("code", "call: {shell: {command: 'sh -c ${{ @ }}'}}", false),
    ("argv", "call: {exec: {argv: [echo, '${{ @ }}']}}", false),
    ("stdin", "call: {exec: {argv: [cat], stdin: '${{ @ }}'}}", false),
    ("env", "call: {exec: {argv: ['true'], env: {A: '${{ @ }}'}}}", false),
    ("path", "call: {write_file: {path: 'd/${{ @ }}', content: a}}", false),
    ("callWhen", "calls: [{toolName: ok, when: '${{ (@) != 1 }}'}]", false),
    ("when", "when: '${{ (@) != 1 }}', call: {ok: {}}", false),
    ("list", "forEach: {in: '${{ [@] }}'}, call: {ok: {}}", false),
    ("item", "forEach: {in: '${{ [@] }}'}, call: {ok: {n: '${{ item }}'}}", false),
    ("below", "when: '${{ (@) != 1 }}', subtasks: [{id: 'ID-sub', call: {ok: {}}}]", false),
    ("content", "call: {write_file: {path: 'ID', content: '${{ @ }}'}}", true),
    ("new", "call: {edit_file: {path: p, old: a, new: '${{ @ }}'}}", true),
    ("message", "call: {log: {message: '${{ @ }}'}}", true),
    ("word", "call: {shell: {command: 'echo ${{ @ }}'}}", true),
];

/// An argument beside the value: none, a secret, or an environment variable of the run, which may be secret.
const BESIDE: [Option<&str>; 3] = [None, Some(TOKEN), Some("t: '${{ env.PATH }}'")];

const TOKEN: &str = "t: '${secret:TOKEN}'";

fn plan(beside: Option<&str>) -> (String, Vec<(String, bool)>) {
    let mut plan = "params: {v: {type: string, default: 'x'}}\ntasks:\n".to_owned();
    plan.push_str("  - {id: n, context: {v: x}, call: {ok: {}}}\n");
    plan.push_str("  - {id: p, context: {v: x}, needs: n, call: {write_file: {path: p, content: '${{ context.v }}'}}}\n");
    plan.push_str("  - {id: m}\n");
    let mut ids = Vec::new();
    for (way, value) in VALUES {
        for (place, fields, is_data) in PLACES {
            if beside.is_some() && !fields.contains("{ok: {n: '${{ @") {
                continue;
            }
            let id = format!("{way}-{place}");
            let fields = fields.replace('@', &value.replace('\'', "''")).replace("ID", &id);
            let fields = match beside {
                Some(beside) => fields.replace("{ok: {", &format!("{{ok: {{{beside}, ")),
                None => fields,
            };
            writeln!(plan, "  - {{id: {id}, context: {{v: x}}, needs: [n, p, m], {fields}}}").unwrap();
            ids.push((id, *is_data));
        }
    }
    (plan, ids)
}

/// Lets `writer` write all values that come from outside of the plan file.
fn write(lab: &Lab, text: &str, ids: &[(String, bool)], writer: Option<(ActorKind, Origin)>) {
    let by = |(kind, origin)| lab.manager.clone().with_kind(kind).with_origin(origin);
    let person = by((ActorKind::Person, Origin::Cli));
    let end = |manager: &Manager| {
        let result = Some(json!({"v": "x"}));
        manager.done(&["m".to_owned()], Ending { result, ..Ending::default() }).unwrap();
    };
    let Some(writer) = writer else { return end(&person) };
    let manager = by(writer);
    end(&manager);
    for id in ids.iter().map(|(id, _)| id.as_str()).chain(["n", "p"]) {
        manager.update(id, Map::from_iter([("context".to_owned(), json!({"v": "y"}))]), None).unwrap();
    }
    let mut plan = parse_plan(text).unwrap();
    plan.values.insert("v".to_owned(), json!("y"));
    manager.apply(plan, "p", ApplyOptions::default()).unwrap();
}

/// Runs the plan, and returns for each task if its value is only data and if it waits for an approval.
async fn asking(
    writer: Option<(ActorKind, Origin)>,
    beside: Option<&str>,
    drops_origin: bool,
) -> Vec<(String, bool, bool)> {
    let (text, ids) = plan(beside);
    let lab = Lab::new(&text).judged_by(Arc::new(ByOrigin { drops_origin }));
    write(&lab, &text, &ids, writer);
    lab.run_jobs(4).await;
    let asks = |id: &str| {
        let task = lab.task(id);
        let is_over = task.status.is_finished();
        let reason = task.blocked_reason.map(|reason| reason.kind());
        assert!(is_over || reason == Some("approval"), "{id}: {} {reason:?}", task.status);
        !is_over
    };
    let asked = |(id, is_data): (String, bool)| {
        let asks = asks(&if id.ends_with("-below") { format!("{id}-sub") } else { id.clone() });
        (id, is_data, asks)
    };
    ids.into_iter().map(asked).collect()
}

/// Returns whether the author of a value is a model. A parameter on the command line counts as part of the plan.
fn is_of_model(writer: Option<(ActorKind, Origin)>, id: &str) -> bool {
    match writer {
        Some((ActorKind::Agent, Origin::Cli)) => !id.starts_with("param-"),
        Some((kind, _)) => kind == ActorKind::Agent,
        None => false,
    }
}

#[tokio::test]
async fn a_call_is_authorized_by_the_author_of_its_values() {
    let mut count = 0;
    for (name, writer) in WRITERS {
        for beside in BESIDE {
            for (id, is_data, asks) in asking(*writer, beside, false).await {
                let expected = is_of_model(*writer, &id) && (!is_data || beside.is_some());
                assert_eq!(asks, expected, "{name}: {id}, beside {beside:?}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 6 * (8 * 17 + 2 * 8), "cases");
}

/// Positive control: if the policy ignores the origin, none of these calls asks. The exception are calls with secrets,
/// which always ask.
#[tokio::test]
async fn a_policy_that_ignores_the_origin_asks_about_none_of_them() {
    let mcp = WRITERS.last().unwrap().1;
    for beside in BESIDE {
        let mut calls = asking(mcp, beside, true).await.into_iter();
        assert!(calls.all(|(_, _, asks)| asks == beside.is_some()), "beside {beside:?}");
    }
}

fn mcp(lab: &Lab) -> Manager {
    lab.manager.clone().with_kind(ActorKind::Agent).with_origin(Origin::Mcp).with_actor("client")
}

fn person(lab: &Lab) -> Manager {
    lab.manager.clone().with_kind(ActorKind::Person).with_origin(Origin::Cli)
}

fn end_m(manager: &Manager, value: &str) {
    let result = Some(json!({"v": value}));
    manager.done(&["m".to_owned()], Ending { result, ..Ending::default() }).unwrap();
}

fn states(lab: &Lab) -> String {
    let states = lab.states();
    let mut states: Vec<&str> = states.split(' ').collect();
    states.sort_unstable();
    states.join(" ")
}

fn gated(plan: &str) -> Lab {
    Lab::new(plan).judged_by(Arc::new(ByOrigin { drops_origin: false }))
}

fn approve(lab: &Lab, id: &str) {
    person(lab).approve(&[id.to_owned()], Approving::default()).unwrap();
}

#[tokio::test]
async fn inputs_are_trusted_after_one_approval() {
    let lab = gated(
        "tasks: [{id: m}, {id: a, needs: m, trustInputs: m, call: {ok: {n: '${{ tasks.m.result.v }}'}}}]",
    );
    end_m(&mcp(&lab), "one");
    lab.run().await;
    assert_eq!(states(&lab), "a=blocked{approval} m=done");
    let request = lab.manager.approval_request("a").unwrap().unwrap();
    assert_eq!(request.calls[0].trusts, ["m"]);
    assert_eq!(request.why.as_deref(), Some("`tasks.m.result` came over MCP: models ask"));
    approve(&lab, "a");
    lab.run().await;
    lab.manager.reopen(&["m".to_owned()], true).unwrap();
    end_m(&mcp(&lab), "two");
    lab.run().await;
    assert_eq!((states(&lab), lab.starts()), ("a=done m=done".into(), "a/c1:2".into()));
    // The trust is bound to the named inputs and to the call: a changed call asks again.
    mcp(&lab).update("a", Map::from_iter([("trustInputs".to_owned(), json!(["m"]))]), None).unwrap();
    let changed =
        "tasks: [{id: m}, {id: a, needs: m, trustInputs: m, call: {ok: {o: '${{ tasks.m.result.v }}'}}}]";
    lab.manager.reopen(&["m".to_owned()], true).unwrap();
    lab.apply(changed, "p");
    end_m(&mcp(&lab), "three");
    lab.run().await;
    assert_eq!(states(&lab), "a=blocked{approval} m=done");
}

#[tokio::test]
async fn a_call_with_a_secret_never_trusts_its_inputs() {
    let call = format!("{{ok: {{n: '${{{{ tasks.m.result.v }}}}', {TOKEN}}}}}");
    let lab = gated(&format!("tasks: [{{id: m}}, {{id: a, needs: m, trustInputs: m, call: {call}}}]"));
    end_m(&mcp(&lab), "one");
    lab.run().await;
    let request = lab.manager.approval_request("a").unwrap().unwrap();
    assert!(request.calls[0].trusts.is_empty(), "{request:?}");
    approve(&lab, "a");
    lab.run().await;
    lab.manager.reopen(&["m".to_owned()], true).unwrap();
    end_m(&mcp(&lab), "two");
    lab.run().await;
    assert_eq!(states(&lab), "a=blocked{approval} m=done");
}

#[tokio::test]
async fn a_list_is_trusted_as_a_whole() {
    let lab = gated(
        "tasks: [{id: m}, {id: a, needs: m, trustInputs: m, forEach: {in: '${{ tasks.m.result.v }}'}, call: {ok: {n: '${{ item }}'}}}]",
    );
    let end = |list: Value| {
        let result = Some(json!({"v": list}));
        mcp(&lab).done(&["m".to_owned()], Ending { result, ..Ending::default() }).unwrap();
    };
    end(json!(["x"]));
    lab.run().await;
    assert_eq!(states(&lab), "a=blocked{approval} m=done");
    approve(&lab, "a");
    lab.run().await;
    assert_eq!(states(&lab), "a.0=done a=done m=done");
    lab.manager.reopen(&["m".to_owned()], true).unwrap();
    end(json!(["y", "z"]));
    lab.run().await;
    assert_eq!(states(&lab), "a.0=done a.1=done a=done m=done");
}

#[test]
fn trust_inputs_refuses_names_that_no_expression_reads() {
    let lab = Lab::new("tasks: [{id: m}]");
    let plan =
        "tasks: [{id: m}, {id: a, needs: m, trustInputs: mm, call: {ok: {n: '${{ tasks.m.result }}'}}}]";
    let plan = parse_plan(plan).unwrap();
    let error = lab.manager.apply(plan, "p", ApplyOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`mm`"), "{error}");
}

#[tokio::test]
async fn conditions_and_lists_of_models_ask_like_their_values() {
    let text = "tasks: [{id: m}, {id: a, needs: m, when: 'false', call: {ok: {}}}, {id: b, needs: m, forEach: {in: [x]}, call: {ok: {n: '${{ item }}'}}}, {id: c, call: {ok: {}}}]";
    let lab = gated(text);
    let manager = mcp(&lab);
    manager.update("a", Map::from_iter([("when".to_owned(), json!("true"))]), None).unwrap();
    manager.update("b", Map::from_iter([("forEach".to_owned(), json!({"in": ["y"]}))]), None).unwrap();
    end_m(&person(&lab), "x");
    lab.run().await;
    assert_eq!(states(&lab), "a=blocked{approval} b=blocked{approval} c=done m=done");
    // The condition now counts as written by a person, although it means the same.
    person(&lab).update("a", Map::from_iter([("when".to_owned(), json!("1 == 1"))]), None).unwrap();
    lab.run().await;
    assert_eq!(states(&lab), "a=done b=blocked{approval} c=done m=done");
}

/// A model gives the value by which a call or a task is skipped, or a list is empty. Another task reads that.
#[tokio::test]
async fn the_outcome_of_a_condition_is_as_trusted_as_the_values_that_it_read() {
    const DECIDED: &str = "
- {id: m}
- {id: n, needs: m, call: {ok: {}}}
- {id: task, needs: [m, n], when: tasks.m.result.go, call: {log: {message: x}}}
- {id: call, needs: m, calls: [{id: one, toolName: log, args: {message: x}, when: tasks.m.result.go}]}
- {id: list, needs: m, forEach: {in: tasks.m.result.list}, call: {log: {message: x}}}
- {id: above, needs: [m, n], when: tasks.m.result.go, subtasks: [{id: below, call: {log: {message: x}}}]}
";
    const READERS: &[(&str, &str)] = &[
        ("task", "tasks.task.status == 'skipped'"),
        ("task", "tasks.task.result == none"),
        ("task", "tasks.task.results == [none]"),
        ("task", "tasks.task.context.c1 == none"),
        ("task", "tasks.task.artifacts.a is undefined"),
        ("call", "tasks.call.context.one == none"),
        ("call", "tasks.call.result == none"),
        ("list", "tasks.list.results | length == 0"),
        ("list", "tasks.list.status == 'done'"),
        ("below", "tasks.below.status == 'skipped'"),
    ];
    let mut plan = format!("tasks:{DECIDED}");
    for (number, (needs, when)) in READERS.iter().enumerate() {
        writeln!(plan, "- {{id: r{number}, needs: {needs}, when: \"{when}\", call: {{ok: {{}}}}}}").unwrap();
    }
    for (is_of_model, expected) in [(true, "blocked{approval}"), (false, "done")] {
        let lab = gated(&plan);
        let manager = if is_of_model { mcp(&lab) } else { person(&lab) };
        let result = Some(json!({"go": false, "list": []}));
        manager.done(&["m".to_owned()], Ending { result, ..Ending::default() }).unwrap();
        lab.run_jobs(4).await;
        let states = states(&lab);
        for (number, (_, when)) in READERS.iter().enumerate() {
            let state = format!("r{number}={expected}");
            assert!(states.split(' ').any(|one| one == state), "{when}, of a model: {is_of_model}: {states}");
        }
    }
}

#[tokio::test]
async fn a_value_that_a_person_confirms_is_trusted() {
    let lab = gated("tasks: [{id: a, context: {v: x}, call: {ok: {n: '${{ context.v }}'}}}]");
    let context = |value: &str| Map::from_iter([("context".to_owned(), json!({"v": value}))]);
    mcp(&lab).update("a", context("y"), None).unwrap();
    assert_eq!(lab.task("a").origins.unwrap().context["v"], Origin::Mcp);
    person(&lab).update("a", context("y"), None).unwrap();
    assert_eq!(lab.task("a").origins, None);
    // Writing the same value again does not change its author.
    mcp(&lab).update("a", context("y"), None).unwrap();
    lab.run().await;
    assert_eq!(states(&lab), "a=done");
}

#[test]
fn undo_restores_the_author_of_a_value() {
    let lab = gated("tasks: [{id: a, context: {v: x}, call: {ok: {n: '${{ context.v }}'}}}]");
    let context = |value: &str| Map::from_iter([("context".to_owned(), json!({"v": value}))]);
    mcp(&lab).update("a", context("y"), None).unwrap();
    person(&lab).update("a", context("z"), None).unwrap();
    assert_eq!(lab.task("a").origins, None);
    person(&lab).undo(None).unwrap();
    let task = lab.task("a");
    assert_eq!((&task.metadata.context["v"], task.origins.unwrap().context["v"]), (&json!("y"), Origin::Mcp));
}

#[test]
fn a_task_for_persons_suggests_done_and_can_only_be_claimed_by_a_person() {
    let lab = Lab::new("tasks: [{id: m, assignee: person}]");
    let explained = lab.manager.explain("m", &Means::default()).unwrap();
    let text = serde_json::to_string(&explained).unwrap();
    assert!(text.contains("taskpawl done m") && !text.contains("taskpawl claim m"), "{text}");
    assert!(mcp(&lab).claim_next(std::time::Duration::from_secs(60)).is_err());
    assert_eq!(person(&lab).claim_next(std::time::Duration::from_secs(60)).unwrap().as_str(), "m");
}

#[test]
fn only_a_person_can_end_a_task_for_persons() {
    let lab = Lab::new("tasks: [{id: m, assignee: person}, {id: a, needs: m, call: {ok: {}}}]");
    let m = ["m".to_owned()];
    for (name, manager) in [("mcp", mcp(&lab)), ("program", lab.manager.clone())] {
        let call = NewCall { id: None, spec: serde_json::from_value(json!({"toolName": "ok"})).unwrap() };
        let answers = [
            manager.done(&m, Ending::default()).map(drop),
            manager.fail(&m, Ending::default()).map(drop),
            manager.skip(&m, None).map(drop),
            manager.cancel(&m, None).map(drop),
            manager.update("m", Map::from_iter([("assignee".to_owned(), Value::Null)]), None).map(drop),
            manager.update("m", Map::from_iter([("milestone".to_owned(), json!(true))]), None).map(drop),
            manager.add_tool_call("m", call).map(drop),
        ];
        for (number, answer) in answers.into_iter().enumerate() {
            let Err(taskpawl_manager::Error::Refused(refusal)) = answer else { panic!("{name} {number}") };
            assert!(matches!(*refusal, Refusal::PersonOnly { .. }), "{name} {number}: {refusal}");
        }
    }
    let refused = mcp(&lab).remove_dependency("a", "m").unwrap_err().to_string();
    assert!(refused.contains('m'), "{refused}");
    person(&lab).done(&m, Ending::default()).unwrap();
    assert_eq!(lab.task("m").status, Status::Done);
}
