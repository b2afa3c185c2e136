//! What asks before it runs, and what never starts, as far as the arguments are known.

use crate::CallId;
use crate::decide::asks_by_itself;
use crate::flow;
use crate::gatekeeper::{Gatekeeper, Judgement, Proposed, requested};
use crate::record::{CallRecord, Node, TaskRecord, Work};
use crate::spec::Map;
use crate::view::{View, ViewResult};

/// What is said about the calls of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Those that ask, and why where their author does not say so.
    pub(super) calls: Vec<(CallId, Option<String>)>,
    /// Why the list of a task asks.
    pub(super) list: Option<String>,
    /// Why the first of them fails that never starts.
    pub(super) denied: Option<String>,
}

impl Verdict {
    pub(super) fn asks(&self) -> bool {
        self.list.is_some() || !self.calls.is_empty()
    }
}

/// Looks at the calls that are left of a task.
pub(super) fn look_at_calls(
    view: &dyn View,
    gatekeeper: Option<&dyn Gatekeeper>,
    node: &Node,
) -> ViewResult<Verdict> {
    let mut verdict = Verdict::default();
    let Some(record) = view.task(node.key)? else { return Ok(verdict) };
    let is_list = record.spec.for_each.is_some();
    if (node.work != Work::Calls && !is_list) || (is_list && record.body.progress.opened) {
        return Ok(verdict);
    }
    let calls = view.calls(node.key)?;
    for call in calls.iter().filter(|call| !call.body.status.is_settled()) {
        let args = flow::known_args(&view, &record, &calls, call)?.0;
        match judge(gatekeeper, &record, call, &args) {
            Judgement::Deny { why } if verdict.denied.is_none() => {
                verdict.denied = Some(format!("call `{}` ({}): {why}", call.id, call.spec.tool_name));
            }
            Judgement::Deny { .. } => {}
            judged @ (Judgement::Ask { .. } | Judgement::Allow) => {
                note_question(&mut verdict, &record, call, judged);
            }
        }
    }
    Ok(verdict)
}

fn judge(
    gatekeeper: Option<&dyn Gatekeeper>,
    record: &TaskRecord,
    call: &CallRecord,
    args: &Map,
) -> Judgement {
    let (tool, origin, sandbox) =
        (call.spec.tool_name.as_str(), call.origin, requested(&record.spec, &call.spec));
    gatekeeper.map_or(Judgement::Allow, |keeper| keeper.judge(&Proposed { tool, args, origin, sandbox }))
}

fn note_question(verdict: &mut Verdict, record: &TaskRecord, call: &CallRecord, judged: Judgement) {
    let why = match judged {
        Judgement::Ask { why } => Some(why),
        Judgement::Allow | Judgement::Deny { .. } => {
            asks_by_itself(call.origin, &call.spec).map(str::to_owned)
        }
    };
    let by_author = call.spec.approval.is_some();
    if record.spec.for_each.is_some() {
        // What asks by itself does so for each element, of which nobody knows here.
        let is_asked = !by_author && record.body.progress.approval.is_none();
        verdict.list = verdict.list.take().or(why.filter(|_| is_asked));
    } else if call.body.approval.is_none() && (by_author || why.is_some()) {
        verdict.calls.push((call.id.clone(), why));
    }
}
