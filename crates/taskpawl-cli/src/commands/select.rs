//! Selection of tasks for commands that accept several.

use std::collections::BTreeSet;

use taskpawl::Manager;
use taskpawl::model::rules::resolve;
use taskpawl::model::task::Status;
use taskpawl::model::value::Key;
use taskpawl::model::value::Selector;
use taskpawl::model::view::{View, ViewResult};

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;
use std::process::ExitCode;

/// Tasks by id, or by what they have in common. All of them are changed, or none.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Select {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", conflicts_with_all = ["only", "failed"])]
    ids: Vec<String>,
    /// Those of a plan, with a label, or a task with all below it: of them the ones that it can be done to
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// Those that failed
    #[arg(long)]
    failed: bool,
}

/// The selected tasks.
pub(super) enum Selection {
    Tasks(Vec<String>),
    /// No task matches. This is no error, because no task was named.
    Nothing,
}

impl Select {
    /// Returns the selected tasks. A search only finds tasks with one of the statuses in `from`; named ids
    /// are returned as they are.
    pub(super) fn find(&self, manager: &Manager, from: &[Status]) -> Result<Selection, CliError> {
        if !self.ids.is_empty() {
            return Ok(Selection::Tasks(self.ids.clone()));
        }
        // Named ids skip this filter: the command itself refuses a wrong status with a reason, instead of
        // ignoring the task.
        let status = if self.failed { &[Status::Failed] } else { from };
        let ids = manager.select(&self.only, status)?;
        Ok(if ids.is_empty() { Selection::Nothing } else { Selection::Tasks(ids) })
    }
}

/// Reports that nothing is selected.
pub(super) fn nothing(app: &App) -> Result<ExitCode, CliError> {
    app.out().remark("no task is selected: nothing to do");
    print::tasks(app, &[])
}

/// Removes tasks below other selected ones, for commands that include subtasks.
pub(super) fn topmost(manager: &Manager, ids: Vec<String>) -> Result<Vec<String>, CliError> {
    let tops = manager.read(|view| {
        let keys = ids.iter().map(|id| resolve(view, id)).collect::<Result<Vec<_>, _>>()?;
        let set: BTreeSet<Key> = keys.iter().copied().collect();
        let is_below = keys.iter().map(|key| is_below_any(view, *key, &set));
        Ok(is_below.collect::<ViewResult<Vec<_>>>()?)
    })?;
    Ok(ids.into_iter().zip(tops).filter_map(|(id, is_below)| (!is_below).then_some(id)).collect())
}

fn is_below_any(view: &dyn View, key: Key, set: &BTreeSet<Key>) -> ViewResult<bool> {
    let mut above = view.node(key)?.and_then(|node| node.parent);
    while let Some(key) = above {
        if set.contains(&key) {
            return Ok(true);
        }
        above = view.node(key)?.and_then(|node| node.parent);
    }
    Ok(false)
}
