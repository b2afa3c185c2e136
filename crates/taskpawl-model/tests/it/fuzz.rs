//! Hostile input for the parsers of plans, tasks and expressions: accepted or refused, never a panic.

mod entries;

use taskpawl_fuzz::Target;

use entries::{expression, plan, secret, task};

const PLAN: Target<'_> = Target {
    name: "plans",
    corpus: &[
        "tasks: [a, {id: b, run: echo hi, needs: a}]",
        "name: x\nparams: {n: {type: integer, default: 3}}\ntasks:\n  - id: a\n    run: [ls, -l]\n    retry: 3\n  - id: b\n    needs: [a]\n    forEach: {in: \"${{ tasks.a.result.json }}\"}\n    run: echo ${{ item }}\n",
        "tasks:\n- id: a\n  call: {exec: {argv: [make]}, saveAs: made}\n  when: params.x > 1\n  subtasks: [{name: below, milestone: true}]\n",
        "version: 1\ntasks:\n  - id: a\n    approval: {ask: \"go?\", options: [yes, no], expires: 1h}\n    sandbox: {net: true}\n    cache: {inputs: 'src/**'}\n",
        "&a [*a]",
        "tasks: !!binary aGk=",
        "tasks: [{id: a, run: |\n  many\n  lines\n}]",
        r#"{"tasks": [{"id": "a", "toolCalls": [{"toolName": "log", "args": {"message": "${{ context.x }}"}, "timeout": "1s"}], "dependencies": [], "dueDate": "2026-05-31"}]}"#,
        r#"{"tasks": [{"id": "w", "notBefore": "2026-05-31T09:00:00Z", "calls": [{"wait": {"signal": "go", "timeout": "1h"}}, {"wait": {"until": "2026-05-31"}}]}]}"#,
        r#"[{"id": "r", "repeat": {"until": "attempt > 1", "max": 3, "delay": "1s"}, "run": "x", "links": {"relatesTo": ["r"]}, "resources": {"db": 1}}]"#,
        "a: b: c",
        "---\n...\n---",
        "\u{feff}tasks: []",
        "? [x]\n: y",
        "tasks: {<<: *x}",
    ],
    words: &[
        "tasks",
        "id",
        "name",
        "run",
        "call",
        "needs",
        "dependencies",
        "subtasks",
        "when",
        "forEach",
        "in",
        "repeat",
        "until",
        "max",
        "retry",
        "attempts",
        "delay",
        "timeout",
        "1s",
        "approval",
        "ask",
        "cache",
        "inputs",
        "emit",
        "params",
        "type",
        "integer",
        "default",
        "toolCalls",
        "toolName",
        "args",
        "metadata",
        "context",
        "priority",
        "high",
        "trigger",
        "any_done",
        "a",
        "b",
        "&x",
        "*x",
        "<<",
        "!!str",
        "|",
        ">-",
        "---",
        "\n  ",
        "\n- ",
        "${{ item }}",
        "budget",
        "cost",
        "writes",
    ],
};

const TASK: Target<'_> = Target {
    name: "tasks as JSON",
    corpus: &[
        r#"{"id": "a", "name": "a", "description": "", "status": "todo", "priority": "medium", "dependencies": [], "subtasks": [], "metadata": {"toolCalls": [{"id": "c1", "toolName": "exec", "args": {"argv": ["x"]}, "status": "pending", "attempts": 0, "origin": "cli"}], "context": {}}, "attempt": 0, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"}"#,
        r#"{"id": "b", "name": "b", "description": "", "status": "blocked", "blockedReason": {"type": "interrupted", "call": "c1"}, "priority": "low", "dueDate": "2026-05-31T00:00:00Z", "dependencies": ["a"], "subtasks": [], "links": {"relatesTo": ["a"]}, "metadata": {"toolCalls": [], "context": {"x": 1}, "own": true}, "attempt": 3, "error": "x", "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z", "notes": []}"#,
        r#"{"id": "w", "name": "w", "status": "in_progress", "claim": {"actor": "ann", "kind": "run"}, "waitingFor": {"call": "c1", "time": "2026-05-31T00:00:00Z", "signal": "go"}, "notBefore": "2026-05-31T00:00:00Z", "metadata": {"toolCalls": [{"id": "c1", "toolName": "wait", "args": {"signal": "go"}, "status": "pending", "attempts": 1, "due": "2026-05-31T00:00:00Z", "startedAt": "2026-01-02T03:04:05Z", "origin": "plan"}]}, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"}"#,
        r#"{"id": "c", "run": "echo", "needs": ["a"], "forEach": {"in": [1, 2]}}"#,
        r#"{"toolName": "exec", "args": {"argv": ["x"]}, "retry": {"attempts": 2, "delay": "1s", "retryOn": ["timeout"]}, "idempotent": true}"#,
    ],
    words: &[
        "status",
        "done",
        "failed",
        "in_progress",
        "blocked",
        "blockedReason",
        "type",
        "approval",
        "dependency",
        "ids",
        "claim",
        "lease",
        "attempt",
        "attempts",
        "metadata",
        "toolCalls",
        "running",
        "succeeded",
        "interrupted",
        "2026-01-02T03:04:05Z",
        "99999-01-01T00:00:00Z",
        "generation",
        "version",
        "result",
        "usage",
        "forEach",
    ],
};

const EXPRESSION: Target<'_> = Target {
    name: "expressions",
    corpus: &[
        "${{ tasks['build-lib'].result.json.size + 1 }}",
        "${{ context.fetch.json.names | join(', ') }}",
        "a ${{ item.name }} b ${{ index }}",
        "params.deploy and not (params.count > 2 or attempt == 1)",
        "${{ [1, 2, {'a': item}][2].a.size if index else none }}",
        "$${{ kept }}",
        "${{ params.list | length }}",
        "${{ tasks.plain.result.stdout | fromjson }}",
        "${{ 'it''s' ~ \"x\\n\" | trim | upper }}",
        "${{ context.note[1:] }}",
        "tasks.failed.status == 'failed'",
        "${{ params.region | raw }}",
        "${{ '}}' }}",
        "${{ {'a': '}'} }}",
        "echo ${{ params.list[0] }} '${{ context.note }}' \"$X\" # y",
        "${{ 7 // 2 * 3 % 4 - 9223372036854775807 }}",
        "${{ 1 / 0 }}",
        "${{ 'x' * 3 }}",
        "${secret:NAME} ${{ '${secret:B}' }}",
    ],
    words: &[
        "${{",
        "}}",
        "tasks",
        "context",
        "params",
        "item",
        "index",
        "attempt",
        ".result",
        ".results",
        ".status",
        "['build-lib']",
        " and ",
        " or ",
        "not ",
        " in ",
        " is ",
        "defined",
        " if ",
        " else ",
        "none",
        "true",
        "|",
        "fromjson",
        "tojson",
        "default(",
        "join(",
        "length",
        "trim",
        "range(",
        "sort",
        "first",
        "replace(",
        "round",
        "int",
        "float",
        "string",
        "**",
        "//",
        "~",
        "'",
        "\\u",
        "[:",
        "[-1]",
    ],
};

const SECRET: Target<'_> = Target {
    name: "names of secrets",
    corpus: &["${secret:A}", "a $${secret:B} ${secret:", "${secret:a-b_C}x${secret:d}", "$$${secret:x}"],
    words: &["${secret:", "$${secret:", "}", "$", "A", "a-b"],
};

#[test]
fn corpus_parses_or_is_refused() {
    PLAN.corpus(plan);
    TASK.corpus(task);
    EXPRESSION.corpus(expression);
    SECRET.corpus(secret);
}

#[test]
fn hostile_plans_never_panic() {
    PLAN.fuzz(plan);
}

#[test]
fn hostile_tasks_never_panic() {
    TASK.fuzz(task);
}

#[test]
fn hostile_expressions_never_panic() {
    EXPRESSION.fuzz(expression);
}

#[test]
fn hostile_secret_names_never_panic() {
    SECRET.fuzz(secret);
}
