//! The argument `session` of calls of `agent`: conversations that calls of a plan share, or go on with.

use serde_json::{Value, json};
use taskpawl_text::nearest;

use super::draft::Draft;
use super::expressions::Names;
use super::linker::{Found, Linker, path_of};
use super::reader::{Reader, Segment, push_key};
use super::site::Stage;
use super::{PlanError, PlanProblem, PlanTask};
use crate::advice::hint::Hint;
use crate::expr::OPEN;
use crate::task::{AGENT_TOOL, CallPart, CallSpec, Mode, NewCall, SESSION_RESOURCE};

/// The word for the conversation that all calls of a plan with the same agent share.
const SHARED: &str = "shared";

/// A call that goes on with the session of another task, and the expression that reads its id.
pub(super) struct ResumedSession {
    draft: usize,
    call: usize,
    expression: String,
}

impl ResumedSession {
    /// Writes the expression into the call.
    pub(super) fn write(self, drafts: &mut [Draft<'_>]) {
        let call = &mut drafts[self.draft].task.calls[self.call];
        call.spec.args.insert("session".to_owned(), json!({"resume": self.expression}));
    }
}

impl<'n> Reader<'n> {
    /// Lets the tasks of a shared conversation take turns.
    pub(super) fn share_session(&mut self, draft: &mut Draft<'n>) {
        let shares =
            |call: &&NewCall| is_agent(&call.spec) && call.spec.args.get("session") == Some(&json!(SHARED));
        let count = draft.task.calls.iter().filter(shares).count();
        if count == 0 {
            return;
        }
        if count > 1 && draft.task.spec.mode() == Mode::Parallel {
            let problem = PlanProblem::NotWith { field: "session: shared", with: "mode: parallel" };
            let hint = "leave out `mode`: the calls of one conversation run one after the other";
            self.within(Segment::Key("mode"), |reader| reader.report_with(draft.task.at, problem, hint));
        }
        draft.task.spec.resources.entry(SESSION_RESOURCE.to_owned()).or_insert(1);
    }
}

/// Resolves the sessions that calls name by a task of the plan. Any other text is the id of a session.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    linker: &Linker<'_, '_>,
    names: &mut Names,
) -> Vec<ResumedSession> {
    let mut resumed = Vec::new();
    // Those of an included plan are resolved in it.
    let own = linker.drafts.iter().enumerate().filter(|(_, draft)| !draft.is_included());
    for (number, draft) in own {
        for (index, call) in draft.task.calls.iter().enumerate() {
            let Some(text) = named_session(&call.spec) else { continue };
            match expression(reader.is_part, linker, (number, index), text) {
                Ok(Some((expression, other))) => {
                    names[number].extend(other.map(|other| (text.to_owned(), other)));
                    resumed.push(ResumedSession { draft: number, call: index, expression });
                }
                Ok(None) => {}
                Err((problem, hint)) => {
                    let mut path = path_of(linker.drafts, linker.listed, number);
                    push_key(&mut path, "session");
                    let at = linker.at(number);
                    reader.errors.push(PlanError { at, path, problem, hint: hint.map(Hint::from) });
                }
            }
        }
    }
    resumed
}

type Problem = (PlanProblem, Option<String>);

/// Returns the expression that reads the session of a task, with the draft of the task; `None` for the id of a session.
fn expression(
    is_part: bool,
    linker: &Linker<'_, '_>,
    (number, call): (usize, usize),
    text: &str,
) -> Result<Option<(String, Option<usize>)>, Problem> {
    let quoted = text.replace('\\', "\\\\").replace('\'', "\\'");
    let other = match linker.refer(number, text, Stage::Args(call)) {
        Ok(Some(other)) => other,
        Ok(None) => {
            // Only the store knows the calls of the task.
            let is_needed = linker.outside[number].iter().any(|id| id.as_str() == text);
            let expression = format!("${{{{ tasks['{quoted}'].result.session }}}}");
            return Ok(is_needed.then_some((expression, None)));
        }
        Err((PlanProblem::UnknownTask { .. }, hint)) if nearest(text, linker.others(number)).is_some() => {
            return Err((PlanProblem::UnknownTask { reference: text.to_owned() }, hint));
        }
        Err((PlanProblem::UnknownTask { .. }, _)) => return Ok(None),
        Err((PlanProblem::NoDependency { .. }, _)) if is_part => match linker.find(text) {
            Found::One(other) => other,
            Found::Several(..) | Found::Nobody => return Ok(None),
        },
        Err(problem) => return Err(problem),
    };
    let spec = &linker.drafts[number].task.calls[call].spec;
    let value = session_of(&linker.drafts[other].task, spec)
        .map_err(|why| (PlanProblem::NoSession { task: linker.label(other), why }, None))?;
    Ok(Some((format!("${{{{ tasks['{quoted}'].{value} }}}}"), Some(other))))
}

/// Returns the part of an expression that reads the session of the last agent of a task, for a call that goes on with it.
fn session_of(task: &PlanTask, call: &CallSpec) -> Result<String, &'static str> {
    if task.spec.for_each.is_some() {
        return Err("each of its items has one of its own");
    }
    let of_agent = |call: &NewCall| is_agent(&call.spec) && call.spec.part() == CallPart::Work;
    let Some(position) = task.calls.iter().rposition(of_agent) else {
        return Err("it has no call of `agent`");
    };
    let using = |spec: &CallSpec| spec.args.get("using").and_then(Value::as_str).map(str::to_owned);
    let own = &task.calls[position].spec;
    if let (Some(own), Some(other)) = (using(own), using(call))
        && own != other
        && !own.contains(OPEN)
        && !other.contains(OPEN)
    {
        return Err("its agent is another one");
    }
    let last = task.calls.iter().rposition(|call| call.spec.part() == CallPart::Work);
    Ok(if last == Some(position) {
        "result.session".to_owned()
    } else {
        format!("context['{}'].session", super::expressions::call_names(&task.calls)[position])
    })
}

fn is_agent(call: &CallSpec) -> bool {
    call.tool_name == AGENT_TOOL
}

/// Returns the text of `session: {resume: TEXT}`, unless it is an expression.
fn named_session(call: &CallSpec) -> Option<&str> {
    let text = call.args.get("session").filter(|_| is_agent(call))?.get("resume")?.as_str()?;
    (!text.contains(OPEN)).then_some(text)
}
