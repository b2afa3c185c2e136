//! Plans that include others.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::plan::{
    IncludeError, IncludedText, Plan, PlanFiles, expand_plan, parse_plan, plan_from_json, read_plan_file,
    task_from_json,
};

use super::without_positions;

/// Plan files in memory, of which the plan itself is `main`.
#[derive(Debug, Default)]
struct Files(BTreeMap<&'static str, String>);

impl Files {
    fn of(files: &[(&'static str, &str)]) -> Self {
        Self(files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect())
    }
}

impl PlanFiles for Files {
    fn file(&self) -> Option<String> {
        Some("main".to_owned())
    }

    fn read(&self, name: &str, _by: Option<&str>) -> Result<IncludedText, IncludeError> {
        let file = name.to_owned();
        match self.0.get(name) {
            Some(text) => Ok(IncludedText { file, text: text.clone() }),
            None => Err(IncludeError::Missing { file }),
        }
    }
}

const CHECK: &str = "
params:
  package: {type: string}
  rounds: {type: integer, default: 2}
defaults: {retry: 3, env: {LEVEL: high}}
tools: [inspect]
requires: {env: [TOKEN]}
tasks:
- {id: lint, when: params.rounds > 1, run: 'lint ${{ params.package }}'}
- id: all
  needs: lint
  subtasks:
  - {id: test, forEach: '${{ range(params.rounds) }}', run: 'test ${{ tasks.lint.result.stdout }}'}
returns: {of: '${{ params.package }}', code: '${{ tasks.lint.result.exitCode }}'}
";

fn included(main: &str, files: &[(&'static str, &str)]) -> Plan {
    read_plan_file(main, &Files::of(files)).unwrap_or_else(|errors| panic!("{errors}\n{main}"))
}

/// Returns the tasks of the long form by id.
fn tasks(plan: &Plan) -> BTreeMap<String, Value> {
    let expanded = expand_plan(plan);
    let tasks = expanded["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (task["id"].as_str().unwrap().to_owned(), task.clone())).collect()
}

fn args<'t>(tasks: &'t BTreeMap<String, Value>, id: &str) -> &'t Value {
    &tasks[id]["metadata"]["toolCalls"][0]["args"]
}

/// Returns all errors of a plan with files.
fn refused(main: &str, files: &[(&'static str, &str)]) -> String {
    let errors = read_plan_file(main, &Files::of(files)).expect_err(main);
    errors.errors().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn included_tasks_are_subtasks_with_ids_of_their_own() {
    let main = "
defaults: {timeout: 5m}
tasks:
- {id: lint, run: echo x}
- id: a
  needs: lint
  include: {file: check, with: {package: '${{ tasks.lint.result.stdout }}'}}
- {id: b, include: {file: check, with: {package: it's, rounds: 1}}, timeout: null}
- {id: end, needs: [a, b.test], run: 'echo ${{ tasks.a.result.of }} ${{ tasks[''b.test''].status }}'}
";
    let plan = included(main, &[("check", CHECK)]);
    let all = tasks(&plan);
    assert_eq!(
        all.keys().map(String::as_str).collect::<Vec<_>>(),
        ["a", "a.all", "a.lint", "a.test", "b", "b.all", "b.lint", "b.test", "end", "lint"]
    );
    assert_eq!(
        (&all["a"]["subtasks"], &all["a.all"]["subtasks"]),
        (&json!(["a.lint", "a.all"]), &json!(["a.test"]))
    );
    assert_eq!(
        (&all["a.all"]["dependencies"], &all["a"]["dependencies"]),
        (&json!(["a.lint"]), &json!(["lint"]))
    );
    // The names of the included plan mean its own tasks, and those of `with` mean tasks of the plan.
    assert_eq!(
        args(&all, "a.lint")["command"],
        "lint ${{ ((tasks.lint.result.stdout) | typed('string', 'package')) }}"
    );
    assert_eq!(args(&all, "a.test")["command"], "test ${{ tasks['a.lint'].result.stdout }}");
    assert_eq!(args(&all, "b.lint")["command"], "lint ${{ 'it\\'s' }}");
    assert_eq!(
        (&all["a.lint"]["when"], &all["b.test"]["forEach"]["in"]),
        (&json!("(2) > 1"), &json!("${{ range((1)) }}"))
    );
    assert_eq!(
        *args(&all, "a"),
        json!({"value": {"of": "${{ ((tasks.lint.result.stdout) | typed('string', 'package')) }}", "code": "${{ tasks['a.lint'].result.exitCode }}"}})
    );
    // The defaults of each plan hold for its own tasks.
    assert_eq!((&all["a.lint"]["timeout"], &all["end"]["timeout"]), (&json!(null), &json!("5m")));
    assert_eq!((&all["a.lint"]["retry"]["attempts"], &all["lint"]["retry"]), (&json!(3), &json!(null)));
    assert_eq!(args(&all, "a.lint")["env"], json!({"LEVEL": "high"}));
    assert_eq!(
        (plan.tools.as_slice(), plan.requires.env.as_slice()),
        (&["inspect".to_owned()][..], &["TOKEN".to_owned()][..])
    );
    // A task of an included plan knows both of its places.
    let lint =
        plan.tasks.iter().find(|task| task.id.as_ref().is_some_and(|id| id.as_str() == "a.lint")).unwrap();
    assert_eq!((lint.at.line, lint.place()), (7, "check:9:3: task `a.lint`".to_owned()));
}

#[test]
fn the_long_form_parses_to_the_same_plan() {
    let main = "
resources: {db: 1}
tasks:
- {id: lint, run: x}
- {id: a, needs: lint, include: {file: outer, with: {text: '<${{ tasks.lint.result }}>'}}}
- {id: b, needs: a, run: 'echo ${{ tasks.a.result }} ${{ tasks[''a.in''].result.of }}'}
";
    let outer = "
params: {text: {type: string}}
resources: {db: 4}
defaults: {resources: db, labels: inner}
tasks:
- {id: lint, run: 'x ${{ params.text }}'}
- {id: in, needs: lint, include: {file: check, with: {package: '${{ params.text ~ tasks.lint.result }}'}}}
returns: '${{ tasks.in.result.of }}'
";
    let plan = included(main, &[("outer", outer), ("check", CHECK)]);
    let all = tasks(&plan);
    assert_eq!(
        args(&all, "a.in.lint")["command"],
        "lint ${{ (('<' ~ (tasks.lint.result) ~ '>') ~ tasks['a.lint'].result) }}"
    );
    let mut expected = without_positions(plan.clone());
    expected.tasks.iter_mut().for_each(|task| task.included = None);
    let again = parse_plan(&expand_plan(&plan).to_string()).unwrap();
    assert_eq!(without_positions(again), expected);
}

#[test]
fn tasks_that_are_named_outside_of_expressions_are_renamed() {
    let inner = "
tasks:
- {id: code, worktree: true, run: x, links: {relatesTo: [docs, far]}}
- {id: docs, worktree: true, run: x, description: docs}
- {id: merge, needs: [code, docs], call: {merge: {of: [code, docs, other]}}}
- {id: use, needs: docs, run: 'echo ${{ tasks.docs.result | raw }}', trustInputs: [docs]}
";
    let all = tasks(&included("tasks: [{id: a, include: inner}, {id: docs, run: x}]", &[("inner", inner)]));
    assert_eq!(args(&all, "a.merge")["of"], json!(["a.code", "a.docs", "other"]));
    assert_eq!(all["a.code"]["links"]["relatesTo"], json!(["a.docs", "far"]));
    assert_eq!(all["a.use"]["trustInputs"], json!(["a.docs"]));
    assert_eq!(
        (&all["a.docs"]["description"], &all["a"]["metadata"]["toolCalls"]),
        (&json!("docs"), &json!([]))
    );
}

#[test]
fn parameters_of_included_plans_are_checked() {
    let with = |with: &str| {
        let main = format!(
            "params: {{n: {{type: integer}}, s: {{type: string}}}}\ntasks:\n- {{id: x, run: x}}\n- {{id: a, needs: x, include: {{file: check, with: {{{with}}}}}}}"
        );
        refused(&main, &[("check", CHECK)])
    };
    insta::assert_snapshot!(
        [
            "",
            "package: 1",
            "package: x, round: 2",
            "pakage: x",
            "package: x, rounds: '${{ tasks.x.result.stdout | trim }}'",
            "package: '${{ tasks.x.result.stdout | lines }}'",
            "package: x, rounds: two",
            "package: x, rounds: '${{ params.s }}'",
            "package: x, rounds: 'n ${{ params.n }}'",
            "package: [x]",
            "package: '${{ params.n }}'",
            "package: '${{ params.z }}'",
            "package: '${{ tasks.y.result }}'",
            "package: '${{ tasks.a.result }}'",
            "package: '${{ tasks[''a.lint''].result }}'",
            "package: '${{ context.x }}'",
            "package: '${{ env.HOME }}'",
            "package: '${{ x + }}'",
            "package: '${secret:KEY}'",
        ]
        .map(|text| format!("# {text}\n{}", with(text)))
        .join("\n\n")
    );
    included(
        "params: {n: {type: integer}}\ntasks: [{id: a, include: {file: check, with: {package: '${{ params.n ~ 1 }}', rounds: '${{ params.n }}'}}}]",
        &[("check", CHECK)],
    );
}

#[test]
fn faulty_includes_are_refused_with_the_places_of_both_files() {
    let one = |include: &str| format!("tasks:\n- {{id: a, include: {include}}}");
    let plan = |inner: &'static str| refused(&one("inner"), &[("inner", inner)]);
    insta::assert_snapshot!(
        [
            ("a missing file", refused(&one("none"), &[])),
            (
                "a missing file of which other tasks use more",
                refused(
                    "- {id: a, include: none}\n- {id: b, needs: a.x, run: 'echo ${{ tasks[''a.x''].result }} ${{ tasks.a.result }}'}",
                    &[],
                ),
            ),
            ("a misspelt field", refused("- {id: a, include: {file: inner, wiht: {n: 1}}}", &[("inner", "{params: {n: {type: integer}}, tasks: [{id: x}]}")])),
            ("no file", refused(&one("{with: {}}"), &[])),
            ("another type", refused(&one("[x]"), &[])),
            ("no id", refused("- {name: a b, include: inner}", &[("inner", "- {id: a}")])),
            ("no YAML", plan("tasks: [")),
            ("errors", plan("tasks:\n- {id: x, run: 'a ${{ params.p }}', timeout: 1}\n- {id: x}")),
            ("no tasks", plan("tasks: []")),
            ("no ids", plan("- {name: by name, run: x}\n- text")),
            ("tasks from outside", plan("- {id: x, needs: far, run: x}")),
            ("fields of runs", plan("timeout: 1h\nbudget: {calls: 1}\nmaxFailures: 1\nnotify: [x]\ntasks: [{id: x}]")),
            ("a capacity", plan("resources: {db: 2}\ntasks: [{id: x, resources: {db: 2}, run: x}]")),
            (
                "too much of a resource",
                refused(
                    "resources: {db: 1}\ntasks: [{id: a, include: inner}]",
                    &[("inner", "- {id: x, resources: {db: 2}, run: x}")],
                ),
            ),
            ("a long id", plan("- {id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}")),
            ("a taken id", refused("- {id: a, include: inner}\n- {id: a.x}", &[("inner", "- {id: x}")])),
            ("a returned name", plan("tasks: [{id: x}]\nreturns: ['${{ tasks.y.result }}', '${{ context.z }}', '${{ params.p }}']")),
            ("beside calls", refused("- {id: a, run: x, include: inner}\n- {id: b, include: inner, subtasks: [c]}\n- c", &[("inner", "- {id: x}")])),
            ("a cycle", refused("- {id: a, needs: b, include: inner}\n- {id: b, needs: a.x}", &[("inner", "- {id: x}")])),
            ("itself", refused(&one("main"), &[("main", "- {id: x}")])),
            ("a circle", refused(&one("one"), &[("one", "- {id: x, include: two}"), ("two", "- {id: x}\n- {id: y, include: one}")])),
        ]
        .map(|(label, text)| format!("# {label}\n{text}"))
        .join("\n\n")
    );
}

#[test]
fn depth_and_size_are_limited() {
    let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"];
    let chain = |last: usize| -> Vec<(&'static str, String)> {
        let file = |level: usize| {
            if level == last {
                "- {id: x, run: x}".to_owned()
            } else {
                format!("- {{id: x, include: f{}}}", level + 1)
            }
        };
        names.iter().enumerate().map(|(level, name)| (*name, file(level))).collect()
    };
    let read = |files: &[(&'static str, String)]| {
        let files = Files(files.iter().cloned().collect());
        read_plan_file("- {id: m, include: f0}", &files)
    };
    let plan = read(&chain(7)).unwrap();
    assert_eq!(plan.tasks.last().unwrap().id.as_ref().unwrap().as_str(), "m.x.x.x.x.x.x.x.x");
    let error = read(&chain(8)).unwrap_err().to_string();
    assert!(error.contains("more than 8 deep") && error.contains("f7:1:11"), "{error}");
    // Ten plans of ten plans each: the tasks are counted before they are made.
    let files = |level: usize| -> String {
        let tasks = (0..10).map(|number| format!("- {{id: t{number}, include: f{level}}}"));
        tasks.collect::<Vec<_>>().join("\n")
    };
    let wide: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(level, name)| (*name, if level == 6 { "- {id: x}".to_owned() } else { files(level + 1) }))
        .collect();
    let error = read(&wide).unwrap_err().to_string();
    assert!(error.contains("has more than 10000"), "{error}");
}

#[test]
fn texts_without_a_file_include_nothing() {
    let text = "- {id: a, include: {file: x}}";
    let error = parse_plan(text).unwrap_err().to_string();
    assert!(error.contains("`include` is for plan files"), "{error}");
    let task = json!({"id": "a", "include": "x"});
    assert!(task_from_json(&task).is_err() && plan_from_json(&json!([task])).is_err());
    // The value that a plan returns has no effect on itself.
    let plan = parse_plan("{tasks: [{id: a, run: x}], returns: {x: '${{ tasks.a.result }}'}}").unwrap();
    assert_eq!((plan.tasks.len(), plan.tasks[0].calls.len()), (1, 1));
    assert_eq!(expand_plan(&plan)["returns"], json!({"x": "${{ tasks.a.result }}"}));
}
