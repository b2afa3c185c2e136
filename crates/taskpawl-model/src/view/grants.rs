//! Grants that advice names for failed calls.

use std::fmt;

use crate::task::record::{CallRecord, Grant, TaskRecord};
use crate::task::status::CallStatus;

/// Grants that calls have in every run, without a flag, so that no advice repeats them. The store does not know them.
pub trait GivenGrants: fmt::Debug + Send + Sync {
    /// Returns whether a call has the grant.
    fn is_given(&self, task: &TaskRecord, call: &CallRecord, grant: &Grant) -> bool;
}

/// Returns what a person may grant for failed calls of a task that probably met their sandbox, without what they have by now. The failure
/// may be that of an earlier run.
pub fn grants_for<'a>(
    task: &'a TaskRecord,
    calls: &'a [CallRecord],
    given: Option<&'a dyn GivenGrants>,
) -> impl Iterator<Item = &'a Grant> {
    let failed = calls.iter().filter(|call| call.body.status == CallStatus::Failed);
    failed.filter_map(move |call| {
        let grant = call.body.error.as_ref()?.grant.as_ref()?;
        (!given.is_some_and(|given| given.is_given(task, call, grant))).then_some(grant)
    })
}
