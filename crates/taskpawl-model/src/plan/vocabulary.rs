//! The fields that authors may write, and suggestions for unknown ones.
//!
//! An unknown field would be stored and have no effect, so it is refused everywhere authors write. Names that begin
//! with `x-` are free for fields of the author's own. Unknown fields of stores, of imports and of older versions are
//! preserved.

use taskpawl_text::nearest;

use super::PlanProblem;
use super::node::shortened;

/// Fields that define the calls of a task. Giving one replaces all of them.
pub(crate) const WORK_FIELDS: [&str; 4] = ["run", "call", "calls", "toolCalls"];

/// The field with the calls that verify a task. It replaces those alone.
pub(crate) const VERIFY: &str = "verify";

/// The field of `worktree` with the calls that prepare it.
pub(crate) const SETUP: &str = "setup";

/// The field with the files that a task has to leave. It replaces those alone.
pub(crate) const ARTIFACTS: &str = "artifacts";

/// The field with the plan whose tasks become the subtasks of the task.
pub(crate) const INCLUDE: &str = "include";

/// The prefix of fields of the author's own.
const OWN: &str = "x-";

/// The fields of one kind of object.
pub(super) struct Vocabulary {
    /// The object in words, with an article.
    what: &'static str,
    pub(super) known: &'static [&'static str],
    /// The known fields that planners write, in the order of a plan that they propose. Left out are fields that loosen trust, that
    /// people keep for themselves, or that need facts which a planner does not have.
    proposed: &'static [&'static str],
    /// The known fields that define the execution. They cannot change while a task runs or once it is done.
    work: &'static [&'static str],
    /// Fields that only execution sets.
    state: &'static [&'static str],
    /// Names of fields in other programs, with the hint for each group.
    elsewhere: &'static [(&'static [&'static str], &'static str)],
    /// The field in which fields of the author's own belong.
    own: &'static str,
}

pub(super) const PLAN: Vocabulary = Vocabulary {
    what: "a plan",
    known: &[
        "version",
        "name",
        "description",
        "params",
        "defaults",
        "resources",
        "timeout",
        "budget",
        "maxFailures",
        "schedule",
        "notify",
        "tools",
        "requires",
        "returns",
        "tasks",
    ],
    proposed: &["name", "description", "resources", "budget", "tasks"],
    work: &[],
    state: &[],
    elsewhere: &[
        (&["steps", "jobs", "nodes"], "write `tasks`"),
        (&["inputs", "parameters", "variables", "vars"], "write `params`"),
        (&["id", "title"], "write `name`"),
        (&["env", "environment", "cwd", "shell"], "write it in `defaults`, or on a task"),
        (&["cron", "timer"], "write `schedule`"),
        (&["timezone", "overlap"], "write it in `schedule: {cron: …}`"),
        (&["maxparallel", "concurrency", "jobslimit"], "pass `--jobs` to the run, or write `resources`"),
    ],
    own: "`metadata` of a task",
};

pub(super) const TASK: Vocabulary = Vocabulary {
    what: "a task",
    known: &[
        "id",
        "name",
        "description",
        "priority",
        "dueDate",
        "notBefore",
        "assignee",
        "labels",
        "dependencies",
        "needs",
        "subtasks",
        "include",
        "links",
        "trigger",
        "when",
        "forEach",
        "repeat",
        "rework",
        "mode",
        "retry",
        "timeout",
        "resources",
        "writes",
        "worktree",
        "runsOn",
        "sends",
        "sandbox",
        "trustInputs",
        "approval",
        "cache",
        "estimate",
        "milestone",
        "metadata",
        "run",
        "call",
        "calls",
        "toolCalls",
        "verify",
        "artifacts",
        "context",
        "env",
        "cwd",
        "shell",
        "idempotent",
    ],
    proposed: &[
        "id",
        "name",
        "description",
        "needs",
        "trigger",
        "when",
        "forEach",
        "repeat",
        "approval",
        "sandbox",
        "retry",
        "timeout",
        "resources",
        "writes",
        "milestone",
        "cwd",
        "env",
        "shell",
        "idempotent",
        "run",
        "call",
        "calls",
        "mode",
        "subtasks",
    ],
    work: &[
        "notBefore",
        "trigger",
        "when",
        "forEach",
        "repeat",
        "rework",
        "mode",
        "retry",
        "timeout",
        "resources",
        "writes",
        "worktree",
        "runsOn",
        "sends",
        "sandbox",
        "approval",
        "cache",
        "milestone",
    ],
    state: &[
        "status",
        "attempt",
        "createdAt",
        "updatedAt",
        "version",
        "result",
        "blockedReason",
        "startedAt",
        "finishedAt",
        "error",
        "errorClass",
        "notes",
        "plan",
        "claim",
        "claimEnded",
        "endedBy",
        "questionOver",
        "waitOver",
        "generation",
        "parent",
        "names",
        "origins",
        "opened",
        "formerItems",
        "item",
        "round",
        "took",
        "granted",
        "cached",
        "changedBeyond",
        "waitingFor",
    ],
    elsewhere: &[
        (&["dependson", "depends", "after", "requires", "prerequisites", "blockedby"], "write `needs`"),
        (&["title"], "write `name`"),
        (&["cmd", "command", "script", "exec"], "write `run`"),
        (&["environment", "envvars"], "write `env`"),
        (&["workingdirectory", "workdir", "dir", "directory"], "write `cwd`"),
        (&["tool", "tools", "uses", "steps", "args"], "write `call: {TOOL: args}`"),
        (&["stdin"], "write `call: {shell: {command: …, stdin: …}}`"),
        (&["okexitcodes", "parse"], "write `call: {shell: {command: …, okExitCodes: …, parse: …}}`"),
        (&["tags"], "write `labels`"),
        (&["due", "deadline"], "write `dueDate`"),
        (&["children", "tasks"], "write `subtasks`"),
        (&["if", "condition"], "write `when`"),
        (&["verification", "validate", "checks", "postconditions", "acceptance"], "write `verify`"),
        (&["loop", "items", "matrix", "withitems", "strategy"], "write `forEach: {in: …}`"),
        (&["retries", "maxretries", "maxattempts", "attempts", "retrycount"], "write `retry: {attempts: …}`"),
        (
            &["timeoutseconds", "timeoutsecs", "timeoutminutes", "timeoutms", "maxduration"],
            "write `timeout`, as in `timeout: 30s`",
        ),
        (
            &["continueonerror", "allowfailure", "ignoreerrors", "ignorefailure", "onfailure", "always"],
            "write `trigger: all_finished` on the tasks that should run after a failure",
        ),
    ],
    own: "`metadata` or `context`",
};

/// Fields of a call that come from what ran.
pub(crate) const CALL_STATE: &[&str] = &[
    "status",
    "result",
    "cut",
    "usage",
    "error",
    "errorClass",
    "attempts",
    "evaluatedArgs",
    "failures",
    "due",
    "granted",
    "emitted",
    "asked",
    "artifacts",
    "worker",
    "startedAt",
    "finishedAt",
    "origin",
];

pub(super) const CALL: Vocabulary = Vocabulary {
    what: "a tool call",
    known: &[
        "id",
        "toolName",
        "args",
        "when",
        "saveAs",
        "keep",
        "retry",
        "timeout",
        "sandbox",
        "trustInputs",
        "approval",
        "emit",
        "verify",
        "setup",
        "planAccess",
        "idempotent",
        "run",
    ],
    proposed: &["toolName", "args", "id", "when", "retry", "timeout", "saveAs"],
    work: &[],
    state: CALL_STATE,
    elsewhere: &[
        (&["tool", "name", "uses"], "write `toolName`"),
        (&["arguments", "input", "parameters", "params", "with"], "write `args`"),
        (&["cwd", "env", "stdin"], "write it beside `run`, or as `{shell: {command: …, cwd: …, env: …}}`"),
        (&["okexitcodes", "parse"], "write `{shell: {command: …, okExitCodes: …, parse: …}}`"),
        (&["if", "condition"], "write `when`"),
        (&["retries", "maxretries", "maxattempts", "retrycount"], "write `retry: {attempts: …}`"),
        (
            &["timeoutseconds", "timeoutsecs", "timeoutminutes", "timeoutms", "maxduration"],
            "write `timeout`, as in `timeout: 30s`",
        ),
        (&["output", "outputs", "register"], "write `saveAs`"),
    ],
    own: "`metadata` of the task",
};

/// The fields allowed in plan files, including short forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanFields {
    /// Fields of the plan.
    pub plan: &'static [&'static str],
    /// Fields of a task.
    pub task: &'static [&'static str],
    /// Fields of a tool call.
    pub call: &'static [&'static str],
    /// Fields of the objects in these, by the field that contains the object.
    pub objects: &'static [(&'static str, &'static [&'static str])],
}

/// The fields that planners write, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposedFields {
    /// Fields of the plan.
    pub plan: &'static [&'static str],
    /// Fields of a task.
    pub task: &'static [&'static str],
    /// Fields of a tool call in its long form.
    pub call: &'static [&'static str],
}

/// Returns the fields that planners write. The prompt explains each of them, and the schema of their answers has no others.
pub fn proposed_fields() -> ProposedFields {
    ProposedFields { plan: PLAN.proposed, task: TASK.proposed, call: CALL.proposed }
}

/// Returns the field of tasks if it defines the execution.
pub(crate) fn work_field(field: &str) -> Option<&'static str> {
    TASK.work.iter().copied().find(|name| *name == field)
}

/// Returns whether only other commands change this field of a task in its wire form.
pub(crate) fn is_state_field(field: &str) -> bool {
    TASK.state.contains(&field) || ["id", "subtasks", "ready", "deadline"].contains(&field)
}

/// Returns the problem with an unknown field of a plan and the hint; `None` for allowed fields.
pub(crate) fn refused_plan_field(field: &str) -> Option<(PlanProblem, String)> {
    if PLAN.is_known(field) { None } else { PLAN.refuse(field) }
}

/// Returns the problem with an unknown field of a task and the hint; `None` for a field of the author's own.
pub(crate) fn refused_task_field(field: &str) -> Option<(PlanProblem, String)> {
    TASK.refuse(field)
}

/// Returns the problem with an unknown field of a tool call and the hint; `None` for a field of the author's own.
pub(crate) fn refused_call_field(field: &str) -> Option<(PlanProblem, String)> {
    CALL.refuse(field)
}

/// Returns the problem with a field of a task's metadata and the hint. Only misspellings of `toolCalls` and `context`
/// are refused.
pub(crate) fn refused_metadata_field(field: &str) -> Option<(PlanProblem, String)> {
    let bare: String = field.chars().filter(|c| c.is_alphanumeric()).collect();
    let meant = ["toolCalls", "context"].into_iter().find(|known| known.eq_ignore_ascii_case(&bare))?;
    let problem = PlanProblem::UnknownField { field: shortened(field), of: "`metadata`" };
    Some((problem, format!("did you mean `{meant}`?")))
}

impl Vocabulary {
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    pub(super) fn is_known(&self, field: &str) -> bool {
        self.known.contains(&field)
    }

    pub(super) fn is_state(&self, field: &str) -> bool {
        self.state.contains(&field)
    }

    /// Returns whether a field resembles a known one: misspelled, named as in another program, or set by execution.
    pub(super) fn resembles(&self, field: &str) -> bool {
        let bare = bare(field);
        self.is_state_word(&bare)
            || self.instead_of(&bare).is_some()
            // Two letters are near to every other two, and may name a tool.
            || (bare.chars().count() > 2 && nearest(field, self.known.iter().copied()).is_some())
    }

    /// Returns the problem with an unknown field and the hint; `None` for a field of the author's own.
    pub(super) fn refuse(&self, field: &str) -> Option<(PlanProblem, String)> {
        if is_own_field(field) {
            return None;
        }
        let bare = bare(field);
        if self.is_state_word(&bare) {
            let hint = "leave it out; runs and task commands set it".to_owned();
            return Some((PlanProblem::StateField { field: shortened(field) }, hint));
        }
        let problem = PlanProblem::UnknownField { field: shortened(field), of: self.what };
        let hint = if let Some(instead) = self.instead_of(&bare) {
            instead.to_owned()
        } else if let Some(nearest) = nearest(field, self.known.iter().copied()) {
            format!("did you mean `{nearest}`? custom fields belong in {}", self.own)
        } else {
            let own = shortened(field);
            format!("rename it to `{OWN}{own}` if it is a custom field, or put it into {}", self.own)
        };
        Some((problem, hint))
    }

    fn is_state_word(&self, bare: &str) -> bool {
        self.state.iter().any(|state| bare == state.to_lowercase())
    }

    /// Returns the hint for a field name of another program.
    fn instead_of(&self, bare: &str) -> Option<&'static str> {
        let (_, instead) = self.elsewhere.iter().find(|(words, _)| words.contains(&bare))?;
        Some(instead)
    }
}

/// Returns whether a field is one of the author's own, which taskpawl preserves and never reads.
pub fn is_own_field(field: &str) -> bool {
    field.len() > OWN.len() && field.starts_with(OWN)
}

/// Returns a name in lower case without separators, so that `due_date`, `due-date` and `dueDate` are equal.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{CALL, PLAN, TASK, nearest};
    use crate::task::spec::{CALL_FIELDS, TASK_FIELDS};

    #[test]
    fn plan_files_know_every_field_of_a_specification() {
        for (vocabulary, fields) in [(TASK, TASK_FIELDS), (CALL, CALL_FIELDS)] {
            let missing: Vec<_> = fields.iter().filter(|field| !vocabulary.is_known(field)).collect();
            assert!(missing.is_empty(), "{missing:?} of {}", vocabulary.what);
        }
    }

    #[test]
    fn planners_write_known_fields_alone() {
        for vocabulary in [PLAN, TASK, CALL] {
            let unknown: Vec<_> =
                vocabulary.proposed.iter().filter(|field| !vocabulary.is_known(field)).collect();
            assert!(unknown.is_empty(), "{unknown:?} of {}", vocabulary.what);
        }
    }

    #[test]
    fn misspellings_are_distinguished_from_other_words() {
        let near = |text| nearest(text, TASK.known.iter().copied());
        for (text, meant) in [
            ("dependancies", "dependencies"),
            ("need", "needs"),
            ("dueDat", "dueDate"),
            ("due_date", "dueDate"),
            ("for-each", "forEach"),
            ("tiemout", "timeout"),
            ("sub_tasks", "subtasks"),
        ] {
            assert_eq!(near(text), Some(meant), "{text}");
        }
        for text in ["ticket", "owner", "x", "team", "url", "colour"] {
            assert_eq!(near(text), None, "{text}");
        }
    }

    #[test]
    fn only_names_with_the_prefix_x_hyphen_are_free() {
        for vocabulary in [PLAN, TASK, CALL] {
            for field in ["ticket", "x", "x-", "xticket", "x_ticket", "X-ticket", "", "priorty"] {
                assert!(vocabulary.refuse(field).is_some(), "{field} of {}", vocabulary.what);
            }
            for field in ["x-ticket", "x-status", "x-x"] {
                assert_eq!(vocabulary.refuse(field), None, "{field} of {}", vocabulary.what);
            }
        }
    }
}
