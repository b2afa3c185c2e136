//! Ends of runs: exit codes, summaries, scopes, and runs of a single task.

use taskpawl_engine::RunOptions;
use taskpawl_manager::Ending;

use crate::support::{Lab, within};

#[tokio::test]
async fn the_exit_code_reflects_the_status_of_the_scope() {
    let cases = [
        ("tasks: [{id: a, call: {ok: {}}}, {id: m, milestone: true, needs: [a]}]", 0),
        ("tasks: [{id: a, call: {ok: {}}}, {id: b, needs: [a], trigger: any_failed, call: {ok: {}}}]", 0),
        ("tasks: [{id: a, call: {bad: {}}}, {id: m}]", 1),
        ("tasks: [{id: m}, {id: b, needs: [m], call: {ok: {}}}]", 3),
        ("tasks: [{id: a, call: {nobody: {}}}]", 4),
        ("tasks: [{id: a, call: {nobody: {}}}, {id: m}]", 4),
    ];
    for (plan, exit) in cases {
        let lab = Lab::new(plan);
        let summary = lab.run().await;
        assert_eq!(summary.exit, exit, "{plan}: {}", lab.states());
    }
}

#[tokio::test]
async fn tasks_blocked_or_cancelled_by_hand_affect_the_exit_code() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}, {id: b, needs: [a], call: {ok: {}}}]");
    lab.manager.block(&["a".to_owned()], "not now").unwrap();
    let summary = lab.run().await;
    assert_eq!((summary.exit, summary.blocked[0].reason.as_str()), (4, "blocked by hand: not now"));
    lab.manager.cancel(&["a".to_owned()], None).unwrap();
    assert_eq!(lab.states(), "a=cancelled b=blocked{dependency}");
    let summary = lab.run().await;
    assert_eq!((summary.exit, summary.blocked[0].task.as_str()), (4, "b"));
    assert_eq!(summary.blocked[0].reason, "cannot start because of `a`: cancelled");
    assert_eq!(summary.blocked[0].commands, ["taskpawl history a", "taskpawl retry a"]);
    assert_eq!(
        summary.next_actions,
        ["taskpawl explain b", "taskpawl history a", "taskpawl retry a"],
        "the summary suggests how to unblock it"
    );
}

#[tokio::test]
async fn tasks_blocked_by_a_failure_are_not_listed_as_blocked() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {bad: {}}}, {id: b, needs: a, call: {ok: {}}}, {id: s, when: 'false', call: {ok: {}}},
                 {id: t, needs: s, trigger: any_done, call: {ok: {}}}]",
    );
    let summary = lab.run().await;
    assert_eq!((summary.exit, summary.failures[0].blocks), (1, 1));
    let blocked: Vec<&str> = summary.blocked.iter().map(|task| task.task.as_str()).collect();
    assert_eq!(blocked, ["t"]);
    assert_eq!(
        summary.blocked[0].reason,
        "cannot start because of `s`: skipped: its condition does not hold: false"
    );
}

#[tokio::test]
async fn failures_without_a_call_have_their_own_class() {
    let cases = [
        ("when: 'tasks.x.result.n > 1', call: {ok: {}}", "expression", "taskpawl explain a"),
        ("forEach: {in: tasks.x.result.key}, call: {ok: {}}", "expression", "taskpawl explain a"),
        ("repeat: {until: 'false', max: 2}, call: {ok: {}}", "rounds", "taskpawl logs a"),
        ("repeat: {until: 'tasks.x.result.n > 1', max: 2}, call: {ok: {}}", "expression", "taskpawl logs a"),
    ];
    for (fields, class, look) in cases {
        let lab = Lab::new(&format!("tasks: [{{id: x, call: {{ok: {{}}}}}}, {{id: a, needs: x, {fields}}}]"));
        let summary = lab.run().await;
        let group = &summary.failures[0];
        assert_eq!((summary.exit, group.tool.as_str(), group.class.as_str()), (1, "", class), "{fields}");
        assert_eq!(summary.next_actions[0], look, "{fields}: {:?}", group.tasks);
    }
    let lab = Lab::new("tasks: [{id: a, when: 'true'}]");
    let note = Some("`when`: I said so".to_owned());
    lab.manager.fail(&["a".to_owned()], Ending { note, ..Ending::default() }).unwrap();
    assert_eq!(lab.run().await.failures[0].class, "reported");
}

#[tokio::test]
async fn a_command_is_suggested_for_each_waiting_task() {
    let lab = Lab::new(
        "tasks: [{id: m}, {id: n}, {id: q, call: {ok: {}}, approval: required},
                 {id: r, call: {ok: {}}, approval: {ask: Which?, options: [x, y]}}, {id: s}, {id: t}]",
    );
    let summary = lab.run().await;
    assert_eq!(summary.waiting[0].commands, ["taskpawl claim m", "taskpawl done m"]);
    assert_eq!(
        summary.next_actions,
        [
            "taskpawl claim m",
            "taskpawl claim n",
            "taskpawl claim s",
            "taskpawl claim t",
            "taskpawl approve q",
            "taskpawl run-all-ready"
        ]
    );
    let alone = lab.run_only("m").await;
    assert_eq!(
        alone.next_actions,
        ["taskpawl show m", "taskpawl claim m", "taskpawl done m", "taskpawl run-all-ready --only m"]
    );
}

#[tokio::test]
async fn after_a_limit_another_run_is_suggested() {
    let lab = Lab::new("budget: {calls: 1}\ntasks: [{id: a, call: {ok: {}}}, {id: b, call: {ok: {}}}]");
    let summary = lab.run_only("plan:p").await;
    assert_eq!((lab.states(), summary.exit), ("a=done b=todo".into(), 4));
    assert_eq!(summary.next_actions, ["taskpawl run-all-ready --only plan:p"]);
}

#[tokio::test]
async fn a_task_with_a_missing_tool_stays_todo_and_is_reported() {
    let lab =
        Lab::new("tasks: [{id: a, calls: [{toolName: ok}, {toolName: nobody}]}, {id: b, call: {ok: {}}}]");
    let summary = lab.run().await;
    assert_eq!((lab.states(), lab.starts()), ("a=todo b=done".into(), "b/c1:1".into()));
    assert_eq!(
        (summary.not_run[0].task.as_str(), summary.not_run[0].reason.as_str()),
        ("a", "no tool `nobody` here")
    );
}

#[tokio::test]
async fn execute_task_blocks_until_the_dependencies_are_finished() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}, {id: b, needs: [a], call: {ok: {}}}, {id: m}]");
    let summary = within(lab.engine.execute_task("b", RunOptions::default())).await.unwrap();
    assert_eq!((lab.states(), summary.exit), ("a=todo b=blocked{waiting} m=todo".into(), 4));
    assert_eq!(summary.blocked[0].reason, "waits for `a`");
    let summary = within(lab.engine.execute_task("a", RunOptions::default())).await.unwrap();
    assert_eq!((lab.states(), summary.exit), ("a=done b=todo m=todo".into(), 0));
    let summary = within(lab.engine.execute_task("b", RunOptions::default())).await.unwrap();
    assert_eq!((lab.states(), summary.exit), ("a=done b=done m=todo".into(), 0));
    let error = within(lab.engine.execute_task("m", RunOptions::default())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "task `m` has neither tool calls nor subtasks, so `run` does not apply to it"
    );
}

#[tokio::test]
async fn execute_task_with_a_missing_tool_can_be_repeated() {
    let lab = Lab::new("tasks: [{id: a, call: {nobody: {}}}]");
    let summary = within(lab.engine.execute_task("a", RunOptions::default())).await.unwrap();
    assert_eq!((lab.states(), summary.exit), ("a=blocked{missing_tool}".into(), 4));
    let again = within(lab.engine.execute_task("a", RunOptions::default())).await.unwrap();
    assert_eq!((lab.states(), again.exit), ("a=blocked{missing_tool}".into(), 4));
}

#[tokio::test]
async fn a_run_only_executes_its_scope() {
    let lab = Lab::new(
        "tasks: [{id: a, labels: [x], call: {ok: {}}}, {id: b, call: {bad: {}}}, {id: l, labels: [x], subtasks: [{id: m, call: {ok: {}}}]}, {id: p, subtasks: [{id: s, call: {ok: {}}}]}]",
    );
    lab.apply("tasks: [{id: q1, call: {ok: {}}}, {id: q2, needs: [q1], call: {ok: {}}}]", "q");
    let summary = lab.run_only("plan:q").await;
    assert_eq!((summary.exit, lab.starts()), (0, "q1/c1:1 q2/c1:1".into()));
    assert_eq!(summary.counts["done"], 2);
    let summary = lab.run_only("a").await;
    assert_eq!(
        (summary.exit, lab.states()),
        (0, "a=done b=todo l=todo m=todo p=todo s=todo q1=done q2=done".into())
    );
    lab.run_only("label:x").await;
    assert_eq!(
        lab.states(),
        "a=done b=todo l=done m=done p=todo s=todo q1=done q2=done",
        "a label includes the subtasks"
    );
    lab.run_only("p").await;
    assert_eq!(
        lab.states(),
        "a=done b=todo l=done m=done p=done s=done q1=done q2=done",
        "an id includes the subtasks"
    );
    assert_eq!(lab.run_only("plan:p").await.exit, 1);
}

#[tokio::test]
async fn an_empty_plan_succeeds_and_an_empty_scope_is_refused() {
    let lab = Lab::new("tasks: []");
    assert_eq!(lab.run().await.exit, 0);
    let only = vec!["nobody".parse().unwrap()];
    let error =
        within(lab.engine.run_all_ready(RunOptions { only, ..RunOptions::default() })).await.unwrap_err();
    assert_eq!(error.to_string(), "no task `nobody`");
}
