//! Finding a task by the reference that a caller wrote.

use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::value::{Key, TaskId};
use crate::view::read::missing;
use crate::view::{View, ViewError};

/// Finds a task by its exact id, or by a unique prefix of it.
///
/// # Errors
/// No task matches, several do, or the view cannot be read.
pub fn resolve(view: &dyn View, text: &str) -> Result<Key, DecideError> {
    if let Some(key) = view.key(text)? {
        return Ok(key);
    }
    let candidates = if text.is_empty() { Vec::new() } else { view.ids_with_prefix(text, 5)? };
    match candidates.as_slice() {
        [id] => Ok(view.key(id.as_str())?.ok_or_else(|| missing(Key(0)))?),
        [] => Err(Refusal::UnknownTask { id: text.to_owned(), similar: similar_ids(view, text)? }.into()),
        _ => Err(Refusal::AmbiguousId { id: text.to_owned(), candidates }.into()),
    }
}

/// Finds a task by id, first by the ids in the files of `plans`, whose tasks may have a prefix in the store.
///
/// # Errors
/// As for [`resolve`].
pub(crate) fn resolve_within<'p>(
    view: &dyn View,
    plans: impl IntoIterator<Item = &'p str>,
    text: &str,
) -> Result<Key, DecideError> {
    for plan in plans {
        let Some(record) = view.plan(plan)? else { continue };
        if let Some(key) = view.key(record.stored_id(&TaskId::from(text)).as_str())? {
            return Ok(key);
        }
    }
    resolve(view, text)
}

fn similar_ids(view: &dyn View, text: &str) -> Result<Vec<TaskId>, ViewError> {
    const LOOKED_AT: usize = 500;
    let first: String = text.chars().take(1).collect();
    let ids = view.ids_with_prefix(&first, LOOKED_AT)?;
    Ok(taskpawl_text::near(text, ids.iter().map(TaskId::as_str))
        .into_iter()
        .take(3)
        .map(TaskId::from)
        .collect())
}
