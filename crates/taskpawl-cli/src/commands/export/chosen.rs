//! The tasks that an export writes.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl::Manager;
use taskpawl::model::task::Task;
use taskpawl::model::value::TaskId;
use taskpawl::model::view::Query;

use super::args::Args;
use super::existing::Existing;
use crate::error::CliError;

/// The tasks to write, and those that are left out.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) tasks: Vec<Task>,
    /// Tasks that did not come from the existing file and were not asked for.
    pub(super) not_added: Vec<TaskId>,
}

impl Chosen {
    /// Chooses the tasks. A new file gets all of them, or those of `--only`. An existing file also keeps those that came from it, and gets
    /// what was made below them; the rest of the store only with `--add-new`.
    pub(super) fn of(manager: &Manager, args: &Args, existing: Option<&Existing>) -> Result<Self, CliError> {
        let tasks = manager.list(&Query::default())?.tasks;
        let named: Option<BTreeSet<String>> = match args.only.as_slice() {
            [] => None,
            only => Some(manager.select(only, &[])?.into_iter().collect()),
        };
        let of_file =
            existing.filter(|existing| !existing.takes_all).map(|existing| with_all_below(existing, &tasks));
        let is_named = |task: &Task| match &named {
            Some(named) => named.contains(task.id.as_str()),
            None => args.add_new || of_file.is_none(),
        };
        let is_of_file = |task: &Task| of_file.as_ref().is_some_and(|of_file| of_file.contains(&task.id));
        let is_wanted: Vec<bool> = tasks.iter().map(|task| is_named(task) || is_of_file(task)).collect();
        let mut chosen = Self::default();
        for (task, is_wanted) in tasks.into_iter().zip(is_wanted) {
            if is_wanted {
                chosen.tasks.push(task);
            } else if of_file.is_some() {
                chosen.not_added.push(task.id);
            }
        }
        Ok(chosen)
    }
}

/// Returns the tasks that came from the file, and those below them.
fn with_all_below(existing: &Existing, tasks: &[Task]) -> BTreeSet<TaskId> {
    let parents: BTreeMap<&TaskId, &TaskId> =
        tasks.iter().filter_map(|task| Some((&task.id, task.parent.as_ref()?))).collect();
    let mut found: BTreeSet<TaskId> = existing.reading.tasks.iter().map(|task| task.id.clone()).collect();
    found.extend(existing.gone.iter().cloned());
    // Tasks known to be below none of them. With `found` it keeps deep trees linear.
    let mut others: BTreeSet<&TaskId> = BTreeSet::new();
    for task in tasks {
        let (mut path, mut at) = (Vec::new(), Some(&task.id));
        while let Some(id) = at.filter(|id| !found.contains(*id) && !others.contains(*id)) {
            path.push(id);
            at = parents.get(id).copied();
        }
        if at.is_some_and(|id| found.contains(id)) {
            found.extend(path.into_iter().cloned());
        } else {
            others.extend(path);
        }
    }
    found
}

/// Tasks that were removed from the file by another program or a person.
pub(super) struct Gone {
    /// Tasks that stay out, because they have not changed in the store since.
    pub(super) left: Vec<TaskId>,
    /// Tasks that are written again.
    pub(super) again: Vec<TaskId>,
    /// The reason for `left`.
    pub(super) why: &'static str,
}

impl Gone {
    /// Removes the tasks that stay out of the file. A task is written again if it has changed in the store,
    /// if one of its subtasks is written, or with `all`.
    pub(super) fn of(known: &Existing, tasks: &mut Vec<Task>, all: bool) -> Self {
        let gone: BTreeSet<&TaskId> = known.gone.iter().collect();
        let changed: BTreeSet<&TaskId> = known.gone_changed.iter().collect();
        let is_wanted = |task: &&Task| all || !gone.contains(&task.id) || changed.contains(&task.id);
        let parents: BTreeMap<&TaskId, &TaskId> =
            tasks.iter().filter_map(|task| Some((&task.id, task.parent.as_ref()?))).collect();
        let mut wanted: BTreeSet<TaskId> = BTreeSet::new();
        for task in tasks.iter().filter(is_wanted) {
            // Parents of written tasks are needed, too: a subtask alone would lose its position.
            let mut above = Some(&task.id);
            while let Some(id) = above.filter(|id| wanted.insert((*id).clone())) {
                above = parents.get(id).copied();
            }
        }
        tasks.retain(|task| wanted.contains(&task.id));
        let written: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
        let gone = known.gone.iter().cloned();
        let (again, left) = gone.partition(|id| written.contains(id));
        let why = if known.has_faults {
            "it is not among the records that can be read; correct the file"
        } else {
            "it was removed from the file; `--again` writes it again"
        };
        Self { left, again, why }
    }
}
