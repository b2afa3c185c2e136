//! What a caller should know of the policy before a run: how many of its calls will ask a person, and what lets them run.

use serde_json::{Value, json};
use taskpawl::Error;
use taskpawl::model::advice::HintWords as _;
use taskpawl::model::task::PolicyDecision;
use taskpawl::model::value::TaskId;

use super::brief::{LISTED_CHARS, cut};
use super::caller::Caller;

/// Maximum number of tasks whose calls are judged. A larger plan says that there are more.
const MAX_TASKS: usize = 500;

/// Counts of calls by what the policy decides about them.
#[derive(Debug, Default)]
struct Judged {
    all: usize,
    ask: usize,
    denied: usize,
    /// Reason of the first question or refusal.
    why: Option<String>,
}

/// Returns how many calls of the tasks will ask a person or never run, with the ways to let them run; nothing if all of them
/// run. `plan` is the plan of the tasks.
pub(super) fn announced(caller: &Caller, tasks: &[TaskId], plan: Option<&str>) -> Result<Value, Error> {
    let mut judged = Judged::default();
    for id in tasks.iter().take(MAX_TASKS) {
        for call in caller.reads().call_authorizations(id.as_str())? {
            judged.count(call.decision);
        }
    }
    if judged.ask + judged.denied == 0 {
        return Ok(Value::Null);
    }
    let mut said = json!({"calls": judged.all, "ask": judged.ask, "why": judged.why});
    if judged.denied > 0 {
        said["denied"] = json!(judged.denied);
    }
    if tasks.len() > MAX_TASKS {
        said["ofFirstTasks"] = json!(MAX_TASKS);
    }
    if judged.ask > 0 {
        said["aPersonCan"] = json!(ways(caller, tasks, plan));
    }
    Ok(said)
}

impl Judged {
    fn count(&mut self, decision: PolicyDecision) {
        self.all += 1;
        let (count, why) = match decision {
            PolicyDecision::Allow => return,
            PolicyDecision::Ask { why } => (&mut self.ask, why),
            PolicyDecision::Deny { why } => (&mut self.denied, why),
        };
        *count += 1;
        self.why.get_or_insert_with(|| cut(&why, LISTED_CHARS));
    }
}

/// Returns what a person can do, the widest first.
fn ways(caller: &Caller, tasks: &[TaskId], plan: Option<&str>) -> [String; 3] {
    let only = |selector: String| ["--only".to_owned(), selector];
    let scope: Vec<String> = match plan {
        Some(plan) => only(format!("plan:{plan}")).to_vec(),
        None => tasks.iter().flat_map(|id| only(id.to_string())).collect(),
    };
    [
        "start this server with `taskpawl mcp --allow sandboxed`: all of it runs in the sandbox".to_owned(),
        "write `[origins]` and `mcp = \"sandboxed\"` into their policy.toml (`taskpawl policy list` says where)".to_owned(),
        format!("approve them one by one, before the run or when it waits: {}", caller.words().command("approve", &scope)),
    ]
}
