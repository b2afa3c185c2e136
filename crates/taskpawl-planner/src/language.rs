//! The language of plans in words for models. The prompt of planners and the help of the MCP server are made from these texts.

/// Everyday constructs.
pub const PLAN: &str = "\
A plan is {name, description, tasks: [...]}. A task: {id, name, needs: [ids], WORK}. Tasks run in parallel as soon as what they \
need is done.
WORK is one of: run: \"a command\" (stops at the first line that fails); call: {TOOL: {args}}; calls: [{TOOL: {args}}, ...] in \
order; or nothing: an agent claims it and reports done or fail.
Results flow: a task that needs a sees ${{ tasks.a.result.stdout }} of a run, in any argument or command.
A failed task blocks what needs it.";

/// An example of everyday constructs.
pub const PLAN_EXAMPLE: &str = "\
tasks:
- {id: build, run: make}
- {id: test, needs: [build], run: make test, retry: 2}
- {id: review, needs: [test], description: 'Look at ${{ tasks.test.result.stdout }}'}
";

/// A construct of plans.
#[derive(Debug, Clone, Copy)]
pub struct Construct {
    /// The field that begins it.
    pub name: &'static str,
    /// Other names under which readers look for it.
    pub also: &'static [&'static str],
    /// Explanation in one line.
    pub text: &'static str,
    /// An example that is a whole plan, as YAML.
    pub example: &'static str,
    /// True if the prompt of planners explains it. The rest would take room and lead models astray.
    pub is_proposed: bool,
}

/// All constructs.
pub const CONSTRUCTS: &[Construct] = &[
    Construct {
        name: "run",
        also: &["shell", "env", "cwd"],
        text: "A command for sh -e, or [PROGRAM, ARG, ...] without a shell. Beside it, on the task or in defaults: shell: bash (pipes fail, too), env: {NAME: text}, cwd, idempotent: true (may start again after a kill).",
        example: "tasks: [{id: a, run: 'make | tee log', shell: bash, env: {CI: '1'}, cwd: .}]",
        is_proposed: true,
    },
    Construct {
        name: "calls",
        also: &["call", "toolCalls"],
        text: "Calls of tools, in order; mode: parallel starts them at once. Long form: {toolName, args, id, when, retry, timeout, saveAs}. Later calls see context.ID of earlier ones.",
        example: "tasks: [{id: a, calls: [{read_file: {path: in.txt}}, {write_file: {path: out.txt, content: '${{ context.c1.content }}'}}]}]",
        is_proposed: true,
    },
    Construct {
        name: "data",
        also: &["expressions", "result", "context", "expression"],
        text: "${{ EXPR }} in arguments: tasks.ID.result (of what the task needs, directly or not), .result.stdout, .result.exitCode, .result.json (exec with parse: json), .status, context.NAME, params.NAME, item. Filters: | length, | lines, | join(', '), | default('x').",
        example: "tasks: [{id: a, call: {exec: {argv: [echo, '[1]'], parse: json}}}, {id: b, needs: [a], run: 'echo ${{ tasks.a.result.json | length }}'}]",
        is_proposed: true,
    },
    Construct {
        name: "needs",
        also: &["dependencies", "trigger"],
        text: "Ids of tasks that must be done first. trigger: all_done (default), any_done, all_finished (also after failures: clean-ups), any_failed (compensations; skipped if nothing failed).",
        example: "tasks: [{id: a, run: make}, {id: tidy, needs: [a], trigger: all_finished, run: make clean}]",
        is_proposed: true,
    },
    Construct {
        name: "when",
        also: &["condition", "if"],
        text: "A condition, evaluated when the task could start. False: the task and its subtasks are skipped, and what needs them goes on.",
        example: "tasks: [{id: a, call: {exec: {argv: [git, diff, --quiet], okExitCodes: [0, 1]}}}, {id: b, needs: [a], when: tasks.a.result.exitCode == 1, run: make}]",
        is_proposed: true,
    },
    Construct {
        name: "forEach",
        also: &["loop", "matrix", "foreach"],
        text: "One copy of the task for each element of the list in {in: LIST, concurrency}: items ID.0, ID.1, ... with item and index; results of all: tasks.ID.results.",
        example: "tasks: [{id: a, forEach: {in: [x, y], concurrency: 2}, run: 'echo ${{ item }}'}, {id: b, needs: [a], run: 'echo ${{ tasks.a.results | length }}'}]",
        is_proposed: true,
    },
    Construct {
        name: "repeat",
        also: &["until"],
        text: "{until, max, delay}: runs the calls again until a condition on their results holds; fails after max rounds.",
        example: "tasks: [{id: a, repeat: {until: \"'ready' in context.c1.stdout\", max: 10, delay: 5s}, run: ./status}]",
        is_proposed: true,
    },
    Construct {
        name: "retry",
        also: &["retries", "timeout"],
        text: "retry: number of starts of a failing call, or {attempts, delay, factor, maxDelay, jitter, retryOn: [timeout, 75]}. timeout: 5m, on a task or a call.",
        example: "tasks: [{id: a, retry: {attempts: 3, delay: 2s}, timeout: 5m, run: ./deploy}]",
        is_proposed: true,
    },
    Construct {
        name: "approval",
        also: &["ask", "approve"],
        text: "A person decides before the task (or call) starts: required, or {ask: a question, options: [...], expires: 1h, onExpiry: one of the options}. The answer is context.approval.",
        example: "tasks: [{id: a, approval: {ask: 'Deploy now?'}, run: ./deploy}]",
        is_proposed: true,
    },
    Construct {
        name: "subtasks",
        also: &["milestone", "parent"],
        text: "subtasks: [tasks or ids] start with their parent, whose own calls run after them. milestone: true is a join without work. when, approval and needs of the parent hold for all.",
        example: "tasks: [{id: a, subtasks: [{id: a1, run: make one}, {id: a2, run: make two}], run: make all}, {id: end, needs: [a], milestone: true}]",
        is_proposed: true,
    },
    Construct {
        name: "params",
        also: &["defaults", "parameters"],
        text: "params: {NAME: {type, default}}, read as params.NAME; plan_write takes no values, so give defaults. defaults: fields for all tasks: retry, timeout, env, cwd, shell, priority.",
        example: "{params: {n: {type: integer, default: 2}}, defaults: {retry: 2, cwd: .}, tasks: [{id: a, run: 'echo ${{ params.n }}'}]}",
        is_proposed: false,
    },
    Construct {
        name: "resources",
        also: &["writes", "budget", "limits"],
        text: "resources: names or {NAME: units} that a task holds while it runs (a name without a capacity is a lock). writes: paths; tasks with the same path take turns. budget of a plan: {calls, duration, cost}.",
        example: "{resources: {gpu: 2}, budget: {calls: 100}, tasks: [{id: a, resources: {gpu: 1}, writes: [out], run: make}]}",
        is_proposed: true,
    },
    Construct {
        name: "cache",
        also: &["inputs"],
        text: "The last success is reused while the inputs (path patterns) and the key are the same and the calls are unchanged.",
        example: "tasks: [{id: a, cache: {inputs: ['src/**']}, run: make}]",
        is_proposed: false,
    },
    Construct {
        name: "emit",
        also: &["grow"],
        text: "A call with emit: true whose JSON result has tasks adds them to the plan. neededBy names tasks that then wait for them.",
        example: "tasks: [{id: a, toolCalls: [{toolName: exec, emit: true, args: {argv: [./survey], parse: json}}]}]",
        is_proposed: false,
    },
    Construct {
        name: "sandbox",
        also: &["net", "network"],
        text: "Programs have no network and write only in the project. sandbox: {net: true, read: [paths], write: [paths]} asks a person for more, before the task starts.",
        example: "tasks: [{id: a, sandbox: {net: true}, run: npm install}]",
        is_proposed: true,
    },
    Construct {
        name: "priority",
        also: &["dueDate", "assignee", "labels", "metadata"],
        text: "priority: critical, high, medium, low. dueDate: 2030-01-31. assignee: person lets only a person end it. labels select: run_ready {only: [label:NAME]}. metadata: any data of yours.",
        example: "tasks: [{id: a, name: Write it, priority: high, dueDate: 2030-01-31, labels: [docs], metadata: {ticket: 7}}]",
        is_proposed: false,
    },
];

/// Returns the names of all constructs.
pub fn topics() -> String {
    CONSTRUCTS.iter().map(|construct| construct.name).collect::<Vec<_>>().join(", ")
}

/// Returns the construct of a name.
pub fn construct(name: &str) -> Option<&'static Construct> {
    CONSTRUCTS.iter().find(|one| one.name == name || one.also.contains(&name))
}

/// Returns the part of the language that planners write, for their prompt.
pub(crate) fn proposed() -> String {
    let proposed = CONSTRUCTS.iter().filter(|construct| construct.is_proposed);
    let lines: Vec<String> = proposed
        .map(|one| {
            let name = if one.text.starts_with(&format!("{}:", one.name)) { "" } else { one.name };
            let colon = if name.is_empty() { "" } else { ": " };
            format!("{name}{colon}{}\n", one.text)
        })
        .collect();
    format!("{PLAN}\n{}Example:\n{PLAN_EXAMPLE}", lines.concat())
}

#[cfg(test)]
mod tests {
    use taskpawl_model::plan::{parse_plan, plan_fields, proposed_fields};

    use super::*;

    /// The most bytes of the language in a prompt.
    const MAX_PROPOSED: usize = 3_000;

    #[test]
    fn every_example_is_a_plan() {
        parse_plan(PLAN_EXAMPLE).unwrap();
        for Construct { name, example, .. } in CONSTRUCTS {
            parse_plan(example).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        }
    }

    #[test]
    fn every_name_is_found_once() {
        let mut all: Vec<&str> =
            CONSTRUCTS.iter().flat_map(|one| one.also.iter().copied().chain([one.name])).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn the_prompt_explains_each_field_that_planners_write() {
        let text = proposed();
        assert!(text.len() <= MAX_PROPOSED, "{}", text.len());
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let fields = proposed_fields();
        let objects = plan_fields().objects.iter().filter(|(name, _)| fields.task.contains(name));
        for (name, field) in objects.flat_map(|(name, fields)| fields.iter().map(move |field| (name, field)))
        {
            assert!(words.contains(field), "`{field}` of `{name}` is not explained");
        }
        for field in fields.plan.iter().chain(fields.task).chain(fields.call) {
            assert!(words.contains(field), "`{field}` is not explained");
        }
    }
}
