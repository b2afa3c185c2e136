//! One invalid plan for each kind of error, with its message.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use taskpawl_model::plan::{call_from_json, change_spec, parse_call, parse_plan, parse_task, task_from_json};
use taskpawl_model::task::{ERROR_CLASSES, TaskSpec};

use super::errors;

fn table(cases: &[(&str, &str)]) -> String {
    let mut table = String::new();
    for (label, text) in cases {
        writeln!(table, "# {label}\n{}\n", errors(text)).expect("writing to a string never fails");
    }
    table
}

#[test]
fn invalid_plan_texts() {
    insta::assert_snapshot!(table(&[
        ("nothing", ""),
        ("a comment", "# later\n"),
        ("null", "null"),
        ("a word", "build"),
        ("no tasks", "name: release\n"),
        ("tasks of another type", "tasks: {build: {run: make}}\n"),
        ("an unclosed bracket", "{\"tasks\": [\n  {\"id\": \"a\"}\n"),
        ("a missing comma", "{\"tasks\": [\n  {\"id\": \"a\"\n   \"name\": \"b\"}\n]}"),
        ("a tab", "tasks:\n\t- id: a\n"),
        ("a colon in a text", "- id: a\n  run: echo status: fine\n"),
        ("a stray character", "- id: @a\n"),
        ("a half character", "[{\"name\": \"\\ud83d\"}]"),
        ("an alias", "- &base\n  id: a\n- *base\n"),
        ("an unknown alias", "- id: a\n  writes: *.txt\n"),
        ("a tag", "- id: a\n  priority: !urgent high\n"),
        ("two documents", "- id: a\n---\n- id: b\n"),
        ("a key that is a list", "- id: a\n  ? [x]\n  : y\n"),
        ("no key", "- id: a\n  : y\n"),
        ("keys given twice", "name: a\nname: b\ntasks:\n- id: x\n  metadata: {k: 1, l: 2, k: 3}\n"),
        ("a number too large", "- id: a\n  context: {n: 18446744073709551616}\n"),
        ("no number of JSON", "- id: a\n  context: {n: .nan}\n"),
        ("another version", "version: 2\ntasks: []\n"),
        ("a version as text", "version: '1'\ntasks: []\n"),
    ]));
}

#[test]
fn fields_with_wrong_values() {
    insta::assert_snapshot!(table(&[
        ("priority", "- id: a\n  priority: urgent\n- id: b\n  priority: hihg\n- id: c\n  priority: 1\n"),
        ("words", "- {id: a, needs: [x], trigger: all, mode: serial, approval: maybe}\n"),
        ("numbers as text", "- id: 1\n  name: 2024\n  assignee: true\n  run: [head, -5]\n"),
        (
            "dates",
            "- {id: a, dueDate: tomorrow}\n- {id: b, dueDate: 2026-02-30}\n- {id: c, dueDate: 2026-05-31 12:00}\n"
        ),
        ("durations", "- {id: a, timeout: 5}\n- {id: b, timeout: 5 minutes}\n- {id: c, estimate: 0s}\n"),
        ("ids", "- id: a/b\n- id: ''\n- {id: c, links: {relatesTo: [d e]}}\n"),
        (
            "blanks",
            "- {id: a, name: ' '}\n- {id: b, run: ''}\n- {id: c, run: []}\n- {id: d, labels: [x, '']}\n"
        ),
        (
            "types",
            "- {id: a, labels: {x: y}, milestone: 'yes', resources: 3, sandbox: strict, links: [b], cache: 1}\n- 5\n-\n"
        ),
        (
            "retry",
            "- {id: a, retry: 0}\n- {id: b, retry: often}\n- {id: c, retry: {delay: 1s, factor: 0.5, retryOn: [1.5]}}\n- {id: d, retry: {attempts: 2.5, max_delay: 1s}}\n",
        ),
        (
            "repeat",
            "- {id: a, repeat: {max: 0}}\n- {id: b, repeat: 3}\n- {id: c, repeat: {until: attempt, max: -1, every: 5s}}\n"
        ),
        (
            "forEach",
            "- {id: a, forEach: {in: 5, concurrency: 0}}\n- {id: b, forEach: 5}\n- {id: c, forEach: {}}\n"
        ),
        ("approval", "- {id: a, approval: {options: [yes, no]}}\n- {id: b, approval: true}\n"),
        (
            "resources",
            "resources: {gpu: 1, none: 0}\ndefaults: {resources: {gpu: 3}}\ntasks:\n- {id: a, resources: {gpu: 2}}\n- {id: b, resources: {gpu: 0}}\n"
        ),
        (
            "params",
            "params: {dir: {type: text}, a-b: {type: string}, n: {type: integer, default: 1.5}, s: {default: x}, t: string}\ntasks: []\n"
        ),
        ("budget", "budget: {calls: 0, duration: 0s, cost: -1, tokens: 5}\ntimeout: 1d\ntasks: []\n"),
        ("values too deep", &format!("- {{id: a, context: {{x: {}{}}}}}", "[".repeat(64), "]".repeat(64))),
    ]));
}

#[test]
fn misspelled_or_misplaced_fields() {
    insta::assert_snapshot!(table(&[
        ("misspelt", "- {id: a, dependancies: [b], need: [b], dueDat: 2026-01-01, sub_tasks: []}\n"),
        ("of other programs", "- {id: a, depends_on: [b], title: x, cmd: ls, cwd: src, tags: [x], if: y}\n"),
        (
            "of other runners",
            "- {id: a, run: x, retries: 3, maxRetries: 3, timeoutSeconds: 3, continue_on_error: true, matrix: {os: [a]}}\n- {id: b, call: {toolName: log, retries: 3, register: x}}\n"
        ),
        (
            "of a tool",
            "- {id: a, run: x, okExitCodes: [0, 1]}\n- {id: b, calls: [{run: x, ok_exit_codes: [0, 1], parse: json}]}\n"
        ),
        (
            "of nobody",
            "ticket: 1\ntasks:\n- {id: a, ticket: {number: 1}, x: 1, x-: 1}\n- {id: b, call: {toolName: log, colour: red}}\n- {id: c, call: {run: x, colour: {r: 1}}}\n"
        ),
        (
            "state",
            "- {id: a, status: done, attempt: 3, createdAt: x, result: 1, notes: [], version: 4, created_at: x}\n"
        ),
        ("of the plan", "task: []\nsteps: []\nparam: {}\ntasks: []\n"),
        ("in metadata", "- {id: a, metadata: {tool_calls: [], contexts: 1, Context: 1}}\n"),
        (
            "of a call",
            "- {id: a, call: {toolName: exec, arguments: {}, save_as: x, status: pending, idempotant: true}}\n"
        ),
        ("in the defaults", "defaults: {run: x, id: a, needs: [b], tiemout: 5s, status: done}\ntasks: []\n"),
    ]));
}

#[test]
fn calls() {
    insta::assert_snapshot!(table(&[
        (
            "two ways",
            "- {id: a, run: x, call: {log: {message: y}}}\n- {id: b, context: {}, metadata: {context: {}}}\n"
        ),
        ("two dependencies fields", "- {id: a, needs: b, dependencies: [c]}\n"),
        (
            "no tool",
            "- {id: a, call: {when: attempt}}\n- {id: b, call: {}}\n- {id: c, toolCalls: [{toolName: null}]}\n"
        ),
        ("two tools", "- {id: a, call: {log: {}, sleep: {}}}\n"),
        (
            "args that are no object",
            "- {id: a, call: {log: hello}}\n- {id: b, calls: [{toolName: exec, args: [ls]}]}\n"
        ),
        ("a call of another type", "- {id: a, calls: [make, 5]}\n- {id: b, run: {command: x}}\n"),
        (
            "forms mixed",
            "- {id: a, call: {toolName: exec, run: x}}\n- {id: b, call: {run: x, args: {}}}\n- {id: c, call: {log: {}, args: {}}}\n"
        ),
        ("ids", "- {id: a, calls: [{id: x, run: b}, {id: x, run: c}, {id: 'y z', run: d}]}\n"),
        (
            "options",
            "- {id: a, call: {run: x, saveAs: a-b, planAccess: write, emit: 1, timeout: 0ms, retry: 0}}\n"
        ),
        ("a milestone", "- {id: a, milestone: true, run: x}\n"),
    ]));
}

#[test]
fn references() {
    insta::assert_snapshot!(table(&[
        ("no id", "- description: x\n- {}\n"),
        ("an id twice", "- id: a\n- id: b\n- id: a\n"),
        ("names for ids", "- name: a\n- name: a\n- id: b\n- name: b\n"),
        ("ambiguous", "- {id: a, name: x}\n- {id: b, name: x}\n- {id: c, needs: x, subtasks: [x]}\n"),
        (
            "unknown",
            "- {id: a, subtasks: [c]}\n- {id: b, name: build it}\n- {id: d, needs: [a b, build ti]}\n"
        ),
        ("itself", "- {id: a, needs: a}\n- {id: b, subtasks: [b]}\n- {name: c, needs: [c]}\n"),
        ("kin", "- id: a\n  needs: c\n  subtasks:\n  - id: b\n    subtasks:\n    - {id: c, needs: [x, a]}\n"),
        (
            "two parents",
            "- {id: a, subtasks: [{id: c}]}\n- {id: b, subtasks: [c, d]}\n- {id: d}\n- {id: e, subtasks: d}\n"
        ),
        ("triggers alone", "- {id: a, trigger: any_done}\n- {id: b, trigger: any_failed, needs: []}\n"),
        (
            "subtasks in a circle",
            "- {id: a, subtasks: [b]}\n- {id: b, subtasks: [c]}\n- {id: c, subtasks: [a]}\n"
        ),
    ]));
}

#[test]
fn cycles_are_reported_with_their_path() {
    let ring =
        (0..40).map(|i| format!("- {{id: t{i}, needs: [t{}]}}\n", (i + 1) % 40)).collect::<Vec<_>>().concat();
    insta::assert_snapshot!(table(&[
        ("two", "tasks:\n- id: a\n  needs: [x, b]\n- id: b\n  needs: a\n"),
        (
            "several",
            "- {id: a, needs: b}\n- {id: b, needs: a}\n- {id: c, needs: [a, d]}\n- {id: d, needs: c}\n"
        ),
        (
            "through subtasks",
            "- id: a\n  needs: d\n  subtasks:\n  - id: b\n- id: c\n  subtasks: [{id: d, needs: b}]\n"
        ),
        ("long", &ring),
    ]));
}

#[test]
fn errors_are_reported_in_text_order() {
    let text = "version: 3\ntasks:\n- id: a\n  priority: urgent\n- id: a\n  timeout: soon\n  needs: [b c]\n";
    insta::assert_snapshot!(errors(text), @r#"
    line 1, column 10: version: format version 3 is not supported, this program reads version 1
      hint: write `version: 1`
    line 4, column 13: tasks[0].priority: unknown priority `urgent`
      hint: known are `critical`, `high`, `medium`, `low`
    line 5, column 3: tasks[1]: id `a` is already taken at line 3, column 3
      hint: give each task an id of its own
    line 6, column 12: tasks[1].timeout: `soon` is not a valid duration, expected for example `10ms`, `0.5s`, `5m` or `2h`
    line 7, column 11: tasks[1].needs[0]: no task of this plan has the id or name `b c`
      hint: write the id or name of a task of this plan, or the id of one in the store
    "#);
    let errors = parse_plan(text).unwrap_err();
    let places: Vec<String> =
        errors.errors().iter().map(|error| format!("{} {}", error.at, error.path)).collect();
    insta::assert_snapshot!(places.join("\n"), @r#"
    line 1, column 10 version
    line 4, column 13 tasks[0].priority
    line 5, column 3 tasks[1]
    line 6, column 12 tasks[1].timeout
    line 7, column 11 tasks[1].needs[0]
    "#);
}

#[test]
fn single_tasks_and_calls_follow_the_same_rules() {
    insta::assert_snapshot!(parse_task("{\"name\": \"a\", \"prioritee\": \"low\"}").unwrap_err(), @r#"
    line 1, column 15: prioritee: unknown field `prioritee` in a task
      hint: did you mean `priority`? custom fields belong in `metadata` or `context`
    "#);
    insta::assert_snapshot!(parse_task("name: a\nneeds: [b, c d]\nsubtasks: [e]").unwrap_err(), @r#"
    line 1, column 1: `subtasks` is not allowed in a task alone
      hint: add them one by one, or apply a plan
    line 2, column 12: needs: id `c d` contains ` `, allowed are letters, digits, `.`, `_` and `-`
    "#);
    insta::assert_snapshot!(parse_call("{\"toolName\": \"exec\", \"args\": 5}").unwrap_err(), @"line 1, column 30: args: expected an object, found number `5`");
    insta::assert_snapshot!(task_from_json(&serde_json::json!({"run": 5})).unwrap_err(), @r#"
    run: expected text with a command, or a list with a program and its arguments, found number `5`
      hint: put it in quotes
    a task needs `id` or `name`
    "#);
    insta::assert_snapshot!(call_from_json(&serde_json::json!([])).unwrap_err(), @r#"expected a tool call such as `{run: "cargo test"}` or `{TOOL: args}`, found a list"#);
    let fields = serde_json::json!({"name": null, "retry": {"attempts": 0}, "needs": ["b"], "metadata": {"context": {}}});
    insta::assert_snapshot!(change_spec(&TaskSpec::default(), fields.as_object().unwrap()).unwrap_err(), @r#"
    metadata.context: `context` is not allowed in a change of a task's fields
      hint: there is a command for it
    needs: `needs` is not allowed in a change of a task's fields
      hint: there is a command for it
    retry.attempts: must be at least 1, is `0`
    "#);
}

#[test]
fn reference_lists_every_error_class() {
    let reference = include_str!("../../../../../docs/plan-language.md");
    let (_, section) = reference.split_once("### Classes of errors").unwrap();
    let rows = section.split("\n#").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let first_cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(listed, ERROR_CLASSES.iter().copied().collect());
    assert_eq!(listed.len(), ERROR_CLASSES.len());
}
