//! Durable waits in a forecast. A task that waits beyond now does not end in the run.

use super::tasks::ForecastTasks;
use crate::task::record::CallRecord;
use crate::task::spec::Mode;
use crate::task::status::{CallStatus, Status};
use crate::task::wait::{WAIT_TOOL, WaitRequest, WaitingFor};
use crate::value::{Key, TaskId, Timestamp};
use crate::view::{View, ViewResult, Waits};

/// Notes the tasks that wait now, and opens those whose `notBefore` has passed.
pub(super) fn take_stored(board: &mut ForecastTasks<'_>) -> ViewResult<()> {
    for key in board.view.waiting(Waits::All)? {
        let Some(task) = board.view.task(key)? else { continue };
        let Some(wait) = task.body.progress.waiting_for.clone() else { continue };
        let is_over = Waits::Due(board.now).is_meant(&wait);
        let status = board.status_kind(key).status();
        if is_over && status == Status::Todo {
            board.queue_gate(key);
        } else if !is_over && matches!(status, Status::Todo | Status::InProgress) {
            board.waits.insert(key, *wait);
        }
    }
    Ok(())
}

/// Returns the wait that the unfinished calls of a task begin, if it does not end at once.
pub(super) fn begun_by(
    view: &dyn View,
    key: Key,
    calls: &[CallRecord],
    now: Timestamp,
) -> ViewResult<Option<WaitingFor>> {
    let Some(task) = view.task(key)? else { return Ok(None) };
    let mut begun: Option<WaitingFor> = None;
    for call in calls {
        let Some(wait) = wait_of(view, &task.id, call, now)? else { continue };
        begun = Some(match begun {
            Some(before) => before.or(wait),
            None => wait,
        });
        if task.spec.mode() == Mode::Sequential {
            break;
        }
    }
    Ok(begun)
}

fn wait_of(
    view: &dyn View,
    task: &TaskId,
    call: &CallRecord,
    now: Timestamp,
) -> ViewResult<Option<WaitingFor>> {
    if call.spec.tool_name != WAIT_TOOL || call.body.status != CallStatus::Pending {
        return Ok(None);
    }
    let id = Some(call.id.clone());
    // Arguments with expressions are known only when the call starts.
    let Ok(request) = WaitRequest::read(call.body.args.as_ref().unwrap_or(&call.spec.args)) else {
        return Ok(Some(WaitingFor { call: id, ..WaitingFor::default() }));
    };
    let begin = call.body.started_at.unwrap_or(now);
    let (time, signal) = (call.body.due.or_else(|| request.end(begin)), request.signal());
    if let Some(name) = signal {
        let is_for = |to: Option<&TaskId>| to.is_none_or(|to| to == task);
        if view.signals(Some(name))?.iter().any(|signal| is_for(signal.to.as_ref())) {
            return Ok(None);
        }
    }
    let signal = signal.map(str::to_owned);
    let is_over = time.is_some_and(|time| time <= now);
    Ok((!is_over).then_some(WaitingFor { call: id, time, signal, also: Vec::new() }))
}
