//! The check of a plan before it is applied.

use taskpawl::model::advice::Hint;
use taskpawl::{CheckSeverity, Taskpawl};

/// Returns the problems of a plan, as `LINE severity code path: message`.
fn problems(text: &str) -> Vec<String> {
    let plans = Taskpawl::open(":memory:").unwrap();
    let explain = |name: &str| (name != "server/tool").then(|| Hint::new("no such tool"));
    let found = plans.check_text(text, &explain).unwrap();
    let line = |problem: &taskpawl::CheckProblem| {
        let severity = if problem.severity == CheckSeverity::Error { "error" } else { "warning" };
        format!("{} {severity} {} {}: {}", problem.at.line, problem.code, problem.path, problem.message)
    };
    found.problems.iter().map(line).collect()
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
    let codes: Vec<String> =
        problems(text).iter().map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        codes,
        [
            "2 error unknown_field",
            "3 error period",
            "4 error cycle",
            "6 error unknown_task",
            "7 error unknown_tool",
            "8 error invalid_args",
            "9 error outside_root",
            "10 error blocked_address",
            "11 warning missing_program",
        ]
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
        ["1 error unknown_result_field task `b`: the result of `a` has no field `stdot`"]
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
fn an_expression_without_its_mark_is_a_warning() {
    assert_eq!(
        problems("[{id: a, forEach: {in: [1]}, run: 'echo {{ item }}'}, {id: b, run: \"docker ps --format '{{.Names}}'\"}]")
            .into_iter()
            .filter(|problem| problem.contains("unmarked"))
            .collect::<Vec<_>>(),
        ["1 warning unmarked_expression task `a`: shell: `{{ item }}` is passed on as text; `${{ item }}` is an expression"]
    );
}
