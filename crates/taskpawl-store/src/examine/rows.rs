//! Checks that every stored row can be parsed.

use taskpawl_model::task::{CallRecord, TaskRecord};
use taskpawl_model::value::Key;
use taskpawl_model::view::{View, ViewResult};

use crate::StoreError;
use crate::examine::diagnostic::{Diagnostic, Diagnostics, Severity};

const RESTORE: &str = "restore a backup of the store, or delete the task";

/// Reads every task and every call, and reports those that cannot be parsed.
pub(crate) fn check_rows(view: &dyn View, keys: &[Key]) -> ViewResult<Vec<Diagnostic>> {
    let mut unreadable = Diagnostics::new("unreadable", Severity::Damage, RESTORE);
    let mut numbers = Diagnostics::new("number", Severity::Damage, RESTORE);
    for key in keys {
        let label = || match view.id(*key) {
            Ok(Some(id)) => format!("task `{id}`"),
            _ => format!("task number {}", key.0),
        };
        match (view.task(*key), view.calls(*key)) {
            (Ok(Some(task)), Ok(calls)) => {
                if let Some(detail) = check_numbers(&task, &calls) {
                    numbers.add(label(), detail);
                }
            }
            (Ok(None), _) => unreadable.add(label(), "its state is missing"),
            (Err(error), _) | (_, Err(error)) => {
                let error = StoreError::from_view(error);
                let StoreError::Corrupt { detail, .. } = error else { return Err(error.into()) };
                unreadable.add(label(), detail);
            }
        }
    }
    let mut found = unreadable.finish();
    found.extend(numbers.finish());
    Ok(found)
}

/// Returns a message if a counter of a task is so large that it could overflow when it is increased.
fn check_numbers(task: &TaskRecord, calls: &[CallRecord]) -> Option<String> {
    let body = &task.body;
    let most = u64::from(u32::MAX / 2);
    let mut numbers = vec![("attempt", u64::from(body.attempt)), ("generation", u64::from(body.generation))];
    numbers.extend(calls.iter().map(|call| ("attempts", u64::from(call.body.attempts))));
    let (name, number) = numbers.into_iter().find(|(_, number)| *number > most)?;
    Some(format!("`{name}` is {number}, which is above {most}"))
}
