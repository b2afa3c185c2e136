//! Short forms, defaults, and equality of JSON and YAML plans.

use serde_json::json;
use taskpawl_model::plan::{
    Plan, call_from_json, change_spec, expand_plan, parse_call, parse_plan, parse_task, read_plan,
    task_from_json,
};
use taskpawl_model::task::{Origin, Priority, TaskSpec, Trigger};
use taskpawl_model::value::TaskId;

use super::{plan, without_positions};

/// Returns the long form of the tasks, one per line, without common default values.
fn tasks(text: &str) -> String {
    let expanded = expand_plan(&plan(text));
    let line = |task: &serde_json::Value| {
        let mut task = task.as_object().expect("a task is an object").clone();
        task.retain(|key, value| {
            let is_default = value.as_array().is_some_and(Vec::is_empty)
                || *value == json!("")
                || *value == json!("medium");
            !(is_default || key == "metadata" && *value == json!({"context": {}, "toolCalls": []}))
        });
        json!(task).to_string()
    };
    expanded["tasks"].as_array().expect("tasks are a list").iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_and_tools_have_short_forms() {
    insta::assert_snapshot!(tasks(r#"
- {id: a, run: cargo test}
- {id: b, run: [cargo, test]}
- {id: c, call: {write_file: {path: x, content: "y"}}}
- {id: d, call: [{sleep: {duration: 1s}, id: pause}, {run: "true", timeout: 5s}, {log: }]}
- {id: e, toolCalls: [{toolName: exec, args: {argv: [ls]}, saveAs: files, x-colour: blue}]}
- {id: f, calls: {toolName: log}}
- {id: g, metadata: {toolCalls: [{run: ls}], context: {n: 1}, team: core}, x-ticket: 12}
"#), @r#"
    {"id":"a","metadata":{"context":{},"toolCalls":[{"args":{"command":"cargo test","shell":"sh"},"toolName":"shell"}]},"name":"a"}
    {"id":"b","metadata":{"context":{},"toolCalls":[{"args":{"argv":["cargo","test"]},"toolName":"exec"}]},"name":"b"}
    {"id":"c","metadata":{"context":{},"toolCalls":[{"args":{"content":"y","path":"x"},"toolName":"write_file"}]},"name":"c"}
    {"id":"d","metadata":{"context":{},"toolCalls":[{"args":{"duration":"1s"},"id":"pause","toolName":"sleep"},{"args":{"command":"true","shell":"sh"},"timeout":"5s","toolName":"shell"},{"args":{},"toolName":"log"}]},"name":"d"}
    {"id":"e","metadata":{"context":{},"toolCalls":[{"args":{"argv":["ls"]},"saveAs":"files","toolName":"exec","x-colour":"blue"}]},"name":"e"}
    {"id":"f","metadata":{"context":{},"toolCalls":[{"args":{},"toolName":"log"}]},"name":"f"}
    {"id":"g","metadata":{"context":{"n":1},"team":"core","toolCalls":[{"args":{"command":"ls","shell":"sh"},"toolName":"shell"}]},"name":"g","x-ticket":12}
    "#);
}

/// Returns the arguments of the first call of each task.
fn args(text: &str) -> Vec<serde_json::Value> {
    let plan = plan(text);
    plan.tasks.iter().filter_map(|task| Some(json!(task.calls.first()?.spec.args))).collect()
}

#[test]
fn defaults_for_programs_are_written_into_the_arguments_of_calls() {
    let text = "
defaults: {env: {A: '1', B: '1'}, cwd: sub, shell: bash, idempotent: true}
tasks:
- {id: a, run: x}
- {id: b, run: [x]}
- {id: c, env: {B: '2'}, cwd: null, shell: [zsh, -c], call: {run: x, env: {C: '3'}, cwd: own}}
- {id: d, env: null, cwd: null, shell: null, call: {shell: {command: x, shell: sh}}}
- {id: e, call: {log: {message: x}}}
- {id: f, shell: null, run: x, env: {A: '${{ attempt }}'}}
";
    assert_eq!(
        args(text),
        [
            json!({"command": "x", "cwd": "sub", "env": {"A": "1", "B": "1"}, "shell": "bash"}),
            json!({"argv": ["x"], "cwd": "sub", "env": {"A": "1", "B": "1"}}),
            json!({"command": "x", "cwd": "own", "env": {"C": "3", "B": "2", "A": "1"}, "shell": ["zsh", "-c"]}),
            json!({"command": "x", "shell": "sh"}),
            json!({"message": "x"}),
            json!({"command": "x", "cwd": "sub", "env": {"A": "${{ attempt }}", "B": "1"}, "shell": "sh"}),
        ]
    );
    let plan = plan(text);
    let idempotent = |task: usize| plan.tasks[task].calls[0].spec.idempotent;
    assert_eq!((idempotent(0), idempotent(4)), (Some(true), None));
    assert_eq!(parse_plan(&expand_plan(&plan).to_string()).unwrap().tasks[3].calls, plan.tasks[3].calls);
}

#[test]
fn wrong_programs_and_shells_are_refused() {
    for (text, said) in [
        ("- {id: a, run: ['cargo test', x]}", "must be the name of a program alone"),
        ("- {id: a, run: x, shell: zsh}", "`[zsh, -e, -c]`"),
        ("- {id: a, run: x, shell: []}", "must not be empty"),
        ("- {id: a, run: x, env: {A: 1}}", "put it in quotes"),
        ("- {id: a, run: x, env: [A]}", "an object"),
        ("- {id: a, run: x, env: {A: '${{ params.x }}'}}", "no parameter `x`"),
        ("{env: {A: x}, tasks: []}", "write it in `defaults`, or on a task"),
    ] {
        let error = parse_plan(text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn plain_text_is_a_manual_task() {
    insta::assert_snapshot!(tasks("- look at the report\n- {name: sign, needs: look at the report}\n"), @r#"
    {"name":"look at the report"}
    {"dependencies":["look at the report"],"name":"sign"}
    "#);
}

#[test]
fn options_have_short_forms() {
    insta::assert_snapshot!(tasks(r"
- {id: a, retry: 3, resources: gpu, writes: out, labels: [x, y], approval: required}
- {id: b, resources: [gpu, disk], dueDate: 2026-05-31, priority: high, needs: a}
- {id: c, resources: {gpu: 2}, dueDate: '2026-05-31T12:00:00+02:00', trigger: any_done, needs: [a, b, a]}
- {id: short, forEach: ['a', '${{ 1 }}'], run: x}
- {id: text, forEach: '${{ tasks.short.results }}', needs: short, run: x}
- {id: d, forEach: {in: [1, 2], concurrency: 2}, repeat: {until: attempt > 2, max: 3, delay: 90s}, mode: parallel, run: x}
- {id: e, approval: {ask: really?, options: ['yes', 'no'], expires: 2h}, cache: {inputs: src/*, key: attempt}}
- {id: f, retry: {attempts: 2, delay: 0.5s, factor: 2, maxDelay: 1m, jitter: true, retryOn: [timeout, 75]}}
- {id: g, sandbox: {net: true, read: /opt}, estimate: 5m, timeout: 1h, links: {relatesTo: a}, milestone: true}
"), @r#"
    {"approval":"required","id":"a","labels":["x","y"],"name":"a","resources":{"gpu":1},"retry":{"attempts":3},"writes":["out"]}
    {"dependencies":["a"],"dueDate":"2026-05-31T00:00:00Z","id":"b","name":"b","priority":"high","resources":{"disk":1,"gpu":1}}
    {"dependencies":["a","b"],"dueDate":"2026-05-31T10:00:00Z","id":"c","name":"c","resources":{"gpu":2},"trigger":"any_done"}
    {"forEach":{"in":["a","${{ 1 }}"]},"id":"short","metadata":{"context":{},"toolCalls":[{"args":{"command":"x","shell":"sh"},"toolName":"shell"}]},"name":"short"}
    {"dependencies":["short"],"forEach":{"in":"${{ tasks.short.results }}"},"id":"text","metadata":{"context":{},"toolCalls":[{"args":{"command":"x","shell":"sh"},"toolName":"shell"}]},"name":"text"}
    {"forEach":{"concurrency":2,"in":[1,2]},"id":"d","metadata":{"context":{},"toolCalls":[{"args":{"command":"x","shell":"sh"},"toolName":"shell"}]},"mode":"parallel","name":"d","repeat":{"delay":"90s","max":3,"until":"attempt > 2"}}
    {"approval":{"ask":"really?","expires":"2h","options":["yes","no"]},"cache":{"inputs":["src/*"],"key":"attempt"},"id":"e","name":"e"}
    {"id":"f","name":"f","retry":{"attempts":2,"delay":"500ms","factor":2.0,"jitter":true,"maxDelay":"1m","retryOn":["timeout",75]}}
    {"estimate":"5m","id":"g","links":{"relatesTo":["a"]},"milestone":true,"name":"g","sandbox":{"net":true,"read":["/opt"]},"timeout":"1h"}
    "#);
}

#[test]
fn subtasks_are_nested_or_listed_and_follow_their_parent() {
    let plan = plan(
        r"
- id: last
- id: c
- id: a
  subtasks: [{name: in place, subtasks: [c]}, b]
- {id: b, needs: [c, elsewhere, in place]}
",
    );
    let line = |task: &taskpawl_model::plan::PlanTask| {
        format!(
            "{} parent {:?} needs {:?} outside {:?}",
            task.spec.name, task.parent, task.needs, task.needs_outside
        )
    };
    insta::assert_snapshot!(plan.tasks.iter().map(line).collect::<Vec<_>>().join("\n"), @r#"
    last parent None needs [] outside []
    a parent None needs [] outside []
    in place parent Some(1) needs [] outside []
    c parent Some(2) needs [] outside []
    b parent Some(1) needs [3, 2] outside ["elsewhere"]
    "#);
}

#[test]
fn yaml_1_1_booleans_are_text() {
    let plan = plan("- {id: no, name: on, assignee: y, labels: [yes, off]}\n");
    let task = &plan.tasks[0];
    assert_eq!(task.id.as_ref().map(TaskId::as_str), Some("no"));
    assert_eq!((task.spec.name.as_str(), task.spec.assignee.as_deref()), ("on", Some("y")));
    assert_eq!(task.spec.labels, ["yes", "off"]);
}

#[test]
fn defaults_apply_unless_a_task_overrides_them() {
    insta::assert_snapshot!(tasks(r"
defaults: {priority: high, retry: 2, labels: x, trigger: any_failed, timeout: 5m, x-colour: blue}
tasks:
- id: a
- {id: b, needs: a, retry: {attempts: 5}, labels: [], timeout: null}
- {id: c, needs: a, trigger: all_done, priority: null, x-colour: red}
- by hand
"), @r#"
    {"id":"a","labels":["x"],"name":"a","priority":"high","retry":{"attempts":2},"timeout":"5m","trigger":null,"x-colour":"blue"}
    {"dependencies":["a"],"id":"b","labels":null,"name":"b","priority":"high","retry":{"attempts":5},"timeout":null,"trigger":"any_failed","x-colour":"blue"}
    {"dependencies":["a"],"id":"c","labels":["x"],"name":"c","retry":{"attempts":2},"timeout":"5m","trigger":"all_done","x-colour":"red"}
    {"labels":["x"],"name":"by hand","priority":"high","retry":{"attempts":2},"timeout":"5m","trigger":null,"x-colour":"blue"}
    "#);
}

#[test]
fn json_and_yaml_parse_to_the_same_plan() {
    let json = r#"{
	"version": 1, "name": "both", "params": {"dir": {"type": "string", "default": "\/tmp"}},
	"tasks": [
		{"id": "a", "name": "caf\u00e9 \ud83d\ude00", "context": {"big": 18446744073709551615, "small": -9223372036854775808,
			"float": 1.5e-3, "list": [true, null, ""]}},
		{"id": "b", "dependencies": ["a"], "milestone": true}
	]
}"#;
    let yaml = r"
version: 1
name: both
params:
  dir: {type: string, default: /tmp}
tasks:
- id: a
  name: café 😀
  context:
    big: 18446744073709551615
    small: -9223372036854775808
    float: 0.0015
    list:
    - true
    - ~
    - ''
- id: b
  needs: a
  milestone: true
";
    assert_eq!(plan(json), plan(yaml));
    assert_eq!(plan(yaml), plan(&yaml.replace('\n', "\r\n")));
    assert_eq!(plan(yaml), plan(&format!("\u{feff}{yaml}")));
}

#[test]
fn json_may_contain_characters_that_yaml_escapes() {
    for character in
        ('\u{7f}'..='\u{a0}').chain(['\u{2028}', '\u{feff}', '\u{fffe}', '\u{ffff}', '\u{10ffff}'])
    {
        let name = format!("x{character}y");
        assert_eq!(plan(&json!([{"name": name}]).to_string()).tasks[0].spec.name, name);
    }
}

#[test]
fn multi_line_texts_keep_their_lines() {
    let plan = plan("- id: a\n  run: |\n    set -e\n    make\n  description: >\n    one\n    line\n");
    assert_eq!(plan.tasks[0].calls[0].spec.args["command"], "set -e\nmake\n");
    assert_eq!(plan.tasks[0].spec.description, "one line\n");
}

#[test]
fn tasks_record_their_position() {
    let plan = parse_plan("tasks:\n- id: a\n  subtasks:\n  - id: b\n").unwrap();
    let places: Vec<String> = plan.tasks.iter().map(|task| task.at.to_string()).collect();
    assert_eq!(places, ["line 2, column 3", "line 4, column 5"]);
}

#[test]
fn author_fields_are_preserved() {
    let text = "x-owner: {team: x}\ndescription: all\ntasks:\n- {id: a, x-ticket: [1, {k: null}], call: {run: x, x-shard: 2}}\n";
    let plan = plan(text);
    assert_eq!(plan.extra["x-owner"], json!({"team": "x"}));
    assert_eq!(plan.extra["description"], "all");
    assert_eq!(plan.tasks[0].spec.extra["x-ticket"], json!([1, {"k": null}]));
    assert_eq!(plan.tasks[0].calls[0].spec.extra["x-shard"], 2);
}

#[test]
fn tool_names_are_told_from_author_fields() {
    let of = |call: &str| {
        let plan = parse_plan(&format!("tasks: [{{id: a, call: {call}}}]")).unwrap();
        let spec = &plan.tasks[0].calls[0].spec;
        format!("{} {}", spec.tool_name, serde_json::to_string(&spec.extra).unwrap())
    };
    assert_eq!(of("{log: {message: x}, x-note: {a: 1}}"), r#"log {"x-note":{"a":1}}"#);
    assert_eq!(of("{x-tool: {a: 1}}"), "x-tool {}", "a tool may have this name");
    assert_eq!(of("{x-tool: {a: 1}, timeout: 5s}"), "x-tool {}");
}

#[test]
fn read_plan_keeps_unknown_fields_and_records_their_positions() {
    let text = "owner: x\ndefaults: {team: y}\ntasks:\n- {id: a, run: x}\n- {id: b, ticket: 1, subtasks: [{id: c, x-own: 1, call: {toolName: log, shard: 2}}]}\n";
    let plan = read_plan(text).unwrap();
    assert_eq!((&plan.extra["owner"], &plan.tasks[1].spec.extra["ticket"]), (&json!("x"), &json!(1)));
    assert_eq!(plan.tasks[2].calls[0].spec.extra["shard"], 2);
    let places = |errors: &[taskpawl_model::plan::PlanError]| {
        errors.iter().map(|error| format!("{} {}", error.at, error.path)).collect::<Vec<_>>().join("; ")
    };
    let noted: Vec<String> = plan.tasks.iter().map(|task| places(&task.unknown)).collect();
    assert_eq!(places(&plan.unknown), "line 2, column 12 defaults.team; line 1, column 1 owner");
    assert_eq!(
        noted,
        ["", "line 5, column 11 tasks[1].ticket", "line 5, column 73 tasks[1].subtasks[0].call.shard"]
    );
    let all = plan.refuse_unknown().unwrap_err();
    assert_eq!(all, parse_plan(text).unwrap_err(), "the same errors as without a store");
    let errors = read_plan(&text.replace("run: x", "run: 5")).unwrap_err();
    assert_eq!(errors.errors().len(), 5, "all errors of an invalid plan are reported at once: {errors}");
}

#[test]
fn empty_plan_is_valid() {
    for text in ["[]", "tasks: []", "tasks:\n", "{\"tasks\": []}"] {
        assert_eq!(plan(text), Plan { version: 1, ..Plan::default() }, "{text}");
    }
}

#[test]
fn single_tasks_and_calls_parse() {
    let task = parse_task("id: a\nneeds: [b, c, b]\nrun: make\n").unwrap();
    assert_eq!(task.needs_outside, [TaskId::from("b"), TaskId::from("c")]);
    let same = task_from_json(&json!({"id": "a", "dependencies": ["b", "c"], "run": "make"})).unwrap();
    assert_eq!(taskpawl_model::plan::PlanTask { at: same.at, ..task }, same);

    let call = parse_call("{run: make, timeout: 5s}").unwrap();
    assert_eq!(
        call,
        call_from_json(&json!({"toolName": "shell", "args": {"command": "make"}, "timeout": "5s"})).unwrap()
    );
    assert_eq!(Origin::Plan.to_string(), "plan");
}

#[test]
fn change_spec_changes_only_the_given_fields() {
    let spec = parse_task("{name: a, priority: high, timeout: 5s, metadata: {k: 1}, trigger: all_done}")
        .unwrap()
        .spec;
    let fields = json!({"timeout": null, "retry": 2, "metadata": {"l": 2}, "x-team": "x"});
    let changed = change_spec(&spec, fields.as_object().unwrap()).unwrap();
    let expected = TaskSpec {
        name: "a".to_owned(),
        priority: Priority::High,
        trigger: Some(Trigger::AllDone),
        retry: parse_task("{name: a, retry: 2}").unwrap().spec.retry.clone(),
        metadata: json!({"l": 2}).as_object().unwrap().clone(),
        extra: json!({"x-team": "x"}).as_object().unwrap().clone(),
        ..TaskSpec::default()
    };
    assert_eq!(changed, expected);
}

#[test]
fn positions_can_be_ignored() {
    assert_eq!(without_positions(parse_plan("- a").unwrap()), plan("[a]"));
}

#[test]
fn merged_tasks_may_be_named_by_their_names() {
    let plan = plan(
        "tasks: [{name: Other one, worktree: true, run: x}, {id: a, worktree: true, run: x}, \
         {id: m, needs: [Other one, a], call: {merge: {of: [Other one, a]}}}]",
    );
    let names: Vec<_> = plan.tasks[2].names.iter().map(|(name, other)| (name.as_str(), *other)).collect();
    assert_eq!(names, [("Other one", 0), ("a", 1)]);
}
