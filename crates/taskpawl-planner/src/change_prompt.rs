//! Prompts for changes of a stored plan: its repair after a failure, and the subtasks of a manual task.

use std::fmt::Write as _;

use taskpawl_text::{plain_line, tail};
use taskpawl_tools::ToolSpec;

use crate::project::Facts;
use crate::prompt::{Prompt, push_data};

/// The most bytes of output of one call in a prompt.
pub const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// The most tasks of the plan in a prompt.
const MAX_LINES: usize = 60;

/// Output that belongs to a prompt. The caller has redacted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The task and the call that it is from.
    pub of: String,
    /// The text, of which the last [`MAX_OUTPUT_BYTES`] are sent.
    pub text: String,
}

/// The answer that changes a plan.
const PATCH: &str = "\
You change a plan that a program checks, shows to a person and runs. Answer with the change alone, as one JSON object:
{add: [tasks], replace: [{id, changed fields}], retry: [{id, reason}], skip: [{id, reason}]}. `replace` keeps the fields that it leaves \
out; it is for tasks that failed or have not started. `retry` runs a failed task again as it is. Change as little as possible.";

/// The answer that expands a task.
const SUBTASKS: &str = "\
You split a manual task of a plan into subtasks. Answer with them alone, as one JSON object: {add: [tasks]}. The task keeps its id, and \
is done when they are.";

impl Prompt {
    /// Makes the prompt for the repair of a plan. `tasks` has a line for each task, `failures` the errors, `blocked` the tasks that wait
    /// for failed ones.
    pub fn repair<'t>(
        tasks: &[String],
        failures: &[Output],
        blocked: &[String],
        tools: impl IntoIterator<Item = &'t ToolSpec>,
        facts: &Facts,
        max_tasks: usize,
    ) -> Self {
        let mut goal = "Goal: the plan goes on after its failures.\n".to_owned();
        let mut lines = String::new();
        for task in tasks.iter().take(MAX_LINES) {
            let _ = writeln!(lines, "{}", plain_line(task));
        }
        if tasks.len() > MAX_LINES {
            let _ = writeln!(lines, "and {} more tasks", tasks.len() - MAX_LINES);
        }
        push_data(&mut goal, "The plan", &lines);
        for failure in failures {
            push_data(&mut goal, &failure.of, tail(&failure.text, MAX_OUTPUT_BYTES));
        }
        if !blocked.is_empty() {
            let _ = writeln!(goal, "\nBlocked by the failures: {}", blocked.join(", "));
        }
        Self { goal, ..Self::with(PATCH, "", &[], tools, facts, max_tasks) }
    }

    /// Makes the prompt for the subtasks of a manual task. `found` are the results of the tasks that it needs.
    pub fn expand<'t>(
        task: &str,
        found: &[Output],
        tools: impl IntoIterator<Item = &'t ToolSpec>,
        facts: &Facts,
        max_tasks: usize,
    ) -> Self {
        let mut goal = "Goal: this task is done by its subtasks.\n".to_owned();
        push_data(&mut goal, "The task", task);
        for found in found {
            push_data(&mut goal, &found.of, tail(&found.text, MAX_OUTPUT_BYTES));
        }
        Self { goal, ..Self::with(SUBTASKS, "", &[], tools, facts, max_tasks) }
    }
}
