//! The check of a plan before it is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl::model::advice::Hint;
use taskpawl::model::task::Origin;
use taskpawl::tools::{ConfiguredSecrets, LayerKind, Policy, SecretFrom};
use taskpawl::{CheckOptions, CheckSeverity, MAX_PROBLEMS, PlanCheck, RunVariables, Taskpawl};

fn check_by(plans: &Taskpawl, origin: Origin, text: &str) -> PlanCheck {
    let explain = |name: &str| (name != "server/tool").then(|| Hint::new("no such tool"));
    let variables = RunVariables::default();
    plans
        .blocking()
        .check_text(text, CheckOptions { origin, variables: &variables, explain: &explain, files: None })
        .unwrap()
}

/// Returns problems as `LINE:COLUMN severity code path: message`.
fn lines(found: &PlanCheck) -> Vec<String> {
    let line = |problem: &taskpawl::CheckProblem| {
        let (at, severity) = (problem.at, problem.severity.as_str());
        format!("{}:{} {severity} {} {}: {}", at.line, at.column, problem.code, problem.path, problem.message)
    };
    found.problems.iter().map(line).collect()
}

fn problems(text: &str) -> Vec<String> {
    lines(&check_by(&Taskpawl::open(":memory:").unwrap(), Origin::Plan, text))
}

#[test]
fn every_stage_reports_its_problems_at_once() {
    let text = "tasks:
- {id: a, run: ls, dependson: [b]}
- {id: b, timeout: soon, run: ls}
- {id: c, needs: [d], run: ls}
- {id: d, needs: [c], run: ls}
- {id: f, needs: [nope], run: ls}
- {id: g, call: {write_fil: {path: out.txt, content: x}}}
- {id: h, call: {write_file: {pth: out.txt}}}
- {id: i, call: {read_file: {path: ../x}}}
- {id: j, call: {http_request: {url: 'http://127.0.0.1/'}}}
- {id: k, run: [no-such-program]}
";
    let found = problems(text);
    let codes: Vec<String> =
        found.iter().map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        codes,
        [
            "2:20 error unknown_field tasks[0].dependson:",
            "3:20 error period tasks[1].timeout:",
            "4:19 error cycle tasks[2].needs[0]:",
            "6:19 error unknown_task tasks[4].needs[0]:",
            "7:18 error unknown_tool tasks[5].call.write_fil:",
            "8:31 error invalid_args tasks[6].call.write_file.pth:",
            "9:30 error outside_root tasks[7].call.read_file.path:",
            "10:33 error blocked_address tasks[8].call.http_request.url:",
            "11:17 warning missing_program tasks[9].run[0]:",
        ]
    );
    assert!(found[5].ends_with("`pth` is not a known field; did you mean `path`?"), "{}", found[5]);
}

#[test]
fn faults_of_tools_have_the_position_of_the_argument() {
    let found = problems(
        "
- id: a
  calls:
    - write_file:
        path: ok.txt
        content: 5
    - toolName: exec
      args:
        argv: [ls, 7]
    - {toolName: nope}
    - read_file: {}
- id: b
  call: {http_request: {url: 'https://example.org', saveTo: /etc/x}}
",
    );
    let places: Vec<&str> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "6:9 error invalid_args [0].calls[0].write_file.content",
            "9:20 error invalid_args [0].calls[1].args.argv[1]",
            "10:18 error unknown_tool [0].calls[2].toolName",
            "11:18 error invalid_args [0].calls[3].read_file.path",
            "13:53 error outside_root [1].call.http_request.saveTo",
        ],
        "{found:#?}"
    );
}

#[test]
fn fields_that_a_result_cannot_have_are_found() {
    let read = |field: &str| {
        problems(&format!(
            "[{{id: a, run: ls}}, {{id: b, needs: a, run: 'echo ${{{{ tasks.a.result.{field} }}}}'}}]"
        ))
    };
    assert!(read("stdout").is_empty() && read("json").is_empty());
    assert_eq!(
        read("stdot"),
        ["1:68 error unknown_result_field [1].run: the result of `a` has no field `stdot`"]
    );
    let when = problems("[{id: a, run: ls}, {id: b, needs: a, when: tasks.a.result.code == 0, run: ls}]");
    assert_eq!(when.len(), 1, "{when:?}");
    // The result of a manual task may have any fields, and so may that of several calls.
    assert!(problems("[{id: a}, {id: b, needs: a, when: tasks.a.result.any, run: ls}]").is_empty());
}

#[test]
fn tools_that_others_bring_are_not_unknown() {
    assert_eq!(problems("[{id: a, call: {mine: {}}}]").len(), 1);
    assert!(problems("{tools: [mine], tasks: [{id: a, call: {mine: {}}}]}").is_empty());
    assert!(problems("[{id: a, call: {server/tool: {}}}]").is_empty());
}

#[test]
fn calls_that_ask_depend_on_their_author() {
    let text =
        "[{id: a, run: ls}, {id: b, call: {read_file: {path: a}}}, {id: c, approval: required, run: ls}]";
    let plans = Taskpawl::builder(":memory:").policy(Policy::default()).open().unwrap();
    let of = |origin| {
        let found = check_by(&plans, origin, text);
        assert_eq!(found.errors, 0, "a question is no error");
        let line = |problem: &taskpawl::CheckProblem| {
            assert_eq!((problem.severity, problem.code), (CheckSeverity::Note, "approval"));
            problem.path.clone()
        };
        found.problems.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(of(Origin::Plan), ["[2]"], "the plan itself requires it");
    assert_eq!(of(Origin::Mcp), ["[0].run", "[2]", "[2].run"], "reading is allowed");
}

#[test]
fn a_denied_call_is_an_error() {
    let rules = "[[rules]]\ntool = \"write_file\"\ndecision = \"deny\"\n";
    let policy = Policy::parse(&[(LayerKind::User, rules)]).unwrap();
    let plans = Taskpawl::builder(":memory:").policy(policy).open().unwrap();
    let text = "[{id: a, call: {write_file: {path: a, content: b}}}]";
    let found = check_by(&plans, Origin::Plan, text);
    assert_eq!((found.errors, found.problems[0].code), (1, "denied"), "{:?}", lines(&found));
}

#[test]
fn missing_secrets_are_found() {
    let text =
        "[{id: a, run: [echo, '${secret:NONE}', '${secret:UNSET}', '${secret:SET}', '${secret:TOOL}']}]";
    let none = check_by(&Taskpawl::open(":memory:").unwrap(), Origin::Plan, text);
    assert_eq!(none.errors, 4, "{:?}", lines(&none));
    let variable =
        |value: Option<&str>| SecretFrom::Variable { name: "V".into(), value: value.map(str::to_owned) };
    // The command of a check must not run.
    let command = SecretFrom::Command { argv: vec!["/no/such/program".into()], directory: "/".into() };
    let secrets = BTreeMap::from([
        ("UNSET".to_owned(), variable(None)),
        ("SET".to_owned(), variable(Some("long enough"))),
        ("TOOL".to_owned(), command),
    ]);
    let secrets = Arc::new(ConfiguredSecrets::new(secrets, "define it"));
    let plans = Taskpawl::builder(":memory:").secrets(secrets).open().unwrap();
    assert_eq!(
        lines(&check_by(&plans, Origin::Plan, text)),
        [
            "1:32 error secret [0].run[1]: unknown secret `NONE`: define it",
            "1:50 warning secret [0].run[2]: failed to read secret `UNSET`: the environment variable `V` is not set",
        ]
    );
}

#[test]
fn at_most_40_problems_are_listed_errors_first() {
    let tasks: Vec<String> = (0..30)
        .map(|number| {
            format!("{{id: a{number}, run: [no-such-program]}}, {{id: b{number}, call: {{read_file: {{}}}}}}")
        })
        .collect();
    let found =
        check_by(&Taskpawl::open(":memory:").unwrap(), Origin::Plan, &format!("[{}]", tasks.join(",\n")));
    assert_eq!((found.problems.len(), found.omitted, found.errors), (MAX_PROBLEMS, 20, 30));
    let errors = found.problems.iter().filter(|problem| problem.severity == CheckSeverity::Error);
    assert_eq!(errors.count(), 30);
    assert!(found.problems.is_sorted_by_key(|problem| problem.at));
}

#[test]
fn an_expression_without_its_mark_is_a_warning() {
    assert_eq!(
        problems("[{id: a, forEach: {in: [1]}, run: 'echo {{ item }}'}, {id: b, run: \"docker ps --format '{{.Names}}'\"}]")
            .into_iter()
            .filter(|problem| problem.contains("unmarked"))
            .collect::<Vec<_>>(),
        ["1:35 warning unmarked_expression [0].run: `{{ item }}` is passed on as text; `${{ item }}` is an expression"]
    );
}

#[test]
fn a_path_that_no_approval_opens_is_reported_before_the_question() {
    let text = "tasks:
- {id: a, run: ls, sandbox: {net: true, read: [/usr], write: [/no-such-place/x, out]}}
- {id: b, calls: [{shell: {command: ls}, sandbox: {read: [/no-such-place]}}]}
";
    let found = check_by(&Taskpawl::open(":memory:").unwrap(), Origin::Plan, text);
    assert!(found.is_ok(), "a path may be there when the plan runs");
    let lines: Vec<String> =
        lines(&found).into_iter().filter(|line| line.contains(" warning sandbox ")).collect();
    let why = "does not exist; create it first, or use a parent directory";
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[0].starts_with("2:3 ")
            && lines[0].ends_with(&format!("`/no-such-place/x` in `sandbox.write` {why}")),
        "{lines:?}"
    );
    assert!(lines[1].contains("/out` in `sandbox.write`"), "{lines:?}");
    assert!(
        lines[2].starts_with("3:") && lines[2].contains("`/no-such-place` in `sandbox.read`"),
        "{lines:?}"
    );
}
