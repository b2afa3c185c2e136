//! Help for models: the language of plans, one construct at a time, and the tools that calls can name.

use serde_json::{Value, json};
use taskpawl::tools::ToolSpec;

use super::actions::Action;
use super::answer::Answer;
use super::brief::cut;
use super::caller::Caller;
use super::refusal::Refused;

/// Everyday constructs, in the answer to `plan`. The other topics follow it.
const PLAN: &str = "\
A plan is {name, description, tasks: [...]}. A task: {id, name, needs: [ids], WORK}. Tasks run in parallel as soon as what they \
need is done.
WORK is one of: run: \"a command\" (stops at the first line that fails); call: {TOOL: {args}}; calls: [{TOOL: {args}}, ...] in \
order; or nothing: an agent claims it and reports done or fail.
Results flow: a task that needs a sees ${{ tasks.a.result.stdout }} of a run, in any argument or command.
A failed task blocks what needs it. Repair it with task_update {id, action: retry, fields: {run: ...}}; plan_write of the changed \
plan does the same.
Free data goes under metadata.";

/// An example for `plan`.
const PLAN_EXAMPLE: &str = "\
tasks:
- {id: build, run: make}
- {id: test, needs: [build], run: make test, retry: 2}
- {id: review, needs: [test], description: 'Look at ${{ tasks.test.result.stdout }}'}
";

/// A construct of plans.
struct Construct {
    name: &'static str,
    /// Other names that one may look for.
    also: &'static [&'static str],
    text: &'static str,
    /// An example that is a whole plan, as YAML.
    example: &'static str,
}

const CONSTRUCTS: &[Construct] = &[
    Construct {
        name: "run",
        also: &["shell", "env", "cwd"],
        text: "A command for sh -e, or [PROGRAM, ARG, ...] without a shell. Beside it, on the task or in defaults: shell: bash (pipes fail, too), env: {NAME: text}, cwd, idempotent: true (may start again after a kill).",
        example: "tasks: [{id: a, run: 'make | tee log', shell: bash, env: {CI: '1'}, cwd: .}]",
    },
    Construct {
        name: "calls",
        also: &["call", "toolCalls"],
        text: "Calls of tools, in order; mode: parallel starts them at once. Long form: {toolName, args, id, when, retry, timeout, saveAs}. Later calls see context.ID of earlier ones. plan_show {help: tools} lists the tools.",
        example: "tasks: [{id: a, calls: [{read_file: {path: in.txt}}, {write_file: {path: out.txt, content: '${{ context.c1.text }}'}}]}]",
    },
    Construct {
        name: "data",
        also: &["expressions", "result", "context", "expression"],
        text: "${{ EXPR }} in arguments: tasks.ID.result (of what the task needs, directly or not), .result.stdout, .result.exitCode, .result.json (exec with parse: json), .status, context.NAME, params.NAME, item. Filters: | length, | lines, | join(', '), | default('x').",
        example: "tasks: [{id: a, call: {exec: {argv: [echo, '[1]'], parse: json}}}, {id: b, needs: [a], run: 'echo ${{ tasks.a.result.json | length }}'}]",
    },
    Construct {
        name: "needs",
        also: &["dependencies", "trigger"],
        text: "Ids of tasks that must be done first. trigger: all_done (default), any_done, all_finished (also after failures: clean-ups), any_failed (compensations; skipped if nothing failed).",
        example: "tasks: [{id: a, run: make}, {id: tidy, needs: [a], trigger: all_finished, run: make clean}]",
    },
    Construct {
        name: "when",
        also: &["condition", "if"],
        text: "A condition, evaluated when the task could start. False: the task and its subtasks are skipped, and what needs them goes on.",
        example: "tasks: [{id: a, call: {exec: {argv: [git, diff, --quiet], okExitCodes: [0, 1]}}}, {id: b, needs: [a], when: tasks.a.result.exitCode == 1, run: make}]",
    },
    Construct {
        name: "forEach",
        also: &["loop", "matrix", "foreach"],
        text: "One copy of the task for each element of a list: items ID.0, ID.1, ... with item and index; results of all: tasks.ID.results. concurrency limits how many run at once.",
        example: "tasks: [{id: a, forEach: {in: [x, y], concurrency: 2}, run: 'echo ${{ item }}'}, {id: b, needs: [a], run: 'echo ${{ tasks.a.results | length }}'}]",
    },
    Construct {
        name: "repeat",
        also: &["until"],
        text: "Runs the calls again until a condition on their results holds; fails after max rounds.",
        example: "tasks: [{id: a, repeat: {until: \"'ready' in context.c1.stdout\", max: 10, delay: 5s}, run: ./status}]",
    },
    Construct {
        name: "retry",
        also: &["retries", "timeout"],
        text: "retry: number of starts of a failing call, or {attempts, delay, factor, maxDelay, retryOn: [timeout, 75]}. timeout: 5m, on a task or a call.",
        example: "tasks: [{id: a, retry: {attempts: 3, delay: 2s}, timeout: 5m, run: ./deploy}]",
    },
    Construct {
        name: "approval",
        also: &["ask", "approve"],
        text: "A person decides before the task (or call) starts: required, or {ask: a question, options: [...], timeout, onTimeout}. The answer is context.approval.",
        example: "tasks: [{id: a, approval: {ask: 'Deploy now?'}, run: ./deploy}]",
    },
    Construct {
        name: "subtasks",
        also: &["milestone", "parent"],
        text: "subtasks: [tasks or ids] start with their parent, whose own calls run after them. milestone: true is a join without work. when, approval and needs of the parent hold for all.",
        example: "tasks: [{id: a, subtasks: [{id: a1, run: make one}, {id: a2, run: make two}], run: make all}, {id: end, needs: [a], milestone: true}]",
    },
    Construct {
        name: "params",
        also: &["defaults", "parameters"],
        text: "params: {NAME: {type, default}}, read as params.NAME; plan_write takes no values, so give defaults. defaults: fields for all tasks: retry, timeout, env, cwd, shell, priority.",
        example: "{params: {n: {type: integer, default: 2}}, defaults: {retry: 2, cwd: .}, tasks: [{id: a, run: 'echo ${{ params.n }}'}]}",
    },
    Construct {
        name: "resources",
        also: &["writes", "budget", "limits"],
        text: "resources: names or {NAME: units} that a task holds while it runs (a name without a capacity is a lock). writes: paths; tasks with the same path take turns. budget of a plan: {calls, duration, cost}.",
        example: "{resources: {gpu: 2}, budget: {calls: 100}, tasks: [{id: a, resources: {gpu: 1}, writes: [out], run: make}]}",
    },
    Construct {
        name: "cache",
        also: &["inputs"],
        text: "The last success is reused while the inputs (path patterns) and the key are the same and the calls are unchanged.",
        example: "tasks: [{id: a, cache: {inputs: ['src/**']}, run: make}]",
    },
    Construct {
        name: "emit",
        also: &["grow"],
        text: "A call with emit: true whose JSON result has tasks adds them to the plan. neededBy names tasks that then wait for them.",
        example: "tasks: [{id: a, toolCalls: [{toolName: exec, emit: true, args: {argv: [./survey], parse: json}}]}]",
    },
    Construct {
        name: "sandbox",
        also: &["net", "network"],
        text: "Programs have no network and write only in the project. sandbox: {net: true, read: [paths], write: [paths]} asks a person for more, before the task starts.",
        example: "tasks: [{id: a, sandbox: {net: true}, run: npm install}]",
    },
    Construct {
        name: "priority",
        also: &["dueDate", "assignee", "labels", "metadata"],
        text: "priority: critical, high, medium, low. dueDate: 2030-01-31. assignee: person lets only a person end it. labels select: run_ready {only: [label:NAME]}. metadata: any data of yours.",
        example: "tasks: [{id: a, name: Write it, priority: high, dueDate: 2030-01-31, labels: [docs], metadata: {ticket: 7}}]",
    },
];

/// Maximum length of a tool's description in a list, in characters.
const LISTED_CHARS: usize = 70;

/// Returns the names of the constructs.
fn topics() -> String {
    CONSTRUCTS.iter().map(|construct| construct.name).collect::<Vec<_>>().join(", ")
}

/// Returns help about a topic: `plan`, `tools`, the name of a construct or of a tool.
pub(super) fn help(caller: &Caller, topic: &str) -> Result<Answer, Refused> {
    let known = ["plan", "tools"].into_iter().chain(CONSTRUCTS.iter().map(|construct| construct.name));
    let topic = known.into_iter().find(|known| known.eq_ignore_ascii_case(topic)).unwrap_or(topic);
    match topic {
        "plan" => {
            let more =
                format!("more: plan_show {{help: TOPIC}} with {}; or tools, or a tool's name", topics());
            Ok(Answer::new(json!({"help": PLAN, "example": PLAN_EXAMPLE, "topics": more})))
        }
        "tools" => {
            let tools: Vec<String> = tools(caller).map(|spec| listed(&spec)).collect();
            let hint = "plan_show {help: NAME} has the arguments of one tool";
            Ok(Answer::new(json!({"tools": tools, "hint": hint}))
                .rest(Action::call("plan_show", json!({"help": "tools"}))))
        }
        _ => construct(topic).or_else(|| tool(caller, topic)).ok_or_else(|| {
            Refused::argument("help", format!("no such topic: there are plan, tools, {}", topics()))
        }),
    }
}

fn construct(topic: &str) -> Option<Answer> {
    let found = CONSTRUCTS.iter().find(|one| one.name == topic || one.also.contains(&topic))?;
    Some(Answer::new(json!({"help": found.text, "example": found.example})))
}

/// Returns a tool with the shape of its arguments.
fn tool(caller: &Caller, name: &str) -> Option<Answer> {
    let spec = tools(caller).find(|spec| spec.name == name)?;
    let mut told = json!({"tool": spec.name, "description": spec.description, "arguments": spec.args_schema["properties"]});
    if let Some(required) = spec.args_schema.get("required") {
        told["required"] = required.clone();
    }
    Some(Answer::new(told).rest(Action::call("plan_show", json!({"help": name}))))
}

/// Returns the tools that calls of a plan can name, by name.
fn tools(caller: &Caller) -> impl Iterator<Item = ToolSpec> {
    let registry = caller.plans.engine().tools();
    let mut all: Vec<ToolSpec> = registry.iter().map(|tool| tool.spec().clone()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.into_iter()
}

/// Returns the names of the tools, for a message about an unknown one.
pub(super) fn tool_names(caller: &Caller) -> Vec<String> {
    tools(caller).map(|spec| spec.name).collect()
}

/// Returns a tool in one line: its arguments, those that may be left out with a question mark, and what it does.
fn listed(spec: &ToolSpec) -> String {
    let required: Vec<&str> =
        spec.args_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = spec.args_schema["properties"].as_object();
    let others = properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let others = others.filter(|name| !required.contains(name)).map(|name| format!("{name}?"));
    let arguments: Vec<String> = required.iter().map(|name| (*name).to_owned()).chain(others).collect();
    format!("{} {{{}}}: {}", spec.name, arguments.join(", "), cut(&spec.description, LISTED_CHARS))
}

#[cfg(test)]
mod tests {
    use taskpawl::model::plan::parse_plan;

    use super::*;

    /// Maximum size of the help for everyday constructs, in bytes.
    const MAX_PLAN: usize = 1_500;

    /// Maximum size of the help for one construct.
    const MAX_CONSTRUCT: usize = 600;

    #[test]
    fn every_example_is_a_plan() {
        parse_plan(PLAN_EXAMPLE).unwrap();
        for Construct { name, example, .. } in CONSTRUCTS {
            parse_plan(example).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        }
    }

    #[test]
    fn help_is_short() {
        let plan = json!({"help": PLAN, "example": PLAN_EXAMPLE, "topics": topics()}).to_string();
        assert!(plan.len() + 80 <= MAX_PLAN, "{}", plan.len());
        for Construct { name, .. } in CONSTRUCTS {
            let size = construct(name).unwrap().into_json().to_string().len();
            assert!(size <= MAX_CONSTRUCT, "{name}: {size}");
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
}
